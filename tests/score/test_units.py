"""How many observations a comparison rests on."""

from __future__ import annotations

import pytest

from lookup.score.bootstrap import Resampling, draw
from lookup.score.series import series_of
from lookup.score.units import count_units, units_text
from tests.score.cases import HOUR_US, METRICS, ratios, sums


def count(*parts: object, metric: str, block_s: int = 3600) -> int:
    """Count the units of one metric of `stock` and `new`."""
    series = series_of(parts, METRICS, ["stock", "new"])
    stock, new = (one for one in series if one.metric.name == metric)
    return count_units(stock, new, draw(series, Resampling(10, block_s)))


def test_quotients_count_bundles_with_figures() -> None:
    """In either policy, and in every cluster."""
    parts = [
        sums("stock", [[0, 1], [0, 0], [0, 0], [0, 0]]),
        sums("new", [[0, 0], [1, 1], [0, 0], [0, 0]]),
        sums("stock", [[1, 1]], cluster="d"),
        sums("new", [[1, 1]], cluster="d"),
    ]

    assert count(*parts, metric="answered_ratio") == 3


def test_totals_count_every_bundle_that_was_there() -> None:
    """A bundle with lookups that did not move is an observation of no move."""
    parts = [sums(policy, [[0], [0], [1], [0]], "moves") for policy in ("stock", "new")]
    parts.append(sums("new", [[1, 1], [1, 1], [1, 1], [0, 0]]))

    assert count(*parts, metric="moves") == 3


@pytest.mark.parametrize(("block_s", "expected"), [(3600, 5), (7200, 3), (36_000, 1)])
def test_time_counts_blocks(block_s: int, expected: int) -> None:
    """Five hours are five, three or one; the same hour of two clusters is one; an empty hour is none."""
    rows = [[1, 1], [1, 1], [1, 1], [0, 0]]
    parts = [sums(policy, rows, "imbalance_cv") for policy in ("stock", "new")]
    parts += [sums(policy, rows, "imbalance_cv", cluster="d", start_us=2 * HOUR_US) for policy in ("stock", "new")]

    assert count(*parts, metric="imbalance_cv", block_s=block_s) == expected


def test_units_have_names() -> None:
    """Reasons speak of bundles or blocks of time."""
    one, other = series_of([ratios("new", [1.0]), ratios("new", [1.0], "imbalance_cv")], METRICS, ["new"])

    assert (units_text(one, 2), units_text(other, 1)) == ("2 bundles", "1 block of time")
