"""The decision server makes plans of what a collector has recorded, and moves nothing."""

from __future__ import annotations

import json
import signal
import time
from pathlib import Path
from typing import Any

import pytest

from lookup.api.moving import open_plan
from lookup.cli import main
from tests.moving.worlds import World, lookup_row, topics_of, write_lookups
from tests.processes import awaited
from tests.serve.servers import Server, settings_file, started

_HOUR_US = 3_600_000_000


def _settings(folder: Path, **more: object) -> Path:
    """Write settings of a server of cluster east that looks every second."""
    lines = [f"{key} = {json.dumps(value)}" for key, value in ({"every_s": 1.0} | more).items()]
    table = "\n".join(["[balance]", 'record = "collected"', 'plans = "plans"', *lines])
    path = settings_file(folder, table, policies="")
    path.write_text(path.read_text(encoding="utf-8").replace('cluster = "c1"', 'cluster = "east"'), encoding="utf-8")
    return path


def _recorded(folder: Path, *, ended_us_ago: int = 0) -> World:
    """Record ten minutes of a crowded cluster, which end now or earlier."""
    world = World.crowded()
    world.start_us = time.time_ns() // 1000 - 9 * 60_000_000 - ended_us_ago
    world.write(folder / "collected")
    return world


def _looks(server: Server) -> list[dict[str, Any]]:
    status, answer = server.ask("GET", "/balance")
    assert status == 200, answer
    return list(answer["looks"])


def test_a_plan_is_made_of_the_record_and_stands_in_its_folder(tmp_path: Path) -> None:
    """The moves that `/balance` counts are those of `plan.json`, and metrics have them as well."""
    _recorded(tmp_path)
    with started(_settings(tmp_path, max_moves=3)) as server:
        (look, *_) = awaited(lambda: _looks(server))
        plan = open_plan(tmp_path / "plans")
        figures = {name: server.figure(name) for name in ("lookup_balance_steps", 'lookup_balance_imbalance{of="now"}')}
        status, _ = server.ask("GET", "/health")

    assert look["steps"] == len(plan.steps) == 3
    assert look["imbalance"]["now"] > look["imbalance"]["planned"] >= 1.0
    assert figures == {
        "lookup_balance_steps": 3.0,
        'lookup_balance_imbalance{of="now"}': look["imbalance"]["now"],
    }
    assert status == 200
    assert (tmp_path / "plans" / "plan.html").is_file()
    assert any("proposes 3 moves" in line for line in server.said)


def test_plans_bring_load_near_clients_by_the_lookups_that_the_server_has_recorded(tmp_path: Path) -> None:
    """They need none for another policy; before any is recorded the plan says what is not known."""
    world = _recorded(tmp_path)
    policy = tmp_path / "near.toml"
    policy.write_text(
        '[[policies]]\nname = "near"\nselector = "best"\nshedder = { use = "rebalance", near = "rack" }\n'
    )
    settings = _settings(tmp_path, policy=str(policy))
    with started(settings) as server:
        awaited(lambda: _looks(server))
    before = open_plan(tmp_path / "plans").plan
    rows = [lookup_row(next(topics_of(name)), "rack-2", ts=world.start_us) for name in world.owners]
    write_lookups(rows, tmp_path / "record" / "lookups")
    with started(settings) as server:
        awaited(lambda: _looks(server))
    after = open_plan(tmp_path / "plans").plan

    assert before.near == {}
    assert any(sentence.startswith("where clients are is not known: ") for sentence in before.missing)
    assert after.near["rack"].after > after.near["rack"].before > 0.0


def test_every_look_is_appended_to_a_file(tmp_path: Path) -> None:
    """What `/balance` has forgotten is a line there, the earliest first."""
    _recorded(tmp_path)
    with started(_settings(tmp_path)) as server:
        looks = awaited(lambda: found if len(found := _looks(server)) > 1 else None)
    lines = (tmp_path / "plans" / "cycles.jsonl").read_text(encoding="utf-8").splitlines()

    assert [json.loads(line) for line in lines][: len(looks)] == looks[::-1]
    assert sum("proposes" in line for line in server.said) == 1


def test_a_record_that_has_ended_is_not_relied_on(tmp_path: Path) -> None:
    """Of a cluster as it was an hour ago there is a sentence, once, in the log and in `/health`, and no moves count."""
    _recorded(tmp_path, ended_us_ago=_HOUR_US)
    with started(_settings(tmp_path)) as server:
        looks = awaited(lambda: found if len(found := _looks(server)) > 1 else None)
        status, health = server.ask("GET", "/health")
        steps = server.figure("lookup_balance_steps")

    assert all("is `lookup collect` still running?" in look["trouble"] for look in looks)
    assert (status, steps) == (503, 0.0)
    assert "the record ends" in health["reason"]
    assert sum("no plan can be relied on" in line for line in server.said) == 1


def test_a_record_that_begins_later_is_found(tmp_path: Path) -> None:
    """The server need not start after the collector."""
    with started(_settings(tmp_path)) as server:
        awaited(lambda: _looks(server))
        _recorded(tmp_path)
        awaited(lambda: [look for look in _looks(server) if "steps" in look])

        assert awaited(lambda: [line for line in server.said if "plans can be relied on again" in line])
    first, *_ = (tmp_path / "plans" / "cycles.jsonl").read_text(encoding="utf-8").splitlines()
    assert "trouble" in json.loads(first)


def test_a_damaged_file_of_the_record_ends_no_server(tmp_path: Path) -> None:
    """It is named, and when it is whole again plans go on."""
    _recorded(tmp_path)
    damaged = tmp_path / "collected" / "loads" / "part-000009.parquet"
    with started(_settings(tmp_path)) as server:
        awaited(lambda: _looks(server))
        damaged.write_bytes(b"PAR1 and no more")
        look = awaited(lambda: found if "trouble" in (found := _looks(server)[0]) else None)
        damaged.unlink()
        awaited(lambda: [line for line in server.said if "plans can be relied on again" in line])

    assert damaged.name in look["trouble"]


def test_without_the_table_there_are_no_plans(tmp_path: Path) -> None:
    """The endpoint says which table is missing."""
    with started(settings_file(tmp_path)) as server:
        status, answer = server.ask("GET", "/balance")

    assert status == 404
    assert "[balance]" in answer["error"]


def test_a_policy_that_cannot_plan_is_refused_at_the_start(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Not at the first look at the cluster, ten minutes later."""
    settings = _settings(tmp_path, policy="shipped:random")

    assert main(["serve", "--config", str(settings)]) == 2
    assert "random has no shedder" in capsys.readouterr().err


def test_plans_cannot_be_asked_for_while_the_server_runs(tmp_path: Path) -> None:
    """Like the collector, the table counts from the start."""
    settings = settings_file(tmp_path, policies="")
    with started(settings) as server:
        _settings(tmp_path)
        server.process.send_signal(signal.SIGHUP)

        assert awaited(lambda: [line for line in server.said if "balance: cannot change while" in line])


def test_the_server_ends_while_it_plans(tmp_path: Path) -> None:
    """SIGTERM waits for no further look."""
    _recorded(tmp_path)
    with started(_settings(tmp_path)) as server:
        server.process.send_signal(signal.SIGTERM)

        assert server.process.wait(20) == 0
