"""Values with intervals, and whether the intervals cover a known truth."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from lookup.score.bootstrap import Resampling, draw
from lookup.score.estimates import Estimate, estimate
from lookup.score.series import series_of
from tests.score.cases import HOUR_US, METRICS, ratios, spread, sums


def estimates(*parts: object, **how: int) -> list[Estimate]:
    """Estimate sums of the policies `stock` and `new`."""
    series = series_of(parts, METRICS, ["stock", "new"])
    return estimate(series, draw(series, Resampling(**({"resamples": 400} | how))))


def test_pooled_comes_before_clusters() -> None:
    """One estimate for all clusters, then one for each."""
    found = estimates(ratios("new", [0.5] * 5), ratios("new", [1.0] * 5, cluster="d"))

    assert [(one.cluster, one.value) for one in found] == [(None, 0.75), ("c", 0.5), ("d", 1.0)]


def test_the_interval_is_about_units_not_lookups() -> None:
    """A hundred times the lookups in the same bundles make no narrower interval."""
    few, many = (estimates(sums("new", scale * np.array([[1, 1], [0, 1], [1, 1], [0, 1]])))[0] for scale in (1, 100))

    assert (few.low, few.high) == (many.low, many.high) == (0.0, 1.0)


def test_one_policy_more_changes_no_interval() -> None:
    """Draws are the same for all policies."""
    alone = estimates(ratios("stock", spread(0.5, 0.2)))[0]
    beside = estimates(ratios("stock", spread(0.5, 0.2)), ratios("new", spread(0.3, 0.1)))[0]

    assert (alone.low, alone.high) == (beside.low, beside.high)


def test_parts_have_intervals_of_their_own() -> None:
    """A tenant's interval rests on its bundles; samples are kept for the whole only."""
    shares = spread(0.5, 0.4)
    tenant = [[100 * share, 100] if place < 20 else [0, 0] for place, share in enumerate(shares)]

    whole, _, part, _ = estimates(ratios("new", shares), sums("new", tenant, by=(("tenant", "t"),)))

    assert whole.samples is not None
    assert part.samples is None
    assert part.low < part.value < part.high < whole.value


def test_metrics_without_resampling_have_no_interval() -> None:
    """A quantile has a value only."""
    found = estimates(sums("new", [[1, 1]], "network_ms_p95"))[0]

    assert found.value == 1.0
    assert math.isnan(found.low)
    assert found.samples is None


def test_seeds_widen_the_interval() -> None:
    """Two seeds that differ make an interval even where all bundles are alike."""
    found = estimates(ratios("new", [0.4] * 50, seed=1), ratios("new", [0.6] * 50, seed=2))[0]

    assert (found.low, found.value, found.high) == pytest.approx((0.4, 0.5, 0.6))


def test_a_seed_that_was_not_drawn_does_not_matter() -> None:
    """Each seed has figures in one of two bundles: a resample is void only if it drew a seed without its bundle."""
    found = estimates(sums("new", [[1, 1], [0, 0]], seed=1), sums("new", [[0, 0], [1, 1]], seed=2), resamples=4000)[0]

    # one bundle is missing half the time; then the seed that needs it is drawn three times out of four
    assert found.samples is not None
    assert np.isnan(found.samples).mean() == pytest.approx(0.375, abs=0.03)


def test_a_figure_few_units_have_still_has_an_interval() -> None:
    """Resamples that miss the only two bundles with figures are left out."""
    found = estimates(ratios("stock", [0.5] * 30), sums("new", [[1, 2], [3, 4]] + [[0, 0]] * 28))

    assert (found[2].low, found[2].value, found[2].high) == pytest.approx((0.5, 4 / 6, 0.75))


@given(
    st.lists(st.tuples(st.integers(0, 50), st.integers(0, 50)), min_size=1, max_size=30),
    st.sampled_from(["bundle", "time"]),
)
def test_intervals_contain_the_observed_value(rows: list[tuple[int, int]], unit: str) -> None:
    """Whatever the figures: low <= value <= high wherever there is an interval."""
    metric = "answered_ratio" if unit == "bundle" else "imbalance_cv"
    found = estimates(sums("new", [[a, a + b] for a, b in rows], metric), sums("new", [[a] for a, _ in rows], "moves"))

    assert all(one.low <= one.value <= one.high for one in found if not math.isnan(one.low))


def test_bundle_intervals_cover_the_truth() -> None:
    """In 200 worlds of 60 bundles, of skewed sizes and with odds of their own, 90 to 99 % are covered."""
    rng = np.random.default_rng(7)

    covered = sum(_covers_truth_over_bundles(rng) for _ in range(200))

    assert 180 <= covered <= 198


def _covers_truth_over_bundles(rng: np.random.Generator) -> bool:
    """Draw sizes that differ a hundredfold and, independently, odds from Beta(8, 2): the truth is 0.8."""
    sizes = np.ceil(rng.lognormal(3, 1, 60)).astype(np.int64)
    hits = rng.binomial(sizes, rng.beta(8, 2, 60))
    found = estimates(sums("new", np.stack([hits, sizes], axis=1)), resamples=300)[0]
    return found.low <= 0.8 <= found.high


def test_time_intervals_cover_the_truth() -> None:
    """In 200 worlds whose imbalance drifts slowly, blocks of eight hours cover the truth; single hours do not."""
    blocks, hours = (_covered_over_time(block_s) for block_s in (8 * 3600, 3600))

    assert 176 <= blocks <= 198
    assert hours < 160


def _covered_over_time(block_s: int) -> int:
    rng = np.random.default_rng(11)
    covered = 0
    for _ in range(200):
        noise = rng.normal(0, 0.05, 240)
        drift = np.zeros(240)
        for hour in range(1, 240):
            drift[hour] = 0.6 * drift[hour - 1] + noise[hour]
        rows = np.stack([(0.4 + drift) * 100, np.full(240, 100.0)], axis=1)
        found = estimates(sums("new", rows, "imbalance_cv"), resamples=300, block_s=block_s)[0]
        covered += found.low <= 0.4 <= found.high
    return covered


def test_time_starts_where_the_log_does() -> None:
    """Where a run begins does not matter."""
    rows = [[1, 4], [2, 4], [3, 4]]
    early, late = (estimates(sums("new", rows, "imbalance_cv", start_us=hour * HOUR_US))[0] for hour in (0, 400_000))

    assert (early.low, early.high) == (late.low, late.high)
