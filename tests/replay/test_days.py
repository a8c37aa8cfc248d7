"""Days in the total order (ts, seq, file, row)."""

from __future__ import annotations

from pathlib import Path

from hypothesis import given, settings
from hypothesis import strategies as st

from tests.replay.plans import NOON, lookup, planned


@given(
    st.lists(st.tuples(st.integers(0, 3), st.none() | st.integers(-2, 2)), min_size=1, max_size=12),
    st.integers(1, 5),
)
@settings(max_examples=30)
def test_rows_are_in_order_of_time_number_and_place(
    tmp_path_factory: object, rows: list[tuple[int, int | None]], tasks: int
) -> None:
    """Equal times go by number, rows without number first, equal numbers by place in the files."""
    folder = tmp_path_factory.mktemp("order")  # type: ignore[attr-defined]  # pytest's factory
    log = [lookup(second, seq=seq, weight=float(place), properties="{}") for place, (second, seq) in enumerate(rows)]
    found = planned(folder, log, tasks=tasks).rows

    key = {place: (second, seq is not None, seq or 0, place) for place, (second, seq) in enumerate(rows)}
    assert found.column("weight", slice(None)).tolist() == [place * 1e6 for place in sorted(key, key=key.__getitem__)]
    assert len(found) == len(rows)


def test_parts_that_meet_in_one_instant_are_ordered_by_number(tmp_path: Path) -> None:
    """Where one task's last lookup and the next task's first come at the same time, `seq` decides."""
    log = [lookup(0, seq=2, weight=2.0), lookup(0, seq=1, weight=1.0)]

    assert planned(tmp_path, log, tasks=2).rows.column("weight", slice(None)).tolist() == [1e6, 2e6]


def test_tasks_whose_codes_differ_in_width_are_joined(tmp_path: Path) -> None:
    """One task met one namespace, the next two hundred, whose codes need more bits."""
    names = ["n000", *(f"n{number:03d}" for number in range(200))]
    rows = planned(
        tmp_path, [lookup(place, topic=f"persistent://t/{name}/x") for place, name in enumerate(names)], tasks=2
    )

    assert rows.rows.column("atom", slice(None)).tolist() == [0, *range(200)]
    assert rows.cluster.words.atoms.count == 200


def test_a_column_of_one_value_is_kept_as_that_value(tmp_path: Path) -> None:
    """Constants take no room and read like columns."""
    rows = planned(tmp_path, [lookup(0), lookup(1)]).rows

    assert rows.constant("weight") == 1_000_000
    assert rows.column("weight", slice(0, 2)).tolist() == [1e6, 1e6]
    assert rows.constant("ts") is None
    assert (rows.ts - NOON).tolist() == [0, 1_000_000]
