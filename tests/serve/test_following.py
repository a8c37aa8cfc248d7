"""Policies that read the owners of bundles: a server follows the state topic, and its decisions can be repeated."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from lookup.errors import InputError
from lookup.serve.verifying import verify
from tests.processes import awaited
from tests.serve.servers import JUMPING, Server, decide, read_table, settings_file, started, started_apart, view
from tests.serve.statefile import PRELUDE, StateFile, connect

_GROUPS = """
[[namespaces]]
name = "public/default"
anti_affinity_group = "shops"

[[namespaces]]
name = "public/other"
anti_affinity_group = "shops"

[[policies]]
name = "by-rack"
filters = ["anti-affinity"]
selector = "random"

[[policies]]
name = "anywhere"
selector = "random"
"""
_OTHER = "public/other/0x{:08x}_0x{:08x}"
_OWNED = '{"state": "Owned", "dstBroker": "b3:8080", "versionId": 1, "force": true}'
_SEEN = view("a", "b", "c", usage=0.2)


def bundle(number: int) -> str:
    """Return a bundle of another namespace of the group."""
    return _OTHER.format(number << 16, (number + 1) << 16)


@pytest.fixture
def topic(tmp_path: Path) -> StateFile:
    """A state topic in which b1 owns two bundles of the group, and b2 one."""
    topic = StateFile(tmp_path)
    for number, broker in enumerate(("b1:8080", "b1:8080", "b2:8080")):
        topic.own(bundle(number), broker)
    return topic


@pytest.fixture
def server(tmp_path: Path, topic: StateFile) -> Iterator[Server]:
    """Start a server that follows the topic."""
    with started(settings_file(tmp_path, topic.settings, _GROUPS), connect=connect) as server:
        yield server


def chosen(server: Server, **changes: Any) -> dict[str, Any]:
    """Let the server decide and return its answer."""
    status, content = server.ask("POST", "/decide", decide(_SEEN, **changes))
    assert status == 200, content
    return content


def await_owners(server: Server, count: int) -> None:
    """Wait until the server knows of so many bundles with an owner."""
    awaited(lambda: server.ask("GET", "/health")[1]["owners"]["bundles"] == count or None)


def test_owners_of_the_state_topic_decide(server: Server, topic: StateFile) -> None:
    """A bundle of an anti-affinity group goes to the broker that owns the fewest, as the topic has it then."""
    first = chosen(server)
    topic.own(bundle(3), "b3:8080")
    topic.own(bundle(4), "b3:8080")
    await_owners(server, 5)
    second = chosen(server)
    topic.free(bundle(0))
    topic.free(bundle(1))
    await_owners(server, 3)
    third = chosen(server)
    explained = [server.ask("GET", f"/explain/{answer['decision']}")[1] for answer in (first, third)]
    assert server.stop() == 0
    rows = [row for row in read_table(server.record, "decisions") if row["policy"] == "by-rack"]
    verified = verify(str(server.record))

    assert [answer["broker"] for answer in (first, second, third)] == ["b3:8080", "b2:8080", "b1:8080"]
    assert [row["owners"].rsplit(".", 2)[1] for row in rows] == ["3", "5", "7"]
    assert all(row["owners"] in row["fingerprint"] for row in rows)
    assert (verified.agree, verified.decisions) == (3, 3)
    # Of the first, the owners of that moment.
    votes = [{vote["broker"]: vote["detail"] for vote in content["brokers"]} for content in explained]
    assert votes[0]["b1:8080"].startswith("owns 2 bundles of group shops")
    assert votes[1]["b1:8080"] is None


def test_split_leaves_the_owner_to_the_children(server: Server, topic: StateFile) -> None:
    """Both halves of a bundle that was split count for the broker that owned it."""
    whole, half = bundle(2), (2 << 16) + (1 << 15)
    low, high = (_OTHER.format(*ends) for ends in ((2 << 16, half), (half, 3 << 16)))
    children = {child.rpartition("/")[2]: None for child in (low, high)}
    record = {"state": "Splitting", "sourceBroker": "b2:8080", "versionId": 2}
    topic.write(whole, json.dumps(record | {"splitServiceUnitToDestBroker": children}))
    topic.own(bundle(3), "b3:8080")
    await_owners(server, 5)

    # b1 owns two, b2 two halves, b3 one.
    assert chosen(server)["broker"] == "b3:8080"


def test_shipped_policy_is_served(tmp_path: Path, topic: StateFile) -> None:
    """The policy `rack-then-load`, with `anti-affinity` among its filters, decides as it ships."""
    shipped = Path(__file__).parents[2] / "configs" / "policies" / "rack-then-load.toml"
    path = settings_file(tmp_path, topic.settings, "x")
    text = path.read_text().removesuffix("x").replace("by-rack", "rack-then-load")
    path.write_text(f'policies = ["{shipped}"]\n{text}')
    with started(path, connect=connect) as server:
        for rack, broker in (("b", "b2:8080"), ("c", "b3:8080")):
            assert chosen(server, rack=rack)["broker"] == broker
        assert server.stop() == 0
    verified = verify(str(server.record))

    assert (verified.agree, verified.decisions) == (2, 2)


def test_lost_topic_is_reported_and_owners_stand(tmp_path: Path, topic: StateFile) -> None:
    """While the topic cannot be read the last owners stand, /health says why, the loss is counted; then it goes on."""
    aside = tmp_path / "aside"
    with started(settings_file(tmp_path, topic.settings, _GROUPS), connect=connect) as server:
        topic.path.rename(aside)
        _, content = awaited(lambda: ((answer := server.ask("GET", "/health"))[0] == 503 and answer) or None)
        during = chosen(server)["broker"]
        aside.rename(topic.path)
        awaited(lambda: server.ask("GET", "/health")[0] == 200 or None)
        topic.own(bundle(3), "b3:8080")
        topic.own(bundle(4), "b3:8080")
        await_owners(server, 5)
        after = chosen(server)["broker"]
        losses, lost = server.figure("lookup_owners_losses"), server.figure("lookup_owners_lost")
        assert server.stop() == 0

    assert "cannot be read since 0 s" in content["reason"]
    assert (during, after) == ("b3:8080", "b2:8080")
    assert (losses, lost) == (1, 0)
    assert any("can be read again" in line for line in server.said)


def test_lag_grows_while_the_topic_is_cut_and_only_then(tmp_path: Path, topic: StateFile) -> None:
    """Changes that were old when they were read leave none, nor does a topic that is quiet; one that is cut does."""
    aside = tmp_path / "aside"
    topic.own(bundle(3), "b3:8080", age_s=55)
    with started(settings_file(tmp_path, topic.settings, _GROUPS), connect=connect) as server:

        def lag() -> float:
            return server.figure("lookup_owners_lag_seconds")

        awaited(lambda: lag() < 1 or None)
        topic.own(bundle(4), "b3:8080", age_s=55)
        await_owners(server, 5)
        awaited(lambda: lag() < 1 or None)
        topic.path.rename(aside)
        grown = [awaited(lag, enough=lambda age, least=least: age > least) for least in (0.5, 1.5)]
        aside.rename(topic.path)
        awaited(lambda: lag() < 0.5 or None)

    assert grown[0] < grown[1] < 10


def test_owners_that_are_too_old_are_not_decided_on(tmp_path: Path, topic: StateFile) -> None:
    """After `stale_s` without the topic, requests are answered 503 and counted, until it can be read again."""
    settings = settings_file(tmp_path, f"{topic.settings}\nstale_s = 0", _GROUPS)
    aside = tmp_path / "aside"
    with started(settings, connect=connect) as server:
        topic.path.rename(aside)
        refused = awaited(
            lambda: ((a := server.ask("POST", "/decide", decide(_SEEN)))[0] == 503 and a[1]["error"]) or None
        )
        counted = server.figure("lookup_owners_unknown_total")
        aside.rename(topic.path)
        awaited(lambda: server.ask("POST", "/decide", decide(_SEEN))[0] == 200 or None)
        assert server.stop() == 0

    assert "cannot be read since 0 s" in refused
    assert counted == 1


def test_topic_that_cannot_be_read_is_refused_at_the_start(tmp_path: Path, topic: StateFile) -> None:
    """The server does not start if its active policy reads owners and the topic is away: part and source are named."""
    topic.path.unlink()
    path = settings_file(tmp_path, f"{topic.settings}\nwait_s = 0.5", _GROUPS)

    with pytest.raises(InputError, match=r"^collect.service_url: ") as refused, started(path, connect=connect):
        pass

    for part in ("No such file", "view.ownership (anti-affinity)", "0.5 s, collect.wait_s"):
        assert part in str(refused.value)


def test_settings_are_loaded_again_while_owners_are_waited_for(tmp_path: Path, topic: StateFile) -> None:
    """SIGHUP before the topic can be read loads the settings, and does not end the server."""
    topic.path.rename(tmp_path / "aside")
    path = settings_file(tmp_path, f"{topic.settings}\nwait_s = 60", _GROUPS)
    code = f"import sys\n{PRELUDE}\nfrom lookup.cli import main\nsys.exit(main())"
    words = [sys.executable, "-c", code, "serve", str(path)]

    with subprocess.Popen(words, stderr=subprocess.PIPE, text=True) as process:
        awaited(lambda: list((tmp_path / "record" / "settings").glob("*.json")))
        # The signals are provided for right after the settings have been written.
        time.sleep(0.3)
        process.send_signal(signal.SIGHUP)
        assert process.stderr is not None
        lines = iter(process.stderr.readline, "")
        assert any(line == "the settings were loaded again\n" for line in lines)
        (tmp_path / "aside").rename(topic.path)
        assert any("serving by-rack on http://" in line for line in lines)
        process.terminate()

    assert process.returncode == 0


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("no bundle", _OWNED),
        (bundle(9), '{"state": "Owned"}'),
        (bundle(9), '{"state": "Owned", "dstBroker": ["b3:8080"]}'),
        (bundle(9), '{"state": 7, "dstBroker": "b3:8080"}'),
        (bundle(9), '{"state": "Owned", "dstBroker": "b3:8080", "versionId": "x"}'),
        (bundle(9), '{"state": "Splitting", "sourceBroker": "b1:8080", "splitServiceUnitToDestBroker": {"x": null}}'),
        ("", ""),
    ],
)
def test_junk_in_the_topic_is_counted(server: Server, topic: StateFile, name: str, text: str) -> None:
    """A record that is not what Pulsar writes changes no owner; it is counted, /health shows why, nothing ends."""
    topic.write(name, text)
    topic.own(bundle(5), "b3:8080")
    await_owners(server, 4)

    assert server.ask("GET", "/health")[1]["owners"]["refused_for"]
    assert server.figure("lookup_owners_refused") == 1
    assert chosen(server)["broker"] in {"b2:8080", "b3:8080"}


def test_owner_that_parquet_cannot_hold_is_recorded(server: Server, topic: StateFile) -> None:
    """Half a surrogate pair in the name of a broker stops neither the record nor its verification."""
    topic.write(bundle(6), _OWNED.replace("b3", "b\\ud800"))
    await_owners(server, 4)
    chosen(server)
    assert server.stop() == 0
    verified = verify(str(server.record))

    assert read_table(server.record, "owner_changes")[-1]["broker"] == "b?:8080"
    assert (verified.agree, verified.decisions) == (1, 1)


def test_series_that_lost_a_change_is_replaced(tmp_path: Path, topic: StateFile) -> None:
    """If there was no room for a change, another series begins as soon as there is, and decisions on it agree."""
    blocked = tmp_path / "record" / "owner_changes"
    blocked.parent.mkdir()
    blocked.write_text("in the way")
    path = settings_file(tmp_path, f"max_pending_rows = 60\n{topic.settings}", _GROUPS)
    with started(path, connect=connect) as server:
        awaited(lambda: server.ask("GET", "/health")[0] == 503 or None)
        for number in range(10, 80):
            topic.own(bundle(number), "b1:8080")
        await_owners(server, 73)
        lost = server.figure('lookup_lost_rows{table="owner_changes"}')
        blocked.unlink()
        awaited(lambda: server.ask("GET", "/health")[0] == 200 or None)
        for number in range(10, 80):
            # There is room for as many as wait, once what waited is written.
            awaited(lambda: server.figure("lookup_pending_rows") < 40 or None)
            topic.free(bundle(number))
        await_owners(server, 3)
        awaited(lambda: server.figure("lookup_pending_rows") < 40 or None)
        answer = chosen(server)
        assert server.stop() == 0
    verified = verify(str(server.record))
    rows = [row for row in read_table(server.record, "decisions") if row["decision"] == answer["decision"]]

    assert lost > 0
    assert [row["owners"].rpartition("-")[2][:2] for row in rows if row["owners"]] == ["2."]
    assert (verified.agree, verified.decisions) == (1, 1)


def changed(record: Path, change: Any) -> dict[str, int]:
    """Change the recorded changes of owners, verify, and return the disagreements by cause."""
    for file in (record / "owner_changes").rglob("*.parquet"):
        schema = pq.ParquetFile(file).schema_arrow
        rows = [row for row in pq.read_table(file, partitioning=None).to_pylist() if change(row) is not False]
        pq.write_table(pa.Table.from_pylist(rows, schema=schema), file)
    return dict(verify(str(record)).causes)


@pytest.mark.parametrize(
    ("change", "causes"),
    [
        (lambda row: row.update(broker="b3:8080"), {"ownership": 1}),
        (lambda row: row["number"] != 2, {"ownership": 1}),
        (lambda row: False, {"ownership": 1}),
        (lambda row: True, {}),
    ],
    ids=["changed", "one missing", "all missing", "as it was"],
)
def test_other_owners_are_a_cause_of_their_own(server: Server, change: Any, causes: dict[str, int]) -> None:
    """If the owners in the record are not those that were decided on, decisions of policies that read them differ."""
    chosen(server)
    assert server.stop() == 0

    assert changed(server.record, change) == causes


def test_collector_cannot_change_while_the_server_runs(server: Server, tmp_path: Path, topic: StateFile) -> None:
    """SIGHUP with another `[collect]` is refused, and the old settings stay."""
    settings_file(tmp_path, f"{topic.settings}\nstale_s = 7", _GROUPS)
    server.signal(signal.SIGHUP)

    awaited(lambda: [line for line in server.said if "collect: cannot change" in line])
    assert chosen(server)["broker"] == "b3:8080"


def test_clock_that_jumps_stops_no_owners(tmp_path: Path, topic: StateFile) -> None:
    """If the clock goes back and forth, changes of owners are recorded in order, and every decision is repeated."""
    path = settings_file(tmp_path, topic.settings, _GROUPS)
    with started_apart(path, prelude=PRELUDE + JUMPING) as server:
        for number in range(10, 20):
            topic.own(bundle(number), "b1:8080")
            await_owners(server, number - 6)
            chosen(server)
        assert server.stop() == 0
    verified = verify(str(server.record))
    rows = read_table(server.record, "owner_changes")

    assert sorted(row["number"] for row in rows) == [*range(1, 14)]
    assert (verified.agree, verified.decisions) == (10, 10)


@pytest.mark.parametrize(
    ("text", "place"),
    [
        ("", r"collect\.service_url"),
        ('token_file = "absent"', "absent cannot be read"),
        ('token_file = "state.jsonl"', r"state\.jsonl .*one word"),
        ('tls_ca = "state.jsonl"', r"state\.jsonl .*certificates"),
        ('tls_ca = "absent"', "absent cannot be read"),
        ('tls_cert = "state.jsonl"\ntls_key = "state.jsonl"', r"state\.jsonl .*certificate and"),
    ],
)
def test_brokers_that_cannot_be_reached_are_refused(tmp_path: Path, topic: StateFile, text: str, place: str) -> None:
    """With Pulsar's client, no broker there, or a file that is no token or no PEM, is named."""
    topic.write("a text", "that is neither")
    path = settings_file(tmp_path, f'[collect]\nservice_url = "pulsar://127.0.0.1:1"\nwait_s = 0.1\n{text}', _GROUPS)

    with pytest.raises(InputError, match=place) as refused, started(path):
        pass

    assert "that is neither" not in str(refused.value)
