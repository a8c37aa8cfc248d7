"""Lookups that brokers number: gaps are counted, no lookup is recorded twice, and a restart forgets nothing."""

from __future__ import annotations

import shutil
import signal
import subprocess
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import pytest

from tests.processes import awaited
from tests.serve.restcluster import rest_cluster
from tests.serve.servers import Server, lookup_entry, read_table, settings_file, started, started_apart
from tests.serve.statefile import StateFile, connect

_BROKER = "b1:8080"


def batch(numbers: Sequence[int], start: str = "first", *, up_to: int | None = None, **changes: Any) -> dict[str, Any]:
    """Return a batch of lookups with numbers, each of a topic of its own."""
    lookups = [lookup_entry(number=number, topic=f"persistent://public/default/{start}-{number}") for number in numbers]
    end = numbers[-1] if up_to is None else up_to
    return {"broker": _BROKER, "start": start, "upTo": end, "dropped": 0, "lookups": lookups} | changes


def send(server: Server, *batches: dict[str, Any]) -> list[int]:
    """Send batches, and return the statuses of their answers."""
    return [server.ask("POST", "/record", body)[0] for body in batches]


def lost(server: Server) -> tuple[float, float]:
    """Return what the broker, and what all brokers have lost, as the server counts it."""
    return server.figure(f'lookup_sender_dropped{{broker="{_BROKER}"}}'), server.figure("lookup_dropped_lookups")


def topics(record: Path) -> list[str]:
    """Return the recorded topics without what all of them begin with, sorted."""
    return sorted(row["topic"].rpartition("/")[2] for row in read_table(record, "lookups"))


@pytest.fixture
def server(tmp_path: Path) -> Iterator[Server]:
    """Start a server that only records."""
    with started(settings_file(tmp_path, policies="")) as server:
        yield server


def test_gaps_between_numbers_are_counted(server: Server) -> None:
    """Those between lookups, between batches, and behind the last lookup, of a batch without any as well."""
    assert send(server, batch([1, 2, 5]), batch([8, 9], up_to=11), batch([], up_to=15)) == [200, 200, 200]
    assert lost(server) == (10, 10)
    assert server.stop() == 0

    assert topics(server.record) == ["first-1", "first-2", "first-5", "first-8", "first-9"]


def test_batch_that_comes_again_is_recorded_once(server: Server) -> None:
    """Its sender may not have heard the answer; the answer to the second one is the same."""
    answers = [server.ask("POST", "/record", batch([1, 2, 4])) for _ in range(3)]

    assert answers == [(200, {"accepted": 3, "refused": 0})] * 3
    assert lost(server) == (1, 1)
    assert server.figure("lookup_recorded_lookups_total") == 3
    assert server.stop() == 0
    assert topics(server.record) == ["first-1", "first-2", "first-4"]


def test_lookups_that_are_refused_are_not_lost(server: Server) -> None:
    """They are counted as refused, with a reason for their sender."""
    body = batch([1, 2, 3])
    body["lookups"][1]["topic"] = "no topic"

    assert server.ask("POST", "/record", body)[1]["refused"] == 1
    assert (lost(server), server.figure("lookup_refused_lookups_total")) == ((0, 0), 1)


def test_broker_that_starts_again_numbers_anew(server: Server) -> None:
    """What it had lost before stays counted, and a late batch of the start before is no news."""
    send(server, batch([1, 4], "one"), batch([1, 2], "two"), batch([6], "one"), batch([3], "two"))

    assert lost(server) == (3, 3)
    assert server.stop() == 0
    assert topics(server.record) == ["one-1", "one-4", "one-6", "two-1", "two-2", "two-3"]


def test_record_that_begins_later_counts_what_the_broker_says(server: Server) -> None:
    """Lookups before the first batch may be in another record: of those only the broker's own count is known."""
    send(server, batch([5001, 5003], up_to=5004, dropped=9))

    assert lost(server) == (9, 9)


@pytest.mark.parametrize("end", [signal.SIGTERM, signal.SIGKILL])
def test_count_goes_on_after_a_restart(tmp_path: Path, end: signal.Signals) -> None:
    """Rows stored and counted as lost are all that were sent, also if the server was killed with rows in memory."""
    settings = settings_file(tmp_path, policies="")
    settings.write_text(settings.read_text().replace("flush_s = 0.2", "flush_s = 3600"))
    with started_apart(settings) as server:
        assert send(server, batch([1, 2, 4]), batch(range(5, 105))) == [200, 200]
        server.signal(end)
        server.wait()
    with started_apart(settings) as server:
        again = lost(server)
        assert send(server, batch([105, 107])) == [200]
        counted = lost(server)[0]
        assert server.stop() == 0
    stored = len(topics(server.record))

    assert again == (1, 1)
    assert (stored + counted, counted) == (107, 2 if end is signal.SIGTERM else 102)


def test_damaged_file_is_no_reason_not_to_start(tmp_path: Path) -> None:
    """The count begins anew, with what brokers say of themselves."""
    settings = settings_file(tmp_path, policies="")
    (tmp_path / "record" / "lookups").mkdir(parents=True)
    (tmp_path / "record" / "lookups" / "part-1-000001-2026-01-01.parquet").write_bytes(b"PAR1")

    with started(settings) as server:
        assert send(server, batch([3], dropped=2)) == [200]
        assert lost(server) == (2, 2)


def test_brokers_without_numbers_are_counted_as_they_say(tmp_path: Path) -> None:
    """With the jar of an earlier release they count for themselves, from 0 when they start; their rows are recorded."""
    settings = settings_file(tmp_path, policies="")
    counted = []
    for totals in ((17, 17, 20), (20, 3)):
        with started(settings) as server:
            for total in totals:
                body = {"broker": _BROKER, "dropped": total, "lookups": [lookup_entry()] * 2}
                assert send(server, body) == [200]
                counted.append(lost(server)[1])
            assert server.stop() == 0

    assert counted == [17, 17, 20, 20, 23]
    assert len(topics(tmp_path / "record")) == 10


@pytest.mark.parametrize(
    ("changes", "sentence"),
    [
        ({"start": 7}, "start is 7, not a text"),
        ({"upTo": -1}, "upTo is -1, not a number of lookups"),
        ({"upTo": 2}, "lookups[2].number is 3, and should be above 2 and at most upTo, 2"),
        ({"lookups": [lookup_entry()]}, "lookups[0].number is None, not a whole number"),
        ({"lookups": [lookup_entry(number="1")]}, "lookups[0].number is '1', not a whole number"),
        ({"lookups": [lookup_entry(number=2), lookup_entry(number=2)]}, "lookups[1].number is 2, and should be"),
        ({"lookups": [3]}, "lookups[0] is 3"),
    ],
)
def test_numbers_that_do_not_ascend_are_a_sentence(server: Server, changes: dict[str, Any], sentence: str) -> None:
    """The batch is refused as a whole, and nothing of it is recorded or counted."""
    status, content = server.ask("POST", "/record", batch([1, 2, 3]) | changes)

    assert (status, sentence in content["error"]) == (400, True), content
    assert lost(server) == (0, 0)


# When rows cannot be stored


@pytest.fixture
def small_disk(tmp_path: Path) -> Iterator[Path]:
    """Mount a disk of 256 KiB as the folder of the record; skip the test where that is not allowed."""
    folder = tmp_path / "record"
    folder.mkdir()
    mounted = subprocess.run(
        ["mount", "-t", "tmpfs", "-o", "size=256k", "tmpfs", folder], capture_output=True, check=False
    )
    if mounted.returncode:
        pytest.skip("no disk can be mounted")
    yield folder
    subprocess.run(["umount", "-l", folder], check=True)


@pytest.mark.process
def test_full_disk_of_the_catalog_is_named(tmp_path: Path, small_disk: Path) -> None:
    """With its file and key, in the log and in /health; rows go on being recorded elsewhere, and topics later."""
    filler, catalog = small_disk / "filler", small_disk / "topics.db"
    with rest_cluster() as cluster:
        cluster.topics["public/default"] = ["persistent://public/default/a"]
        text = f'[collect]\nadmin = "{cluster.url}"\ntopics_every_s = 0.1\n[topics]\ncatalog = "{catalog}"\n'
        settings = settings_file(tmp_path, text, policies="")
        settings.write_text(settings.read_text().replace('record = "record"', 'record = "elsewhere"'))
        with started(settings) as server:
            awaited(lambda: server.ask("POST", "/list", {"namespace": "public/default"})[0] == 200)
            filler.write_bytes(bytes(shutil.disk_usage(small_disk).free))
            cluster.topics["public/default"] += [f"persistent://public/default/{n:0200}" for n in range(200)]
            _, content = awaited(lambda: server.ask("GET", "/health"), enough=lambda answer: answer[0] == 503)
            assert send(server, batch([1])) == [200]
            filler.unlink()
            awaited(lambda: server.ask("GET", "/health")[0] == 200)

    assert f"topics.catalog: the catalog {catalog} cannot be used: database or disk is full" in content["reason"]
    assert any(f"topics.catalog: the catalog {catalog}" in line for line in server.said)


def test_first_batch_of_a_start_is_acknowledged_when_it_is_stored(tmp_path: Path) -> None:
    """Else a crash would forget that the broker was ever heard; the same batch is taken when there is room."""
    blocked = tmp_path / "record" / "lookups"
    with started(settings_file(tmp_path, policies="")) as server:
        blocked.write_text("in the way")
        assert send(server, batch([1, 2]), batch([1, 2])) == [507, 507]
        blocked.unlink()
        awaited(lambda: server.ask("GET", "/ready/records")[0] == 200 or None)
        assert send(server, batch([1, 2]), batch([3])) == [200, 200]
        assert server.stop() == 0

    assert topics(server.record) == ["first-1", "first-2", "first-3"]


def test_trouble_with_topics_and_owners_stops_no_rows(tmp_path: Path) -> None:
    """`/health` is 503 for it, and who sends rows hears that they are taken: brokers with an old jar in `/health`."""
    state, of_broker = StateFile(tmp_path), {"X-Lookup-Protocol": "1"}
    with rest_cluster() as cluster:
        collect = f'{state.settings}\nadmin = "{cluster.url}"\ntopics_every_s = 0.1\n[topics]\ncatalog = "topics.db"\n'
        with started(settings_file(tmp_path, collect), connect=connect) as server:
            cluster.status = 500
            state.path.rename(tmp_path / "aside")
            reasons = awaited(
                lambda: server.ask("GET", "/health"), enough=lambda a: a[0] == 503 and "; " in a[1]["reason"]
            )
            ready = [server.ask("GET", "/ready/records"), server.ask("GET", "/health", headers=of_broker)]
            figures = server.figure("lookup_topics_lost"), server.figure("lookup_owners_lost")
            assert send(server, batch([1])) == [200]

    assert "state topic cannot be read" in reasons[1]["reason"]
    assert "namespaces: HTTP Error 500" in reasons[1]["reason"]
    assert ready == [(200, {"status": "ok"})] * 2
    assert figures == (1, 1)
