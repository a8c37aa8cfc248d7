"""Groups of lookups and broker-time by balance cell."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np

from lookup.replay.cells import CellLedger, Groups, GroupSums, added_up
from tests.replay.plans import NOON, lookup, planned
from tests.replay.worlds import MICRO

_COLUMNS = ("unit", "broker", "client", "lookups", "weight")


def test_broker_time_is_known_only_with_a_usage(tmp_path: Path) -> None:
    """Time counts for registered brokers with a usage, and as overloaded strictly above the threshold."""
    plan = planned(tmp_path, [lookup()], evaluation={"overload_threshold": 0.5})
    ledger = CellLedger(plan.run, 3)
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
