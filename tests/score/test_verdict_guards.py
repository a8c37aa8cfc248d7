"""Verdicts on what is guarded, answers, overload and what a plug-in guards: it must be shown that nothing is lost."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest
from scipy import stats

from lookup.replay.outcome import LOGGED, MetricSums
from lookup.score.scoring import Scored
from lookup.score.verdict import Span
from tests.score.cases import SEEDS, decided, plan, ratios, scored, spread, sums

#: Five replicates around 0.
FIVE = np.array([-2.0, -1.0, 0.0, 1.0, 2.0])
#: The standard error of their mean.
ERROR = float(FIVE.std(ddof=1)) / math.sqrt(5)


def answers(losses: Sequence[float], metric: str = "answered_ratio", *, lookups: int = 10_000) -> list[MetricSums]:
    """Write down an incumbent that answers 0.90, 0.91, ... of all, and a candidate that loses so much of each.

    Args:
        lookups: of each of 30 bundles.
    """
    shares = [0.9 + 0.01 * place for place in range(len(losses))]
    rows = {"stock": shares, "new": [share - loss for share, loss in zip(shares, losses, strict=True)]}
    return [
        sums(policy, [[share * lookups, lookups]] * 30, metric, seed=seed)
        for policy, of in rows.items()
        for seed, share in enumerate(of, 1)
    ]


def guarded(losses: Sequence[float], *more: MetricSums, **rules: Any) -> Scored:
    """Compare them by what is answered, and by what else is given."""
    seeds = tuple(range(1, len(losses) + 1))
    return scored([*answers(losses), *more], plan(seeds=seeds, **rules))


def losses(mean: float, half: float, level: float = 0.05) -> list[float]:
    """Return losses in five replicates whose interval, missing that often, has half that width, by Student's t."""
    return [mean + half / float(stats.t.ppf(1 - level / 2, 4)) / ERROR * one for one in FIVE.tolist()]


class TestWords:
    """Kept, lost, or open, and the exit code."""

    def test_a_certain_loss_is_lost(self) -> None:
        """One lookup in a hundred, in every replicate."""
        result = decided([ratios("stock", [0.9] * 30), ratios("new", [0.89] * 30)])

        (verdict,) = result.verdicts
        assert (verdict.verdict, verdict.guard, verdict.reason, result.exit_code) == ("worse", "lost", None, 3)
        assert verdict.delta == pytest.approx(-0.01)

    @pytest.mark.parametrize(
        ("mean", "half", "word", "guard", "code"),
        [
            (0.00005, 0.00004, "equivalent", "kept", 0),
            (0.0, 0.00009, "equivalent", "kept", 0),
            (-0.01, 0.001, "better", "kept", 0),
            (-0.01, 0.1, "inconclusive", "open", 4),
            (0.0, 0.01, "inconclusive", "open", 4),
            (0.001, 0.002, "inconclusive", "open", 4),
            (0.00012, 0.00008, "inconclusive", "open", 4),
            (0.0002, 0.00008, "worse", "lost", 3),
            (-0.0002, 0.00029, "inconclusive", "kept", 0),
        ],
    )
    def test_by_interval(self, mean: float, half: float, word: str, guard: str, code: int) -> None:
        """A loss within one in ten thousand is none; where more cannot be ruled out it is open, and no run passes."""
        result = guarded(losses(mean, half))

        (verdict,) = result.verdicts
        assert (verdict.low, verdict.high) == pytest.approx((-mean - half, -mean + half))
        assert (verdict.verdict, verdict.guard, result.exit_code) == (word, guard, code)

    @pytest.mark.parametrize(("half", "guard"), [(0.000099, "kept"), (0.000101, "open")])
    def test_only_one_side_matters(self, half: float, guard: str) -> None:
        """That nothing is lost is shown if losses beyond the margin are improbable, one in twenty, to that side."""
        (verdict,) = guarded(losses(0.0, half, level=0.1)).verdicts

        assert (verdict.verdict, verdict.guard) == ("inconclusive", guard)

    @pytest.mark.parametrize(("lost", "guard", "code"), [(4.9, "kept", 0), (5.1, "open", 4)])
    def test_a_handful_of_lookups_need_not_be_shown(self, lost: float, guard: str, code: int) -> None:
        """Of 3000 in each replicate five are more than one in ten thousand, and less than a log says anything of."""
        parts = answers(losses(0.0, lost / 3000, level=0.1), lookups=100)

        result = scored(parts, plan(seeds=SEEDS))

        assert (result.verdicts[0].verdict, result.verdicts[0].guard) == ("inconclusive", guard)
        assert result.exit_code == code

    def test_a_certain_loss_of_a_handful_is_lost(self) -> None:
        """Three lookups of 3000 that every replicate loses are no luck."""
        result = scored(answers([0.001] * 5, lookups=100), plan(seeds=SEEDS))

        assert (result.verdicts[0].guard, result.exit_code) == ("lost", 3)

    def test_a_gain_that_is_taken_back_loses_nothing(self) -> None:
        """A gain with probability 0.03 is kept as one with 0.06 is."""
        results = [guarded(losses(-0.01, 0.01, level=level)) for level in (0.03, 0.06)]

        assert [(one.verdicts[0].guard, one.exit_code) for one in results] == [("kept", 0)] * 2

    def test_what_is_open_says_what_may_be_lost(self) -> None:
        """With the margin, the largest loss, and what stands in the way."""
        (verdict,) = guarded(losses(0.001, 0.002, level=0.1)).verdicts

        half = 0.002 * stats.t.ppf(0.975, 4) / stats.t.ppf(0.95, 4)
        for part in ("0.0001 is lost", "it may be 0.003: ", f"effect {half:.3g}, ", "noise comes from the placement"):
            assert part in str(verdict.reason)

    def test_what_is_taken_back_is_open(self) -> None:
        """A loss with probability 0.008 may be chance beside another comparison, and does not fail the run as lost."""
        loss = losses(0.01, 0.01, level=0.008)
        other = answers(losses(0.0, 0.1), "match_ratio")

        alone, beside = guarded(loss), guarded(loss, *other, primary=("answered_ratio", "match_ratio"))

        assert alone.verdicts[0].p_value == pytest.approx(0.008)
        assert [(one.verdicts[0].verdict, one.verdicts[0].guard, one.exit_code) for one in (alone, beside)] == [
            ("worse", "lost", 3),
            ("inconclusive", "open", 4),
        ]

    @pytest.mark.parametrize(("accept", "code"), [(False, 4), (True, 3)])
    def test_a_loss_of_one_placement_is_lost_too(self, accept: bool, code: int) -> None:
        """One seed does not fail the run as a policy's loss, and does not pass either."""
        result = guarded([0.1], accept_placement=accept)

        assert (result.verdicts[0].holds_for, result.verdicts[0].guard) == ("placement", "lost")
        assert result.exit_code == code

    def test_nothing_to_measure_is_open(self) -> None:
        """A candidate without any lookup has shown nothing."""
        parts = [ratios("stock", [0.9] * 30), sums("new", [[0, 0]] * 30)]

        result = decided(parts)

        assert (result.verdicts[0].guard, result.exit_code) == ("open", 4)

    def test_an_incumbent_that_cannot_act_leaves_it_open(self) -> None:
        """There is nothing to lose against."""
        result = scored(answers([0.0]), cannot_act={"stock": "no broker has a place"})

        assert (result.verdicts[0].guard, result.exit_code) == ("open", 4)

    def test_other_metrics_have_none(self) -> None:
        """Locality may be won and lost; what is open of it passes unless a decision is required."""
        parts = answers(losses(0.0, 0.1), "match_ratio")

        result = scored(parts, plan(seeds=SEEDS, primary=("match_ratio",)))

        assert (result.verdicts[0].verdict, result.verdicts[0].guard, result.exit_code) == ("inconclusive", None, 0)

    def test_the_replay_s_own_error_is_in_both(self) -> None:
        """However far the log is from the replay, what both answer alike is kept."""
        result = guarded([0.0, 1e-5, 0.0, 1e-5, 0.0], ratios(LOGGED, [0.5] * 30, seed=0))

        assert result.fidelity[0].gap > 0.2
        assert (result.verdicts[0].verdict, result.verdicts[0].guard) == ("equivalent", "kept")


class TestQuestions:
    """What is guarded is asked of this log, everything else of demand like it; both answers are there."""

    SHARES = (np.array([0.5] * 30), np.array(spread(0.6, 0.3, 30)))

    def verdict(self, metric: str) -> Any:
        """Compare two policies whose bundles differ, with one seed."""
        stock, new = self.SHARES
        (verdict,) = scored([ratios("stock", stock, metric), ratios("new", new, metric)]).verdicts
        return verdict

    @pytest.mark.parametrize(("metric", "question"), [("answered_ratio", "log"), ("match_ratio", "demand")])
    def test_both_are_answered(self, metric: str, question: str) -> None:
        """On the log the gain is what it is; for demand like it there is Student's interval over bundles."""
        verdict = self.verdict(metric)

        error = np.std(np.linspace(-0.3, 0.3, 30), ddof=1) / math.sqrt(30)
        half, chance = stats.t.ppf(0.975, 29) * error, 2 * stats.t.sf(0.1 / error, 29)
        assert verdict.question == question
        assert (verdict.on_log.low, verdict.on_log.high, verdict.on_log.p_value) == pytest.approx((0.1, 0.1, 0.0))
        like_it = verdict.for_demand
        assert (like_it.low, like_it.high, like_it.p_value) == pytest.approx((0.1 - half, 0.1 + half, chance))
        asked = verdict.on_log if question == "log" else like_it
        assert Span(verdict.low, verdict.high, verdict.p_value) == asked

    def test_events_are_luck_on_the_log_too(self) -> None:
        """Which broker is lost is no matter of the demand: of moves its luck is in both answers."""
        rows = {"stock": [2] * 30 + [3] * 6, "new": [1, 2] * 15 + [1, 2, 3, 4, 5, 9]}
        parts = [
            sums(policy, [[count] for count in counts], "moves", events=("forced",) * 6)
            for policy, counts in rows.items()
        ]

        (verdict,) = scored(parts).verdicts

        lost = np.array([1, 2, 3, 4, 5, 9]) - 3
        half = stats.t.ppf(0.975, 5) * math.sqrt(6 * np.var(lost, ddof=1))
        assert (verdict.on_log.low, verdict.on_log.high) == pytest.approx((9 - half, 9 + half))
        assert verdict.for_demand.low < verdict.on_log.low

    def test_overload_is_guarded_over_time(self) -> None:
        """Twenty hours of which each has other overload, and all of them more: on this log that is certain."""
        more = np.array(spread(0.05, 0.04, 20))
        parts = [ratios("stock", [0.1] * 20, "overload_ratio"), ratios("new", 0.1 + more, "overload_ratio")]

        (verdict,) = decided(parts).verdicts

        assert (verdict.question, verdict.guard, verdict.verdict) == ("log", "lost", "worse")
        assert (verdict.low, verdict.high) == pytest.approx((-0.05, -0.05))
        assert verdict.for_demand.low < -0.05 < verdict.for_demand.high
