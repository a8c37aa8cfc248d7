"""Grouping rows by several integer columns."""

from __future__ import annotations

from collections import Counter

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from lookup.replay.grouping import column_keys


@given(st.lists(st.tuples(st.integers(0, 50), st.integers(0, 9)), min_size=1), st.sampled_from([51, 1 << 24]))
def test_groups_are_counted_alike_however_many_keys_there_may_be(rows: list[tuple[int, int]], bound: int) -> None:
    """Dense and sparse counting give the same keys, counts and sums."""
    keys, weights = (np.array(column, dtype=np.float64) for column in zip(*rows, strict=True))
    (found,), counts, sums = column_keys(keys.astype(np.int64), size=bound).count_keys(weights)

    expected, weight = Counter(key for key, _ in rows), Counter[int]()
    for key, each in rows:
        weight[key] += each
    assert dict(zip(found.tolist(), counts.tolist(), strict=True)) == dict(expected)
    assert sums.tolist() == [weight[key] for key in found.tolist()]


@given(st.lists(st.tuples(st.integers(-1, 126), st.integers(-2, 3), st.integers(0, 4)), min_size=1))
def test_columns_come_back_in_the_order_of_the_columns(rows: list[tuple[int, int, int]]) -> None:
    """Packed, numbered in between or not, groups are those of the tuples, sorted, with their sums."""
    first, second, third = (np.array(column, dtype=np.int8) for column in zip(*rows, strict=True))
    pairs = column_keys(first, size=128, low=-1).by(second, size=6, low=-2)
    for keys in (pairs.by(third, size=5), pairs.compact().by(third, size=5)):
        columns, lookups, weight = keys.count_keys(2.0)
        again, (sums,) = keys.sum_values(np.ones(len(rows)))

        assert list(zip(*(column.tolist() for column in columns), strict=True)) == sorted(set(rows))
        assert [column.tolist() for column in again] == [column.tolist() for column in columns]
        assert lookups.tolist() == sums.tolist() == [rows.count(row) for row in sorted(set(rows))]
        assert weight.tolist() == [2.0 * count for count in lookups.tolist()]
