"""Watches over HTTP: what a connection is sent, how it goes on with a mark, and who is cut off."""

from __future__ import annotations

import json
import socket
from collections.abc import Iterator
from contextlib import ExitStack, closing, contextmanager, suppress
from http.client import HTTPConnection, HTTPResponse
from pathlib import Path
from typing import Any
from urllib.parse import urlencode

import pytest

from lookup.topics.catalog import Catalog, SqliteStorage
from tests.processes import awaited
from tests.serve.restcluster import rest_cluster
from tests.serve.servers import FEW_FILES, Server, settings_file, started, started_apart
from tests.topics.plugins import SHOWN

NS = "public/default"
HERE = f"persistent://{NS}/"
#: Topics whose list fills the buffers between two sockets, and what makes their names long.
_MANY, _LONG = 1_200, "x" * 4_000


class Watched:
    """One connection of a watcher."""

    def __init__(self, response: HTTPResponse) -> None:
        self._response = response
        self.mark = ""

    def event(self) -> tuple[str, Any]:
        """Return kind and content of the next event, after signs of life."""
        while True:
            fields: dict[str, str] = {}
            while (line := self._response.readline().decode().rstrip("\n")) != "":
                name, _, value = line.partition(": ")
                fields[name] = value
            self.mark = fields.get("id", self.mark)
            if "data" in fields:
                return fields["event"], json.loads(fields["data"])
            assert "" in fields, "the connection ended"

    def names(self) -> tuple[str, ...]:
        """Return kind and names of the next event, removed ones after a minus."""
        kind, content = self.event()
        gone = [f"-{name.removeprefix(HERE)}" for name in content.get("removed", ())]
        come = [name.removeprefix(HERE) for name in content.get("topics", content.get("added"))]
        return kind, *gone, *come


@contextmanager
def watching(server: Server, mark: str = "", **fields: Any) -> Iterator[Watched]:
    """Watch topics of a server, those of one namespace unless it is said otherwise."""
    with closing(HTTPConnection("127.0.0.1", server.port, timeout=20)) as connection:
        query = urlencode({"namespace": NS} | fields, doseq=True)
        connection.request("GET", f"/watch?{query}", headers={"Last-Event-ID": mark} if mark else {})
        response = connection.getresponse()
        assert response.status == 200, response.read()
        yield Watched(response)


@contextmanager
def written(folder: Path) -> Iterator[Catalog]:
    """Write to the catalog as another process does, in one transaction."""
    with closing(SqliteStorage(folder / "topics.db")) as storage:
        catalog = Catalog(storage)
        with catalog.together():
            yield catalog


def settings_of(folder: Path, more: str = "", beginning: str = "") -> Path:
    """Write the settings of a server over a catalog with some topics."""
    with written(folder) as catalog:
        catalog.create_namespace(NS)
        catalog.create(f"{HERE}a", labels={"env": "prod"})
        catalog.create(f"{HERE}b")
    path = settings_file(folder, f'[topics]\ncatalog = "topics.db"\n{more}', policies="")
    path.write_text(beginning + path.read_text())
    return path


@pytest.fixture
def server(tmp_path: Path) -> Iterator[Server]:
    """Start a server with Pulsar's own listing."""
    with started(settings_of(tmp_path)) as server:
        yield server


def test_a_watch_is_sent_the_list_and_then_what_changes(server: Server, tmp_path: Path) -> None:
    """By pattern, by labels, or everything; what others write to the file, and what comes over HTTP."""
    with (
        watching(server) as all_,
        watching(server, pattern=f"{NS}/a.*") as named,
        watching(server, selector="env=prod") as labelled,
    ):
        assert [each.names() for each in (all_, named, labelled)] == [
            ("snapshot", "a", "b"), ("snapshot", "a"), ("snapshot", "a"),
        ]  # fmt: skip
        with written(tmp_path) as catalog:
            catalog.create(f"{HERE}a2")
            catalog.delete(f"{HERE}b")
        labels = {"kind": "labels", "topic": f"{HERE}a2", "set": {"env": "prod"}}
        assert server.ask("POST", "/pairs", labels)[0] in (204, 404)
        assert all_.names() == ("update", "-b", "a2")
        assert named.names() == ("update", "a2")
        assert server.ask("POST", "/pairs", labels)[0] == 204
        assert labelled.names() == ("update", "a2")


def test_a_watch_goes_on_where_another_one_ended(server: Server, tmp_path: Path) -> None:
    """Over a restart of the server as well; a topic made again is told, and a strange mark gets the list."""
    with watching(server) as first:
        first.names()
    with written(tmp_path) as catalog:
        catalog.delete(f"{HERE}a")
        catalog.create(f"{HERE}a")
        catalog.create(f"{HERE}c")
    with watching(server, first.mark) as again:
        assert again.names() == ("update", "-a", "a", "c")
    server.stop()
    with written(tmp_path) as catalog:
        catalog.create(f"{HERE}d")
    with started(tmp_path / "serving.toml") as restarted:
        with watching(restarted, again.mark) as later:
            assert later.names() == ("update", "d")
        for mark in (f"{later.mark}0", "1-0", "99-9", "x"):
            with watching(restarted, mark) as stranger:
                assert stranger.names() == ("snapshot", "a", "b", "c", "d")


def test_a_lister_drives_a_watch(tmp_path: Path) -> None:
    """It is sent properties and asked again; while it fails the list stays, which is said."""
    (tmp_path / "mine.py").write_text(SHOWN)
    path = settings_of(tmp_path, 'lister = { use = "shown" }\n', 'plugin_files = ["mine.py"]\n')
    with started(path) as server, watching(server) as watched, watching(server, "1-0") as second:
        assert watched.names() == second.names() == ("snapshot",)
        for number in range(20):
            with written(tmp_path) as catalog:
                catalog.set_pairs("properties", f"{HERE}a", {"shown": str(number)})
        assert watched.names() == second.names() == ("update", "a")
        with written(tmp_path) as catalog:
            catalog.create(f"{HERE}broken")
            catalog.set_pairs("properties", f"{HERE}b", {"shown": "yes"})
        assert watched.event() == ("trouble", {"sentence": "there is a broken topic"})
        with written(tmp_path) as catalog:
            catalog.delete(f"{HERE}broken")
        names = watched.names()
        while names[0] == "trouble":
            names = watched.names()
        assert names == ("update", "b")
        with watching(server) as third:
            assert third.names() == ("snapshot", "a", "b")


def test_a_topic_of_the_cluster_comes_at_once(tmp_path: Path) -> None:
    """What is watched is looked at more often than all else; a cluster that cannot be read is trouble."""
    with rest_cluster() as cluster:
        cluster.topics[NS] = [f"{HERE}a"]
        text = f'[collect]\nadmin = "{cluster.url}"\ntopics_every_s = 3000.0\n[topics]\ncatalog = "topics.db"\n'
        with started(settings_file(tmp_path, text, policies="")) as server, watching(server) as watched:
            assert watched.names() == ("snapshot", "a")
            cluster.topics[NS].append(f"{HERE}b")
            assert watched.names() == ("update", "b")
            cluster.status = 500
            assert watched.event()[0] == "trouble"
            cluster.status = None
            cluster.topics[NS].remove(f"{HERE}a")
            assert watched.names() == ("update", "-a")


def test_a_topic_that_was_deleted_and_created_again_between_two_looks_is_another_one(tmp_path: Path) -> None:
    """Its name was in every list; its labels went with the old one. The same instant in another zone is the same."""
    with rest_cluster() as cluster:
        cluster.topics[NS] = [f"{HERE}{name}" for name in "abcdefghijkl"]
        text = f'[collect]\nadmin = "{cluster.url}"\ntopics_every_s = 3000.0\n[topics]\ncatalog = "topics.db"\n'
        with started(settings_file(tmp_path, text, policies="")) as server, watching(server) as watched:
            watched.event()
            labels = {"kind": "labels", "topic": f"{HERE}k"}
            assert server.ask("POST", "/pairs", labels | {"set": {"env": "prod"}})[0] == 204
            awaited(lambda: len(cluster.asked_created) >= 2 * 12)
            cluster.created = {f"{HERE}b": "2026-11-28T13:00:00.000+01:00", f"{HERE}k": "2026-11-28T12:00:07.000Z"}

            assert watched.names() == ("update", "-k", "k")
            assert server.ask("POST", "/pairs", labels) == (200, {})


@pytest.mark.parametrize(
    ("fields", "status", "said"),
    [
        ({"namespace": []}, 400, "namespace is missing"),
        ({"namespace": "public"}, 400, "tenant/namespace"),
        ({"namespace": ["t/n", "t/m"]}, 400, "namespace is given twice"),
        ({"pattern": "(?!a)"}, 400, "has no lookaround"),
        ({"pattern": "a", "selector": "env"}, 400, "only one of them"),
        ({"selector": "="}, 400, "is no condition"),
        ({"mode": "some"}, 400, "there is no mode 'some'"),
        ({"property": "=a"}, 400, "a property has no key"),
        ({"property": "a"}, 400, "should be KEY=VALUE"),
        ({"property": ["a=1", "a=2"]}, 400, "a key is given twice"),
        ({"patern": "a"}, 400, "'patern' is not a field"),
        ({"mode": ["all", "persistent"]}, 400, "mode is given twice"),
    ],
)
def test_a_watch_that_cannot_be_served_is_refused(server: Server, fields: Any, status: int, said: str) -> None:
    """Before it begins, in a sentence."""
    got, answer = server.ask("GET", f"/watch?{urlencode({'namespace': NS} | fields, doseq=True)}")

    assert got == status
    assert said in answer["error"]


def test_a_server_says_that_it_watches_nothing(tmp_path: Path) -> None:
    """Full, or without topics."""
    with started(settings_of(tmp_path, "watchers_max = 1\n")) as server:
        with watching(server) as first:
            first.names()
            assert server.ask("GET", f"/watch?namespace={NS}")[0] == 503
        awaited(lambda: _is_served(server))
    with started(settings_file(tmp_path, policies="")) as server:
        assert server.ask("GET", f"/watch?namespace={NS}")[0] == 501


def _is_served(server: Server) -> bool:
    try:
        with watching(server):
            return True
    except AssertionError:
        return False


def test_a_watcher_that_does_not_read_is_cut_off_and_goes_on(server: Server, tmp_path: Path) -> None:
    """What others are sent does not wait for it, and it is sent what it missed when it is back."""
    with socket.socket() as slow, watching(server) as quick:
        slow.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4_096)
        slow.connect(("127.0.0.1", server.port))
        slow.sendall(f"GET /watch?namespace={NS} HTTP/1.1\r\nHost: ::1\r\n\r\n".encode())
        quick.names()
        mark = quick.mark
        for batch in range(15):
            with written(tmp_path) as catalog:
                for number in range(100):
                    catalog.create(f"{HERE}{batch:02d}-{number:02d}-{_LONG}")
            seen = 0
            while seen < 100:
                seen += len(quick.names()) - 1
        slow.settimeout(20)
        received = 0
        with suppress(ConnectionError):
            while more := slow.recv(1 << 20):
                received += len(more)
        assert received < 15 * 100 * 4_000
        with watching(server, mark) as again:
            assert len(again.names()) == 1_501


def test_a_server_that_ends_ends_its_watches(server: Server) -> None:
    """At once, and in the form of HTTP."""
    with watching(server) as watched:
        watched.names()
        assert server.stop() == 0
        assert watched._response.read() == b""


@contextmanager
def _not_reading(server: Server) -> Iterator[socket.socket]:
    """Watch without reading, through buffers that a list of a few megabytes fills."""
    with closing(socket.socket()) as slow:
        slow.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4_096)
        slow.connect(("127.0.0.1", server.port))
        slow.sendall(f"GET /watch?namespace={NS} HTTP/1.1\r\nHost: ::1\r\n\r\n".encode())
        slow.settimeout(1)
        # The beginning of the list: the rest waits for this reader.
        assert b"200 OK" in slow.recv(100)
        yield slow


def _rest(slow: socket.socket) -> tuple[str, bool]:
    """Return what a connection is sent from here on, and whether it then ended; if not, it is live."""
    received = bytearray()
    try:
        while more := slow.recv(1 << 20):
            received += more
    except TimeoutError:
        return received.decode(), False
    except ConnectionError:
        pass
    return received.decode(), True


def _many(folder: Path, **pairs: Any) -> None:
    with written(folder) as catalog:
        catalog.create_namespace(NS)
        for number in range(_MANY):
            catalog.create(f"{HERE}{number:05d}-{_LONG}", **pairs)


def test_a_namespace_that_goes_while_its_list_is_sent_ends_no_answer_in_another(tmp_path: Path) -> None:
    """The head is out by then: what follows is events, or the end of the connection."""
    _many(tmp_path)
    path = settings_file(tmp_path, '[topics]\ncatalog = "topics.db"\n', policies="")
    with started(path) as server, _not_reading(server) as slow:
        with written(tmp_path) as catalog:
            catalog.delete_namespace(NS)
        awaited(lambda: server.ask("GET", f"/watch?namespace={NS}")[0] == 404)
        text, _ = _rest(slow)
    assert "HTTP/1.1" not in text


def test_labels_that_change_while_the_list_is_sent_are_no_update(tmp_path: Path) -> None:
    """The list of names is the same."""
    _many(tmp_path)
    path = settings_file(tmp_path, '[topics]\ncatalog = "topics.db"\n', policies="")
    with started(path) as server, _not_reading(server) as slow:
        labels = {"kind": "labels", "topic": f"{HERE}00005-{_LONG}", "set": {"env": "prod"}}
        assert server.ask("POST", "/pairs", labels)[0] == 204
        text, has_ended = _rest(slow)
    assert not has_ended
    assert "event: update" not in text


def test_a_topic_made_again_while_its_list_is_sent_is_sent_as_such(tmp_path: Path) -> None:
    """Under a lister too: the connection that is live and the one that catches up hear the same."""
    (tmp_path / "mine.py").write_text(SHOWN)
    _many(tmp_path, properties={"shown": "1"})
    path = settings_file(tmp_path, '[topics]\ncatalog = "topics.db"\nlister = { use = "shown" }\n', policies="")
    path.write_text('plugin_files = ["mine.py"]\n' + path.read_text())
    again = f"{HERE}00005-{_LONG}"
    with started(path) as server, watching(server) as live:
        live.event()
        with _not_reading(server) as slow:
            with written(tmp_path) as catalog:
                catalog.delete(again)
                catalog.create(again, properties={"shown": "1"})
            update = {"removed": [again], "added": [again]}
            assert live.event() == ("update", update)
            text, has_ended = _rest(slow)
    assert not has_ended
    assert text.count("event: update") == 1
    assert json.loads(text.partition("event: update\ndata: ")[2].partition("\n")[0]) == update


def test_watchers_leave_room_for_brokers(tmp_path: Path) -> None:
    """They have half of the connections, from however many addresses they come."""
    query = f"GET /watch?namespace={NS} HTTP/1.1\r\nHost: ::1\r\n\r\n".encode()
    with started_apart(settings_of(tmp_path), prelude=FEW_FILES) as server, ExitStack() as stack:
        heads = []
        for number in range(40):
            source = (f"127.0.0.{2 + number % 2}", 0)
            connection = stack.enter_context(socket.create_connection(("127.0.0.1", server.port), 20, source))
            connection.sendall(query)
            heads.append(connection.recv(12))
        assert heads.count(b"HTTP/1.1 200") == 32
        assert heads.count(b"HTTP/1.1 503") == 8
        assert server.ask("GET", "/health")[0] == 200


def test_the_head_of_a_watch_alone_cannot_be_asked_for(server: Server) -> None:
    """It would be a watch."""
    with closing(HTTPConnection("127.0.0.1", server.port, timeout=20)) as connection:
        connection.request("HEAD", f"/watch?namespace={NS}")
        assert connection.getresponse().status == 405
