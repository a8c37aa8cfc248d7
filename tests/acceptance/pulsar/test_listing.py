"""Brokers with the class `LookupListing`: lists by properties are those of a decision server, or errors."""

from __future__ import annotations

import itertools
import re
import signal
import threading
import urllib.error
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager, suppress
from http import HTTPStatus
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path

import pytest

from tests.acceptance.pulsar.clients import Client, JavaClients
from tests.acceptance.pulsar.cluster import RACKS, Cluster, free_ports, running_cluster
from tests.acceptance.pulsar.jvm import Installation, with_bridge
from tests.processes import awaited
from tests.serve.servers import Server, started_apart
from tests.topics.plugins import lister_plugin

pytestmark = pytest.mark.pulsar

_TOKEN = "open-sesame"
#: Starts a server with a lister.
Serving = Callable[..., AbstractContextManager[Server]]
_NUMBERS = itertools.count()
_SETTINGS = """
plugin_files = ["thawed.py"]

[serving]
cluster = "racks"
record = "record"
port = {port}
token_file = "token"

[collect]
admin = "http://{brokers}"
topics_every_s = 0.5
topics_stale_s = 5.0

[topics]
catalog = "topics.db"
lister = {{ use = "{lister}" }}
"""
#: Lists by properties, without what is labelled as frozen; and one that never has more than a part.
_LISTERS = lister_plugin(
    ["properties", "labels"],
    thawed="""
        names = catalog.with_properties(namespace, mode, properties)
        return Listing([name for name in names if catalog.entry(name).labels.get("state") != "frozen"])
    """,
    halved="return Listing(catalog.with_properties(namespace, mode, properties)[:1], partial=True)",
)


@pytest.fixture(scope="module")
def port() -> int:
    """Return the port of all servers of this module, which brokers are started_apart with."""
    return free_ports(1)[0]


@pytest.fixture(scope="module")
def listing(installed: Installation, port: int, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cluster]:
    """Start brokers that ask a decision server for lists; skip the test if brokers of this release ask nothing."""
    if installed.release < (4, 2):
        pytest.skip("Brokers before 4.2 hand lists of topics to no class (PIP-452).")
    settings = {
        "pulsarResourcesExtendedClassName": "lookup.bridge.LookupListing",
        "enableBrokerTopicListWatcher": "false",
        "lookupPolicyServer": f"http://127.0.0.1:{port}",
        "lookupPolicyToken": _TOKEN,
    }
    try:
        with_jar = with_bridge(installed)
    except RuntimeError as error:
        pytest.skip(str(error))
    with running_cluster(with_jar, tmp_path_factory.mktemp("listing"), dict.fromkeys(RACKS, settings)) as cluster:
        yield cluster


@pytest.fixture(scope="module")
def clients(listing: Cluster) -> JavaClients:
    """Start the JVM of this module's Java clients."""
    return listing.java_clients()


@pytest.fixture
def serving(listing: Cluster, port: int, tmp_path: Path) -> Serving:
    """Return a function that starts a server with a lister; all of a test have one catalog."""
    (tmp_path / "token").write_text(_TOKEN)
    (tmp_path / "thawed.py").write_text(_LISTERS)
    brokers = ",".join(f"127.0.0.1:{broker.web_port}" for broker in listing.brokers.values())

    def start(lister: str = "thawed") -> AbstractContextManager[Server]:
        path = tmp_path / "serving.toml"
        path.write_text(_SETTINGS.format(port=port, brokers=brokers, lister=lister))
        return started_apart(path)

    return start


@pytest.fixture
def namespace(listing: Cluster) -> str:
    """Create a namespace of its own with five topics, one of them of two partitions."""
    name = f"public/listing-{next(_NUMBERS)}"
    listing.create_namespace(name, 4)
    for local in ("a", "b", "c", "d"):
        listing.admin("PUT", f"persistent/{name}/{local}")
    listing.admin("PUT", f"persistent/{name}/e/partitions", 2)
    return name


def _pairs(server: Server, topic: str, kind: str, **change: object) -> None:
    body = {"kind": kind, "topic": f"persistent://{topic}", **change}
    status, answer = server.ask("POST", "/pairs", body, {"Authorization": f"Bearer {_TOKEN}"})
    assert status == 204, answer


class Consumer:
    """A Java consumer of all topics of a namespace that its properties allow."""

    def __init__(self, client: Client, namespace: str, properties: dict[str, str]) -> None:
        self._client, self._pattern = client, f"{namespace}/.*"
        client.do("subscribe-pattern", topic=self._pattern, subscription=client.name, properties=properties)

    def topics(self) -> str:
        """Return the local names of its topics, sorted."""
        names = self._client.do("topics", topic=self._pattern)["topics"]
        return " ".join(name.rpartition("/")[2] for name in names)

    def await_topics(self, wanted: str) -> None:
        """Wait until it has these topics and no others."""
        awaited(self.topics, f"a consumer of {wanted}", enough=lambda seen: seen == wanted)

    def receive(self) -> str:
        """Return the text of the next message."""
        return str(self._client.do("receive", topic=self._pattern, timeout_ms=20_000)["text"])


@pytest.fixture
def consumer(listing: Cluster, clients: JavaClients, namespace: str) -> Callable[..., Consumer]:
    """Return a function that subscribes a consumer with properties."""

    def subscribe(**properties: str) -> Consumer:
        client = clients.open(f"listing-{next(_NUMBERS)}", listing.service_url, {})
        return Consumer(client, namespace, properties)

    return subscribe


def test_consumer_gets_the_topics_that_its_properties_allow(
    listing: Cluster, serving: Serving, namespace: str, consumer: Callable[..., Consumer]
) -> None:
    """Through creations, deletions and changes of properties and labels; without properties it gets all topics."""
    with serving() as server:
        for local in ("a", "b", "e"):
            _pairs(server, f"{namespace}/{local}", "properties", set={"team": "x"})
        _pairs(server, f"{namespace}/c", "properties", set={"team": "y"})

        own, every = consumer(team="x"), consumer()

        own.await_topics("a b e-partition-0 e-partition-1")
        every.await_topics("a b c d e-partition-0 e-partition-1")
        listing.admin("PUT", f"persistent/{namespace}/f")
        _pairs(server, f"{namespace}/f", "properties", set={"team": "x"})
        own.await_topics("a b e-partition-0 e-partition-1 f")
        _pairs(server, f"{namespace}/d", "properties", set={"team": "x", "stage": "raw"})
        _pairs(server, f"{namespace}/a", "properties", remove=["team"])
        own.await_topics("b d e-partition-0 e-partition-1 f")
        _pairs(server, f"{namespace}/b", "labels", set={"state": "frozen"})
        own.await_topics("d e-partition-0 e-partition-1 f")
        _pairs(server, f"{namespace}/b", "labels", removeAll=True)
        listing.admin("DELETE", f"persistent/{namespace}/f", force="true")
        own.await_topics("b d e-partition-0 e-partition-1")
        every.await_topics("a b c d e-partition-0 e-partition-1")


def test_without_the_server_subscriptions_stay_and_new_lists_fail(
    listing: Cluster, clients: JavaClients, serving: Serving, namespace: str, consumer: Callable[..., Consumer]
) -> None:
    """A consumer keeps its topics; a new one with properties gets an error, and one without gets its topics."""
    writer = clients.open(f"writer-{next(_NUMBERS)}", listing.service_url, {})
    with serving() as server:
        _pairs(server, f"{namespace}/a", "properties", set={"team": "x"})
        own = consumer(team="x")
        own.await_topics("a")

    def refused() -> int:
        # Since 5.0 the namespace is among what follows.
        line = rf"Error GetTopicsOfNamespace for namespace \[//(?:{namespace}\]| by .*\bnamespace={namespace}\b)"
        return sum(len(re.findall(line, broker.log("clock").read_text())) for broker in listing.running)

    awaited(refused, "polls that fail", enough=lambda count: count >= 3)
    assert own.topics() == "a"
    writer.do("send", topic=f"persistent://{namespace}/a", text="still here")
    assert own.receive() == "still here"
    with pytest.raises(RuntimeError, match="gave no list of topics"):
        consumer(team="x")
    with pytest.raises(urllib.error.HTTPError) as failed:
        listing.admin("GET", f"persistent/{namespace}", properties="team=x")
    assert failed.value.code == HTTPStatus.INTERNAL_SERVER_ERROR
    log = "".join(broker.log("clock").read_text() for broker in listing.running)
    assert f"Lists of topics by properties of {namespace} fail: The decision server http://127.0.0.1:" in log
    consumer().await_topics("a b c d e-partition-0 e-partition-1")
    with serving() as server:
        _pairs(server, f"{namespace}/b", "properties", set={"team": "x"})
        own.await_topics("a b")


def test_part_of_a_list_is_an_error(
    listing: Cluster, serving: Serving, namespace: str, consumer: Callable[..., Consumer]
) -> None:
    """If the lister has only a part, consumers keep what they have, and nobody gets a shorter list."""
    with serving() as server:
        for local in ("a", "b"):
            _pairs(server, f"{namespace}/{local}", "properties", set={"team": "x"})
        own = consumer(team="x")
        own.await_topics("a b")
    with serving("halved"):
        with pytest.raises(urllib.error.HTTPError):
            listing.admin("GET", f"persistent/{namespace}", properties="team=x")
        with pytest.raises(RuntimeError, match="only a part"):
            consumer(team="x")
        assert own.topics() == "a b"


def test_server_that_hangs_is_an_error(listing: Cluster, serving: Serving, namespace: str) -> None:
    """It is one after `lookupListingTimeoutMillis`; the list is there again when the server goes on."""
    with serving() as server:
        _pairs(server, f"{namespace}/a", "properties", set={"team": "x"})
        server.signal(signal.SIGSTOP)

        with pytest.raises(urllib.error.HTTPError) as failed:
            listing.admin("GET", f"persistent/{namespace}", properties="team=x")

        assert failed.value.code == HTTPStatus.INTERNAL_SERVER_ERROR
        server.signal(signal.SIGCONT)
        names = listing.admin("GET", f"persistent/{namespace}", properties="team=x")

    assert names == [f"persistent://{namespace}/a"]


def test_failure_is_logged_once_for_its_namespace(listing: Cluster, serving: Serving, namespace: str) -> None:
    """Also if lists of another namespace, which are answered, come in between."""
    refused = f"public/listing-{next(_NUMBERS)}"
    listing.create_namespace(refused, 4)
    with serving() as server:
        _pairs(server, f"{namespace}/a", "properties", set={"team": "x"})
        for _ in range(5):
            assert listing.admin("GET", f"persistent/{namespace}", properties="team=x")
            with pytest.raises(urllib.error.HTTPError):
                listing.admin("GET", f"persistent/{refused}", properties=f"team={'x' * 300}")

    logs = [broker.log("clock").read_text() for broker in listing.running]
    assert {log.count(f"Lists of topics by properties of {refused} fail") for log in logs} <= {0, 1}
    assert sum(log.count(f"Lists of topics by properties of {refused} fail") for log in logs) >= 1
    assert not any(f"by properties of {namespace} are answered again" in log for log in logs)


@contextmanager
def _answering(port: int, body: str, length: int, freed: threading.Event | None = None) -> Iterator[None]:
    """Answer every request with status 200 and a body, and a length that need not be its own.

    Args:
        freed: if given, connections stay open until the client closes them, and the event is set when it does.
    """

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            self.rfile.read(int(self.headers["Content-Length"]))
            self.send_response(HTTPStatus.OK)
            self.send_header("Content-Length", str(length))
            self.end_headers()
            self.wfile.write(body.encode())
            if freed is not None:
                self.connection.settimeout(60)
                with suppress(ConnectionError):
                    assert self.rfile.read(1) == b""
                freed.set()

        def log_request(self, code: int | str = "-", size: int | str = "-") -> None:
            """Say nothing."""

    with HTTPServer(("127.0.0.1", port), Handler) as server:
        thread = threading.Thread(target=server.serve_forever, args=(0.05,))
        thread.start()
        yield
        server.shutdown()
        thread.join()


def test_connection_to_a_server_that_stalls_is_freed(listing: Cluster, namespace: str, port: int) -> None:
    """If it hangs within its answer the request fails, and a broker does not keep a connection for each of these."""
    freed = threading.Event()
    with _answering(port, '{"topics": [', 1_000, freed):
        with pytest.raises(urllib.error.HTTPError):
            listing.admin("GET", f"persistent/{namespace}", properties="team=x")

        assert freed.wait(60)


@pytest.mark.parametrize(
    ("body", "missing"),
    [
        ("no JSON", 0),
        ("{}", 0),
        ('{"topics": null}', 0),
        ('{"topics": {"a": "persistent://NS/a"}}', 0),
        ('{"topics": ["persistent://NS/a", 1]}', 0),
        ('{"topics": ["persistent://NS/a", "persistent://public/other/a"]}', 0),
        ('{"topics": ["persistent://NS/a", "non-persistent://NS/a"]}', 0),
        ('{"topics": ["persistent://NS/a"]}', 10),
    ],
)
def test_answer_that_is_no_list_is_an_error(
    listing: Cluster, namespace: str, port: int, body: str, missing: int
) -> None:
    """So is one with a topic of another namespace or mode, and one that is cut off; no topic of it is listed."""
    body = body.replace("NS", namespace)
    with _answering(port, body, len(body) + missing), pytest.raises(urllib.error.HTTPError) as failed:
        listing.admin("GET", f"persistent/{namespace}", properties="team=x")

    assert failed.value.code == HTTPStatus.INTERNAL_SERVER_ERROR


def test_whole_list_of_any_server_is_taken(listing: Cluster, namespace: str, port: int) -> None:
    """The same with a list that is right."""
    body = f'{{"topics": ["persistent://{namespace}/a"]}}'
    with _answering(port, body, len(body)):
        assert listing.admin("GET", f"persistent/{namespace}", properties="team=x") == [f"persistent://{namespace}/a"]


def test_list_without_properties_is_pulsars_own(listing: Cluster, serving: Serving, namespace: str) -> None:
    """The server is not asked for it, and so it does not matter that a lister would leave topics out."""
    with serving("halved"):
        names = listing.admin("GET", f"persistent/{namespace}")

    assert names == listing.admin("GET", f"namespaces/{namespace}/topics")
    assert [name.rpartition("/")[2] for name in sorted(names)] == ["a", "b", "c", "d", "e-partition-0", "e-partition-1"]


def test_broker_with_a_wrong_setting_does_not_start(listing: Cluster) -> None:
    """Watchers of lists, which know no properties, must be off; the reason is in the broker's log."""
    broker = listing.brokers["B"]
    listing.kill(broker)
    listing.settings["B"]["enableBrokerTopicListWatcher"] = "true"

    with pytest.raises(RuntimeError, match="it ended with"):
        listing.restart(broker)

    listing.kill(broker)
    assert "enableBrokerTopicListWatcher should be false" in broker.log("clock").read_text()
    listing.settings["B"]["enableBrokerTopicListWatcher"] = "false"
    listing.restart(broker)
