"""From counts to the batches of metrics, whole and in parts."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from lookup.errors import SettingsError
from lookup.model.batch import Batch
from lookup.replay.counted import check_by
from lookup.replay.exclusive import ExclusiveReplay
from lookup.replay.run import run_plan
from tests.replay.plans import lookup, planned, policy, settings

ROWS = [
    lookup(0, topic="persistent://t/a/1", properties='{"rack":"a"}'),
    lookup(1, topic="persistent://t/b/1", properties='{"rack":"b"}'),
    lookup(2, topic="persistent://u/a/1", properties="{}"),
    lookup(3700, topic="persistent://u/a/1", properties='{"rack":"a"}'),
]


def _parts(folder: Path, *by: str, **given: Any) -> dict[tuple[tuple[str, str], ...], list[Batch]]:
    plan = planned(folder, ROWS, **given)
    run = run_plan(settings(**given), by)
    replay = plan.shown_to(ExclusiveReplay(plan.cluster, run, policy(), seed=1))
    return dict(replay.counted().parts())


def _lookups(batches: list[Batch]) -> float:
    return float(sum(batch.served.lookups.sum() for batch in batches))


def test_parts_divide_the_demand(tmp_path: Path) -> None:
    """Tenants, namespaces and hours each add up to the whole; clients without rack are in no rack."""
    parts = _parts(tmp_path, "tenant", "namespace", "rack", "hour")
    counted = {name: _lookups(batches) for name, batches in parts.items()}

    assert counted == {
        (): 4.0,
        (("tenant", "t"),): 2.0,
        (("tenant", "u"),): 2.0,
        (("namespace", "t/a"),): 1.0,
        (("namespace", "t/b"),): 1.0,
        (("namespace", "u/a"),): 2.0,
        (("rack", "a"),): 2.0,
        (("rack", "b"),): 1.0,
        (("hour", "2026-01-01T12:00Z"),): 3.0,
        (("hour", "2026-01-01T13:00Z"),): 1.0,
    }


def test_changes_belong_to_bundles_and_hours_but_not_to_clients(tmp_path: Path) -> None:
    """Who asked says nothing about who owns."""
    parts = _parts(tmp_path, "tenant", "rack", "hour")

    assert all(batch.changes is None for batch in parts[("rack", "a"),])
    changes = [batch.changes for batch in parts[("tenant", "t"),]]
    assert [len(change.ts) for change in changes if change is not None] == [2]
    changes = [batch.changes for batch in parts[("hour", "2026-01-01T13:00Z"),]]
    assert [len(change.ts) for change in changes if change is not None] == [0]


def test_every_roster_epoch_has_a_batch_and_the_last_has_the_rest(tmp_path: Path) -> None:
    """Changed labels begin a batch; changes and cells stand in the last one only."""
    brokers = [
        {"id": "a:1", "until": "2026-01-01T12:30:00Z", "properties": {"lookup.rack": "x"}},
        {"id": "a:1", "from": "2026-01-01T12:30:00Z", "properties": {"lookup.rack": "y"}},
    ]
    first, last = _parts(tmp_path, brokers=brokers)[()]

    assert [batch.brokers[0].property_of("rack") for batch in (first, last)] == ["x", "y"]
    assert first.changes is not None
    assert last.changes is not None
    assert (len(first.changes.ts), len(last.changes.ts)) == (0, 3)
    assert (first.cells.served.sum(), last.cells.served.sum()) == (0.0, 4.0)


def test_demand_is_told_apart_by_what_there_is() -> None:
    """An unknown dimension, or hours that cells do not divide, is refused."""
    check_by(("tenant", "hour"), 1_800_000_000)
    with pytest.raises(SettingsError, match=r"by='city': demand can be told apart by tenant, namespace, rack, hour"):
        check_by(("city",), 1)
    with pytest.raises(SettingsError, match=r"by='hour': needs evaluation\.balance_s to divide 3600; it is 7200"):
        check_by(("hour",), 7_200_000_000)
