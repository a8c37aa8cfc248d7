"""The worlds in which the conformance kit calls a policy, small clusters, each with a request, of edge cases.

Nothing is checked here. A world can be rewritten with labels for the properties that a policy reads, or with one change
in a field that a policy does not declare in `reads`.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from typing import Any, Unpack

import numpy as np

from lookup.engine.policy import Policy
from lookup.model.broker import Broker, Roster
from lookup.model.bundles import IsolationPolicy, NamespacePolicies
from lookup.model.load import BundleLoad, Load, Traffic, topic_traffic
from lookup.model.load_data import NamespaceBundleStats
from lookup.model.request import LookupRequest
from lookup.model.view import VIEW_READS, ClusterView
from lookup.testing.clusters import Figures, OwnedBundles, broker, cluster, engine_request, request, three_racks

__all__ = ["WORLDS", "World", "changed_elsewhere", "labelled_for"]


@dataclass(frozen=True, eq=False)
class World:
    """One decision, which is a request in a cluster."""

    name: str
    view: ClusterView
    request: LookupRequest


_BUSY: Figures = {
    "throughput": {"a1:8080": 80.0, "a2:8080": 20.0, "b1:8080": 50.0, "b2:8080": 5.0, "c1:8080": 50.0},
    "usage": {"a1:8080": 0.8, "a2:8080": 0.2, "b1:8080": 0.5, "b2:8080": 0.05, "c1:8080": 0.5},
    "topics": {"a1:8080": 40, "a2:8080": 3, "b1:8080": 12, "c1:8080": 60_000},
    "owned": {
        "public/default/0x00000000_0x40000000": "a1:8080",
        "public/default/0x40000000_0x80000000": "a1:8080",
        "public/other/0x00000000_0x80000000": "a1:8080",
        "public/other/0x80000000_0xffffffff": "b1:8080",
        "billing/eu/0x00000000_0xffffffff": "c1:8080",
    },
    "bundle_loads": {
        "public/default/0x00000000_0x40000000": 50.0,
        "public/default/0x40000000_0x80000000": 20.0,
        "public/other/0x00000000_0x80000000": 10.0,
        "public/other/0x80000000_0xffffffff": 50.0,
    },
    "demand": {"rack": {"a": 150.0, "b": 40.0}, "zone": {"z1": 190.0}},
    "origins": {
        "rack": {
            "public/default/0x00000000_0x40000000": {"b": 40.0, "q": 5.0},
            "public/other/0x80000000_0xffffffff": {"a": 50.0},
        }
    },
    # Bundles beyond every limit of Pulsar's, a bundle just within, and one whose namespace cannot be counted.
    "traffic": Traffic(
        stats={
            "public/default/0x00000000_0x40000000": NamespaceBundleStats(topics=1001, msg_rate_in=10.0),
            "public/default/0x40000000_0x80000000": NamespaceBundleStats(topics=2, msg_rate_in=2e4, msg_rate_out=2e4),
            "public/other/0x00000000_0x80000000": NamespaceBundleStats(topics=1000, producer_count=1001),
            "public/other/0x80000000_0xffffffff": NamespaceBundleStats(topics=1, msg_throughput_out=1e9),
            "billing/eu/0x00000000_0xffffffff": NamespaceBundleStats(topics=3, msg_throughput_in=2e8),
        },
        topics={
            "public/default/0x00000000_0x40000000": topic_traffic([(5, 1.0, 1.0), (900, 9.0, 9.0), (7, 0.0, 0.0)]),
            "public/default/0x40000000_0x80000000": topic_traffic([(0x50000000, 2e4, 0.0), (0x60000000, 2e4, 0.0)]),
        },
        bundle_counts={"public/default": 4, "public/other": 2},
    ),
    "now_us": 3_600_000_000,
}
_POLICIES = NamespacePolicies(
    isolation={"billing/eu": (IsolationPolicy(("a.*",), ("b.*",), 3),), "other/ns": (IsolationPolicy(("c1",)),)},
    anti_affinity_group={"billing/eu": "bills", "public/other": "bills"},
    failure_domains={"a1:8080": "d1", "a2:8080": "d1", "b1:8080": "d2"},
)
_OVERFULL = {f"{name}:8080": usage for name, usage in (("x1", 1.4), ("x2", 1.0), ("x3", 2.5))}


def _build_busy_view(**changes: Unpack[Figures]) -> ClusterView:
    figures: Figures = {**_BUSY, **changes}
    return three_racks(2, **figures)


#: The default worlds of the kit.
WORLDS: tuple[World, ...] = (
    World("a client of a rack", _build_busy_view(), request(properties={"rack": "b"}, client="10.0.0.1")),
    World("a rack nobody is in", _build_busy_view(), request(properties={"rack": "q", "zone": "z1"})),
    World("a client without properties", _build_busy_view(), request(client="10.0.0.2")),
    World("a request of the engine", _build_busy_view(), engine_request()),
    World("no load reports", three_racks(1), request(properties={"rack": "a"})),
    World(
        "some brokers away",
        _build_busy_view(registered=("a2:8080", "b1:8080", "c2:8080")),
        request(properties={"rack": "a"}, client="10.0.0.3"),
    ),
    World("one broker", cluster("only:8080"), request()),
    World("nothing to tell brokers apart", cluster("x1:8080", "x2:8080", "x3:8080"), request(properties={"rack": "a"})),
    World("everybody overfull", cluster(*_OVERFULL, usage=_OVERFULL, throughput=_OVERFULL), request()),
    World(
        "capacities that differ",
        cluster(
            broker("k1:8080", capacity=10.0, rack="a"),
            broker("k2:8080", capacity=1000.0, rack="b"),
            broker("k3:8080", rack="a"),
            throughput={"k1:8080": 1.0, "k2:8080": 900.0},
            demand={"rack": {"a": 0.0}},
        ),
        request("non-persistent://public/default/orders", properties={"rack": "a"}),
    ),
    World(
        "isolation and anti-affinity",
        _build_busy_view(namespaces=_POLICIES),
        request("persistent://billing/eu/invoices", properties={"rack": "c"}),
    ),
)


def labelled_for(policy: Policy, world: World) -> World:
    """Add labels to brokers and request for every property that the policy reads and the world lacks."""
    keys = [name.partition(".")[2] for name in policy.request_reads if name.startswith("properties.")]
    roster = Roster([_label_broker(plain, keys, number) for number, plain in enumerate(world.view.brokers)])
    lookup = world.request
    if lookup.topic is not None and lookup.properties:
        lookup = replace(lookup, properties=dict.fromkeys(keys, "a") | dict(lookup.properties))
    return World(world.name, replace(world.view, brokers=roster), lookup)


def changed_elsewhere(reads: frozenset[str], world: World) -> Iterator[tuple[str, World]]:
    """Yield the name of each field that is not among `reads`, and the world with that field changed."""
    lookup = world.request
    declared = {key: value for key, value in lookup.properties.items() if f"properties.{key}" in reads}
    others: dict[str, Any] = {
        "domain": "non-persistent" if lookup.domain != "non-persistent" else None,
        "tenant": "another",
        "namespace": "another/one",
        "bundle": "another/one/0x00000000_0x80000000",
        "topic": "persistent://another/one/topic",
        "client": "192.168.7.7",
        "listener": "another",
        "properties": {key: f"not {value}" for key, value in lookup.properties.items()} | {"more": "x"} | declared,
    }
    for name, value in others.items():
        if name not in reads:
            yield f"request.{name}", World(world.name, world.view, replace(lookup, **{name: value}))
    for name, values in _vary_figures(world.view).items():
        if name not in reads:
            yield name, World(world.name, replace(world.view, **values), lookup)


def _label_broker(plain: Broker, keys: Iterable[str], number: int) -> Broker:
    # Every third broker has no labels, as in some real clusters.
    labels = {plain.property_prefix + key: "ab"[number % 3] for key in keys if number % 3 < 2}
    return replace(
        plain, lookup_data=replace(plain.lookup_data, properties=labels | dict(plain.lookup_data.properties))
    )


def _vary_figures(view: ClusterView) -> dict[str, dict[str, Any]]:
    count = len(view.brokers)
    turned = np.linspace(0.9, 0.1, count)
    bundle = "another/one/0x00000000_0x80000000"
    figures: dict[str, dict[str, Any]] = {
        "view.load": {
            "load": Load(
                usage=turned,
                throughput=turned * 100.0,
                topics=np.arange(count, dtype=np.int64) * 30_000,
                top_bundles=tuple((BundleLoad(bundle, 7.0),) for _ in range(count)),
                demand={"rack": {"c": 500.0}, "zone": {"z9": 500.0}},
                origins={"rack": {bundle: {"c": 500.0}}},
                source="reported",
                traffic=Traffic({bundle: NamespaceBundleStats(topics=5000)}, {}, {"another/one": 1}),
                max_usage=turned,
                smoothed_throughput=turned * 100.0,
                updated_us=np.full(count, view.now_us - 3_600_000_000),
                store_order=range(count - 1, -1, -1),
                resources=np.outer(turned, np.arange(1.0, 6.0)) * 20.0,
                rates=turned * 1_000.0,
                long_term_rates=turned * 1_000.0,
                long_term_bundle_rates={bundle: 70.0},
            )
        },
        "view.ownership": {
            "ownership": OwnedBundles(view.brokers, {f"{bundle}{suffix}": count - 1 for suffix in range(5)}),
            "unloaded": {bundle: view.now_us},
        },
        "view.now": {"now_us": view.now_us + 86_400_000_000},
        # Memory under `*` is every part's.
        "view.memory": {"memory": {"*": {"counter": 7, "something": {"else": 1}}}},
        "view.salt": {"salt": f"not {view.salt}"},
    }
    return {name: figures[name] for name in sorted(set(VIEW_READS.values()))}
