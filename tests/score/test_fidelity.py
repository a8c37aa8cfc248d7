"""The replayed incumbent beside the log: the range of one more replicate, and how far the log lies outside of it."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
import pytest
from scipy import stats

from lookup.replay.outcome import LOGGED, MetricSums
from lookup.score.fidelity import Fidelity, compare_with_log
from lookup.score.series import series_of
from tests.score.cases import METRICS, decided, moves, plan, ratios, replicated, scored, sums

VALUES = (0.42, 0.5, 0.52, 0.56)


def replicates(values: Sequence[float], metric: str = "answered_ratio") -> list[MetricSums]:
    """Write down the incumbent's replicates, each with one value in all bundles."""
    return [ratios("stock", [value] * 30, metric, seed=seed) for seed, value in enumerate(values, 1)]


def compared(*parts: MetricSums, reason: str | None = None) -> list[Fidelity]:
    """Compare the policy `stock` with the log."""
    return compare_with_log(series_of(parts, METRICS, ["stock", "new", LOGGED]), "stock", reason)


def reach(values: Sequence[float], figures: int = 1) -> float:
    """Return how far from the mean one more replicate lies at most, once in twenty runs."""
    n = len(values)
    return float(stats.t.ppf(1 - 0.025 / figures, n - 1) * np.std(values, ddof=1) * math.sqrt(1 + 1 / n))


def test_the_range_is_that_of_one_more_replicate() -> None:
    """Student's prediction interval around the mean."""
    (figure,) = compared(*replicates(VALUES), ratios(LOGGED, [0.6] * 30, seed=0))

    assert figure.resimulated == pytest.approx(0.5)
    assert (figure.low, figure.high) == pytest.approx((0.5 - reach(VALUES), 0.5 + reach(VALUES)))
    assert (figure.seeds, figure.reason) == ((1, 2, 3, 4), None)


@pytest.mark.parametrize(
    ("logged", "gap"),
    [(0.5, 0.0), (0.5 + reach(VALUES), 0.0), (0.5 - reach(VALUES), 0.0), (0.9, 0.4), (0.1, 0.4)],
    ids=["mean", "upper-end", "lower-end", "above", "below"],
)
def test_the_gap_is_the_distance_from_the_range(logged: float, gap: float) -> None:
    """Inside of it there is none, and which side errs does not matter."""
    (figure,) = compared(*replicates(VALUES), ratios(LOGGED, [logged] * 30, seed=0))

    assert figure.gap == pytest.approx(max(0.0, gap - reach(VALUES)), abs=1e-9)


def test_a_figure_outside_is_not_plausible() -> None:
    """Whatever else varies."""
    inside, outside = compared(
        *replicates(VALUES),
        *replicates(VALUES, "imbalance_cv"),
        ratios(LOGGED, [0.5] * 30, seed=0),
        ratios(LOGGED, [5.0] * 30, "imbalance_cv", seed=0),
    )

    assert ((not inside.gap > 0), (not outside.gap > 0)) == (True, False)


def test_ranges_of_several_figures_are_wider() -> None:
    """All together hold one more replicate with 95 %; figures that the log does not have are not counted."""
    parts = [one for metric in ("answered_ratio", "network_cost", "imbalance_cv") for one in replicates(VALUES, metric)]
    logged = [ratios(LOGGED, [0.5] * 30, metric, seed=0) for metric in ("answered_ratio", "imbalance_cv")]

    assert {round(one.high - 0.5, 9) for one in compared(*parts, *logged)[:3:2]} == {round(reach(VALUES, 2), 9)}


def test_one_replicate_has_no_range() -> None:
    """The gap is then the whole difference; candidates play no part."""
    parts = [ratios("stock", [0.5] * 30), ratios("new", [0.9] * 30), ratios(LOGGED, [0.6] * 30, seed=0)]

    (figure,) = compared(*parts)

    assert (figure.metric, figure.key, figure.reason) == ("answered_ratio", None, None)
    assert (figure.logged, figure.low, figure.high, figure.gap) == pytest.approx((0.6, 0.5, 0.5, 0.1))


def test_a_log_of_the_incumbent_is_plausible() -> None:
    """Of 400 logs that are one more replicate, by three figures at once, at most six in a hundred are doubted."""
    rng = np.random.default_rng(4)
    doubted = 0
    for _ in range(400):
        drawn = {metric: rng.normal(0.5, 0.05, 6) for metric in ("answered_ratio", "imbalance_cv", "network_ms_mean")}
        parts = [part for metric, values in drawn.items() for part in replicates(values[:5].tolist(), metric)]
        logged = [ratios(LOGGED, [values[5]] * 30, metric, seed=0) for metric, values in drawn.items()]
        doubted += not all((not one.gap > 0) for one in compared(*parts, *logged))

    assert 0.02 <= doubted / 400 <= 0.06


def test_an_unusable_log_is_the_reason() -> None:
    """The replay says why the logged choices could not be measured."""
    (figure,) = compared(ratios("stock", [0.5] * 30), reason="only 12 % of the lookups carry a broker")

    assert math.isnan(figure.gap)
    assert figure.reason == "only 12 % of the lookups carry a broker"
    assert not figure.gap > 0


def test_some_metrics_cannot_be_computed_from_the_log() -> None:
    """The others can."""
    answered, moved = compared(
        ratios("stock", [0.5] * 30), moves("stock", [1] * 30), ratios(LOGGED, [0.6] * 30, seed=0)
    )

    assert answered.reason is None
    assert moved.reason == "it cannot be computed from the logged brokers"
    assert moved.resimulated == 30


@pytest.mark.parametrize("empty", ["stock", LOGGED])
def test_nothing_to_measure(empty: str) -> None:
    """A log in which no client sent the property has no gap, nor has a replay that met none."""
    shares = {"stock": [[50, 100]] * 30, LOGGED: [[50, 100]] * 30} | {empty: [[0, 0]] * 30}

    (figure,) = compared(*(sums(policy, rows) for policy, rows in shares.items()))

    assert figure.reason == "there is nothing to measure"


@pytest.mark.parametrize(("logged", "word"), [(0.5, "better"), (0.52, "better"), (0.6, "inconclusive")])
def test_the_gap_stops_a_verdict(logged: float, word: str) -> None:
    """A gain of 0.05 is believed if the replay misses the log by less, and not if it misses it by 0.1."""
    parts = replicated([ratios("stock", [0.5] * 30), ratios("new", [0.55] * 30)])

    result = scored([*parts, ratios(LOGGED, [logged] * 30, seed=0)], plan(seeds=(1, 2)))

    assert result.verdicts[0].verdict == word


def test_without_a_log_nothing_is_stopped() -> None:
    """A gap that is unknown decides nothing."""
    assert decided([ratios("stock", [0.5] * 30), ratios("new", [0.55] * 30)]).verdicts[0].verdict == "better"
