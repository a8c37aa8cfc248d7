"""`lookup plan` beside a real cluster: it names real owners and destinations, and moves nothing."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from threading import Event, Thread
from typing import Any

import pulsar
import pytest

from lookup.collect.sources import AdminRest, Credentials
from tests.acceptance.pulsar.clients import PythonClients
from tests.acceptance.pulsar.cluster import CLUSTER, Broker, Cluster
from tests.processes import awaited, connected

pytestmark = pytest.mark.pulsar

_NAMESPACE = "public/planned"
#: Evener than what ships, so that the brokers' own topics, which nothing moves, are no obstacle.
_POLICY = """
name = "even"
filters = ["load-manager-class", "max-topics", "version", "anti-affinity", "isolation"]
selector = "least-resource-usage"
shedder = { use = "rebalance", max_imbalance = 1.05, min_gain = 0.01 }
"""


@dataclass
class _Planned:
    """What a plan of a crowded broker says, beside what the brokers say of themselves."""

    document: dict[str, Any]
    registry: dict[str, dict[str, Any]]
    before: dict[str, Broker]
    after: dict[str, Broker]


def _producing(client: pulsar.Client, topics: list[str], stopped: Event) -> None:
    """Send some hundred kB per second in all until stopped."""
    producers = [client.create_producer(topic) for topic in topics]
    while not stopped.wait(0.02):
        for producer in producers:
            producer.send_async(bytes(1000), lambda *_: None)


@pytest.fixture(scope="module")
def crowded(cluster: Cluster, python: PythonClients) -> Iterator[list[str]]:
    """Let one broker own all eight bundles of a namespace, with a topic in each that is written to."""
    cluster.create_namespace(_NAMESPACE, 8)
    topics: dict[str, str] = {}
    number = 0
    while len(topics) < 8:
        topic = f"persistent://{_NAMESPACE}/topic-{number}"
        topics.setdefault(cluster.bundle_of(topic), topic)
        number += 1
    client, stopped = python.open(cluster.service_url), Event()
    thread = Thread(target=_producing, args=(client, [*topics.values()], stopped))
    thread.start()
    owned = awaited(lambda: cluster.owned(_NAMESPACE), "eight owners", enough=lambda owners: len(owners) == 8)
    full = cluster.brokers["A"]
    for bundle, owner in owned.items():
        if owner is not full:
            cluster.unload(_NAMESPACE, bundle, full)
    # A slow broker answers before the last of them has moved.
    awaited(lambda: [*cluster.owned(_NAMESPACE).values()], "one owner of all", enough=lambda of: of == [full] * 8)
    try:
        yield [f"{_NAMESPACE}/{bundle}" for bundle in topics]
    finally:
        stopped.set()
        thread.join()
        client.close()


@pytest.fixture(scope="module")
def planned(cluster: Cluster, crowded: list[str], tmp_path_factory: pytest.TempPathFactory) -> _Planned:
    """Plan until brokers have reported what their bundles carry, and hold the plan against the cluster."""
    folder: Path = tmp_path_factory.mktemp("planned")
    (folder / "policy.toml").write_text(_POLICY)
    admin = "http://" + ",".join(broker.web_url.removeprefix("http://") for broker in cluster.brokers.values())
    where = connected(admin=admin, service_url=cluster.service_url, zookeeper=cluster.zookeeper)

    def run(*words: str) -> dict[str, Any]:
        done = subprocess.run(
            [sys.executable, "-m", "lookup", "plan", *words, "--format", "json"],
            env=where,
            cwd=folder,
            capture_output=True,
            text=True,
            check=False,
        )
        # Until brokers that have just started report their load there is no plan.
        document: dict[str, Any] = json.loads(done.stdout or "{}") | {"said": done.stderr}
        return document

    made = ("--policy", "policy.toml", "--only", _NAMESPACE, "--max-moves", "3", "--output", "plan")
    before = cluster.owned(_NAMESPACE)
    document = awaited(
        lambda: run(*made, "--force"), "loads of all bundles", enough=lambda of: len(of.get("steps", ())) > 1
    )
    return _Planned(document, cluster.registry(), before, cluster.owned(_NAMESPACE))


def test_steps_name_real_owners_and_destinations(planned: _Planned, crowded: list[str]) -> None:
    """As brokers name them: where bundles are, and who is registered."""
    for step in planned.document["steps"]:
        owner = planned.before[step["bundle"].rpartition("/")[2]]
        assert step["bundle"] in crowded
        assert step["from"] == owner.id
        assert step["to"] in planned.registry
        assert step["to"] != step["from"]
        assert step["weight"] > 0
        assert step["costs"]["producers"] == 1


def test_brokers_are_those_of_the_registry(planned: _Planned) -> None:
    """Each with its load."""
    brokers = {broker["id"]: broker for broker in planned.document["brokers"]}

    assert brokers.keys() == planned.registry.keys()
    assert all(broker["load"] is not None for broker in brokers.values())


def test_the_cluster_is_more_even_after_it(planned: _Planned) -> None:
    """By the loads that brokers have reported."""
    imbalance = planned.document["figures"][0]
    assert imbalance["metric"] == "imbalance"
    assert imbalance["value"] < imbalance["before"]


def test_nothing_was_moved(planned: _Planned) -> None:
    """Owners are as they were."""
    assert planned.after == planned.before


def test_isolation_and_groups_are_read_as_brokers_have_them(cluster: Cluster, namespace: str) -> None:
    """None, then those that an administrator sets."""
    rest = AdminRest(cluster.running[0].web_url, Credentials())
    none = rest.isolation(CLUSTER), rest.anti_affinity_group(namespace)
    policy = {
        "namespaces": [namespace],
        "primary": ["127.0.0.9"],
        "secondary": ["127.0.0.1"],
        "auto_failover_policy": {
            "policy_type": "min_available",
            "parameters": {"min_limit": "1", "usage_threshold": "100"},
        },
    }
    path = f"clusters/{CLUSTER}/namespaceIsolationPolicies/planned"
    cluster.admin("POST", f"namespaces/{namespace}/antiAffinity", "critical")
    cluster.admin("POST", path, policy)
    try:
        assert none == ({}, None)
        assert rest.anti_affinity_group(namespace) == "critical"
        kept = rest.isolation(CLUSTER)["planned"]
        assert {key: kept[key] for key in policy} == policy
    finally:
        cluster.admin("DELETE", path)
        cluster.admin("DELETE", f"namespaces/{namespace}/antiAffinity")
