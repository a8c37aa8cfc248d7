"""One cycle of a real cluster's shedder moves the bundles that our load manager moves on the same figures."""

from __future__ import annotations

import itertools
import json
import re
import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import pytest

from lookup.collect.collector import Endpoints, reading
from lookup.collect.observing import BrokerReport, Record, TopBundles
from lookup.model.bundles import bundle_of, bundle_ranges, equal_boundaries
from lookup.model.load_data import ResourceUsage
from lookup.simulation.loop import MIB, ClosedLoop
from lookup.simulation.scenario import Scenario, checked_scenario
from tests.acceptance.pulsar.clients import PythonClients
from tests.acceptance.pulsar.cluster import CLUSTER, Cluster
from tests.acceptance.pulsar.jvm import Installation
from tests.parity.loops import policy_of
from tests.parity.parts import published_to
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
#: What the leader of either manager logs: range and destination.
_MOVED = re.compile(r"Shedder\] Unloading bundle: .*/(0x\w+)\b.* (?:to dest broker |destBroker=Optional\[)([\d.:]+)")


@dataclass
class _Stage:
    """Three brokers of unlike size, and a namespace with a topic in each bundle."""

    cluster: Cluster
    namespace: str
    #: racks of the owners at first, by range in order: A has all bundles but the last, which is C's
    before: dict[str, str]

    def owners(self) -> dict[str, str]:
        """Return the racks of the owners by range, as brokers say themselves."""
        return {bundle: broker.rack for bundle, broker in self.cluster.owned(self.namespace).items()}

    def settled(self) -> dict[str, str]:
        """Move what is not where it should be at first: a client that asks twice may be given another broker."""
        for bundle, owner in self.owners().items():
            if owner != self.before[bundle]:
                self.cluster.unload(self.namespace, bundle, self.cluster.brokers[self.before[bundle]])
        return self.owners()

    def moved(self) -> dict[str, str]:
        """Return the racks of the destinations that a cycle chose, by range, as the leader's log says."""
        logs = "".join(broker.log("clock").read_text(encoding="utf-8") for broker in self.cluster.running)
        return {bundle: self.rack(broker) for bundle, broker in _MOVED.findall(logs)}

    def rack(self, broker: str) -> str:
        """Return the rack of a broker's id."""
        return next(rack for rack, one in self.cluster.brokers.items() if one.id == broker)

    def begin_shedding(self) -> None:
        """Let the next minute have a cycle."""
        self.cluster.admin("POST", "brokers/configuration/loadBalancerSheddingEnabled/true")


@contextmanager
def _staged(
    installed: Installation, folder: Path, conf: Mapping[str, str], clients: PythonClients, sizes: list[int]
) -> Iterator[_Stage]:
    """Start brokers that shed nothing yet, and send messages of some size to each bundle until the block ends."""
    boundaries = equal_boundaries(len(sizes))
    ranges = bundle_ranges(boundaries)
    names = (f"public/cycle-{number}" for number in itertools.count())
    # Brokers look this topic up themselves: it is in the bundle that stays.
    namespace = next(n for n in names if bundle_of(f"persistent://{n}/__change_events", boundaries) == ranges[-1])
    numbered = [f"persistent://{namespace}/topic-{number}" for number in range(100 * len(sizes))]
    topics = {bundle_of(topic, boundaries): topic for topic in numbered}
    cluster, over = Cluster(installed, folder, dict.fromkeys(_DIRECT_MEMORY, conf)), threading.Event()
    for rack, size in _DIRECT_MEMORY.items():
        options = (*installed.options, f"-XX:MaxDirectMemorySize={size}m")
        cluster.installed[rack] = replace(installed, options=options)
    try:
        cluster.start()
        cluster.create_namespace(namespace, len(sizes))
        client = clients.open(cluster.service_url)
        producers = [client.create_producer(topics[bundle]) for bundle in ranges]
        stage = _Stage(cluster, namespace, {str(one): "C" if one == ranges[-1] else "A" for one in ranges})
        awaited(stage.settled, "bundles on A and C", enough=lambda owners: owners == stage.before)

        def send() -> None:
            while not over.wait(1.0 / _SENDS_PER_S):
                for producer, size in zip(producers, sizes, strict=True):
                    producer.send_async(b"x" * size, lambda result, message: None)

        thread = threading.Thread(target=send, daemon=True, name="cycle-traffic")
        thread.start()
        try:
            yield stage
        finally:
            over.set()
            thread.join()
            client.close()
    finally:
        cluster.stop()


def _has_all(reports: Mapping[str, Mapping[str, Any]], stage: _Stage, sizes: list[int]) -> bool:
    """Tell whether A reports all that is sent to its bundles, and all brokers report something."""
    wanted = 0.9 * sum(sizes[:-1]) * _SENDS_PER_S
    return len(reports) == len(_DIRECT_MEMORY) and reports[stage.cluster.brokers["A"].id]["msgThroughputIn"] > wanted


def test_threshold_shedder_sends_all_bundles_of_a_cycle_where_the_simulation_does(
    installed: Installation, python: PythonClients, tmp_path: Path
) -> None:
    """All bundles of the fullest broker go to the idlest, as each is placed by the figures at the cycle's start."""
    sizes = [100_000] * 14
    with _staged(installed, tmp_path / "cluster", _MODULAR, python, sizes) as stage:
        registry = stage.cluster.registry
        reports = awaited(registry, "reports of all traffic", enough=lambda said: _has_all(said, stage, sizes))
        stage.begin_shedding()
        # A client that asks twice may find another owner, so this is not where it compares.
        awaited(stage.owners, "a cycle", enough=lambda now: len(now) == 14 and "A" not in now.values())
        moved = stage.moved()

    loop = ClosedLoop(_scenario(stage, reports), policy_of(_MODULAR, "4.2", tmp_path))
    loop.report(0)
    loop.change()
    ids = loop.manager.roster.ids
    after = {bundle.rpartition("/")[2]: stage.rack(ids[number]) for bundle, number in loop.manager.ownership}
    ours = {bundle: rack for bundle, rack in after.items() if rack != stage.before[bundle]}
    assert moved == ours == {bundle: "B" for bundle, rack in stage.before.items() if rack == "A"}


def _scenario(stage: _Stage, reports: Mapping[str, Mapping[str, Any]]) -> Scenario:
    """Return what brokers reported as a scenario; usage of a broker without traffic is that of other processes."""
    brokers, count = dict[str, dict[str, float]](), len(stage.before)
    carried = {name: report["msgThroughputIn"] + report["msgThroughputOut"] for name, report in reports.items()}
    for name, traffic in carried.items():
        usage = ResourceUsage(**reports[name]["directMemory"]).percent_usage / 100.0 * _WEIGHT
        brokers[name] = {"capacity": traffic / usage / MIB} if traffic else {"capacity": 1.0, "busy": usage}
    load = sum(carried.values()) / MIB
    written = {
        "about": "A real cluster before its first cycle.",
        "minutes": 1,
        "window": 1,
        "owners": {stage.cluster.brokers["A"].id: count - 1, stage.cluster.brokers["C"].id: 1},
        "brokers": [{"id": name, **figures} for name, figures in brokers.items()],
        "namespaces": [{"name": stage.namespace, "bundles": count, "topics": count, "load": load}],
        "policies": [{"name": "ours", "selector": "random"}],
    }
    return checked_scenario(written, "the cluster")


def test_transfer_shedder_moves_the_bundles_that_ours_does_on_what_brokers_reported(
    installed: Installation, python: PythonClients, tmp_path: Path
) -> None:
    """Some bundles of the fullest broker go to the idlest, the least loaded first."""
    # No two bundles of A are alike: among equals the order is that of a hash map.
    sizes = [*range(100_000, 800_000, 100_000), 100_000]
    with (
        _staged(installed, tmp_path / "cluster", _EXTENSIBLE, python, sizes) as stage,
        reading(Endpoints(CLUSTER, None, stage.cluster.service_url), None, CLUSTER) as records,
    ):
        reports = dict[str, dict[str, Any]]()

        def moved() -> dict[str, str]:
            """Take over what was reported before bundles moved: with the cycle brokers withdraw their lists."""
            came = [records.get_nowait() for _ in range(records.qsize())]
            found = stage.moved()
            if not found:
                _take_over(came, reports)
            return found

        awaited(lambda: moved() or reports, "reports of all traffic", enough=lambda _: _has_all(reports, stage, sizes))
        stage.begin_shedding()
        awaited(moved, "a cycle")
        # A roster is in the order of its ids, and so are the figures.
        ours = published_to(dict(sorted(reports.items())), policy_of(_EXTENSIBLE, "4.2", tmp_path), {}).shed()
        assert ours is not None
        wanted = {unload.bundle.rpartition("/")[2]: stage.rack(str(unload.destination)) for unload in ours.accepted}
        awaited(moved, f"moves {wanted}", enough=lambda now: now == wanted)
        awaited(stage.owners, f"moves {wanted}", enough=lambda owners: owners == stage.before | wanted)

        assert 1 < len(wanted) < len(sizes) - 1
        assert set(wanted.values()) == {"B"}


def _take_over(records: list[Record], reports: dict[str, dict[str, Any]]) -> None:
    """Bring reports of brokers, with their bundles, up to date."""
    for record in records:
        if isinstance(record, BrokerReport) and record.text:
            report = reports.setdefault(record.broker, {})
            report |= json.loads(record.text)
            # There only the sum counts.
            report["msgThroughputIn"] += report.pop("msgThroughputOut")
        elif isinstance(record, TopBundles) and record.broker in reports:
            listed = json.loads(record.text)["topBundlesLoadData"] if record.text else []
            reports[record.broker]["bundles"] = [(entry["bundleName"], entry["stats"]) for entry in listed]
