"""One cycle of a real cluster's shedder moves the bundles that our load manager moves on the same figures."""

from __future__ import annotations

import itertools
import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import pytest

from lookup.model.bundles import bundle_of, bundle_ranges, equal_boundaries
from lookup.model.load_data import ResourceUsage
from lookup.simulation.loop import MIB, ClosedLoop
from lookup.simulation.scenario import Scenario, checked_scenario
from tests.acceptance.pulsar.clients import PythonClients
from tests.acceptance.pulsar.cluster import Cluster
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
    wanted = dict.fromkeys(stage.bundles, "A") | {stage.bundles[-1]: "C"}
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
