"""Servers that share a lock in a real ZooKeeper: one moves bundles; one that is killed or stopped leaves no harm."""

from __future__ import annotations

import json
import signal
import time
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from kazoo.client import KazooClient

from lookup.moving.shedding import KEY
from tests.moving.standin import StandIn
from tests.processes import awaited
from tests.pulsar.cluster import free_ports
from tests.pulsar.jvm import Installation, Jvm
from tests.serve.moving import crowded, looks, moving_settings, serving, window

pytestmark = pytest.mark.pulsar

_FOLDER = "/pulsar-lookup/balance/east"


@pytest.fixture(scope="module")
def zookeeper(installed: Installation, tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """Start a ZooKeeper, with the bookie that comes with it and no broker, and return its address."""
    folder = tmp_path_factory.mktemp("zookeeper")
    log_settings = folder / "log4j2.xml"
    text = Path(__file__).with_name("log4j2.xml").read_text(encoding="utf-8")
    log_settings.write_text(text.replace("@LEVEL@", "info"), encoding="utf-8")
    port, bookie = free_ports(2)
    services = Jvm(
        installed, "Node", "services", str(folder), "east", str(port), str(bookie),
        folder=folder, log_settings=log_settings, heap_mb=256,
    )  # fmt: skip
    try:
        services.wait_until("ZooKeeper", (folder / "ready").exists)
        yield f"127.0.0.1:{port}"
    finally:
        services.kill()


@pytest.fixture
def client(zookeeper: str) -> Iterator[Any]:
    """Open a session of the test's own, in which nothing is left from the test before."""
    client = KazooClient(zookeeper)
    client.start()
    client.delete("/pulsar-lookup", recursive=True)
    yield client
    client.stop()
    client.close()


@pytest.fixture
def standin(tmp_path: Path) -> Iterator[StandIn]:
    """Run a cluster that is worth balancing."""
    with crowded(tmp_path) as started:
        yield started


def _events(folder: Path) -> Counter[str]:
    """Return how often each event is in the journals of a server."""
    lines = [line for path in (folder / "plans").glob("*.journal") for line in path.read_text("utf-8").splitlines()]
    return Counter(json.loads(line)["event"] for line in lines)


def test_a_plan_is_carried_out_and_what_came_of_it_is_said(
    zookeeper: str, client: Any, standin: StandIn, tmp_path: Path
) -> None:
    """Every step is made and shedding as it was; a bundle that an administrator moved before its step is named."""
    settings = moving_settings(tmp_path / "one", standin, zookeeper, freeze_shedding=True, windows=[window(-1, 1)])
    taken = list[str]()

    def take(when: str, what: str) -> None:
        """Give the bundle of a step that is still to come to another broker, once, as an administrator does."""
        if when == "before" and what.startswith("PUT") and not taken:
            steps = json.loads((tmp_path / "one" / "plans" / "plan.json").read_text("utf-8"))["steps"]
            last = steps[-1]
            taken.append(last["bundle"])
            other = next(broker for broker in standin.brokers if broker not in (last["from"], last["to"]))
            standin.give(last["bundle"], other)

    standin.on_change = take
    with serving(settings, standin) as server:
        look = awaited(lambda: looks(server, "applied"))[0]
        figures = [server.figure(f'lookup_balance_moves_total{{outcome="{event}"}}') for event in ("moved", "skipped")]
        leads = server.figure("lookup_balance_leads")

    assert look["reason"] == "5 of 6 steps made, 1 skipped"
    assert (look["moves"], figures, leads) == (
        {"moved": 5, "elsewhere": 0, "skipped": 1, "failed": 0}, [5.0, 1.0], 1.0,
    )  # fmt: skip
    assert [odd["bundle"] for odd in look["odd"]] == taken
    assert "somebody else has moved it" in look["odd"][0]["reason"]
    assert len(standin.unloads) == 5
    assert standin.configuration == {}
    assert Path(look["journal"]).is_file()
    assert not client.exists(f"{_FOLDER}/frozen")


def test_of_two_servers_one_moves_and_the_other_takes_over(
    zookeeper: str, client: Any, standin: StandIn, tmp_path: Path
) -> None:
    """The second names the first; once that is killed it puts shedding back, and makes what is left."""
    first = moving_settings(tmp_path / "one", standin, zookeeper, freeze_shedding=True, rate="6/min")
    second = moving_settings(tmp_path / "two", standin, zookeeper, freeze_shedding=True, every_s=1.0)
    seen = list[dict[str, str]]()
    with serving(first, standin) as one:
        awaited(lambda: len(standin.unloads) > 0)
        with serving(second, standin) as two:
            waiting = awaited(lambda: [look for look in looks(two, "not-leader") if "holds it" in look["reason"]])
            assert f"process {one.process.pid} holds it" in waiting[0]["reason"]
            assert _events(tmp_path / "two") == {}
            one.process.kill()
            one.process.wait()
            assert standin.configuration == {KEY: "false"}
            had = len(standin.unloads)
            standin.on_change = lambda when, what: seen.append(dict(standin.configuration))
            look = awaited(lambda: looks(two, "applied"))[-1]

    # Put back before anything else was changed.
    assert seen[1] == {}
    assert any("has left Pulsar's shedder switched off" in line for line in two.said)
    assert look["moves"]["moved"] == 6 - had
    assert len({bundle for bundle, _ in standin.unloads}) == len(standin.unloads) == 6
    assert standin.configuration == {}


def test_a_server_that_was_killed_recovers_when_it_starts_again(
    zookeeper: str, client: Any, standin: StandIn, tmp_path: Path
) -> None:
    """Shedding is put back in its journal as well, also if nothing may be moved by then."""
    settings = moving_settings(tmp_path / "one", standin, zookeeper, freeze_shedding=True, rate="2/s")
    standin.configuration[KEY] = "true"
    with serving(settings, standin) as server:
        awaited(lambda: len(standin.unloads) > 1)
        server.process.kill()
        server.process.wait()
    assert standin.configuration == {KEY: "false"}
    had = len(standin.unloads)
    moving_settings(tmp_path / "one", standin, zookeeper, windows=[window(2, 3)])
    with serving(settings, standin):
        awaited(lambda: standin.configuration == {KEY: "true"})
        awaited(lambda: not client.exists(f"{_FOLDER}/frozen"))

    assert _events(tmp_path / "one")["thawed"] == 1
    assert len(standin.unloads) == had


def test_what_a_server_on_another_machine_left_is_put_back(
    zookeeper: str, client: Any, standin: StandIn, tmp_path: Path
) -> None:
    """Its journal cannot be read here; ZooKeeper has what it found."""
    entry = {"event": "freezing", "found": "true", "at": "2026-11-26T12:00:00Z", "journal": "/there/plan.journal"}
    client.create(
        f"{_FOLDER}/frozen", json.dumps(entry | {"host": "there", "who": "there, process 1"}).encode(), makepath=True
    )
    standin.configuration[KEY] = "false"
    settings = moving_settings(tmp_path / "one", standin, zookeeper, windows=[window(2, 3)])
    with serving(settings, standin) as server:
        awaited(lambda: not client.exists(f"{_FOLDER}/frozen"))

        assert standin.configuration == {KEY: "true"}
        assert any("there, process 1 has left" in line for line in server.said)


def test_a_server_that_was_stopped_for_longer_than_its_session_moves_nothing_more(
    zookeeper: str, client: Any, standin: StandIn, tmp_path: Path
) -> None:
    """It wakes up in the middle of a plan, and finds that the lock is another's."""
    first = moving_settings(tmp_path / "one", standin, zookeeper, rate="1/s")
    second = moving_settings(tmp_path / "two", standin, zookeeper, windows=[window(2, 3)])
    with serving(first, standin) as one:
        awaited(lambda: len(standin.unloads) > 1)
        one.process.send_signal(signal.SIGSTOP)
        with serving(second, standin) as two:
            awaited(lambda: two.figure("lookup_balance_leads") == 1.0)
            had = len(standin.unloads)
            one.process.send_signal(signal.SIGCONT)
            look = awaited(lambda: looks(one, "stopped"))[0]
            assert len(standin.unloads) == had < 6

    # The session is gone, or the connection over which that would be heard.
    causes = ("was lost", "cannot be reached", "does not hold the lock", "not known whether this server holds the lock")
    assert any(words in look["reason"] for words in causes), look["reason"]


def test_a_window_that_ends_lets_the_step_end(zookeeper: str, client: Any, standin: StandIn, tmp_path: Path) -> None:
    """No further step begins, and the reason is the time."""
    later = tmp_path / "later"
    shifted = f"""
import pathlib, time, types
import lookup.serve.balancing as balancing
def now():
    return time.time_ns() + (3 * 3_600_000_000_000 if pathlib.Path({str(later)!r}).exists() else 0)
balancing.time = types.SimpleNamespace(time_ns=now)
"""
    settings = moving_settings(tmp_path / "one", standin, zookeeper, rate="1/s", windows=[window(-1, 1)])
    with serving(settings, standin, shifted) as server:
        awaited(lambda: len(standin.unloads) > 1)
        later.touch()
        look = awaited(lambda: looks(server, "cut-short"))[0]

    assert "outside the windows" in look["reason"]
    events = _events(tmp_path / "one")
    assert events["requested"] == events["moved"] == len(standin.unloads) < 6


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_the_server_ends_after_the_step_under_way(
    zookeeper: str, client: Any, standin: StandIn, tmp_path: Path, number: signal.Signals
) -> None:
    """With exit code 0, shedding as it was found, and the lock given up at once."""
    settings = moving_settings(tmp_path / "one", standin, zookeeper, freeze_shedding=True, rate="1/s")
    with serving(settings, standin) as server:
        awaited(lambda: len(standin.unloads) > 1)
        server.process.send_signal(number)
        assert server.process.wait(30) == 0
        began = time.monotonic()
        awaited(lambda: not client.get_children(f"{_FOLDER}/lock"))

    assert time.monotonic() - began < 5.0
    events = _events(tmp_path / "one")
    assert events["requested"] == events["moved"] == len(standin.unloads) < 6
    assert events["freezing"] == events["thawed"] == 1
    assert standin.configuration == {}
    last = (tmp_path / "one" / "plans" / "cycles.jsonl").read_text("utf-8").splitlines()[-1]
    assert json.loads(last)["outcome"] == "cut-short"
