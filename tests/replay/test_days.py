"""Days in the total order (ts, seq, file, row), and their slices: the same from however many parts."""

from __future__ import annotations

from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from lookup.replay.days import Slice, rows_of, slices_of_day
from lookup.replay.walk import walk_slices
from tests.replay.plans import NOON, WHOLE, Planned, lookup, planned
from tests.replay.worlds import MICRO


def test_tasks_whose_codes_differ_in_width_are_joined(tmp_path: Path) -> None:
    """One task met one namespace, the next two hundred, whose codes need more bits."""
    names = ["n000", *(f"n{number:03d}" for number in range(200))]
    rows = planned(
        tmp_path, [lookup(place, topic=f"persistent://t/{name}/x") for place, name in enumerate(names)], tasks=2
    )

    assert rows.rows.column("atom", slice(None)).tolist() == [0, *range(200)]
    assert rows.cluster.words.atoms.count == 200


def _sliced(plan: Planned, most_rows: int) -> list[Slice]:
    (parts,) = plan.cluster.days.values()
    starts, is_grid = plan.cluster.timeline.bounds[:-1], plan.cluster.timeline.is_grid
    return list(slices_of_day(plan.work, [parts], starts[is_grid], most_rows=most_rows))


@given(
    st.lists(st.tuples(st.integers(0, 400), st.none() | st.integers(-(2**40), 2**40)), min_size=1, max_size=30),
    st.integers(1, 5),
    st.integers(1, 12),
)
@settings(max_examples=40, deadline=None)
def test_slices_are_the_day_cut_between_ticks(
    tmp_path_factory: Any, rows: list[tuple[int, int | None]], tasks: int, most_rows: int
) -> None:
    """One after the other they have its rows in its order, as many as may be, and no tick is in two of them."""
    log = [lookup(second, seq=seq, weight=float(place)) for place, (second, seq) in enumerate(rows)]
    plan = planned(tmp_path_factory.mktemp("slices"), log, tasks=tasks)
    found = [rows_of(plan.work, cut.tables[0]) for cut in _sliced(plan, most_rows)]

    whole = plan.rows
    for name in ("ts", "weight"):
        values = np.concatenate([one.column(name, slice(None)) for one in found])
        assert values.tolist() == whole.column(name, slice(None)).tolist()
    ticks = [set(((one.ts - NOON) // (60 * MICRO)).tolist()) for one in found]
    assert all(max(before) < min(after) for before, after in pairwise(ticks))
    assert all(len(one) <= most_rows or len(of) == 1 for one, of in zip(found, ticks, strict=True))
    # A slice ends where the next tick that has lookups would be too much for it.
    for one, after, of in zip(found, found[1:], ticks[1:], strict=False):
        assert len(one) + int((((after.ts - NOON) // (60 * MICRO)) == min(of)).sum()) > most_rows


def test_load_reports_come_with_the_slice_of_their_time(tmp_path: Path) -> None:
    """Reports count as rows; those before the first lookup come with the first slice, later ones with theirs."""
    reports = [
        {"ts": NOON + second * MICRO, "cluster": "east", "bundle": WHOLE, "stats": f'{{"msgThroughputIn": {second}}}'}
        for second in (-7200, -30, 30, 90, 150)
    ]
    plan = planned(
        tmp_path,
        [lookup(0), lookup(61), lookup(125)],
        tables={"bundles": reports},
        evaluation={"slice_rows": 2, "tick_s": 60, "session_s": 60},
    )
    found = []
    for ticks in walk_slices(plan.cluster, plan.run, plan.work):
        bundles = ticks[0].reports.bundles
        assert bundles is not None
        found.append((len(ticks[0].rows), ((bundles.ts - NOON) // MICRO).tolist()))

    assert found == [(1, [-7200, -30, 30]), (1, [90]), (1, [150])]
