"""Score brokers by the client's properties, by distance, by free capacity, or by owned bundles."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import lru_cache
from itertools import combinations
from typing import Annotated, ClassVar

import numpy as np
from numpy.typing import NDArray

from lookup.hooks import Ge, Gt, Le
from lookup.model import Broker, Candidates, ClusterView, Location, LookupRequest, Topology

__all__ = ["FewestBundles", "Headroom", "PropertyMatch", "TopologyDistance"]

FloatArray = NDArray[np.float64]
_DEFAULT_KEY = "rack"


@dataclass(frozen=True)
class PropertyMatch:
    """Score brokers by whether they publish the client's value. `lookup.rack=a` matches `rack=a`.

    With several keys the score is the mean of their scores, by weight. Values are compared unchanged, including case.

    Match -> Result -> Reason, for each key:
        * both have it, values equal -> 1.0
        * both have it, values differ -> 0.0
        * the client sent it, the broker has none -> `unlabelled`
        * the client sent none, for any value of the broker -> `unasked` for every broker, so the key prefers no
          broker

    Source: PIP-368, whose worked example compares a client's `rack` with a broker's `lookup.rack`.
    """

    name: ClassVar[str] = "property-match"

    #: the client property to compare, without prefix
    key: str = _DEFAULT_KEY
    #: several properties with their weights, in place of `key`
    keys: Mapping[str, Annotated[float, Gt(0)]] = field(default_factory=dict)
    #: score of a broker without the property that the client sent. 0.5 is neither match nor mismatch
    unlabelled: Annotated[float, Ge(0), Le(1)] = 0.0
    #: score of every broker if the client sent nothing
    unasked: Annotated[float, Ge(0), Le(1)] = 0.5

    def __post_init__(self) -> None:
        if self.keys and self.key != _DEFAULT_KEY:
            raise ValueError(f"property-match has both key = {self.key!r} and keys; leave one of them out")

    @property
    def reads(self) -> frozenset[str]:
        """The client properties that are compared."""
        return frozenset(f"properties.{key}" for key in self.keys or (self.key,))

    def score(self, request: LookupRequest, brokers: Candidates, view: ClusterView) -> FloatArray:
        """Compute the weighted mean of the keys' scores."""
        if not self.keys:
            return self._score_key(self.key, request, brokers)
        # In sorted order, so equal parts score equally to the last bit for any order of their keys.
        terms = [weight * self._score_key(key, request, brokers) for key, weight in sorted(self.keys.items())]
        means: FloatArray = np.sum(terms, axis=0) / sum(self.keys[key] for key in sorted(self.keys))
        # Round-off may lift the mean of ones above 1.0, which the engine would refuse.
        return np.minimum(means, 1.0)

    def _score_key(self, key: str, request: LookupRequest, brokers: Candidates) -> FloatArray:
        value = request.property_of(key)
        if value is None:
            return np.full(len(brokers), self.unasked)
        scores: FloatArray = np.equal(brokers.labels(key), value).astype(np.float64)
        # A label of None equals no text, so brokers without one have 0.0 already, which is the default.
        if self.unlabelled:
            bare = brokers.column((self.name, key), lambda broker: broker.property_of(key) is None)
            scores[bare.astype(np.bool_)] = self.unlabelled
        return scores


@dataclass(frozen=True)
class TopologyDistance:
    """Score brokers by 1 - distance / the greatest possible distance in the topology.

    The client's location is read from its lookup properties. The divisor is a constant of the topology, not the
    distance of the farthest candidate, so a score keeps its meaning when candidates change.

    Match -> Result -> Reason:
        * client and broker share a level to compare -> 1.0 at distance 0 down to 0.0 at the greatest
        * the broker's location cannot be compared with the client's -> `unknown`
        * the client sent no location -> `unknown` for every broker

    Source: topology, and rack awareness as in Kafka's KIP-392.
    """

    name: ClassVar[str] = "topology-distance"

    #: client properties that hold the levels of its location
    region_key: str = "region"
    zone_key: str = "zone"
    rack_key: str = "rack"
    #: score if the distance is not known
    unknown: Annotated[float, Ge(0), Le(1)] = 0.5

    @property
    def reads(self) -> frozenset[str]:
        """The client properties that make its location."""
        return frozenset(f"properties.{key}" for key in (self.region_key, self.zone_key, self.rack_key))

    def score(self, request: LookupRequest, brokers: Candidates, view: ClusterView) -> FloatArray:
        """Turn each candidate's distance from the client into a score."""
        location = Location(*map(request.property_of, (self.region_key, self.zone_key, self.rack_key)))
        if not location:
            return np.full(len(brokers), self.unknown)
        topology = _TopologyKey(view.topology)

        def closeness(broker: Broker) -> float:
            """Score one broker: 1.0 at the client's location, 0.0 at the greatest distance."""
            distance = view.topology.distance(location, broker.location)
            return self.unknown if distance is None else 1.0 - distance / (_find_greatest(topology) or 1.0)

        # Once per roster and location, since clients come from few locations, and distances are slow to compute.
        scores = brokers.column((self, location, topology), closeness).astype(np.float64)
        return np.maximum(scores, 0.0)


@dataclass(frozen=True, eq=False)
class _TopologyKey:
    """A cache key for a topology, which is not hashable. It equals only the identical object."""

    topology: Topology

    def __eq__(self, other: object) -> bool:
        return isinstance(other, _TopologyKey) and other.topology is self.topology

    def __hash__(self) -> int:
        return id(self.topology)


@lru_cache(maxsize=64)
def _find_greatest(key: _TopologyKey) -> float:
    topology = key.topology
    places = sorted({place for edge in topology.edges for place in (edge.a, edge.b)})
    # Links are between places of one level that they do not name, so any level measures them.
    linked = [topology.distance(Location(region=a), Location(region=b)) for a, b in combinations(places, 2)]
    return max([0.0, *topology.distance_ms.values(), *(distance for distance in linked if distance is not None)])


@dataclass(frozen=True)
class Headroom:
    """Score brokers by 1 - usage.

    Match -> Result -> Reason:
        * usage is reported -> 1.0 when idle down to 0.0 when full or overfull
        * no report -> `unreported`. The default prefers idle brokers to unknown ones and unknown ones to busy
          ones. With 0.0 an unknown broker looks full, as in Pulsar's load data before the first report

    Source: usage is Pulsar's weightedMaxEMA or its substitute (BrokerLoadData.update).
    """

    name: ClassVar[str] = "headroom"
    reads: ClassVar[frozenset[str]] = frozenset({"view.load"})

    #: score of a broker without a load report
    unreported: Annotated[float, Ge(0), Le(1)] = 0.5

    def score(self, request: LookupRequest, brokers: Candidates, view: ClusterView) -> FloatArray:
        """Turn every candidate's usage into a score."""
        usage = view.load.usage[brokers.index]
        # Usage may exceed 1.0, since capacities are configured, not measured. NaN passes through both bounds.
        room = 1.0 - np.minimum(np.maximum(usage, 0.0), 1.0)
        return np.where(np.isnan(usage), self.unreported, room)


@dataclass(frozen=True)
class FewestBundles:
    """Score brokers by 1 - owned bundles / the greatest number that a candidate owns.

    Ownership is current even if load reports are late, so a broker that has just joined is not flooded.

    Match -> Result -> Reason:
        * no candidate owns a bundle -> 1.0 for all
        * otherwise -> 1.0 for a broker without bundles down to 0.0 for the broker with the most

    Source: least-connections balancing, with bundles for connections.
    """

    name: ClassVar[str] = "fewest-bundles"
    reads: ClassVar[frozenset[str]] = frozenset({"view.ownership"})

    def score(self, request: LookupRequest, brokers: Candidates, view: ClusterView) -> FloatArray:
        """Compare every candidate's bundles with the most."""
        counts = view.ownership.bundles()[brokers.index]
        # At least 1: if no candidate owns a bundle all are to score 1.0.
        scores: FloatArray = 1.0 - counts / max(1, int(counts.max()))
        return scores
