"""The whole way from sums to a scored comparison."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
import pytest
from scipy import stats

from lookup.errors import PluginError
from lookup.replay.outcome import LOGGED, MetricSums, ReplayOutcome
from lookup.score.scoring import Fidelity, compare_with_log, score
from lookup.score.series import series_of
from tests.score.cases import METRICS, SEEDS, copies, moves, plan, ratios, replicated, scored, spread, sums


def test_the_incumbent_alone_is_a_valid_run() -> None:
    """Figures, no verdicts, exit code 0, even where a decision is required."""
    result = scored([ratios("stock", spread(0.5, 0.1))], plan("stock", require_decision=True))

    assert [one.value for one in result.estimates] == pytest.approx([0.5, 0.5])
    assert (result.verdicts, result.exit_code) == ([], 0)


class TestPlacedOnce:
    """Why verdicts on a policy hold for its placement only."""

    PARTS = (ratios("stock", spread(0.5, 0.1)), ratios("new", spread(0.6, 0.1)))

    def test_parts_without_salt_are_named(self) -> None:
        """Their replicates differ by dice alone; the other policy's are as they should be."""
        result = scored(replicated(self.PARTS), plan(seeds=(1, 2)), unsalted={"new": ("rendezvous", "hash")})

        assert list(result.placed_once) == ["new"]
        assert result.placed_once["new"].startswith("rendezvous and hash ")

    def test_replicates_that_are_all_the_same_are_one(self) -> None:
        """Neither dice nor salt did anything; it is said of that policy only."""
        parts = [*replicated(self.PARTS[1:]), *copies(self.PARTS[0])]

        assert list(scored(parts, plan(seeds=(1, 2))).placed_once) == ["stock"]

    def test_what_cannot_act_is_passed_on(self) -> None:
        """Reports say so."""
        assert scored(self.PARTS, cannot_act={"new": "no topology"}).cannot_act == {"new": "no topology"}


def test_the_same_sums_give_the_same_numbers() -> None:
    """Whatever order they come in."""
    rng = np.random.default_rng(0)
    parts = [
        ratios(policy, rng.random(40), metric, cluster=cluster)
        for policy in ("stock", "new")
        for metric in ("answered_ratio", "imbalance_cv")
        for cluster in "cd"
    ]

    one, other = scored(parts), scored(parts[::-1])

    assert [(e.value, e.low, e.high) for e in one.estimates] == [(e.value, e.low, e.high) for e in other.estimates]
    assert one.verdicts == other.verdicts


def test_replicates_are_compared_pair_by_pair() -> None:
    """A seed that is hard for both says nothing against either; what one seed adds for the candidate does."""
    shares = np.array(spread(0.3, 0.1))
    parts = [ratios("stock", shares + 0.1 * seed, "match_ratio", seed=seed) for seed in (1, 2, 3)]
    parts += [
        ratios("new", shares + 0.1 * seed + gain, "match_ratio", seed=seed)
        for seed, gain in ((1, 0.09), (2, 0.1), (3, 0.11))
    ]

    (verdict,) = scored(parts, plan(seeds=(1, 2, 3))).verdicts

    assert verdict.verdict == "better"
    half = 4.302653 * 0.01 / np.sqrt(3)
    assert (verdict.low, verdict.delta, verdict.high) == pytest.approx((0.1 - half, 0.1, 0.1 + half))


@dataclass(frozen=True)
class Infinite:
    """A metric that divides by what may be nothing."""

    name: ClassVar[str] = "infinite"
    unit: ClassVar[str] = "ratio"
    better: ClassVar[str] = "up"
    resample: str = "bundle"

    def value(self, totals: Any) -> Any:
        """Divide."""
        return (
            totals[..., 0].sum() / totals[..., 1].sum() if self.resample == "none" else totals[..., 0] / totals[..., 1]
        )


class Leaving(Infinite):
    """A metric that ends the program."""

    def value(self, totals: Any) -> Any:
        """Leave, as if all were well."""
        raise SystemExit(0)


@pytest.mark.parametrize("resample", ["bundle", "none"])
@pytest.mark.parametrize(
    ("metric", "sentence"),
    [
        (Infinite, "^metric 'infinite' answered .* inf; NaN"),
        (Leaving, r"'infinite' .*SystemExit: 0 \(test_scoring\.py, line \d+\)$"),
    ],
)
def test_a_metric_whose_value_fails_is_one_sentence(metric: type[Infinite], sentence: str, resample: str) -> None:
    """No verdict is drawn from a figure that does not exist, and no gate passes for it."""
    parts = [sums(policy, [[1, 0]] * 30, "infinite") for policy in ("stock", "new")]

    with pytest.raises(PluginError, match=sentence):
        score(ReplayOutcome(parts), [metric(resample)], plan())


def test_an_infinite_value_in_one_cluster_is_refused_too() -> None:
    """Though the pooled figure is finite."""
    parts = [sums("stock", [[1, below]], "infinite", cluster=name) for name, below in (("c", 1), ("d", 0))]

    with pytest.raises(PluginError, match=r"^metric 'infinite' answered .* inf;"):
        score(ReplayOutcome(parts), [Infinite()], plan(min_units=1))


def test_a_policy_that_places_nothing_has_no_luck_with_it() -> None:
    """All its replicates are the same, since it declines; what it costs holds for the policy, and fails the gate."""
    once = [ratios(name, [share] * 30) for name, share in (("stock", 0.9), ("new", 0.0))]
    once += [sums(name, [[count]] * 30, "assignments") for name, count in (("stock", 1), ("new", 0))]
    parts = [copy for part in once for copy in copies(part)]
    parts += [ratios("stock", [0.9] * 29 + [0.1 * seed], "agreement_ratio", seed=seed) for seed in SEEDS]

    result = scored(parts, plan(seeds=SEEDS))

    assert dict(result.placed_once) == {}
    assert result.exit_code == 3


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

    assert (figure.low, figure.high) == pytest.approx((0.5 - reach(VALUES), 0.5 + reach(VALUES)))
    assert figure.reason is None


@pytest.mark.parametrize(
    ("logged", "gap"),
    [(0.5, 0.0), (0.5 + reach(VALUES), 0.0), (0.5 - reach(VALUES), 0.0), (0.9, 0.4), (0.1, 0.4)],
    ids=["mean", "upper-end", "lower-end", "above", "below"],
)
def test_the_gap_is_the_distance_from_the_range(logged: float, gap: float) -> None:
    """Inside of it there is none, and which side errs does not matter."""
    (figure,) = compared(*replicates(VALUES), ratios(LOGGED, [logged] * 30, seed=0))

    assert figure.gap == pytest.approx(max(0.0, gap - reach(VALUES)), abs=1e-9)


def test_ranges_of_several_figures_are_wider() -> None:
    """All together hold one more replicate with 95 %; figures that the log does not have are not counted."""
    parts = [one for metric in ("answered_ratio", "network_cost", "imbalance_cv") for one in replicates(VALUES, metric)]
    logged = [ratios(LOGGED, [0.5] * 30, metric, seed=0) for metric in ("answered_ratio", "imbalance_cv")]

    by_name = {one.metric: one for one in compared(*parts, *logged)}
    half = reach(VALUES, 2)
    # More than half of the way to the end of a share is logarithmic.
    assert by_name["answered_ratio"].high == pytest.approx(1.0 - 0.25 * math.exp(1 - half / 0.25))
    assert by_name["imbalance_cv"].high == pytest.approx(0.5 + half)


@pytest.mark.parametrize(
    ("metric", "values", "ends"),
    [
        ("answered_ratio", (0.97, 1.0, 1.0), (0.0, 1.0)),
        ("match_ratio", (0.0, 0.0, 0.04), (0.0, 1.0)),
        ("imbalance_max_mean", (1.0, 1.001, 1.2), (1.0, math.inf)),
    ],
)
def test_a_range_ends_where_the_figure_does(metric: str, values: Sequence[float], ends: tuple[float, float]) -> None:
    """More than all is never answered, and no broker has less than the mean if it has the most."""
    (figure,) = compared(*replicates(values, metric))

    mean = float(np.mean(values))
    assert ends[0] <= figure.low < mean < figure.high <= ends[1]
    assert mean - reach(values) < ends[0] or mean + reach(values) > ends[1]


def test_one_replicate_has_no_range() -> None:
    """The gap is then the whole difference; candidates play no part."""
    parts = [ratios("stock", [0.5] * 30), ratios("new", [0.9] * 30), ratios(LOGGED, [0.6] * 30, seed=0)]

    (figure,) = compared(*parts)

    assert (figure.metric, figure.key, figure.reason) == ("answered_ratio", None, None)
    assert (figure.logged, figure.low, figure.high, figure.gap) == pytest.approx((0.6, 0.5, 0.5, 0.1))


def test_a_log_of_the_incumbent_is_plausible() -> None:
    """Of 400 logs that are one more replicate, by three figures at once, two to six in a hundred are doubted."""
    rng = np.random.default_rng(4)
    doubted = 0
    for _ in range(400):
        drawn = {metric: rng.normal(0.5, 0.01, 6) for metric in ("answered_ratio", "imbalance_cv", "network_ms_mean")}
        parts = [part for metric, values in drawn.items() for part in replicates(values[:5].tolist(), metric)]
        logged = [ratios(LOGGED, [values[5]] * 30, metric, seed=0) for metric, values in drawn.items()]
        doubted += not all((not one.gap > 0) for one in compared(*parts, *logged))

    assert 0.02 <= doubted / 400 <= 0.06


def test_an_unusable_log_is_the_reason() -> None:
    """The replay says why the logged choices could not be measured."""
    (figure,) = compared(ratios("stock", [0.5] * 30), reason="only 12 %")

    assert math.isnan(figure.gap)
    assert figure.reason == "only 12 %"
    assert not figure.gap > 0


def test_some_metrics_cannot_be_computed_from_the_log() -> None:
    """The others can."""
    answered, moved = compared(
        ratios("stock", [0.5] * 30), moves("stock", [1] * 30), ratios(LOGGED, [0.6] * 30, seed=0)
    )

    assert answered.reason is None
    assert moved.reason is not None


@pytest.mark.parametrize("empty", ["stock", LOGGED])
def test_nothing_to_measure(empty: str) -> None:
    """A log in which no client sent the property has no gap, nor has a replay that met none."""
    shares = {"stock": [[50, 100]] * 30, LOGGED: [[50, 100]] * 30} | {empty: [[0, 0]] * 30}

    (figure,) = compared(*(sums(policy, rows) for policy, rows in shares.items()))

    assert figure.reason == "there is nothing to measure"


@pytest.mark.parametrize(("logged", "word"), [(0.5, "better"), (0.52, "better"), (0.6, "inconclusive")])
def test_the_gap_stops_a_verdict(logged: float, word: str) -> None:
    """A gain of 0.05 is believed if the replay misses the log by less, and not if it misses it by 0.1."""
    parts = replicated([ratios(name, [share] * 30, "match_ratio") for name, share in (("stock", 0.5), ("new", 0.55))])

    result = scored([*parts, ratios(LOGGED, [logged] * 30, "match_ratio", seed=0)], plan(seeds=SEEDS))

    assert result.verdicts[0].verdict == word
