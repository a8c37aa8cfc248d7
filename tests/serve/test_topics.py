"""Topics of a decision server: lists, labels and properties over HTTP, and a catalog that follows a cluster."""

from __future__ import annotations

import signal
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from http.client import HTTPConnection
from pathlib import Path
from typing import Any

import pytest

from lookup.topics.listing import topics_hash
from tests.processes import awaited
from tests.serve.restcluster import RestCluster, rest_cluster
from tests.serve.servers import Server, settings_file, started
from tests.topics.catalogs import locked
from tests.topics.plugins import lister_plugin

NS = "public/default"
HERE = f"persistent://{NS}/"
#: A lister that answers a part, fails, or takes its time.
LISTERS = lister_plugin(
    ["created", "deleted", "properties"],
    odd="""
        if properties.get("do") == "fail":
            raise RuntimeError("on purpose")
        names = catalog.topics(namespace, mode)
        if properties.get("do") == "wait":
            Path(__file__).with_name("asked").touch()
            time.sleep(1.5)
            assert all(catalog.entry(name) for name in names)
        return Listing(names[:1] if properties.get("do") == "part" else names, partial=properties.get("do") == "part")
    """,
)


@pytest.fixture
def cluster() -> Iterator[RestCluster]:
    """Serve a cluster with one namespace."""
    with rest_cluster() as cluster:
        cluster.topics[NS] = [f"{HERE}{local}" for local in ("a", "b", "c-partition-0")]
        yield cluster


def settings_of(
    folder: Path,
    cluster: RestCluster,
    lister: str = "indexed",
    more: str = "",
    *,
    every_s: float = 0.2,
    stale_s: float = 1.0,
    lock_s: float = 5.0,
) -> Path:
    """Write the settings of a server that follows a cluster, and only records lookups."""
    (folder / "odd.py").write_text(LISTERS, encoding="utf-8")
    path = settings_file(
        folder,
        f"""{more}
[collect]
admin = "{cluster.url}"
topics_every_s = {every_s}
topics_stale_s = {stale_s}

[topics]
catalog = "topics.db"
lock_timeout_s = {lock_s}
lister = {{ use = "{lister}" }}
""",
        policies="",
    )
    path.write_text('plugin_files = ["odd.py"]\n' + path.read_text())
    return path


@pytest.fixture
def settings(tmp_path: Path, cluster: RestCluster) -> Path:
    """Write settings with the lister `indexed`."""
    return settings_of(tmp_path, cluster)


@pytest.fixture
def server(settings: Path) -> Iterator[Server]:
    """Start a server that follows the cluster."""
    with started(settings) as server:
        yield server


def listed(server: Server, **request: Any) -> Any:
    """Return the local names of a list, or the status and the sentence of a refusal."""
    status, answer = server.ask("POST", "/list", {"namespace": NS, **request})
    return locals_of(answer["topics"]) if status == 200 else (status, answer["error"])


def locals_of(names: list[str]) -> str:
    """Return names without scheme and namespace."""
    return " ".join(name.removeprefix(HERE) for name in names)


def pairs(server: Server, kind: str, local: str, **change: object) -> Any:
    """Read or change labels or properties; return the answer, its status if that is all."""
    status, answer = server.ask("POST", "/pairs", {"kind": kind, "topic": f"{HERE}{local}", **change})
    return status if status == 204 else answer if status == 200 else (status, answer["error"])


def test_list_is_filtered_by_all_that_a_request_has(server: Server) -> None:
    """Properties, pattern, selector and mode; the hash is that of the names, and a client that has them gets none."""
    pairs(server, "properties", "a", set={"team": "x"})
    pairs(server, "properties", "c", set={"team": "x"})
    pairs(server, "labels", "a", set={"env": "prod"})
    pairs(server, "labels", "b", set={"env": "test"})

    assert listed(server) == "a b c-partition-0"
    assert listed(server, properties={"team": "x"}) == "a c-partition-0"
    assert listed(server, properties={"team": "x"}, pattern=f"{NS}/c.*") == "c-partition-0"
    assert listed(server, selector="env in (prod,test)") == "a b"
    assert listed(server, selector="env in (prod,test)", properties={"team": "x"}) == "a"
    assert listed(server, mode="NON_PERSISTENT") == ""
    hashed = topics_hash([f"{HERE}a", f"{HERE}b"])
    for known, names in (("", 2), (hashed[:4], 2), (hashed, 0)):
        _, answer = server.ask("POST", "/list", {"namespace": NS, "selector": "env", "topicsHash": known})
        assert (len(answer["topics"]), answer["changed"], answer["topicsHash"]) == (names, names > 0, hashed)


def test_labels_and_properties_are_read_and_changed(server: Server) -> None:
    """Of topics and their partitions, one key, some or all."""
    assert pairs(server, "properties", "a", set={"k1": "v1", "k2": "v2"}) == 204
    assert pairs(server, "properties", "a", remove=["k1"]) == 204
    assert pairs(server, "properties", "a") == {"k2": "v2"}
    assert pairs(server, "labels", "c", set={"env": "prod", "tier": "gold"}) == 204
    assert pairs(server, "labels", "c", remove=["env", "team"]) == 204
    assert pairs(server, "labels", "c") == {"tier": "gold"}
    assert pairs(server, "labels", "c-partition-0") == {"tier": "gold"}
    assert listed(server, selector="env") == ""
    assert listed(server, selector="tier=gold") == "c-partition-0"
    assert pairs(server, "labels", "c", removeAll=True) == 204
    assert pairs(server, "labels", "c") == {}


@pytest.fixture(scope="module")
def unchanged(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    """Start a server for requests that change nothing."""
    with rest_cluster() as cluster:
        cluster.topics[NS] = [f"{HERE}a"]
        with started(settings_of(tmp_path_factory.mktemp("unchanged"), cluster)) as server:
            yield server


@pytest.mark.parametrize(
    ("method", "path", "body", "status", "said"),
    [
        ("POST", "/list", {"namespace": "public/nothing"}, 404, "'public/nothing'"),
        ("POST", "/list", {}, 400, "namespace is missing"),
        ("POST", "/list", {"namespace": "public"}, 400, "form tenant/namespace"),
        ("POST", "/list", {"namespace": NS, "mode": "some"}, 400, "there is no mode 'some'"),
        ("POST", "/list", {"namespace": NS, "properties": {"k": 1}}, 400, "properties"),
        ("POST", "/list", {"namespace": NS, "properties": {"k": "v" * 300}}, 400, "has 300 characters"),
        ("POST", "/list", b"[", 400, "not JSON"),
        ("POST", "/list", b" " * (1 << 21), 413, "larger than"),
        ("POST", "/pairs", {"kind": "labels", "topic": f"{HERE}z", "set": {"a": "b"}}, 404, f"'{HERE}z'"),
        ("POST", "/pairs", {"kind": "labels", "topic": "a"}, 400, "does not begin with persistent://"),
        ("POST", "/pairs", {"kind": "label", "topic": f"{HERE}a"}, 400, "kind is 'label', not labels or properties"),
        ("POST", "/pairs", {"kind": "labels", "topic": f"{HERE}a", "sett": {"a": "b"}}, 400, "'sett' is not a field"),
        ("POST", "/pairs", {"kind": "labels", "topic": f"{HERE}a", "set": {"a": 1}}, 400, "set.a is 1, not a text"),
        ("POST", "/pairs", {"kind": "labels", "topic": f"{HERE}a", "remove": "b"}, 400, "not a list of keys"),
        ("POST", "/pairs", {"kind": "labels", "topic": f"{HERE}a", "remove": []}, 400, "say which labels to remove"),
        ("POST", "/pairs", {"kind": "labels", "topic": f"{HERE}a", "removeAll": "yes"}, 400, "not true or false"),
        (
            *("POST", "/pairs", {"kind": "labels", "topic": f"{HERE}a", "remove": ["b"], "removeAll": True}),
            *(400, "remove and removeAll: one at a time"),
        ),
    ],
)
def test_mistake_is_a_sentence(unchanged: Server, method: str, path: str, body: Any, status: int, said: str) -> None:
    """With a status that no client takes for a list."""
    got, answer = unchanged.ask(method, path, body)

    assert got == status
    assert said in answer["error"]


def test_catalog_follows_the_cluster(server: Server, cluster: RestCluster) -> None:
    """Topics come and go, those that stay keep their labels, and a new partition has those of its topic."""
    for local in ("a", "b", "c"):
        pairs(server, "labels", local, set={"of": local})

    cluster.topics[NS] = [f"{HERE}{local}" for local in ("a", "c-partition-0", "c-partition-1", "d")]

    awaited(lambda: listed(server) == "a c-partition-0 c-partition-1 d")
    assert listed(server, selector="of") == "a c-partition-0 c-partition-1"
    assert listed(server, selector="of=c") == "c-partition-0 c-partition-1"
    # A topic that comes back is another one, and so is one that was made again with partitions.
    cluster.topics[NS] = [f"{HERE}a-partition-0", f"{HERE}b", f"{HERE}c-partition-0"]
    awaited(lambda: listed(server) == "a-partition-0 b c-partition-0")
    assert listed(server, selector="of") == "c-partition-0"


def test_new_names_are_known_at_once(tmp_path: Path, cluster: RestCluster) -> None:
    """A topic or namespace that was created since the last look is looked for when it is asked for."""
    with started(settings_of(tmp_path, cluster, every_s=3000.0, stale_s=3600.0)) as server:
        awaited(lambda: listed(server) == "a b c-partition-0")
        cluster.topics[NS].append(f"{HERE}new")
        cluster.topics["public/other"] = ["persistent://public/other/x"]

        assert pairs(server, "properties", "new", set={"team": "x"}) == 204
        assert listed(server, properties={"team": "x"}) == "new"
        _, other = server.ask("POST", "/list", {"namespace": "public/other"})
        assert other["topics"] == ["persistent://public/other/x"]


def test_topics_that_cannot_be_read_are_not_listed_for_long(server: Server, cluster: RestCluster) -> None:
    """A cluster that fails, or answers no list, makes lists fail, changes no label, and is read again afterwards."""
    pairs(server, "labels", "a", set={"env": "prod"})

    for fault in ({"status": 500}, {"cut": "topics"}, {"junk": '["x"]'}, {"junk": f'["{HERE}\\ud800"]'}):
        for name, value in fault.items():
            setattr(cluster, name, value)
        refused = awaited(lambda: listed(server), "a list that is refused", enough=lambda seen: seen[0] == 503)
        assert f"topics of {NS}" in refused[1]
        assert server.ask("GET", "/health")[0] == 503
        cluster.status = cluster.junk = cluster.cut = None
        awaited(lambda: listed(server) == "a b c-partition-0")
    assert listed(server, selector="env=prod") == "a"
    assert awaited(lambda: server.ask("GET", "/health")[0] == 200)
    assert ["cannot be read" in server.said[1], "can be read again" in server.said[2]] == [True, True]


def test_namespace_that_is_deleted_goes_with_its_topics(server: Server, cluster: RestCluster) -> None:
    """A list of it is refused, and its labels are gone when it is made again."""
    pairs(server, "labels", "a", set={"env": "prod"})
    topics = cluster.topics.pop(NS)

    awaited(lambda: listed(server), "a list that is refused", enough=lambda seen: seen[0] == 404)
    cluster.topics[NS] = topics
    awaited(lambda: listed(server) == "a b c-partition-0")
    assert listed(server, selector="env=prod") == ""


def test_wrong_address_takes_no_labels_away(settings: Path, cluster: RestCluster) -> None:
    """A server that answers 404 to everything is no cluster whose namespaces were deleted."""
    with started(settings) as server:
        pairs(server, "labels", "a", set={"env": "prod"})
    cluster.status = 404
    with started(settings) as server:
        assert listed(server)[0] == 404
        awaited(lambda: server.ask("GET", "/health")[0] == 503)
        cluster.status = None
        awaited(lambda: listed(server, selector="env=prod") == "a")


def test_part_of_a_list_and_a_lister_that_fails_are_errors(tmp_path: Path, cluster: RestCluster) -> None:
    """Neither is a shorter list."""
    with started(settings_of(tmp_path, cluster, "odd")) as server:
        assert listed(server) == "a b c-partition-0"
        for does, status, reason in (("part", 503, "only a part"), ("fail", 500, "on purpose")):
            answer = listed(server, properties={"do": does})
            assert (answer[0], reason in answer[1]) == (status, True)


def test_what_is_asked_does_not_wait_with_a_write(tmp_path: Path, cluster: RestCluster) -> None:
    """While a write waits for another process that writes to the file, all else is answered; then it is done."""
    settings = settings_of(tmp_path, cluster, lock_s=30.0)
    with started(settings) as server, ThreadPoolExecutor(1) as pool:
        assert listed(server) == "a b c-partition-0"
        with locked(settings.with_name("topics.db")):
            writing = pool.submit(pairs, server, "properties", "a", set={"team": "x"})
            # Longer than what was read from the cluster may be listed without another look.
            for _ in range(30):
                assert listed(server) == "a b c-partition-0"
                assert pairs(server, "properties", "a") == {}
                assert server.ask("GET", "/health")[0] == 200
                time.sleep(0.05)
            assert not writing.done()
        assert writing.result() == 204
        assert listed(server, properties={"team": "x"}) == "a"


def test_server_without_topics_says_so(tmp_path: Path) -> None:
    """A broker that asks it for a list gets an error."""
    with started(settings_file(tmp_path, policies="")) as server:
        status, said = listed(server)
        assert (status, "[topics]" in said) == (404, True)


def test_topics_cannot_change_while_the_server_runs(settings: Path, server: Server) -> None:
    """The old settings stay, with a sentence."""
    settings.write_text(settings.read_text().replace("indexed", "default"))
    server.signal(signal.SIGHUP)

    awaited(lambda: [line for line in server.said if "topics: cannot change" in line])


@pytest.mark.parametrize("cut", ["tenants", "namespaces", "topics"])
def test_answer_that_is_cut_off_does_not_end_the_following(tmp_path: Path, cluster: RestCluster, cut: str) -> None:
    """It is the reason in /health; the next whole answer is taken, also if nobody asks for a list."""
    with started(settings_of(tmp_path, cluster, stale_s=3600.0)) as server:
        awaited(lambda: listed(server) == "a b c-partition-0")
        cluster.cut = cut
        reason = awaited(lambda: server.ask("GET", "/health")[1].get("reason"))
        assert "cut off" in reason
        cluster.topics[NS] = [f"{HERE}z"]
        cluster.cut = None

        awaited(lambda: listed(server) == "z")
        # The list is there before the round that read it ends.
        awaited(lambda: server.ask("GET", "/health")[0] == 200)


@contextmanager
def lists_waiting(server: Server, *namespaces: str) -> Iterator[None]:
    """Ask for lists whose clients leave at the end of the block, without an answer."""
    connections = [HTTPConnection("127.0.0.1", server.port) for _ in namespaces]
    for connection, namespace in zip(connections, namespaces, strict=True):
        connection.request("POST", "/list", f'{{"namespace": "{namespace}"}}')
    yield
    for connection in connections:
        connection.close()


def listed_long_ago(server: Server) -> None:
    """Wait until topics are known, and too old to be listed without another look."""
    awaited(lambda: listed(server) == "a b c-partition-0")
    # Age is time itself: `topics_stale_s` is one second.
    time.sleep(1.1)


def waits(server: Server) -> bool:
    """Ask for a list and leave after a while; return whether no answer came until then, not even a refusal."""
    connection = HTTPConnection("127.0.0.1", server.port, timeout=1.0)
    connection.request("POST", "/list", f'{{"namespace": "{NS}"}}')
    try:
        return connection.getresponse().status != 503
    except TimeoutError:
        return True
    finally:
        connection.close()


def test_cluster_that_hangs_holds_up_lists_only(tmp_path: Path, cluster: RestCluster) -> None:
    """Lists have places of their own, which clients free by leaving; all that wait share one look."""
    with started(settings_of(tmp_path, cluster, more="max_in_flight = 4", every_s=3000.0)) as server:
        listed_long_ago(server)
        cluster.asked.clear()
        with cluster.holding():
            with lists_waiting(server, *[NS] * 4):
                refused = awaited(lambda: listed(server), "a list that is refused", enough=lambda seen: seen[0] == 503)
                assert "in flight" in refused[1]
                assert server.ask("POST", "/record", {"broker": "b1:8080", "lookups": []})[0] == 200
            # The server notices that they left, and lets others wait, although the cluster still hangs.
            awaited(lambda: waits(server))
        assert cluster.asked == [NS]
        awaited(lambda: listed(server) == "a b c-partition-0")


def test_end_does_not_wait_for_a_cluster_that_hangs(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, cluster: RestCluster
) -> None:
    """Neither with the list of a client nor with the server's own looks."""
    # Else the questions end by themselves.
    monkeypatch.setattr("lookup.collect.sources._REQUEST_S", 3600.0)
    with cluster.holding(), started(settings_of(tmp_path, cluster)) as server:
        awaited(lambda: cluster.asked)
        with lists_waiting(server, NS, "public/other"):
            awaited(lambda: "public/other" in cluster.asked)
            assert server.stop() == 0


def test_list_does_not_wait_with_a_change_of_the_cluster(tmp_path: Path, cluster: RestCluster) -> None:
    """One that another process keeps from being written holds up no list."""
    with started(settings_of(tmp_path, cluster, lock_s=3600.0, stale_s=3600.0)) as server:
        awaited(lambda: listed(server) == "a b c-partition-0")
        with locked(tmp_path / "topics.db"):
            cluster.topics[NS] = [f"{HERE}z"]
            cluster.asked.clear()
            awaited(lambda: cluster.asked)
            for _ in range(20):
                assert listed(server) == "a b c-partition-0"
        awaited(lambda: listed(server) == "z")


def test_lister_sees_one_revision(tmp_path: Path, cluster: RestCluster) -> None:
    """A topic that is deleted while it answers is there until it has."""
    with started(settings_of(tmp_path, cluster, "odd", stale_s=3600.0)) as server, ThreadPoolExecutor(1) as pool:
        awaited(lambda: listed(server) == "a b c-partition-0")
        with locked(tmp_path / "topics.db"):
            cluster.topics[NS] = [f"{HERE}a"]
            cluster.asked.clear()
            # Seen, and not written: lists do not wait for that.
            awaited(lambda: cluster.asked)
            waiting = pool.submit(listed, server, properties={"do": "wait"})
            awaited((tmp_path / "asked").exists)

        assert waiting.result() == "a b c-partition-0"
        awaited(lambda: listed(server) == "a")
