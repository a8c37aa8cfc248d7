"""Ticks with their rows, and load as brokers published it."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from lookup.logs.jobs import InProcess
from tests.replay.plans import lookup, planned
from tests.replay.proving import prove
from tests.replay.worlds import MICRO, World, world_of


def test_a_cell_that_crosses_midnight_stays_whole(tmp_path: Path) -> None:
    """Where tick_s does not divide a day, rows after midnight are in the cell that began before it."""
    midnight = 12 * 3600
    section = {"tick_s": 7, "session_s": 7, "balance_s": 7}
    plan = planned(tmp_path, [lookup(midnight - 1), lookup(midnight), lookup(midnight + 7)], evaluation=section)
    ticks = plan.ticks

    assert [tick.high - tick.low for tick in ticks] == [2, 1]
    assert all(tick.start_us % (7 * MICRO) == 0 for tick in ticks)


_PUBLISHED = {"load_reports": "published"}
#: Policies that go by load, each at a cadence of its own.
_LOADED: tuple[dict[str, Any], ...] = (
    {"scorers": ["headroom"], "selector": "best"},
    {"selector": "least-resource-usage", "cadence": {"min_interval_ms": 60_000, "history": 0.0}},
    {"selector": {"use": "power-of-two", "by": "usage"}, "cadence": {"min_interval_ms": 7_000, "max_interval_ms": 0}},
)
_SHEDDERS: tuple[dict[str, Any] | None, ...] = (
    {"use": "threshold", "threshold": 0.01, "history": 0.0},
    {"use": "transfer", "hit_count": 0, "target_std": 0.01},
    None,
)


def _loaded(seed: int) -> World:
    """Return a world in which every policy goes by published load."""
    world = world_of(seed, 100)
    section = {**world.settings["evaluation"], **_PUBLISHED, "load": "simulated", "warmup_s": 0, "seeds": [1]}
    policies = [
        {"name": f"p{number}", **parts, **({} if shedder is None else {"shedder": shedder})}
        for number, (parts, shedder) in enumerate(zip(_LOADED, _SHEDDERS, strict=True))
    ]
    tables = {name: rows for name, rows in world.tables.items() if name != "loads"}
    return replace(world, settings={**world.settings, "evaluation": section, "policies": policies}, tables=tables)


@pytest.mark.parametrize("seed", [2, 10, 11, 14, 23, 24, 31, 32])
def test_the_replay_equals_a_loop_where_load_is_published(seed: int) -> None:
    """Row for row, with shedders, with brokers that leave and come back, and from however many tasks."""
    prove(InProcess(), _loaded(seed), partitions=(1, 8), whole=True)
