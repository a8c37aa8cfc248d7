"""Counting rows by bundle, broker and client class."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from lookup.replay.counted import CellLedger
from lookup.replay.tally import OwnerTally
from tests.replay.plans import NOON, Planned, lookup, planned
from tests.replay.worlds import MICRO


def _tally(plan: Planned) -> OwnerTally:
    return OwnerTally(plan.cluster, plan.run, CellLedger(plan.cluster, plan.run))


def test_cells_and_roster_epochs_are_counted_apart(tmp_path: Path) -> None:
    """A new balance cell or a new roster begins new groups."""
    plan = planned(tmp_path, [lookup(second) for second in range(3)])
    tally, rows = _tally(plan), plan.rows
    for row, (start, epoch) in enumerate(((NOON, 0), (NOON, 1), (NOON + 3600 * MICRO, 1))):
        tally.begin(rows, start, epoch)
        tally.end(row, row + 1)
    tally.flush(rows)

    assert [(group.cell_us - NOON, group.epoch) for group in tally.groups.all] == [(0, 0), (0, 1), (3600 * MICRO, 1)]


@pytest.fixture(scope="module")
def busy(tmp_path_factory: pytest.TempPathFactory) -> Planned:
    """Return twelve lookups of three bundles that come in turns, by two kinds of clients, of different weights."""
    rows = [
        lookup(
            second,
            topic=f"persistent://t/{'abc'[second % 3]}/x",
            weight=1.0 + second,
            broker=("a:1", "b:1", "stranger", None)[second % 4],
            properties='{"rack": "a"}' if second % 2 else "{}",
        )
        for second in range(12)
    ]
    return planned(tmp_path_factory.mktemp("busy"), rows)


#: Changes of owner in order: row, first bundle and bundle after the last, owner. A change may come after all rows.
_CHANGES = st.lists(
    st.tuples(st.integers(0, 12), st.sampled_from([(0, 1), (1, 2), (2, 3), (0, 2), (1, 3)]), st.integers(-1, 1)),
    max_size=8,
).map(lambda changes: sorted(changes, key=lambda change: change[0]))


@given(_CHANGES, st.integers(1, 12))
def test_counts_are_those_of_a_loop_over_rows(
    busy: Planned, changes: Sequence[tuple[int, tuple[int, int], int]], cut: int
) -> None:
    """Whenever bundles change hands, and wherever a cell ends: by bundle, owner and client, and as logged or not."""
    tally, rows = _tally(busy), busy.rows
    owners, expected = [-1] * 3, Counter[tuple[int, int, int]]()
    logged, agreed = [0.0] * 3, [0.0] * 3
    for row in range(12):
        if row in (0, cut):
            tally.begin(rows, NOON + (row and 3600 * MICRO), 0)
        for at, (first, stop), owner in changes:
            if at == row:
                tally.set_owner(slice(first, stop), owner, row)
                owners[first:stop] = [owner] * (stop - first)
        tally.end(row, row + 1)
        atom, broker = rows.value("atom", row), rows.value("broker", row)
        expected[atom, owners[atom], rows.value("properties", row)] += rows.value("weight", row)
        logged[atom] += broker != -1 and owners[atom] >= 0
        agreed[atom] += broker >= 0 and owners[atom] == broker
    for at, (first, stop), owner in changes:
        if at == 12:
            tally.set_owner(slice(first, stop), owner, 12)
    tally.flush(rows)
    found = Counter[tuple[int, int, int]]()
    for group in tally.groups.all:
        columns = (getattr(group, name).tolist() for name in ("unit", "broker", "client", "weight"))
        for unit, owner, client, weight in zip(*columns, strict=True):
            found[unit, owner, client] += weight

    assert (found, tally.logged.tolist(), tally.agreed.tolist()) == (expected, logged, agreed)
    assert sum(np.sum(group.lookups) for group in tally.groups.all) == 12
