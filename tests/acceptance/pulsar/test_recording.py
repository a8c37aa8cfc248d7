"""What is recorded of a cluster is what it published."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from tests.acceptance.pulsar.clients import JavaClients, PythonClients
from tests.acceptance.pulsar.cluster import Cluster
from tests.acceptance.pulsar.recording import recorded_registry, recorded_topics
from tests.processes import awaited

pytestmark = pytest.mark.pulsar


def _rows(path: Path) -> list[dict[str, Any]]:
    # The last line may still be written.
    return [json.loads(line) for line in path.read_text().splitlines(keepends=True) if line.endswith("\n")]


def test_state_topic_shows_how_a_bundle_moves(
    cluster: Cluster, java: JavaClients, python: PythonClients, namespace: str, tmp_path: Path
) -> None:
    """The record of the state topic has the steps of a first assignment, and of an unload to a broker."""
    client = java.open(f"{namespace}-state", cluster.brokers["A"].service_url, {})
    topic = f"persistent://{namespace}/orders"
    reading = python.open(cluster.service_url)
    owner = cluster.broker_at(client.do("lookup", topic=topic)["broker_url"])
    destination = next(broker for broker in cluster.running if broker is not owner)
    bundle = f"{namespace}/{cluster.bundle_of(topic)}"

    with recorded_topics(reading, tmp_path):
        cluster.unload(namespace, cluster.bundle_of(topic), destination)
        values = awaited(
            lambda: [row["value"] for row in _rows(tmp_path / "service-unit-state.jsonl") if row["key"] == bundle],
            "five states of the bundle",
            enough=lambda values: len(values) >= 5,
        )

    reading.close()
    assert [(value["state"], value["dstBroker"], value.get("sourceBroker")) for value in values] == [
        ("Assigning", owner.id, None),
        ("Owned", owner.id, None),
        ("Releasing", destination.id, owner.id),
        ("Assigning", destination.id, owner.id),
        ("Owned", destination.id, owner.id),
    ]


def test_load_topics_are_recorded(cluster: Cluster, python: PythonClients, tmp_path: Path) -> None:
    """Reports of brokers' load arrive by broker, each with its figures."""
    reading = python.open(cluster.service_url)

    with recorded_topics(reading, tmp_path):
        row = awaited(lambda: next((row for row in _rows(tmp_path / "broker-load-data.jsonl") if row["value"]), None))

    reading.close()
    assert row["key"] in {broker.id for broker in cluster.running}
    assert {"cpu", "directMemory", "bandwidthIn"} <= set(row["value"])


def test_registry_is_recorded(cluster: Cluster, tmp_path: Path) -> None:
    """The first line of a record of the registry has the brokers that are there when it begins."""
    with recorded_registry(cluster, tmp_path):
        awaited(lambda: _rows(tmp_path / "registry.jsonl"))

    assert _rows(tmp_path / "registry.jsonl")[0]["brokers"] == cluster.registry()
