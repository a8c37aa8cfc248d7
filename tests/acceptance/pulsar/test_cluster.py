"""A real cluster does what tests, readers of its logs and collectors rely on."""

from __future__ import annotations

import re
import subprocess
import sys
import tomllib
import urllib.error
from pathlib import Path

import pulsar
import pytest

from lookup.settings.policy import is_path
from lookup.settings.shipped import shipped
from lookup.tuning.advice import dynamic_lines
from tests.acceptance.pulsar.clients import Client, JavaClients, PythonClients
from tests.acceptance.pulsar.cluster import LAYOUTS, Cluster
from tests.acceptance.pulsar.jvm import Installation
from tests.processes import awaited, is_gone

pytestmark = pytest.mark.pulsar


@pytest.fixture
def client(cluster: Cluster, java: JavaClients, namespace: str) -> Client:
    """Open a Java client of rack A that asks broker A."""
    return java.open(namespace, cluster.brokers["A"].service_url, {"rack": "A"})


def test_brokers_publish_their_racks(cluster: Cluster) -> None:
    """ZooKeeper holds the lookup properties of all three brokers, with the addresses that clients are given."""
    registry = cluster.registry()

    assert {data["pulsarServiceUrl"]: data["properties"] for data in registry.values()} == {
        broker.service_url: {"lookup.rack": rack} for rack, broker in cluster.brokers.items()
    }


def test_java_client_produces_and_consumes(client: Client, namespace: str) -> None:
    """What a Java client with lookup properties sends, it receives, over the broker that its lookup names."""
    topic = f"persistent://{namespace}/orders"
    client.do("subscribe", topic=topic, subscription="reader")

    sent = client.do("send", topic=topic, text="one")
    received = client.do("receive", topic=topic, timeout_ms=20_000)

    assert received["text"] == "one"
    assert sent["broker_url"] == received["broker_url"] == client.do("lookup", topic=topic)["broker_url"]


def test_python_client_reads_what_java_wrote(
    cluster: Cluster, client: Client, python: PythonClients, namespace: str
) -> None:
    """The Python client receives what the Java client sent, over the broker that its own lookup names."""
    topic = f"persistent://{namespace}/orders"
    sent = client.do("send", topic=topic, text="one")
    reading = python.open(cluster.brokers["B"].service_url)

    received = reading.create_reader(topic, pulsar.MessageId.earliest).read_next(20_000).data()
    answers, error = python.look_up(reading, topic)

    reading.close()
    assert received == b"one"
    assert ([answer["broker_url"] for answer in answers], error) == ([sent["broker_url"]], None)


def test_bundle_is_unloaded_and_assigned_again(cluster: Cluster, client: Client, namespace: str) -> None:
    """After an unload without destination a bundle has no owner, and the next lookup gives it one."""
    topic = f"persistent://{namespace}/orders"
    bundle = cluster.bundle_of(topic)
    owner = cluster.broker_at(client.do("lookup", topic=topic)["broker_url"])
    assert cluster.owned(namespace)[bundle] is owner

    cluster.unload(namespace, bundle)

    assert bundle not in cluster.owned(namespace)
    assert cluster.broker_at(client.do("lookup", topic=topic)["broker_url"]) is cluster.owned(namespace)[bundle]


def test_bundle_is_unloaded_to_a_broker(cluster: Cluster, client: Client, namespace: str) -> None:
    """An unload with a destination gives the bundle to that broker, and the producer follows."""
    topic = f"persistent://{namespace}/orders"
    owner = cluster.broker_at(client.do("send", topic=topic, text="one")["broker_url"])
    destination = next(broker for broker in cluster.running if broker is not owner)

    cluster.unload(namespace, cluster.bundle_of(topic), destination)

    assert client.do("lookup", topic=topic)["broker_url"] == destination.service_url
    assert client.do("send", topic=topic, text="two")["broker_url"] == destination.service_url


def test_unknown_destination_is_refused(cluster: Cluster, client: Client, namespace: str) -> None:
    """An unload to a broker that does not run is refused with 409, and the owner stays."""
    topic = f"persistent://{namespace}/orders"
    before = client.do("lookup", topic=topic)["broker_url"]

    with pytest.raises(urllib.error.HTTPError) as refused:
        cluster.admin(
            "PUT", f"namespaces/{namespace}/{cluster.bundle_of(topic)}/unload", destinationBroker="127.0.0.1:1"
        )

    assert refused.value.code == 409
    assert client.do("lookup", topic=topic)["broker_url"] == before


def test_bundle_is_split(cluster: Cluster, client: Client, namespace: str) -> None:
    """A split divides a bundle at its middle, and the owner keeps both halves."""
    owner = client.do("lookup", topic=f"persistent://{namespace}/orders")["broker_url"]
    bundle = cluster.bundle_of(f"persistent://{namespace}/orders")

    cluster.split(namespace, bundle)

    first, last = bundle.split("_")
    halves = [half for half in cluster.bundles(namespace) if half.startswith(first) or half.endswith(last)]
    middle = f"0x{(int(first, 16) + int(last, 16)) // 2:08x}"
    assert halves == [f"{first}_{middle}", f"{middle}_{last}"]
    assert [cluster.owned(namespace)[half].service_url for half in halves] == [owner, owner]


def test_killed_broker_loses_its_bundles_and_comes_back(cluster: Cluster, java: JavaClients, namespace: str) -> None:
    """A broker that is killed leaves the registry and its bundle gets another owner; it is back when started again."""
    lost, asked = cluster.brokers["C"], cluster.brokers["A"]
    client = java.open(f"{namespace}-survivor", asked.service_url, {})
    topic = f"persistent://{namespace}/orders"
    client.do("lookup", topic=topic)
    if cluster.owned(namespace)[cluster.bundle_of(topic)] is not lost:
        cluster.unload(namespace, cluster.bundle_of(topic), lost)
    registered = cluster.registry()[lost.id]

    cluster.kill(lost)

    awaited(lambda: sorted(cluster.registry()), "a registry without it", enough=lambda ids: lost.id not in ids)
    awaited(
        lambda: client.ask("lookup", topic=topic).result(),
        "another owner",
        enough=lambda answer: "error" not in answer and answer["broker_url"] != lost.service_url,
    )
    cluster.restart(lost)
    back = awaited(lambda: cluster.registry().get(lost.id))
    assert back["properties"] == registered["properties"] == {"lookup.rack": "C"}
    assert back["startTimestamp"] > registered["startTimestamp"]


def test_lookups_are_logged_in_every_layout_while_debug_is_on(cluster: Cluster, client: Client, namespace: str) -> None:
    """The log of the broker that was asked names the client's address in each layout, at DEBUG and not at INFO."""
    asked, topics = (
        cluster.brokers["A"],
        [f"persistent://{namespace}/{name}" for name in ("info", "debug", "info-again")],
    )

    unlogged = client.do("lookup", topic=topics[0])
    cluster.set_debug(on=True)
    logged = client.do("lookup", topic=topics[1])
    cluster.set_debug(on=False)
    client.do("lookup", topic=topics[2])

    assert unlogged["local"] == logged["local"]
    form = r"\[{topic}\] Received Lookup from /{local} "
    if cluster.release >= (5, 0):
        form = r"Received Lookup request.*/{local}\b.*{topic}[\"}}]"
    for layout in LAYOUTS:
        lines = asked.log(layout).read_text().splitlines()
        wanted = {topic: re.compile(form.format(topic=topic, local=logged["local"])) for topic in topics}
        found = [topic for topic in topics for line in lines if wanted[topic].search(line)]
        assert found == [topics[1]], layout


_PARENT = """
import sys
from pathlib import Path
from tests.acceptance.pulsar.jvm import Installation, Jvm
folder = Path(sys.argv[3])
installed = Installation(Path(sys.argv[1]), sys.argv[2])
jvm = Jvm(installed, *sys.argv[4:], folder=folder, log_settings=folder / "none.xml", heap_mb=64)
print(jvm.process.pid, flush=True)
sys.stdin.read()
"""


@pytest.mark.parametrize(
    "command", [("Driver",), ("Node", "services", "{}", "none", "0", "0")], ids=["clients", "server"]
)
def test_jvm_ends_with_the_process_that_started_it(
    installed: Installation, tmp_path: Path, command: tuple[str, ...]
) -> None:
    """A JVM ends even if the tests that started it are killed by SIGKILL and clean nothing up."""
    words = [word.format(tmp_path) for word in command]
    parent = subprocess.Popen(
        [sys.executable, "-c", _PARENT, installed.java, installed.class_path, tmp_path, *words],
        stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True,
    )  # fmt: skip
    assert parent.stdout is not None
    jvm = int(parent.stdout.readline())
    assert not is_gone(jvm)

    parent.kill()

    parent.communicate()
    awaited(lambda: is_gone(jvm))


def test_keys_that_a_search_changes_without_a_restart_are_dynamic(cluster: Cluster) -> None:
    """`lookup tune` prints commands for the keys that a broker lists as dynamic, and for no others."""
    listed = cluster.admin("GET", "brokers/configuration")
    paths = [one.path for one in shipped().values() if one.kind == "space of a search"]
    spaces = [tomllib.loads(path.read_text(encoding="utf-8")) for path in paths]
    keys = {key for space in spaces for key in [*space.get("set", {}), *space["vary"]] if not is_path(key)}
    # These can be written, and yet are for a restart.
    written = {key for key in keys if any(dynamic_lines({key: 1}))} | {
        "loadBalancerLoadSheddingStrategy",
        "loadManagerClassName",
    }

    assert len(keys) > 10
    assert keys & set(listed) == written & keys
