"""Imbalance, overload and swinging load by hand."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from lookup.hooks import Metric
from lookup.model.batch import Batch, Cells
from lookup.model.broker import Roster
from lookup.score.metrics import ImbalanceCv, ImbalanceMaxMean, LoadVariation
from tests.score.oracle import Happenings
from tests.score.worlds import HOUR, batch_of, labelled


def batch(served: list[list[float]], registered: list[list[bool]] | None = None) -> Batch:
    """Build a batch from what each broker served in each cell."""
    figures = np.array(served)
    mask = np.ones(figures.shape, dtype=bool) if registered is None else np.array(registered)
    cells = Cells(np.arange(len(figures)) * HOUR, figures, mask, None, None)
    brokers = [labelled(f"{number}:8080") for number in range(figures.shape[1])]
    return replace(batch_of(Happenings([], (), {}, HOUR), brokers), cells=cells)


def value(metric: Metric, of: Batch) -> float:
    """Measure a batch."""
    return float(metric.value(metric.accumulate(of, None).sum(axis=0)))


def test_one_cell() -> None:
    """Brokers with 1, 2 and 3: the largest is 1.5 times their mean, the deviation sqrt(2/3) over 2."""
    one = batch([[1.0, 2.0, 3.0]])

    assert value(ImbalanceMaxMean(), one) == 1.5
    assert value(ImbalanceCv(), one) == pytest.approx(math.sqrt(2 / 3) / 2)


BROKERS = [labelled(f"{name}:8080") for name in "uvwxyz"]


def cells(*series: Sequence[float | None]) -> Batch:
    """Lay out what brokers served cell by cell; None where one was not registered."""
    served = np.array([[np.nan if load is None else load for load in loads] for loads in series]).T
    laid = Cells(np.arange(len(served)) * HOUR, np.nan_to_num(served), ~np.isnan(served), None, None)
    empty = batch_of(Happenings([], None, {}, HOUR), BROKERS[: len(series)])
    return Batch(
        empty.cluster,
        Roster(BROKERS[: len(series)]),
        empty.bundles,
        empty.clients,
        empty.served,
        empty.logged,
        empty.agreed,
        None,
        laid,
        empty.topology,
    )


def variation(*series: Sequence[float | None]) -> float:
    """Measure without dividing by the weight."""
    return float(LoadVariation().accumulate(cells(*series), None)[:, 0].sum())


@pytest.mark.parametrize(
    ("series", "expected"),
    [
        ([1, 2, 3, 4], 0),
        ([4, 3, 1, 1], 0),
        ([1, 2, 1], 2),
        ([2, 1, 2], 2),
        ([10, 8, 4, 2, 1, 2, 4, 8, 10], 18),
        ([0, 0, 5, 5], 0),
        ([0, 0, 5, 4], 0),
        ([1, 9, 5], 0.5**0.8 * 12 + (1 - 0.5**0.8) * 4),
        ([None, 3, 5, None, 3], 4),
        ([], 0),
        ([7], 0),
    ],
    ids=[
        "grows",
        "shrinks",
        "hump",
        "dip",
        "bathtub",
        "late",
        "late-and-less",
        "mostly-up",
        "absent",
        "no-cells",
        "one-cell",
    ],
)
def test_only_variation_against_the_trend_counts_in_full(series: Sequence[float | None], expected: float) -> None:
    """As in CockroachDB's `asim`: a trend alone is nothing, to and fro is everything, and between is between."""
    assert variation(series) == pytest.approx(expected)


def test_brokers_vary_apart() -> None:
    """Load that changes sides each time is variation of both, though their sum stands still."""
    assert variation([4, 0, 4], [1, 5, 1]) == 16


@given(st.lists(st.floats(0.01, 100), min_size=2, max_size=20), st.floats(0.1, 10))
def test_bounds_and_symmetries(series: list[float], factor: float) -> None:
    """At least the lesser direction and at most all steps; neither mirror nor unit make a difference."""
    up = sum(max(after - before, 0.0) for before, after in pairwise(series))
    down = sum(max(before - after, 0.0) for before, after in pairwise(series))
    found = variation(series)

    assert min(up, down) - 1e-9 <= found <= up + down + 1e-9
    assert variation(series[::-1]) == pytest.approx(found)
    assert variation([factor * load for load in series]) == pytest.approx(factor * found)
