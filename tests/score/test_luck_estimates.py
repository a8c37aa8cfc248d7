"""Estimates: figures of clusters and of all together, with intervals over replicates, units and events."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, cast

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from lookup.hooks import Metric
from lookup.replay.outcome import MetricSums
from lookup.score.luck import Estimate, estimate
from lookup.score.series import series_of
from tests.score.cases import layout, moves, ratios, series, sums
from tests.score.cases import spread as spaced


def estimates(*parts: MetricSums, **how: int) -> list[Estimate]:
    """Estimate sums of the policies `stock` and `new`."""
    several = series(*parts)
    return estimate(several, layout(several, **how))


#: Half the width of the interval of two replicates that lie 0.02 apart: Student's, with one degree of freedom.
HALF = 12.706205 * 0.01


@pytest.mark.parametrize("metric", ["match_ratio", "imbalance_cv"])
def test_the_interval_lies_around_the_mean_of_replicates(metric: str) -> None:
    """As far to either side where the ends are far away."""
    values = (0.49, 0.51)
    estimated = estimates(*(ratios("new", [one] * 50, metric, seed=seed) for seed, one in enumerate(values)))[0]

    assert estimated.value == pytest.approx(0.5)
    assert (estimated.low, estimated.high) == pytest.approx((0.5 - HALF, 0.5 + HALF))


def test_the_ends_are_those_of_the_metric() -> None:
    """The largest over the mean is 1 at least, and the interval is still above though the value is near."""
    values = (1.01, 1.03)
    parts = [ratios("new", [one] * 50, "imbalance_max_mean", seed=seed) for seed, one in enumerate(values)]
    estimated = estimates(*parts)[0]

    assert 1.0 < estimated.low < 1.001
    assert estimated.high == pytest.approx(1.02 + HALF)


def test_what_cannot_be_negative_has_no_negative_interval() -> None:
    """One lost broker of nine moves may have been none, but not fewer."""
    few = estimates(moves("new", [1] * 3 + [9], causes=["forced"]))[0]

    assert 0.0 < few.low < 1.0
    assert few.value == 12.0


@dataclass(frozen=True)
class Unbounded:
    """A metric that does not say where its figure ends."""

    name: ClassVar[str] = "unbounded"
    unit: ClassVar[str] = "balance"
    better: ClassVar[str] = "up"
    resample: ClassVar[str] = "bundle"

    def value(self, totals: Any) -> Any:
        """Return the total."""
        return totals[..., 0]


def test_what_a_metric_does_not_say_its_sums_do() -> None:
    """What is made of sums that are never negative is not negative either; other sums have no end."""
    balance, count = (_estimated_without_bounds(totals) for totals in ([5, -4, 1, 2], [5, 4, 1, 200]))

    assert balance.low < 0.0
    assert balance.value - balance.low == pytest.approx(balance.high - balance.value)
    assert 0.0 < count.low < 1.0
    assert count.high > 2 * count.value


def _estimated_without_bounds(totals: Sequence[float]) -> Estimate:
    part = sums("new", [[total] for total in totals], "unbounded")
    (figure,) = series_of([part], [cast("Metric", Unbounded())], ["new"])
    return estimate([figure], layout([figure]))[0]


def test_parts_have_intervals_of_their_own() -> None:
    """A tenant's interval rests on its bundles; samples are kept for the pooled figures of the whole demand only."""
    shares = sorted(spaced(0.5, 0.4))
    tenant = [[100 * share, 100] if place < 20 else [0, 0] for place, share in enumerate(shares)]

    whole, of_cluster, part, _ = estimates(ratios("new", shares), sums("new", tenant, by=(("tenant", "t"),)))

    assert whole.sample is not None
    assert (of_cluster.sample, part.sample) == (None, None)
    assert part.low < part.value < part.high < whole.value


def test_metrics_whose_rows_are_no_units_have_no_interval() -> None:
    """A quantile has a value only."""
    estimated = estimates(sums("new", [[1, 1]], "network_ms_p95"))[0]

    assert estimated.value == 1.0
    assert math.isnan(estimated.low)
    assert estimated.sample is not None


def test_a_figure_that_one_replicate_does_not_have_is_none() -> None:
    """A mean over the others would be one over other luck."""
    estimated = estimates(sums("new", [[1, 1], [0, 0]], seed=1), sums("new", [[0, 0], [0, 0]], seed=2))[0]

    assert math.isnan(estimated.value)
    assert math.isnan(estimated.low)


@given(
    st.lists(st.tuples(st.integers(0, 50), st.integers(0, 50)), min_size=1, max_size=30),
    st.sampled_from(["bundle", "time"]),
)
def test_intervals_contain_the_observed_value(rows: list[tuple[int, int]], unit: str) -> None:
    """Whatever the figures: low <= value <= high wherever there is an interval."""
    metric = "answered_ratio" if unit == "bundle" else "imbalance_cv"
    estimated = estimates(
        sums("new", [[a, a + b] for a, b in rows], metric), sums("new", [[a] for a, _ in rows], "moves")
    )

    assert all(one.low <= one.value <= one.high for one in estimated if not math.isnan(one.low))


def test_bundle_intervals_cover_the_truth() -> None:
    """In 400 worlds of 60 bundles, of skewed sizes and with odds of their own, 90 to 98 % are covered."""
    rng = np.random.default_rng(7)

    covered = sum(_covers_truth_over_bundles(rng) for _ in range(400))

    assert 360 <= covered <= 392


def _covers_truth_over_bundles(rng: np.random.Generator) -> bool:
    """Draw sizes that differ a hundredfold and, independently, odds from Beta(8, 2): the truth is 0.8."""
    sizes = np.ceil(rng.lognormal(3, 1, 60)).astype(np.int64)
    hits = rng.binomial(sizes, rng.beta(8, 2, 60))
    estimated = estimates(sums("new", np.stack([hits, sizes], axis=1)))[0]
    return estimated.low <= 0.8 <= estimated.high


def test_time_intervals_cover_the_truth() -> None:
    """In 400 worlds whose imbalance drifts slowly 88 to 98 % are covered, whatever block is configured at least.

    Hours counted each for itself would cover less than 80 %.
    """
    worlds = list(_drifting())

    for block_s in (3600, 8 * 3600):
        assert 352 <= sum(_covers(rows, block_s) for rows in worlds) <= 392
    apart = [1.96 * np.std(rows, ddof=1) / math.sqrt(len(rows)) for rows in worlds]
    assert sum(abs(np.mean(rows) - 0.4) <= half for rows, half in zip(worlds, apart, strict=True)) < 320


def _drifting() -> Iterator[np.ndarray]:
    """Yield the imbalance of 240 hours around 0.4, each of which keeps 0.6 of the one before."""
    rng = np.random.default_rng(11)
    for _ in range(400):
        noise = rng.normal(0, 0.05, 240)
        drift = np.zeros(240)
        for hour in range(1, 240):
            drift[hour] = 0.6 * drift[hour - 1] + noise[hour]
        yield 0.4 + drift


def _covers(imbalance: np.ndarray, block_s: int) -> bool:
    rows = np.stack([imbalance * 100, np.full(len(imbalance), 100.0)], axis=1)
    estimated = estimates(sums("new", rows, "imbalance_cv"), block_s=block_s)[0]
    return estimated.low <= 0.4 <= estimated.high
