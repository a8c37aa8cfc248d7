"""The scorer `topology-distance`: brokers near the client."""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache
from itertools import combinations
from typing import Annotated, ClassVar

import numpy as np
from numpy.typing import NDArray

from lookup.hooks import Ge, Le
from lookup.model import Broker, Candidates, ClusterView, Location, LookupRequest, Topology

__all__ = ["TopologyDistance"]

FloatArray = NDArray[np.float64]


@dataclass(frozen=True)
class TopologyDistance:
    """Score brokers by 1 - distance / the greatest distance the topology can give.

    The client stands where its lookup properties say. Dividing by a constant of the topology, not by the farthest
    candidate, keeps a score's meaning when candidates come and go.

    Match -> Result -> Reason:
        * client and broker share a level to compare -> 1.0 at distance 0 down to 0.0 at the greatest
        * the broker's place cannot be compared with the client's -> `unknown`
        * the client sent no place -> `unknown` for every broker

    Source: topology; rack awareness as in Kafka's KIP-392.
    """

    name: ClassVar[str] = "topology-distance"

    #: client properties that hold the levels of its place
    region_key: str = "region"
    zone_key: str = "zone"
    rack_key: str = "rack"
    #: score where the distance is not known
    unknown: Annotated[float, Ge(0), Le(1)] = 0.5

    @property
    def reads(self) -> frozenset[str]:
        """Return the client properties that make its place."""
        return frozenset(f"properties.{key}" for key in (self.region_key, self.zone_key, self.rack_key))

    def score(self, request: LookupRequest, brokers: Candidates, view: ClusterView) -> FloatArray:
        """Turn each candidate's distance from the client into a score."""
        place = Location(*map(request.property_of, (self.region_key, self.zone_key, self.rack_key)))
        if not place:
            return np.full(len(brokers), self.unknown)
        topology = _Same(view.topology)

        def closeness(broker: Broker) -> float:
            """Score one broker: 1.0 at the client's place, 0.0 at the greatest distance."""
            distance = view.topology.distance(place, broker.location)
            return self.unknown if distance is None else 1.0 - distance / (_greatest(topology) or 1.0)

        scores = brokers.column((self, place, topology), closeness).astype(np.float64)
        return np.maximum(scores, 0.0)


@dataclass(frozen=True, eq=False)
class _Same:
    """A key that equals only a key of the very same topology, which has no hash of its own."""

    topology: Topology

    def __eq__(self, other: object) -> bool:
        return isinstance(other, _Same) and other.topology is self.topology

    def __hash__(self) -> int:
        return id(self.topology)


@lru_cache(maxsize=64)
def _greatest(key: _Same) -> float:
    topology = key.topology
    places = sorted({place for edge in topology.edges for place in (edge.a, edge.b)})
    # Links lie between places of one level and do not know which: any level measures them.
    linked = [topology.distance(Location(region=a), Location(region=b)) for a, b in combinations(places, 2)]
    return max([0.0, *topology.distance_ms.values(), *(distance for distance in linked if distance is not None)])
