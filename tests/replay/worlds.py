"""Small worlds for replays, drawn by Hypothesis: logs, registries, owners and loads, with settings and a layout.

Times come from few instants, so that events meet lookups at their own microsecond; names from few names, so that
bundles are lost, split and asked for again. Settings are drawn in `settings.py`, files are written in `layouts.py`.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from random import Random
from typing import Any

from hypothesis import strategies as st

from lookup.model.time import time_text
from lookup.settings.evaluation import EvaluationFile
from tests.replay.layouts import Layout, write_lookups, write_rows
from tests.replay.settings import BROKERS, section_of, settings_of

__all__ = ["MICRO", "START_US", "World", "earlier", "moving_world", "world_of", "worlds"]

MICRO = 1_000_000
#: 2026-01-01T23:56:00Z: days change soon after.
START_US = 1_767_311_760 * MICRO
CLUSTERS = ("east", "west")
NAMESPACES = ("public/default", "t1/a", "t2/b", "pulsar/system")
TOPICS = (
    *(f"persistent://{name}/topic-{number}" for name in NAMESPACES for number in range(3)),
    "non-persistent://t1/a/topic-0-partition-7",
    "persistent://pulsar/broker-a:8080/healthcheck",
    "non-persistent://sla-monitor/broker-b:8080/sla",
    "persistent://pulsar/stranger:8080/heartbeat",
)
NOT_DEMAND = (
    "persistent://pulsar/system/loadbalancer-service-unit-state",
    "non-persistent://pulsar/system/loadbalancer-broker-load-data",
    "persistent://t1/only-here/.*",
    "no-topic",
    None,
)
CLIENTS = (None, "10.1.0.9:5000", "10.2.0.1", "web.example.com")
PROPERTIES = (
    None,
    "{}",
    '{"rack":"a"}',
    '{"rack":"b"}',
    '{"rack": "c", "zone": "z1"}',
    '{"zone":"z2","region":"eu","rack":"a"}',
)
#: What the log calls the brokers that were answered: ids, an address, nobody, one the registry never had.
_LOGGED = (*BROKERS, "pulsar://broker-a:6650", None, "gone:8080")


@dataclass(frozen=True)
class World:
    """Tables and settings of one evaluation."""

    #: rows of LOOKUPS in order of their files
    lookups: Sequence[dict[str, Any]]
    settings: dict[str, Any]
    layout: Layout = Layout()
    #: rows of the other tables by name; a table that is absent is not given
    tables: dict[str, list[dict[str, Any]]] = field(default_factory=dict)

    def written(self, folder: Path) -> EvaluationFile:
        """Write all tables and return the settings that name them."""
        write_lookups(self.lookups, folder / "lookups", self.layout)
        inputs = {"lookups": str(folder / "lookups")}
        for name, rows in self.tables.items():
            write_rows(rows, name, folder / f"{name}.parquet")
            inputs[name] = str(folder / f"{name}.parquet")
        return EvaluationFile.model_validate({**self.settings, "inputs": inputs})


@dataclass(frozen=True)
class _Times:
    """The instants at which things happen: few, so that they meet."""

    tick_us: int
    cells: int
    has_quiet_day: bool

    def one(self, dice: Random) -> int:
        """Return an instant of the log."""
        offset = dice.choice([0, 0, 1, self.tick_us // 2, self.tick_us // 2, self.tick_us - 1, 3 * MICRO])
        quiet = 26 * 3600 * MICRO if self.has_quiet_day and dice.random() < 0.2 else 0
        return START_US // self.tick_us * self.tick_us + dice.randrange(self.cells) * self.tick_us + offset + quiet

    def any(self, dice: Random) -> int:
        """Return an instant of the log, or one before it."""
        return START_US - 3600 * MICRO if dice.random() < 0.25 else self.one(dice)


def worlds() -> st.SearchStrategy[World]:
    """Draw worlds with up to a hundred lookups and three policies.

    Hypothesis draws seeds: what it would draw piece by piece are too many alike and too few with anything happening.
    """
    return st.builds(world_of, st.integers(0, 1 << 32), st.sampled_from([3, 20, 100, 100]))


def world_of(seed: int, most: int) -> World:
    """Make a world of a seed, with at most so many lookups."""
    dice = Random(seed)
    tick_s = dice.choice([7, 60, 60, 90])
    times = _Times(tick_s * MICRO, dice.choice([3, 8]), tick_s >= 60 and dice.random() < 0.1)
    tables = _tables(dice, times)
    section = section_of(dice, tick_s, has_loads="loads" in tables)
    if section["load"] == "simulated":
        tables.pop("loads", None)
    settings = settings_of(dice, section, has_registry="brokers" in tables)
    lookups = _logs(dice, times, most)
    logged = {row["cluster"] for row in lookups}
    if len(logged) == 1:
        # A table that shares no cluster with the log is refused. That of brokers has the first one in all of them.
        for name in tables.keys() - {"brokers"}:
            tables[name] = [{**row, "cluster": lookups[-1]["cluster"]} for row in tables[name]]
    world = World(lookups, settings, _layout(dice), tables)
    # Drawn last: worlds are otherwise those of the same seed without slices.
    section["slice_rows"] = dice.choice([1, 5, 4_000_000])
    if not section["warmup_s"] and dice.random() < 0.3:
        # From the tick of some lookup on, or a little before: that lookup is scored.
        at_us = dice.choice([row["ts"] for row in lookups]) // times.tick_us * times.tick_us
        section["scored_from"] = time_text(at_us - dice.choice([0, 1, MICRO]))
    return world


def moving_world(seed: int, owner_loss: str) -> World:
    """Make a world in which bundles are moved, split and orphaned in most ticks."""
    dice, world = Random(seed), world_of(seed, 100)
    tick_s = world.settings["evaluation"]["tick_s"]
    times = _Times(tick_s * MICRO, 8, has_quiet_day=False)
    registered = [{**_FIRST, "cluster": cluster, "broker": broker} for cluster in CLUSTERS for broker in BROKERS]
    tables = {
        "brokers": registered + [_registration(dice, times) for _ in range(40)],
        "ownership": [_ownership(dice, times) for _ in range(100)],
    }
    policies = [
        {"name": f"p{number}", "selector": selector, "shedder": {"use": "restless", "every": number + 2}}
        for number, selector in enumerate(("random", "least-resource-usage"))
    ]
    section = {**world.settings["evaluation"], "owner_loss": owner_loss, "load": "simulated"}
    return replace(world, tables=tables, settings={**world.settings, "evaluation": section, "policies": policies})


def earlier(world: World, by_us: int) -> World:
    """Let everything in the tables of a world happen earlier."""

    def shifted(rows: Sequence[dict[str, Any]]) -> list[dict[str, Any]]:
        return [{**row, "ts": row["ts"] - by_us} for row in rows]

    tables = {name: shifted(rows) for name, rows in world.tables.items()}
    settings = {**world.settings, "evaluation": {**world.settings["evaluation"], "scored_from": None}}
    return replace(world, lookups=shifted(world.lookups), tables=tables, settings=settings)


def _logs(dice: Random, times: _Times, most: int) -> list[dict[str, Any]]:
    clusters, logged = CLUSTERS[: dice.choice([1, 2])], _LOGGED[: dice.randint(4, len(_LOGGED))]
    odd = dice.choice([0.0, 0.1])
    rows = [_row(dice, times, (clusters, logged), odd=odd) for _ in range(dice.randrange(most))]
    # At least one lookup asks for a broker.
    last = _row(dice, times, (clusters, logged), odd=0.0)
    rows.append({**last, "topic": TOPICS[0], "result": "connect", "properties": "{}"})
    numbers, has_gaps = dice.sample(range(len(rows)), len(rows)), dice.random() < 0.5
    return [
        {**row, "seq": None if has_gaps and number % 3 == 0 else number}
        for row, number in zip(rows, numbers, strict=True)
    ]


def _row(
    dice: Random, times: _Times, names: tuple[Sequence[str], Sequence[str | None]], *, odd: float
) -> dict[str, Any]:
    is_odd = dice.random() < odd
    return {
        "ts": times.one(dice),
        "cluster": dice.choice(names[0]),
        "topic": dice.choice(NOT_DEMAND if is_odd and dice.random() < 0.5 else TOPICS),
        "client": dice.choice(CLIENTS),
        "properties": dice.choice(("[1]", "{", '{"rack":1}') if is_odd and dice.random() < 0.3 else PROPERTIES),
        "broker": dice.choice(names[1]),
        "result": dice.choice(
            ["redirect", "redirect", "unknown"] if is_odd else ["connect", "connect", "failed", None]
        ),
        "read_only": dice.choice([False, False, False, True, None]),
        "listener": dice.choice([None, "inside"]),
        "weight": dice.choice([1.0, 1.0, None, 0.1, 1e-6, 3.7, 1.005, 0.0]),
    }


def _layout(dice: Random) -> Layout:
    return Layout(
        with_seq=dice.random() < 0.5,
        is_hive=dice.random() < 0.5,
        file_rows=dice.choice([5, 20, 200]),
        group_rows=dice.choice([1, 4, 200]),
        is_encoded=dice.random() < 0.5,
    )


def _tables(dice: Random, times: _Times) -> dict[str, list[dict[str, Any]]]:
    tables = {
        name: [make(dice, times) for _ in range(dice.randint(1, most))]
        for name, (make, most) in _KINDS.items()
        if dice.random() < 0.5
    }
    if "brokers" in tables:
        tables["brokers"][:0] = [{**_FIRST, "cluster": cluster} for cluster in CLUSTERS]
    return tables


def _registration(dice: Random, times: _Times) -> dict[str, Any]:
    return {
        "ts": times.any(dice),
        "cluster": dice.choice(CLUSTERS),
        "broker": dice.choice(BROKERS),
        "event": dice.choice(["registered", "registered", "registered", "updated", "unregistered"]),
        "lookup_data": dice.choice([None, _data("a"), _data("b"), _data(None)]),
    }


def _data(rack: str | None) -> str:
    labels = {} if rack is None else {"lookup.rack": rack, "lookup.zone": f"z{ord(rack) - 96}"}
    address = f"pulsar://broker-{rack}:6650"
    return json.dumps({"properties": labels, "brokerVersion": "4.0.0", "pulsarServiceUrl": address})


_FIRST = {"ts": START_US - 3600 * MICRO, "broker": BROKERS[0], "event": "registered", "lookup_data": _data("a")}


def _ownership(dice: Random, times: _Times) -> dict[str, Any]:
    halves = ["0x00000000_0x80000000", "0x80000000_0xffffffff"]
    quarters = ["0x00000000_0x40000000", "0x40000000_0x80000000", "0x80000000_0xc0000000", "0xc0000000_0xffffffff"]
    strangers = ["pulsar/broker-a:8080/0x00000000_0xffffffff", "t9/none/0x00000000_0xffffffff"]
    name = dice.choice([f"{name}/{dice.choice(halves + halves + quarters)}" for name in NAMESPACES] * 3 + strangers)
    return {
        "ts": times.any(dice),
        "cluster": dice.choice(CLUSTERS),
        "bundle": name,
        "event": dice.choice(["owned", "unloaded", "unloaded", "split", "split"]),
        "broker": dice.choice(BROKERS),
        "by": dice.choice(["admin", "admin", "policy", None]),
        "boundaries": dice.choice(
            [["0x80000000"], ["0x40000000", "0xc0000000"], ["0x20000000", "0x40000000", "0xa0000000"]]
        ),
    }


def _load(dice: Random, times: _Times) -> dict[str, Any]:
    report = {
        "weightedMaxEMA": dice.choice([0.1, 0.5, 0.9, 1.3]),
        "msgThroughputIn": dice.choice([0.0, 10.5]),
        "topics": dice.randrange(4),
        "maxResourceUsage": dice.choice([0.2, 1.1]),
        "msgThroughputEMA": dice.choice([0.0, 4.2]),
        "msgRateIn": dice.choice([0.0, 70.0]),
        "msgRateOut": 3.3,
        "cpu": {"usage": dice.choice([10.0, 95.0]), "limit": 100.0},
        "bandwidthIn": {"usage": 30.0, "limit": dice.choice([20.0, 300.0])},
    }
    report = _thinned(dice, report, times.cells)
    broker = dice.choice([*BROKERS, "gone:8080"])
    return {"ts": times.any(dice), "cluster": dice.choice(CLUSTERS), "broker": broker, "load": json.dumps(report)}


def _thinned(dice: Random, report: dict[str, Any], cells: int) -> dict[str, Any]:
    """Leave keys out: in some worlds all but Pulsar's averages, in the others those of some rows."""
    if cells <= 3:
        return {key: report[key] for key in ("weightedMaxEMA", "msgThroughputIn")}
    return {key: value for key, value in report.items() if dice.random() < 0.8}


def _bundle(dice: Random, times: _Times) -> dict[str, Any]:
    ends = ["0x00000000_0x80000000", "0x80000000_0xffffffff", "0x00000000_0x40000000", "0x10000000_0x30000000"]
    stats = {"msgThroughputIn": dice.choice([0.0, 0.3, 7.7]), "msgThroughputOut": 0.1}
    if times.cells > 3:
        stats |= {"msgRateIn": dice.choice([0.0, 40.0]), "msgRateOut": dice.choice([0.1, 2.5])}
    return {
        "ts": times.any(dice),
        "cluster": dice.choice(CLUSTERS),
        "bundle": f"{dice.choice(NAMESPACES[:3])}/{dice.choice(ends)}",
        "stats": json.dumps(stats),
    }


_KINDS: Mapping[str, tuple[Callable[[Random, _Times], dict[str, Any]], int]] = {
    "brokers": (_registration, 40),
    "ownership": (_ownership, 60),
    "loads": (_load, 12),
    "bundles": (_bundle, 8),
}
