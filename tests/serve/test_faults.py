"""The decision server when things go wrong: a kill, a full disk, a clock that jumps, settings that do not fit."""

from __future__ import annotations

import shutil
import signal
import subprocess
import sys
from collections import Counter
from pathlib import Path
from threading import Event, Thread

import pyarrow.parquet as pq
import pytest

from tests.processes import awaited
from tests.serve.servers import POLICIES, decide, lookup_entry, read_table, settings_file, started, view

#: Runs a command of `lookup`.
_LOOKUP = [sys.executable, "-m", "lookup"]


def test_kill_in_mid_stream_leaves_whole_files(tmp_path: Path) -> None:
    """After kill -9 every file that is there can be read; what was acknowledged longer ago than a flush is in one."""
    acknowledged: list[int] = []
    ended = Event()
    with started(settings_file(tmp_path)) as server:

        def send() -> None:
            """Send batches until the server is gone."""
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
        server.process.send_signal(signal.SIGKILL)
        server.process.wait()
        ended.set()
        sender.join()
    files = [*server.record.rglob("[!.]*.parquet")]
    rows = read_table(server.record, "lookups")

    assert all(pq.ParquetFile(file).metadata.num_rows for file in files)
    # 0.2 s is the interval of a flush; the rest is for a machine that is busy.
    old = [ts for ts in acknowledged if ts < acknowledged[-1] - 5_000_000]
    assert len(rows) >= 200 * max(len(old), 2)


def test_server_goes_on_with_a_full_disk(tmp_path: Path) -> None:
    """While nothing can be written the server answers, /health says why, and lost rows are counted."""
    limit = "import resource; resource.setrlimit(resource.RLIMIT_FSIZE, (4000, resource.RLIM_INFINITY))"
    with started(settings_file(tmp_path, "max_pending_rows = 600"), prelude=limit) as server:
        for _ in range(4):
            entries = [lookup_entry(topic=f"persistent://public/default/{number}") for number in range(500)]
            assert server.ask("POST", "/record", {"broker": "b1:8080", "lookups": entries})[0] == 200
        status, content = awaited(lambda: ((a := server.ask("GET", "/health"))[0] == 503 and a) or None)
        decided = server.ask("POST", "/decide", decide(view("a", "b")))
        figures = {name: server.figure(f'lookup_{name}_rows{{table="lookups"}}') for name in ("written", "lost")} | {
            "pending": server.figure("lookup_pending_rows")
        }
        server.stop()

    assert (status, content["status"]) == (503, "failing")
    assert "File too large" in content["reason"]
    assert decided[0] == 200
    assert figures == {"written": 0, "lost": 1400, "pending": 600}
    assert [*server.record.rglob("*.parquet")] == []
    assert any("rows cannot be written and wait" in line for line in server.said)
    assert any("600 rows are lost" in line for line in server.said)


def test_rows_that_waited_are_written_once(tmp_path: Path) -> None:
    """When the disk has room again what waited is written, no row twice and none left out."""
    blocked = tmp_path / "record" / "lookups"
    with started(settings_file(tmp_path)) as server:
        blocked.write_text("in the way")
        for number in range(3):
            entries = [lookup_entry(topic=f"persistent://public/default/{number}-{index}") for index in range(50)]
            server.ask("POST", "/record", {"broker": "b1:8080", "lookups": entries})
            awaited(lambda: server.ask("GET", "/health")[0] == 503 or None)
        blocked.unlink()
        awaited(lambda: server.ask("GET", "/health")[0] == 200 or None)
        assert server.stop() == 0
    topics = Counter(row["topic"] for row in read_table(server.record, "lookups"))

    assert (len(topics), set(topics.values())) == (150, {1})
    assert any("rows are written again" in line for line in server.said)


def test_clock_that_jumps_is_counted(tmp_path: Path) -> None:
    """Decisions keep their order and no two have one instant, even if the clock goes back by years."""
    jump = (
        "import time; true = time.time_ns; calls = iter(range(10**9));"
        "time.time_ns = lambda: true() - (next(calls) % 2) * 10**17"
    )
    with started(settings_file(tmp_path), prelude=jump) as server:
        named = [server.ask("POST", "/decide", decide(view("a", "a")))[1]["decision"] for _ in range(10)]
        jumps = server.figure("lookup_clock_jumps_total")
        assert server.stop() == 0
    rows = [row for row in read_table(server.record, "decisions") if row["policy"] == "by-rack"]

    assert jumps >= 4
    assert [row["decision"] for row in rows] == named
    assert len({row["ts"] for row in rows}) == len({row["rolls"] for row in rows}) == 10


def test_new_settings_are_taken_after_they_are_checked(tmp_path: Path) -> None:
    """SIGHUP replaces the policies if the settings are right; if not, the old ones stay and the log says why."""
    path = settings_file(tmp_path)
    with started(path) as server:
        server.ask("POST", "/decide", decide(view("a", "b"), rack="b"))
        settings_file(tmp_path, policies=POLICIES.replace('"weighted-random"', '"no-such-selector"'))
        server.process.send_signal(signal.SIGHUP)
        awaited(lambda: [line for line in server.said if "stay as they were" in line and "no-such-selector" in line])
        kept = server.ask("POST", "/decide", decide(view("a", "b"), rack="b"))[1]
        settings_file(tmp_path, policies=POLICIES.replace('key = "rack"', 'key = "zone"'))
        server.process.send_signal(signal.SIGHUP)
        awaited(lambda: "the settings were loaded again" in server.said)
        taken = server.ask("POST", "/decide", decide(view("a", "b"), rack="b"))[1]
        path.write_text(path.read_text().replace('cluster = "c1"', 'cluster = "c2"'))
        server.process.send_signal(signal.SIGHUP)
        awaited(lambda: [line for line in server.said if "serving.cluster: cannot change" in line])
        figures = [server.figure(f'lookup_reloads_total{{outcome="{outcome}"}}') for outcome in ("refused", "taken")]
        assert server.stop() == 0
    rows = read_table(server.record, "decisions")

    assert (kept["broker"], kept["propensity"]) == ("b2:8080", 1.0)
    # The client names no zone, so all brokers are alike.
    assert taken["propensity"] == 0.5
    assert figures == [2, 1]
    assert len({row["settings"] for row in rows}) == 2


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


def refused(path: Path) -> str:
    """Return what a server that cannot start says."""
    ran = subprocess.run([*_LOOKUP, "serve", "--config", path], capture_output=True, text=True, timeout=60, check=False)
    assert ran.returncode == 2, ran.stderr
    return ran.stderr


@pytest.mark.parametrize(
    ("text", "policies", "sentence"),
    [
        (
            "",
            POLICIES.replace('name = "by-rack"', 'name = "by-rack"\nfilters = ["anti-affinity"]'),
            "policy 'by-rack': part 'anti-affinity' reads view.ownership: the owners of bundles",
        ),
        (
            'masked = ["properties.rack"]',
            POLICIES,
            "policy 'by-rack': part 'property-match' reads properties.rack, which serving.masked keeps out",
        ),
        ('masked = ["rack"]', POLICIES, "serving.masked: should be `client`, `properties` or `properties.KEY`"),
        ('token_file = "absent"', POLICIES, "absent cannot be read"),
        ("bind_to = 3", POLICIES, "serving.bind_to: there is no such key; did you mean 'bind'?"),
        ("", POLICIES.replace("by-rack", "other"), "serving.active: there is no policy named 'by-rack'"),
        ("", "policies = 3", "policies: should be a list"),
    ],
)
def test_settings_that_do_not_fit_are_refused_at_the_start(
    tmp_path: Path, text: str, policies: str, sentence: str
) -> None:
    """Settings with a mistake, or a policy that reads what nobody provides, end in a sentence and exit code 2."""
    path = settings_file(tmp_path, text, policies)
    if policies == "policies = 3":
        path.write_text(f"policies = 3\n{path.read_text().replace(policies, '')}")

    said = refused(path)

    assert sentence in said
    assert "Traceback" not in said


def test_taken_port_and_bad_folder_are_sentences(tmp_path: Path) -> None:
    """A port that another program has, and a record that is a file, end in a sentence and exit code 2."""
    with started(settings_file(tmp_path)) as server:
        other = tmp_path / "other"
        other.mkdir()
        path = settings_file(other)
        path.write_text(path.read_text().replace("port = 0", f"port = {server.port}"))
        assert f"127.0.0.1:{server.port} cannot be listened on: " in refused(path)
    shutil.rmtree(other / "record")
    (other / "record").write_text("")

    assert "record cannot be written" in refused(path)
