"""Ticks with their rows, and load as brokers published it."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from lookup.logs.jobs import InProcess
from lookup.replay.exclusive import ExclusiveReplay
from tests.replay.plans import Planned, lookup, planned, policy
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


OTHER = "persistent://t/o/x"
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


def _replayed(plan: Planned, **parts: Any) -> ExclusiveReplay:
    made = policy(scorers=["headroom"], **parts)
    return plan.shown_to(ExclusiveReplay(plan.cluster, plan.run, made, seed=1))


#: A bundle that is busy in the first minute only; three minutes later another one looks for an owner.
_ROWS = [lookup(0, weight=60.0), lookup(1, topic=OTHER, weight=0.001), lookup(200, topic="persistent://t/late/x")]


@pytest.mark.parametrize(("reports", "choices"), [("instant", 2), ("published", 1)])
def test_what_was_published_outlives_the_load(tmp_path: Path, reports: str, choices: int) -> None:
    """At once, both brokers are idle again; as published, who was busy still looks so, asked for or not meanwhile."""
    replay = _replayed(planned(tmp_path, _ROWS, evaluation={"load_reports": reports}))
    late = replay.decisions[-1].decision

    assert len(late.odds) == choices
    if choices == 1:
        assert late.broker != replay.decisions[0].decision.broker


def test_metrics_go_by_the_load_itself(tmp_path: Path) -> None:
    """What is published late does not change who was overloaded."""
    brokers = [{"id": name, "capacity": 0.5} for name in ("a:1", "b:1")]
    overloaded = []
    for reports in ("instant", "published"):
        folder = tmp_path / reports
        plan = planned(folder, _ROWS, evaluation={"load_reports": reports}, brokers=brokers)
        cells = _replayed(plan).counted().parts()
        overloaded.append([batch.cells.overloaded_s for _, batches, _ in cells for batch in batches])

    assert overloaded[0][0] is not None
    assert overloaded[0][0].sum() > 0
    np.testing.assert_array_equal(overloaded[0], overloaded[1])
