"""The decision server when things go wrong: a kill, a full disk, a clock that jumps, settings that do not fit."""

from __future__ import annotations

import gzip
import json
import os
import shutil
import signal
import socket
import subprocess
import sys
import time
import zlib
from collections import Counter
from collections.abc import Iterator
from contextlib import ExitStack
from http.client import HTTPConnection
from pathlib import Path
from threading import Event, Thread

import pyarrow.parquet as pq
import pytest
from psutil import Process

from lookup.errors import InputError, SettingsError
from lookup.serve.server import DecisionServer
from lookup.serve.verifying import verify
from tests.processes import awaited
from tests.serve.servers import (
    CLOCK,
    FEW_FILES,
    POLICIES,
    Server,
    decide,
    lookup_entry,
    read_table,
    settings_file,
    started,
    started_apart,
    view,
)


def test_kill_in_mid_stream_leaves_whole_files(tmp_path: Path) -> None:
    """After kill -9 every file that is there can be read; what was acknowledged longer ago than a flush is in one."""
    acknowledged: list[int] = []
    ended = Event()
    with started_apart(settings_file(tmp_path)) as server:

        def send() -> None:
            """Send batches."""
            while not ended.is_set():
                try:
                    entries = [lookup_entry() for _ in range(200)]
                    server.ask("POST", "/record", {"broker": "b1:8080", "lookups": entries})
                except OSError:
                    return
                acknowledged.append(entries[-1]["ts"])

        sender = Thread(target=send)
        sender.start()
        awaited(lambda: len([*server.record.rglob("[!.]*.parquet")]) >= 3)
        server.signal(signal.SIGKILL)
        server.wait()
        ended.set()
        sender.join()
    files = [*server.record.rglob("[!.]*.parquet")]
    rows = read_table(server.record, "lookups")

    assert all(pq.ParquetFile(file).metadata.num_rows for file in files)
    # 0.2 s is the interval of a flush; the rest is for a machine that is busy.
    old = [ts for ts in acknowledged if ts < acknowledged[-1] - 5_000_000]
    assert len(rows) >= 200 * max(len(old), 2)


def test_server_goes_on_with_a_full_disk(tmp_path: Path) -> None:
    """While nothing can be written the server decides, takes no lookups, says why, and counts what has no room."""
    limit = "import resource; resource.setrlimit(resource.RLIMIT_FSIZE, (4000, resource.RLIM_INFINITY))"
    with started_apart(settings_file(tmp_path, "max_pending_rows = 600"), prelude=limit) as server:
        entries = [lookup_entry(topic=f"persistent://public/default/{number}") for number in range(500)]
        taken = server.ask("POST", "/record", {"broker": "b1:8080", "lookups": entries})[0]
        status, content = awaited(lambda: ((a := server.ask("GET", "/health"))[0] == 503 and a) or None)
        refused = server.ask("POST", "/record", {"broker": "b1:8080", "lookups": entries})
        decided = {server.ask("POST", "/decide", decide(view("a", "b")))[0] for _ in range(200)}
        awaited(lambda: server.figure('lookup_lost_rows{table="decisions"}'))
        figures = [server.figure(f'lookup_{name}_rows{{table="lookups"}}') for name in ("written", "lost")]
        server.stop()

    assert (taken, status, content["status"]) == (200, 503, "failing")
    assert content["reason"].startswith("serving.record: ")
    assert "File too large" in content["reason"]
    assert refused == (507, {"error": content["reason"]})
    assert decided == {200}
    assert figures == [0, 0]
    assert read_table(server.record, "lookups") == []
    assert any("rows are lost, since they cannot be written: serving.record: " in line for line in server.said)


def test_rows_that_waited_are_written_once(tmp_path: Path) -> None:
    """When the disk has room again what waited is written, and what was refused can be sent; no row is there twice."""
    blocked = tmp_path / "record" / "lookups"
    with started(settings_file(tmp_path)) as server:
        blocked.write_text("in the way")
        batches = [
            {
                "broker": "b1:8080",
                "lookups": [lookup_entry(topic=f"persistent://public/default/{number}-{index}") for index in range(50)],
            }
            for number in range(3)
        ]
        assert server.ask("POST", "/record", batches[0])[0] == 200
        awaited(lambda: server.ask("GET", "/health")[0] == 503 or None)
        assert [server.ask("POST", "/record", body)[0] for body in batches[1:]] == [507, 507]
        blocked.unlink()
        awaited(lambda: server.ask("GET", "/health")[0] == 200 or None)
        assert [server.ask("POST", "/record", body)[0] for body in batches[1:]] == [200, 200]
        assert server.stop() == 0
    topics = Counter(row["topic"] for row in read_table(server.record, "lookups"))

    assert (len(topics), set(topics.values())) == (150, {1})
    assert any("rows are written again" in line for line in server.said)


def test_new_settings_are_taken_after_they_are_checked(tmp_path: Path) -> None:
    """SIGHUP replaces the policies if the settings are right; if not, the old ones stay and the log says why."""
    path = settings_file(tmp_path)
    with started(path) as server:
        server.ask("POST", "/decide", decide(view("a", "b"), rack="b"))
        settings_file(tmp_path, policies=POLICIES.replace('"weighted-random"', '"no-such-selector"'))
        server.signal(signal.SIGHUP)
        awaited(lambda: [line for line in server.said if "stay as they were" in line and "no-such-selector" in line])
        kept = server.ask("POST", "/decide", decide(view("a", "b"), rack="b"))[1]
        settings_file(tmp_path, policies=POLICIES.replace('key = "rack"', 'key = "zone"'))
        server.signal(signal.SIGHUP)
        awaited(lambda: "the settings were loaded again" in server.said)
        taken = server.ask("POST", "/decide", decide(view("a", "b"), rack="b"))[1]
        path.write_text(path.read_text().replace('cluster = "c1"', 'cluster = "c2"'))
        server.signal(signal.SIGHUP)
        awaited(lambda: [line for line in server.said if "serving.cluster: cannot change" in line])
        figures = [server.figure(f'lookup_reloads_total{{outcome="{outcome}"}}') for outcome in ("refused", "taken")]
        assert server.stop() == 0
    rows = read_table(server.record, "decisions")

    assert (kept["broker"], kept["propensity"]) == ("b2:8080", 1.0)
    # The client names no zone, so all brokers are alike.
    assert taken["propensity"] == 0.5
    assert figures == [2, 1]
    assert len({row["settings"] for row in rows}) == 2


def test_clock_that_jumped_ahead_is_counted_once(tmp_path: Path) -> None:
    """When the clock comes back from years ahead that is one jump, however many decisions follow."""
    ahead = tmp_path / "ahead"
    jump = f"time.time_ns=lambda:true() + os.path.exists({str(ahead)!r}) * 10**17"
    with started_apart(settings_file(tmp_path), prelude=f"{CLOCK}; import os; {jump}") as server:
        for number in range(6):
            if number == 1:
                ahead.touch()
            if number == 2:
                ahead.unlink()
            assert server.ask("POST", "/decide", decide(view("a", "a")))[0] == 200
        jumps = server.figure("lookup_clock_jumps_total")
        assert server.stop() == 0
    rows = [row for row in read_table(server.record, "decisions") if row["policy"] == "by-rack"]

    assert jumps == 1
    assert [row["decision"].rpartition("-")[2] for row in rows] == [f"{number:06d}" for number in range(1, 7)]


def test_settings_loaded_while_a_body_comes(tmp_path: Path) -> None:
    """A request whose body comes after SIGHUP is decided by the new settings alone, so that it can be repeated."""
    body = json.dumps(decide(view("a", "b", "a"))).encode()
    with started(settings_file(tmp_path, "seed = 1")) as server, open_socket(server) as slow:
        slow.sendall(b"POST /decide HTTP/1.1\r\nHost: ::1\r\nContent-Length: %d\r\n\r\n" % len(body) + body[:9])
        # Another request is answered, so the head of the first has been read.
        server.ask("POST", "/decide", decide(view("a", "b", "a")))
        settings_file(tmp_path, "seed = 2", POLICIES.replace('key = "rack"', 'key = "zone"'))
        server.signal(signal.SIGHUP)
        awaited(lambda: "the settings were loaded again" in server.said)
        slow.sendall(body[9:])
        late = json.loads(slow.recv(9999).rpartition(b"\r\n")[2])
        assert server.stop() == 0
    verified = verify(str(server.record))

    # No broker has a zone, so all three are alike.
    assert late["propensity"] == pytest.approx(1 / 3)
    assert (verified.agree, dict(verified.causes)) == (2, {})


def open_socket(server: Server) -> socket.socket:
    """Connect to a server."""
    return socket.create_connection(("127.0.0.1", server.port), timeout=60)


@pytest.fixture(scope="module")
def guarded(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    """A server that has a token."""
    folder = tmp_path_factory.mktemp("guarded")
    (folder / "token").write_text("s3cret")
    with started(settings_file(folder, 'token_file = "token"')) as server:
        yield server


_HEAD = b"POST /decide HTTP/1.1\r\nHost: b\r\nAuthorization: Bearer s3cret\r\n"


@pytest.mark.parametrize(
    ("sent", "status"),
    [
        (b"OPTIONS * HTTP/1.1\r\nHost: b\r\nAuthorization: Bearer s3cret\r\n\r\n", 404),
        (b"CONNECT b:1 HTTP/1.1\r\nHost: b\r\nAuthorization: Bearer s3cret\r\n\r\n", 404),
        (b"GET http://b HTTP/1.1\r\nHost: b\r\nAuthorization: Bearer s3cret\r\n\r\n", 404),
        (b"GET /health HTTP/1.0\r\n\r\n", 200),
        (b"\x16\x03\x01\x00\xa5\x01\x00\x00\xa1\x03\x03" + b"x" * 160, 400),
        (b"s3cret \x00\xff\r\n\r\n", 400),
        (_HEAD + b"X-Broker: s3cret\x00\r\n\r\n", 400),
        (_HEAD + b"X-Broker: " + b"s3cret" * 20_000 + b"\r\n\r\n", 400),
        (_HEAD + b"Content-Length: -1\r\n\r\n", 400),
        (_HEAD + b"Content-Length: 5\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n", 400),
        (_HEAD + b"Transfer-Encoding: chunked\r\n\r\ns3cret\r\n", 400),
        (_HEAD + b"Transfer-Encoding: chunked\r\n\r\n2\r\n{}\r\n0\r\n\r\n", 400),
        (_HEAD + b"Content-Encoding: gzip\r\nContent-Length: 6\r\n\r\ns3cret", 400),
        (_HEAD + b"Content-Length: 200001\r\nContent-Encoding: deflate\r\n\r\n", 413),
    ],
)
def test_what_is_no_request_of_a_broker_is_answered(guarded: Server, sent: bytes, status: int) -> None:
    """Bytes that are no HTTP, or no request of the protocol, are answered, and nothing of them is in the log."""
    with open_socket(guarded) as connection:
        connection.sendall(sent + (zlib.compress(b" " * 200_000_000)[:200_001] if b"deflate" in sent else b""))
        head = connection.recv(9999)

    assert head.split()[1] == b"%d" % status
    assert guarded.ask("GET", "/health")[0] == 200
    assert len(guarded.said) == 1


def test_body_that_is_cut_off_is_counted(guarded: Server) -> None:
    """A broker that hangs up in the middle of a body leaves nothing behind but a count."""
    token = {"Authorization": "Bearer s3cret"}
    counted = 'lookup_requests_total{path="/record",status="400"} 1.0'
    with open_socket(guarded) as connection:
        connection.sendall(_HEAD.replace(b"decide", b"record") + b"Content-Length: 99\r\n\r\n{")

    awaited(lambda: counted in guarded.ask("GET", "/metrics", headers=token)[1])
    assert len(guarded.said) == 1


def test_bug_of_the_server_is_counted_as_one(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """It is no mistake of the client's."""

    async def fail(*_: object) -> None:
        raise RuntimeError("a bug")

    monkeypatch.setattr(DecisionServer, "_record", fail)
    with started(settings_file(tmp_path)) as server:
        assert server.ask("POST", "/record")[0] == 500
        assert server.figure('lookup_requests_total{path="/record",status="500"}') == 1


def test_connections_without_a_request_are_closed(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """A client that sends no whole head in time is disconnected, and one that asks goes on."""
    monkeypatch.setattr("lookup.serve.connections.PATIENCE_S", 0.3)
    with started(settings_file(tmp_path)) as server:
        with open_socket(server) as silent, open_socket(server) as slow, open_socket(server) as asking:
            slow.sendall(b"POST /decide HTTP/1.1\r\nHost:")
            asking.sendall(b"GET /health HTTP/1.1\r\nHost: ::1\r\n\r\n")
            assert asking.recv(9999).startswith(b"HTTP/1.1 200")
            assert (silent.recv(9999), slow.recv(9999)) == (b"", b"")
            asking.sendall(b"GET /health HTTP/1.1\r\nHost: ::1\r\n\r\n")
            assert asking.recv(9999).startswith(b"HTTP/1.1 200")
        assert server.stop() == 0
    assert len(server.said) == 1


def test_connections_are_bounded(tmp_path: Path) -> None:
    """Connections beyond what open files allow are answered 503 and counted; the others and the record go on."""
    with started_apart(settings_file(tmp_path), prelude=FEW_FILES) as server, ExitStack() as stack:
        kept = HTTPConnection("127.0.0.1", server.port, timeout=60)
        stack.callback(kept.close)
        kept.request("GET", "/health")
        kept.getresponse().read()
        sockets = [stack.enter_context(open_socket(server)) for _ in range(60)]
        refused = [connection.recv(9999)[:12] for connection in sockets[-20:]]
        kept.request("POST", "/decide", json.dumps(decide(view("a", "b"))))
        status = kept.getresponse()
        assert (status.status, status.read()[:2]) == (200, b'{"')
        awaited(lambda: read_table(server.record, "decisions"))
        for connection in sockets:
            connection.close()
        counted = awaited(lambda: server.figure('lookup_requests_total{path="other",status="503"}'))
        assert server.stop() == 0

    assert refused == [b"HTTP/1.1 503"] * 20
    # Of 61, half of 64 are admitted, since all come from one address.
    assert 29 <= counted <= 39
    assert len(server.said) == 1


def test_loaded_settings_hold_from_then_on(tmp_path: Path) -> None:
    """After SIGHUP the new token is needed, views are asked for again if they are read otherwise, and names go on."""
    token, seen = tmp_path / "token", view("a", "b")
    token.write_text("first")
    first, second = ({"Authorization": f"Bearer {text}"} for text in ("first", "second"))
    with started(settings_file(tmp_path, 'token_file = "token"')) as server:
        named = [server.ask("POST", "/decide", decide(seen), first)[1]["decision"]]
        token.write_text("second")
        settings_file(tmp_path, 'token_file = "token"\nprefix = "labels."')
        server.signal(signal.SIGHUP)
        awaited(lambda: "the settings were loaded again" in server.said)
        assert server.ask("POST", "/decide", decide(seen), first)[0] == 401
        assert server.ask("POST", "/decide", decide(seen) | {"view": {"id": seen["id"]}}, second)[0] == 409
        status, content = server.ask("POST", "/decide", decide(seen), second)
        named.append(content["decision"])
        assert server.stop() == 0
    verified = verify(str(server.record))

    # With the other prefix no broker has a rack.
    assert (status, content["declined"]) == (200, "no-odds")
    assert len({*named}) == 2
    assert (verified.agree, verified.decisions) == (2, 2)


def test_bound_on_waiting_rows_is_loaded(tmp_path: Path) -> None:
    """After SIGHUP the new bound holds: while as many rows wait, lookups are refused and the key is named."""
    path = settings_file(tmp_path, policies="")
    path.write_text(path.read_text().replace("flush_s = 0.2", "flush_s = 3600"))
    batch = {"broker": "b1:8080", "lookups": [lookup_entry(), lookup_entry()]}
    with started(path) as server:
        path.write_text(path.read_text() + "max_pending_rows = 1\n")
        server.signal(signal.SIGHUP)
        awaited(lambda: "the settings were loaded again" in server.said)
        answers = [server.ask("POST", "/record", batch) for _ in range(2)]
        ready = server.ask("GET", "/ready/records")[0]
        assert server.stop() == 0

    assert ([status for status, _ in answers], ready) == ([200, 507], 503)
    assert answers[1][1]["error"].startswith("serving.max_pending_rows: 2 rows wait to be written")
    assert len(read_table(server.record, "lookups")) == 2


def test_view_that_found_no_room_is_recorded_again(tmp_path: Path) -> None:
    """A view of which rows were lost is written with the next decision on it, which can be verified."""
    blocked, seen = tmp_path / "record" / "lookups", view("a", "b", "a")
    with started(settings_file(tmp_path, "max_pending_rows = 9")) as server:
        blocked.write_text("in the way")
        server.ask("POST", "/record", {"broker": "b1:8080", "lookups": [lookup_entry() for _ in range(8)]})
        server.ask("POST", "/decide", decide(seen))
        lost = server.figure('lookup_lost_rows{table="views"}')
        blocked.unlink()
        awaited(lambda: server.figure("lookup_pending_rows") == 0)
        answer = server.ask("POST", "/decide", decide(seen))[1]
        assert server.stop() == 0
    verified = verify(str(server.record))

    assert lost > 0
    assert answer["decision"] in {row["decision"] for row in read_table(server.record, "decisions")}
    assert verified.agree == verified.decisions > 0


def test_what_is_remembered_is_bounded(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """Of bundles and views beyond the bound the oldest are forgotten: no propensity, and another copy of the view."""
    for name in ("_MOST_BUNDLES", "_MOST_VIEWS"):
        monkeypatch.setattr(f"lookup.serve.recording.{name}", 1)
    bundles = ["public/default/0x00000000_0x80000000", "public/default/0x80000000_0xffffffff"]
    with started(settings_file(tmp_path)) as server:
        for bundle, seen in zip((*bundles, bundles[1]), (view("a"), view("a", "b"), view("a")), strict=True):
            assert server.ask("POST", "/decide", decide(seen, bundle=bundle))[1]["broker"] == "b1:8080"
        entries = [lookup_entry(bundle=bundle) for bundle in bundles]
        server.ask("POST", "/record", {"broker": "b1:8080", "lookups": entries})
        assert server.stop() == 0

    assert [row["propensity"] for row in read_table(server.record, "lookups")] == [None, 1.0]
    assert [row["broker"] for row in read_table(server.record, "views")].count("b1:8080") == 3


def test_restarted_server_adds_to_the_record(tmp_path: Path) -> None:
    """A server that begins again in one folder writes beside what is there; brokers send their views again."""
    path, seen = settings_file(tmp_path), view("a", "a")
    for _ in range(2):
        with started(path) as server:
            assert server.ask("POST", "/decide", decide(seen) | {"view": {"id": seen["id"]}})[0] == 409
            assert server.ask("POST", "/decide", decide(seen))[0] == 200
            assert server.stop() == 0
    rows = [row for row in read_table(server.record, "decisions") if row["policy"] == "by-rack"]

    assert len({row["decision"] for row in rows}) == 2


@pytest.mark.parametrize(
    ("text", "policies", "place"),
    [
        ("", POLICIES.replace('name = "by-rack"', 'name = "by-rack"\nfilters = ["anti-affinity"]'), "view.ownership"),
        ('masked = ["properties.rack"]', POLICIES, "reads properties.rack"),
        ('masked = ["properties"]', POLICIES, "reads properties,"),
        ("", POLICIES.replace('"weighted-random"', '"round-robin"'), "view.memory"),
        ('masked = ["rack"]', POLICIES, "serving.masked: "),
        ('token_file = "absent"', POLICIES, "absent cannot be read"),
        ("bind_to = 3", POLICIES, "serving.bind_to: "),
        ("", POLICIES.replace("by-rack", "other"), "serving.active: .*'by-rack'"),
        ("", "policies = 3", "policies: "),
    ],
)
def test_settings_that_do_not_fit_are_refused_at_the_start(
    tmp_path: Path, text: str, policies: str, place: str
) -> None:
    """Settings with a mistake, or a policy that reads what nobody provides, are named."""
    path = settings_file(tmp_path, text, policies)
    if policies == "policies = 3":
        path.write_text(f"policies = 3\n{path.read_text().replace(policies, '')}")

    with pytest.raises((SettingsError, InputError), match=place), started(path):
        pass


def test_taken_port_and_bad_folder_are_refused(tmp_path: Path) -> None:
    """A port that another program has, and a record that is a file, are named."""
    with started(settings_file(tmp_path)) as server:
        other = tmp_path / "other"
        other.mkdir()
        path = settings_file(other)
        path.write_text(path.read_text().replace("port = 0", f"port = {server.port}"))
        with pytest.raises(InputError, match=f"127.0.0.1:{server.port} "), started(path):
            pass
    shutil.rmtree(other / "record")
    (other / "record").write_text("")

    with pytest.raises(InputError, match="record cannot be written"), started(path):
        pass


def test_idle_strangers_lock_no_broker_out(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """Five times as many connections as there may be, silent or answered once: one with the token is served soon."""
    monkeypatch.setattr("lookup.serve.connections._MOST_CONNECTIONS", 100)
    monkeypatch.setattr("lookup.serve.connections.PATIENCE_S", 1.0)
    (tmp_path / "token").write_text("secret")
    head = b"Host: b\r\n"
    asked = [b"", b"GET /health HTTP/1.1\r\n" + head + b"\r\n", b"GET /metrics HTTP/1.1\r\n" + head + b"\r\n"]
    with started(settings_file(tmp_path, 'token_file = "token"')) as server, ExitStack() as stack:
        for number in range(500):
            connection = stack.enter_context(socket.create_connection(("127.0.0.1", server.port), timeout=30))
            connection.sendall(asked[number % 3])
        began = time.monotonic()

        def served() -> bool:
            try:
                status, _ = server.ask("GET", "/metrics", headers={"Authorization": "Bearer secret"})
            except OSError:
                return False
            return status == 200

        awaited(served)

        # Connections that were answered would else stay for a minute.
        assert time.monotonic() - began < 15
        assert server.stop() == 0


@pytest.mark.parametrize("path", ["/health", "/metrics", "/decide"])
def test_connections_without_the_token_end_with_their_answer(tmp_path: Path, path: str) -> None:
    """Those with it stay open."""
    (tmp_path / "token").write_text("secret")
    with started(settings_file(tmp_path, 'token_file = "token"')) as server:
        for token, stays in (("wrong", False), ("secret", True)):
            kept = HTTPConnection("127.0.0.1", server.port, timeout=20)
            kept.request("GET", path, headers={"Authorization": f"Bearer {token}"})
            answer = kept.getresponse()
            answer.read()

            assert answer.will_close != stays
            kept.close()


@pytest.mark.parametrize(
    "headers",
    [
        {"Origin": "http://evil.example"},
        {"Content-Type": "text/plain"},
        {"Content-Type": "multipart/form-data; boundary=x"},
    ],
)
def test_pages_of_a_browser_are_refused(tmp_path: Path, headers: dict[str, str]) -> None:
    """Any page that is open on the machine of a server without a token may send these without asking first."""
    with started(settings_file(tmp_path)) as server:
        status, content = server.ask("POST", "/decide", decide(view("a", "b")), headers)

        assert (status, "Content-Type: application/json" in content["error"]) == (403, True)
        assert server.ask("POST", "/decide", decide(view("a", "b")), {"Content-Type": "application/json"})[0] == 200


@pytest.mark.parametrize(
    ("host", "status"),
    [
        ("127.0.0.1:8900", 200),
        ("[::1]:8900", 200),
        ("10.1.2.3", 200),
        ("localhost", 200),
        ("LOCALHOST.:8900", 200),
        ("a.localhost:8900", 200),
        ("evil.example:8900", 403),
        ("127.0.0.1.evil.example", 403),
        ("localhost.evil.example", 403),
        ("", 403),
    ],
)
def test_a_name_that_is_not_its_own_is_refused(guarded: Server, tmp_path: Path, host: str, status: int) -> None:
    """A page may have its name lead to this machine; it cannot know a token, with which any name will do."""
    with started(settings_file(tmp_path)) as server:
        found, content = server.ask("GET", "/health", headers={"Host": host})

    assert (found, "serving.bind" in content.get("error", "")) == (status, status == 403)
    assert guarded.ask("GET", "/metrics", headers={"Host": host, "Authorization": "Bearer s3cret"})[0] == 200


def test_a_server_may_be_named_as_it_is_bound(tmp_path: Path) -> None:
    """`serving.bind` may be a name."""
    with started(settings_file(tmp_path, 'bind = "localhost"')) as server:
        assert server.ask("GET", "/health", headers={"Host": "localhost:80"})[0] == 200


@pytest.mark.parametrize("is_one", [True, False], ids=["much", "many"])
def test_a_body_that_unpacks_to_much_is_refused_without_a_token(tmp_path: Path, *, is_one: bool) -> None:
    """390 kB that would be 400 MB, or 19,000 times nothing, cost neither the memory nor the time of that."""
    packer = zlib.compressobj(9, wbits=31)
    body = b"".join([*(packer.compress(bytes(1_000_000)) for _ in range(400)), packer.flush()])
    if not is_one:
        body = gzip.compress(b"") * 19_000
    (tmp_path / "token").write_text("s3cret")
    head = b"POST /decide HTTP/1.1\r\nHost: b\r\nContent-Encoding: gzip\r\nContent-Length: %d\r\n\r\n" % len(body)
    with started_apart(settings_file(tmp_path, 'token_file = "token"')) as server:
        (process,) = (child for child in Process().children() if "serve" in child.cmdline())
        before, began = process.memory_info().rss, time.monotonic()
        connections = [open_socket(server) for _ in range(4)]
        for connection in connections:
            connection.sendall(head + body)
        statuses = [connection.recv(999).split()[1] for connection in connections]
        most = max(process.memory_info().rss, _peak(process.pid))

        assert statuses == [b"401"] * 4
        assert most - before < 100_000_000
        assert time.monotonic() - began < 30
        assert server.ask("GET", "/health")[0] == 200
    for connection in connections:
        connection.close()


def _peak(process: int) -> int:
    """Return the most memory that a process has had, where the system says so."""
    status = Path(f"/proc/{process}/status")
    lines = status.read_text().splitlines() if status.exists() else []
    return max((int(line.split()[1]) * 1024 for line in lines if line.startswith("VmHWM")), default=0)


def test_a_second_server_on_a_record_is_refused(tmp_path: Path) -> None:
    """What two servers write would not fit together; the lock ends with its process, however that ends."""
    settings = settings_file(tmp_path)
    command = [sys.executable, "-m", "lookup", "serve", str(settings)]
    with started_apart(settings) as server:
        second = subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)
        server.signal(signal.SIGKILL)
        server.wait()

    assert (second.returncode, len(second.stderr.splitlines())) == (2, 1)
    assert second.stderr.startswith(f"error: {tmp_path}/record: ")
    with started(settings) as server:
        assert server.ask("GET", "/health")[0] == 200


@pytest.mark.parametrize("kind", ["pipe", "folder", "long", "binary"])
def test_a_token_in_no_plain_file_is_refused(tmp_path: Path, kind: str) -> None:
    """A pipe would be waited for, and an endless file read without end."""
    path = tmp_path / "token"
    if kind == "pipe":
        os.mkfifo(path)
    elif kind == "folder":
        path.mkdir()
    else:
        path.write_bytes(b"x" * 70_000 if kind == "long" else b"\xff\xfe")

    with (
        pytest.raises(SettingsError, match=r"^serving\.token_file: "),
        started(settings_file(tmp_path, 'token_file = "token"')),
    ):
        pass


@pytest.mark.skipif(not hasattr(socket, "TCP_USER_TIMEOUT"), reason="only Linux ends such connections")
def test_who_reads_no_answers_is_disconnected(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """After a while, so that they hold no connection and no memory for ever; others are served meanwhile."""
    monkeypatch.setattr("lookup.serve.connections._UNREAD_MS", 1000)
    with started(settings_file(tmp_path)) as server, socket.socket() as greedy:
        # As little as possible waits in this machine's buffers.
        greedy.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
        greedy.connect(("127.0.0.1", server.port))
        greedy.settimeout(0.2)

        def ask() -> bool:
            """Return whether it is gone."""
            try:
                greedy.send(b"GET /metrics HTTP/1.1\r\nHost: x\r\n\r\n" * 200)
            except TimeoutError:
                return False
            except OSError:
                return True
            return False

        awaited(ask, "the end of the connection")
        assert server.ask("GET", "/health")[0] == 200
