"""One cycle of a real cluster's shedder moves the bundles that our load manager moves on the same figures."""

from __future__ import annotations

import itertools
import re
import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field, replace
from pathlib import Path
from queue import Empty, Queue
from typing import Any

import numpy as np
import pytest

from lookup.collect.collector import Endpoints, reading
from lookup.collect.observing import BrokerReport, Record, TopBundles
from lookup.engine.manager import LoadManager
from lookup.engine.policy import Policy
from lookup.logs.readers.system_topics import bundle_rows
from lookup.model import Broker, BundleLoad, Load, Roster, Traffic
from lookup.model.bundles import bundle_of, bundle_ranges, equal_boundaries
from lookup.model.load import ascending
from lookup.model.load_data import (
    BrokerLoadData,
    NamespaceBundleStats,
    ResourceUsage,
    broker_load_from_json,
    bundle_stats_from_json,
)
from lookup.simulation.loop import MIB, START_US, ClosedLoop
from lookup.simulation.scenario import Scenario, checked_scenario
from tests.acceptance.pulsar.clients import PythonClients
from tests.acceptance.pulsar.cluster import CLUSTER, Cluster
from tests.acceptance.pulsar.jvm import Installation
from tests.parity.loops import policy_of
from tests.processes import awaited

pytestmark = pytest.mark.pulsar

_LOADBALANCE = "org.apache.pulsar.broker.loadbalance."
#: MiB of direct memory by rack. Each broker takes 16 to 20 of it, so A is the fullest whatever else the machine does.
_DIRECT_MEMORY = {"A": 128, "B": 700, "C": 400}
_WEIGHT = 20.0
#: Direct memory alone counts: the CPU is the whole machine's, which all three brokers report alike.
_CONF = {
    "loadBalancerSheddingIntervalMinutes": "1",
    "loadBalancerCPUResourceWeight": "0",
    "loadBalancerBandwidthInResourceWeight": "0",
    "loadBalancerBandwidthOutResourceWeight": "0",
    "loadBalancerDirectMemoryResourceWeight": str(_WEIGHT),
}
_MODULAR = _CONF | {
    "loadManagerClassName": f"{_LOADBALANCE}impl.ModularLoadManagerImpl",
    "loadBalancerLoadSheddingStrategy": f"{_LOADBALANCE}impl.ThresholdShedder",
    "loadBalancerBrokerThresholdShedderPercentage": "0",
    "loadBalancerBundleUnloadMinThroughputThreshold": "0",
    "loadBalancerBrokerOverloadedThresholdPercentage": "100000",
}
_EXTENSIBLE = _CONF | {
    "loadManagerClassName": f"{_LOADBALANCE}extensions.ExtensibleLoadManagerImpl",
    "loadBalancerLoadSheddingStrategy": f"{_LOADBALANCE}extensions.scheduler.TransferShedder",
    "loadBalancerSheddingConditionHitCountThreshold": "0",
    "loadBalancerDebugModeEnabled": "true",
}
_SENDS_PER_S = 2.0


@contextmanager
def _cluster(installed: Installation, folder: Path, conf: Mapping[str, str]) -> Iterator[Cluster]:
    """Start three brokers of unlike size that shed nothing yet."""
    cluster = Cluster(installed, folder, dict.fromkeys(_DIRECT_MEMORY, conf))
    for rack, size in _DIRECT_MEMORY.items():
        options = (*installed.options, f"-XX:MaxDirectMemorySize={size}m")
        cluster.installed[rack] = replace(installed, options=options)
    try:
        cluster.start()
        yield cluster
    finally:
        cluster.stop()


@dataclass
class _Stage:
    """A namespace with a topic in each bundle, of which A owns all bundles but the last, which is C's."""

    cluster: Cluster
    namespace: str
    #: ranges in order
    bundles: list[str]

    def owners(self) -> dict[str, str]:
        """Return the racks of the owners by range, as brokers say themselves."""
        return {bundle: broker.rack for bundle, broker in self.cluster.owned(self.namespace).items()}

    @property
    def wanted(self) -> dict[str, str]:
        """Return the racks of the first owners by range."""
        return dict.fromkeys(self.bundles, "A") | {self.bundles[-1]: "C"}

    @property
    def release(self) -> str:
        """Return the release of the brokers, as a policy names it."""
        return ".".join(map(str, self.cluster.release))

    def begin_shedding(self) -> None:
        """Let the next minute have a cycle."""
        self.cluster.admin("POST", "brokers/configuration/loadBalancerSheddingEnabled/true")


@contextmanager
def _staged(cluster: Cluster, clients: PythonClients, sizes: list[int]) -> Iterator[_Stage]:
    """Give bundles their owners, and send messages of some size to each until the block ends."""
    boundaries = equal_boundaries(len(sizes))
    ranges = [*bundle_ranges(boundaries)]
    names = (f"public/cycle-{number}" for number in itertools.count())
    # Brokers look this topic up themselves: it is in the bundle that stays.
    namespace = next(
        name for name in names if bundle_of(f"persistent://{name}/__change_events", boundaries) == ranges[-1]
    )
    cluster.create_namespace(namespace, len(sizes))
    numbered = [f"persistent://{namespace}/topic-{number}" for number in range(100 * len(sizes))]
    topics = {bundle_of(topic, boundaries): topic for topic in numbered}
    client, over = clients.open(cluster.service_url), threading.Event()
    producers = [client.create_producer(topics[bundle]) for bundle in ranges]

    def send() -> None:
        while not over.wait(1.0 / _SENDS_PER_S):
            for producer, size in zip(producers, sizes, strict=True):
                producer.send_async(b"x" * size, lambda result, message: None)

    thread = threading.Thread(target=send, daemon=True, name="cycle-traffic")
    thread.start()
    stage = _Stage(cluster, namespace, [str(bundle) for bundle in ranges])
    wanted = stage.wanted
    try:
        for bundle, owner in stage.owners().items():
            if owner != wanted[bundle]:
                cluster.unload(namespace, bundle, cluster.brokers[wanted[bundle]])
        awaited(stage.owners, "bundles on A and C", enough=lambda owners: owners == wanted)
        yield stage
    finally:
        over.set()
        thread.join()
        client.close()


def test_threshold_shedder_sends_all_bundles_of_a_cycle_where_the_simulation_does(
    installed: Installation, python: PythonClients, tmp_path: Path
) -> None:
    """All bundles of the fullest broker go to the idlest, as each is placed by the figures at the cycle's start."""
    size = 100_000
    with _cluster(installed, tmp_path / "cluster", _MODULAR) as cluster, _staged(cluster, python, [size] * 14) as stage:
        full = cluster.brokers["A"].id
        reports = awaited(
            cluster.registry,
            "reports of all traffic",
            enough=lambda said: said[full]["msgThroughputIn"] > 0.9 * 13 * size * _SENDS_PER_S,
        )
        stage.begin_shedding()
        after = awaited(stage.owners, "a cycle", enough=lambda owners: len(owners) == 14 and "A" not in owners.values())

    simulated = ClosedLoop(_scenario(stage, reports), policy_of(_MODULAR, stage.release, tmp_path))
    simulated.report(0)
    simulated.change()
    racks = {broker.id: rack for rack, broker in cluster.brokers.items()}
    ids = simulated.manager.roster.ids
    ours = {bundle.rpartition("/")[2]: racks[ids[number]] for bundle, number in simulated.manager.ownership}
    assert after == ours == dict.fromkeys(stage.bundles, "B") | {stage.bundles[-1]: "C"}


def _scenario(stage: _Stage, reports: Mapping[str, Mapping[str, Any]]) -> Scenario:
    """Return what brokers reported as a scenario of one minute; usage without traffic is other processes'."""
    brokers = []
    for broker in stage.cluster.brokers.values():
        report = reports[broker.id]
        usage = ResourceUsage(**report["directMemory"]).percent_usage / 100.0 * _WEIGHT
        traffic = report["msgThroughputIn"] + report["msgThroughputOut"]
        figures = {"capacity": traffic / usage / MIB} if traffic else {"capacity": 1.0, "busy": usage}
        brokers.append({"id": broker.id, **figures})
    count = len(stage.bundles)
    load = sum(report["msgThroughputIn"] + report["msgThroughputOut"] for report in reports.values()) / MIB
    a, _, c = (broker["id"] for broker in brokers)
    return checked_scenario(
        {
            "about": "A real cluster before its first cycle.",
            "minutes": 1,
            "window": 1,
            "owners": {a: count - 1, c: 1},
            "brokers": brokers,
            "namespaces": [{"name": stage.namespace, "bundles": count, "topics": count, "load": load}],
            "policies": [{"name": "ours", "selector": "random"}],
        },
        "the cluster",
    )


@dataclass
class _Figures:
    """What brokers of the extensible manager have reported last."""

    records: Queue[Record]
    brokers: dict[str, BrokerLoadData] = field(default_factory=dict)
    #: those of one broker's report, by broker and bundle
    bundles: dict[str, dict[str, NamespaceBundleStats]] = field(default_factory=dict)

    def take(self) -> dict[str, BrokerLoadData]:
        """Take over what has come."""
        with suppress(Empty):
            while True:
                record = self.records.get_nowait()
                if isinstance(record, BrokerReport) and record.text:
                    self.brokers[record.broker] = broker_load_from_json(record.text)
                elif isinstance(record, TopBundles) and record.text and record.broker is not None:
                    rows = bundle_rows(record.text, record.ts_us)
                    self.bundles[record.broker] = {row["bundle"]: bundle_stats_from_json(row["stats"]) for row in rows}
        return self.brokers

    def manager(self, policy: Policy) -> LoadManager:
        """Return a manager of ours that knows the same."""
        roster = Roster([Broker(name) for name in sorted(self.brokers)])
        manager = LoadManager(policy, CLUSTER, roster)
        manager.begin_tick(START_US)
        manager.set_registry(roster, np.ones(len(roster), dtype=np.bool_))
        manager.restore({bundle: name for name, bundles in self.bundles.items() for bundle in bundles})
        reports = [self.brokers[name] for name in roster.ids]
        listed = [self.bundles.get(name, {}) for name in roster.ids]
        manager.set_load(
            Load(
                usage=np.array([report.weighted_max_ema for report in reports]),
                max_usage=np.array([report.max_resource_usage for report in reports]),
                throughput=np.array([report.msg_throughput for report in reports]),
                topics=np.array([report.topics for report in reports]),
                top_bundles=[
                    ascending(
                        BundleLoad(name, stats.msg_throughput_in + stats.msg_throughput_out)
                        for name, stats in one.items()
                    )
                    for one in listed
                ],
                traffic=Traffic({name: stats for one in listed for name, stats in one.items()}),
                bundle_unit="bytes/s",
            )
        )
        return manager


def test_transfer_shedder_moves_the_bundles_that_ours_does_on_what_brokers_reported(
    installed: Installation, python: PythonClients, tmp_path: Path
) -> None:
    """Some bundles of the fullest broker go to the idlest, the least loaded first."""
    # No two bundles of A are alike: among equals the order is that of a hash map.
    sizes = [*range(100_000, 800_000, 100_000), 100_000]
    with (
        _cluster(installed, tmp_path / "cluster", _EXTENSIBLE) as cluster,
        _staged(cluster, python, sizes) as stage,
        reading(Endpoints(CLUSTER, None, cluster.service_url), None, CLUSTER) as records,
    ):
        figures, full = _Figures(records), cluster.brokers["A"].id
        awaited(
            figures.take,
            "reports of all traffic",
            enough=lambda said: (
                len(said) == 3
                and said[full].msg_throughput_in > 0.9 * sum(sizes[:-1]) * _SENDS_PER_S
                and len(figures.bundles.get(full, ())) == len(sizes) - 1
            ),
        )
        stage.begin_shedding()

        def named() -> set[str]:
            """Return the ranges that the log says are moved; until there are any, take over what is reported."""
            logs = "".join(broker.log("clock").read_text(encoding="utf-8") for broker in cluster.running)
            found = re.findall(r"\[TransferShedder\] Unloading bundle: .*serviceUnit=[^,]*/(\w+),", logs)
            if not found:
                figures.take()
            return set(found)

        awaited(named, "a cycle")
        ours = figures.manager(policy_of(_EXTENSIBLE, stage.release, tmp_path))
        report = ours.shed()
        assert report is not None
        racks = {broker.id: rack for rack, broker in cluster.brokers.items()}
        moved = {unload.bundle.rpartition("/")[2]: racks[str(unload.destination)] for unload in report.accepted}
        wanted = stage.wanted | moved
        awaited(stage.owners, f"owners {wanted}", enough=lambda owners: owners == wanted)

        assert named() == moved.keys()
        assert set(moved.values()) == {"B"}
        assert 1 < len(moved) < len(sizes) - 1
