"""Draws and totals over them."""

from __future__ import annotations

import math

import numpy as np
import pytest

from lookup.score.bootstrap import Draws, Resampling, draw, interval, totals
from lookup.score.series import Series, series_of
from tests.score.cases import HOUR_US, METRICS, ratios, sums

FEW = Resampling(resamples=300)


def series(*parts: object) -> list[Series]:
    """Group sums of the policies `stock` and `new`."""
    return series_of(parts, METRICS, ["stock", "new"])


def cells(count: int, start: int = 0, **where: object) -> object:
    """Write down the sums of a metric over time, cells of an hour."""
    return ratios("new", [0.5] * count, "imbalance_cv", start_us=start * HOUR_US, **where)


def test_as_many_units_are_drawn_as_there_are() -> None:
    """Bundles without any figures are not drawn."""
    drawn = draw(series(sums("new", [[1, 1], [0, 0], [2, 2], [0, 3]])), FEW)

    assert drawn.bundles["c"].tolist() == [0, 2, 3]
    assert set(drawn.bundle_counts["c"].sum(axis=1)) == {3}


def test_units_are_drawn_evenly() -> None:
    """Each of ten bundles is drawn once per resample on average, with the variance of drawing with replacement."""
    counts = draw(series(ratios("new", [1.0] * 10)), Resampling(resamples=20_000)).bundle_counts["c"]

    assert counts.mean(axis=0) == pytest.approx(1.0, abs=0.03)
    assert counts.var(axis=0) == pytest.approx(0.9, abs=0.05)


def test_draws_are_reproducible() -> None:
    """The same seed gives the same draws; another gives others; clusters differ."""
    both = series(ratios("new", [1.0] * 30), ratios("new", [1.0] * 30, cluster="d"))
    one, same, other = draw(both, FEW), draw(both, FEW), draw(both, Resampling(resamples=300, seed=2))

    assert np.array_equal(one.bundle_counts["c"], same.bundle_counts["c"])
    assert not np.array_equal(one.bundle_counts["c"], other.bundle_counts["c"])
    assert not np.array_equal(one.bundle_counts["c"], one.bundle_counts["d"])


def test_one_more_cluster_changes_no_draw() -> None:
    """Dice are rolled for each cluster apart."""
    alone = draw(series(ratios("new", [1.0] * 30)), FEW)
    beside = draw(series(ratios("new", [1.0] * 30), ratios("new", [1.0] * 9, cluster="a")), FEW)

    assert np.array_equal(alone.bundle_counts["c"], beside.bundle_counts["c"])


def test_blocks_are_circular_runs() -> None:
    """Blocks of three of six cells: two runs of neighbours, across the end too, and each cell drawn evenly."""
    drawn = draw(series(cells(6)), Resampling(resamples=6000, block_s=3 * 3600))
    runs = {tuple(sum(np.roll([1, 1, 1, 0, 0, 0], start) for start in pair)) for pair in np.ndindex(6, 6)}

    assert drawn.cells_per_block == 3
    assert {tuple(row) for row in drawn.cell_counts.tolist()} == runs
    assert drawn.cell_counts.mean(axis=0) == pytest.approx(1.0, abs=0.06)


@pytest.mark.parametrize(("block_s", "expected"), [(1, 1), (3600, 1), (7200, 2), (10**9, 5)])
def test_blocks_have_one_cell_at_least_and_all_at_most(block_s: int, expected: int) -> None:
    """A block shorter than a cell is a cell, one longer than the run is the run."""
    drawn = draw(series(cells(5)), Resampling(resamples=10, block_s=block_s))

    assert drawn.cells_per_block == expected
    assert set(drawn.cell_counts.sum(axis=1)) == {5}


def test_clusters_share_their_time() -> None:
    """Cells are told by their start: two clusters that overlap by one hour span five, and gaps are not drawn."""
    overlapping = series(cells(3), cells(3, start=2, cluster="d"), cells(1, start=10_000, cluster="e"))

    assert (draw(overlapping, FEW).cells // HOUR_US).tolist() == [0, 1, 2, 3, 4, 10_000]


def test_totals_are_sums_over_the_drawn_units() -> None:
    """Each total equals the sums of the drawn bundles, added one by one."""
    one = series(sums("new", [[1, 2], [0, 0], [3, 5], [7, 11]]))
    drawn = draw(one, FEW)
    figures = np.array([[1, 2], [3, 5], [7, 11]])

    (total,) = totals(one, "c", drawn)

    expected = [sum(count * row for count, row in zip(counts, figures, strict=True)) for counts in _lists(drawn)]
    assert total[1].tolist() == [row.tolist() for row in expected]


def _lists(drawn: Draws) -> list[list[int]]:
    return drawn.bundle_counts["c"].tolist()


def test_cells_total_where_they_stand() -> None:
    """A cluster that begins an hour later is drawn with the later cells."""
    both = series(cells(2), sums("new", [[5, 8]], "imbalance_cv", cluster="d", start_us=HOUR_US))
    drawn = draw(both, FEW)

    (total,) = totals(both, "d", drawn)

    assert total[1].tolist() == [[5 * count, 8 * count] for count in drawn.cell_counts[:, 1].tolist()]


def test_a_cluster_without_figures_has_no_totals() -> None:
    """Nothing is drawn for it."""
    one = series(ratios("new", [1.0]))

    assert totals(one, "elsewhere", draw(one, FEW)) == [{}]


def test_intervals_are_percentiles() -> None:
    """The middle 95 % of the samples."""
    assert interval(np.arange(1001.0), 500.0) == (25.0, 975.0)


def test_intervals_contain_the_observed_value() -> None:
    """Even where resampling is biased or rounding differs."""
    assert interval(np.ones(100), 1.5) == (1.0, 1.5)
    assert interval(np.ones(100), 0.5) == (0.5, 1.0)


def test_resamples_without_figures_are_left_out() -> None:
    """Up to half of them; with more there is no interval."""
    assert interval(np.array([np.nan, np.nan, 1.0, 1.0]), 1.0) == (1.0, 1.0)
    assert math.isnan(interval(np.array([np.nan, np.nan, np.nan, 1.0]), 1.0)[0])
    assert math.isnan(interval(np.ones(4), math.nan)[0])


def test_seed_shares_add_up_to_one() -> None:
    """One seed always counts fully; several are drawn with replacement."""
    drawn = draw([], FEW)

    assert set(drawn.seed_shares(1).ravel()) == {1.0}
    assert set(drawn.seed_shares(4).sum(axis=1)) == {1.0}
    assert drawn.seed_shares(4).min() == 0.0
