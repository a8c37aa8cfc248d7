"""The decision server beside a real cluster: what it knows of owners is what the state topic says."""

from __future__ import annotations

import itertools
import json
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pulsar
import pytest

from lookup.logs.readers.system_topics import STATE_TOPIC
from lookup.serve.verifying import verify
from tests.acceptance.pulsar.clients import JavaClients
from tests.acceptance.pulsar.cluster import Cluster
from tests.processes import awaited
from tests.serve.servers import Server, decide, read_table, started_apart

pytestmark = pytest.mark.pulsar

_NUMBERS = itertools.count()
_SETTINGS = """
[serving]
cluster = "integration"
record = "record"
port = 0
flush_s = 0.2
active = "spread"

[collect]
service_url = "{url}"

[[namespaces]]
name = "{first}"
anti_affinity_group = "shops"

[[namespaces]]
name = "{second}"
anti_affinity_group = "shops"

[[policies]]
name = "spread"
filters = ["anti-affinity"]
selector = "random"
"""


def owners_in_topic(cluster: Cluster) -> dict[str, str]:
    """Return the owner in the last record of every bundle, read from the topic's beginning by a reader of its own."""
    client = pulsar.Client(cluster.service_url, logger=pulsar.FileLogger(pulsar.LoggerLevel.Error, "/dev/null"))
    reader, latest = client.create_reader(STATE_TOPIC, pulsar.MessageId.earliest), {}
    while reader.has_message_available():
        message = reader.read_next(20_000)
        latest[message.partition_key()] = json.loads(message.data() or b"{}")
    client.close()
    return {bundle: data["dstBroker"] for bundle, data in latest.items() if data.get("state") == "Owned"}


@pytest.fixture
def namespaces(cluster: Cluster) -> list[str]:
    """Create two namespaces of one group, of eight bundles each."""
    names = [f"public/spread-{next(_NUMBERS)}" for _ in range(2)]
    for name in names:
        cluster.create_namespace(name, 8)
    return names


@pytest.fixture
def server(cluster: Cluster, namespaces: list[str], tmp_path: Path) -> Iterator[Server]:
    """Start a server that follows the cluster's state topic."""
    path = tmp_path / "serving.toml"
    path.write_text(_SETTINGS.format(url=cluster.service_url, first=namespaces[0], second=namespaces[1]))
    with started_apart(path) as server:
        yield server


def assert_odds_as_in_topic(cluster: Cluster, server: Server, namespaces: list[str], asked: int) -> Counter[str]:
    """Ask about a bundle of the group until its odds are equal over the brokers that own the fewest by the topic.

    Returns:
        How many bundles of the group each broker owns.
    """
    owned: Counter[str] = Counter()

    def both() -> tuple[dict[str, float], dict[str, float], Any]:
        """Return the odds by the topic, those of the server, and what it knows of owners."""
        owners = owners_in_topic(cluster)
        view = {"id": str(next(_NUMBERS)), "brokers": {b: {"lookupData": d} for b, d in cluster.registry().items()}}
        body = decide(view, bundle=f"{namespaces[0]}/0x00000000_0x20000000", broker=f"b{asked}:1")
        status, answer = server.ask("POST", "/decide", body)
        known = server.ask("GET", "/health")
        if status != 200:
            return {}, {"status": status}, known
        owned.clear()
        owned.update(dict.fromkeys(view["brokers"], 0))
        owned.update(owner for bundle, owner in owners.items() if bundle.rpartition("/")[0] in namespaces)
        fewest = [broker for broker in view["brokers"] if owned[broker] == min(owned[b] for b in view["brokers"])]
        votes = server.ask("GET", f"/explain/{answer['decision']}")[1]["brokers"]
        odds = {vote["broker"]: vote["probability"] for vote in votes if vote["probability"]}
        return dict.fromkeys(fewest, 1 / len(fewest)), odds, known

    # A change that is under way is known to one reader of the topic before the other.
    awaited(both, "a server whose odds are those by the topic", enough=lambda seen: seen[0] == seen[1])
    return owned


def test_odds_follow_the_owners_of_the_cluster(
    cluster: Cluster, java: JavaClients, namespaces: list[str], server: Server
) -> None:
    """After lookups, unloads and a split, the odds are those that the topic predicts; verify repeats all of them."""
    asking = java.open(f"spread-{next(_NUMBERS)}", cluster.service_url, {})
    seen = [assert_odds_as_in_topic(cluster, server, namespaces, 0)]
    for number in range(12):
        asking.do("lookup", topic=f"persistent://{namespaces[number % 2]}/topic-{number}")
        if number % 4 == 3:
            seen.append(assert_odds_as_in_topic(cluster, server, namespaces, number))
    bundle, owner = next(iter(cluster.owned(namespaces[0]).items()))
    cluster.unload(namespaces[0], bundle, next(other for other in cluster.running if other is not owner))
    seen.append(assert_odds_as_in_topic(cluster, server, namespaces, 20))
    cluster.unload(namespaces[0], bundle)
    seen.append(assert_odds_as_in_topic(cluster, server, namespaces, 21))
    split, _ = next(iter(cluster.owned(namespaces[1]).items()))
    cluster.split(namespaces[1], split)
    seen.append(assert_odds_as_in_topic(cluster, server, namespaces, 22))
    assert server.stop() == 0
    rows = read_table(server.record, "decisions")
    verified = verify(str(server.record))

    assert len({tuple(sorted(owned.values())) for owned in seen}) > 3
    assert all(row["owners"] for row in rows)
    assert verified.agree == verified.decisions >= len(seen)


def test_loss_of_the_broker_that_serves_the_topic(
    cluster: Cluster, java: JavaClients, namespaces: list[str], server: Server
) -> None:
    """If the broker of the state topic is killed, the server finds the topic again, and owners as it has them then."""
    asking = java.open(f"spread-{next(_NUMBERS)}", cluster.service_url, {})
    for number in range(6):
        asking.do("lookup", topic=f"persistent://{namespaces[number % 2]}/topic-{number}")
    lost = cluster.broker_at(cluster.lookup_over_http(STATE_TOPIC, cluster.running[0]))

    def left() -> list[str]:
        owners = owners_in_topic(cluster)
        # Bundles of the broker's own, for its heartbeat, stay its own.
        return [b for b, owner in owners.items() if owner == lost.id and b.rpartition("/")[0] in namespaces]

    cluster.kill(lost)
    awaited(left, "other owners", enough=lambda bundles: not bundles)
    assert_odds_as_in_topic(cluster, server, namespaces, 30)
    cluster.restart(lost)
    assert_odds_as_in_topic(cluster, server, namespaces, 31)
    assert server.stop() == 0
    verified = verify(str(server.record))

    assert verified.agree == verified.decisions >= 2
