"""Verdicts: the rules as a table, every reason, and margins; what they decide is in `test_verdict_rules.py`."""

from __future__ import annotations

import math

import numpy as np
import pytest

from lookup.replay.outcome import LOGGED
from lookup.score.bootstrap import Resampling, draw
from lookup.score.estimates import Estimate
from lookup.score.series import series_of
from lookup.score.verdict import Case, Verdict, judge
from lookup.settings.sections import VerdictSection
from tests.score.cases import METRICS, plan, ratios, scored, spread, sums

NAN = math.nan


def judged(delta: float, low: float, high: float, *, gap: float = NAN, metric: str = "answered_ratio") -> Verdict:
    """Judge a candidate whose difference to an incumbent at 0.5 has these figures; the margin is 0.005."""
    parts = [ratios("stock", spread(0.5, 0.1), metric), ratios("new", spread(0.5, 0.2), metric)]
    stock, new = series_of(parts, METRICS, ["stock", "new"])
    samples = np.array([low, high] * 50)
    estimates = [
        Estimate(stock, None, 0.5, samples=np.full(100, 0.5)),
        Estimate(new, None, 0.5 + delta, samples=0.5 + samples),
    ]
    case = Case("stock", VerdictSection(), draw([stock, new], Resampling(10)), {(metric, None): gap})
    (verdict,) = judge(estimates, ["stock", "new"], case)
    return verdict


@pytest.mark.parametrize(
    ("delta", "low", "high", "word"),
    [
        (0.02, 0.01, 0.03, "better"),
        (-0.02, -0.03, -0.01, "worse"),
        (0.0, -0.004, 0.004, "equivalent"),
        (0.003, 0.001, 0.0045, "equivalent"),
        (-0.003, -0.0045, -0.001, "equivalent"),
        (0.004, 0.001, 0.006, "better"),
        (0.004, -0.001, 0.006, "inconclusive"),
        (-0.004, -0.006, 0.001, "inconclusive"),
        (0.0, -0.1, 0.1, "inconclusive"),
    ],
)
def test_rules(delta: float, low: float, high: float, word: str) -> None:
    """Inside the margin is equivalent, else the side of zero decides, else nothing does."""
    verdict = judged(delta, low, high)

    assert verdict.verdict == word
    assert (verdict.low, verdict.high) == pytest.approx((low, high))


def test_down_is_turned_round() -> None:
    """For a metric that should be low, a lower candidate has a positive difference and is better."""
    verdict = judged(-0.02, -0.03, -0.01, metric="imbalance_cv")

    assert verdict.verdict == "better"
    assert (verdict.delta, verdict.low, verdict.high) == pytest.approx((0.02, 0.01, 0.03))


@pytest.mark.parametrize(
    ("delta", "gap", "word"),
    [(0.02, 0.019, "better"), (0.02, 0.021, "inconclusive"), (0.02, NAN, "better"), (0.02, 0.0, "better")],
)
def test_differences_within_the_fidelity_gap_are_inconclusive(delta: float, gap: float, word: str) -> None:
    """What the replay itself gets wrong cannot be told from a policy's doing."""
    assert judged(delta, 0.01, 0.03, gap=gap).verdict == word


class TestReasons:
    """Every reason for `inconclusive`, in its own words."""

    def test_wide_interval(self) -> None:
        """Half the width is the smallest detectable effect."""
        reason = judged(0.0, -0.1, 0.3).reason

        assert reason == "the interval holds differences either way; smallest detectable effect 0.2"

    def test_fidelity(self) -> None:
        """The gap is named."""
        reason = judged(0.02, 0.01, 0.03, gap=0.05).reason

        assert (
            reason
            == "the difference is not above the fidelity gap 0.05: the replayed incumbent is that far from the log"
        )

    def test_few_bundles(self) -> None:
        """The number of bundles and the limit are named."""
        (verdict,) = scored([ratios("stock", [0.1] * 7), ratios("new", [0.9] * 7)]).verdicts

        assert verdict.verdict == "inconclusive"
        assert verdict.reason == "it rests on 7 bundles, fewer than the 20 of min_units"

    def test_one_bundle(self) -> None:
        """It is told in the singular."""
        (verdict,) = scored([ratios("stock", [0.1]), ratios("new", [0.9])]).verdicts

        assert verdict.reason == "it rests on 1 bundle, fewer than the 20 of min_units"

    @pytest.mark.parametrize(("units", "word"), [(19, "inconclusive"), (20, "better")])
    def test_enough_bundles(self, units: int, word: str) -> None:
        """As many as `min_units` are enough."""
        (verdict,) = scored([ratios("stock", [0.1] * units), ratios("new", [0.9] * units)]).verdicts

        assert verdict.verdict == word

    def test_few_blocks(self) -> None:
        """Ten hours in blocks of two are five units."""
        parts = [ratios("stock", [0.1] * 10, "imbalance_cv"), ratios("new", [0.9] * 10, "imbalance_cv")]

        (verdict,) = scored(parts, plan(block_s=7200)).verdicts

        assert verdict.reason == "it rests on 5 blocks of time, fewer than the 20 of min_units"

    def test_no_interval(self) -> None:
        """A quantile has none."""
        parts = [sums("stock", [[1, 1]], "network_ms_p95"), sums("new", [[1, 9]], "network_ms_p95")]

        (verdict,) = scored(parts).verdicts

        assert verdict.verdict == "inconclusive"
        assert verdict.delta == -8
        assert verdict.reason == "the metric has no interval: it does not add over bundles or time"

    def test_mostly_empty_resamples(self) -> None:
        """Where most draws miss what there is to measure, nothing can be said."""
        verdict = judged(0.02, NAN, NAN)

        assert verdict.reason == "most resamples have nothing to measure"

    @pytest.mark.parametrize(("measured", "missing"), [("stock", "new"), ("new", "stock")])
    def test_one_side_only(self, measured: str, missing: str) -> None:
        """It is said for which policy there is nothing."""
        (verdict,) = scored([ratios(measured, [0.5] * 30)]).verdicts

        assert verdict.verdict == "inconclusive"
        assert verdict.reason == f"there is nothing to measure for {missing}"

    def test_nothing_below_the_line(self) -> None:
        """Sums of zero are as good as none."""
        (verdict,) = scored([ratios("stock", [0.5] * 30), sums("new", [[0, 0]] * 30)]).verdicts

        assert verdict.reason == "there is nothing to measure for new"

    def test_decisions_have_no_reason(self) -> None:
        """The numbers speak."""
        assert judged(0.02, 0.01, 0.03).reason is None


class TestIdenticalPolicies:
    """A/A: one policy under two names."""

    def test_every_metric_is_equivalent(self) -> None:
        """Whatever the metric, whatever the fidelity."""
        rows = {"answered_ratio": spread(0.5, 0.4), "imbalance_cv": spread(1.0, 0.5), "network_ms_p95": [0.5]}
        parts = [ratios(policy, shares, metric) for policy in ("stock", "new") for metric, shares in rows.items()]
        parts += [sums(policy, [[3], [0]] * 20, "moves") for policy in ("stock", "new")]
        parts.append(ratios(LOGGED, spread(0.9, 0.1)))

        result = scored(parts, plan(require_decision=True))

        assert [verdict.verdict for verdict in result.verdicts] == ["equivalent"] * 4
        assert [verdict.delta for verdict in result.verdicts] == [0.0] * 4
        assert result.exit_code == 0

    def test_nobody_moved(self) -> None:
        """Zero moves under both policies are equal, not unknown."""
        parts = [ratios(policy, [0.5] * 30) for policy in ("stock", "new")]
        parts += [sums(policy, [[0]] * 30, "moves") for policy in ("stock", "new")]

        assert {verdict.metric: verdict.verdict for verdict in scored(parts).verdicts}["moves"] == "equivalent"

    def test_luck_is_equivalent_too(self) -> None:
        """Two policies whose bundles differ by little noise lie within the margin."""
        rng = np.random.default_rng(3)
        parts = [ratios(policy, 0.8 + rng.normal(0, 0.002, 500)) for policy in ("stock", "new")]

        (verdict,) = scored(parts).verdicts

        assert verdict.verdict == "equivalent"
        assert verdict.low < verdict.high


def test_differences_are_paired() -> None:
    """A small gain in every bundle is seen although bundles differ a lot."""
    before = spread(0.5, 0.3)

    (verdict,) = scored([ratios("stock", before), ratios("new", [share + 0.02 for share in before])]).verdicts

    assert verdict.verdict == "better"
    assert (verdict.low, verdict.delta, verdict.high) == pytest.approx((0.02, 0.02, 0.02))


def test_the_interval_of_the_difference_covers_the_truth() -> None:
    """In 200 worlds where the candidate gains 0.05 on average, 90 to 99 % of the intervals hold that."""
    rng = np.random.default_rng(5)

    covered = 0
    for _ in range(200):
        before, gains = rng.uniform(0.2, 0.7, 50), rng.normal(0.05, 0.1, 50)
        parts = [ratios("stock", before), ratios("new", before + gains)]
        (verdict,) = scored(parts, plan(resamples=300)).verdicts
        covered += verdict.low <= 0.05 <= verdict.high

    assert 180 <= covered <= 198


def test_clusters_are_pooled() -> None:
    """A gain in one cluster and a loss in a cluster of nine times its traffic is a loss."""
    small = [ratios("stock", [0.5] * 30), ratios("new", [0.9] * 30)]
    large = [sums(policy, [[9 * share, 9]] * 30, cluster="d") for policy, share in (("stock", 50), ("new", 40))]
    large = [sums(one.policy, one.sums * 100, cluster="d") for one in large]

    (verdict,) = scored(small + large).verdicts

    assert verdict.verdict == "worse"


def test_the_order_is_that_of_policies_and_metrics() -> None:
    """Candidates as in the settings, metrics as registered; the incumbent has no verdict."""
    names = ("b", "stock", "a")
    parts = [ratios(policy, [0.5] * 30, metric) for metric in ("imbalance_cv", "answered_ratio") for policy in names]
    how = plan("stock", "b", "a")

    verdicts = scored(parts, how).verdicts

    assert [(one.policy, one.metric) for one in verdicts] == [
        ("b", "answered_ratio"),
        ("b", "imbalance_cv"),
        ("a", "answered_ratio"),
        ("a", "imbalance_cv"),
    ]
    assert {one.against for one in verdicts} == {"stock"}


def test_a_difference_beyond_all_numbers_is_no_verdict() -> None:
    """Nothing is said about a delta that a summary could not hold."""
    parts = [sums(policy, [[total]], "moves") for policy, total in (("stock", -1.7e308), ("new", 1.7e308))]

    (verdict,) = scored(parts, plan(min_units=1)).verdicts

    assert (verdict.verdict, verdict.reason) == (
        "inconclusive",
        "the difference is larger than floating-point numbers are",
    )
    assert math.isnan(verdict.delta)


def test_info_has_no_verdict() -> None:
    """A metric without direction is not judged."""
    parts = [ratios(policy, [0.5] * 30, "agreement_ratio") for policy in ("stock", "new")]

    assert scored(parts).verdicts == []


def test_what_neither_policy_has_is_not_judged() -> None:
    """No place, no distance, no verdict."""
    parts = [sums(policy, [[0, 0]] * 30, "network_ms_mean") for policy in ("stock", "new")]

    assert scored(parts).verdicts == []


class TestMargins:
    """What counts as no difference."""

    @pytest.mark.parametrize(
        ("margins", "expected"),
        [
            ({}, 0.4),
            ({"moves": 0.1}, 4.0),
            ({"moves": 0.1, "moves:shed": 0.2}, 8.0),
            ({"moves:forced": 0.3}, 0.4),
        ],
    )
    def test_the_nearest_name_holds(self, margins: dict[str, float], expected: float) -> None:
        """Metric and key before metric before the general margin, times the incumbent's 40 moves."""
        parts = [sums(policy, [[moves]] * 20, "moves", key="shed") for policy, moves in (("stock", 2), ("new", 3))]

        (verdict,) = scored(parts, plan(margins=margins)).verdicts

        assert verdict.margin == pytest.approx(expected)

    def test_it_is_absolute_where_the_incumbent_is_zero(self) -> None:
        """There is nothing to be relative to."""
        parts = [sums("stock", [[0]] * 20, "moves"), sums("new", [[1]] + [[0]] * 19, "moves")]
        parts += [ratios(policy, [0.5] * 20) for policy in ("stock", "new")]

        verdict = scored(parts, plan(margins={"moves": 0.5})).verdicts[1]

        assert verdict.margin == 0.5
