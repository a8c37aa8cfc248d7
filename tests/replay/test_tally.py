"""Counting rows by bundle, broker and client class."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from lookup.replay.cells import CellLedger, Groups, GroupSums, added_up
from lookup.replay.counts import compacted, grouped, occurring
from lookup.replay.tally import OwnerTally
from tests.replay.plans import NOON, Planned, lookup, planned
from tests.replay.worlds import MICRO

_COLUMNS = ("unit", "broker", "client", "lookups", "weight")


@given(st.lists(st.tuples(st.integers(0, 50), st.integers(0, 9)), min_size=1), st.sampled_from([51, 1 << 24]))
def test_groups_are_counted_alike_however_many_keys_there_may_be(rows: list[tuple[int, int]], bound: int) -> None:
    """Dense and sparse counting give the same keys, counts and sums."""
    keys, weights = (np.array(column, dtype=np.float64) for column in zip(*rows, strict=True))
    found, counts, sums = grouped(keys.astype(np.int64), weights, bound)

    expected, weight = Counter(key for key, _ in rows), Counter[int]()
    for key, each in rows:
        weight[key] += each
    assert dict(zip(found.tolist(), counts.tolist(), strict=True)) == dict(expected)
    assert sums.tolist() == [weight[key] for key in found.tolist()]


@given(st.lists(st.integers(0, 30), min_size=1))
def test_compacted_codes_number_what_occurs(codes: list[int]) -> None:
    """The codes that occur ascend, and each row's number leads back to its code."""
    found, numbers = compacted(np.array(codes))

    assert found.tolist() == sorted(set(codes))
    assert found[numbers].tolist() == codes


@given(st.lists(st.integers(0, 30), min_size=1), st.sampled_from([0, 1 << 24]))
def test_codes_that_occur_ascend(codes: list[int], largest: int) -> None:
    """Few codes and many possible ones are found alike."""
    assert occurring(np.array([*codes, largest])).tolist() == sorted({*codes, largest})


def _tally(plan: Planned) -> OwnerTally:
    return OwnerTally(plan.cluster, plan.run, CellLedger(plan.run, len(plan.cluster.timeline.roster)))


def _served(groups: Sequence[Groups]) -> dict[int, float]:
    found: Counter[int] = Counter()
    for group in groups:
        for broker, lookups in zip(group.broker.tolist(), group.lookups.tolist(), strict=True):
            found[broker] += lookups
    return dict(found)


def test_rows_go_to_the_owner_of_their_time(tmp_path: Path) -> None:
    """A change holds from its row on, the last of several at one row; rows before the first stay unanswered."""
    plan = planned(tmp_path, [lookup(second) for second in range(6)])
    tally, rows = _tally(plan), plan.rows
    tally.begin(rows, NOON, 0)
    for owner, row in ((0, 1), (-1, 3), (1, 3), (-1, 5)):
        tally.set_owner(slice(0, 1), owner, row)
    tally.end(0, 6)
    tally.flush(rows)

    assert _served(tally.groups.all) == {-1: 2.0, 0: 2.0, 1: 2.0}


def test_an_owner_stays_from_cell_to_cell(tmp_path: Path) -> None:
    """A bundle that does not change hands in a cell is served by who owned it before."""
    plan = planned(tmp_path, [lookup(0), lookup(1, topic="persistent://t/o/x"), lookup(2)])
    tally, rows = _tally(plan), plan.rows
    tally.begin(rows, NOON, 0)
    tally.set_owner(slice(0, 1), 1, 0)
    tally.end(0, 1)
    tally.begin(rows, NOON + 3600 * MICRO, 0)
    tally.set_owner(slice(1, 2), 0, 1)
    tally.end(1, 3)
    tally.flush(rows)

    assert [_served([group]) for group in tally.groups.all if len(group.unit)] == [{1: 1.0}, {1: 1.0}, {0: 1.0}]


def test_cells_and_roster_epochs_are_counted_apart(tmp_path: Path) -> None:
    """A new balance cell or a new roster begins new groups."""
    plan = planned(tmp_path, [lookup(second) for second in range(3)])
    tally, rows = _tally(plan), plan.rows
    for row, (start, epoch) in enumerate(((NOON, 0), (NOON, 1), (NOON + 3600 * MICRO, 1))):
        tally.begin(rows, start, epoch)
        tally.end(row, row + 1)
    tally.flush(rows)

    assert [(group.cell_us - NOON, group.epoch) for group in tally.groups.all] == [(0, 0), (0, 1), (3600 * MICRO, 1)]


def test_agreement_is_about_answered_lookups_with_a_logged_broker(tmp_path: Path) -> None:
    """A stranger in the log disagrees; what the log leaves open does not count."""
    rows = [lookup(0, broker="a:1"), lookup(1, broker="b:1"), lookup(2, broker="stranger"), lookup(3, broker=None)]
    plan = planned(tmp_path, rows)
    tally = _tally(plan)
    tally.begin(plan.rows, NOON, 0)
    tally.set_owner(slice(0, 1), 0, 0)
    tally.end(0, 4)
    tally.flush(plan.rows)

    assert (tally.logged.tolist(), tally.agreed.tolist()) == ([3.0], [1.0])


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
