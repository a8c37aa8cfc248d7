"""Small clusters to test policies with, which have brokers with labels, a view of them, candidates and requests.

All data is given by name (`usage={"b1:8080": 0.9}`), and columns and numbers are derived here. No policy runs. Pass a
view of these brokers to a part, or its brokers and figures to an engine.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal, TypedDict, Unpack

import numpy as np
from numpy.typing import NDArray

from lookup.engine.weighing import ResourceWeights
from lookup.model.broker import Broker, BrokerLookupData, Candidates, Location, Roster
from lookup.model.bundles import NamespacePolicies, bundle_of
from lookup.model.load import NO_TRAFFIC, RESOURCES, BundleLoad, Load, Traffic
from lookup.model.names import TopicName, is_system_namespace
from lookup.model.request import LookupOptions, LookupRequest, request_of
from lookup.model.topology import Topology
from lookup.model.view import ClusterView

__all__ = ["Figures", "OwnedBundles", "broker", "candidates", "cluster", "engine_request", "request", "three_racks"]

FloatArray = NDArray[np.float64]
CountArray = NDArray[np.int64]


class Figures(TypedDict, total=False):
    """Figures of a cluster apart from its brokers, all with defaults."""

    #: ids of the registered brokers, by default all
    registered: Collection[str]
    #: load / capacity by broker, by default from throughput and capacity, else no report
    usage: Mapping[str, float]
    #: weight per second by broker, by default the sum of its bundles' loads, if any load is given, else no report
    throughput: Mapping[str, float]
    #: topics by broker, by default 0
    topics: Mapping[str, int]
    #: owner's id by bundle
    owned: Mapping[str, str]
    #: weight per second by bundle
    bundle_loads: Mapping[str, float]
    #: weight per second by client property, then value
    demand: Mapping[str, Mapping[str, float]]
    #: µs by bundle a shedder has unloaded
    unloaded: Mapping[str, int]
    memory: Mapping[str, Any]
    now_us: int
    source: Literal["simulated", "reported"]
    namespaces: NamespacePolicies
    topology: Topology
    traffic: Traffic
    #: percentages by broker, then resource (`lookup.model.RESOURCES`), absent ones 0, by default unknown
    resources: Mapping[str, Mapping[str, float]]
    #: usage by broker as it was measured, if `usage` is smoothed, by default `usage`
    max_usage: Mapping[str, float]
    #: messages per second by broker, by default unknown
    rates: Mapping[str, float]
    #: messages per second by bundle, by default 0
    bundle_rates: Mapping[str, float]
    #: long-term messages per second by broker, by default unknown, and throughput replaces it
    long_term_rates: Mapping[str, float]
    #: messages per second in the long run by bundle
    long_term_bundle_rates: Mapping[str, float]
    #: weight per second by client property, bundle and value
    origins: Mapping[str, Mapping[str, Mapping[str, float]]]
    #: by default that of production
    salt: str


@dataclass(frozen=True)
class OwnedBundles:
    """Explicit ownership, an `OwnershipView` that does not change."""

    brokers: Roster
    #: number of the owner by bundle
    owners: Mapping[str, int] = field(default_factory=dict)

    def owner(self, bundle: str) -> int | None:
        """Look up the number of the bundle's owner, None if it has none."""
        return self.owners.get(bundle)

    def bundles(self) -> CountArray:
        """Count the bundles that each broker owns, shape (n_brokers,)."""
        return self._count_bundles(list(self.owners.values()))

    def bundles_in(self, namespace: str) -> CountArray:
        """Count the bundles of one namespace that each broker owns, shape (n_brokers,)."""
        return self._count_bundles([owner for bundle, owner in self.owners.items() if _namespace(bundle) == namespace])

    def _count_bundles(self, owners: Sequence[int]) -> CountArray:
        counts = np.bincount(np.array(owners, dtype=np.int64), minlength=len(self.brokers))
        return counts.astype(np.int64)


def broker(broker_id: str, *, capacity: float | None = None, **labels: str) -> Broker:
    """Build a broker that publishes labels as lookup properties.

    `broker("b1:8080", rack="a")` has `lookup.rack`. Labels called region, zone and rack are its location too.
    """
    properties = {f"lookup.{key}": value for key, value in labels.items()}
    location = Location(labels.get("region"), labels.get("zone"), labels.get("rack"))
    return Broker(broker_id, BrokerLookupData(properties=properties), capacity, location)


def cluster(*brokers: Broker | str, **figures: Unpack[Figures]) -> ClusterView:
    """Build a view of some brokers. An id is a broker without labels, and without brokers the view is empty.

    Example:
        >>> view = cluster("b1:8080", "b2:8080", usage={"b1:8080": 0.25})
        >>> view.load.usage.tolist()
        [0.25, nan]

    Raises:
        TypeError: for a figure that does not exist, which would otherwise be ignored silently.
    """
    unknown = sorted(figures.keys() - Figures.__annotations__.keys())
    if unknown:
        raise TypeError(
            f"cluster() got an unexpected keyword argument {unknown[0]!r}; known: {sorted(Figures.__annotations__)}"
        )
    roster = Roster([Broker(entry) if isinstance(entry, str) else entry for entry in brokers])
    owned = OwnedBundles(roster, _numbers(roster, figures.get("owned", {})))
    capacity = _freeze_column([np.nan if entry.capacity is None else entry.capacity for entry in roster])
    topics, registered = figures.get("topics", {}), figures.get("registered", roster.ids)
    throughput = _sum_throughput(owned, figures)
    known = Load(
        usage=_build_column(roster, figures["usage"]) if "usage" in figures else _freeze_column(throughput / capacity),
        throughput=throughput,
        topics=_freeze_column([topics.get(broker_id, 0) for broker_id in roster.ids], np.int64),
        top_bundles=_top_bundles(owned, figures),
        demand=figures.get("demand", {}),
        source=figures.get("source", "simulated"),
        traffic=figures.get("traffic", NO_TRAFFIC),
        max_usage=_build_column(roster, figures["max_usage"]) if "max_usage" in figures else None,
        resources=_build_resources(roster, figures["resources"]) if "resources" in figures else None,
        rates=_build_column(roster, figures["rates"]) if "rates" in figures else None,
        long_term_rates=_build_column(roster, figures["long_term_rates"]) if "long_term_rates" in figures else None,
        long_term_bundle_rates=figures.get("long_term_bundle_rates", {}),
        origins=figures.get("origins", {}),
    )
    # As the engine shows it to a policy with the usual weights.
    load = ResourceWeights().weigh(known)
    return ClusterView(
        cluster="test",
        brokers=roster,
        registered=_freeze_column([broker_id in registered for broker_id in roster.ids], np.bool_),
        capacity=capacity,
        epoch_us=0,
        now_us=figures.get("now_us", 0),
        load=load,
        ownership=owned,
        unloaded=figures.get("unloaded", {}),
        memory=figures.get("memory", {}),
        namespaces=figures.get("namespaces", NamespacePolicies()),
        topology=figures.get("topology", Topology()),
        salt=figures.get("salt", ""),
    )


def three_racks(per_rack: int = 2, **figures: Unpack[Figures]) -> ClusterView:
    """Build racks a, b and c of one zone, with brokers `a1:8080`, `a2:8080`, `b1:8080`, ... of capacity 100."""
    racks = [(rack, number) for rack in "abc" for number in range(1, per_rack + 1)]
    brokers = [broker(f"{rack}{number}:8080", capacity=100.0, zone="z1", rack=rack) for rack, number in racks]
    return cluster(*brokers, **figures)


def candidates(view: ClusterView, *broker_ids: str) -> Candidates:
    """Select the named brokers in the order given, or all registered ones.

    Raises:
        KeyError: for a broker that the view does not have.
    """
    if not broker_ids:
        return Candidates(view.brokers, np.flatnonzero(view.registered))
    numbers = _numbers(view.brokers, {broker_id: broker_id for broker_id in broker_ids})
    return Candidates(view.brokers, np.array(list(numbers.values()), dtype=np.intp))


def request(
    topic: str = "persistent://public/default/orders",
    *,
    properties: Mapping[str, str] | None = None,
    client: str | None = None,
    namespaces: NamespacePolicies | None = None,
) -> LookupRequest:
    """Build a client's lookup. The bundle is the topic's in its namespace (by default one of 4 bundles)."""
    name = TopicName.parse(topic)
    boundaries = (namespaces or NamespacePolicies()).boundaries_of(str(name.namespace))
    bundle = f"{name.namespace}/{bundle_of(topic, boundaries)}"
    return request_of(topic, bundle, LookupOptions(properties=dict(properties or {})), client)


def engine_request(bundle: str = "public/default/0x00000000_0x40000000") -> LookupRequest:
    """Build a request of the engine itself, without topic, domain, client, listener or properties."""
    return request_of(None, bundle, LookupOptions())


def _namespace(bundle: str) -> str:
    return bundle.rpartition("/")[0]


def _numbers(roster: Roster, owners: Mapping[str, str]) -> dict[str, int]:
    numbers = {bundle: roster.number(owner) for bundle, owner in owners.items()}
    unknown = sorted({owners[bundle] for bundle, number in numbers.items() if number is None})
    if unknown:
        raise KeyError(f"no broker {unknown[0]!r} in the cluster; brokers: {[entry.id for entry in roster]}")
    return {bundle: number for bundle, number in numbers.items() if number is not None}


def _sum_throughput(owned: OwnedBundles, figures: Figures) -> FloatArray:
    if "throughput" in figures:
        return _build_column(owned.brokers, figures["throughput"])
    if "bundle_loads" not in figures:
        return _build_column(owned.brokers, {})
    sums = [0.0] * len(owned.brokers)
    for bundle, load in figures["bundle_loads"].items():
        owner = owned.owner(bundle)
        if owner is not None:
            sums[owner] += load
    return _freeze_column(sums)


def _top_bundles(owned: OwnedBundles, figures: Figures) -> tuple[tuple[BundleLoad, ...], ...]:
    loads, rates = figures.get("bundle_loads", {}), figures.get("bundle_rates", {})
    top: list[list[BundleLoad]] = [[] for _ in owned.brokers]
    for load, bundle in sorted((load, bundle) for bundle, load in loads.items()):
        owner = owned.owner(bundle)
        if owner is not None and not is_system_namespace(_namespace(bundle)):
            top[owner].append(BundleLoad(bundle, load, rates.get(bundle, 0.0)))
    return tuple(map(tuple, top))


def _build_column(roster: Roster, figures: Mapping[str, float]) -> FloatArray:
    return _freeze_column([figures.get(entry.id, np.nan) for entry in roster])


def _build_resources(roster: Roster, figures: Mapping[str, Mapping[str, float]]) -> FloatArray:
    unknown = dict.fromkeys(RESOURCES, np.nan)
    rows = [figures.get(entry.id, unknown) for entry in roster]
    return _freeze_column(
        np.array([[row.get(name, 0.0) for name in RESOURCES] for row in rows]).reshape(-1, len(RESOURCES))
    )


def _freeze_column(values: Sequence[float] | FloatArray, kind: type[Any] = np.float64) -> NDArray[Any]:
    column = np.array(values, dtype=kind)
    column.setflags(write=False)
    return column
