"""Counts, and the batches of metrics they become, whole and in parts."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from lookup.errors import SettingsError
from lookup.model.batch import Batch
from lookup.replay.counted import CellLedger, Groups, GroupSums, added_up, check_by
from lookup.replay.exclusive import ExclusiveReplay
from lookup.replay.run import run_plan
from tests.replay.plans import NOON, lookup, planned, policy, settings
from tests.replay.worlds import MICRO

_COLUMNS = ("unit", "broker", "client", "lookups", "weight")


def test_broker_time_is_known_only_with_a_usage(tmp_path: Path) -> None:
    """Time counts for registered brokers with a usage, and as overloaded strictly above the threshold."""
    brokers = [{"id": f"{name}:1"} for name in "abc"]
    plan = planned(tmp_path, [lookup()], evaluation={"overload_threshold": 0.5}, brokers=brokers)
    ledger = CellLedger(plan.cluster, plan.run)
    ledger.add(NOON, NOON + 60 * MICRO, np.array([True, True, False]), np.array([0.5, 0.6, 9.0]))
    ledger.add(NOON + 60 * MICRO, NOON + 90 * MICRO, np.array([True, True, True]), np.array([0.6, np.nan, np.nan]))
    cells = ledger.cells((), is_known=True)
    assert cells.known_s is not None
    assert cells.overloaded_s is not None

    assert cells.registered.tolist() == [[True, True, True]]
    assert (cells.known_s.tolist(), cells.overloaded_s.tolist()) == ([[90.0, 60.0, 0.0]], [[30.0, 60.0, 0.0]])


def _groups(cell_us: int, epoch: int, broker: int) -> Groups:
    one = np.array([1])
    return Groups(cell_us, epoch, np.array([0]), np.array([broker]), np.array([0]), one * 1.0, one * 2e6)


def test_groups_of_a_day_are_added_up_by_roster_epoch(tmp_path: Path) -> None:
    """Three cells of one epoch leave one group for each bundle, broker and client; another epoch stays apart."""
    sums = GroupSums(planned(tmp_path, [lookup()]).run)
    for group in (_groups(NOON, 0, 1), _groups(NOON + 1, 0, -1), _groups(NOON + 2, 0, 1), _groups(NOON + 2, 1, 1)):
        sums.add(group)
        sums.settle()

    assert [(group.epoch, group.broker.tolist(), group.lookups.tolist()) for group in sums.all] == [
        (0, [-1, 1], [1.0, 2.0]),
        (1, [1], [1.0]),
    ]


def test_what_is_held_does_not_grow_with_a_day(tmp_path: Path) -> None:
    """Many rows are added up before the day ends, to the same sums, also where these are no whole numbers."""
    sums, each = GroupSums(planned(tmp_path, [lookup()]).run), np.arange(1 << 16)
    cells = [Groups(NOON + cell, 0, each, each % 7, each % 3, each * 0.1, each * 0.7 + cell) for cell in range(8)]
    held = []
    for group in cells:
        sums.add(group)
        held.append(len(sums.all))
    sums.settle()

    assert held == [1, 2, 1, 2, 3, 1, 2, 3]
    expected = added_up(cells)
    assert [getattr(sums.all[0], name).tolist() for name in _COLUMNS] == [
        getattr(expected, name).tolist() for name in _COLUMNS
    ]


def test_many_sums_are_gone_through_seldom(tmp_path: Path) -> None:
    """Where hardly two rows are of one bundle, sums are added to when as many rows again have come."""
    sums, each = GroupSums(planned(tmp_path, [lookup()]).run), np.arange(1 << 17)
    held = []
    for number in range(8):
        unit, nothing = each + number * len(each), np.zeros_like(each)
        sums.add(Groups(NOON, 0, unit, nothing, nothing, each * 1.0, each * 1.0))
        held.append(len(sums.all))

    assert held == [1, 1, 2, 3, 1, 2, 3, 4]


def test_groups_keep_their_cells_where_demand_is_told_apart(tmp_path: Path) -> None:
    """`--by` needs every cell's groups."""
    sums = GroupSums(replace(planned(tmp_path, [lookup()]).run, by=("hour",)))
    for cell in (NOON, NOON + 1):
        sums.add(_groups(cell, 0, 1))
        sums.settle()

    assert [group.cell_us for group in sums.all] == [NOON, NOON + 1]


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
    return {name: batches for name, batches, _ in replay.counted().parts()}


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


def test_demand_is_told_apart_by_what_there_is() -> None:
    """An unknown dimension, or hours that cells do not divide, is refused."""
    check_by(("tenant", "hour"), 1_800_000_000)
    with pytest.raises(SettingsError, match=r"by='city': .* tenant, namespace, rack, hour"):
        check_by(("city",), 1)
    with pytest.raises(SettingsError, match=r"by='hour': .*evaluation\.balance_s .* 7200"):
        check_by(("hour",), 7_200_000_000)


def test_cells_are_counted_without_one_sender_after_the_other(tmp_path: Path) -> None:
    """What is left is the whole less what each namespace was served, also where that is nothing; parts have it too."""
    rows = [lookup(700 * number, topic=f"persistent://t/n{number % 9}/x", weight=1.5 + number) for number in range(40)]
    plan = planned(tmp_path, rows)
    replay = plan.shown_to(ExclusiveReplay(plan.cluster, run_plan(settings(), ("namespace", "hour")), policy(), seed=1))
    served: dict[Any, Any] = {}
    left: dict[Any, list[Any]] = {}
    for name, batches, rest in replay.counted().parts():
        served[name] = _served(batches[-1])
        left[name] = [None if batch is None else _served(batch) for batch in rest]

    namespaces = [served[("namespace", f"t/n{number}"),] for number in range(9)]
    assert len(left[()]) == 9
    np.testing.assert_allclose(served[()] - namespaces, left[()], atol=1e-9)
    # Of its own part a namespace leaves nothing, and is missed in no other.
    assert [rest is None for rest in left[("namespace", "t/n3"),]] == [number != 3 for number in range(9)]
    assert not np.any(left[("namespace", "t/n3"),][3])
    hours = [name for name in left if name and name[0][0] == "hour"]
    for number, whole in enumerate(left[()]):
        parts = [served[name] if left[name][number] is None else left[name][number] for name in hours]
        np.testing.assert_allclose(np.concatenate(parts), whole, atol=1e-9)


def _served(batch: Batch) -> Any:
    assert batch.cells is not None
    return batch.cells.served
