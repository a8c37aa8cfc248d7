"""Churn by the examples of those who invented the figures."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pytest

from lookup.model.churn import on_cycles

#: Moves from each store (row) to each (column), of the tests of TiKV's `pd-analysis`.
_DENSE = [
    [0, 1, 1, 4, 0, 0],
    [0, 0, 0, 8, 9, 6],
    [0, 1, 0, 0, 3, 2],
    [2, 3, 4, 0, 3, 0],
    [5, 9, 0, 0, 0, 0],
    [0, 8, 0, 0, 0, 0],
]
_CHAIN = [
    [0, 0, 0, 0, 0, 0],
    [0, 0, 0, 0, 2, 0],
    [0, 0, 0, 0, 0, 1],
    [0, 0, 0, 0, 0, 0],
    [1, 0, 0, 0, 0, 0],
    [0, 1, 0, 0, 0, 0],
]
_CROWDED = [
    [0, 15, 42, 21, 84, 9, 38, 5],
    [76, 0, 84, 3, 130, 0, 129, 0],
    [0, 35, 0, 86, 0, 60, 0, 15],
    [143, 0, 106, 0, 178, 0, 132, 0],
    [0, 101, 0, 120, 0, 118, 1, 33],
    [133, 0, 140, 0, 93, 0, 114, 0],
    [0, 48, 0, 84, 1, 48, 0, 20],
    [61, 2, 57, 7, 122, 1, 21, 0],
]


def _split(flow: Sequence[Sequence[int]]) -> tuple[int, int]:
    """Count moves on cycles and others of a matrix of moves."""
    matrix = np.array(flow)
    source, target = (np.repeat(ends, matrix.ravel()) for ends in np.indices(matrix.shape).reshape(2, -1))
    marks = on_cycles(source, target)
    return int(marks.sum()), int((~marks).sum())


@pytest.mark.parametrize(("flow", "expected"), [(_DENSE, (64, 5)), (_CHAIN, (0, 5))], ids=["dense", "chain"])
def test_pd_analysis_counts_the_same(flow: Sequence[Sequence[int]], expected: tuple[int, int]) -> None:
    """Redundant and necessary, as its own tests have them."""
    assert _split(flow) == expected


def test_the_shortest_cycles_first_find_more_of_them() -> None:
    """Where almost every pair of stores has moves, `pd-analysis` finds 1778 redundant of these 2716, depth first."""
    assert _split(_CROWDED) == (1801, 915)
