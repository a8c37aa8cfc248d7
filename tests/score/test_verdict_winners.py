"""What luck does for the best of several candidates."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace

import numpy as np
import pytest
from scipy import stats

from lookup.replay.outcome import MetricSums
from lookup.score.luck import Estimate
from lookup.score.series import series_of
from lookup.score.units import Sample, Stratum
from lookup.score.verdict import Verdict, Winner, winners
from tests.score.cases import METRICS, SEEDS, plan, ratios, scored

#: Five replicates whose mean has the variance 1.
FIVE = np.array([-2.0, -1.0, 0.0, 1.0, 2.0]) * math.sqrt(2)


def candidates(n: int, metric: str = "match_ratio") -> list[Estimate]:
    """Write down as many candidates, numbered from 1, whose values are their numbers."""
    names = [f"p{number}" for number in range(1, n + 1)]
    series = series_of([ratios(name, [0.5], metric) for name in names], METRICS, names)
    return [Estimate(one, None, float(value), sample=Sample(value + FIVE)) for value, one in enumerate(series, 1)]


def judged(figures: Sequence[Estimate]) -> list[Verdict]:
    """Write down verdicts on them, with a probability."""
    blank = Verdict("", "stock", "", None, "better", None, 1.0, 0.0, 2.0, primary=False, p_value=0.5)
    return [
        replace(blank, policy=one.series.policy, metric=one.series.metric.name, key=one.series.key) for one in figures
    ]


@pytest.mark.parametrize("n", [2, 3, 5, 10, 40])
def test_the_advantage_is_that_of_the_largest_of_so_many_normal_numbers(n: int) -> None:
    """Within a twentieth of what integration says, for means of variance 1."""
    figures = candidates(n)

    (winner,) = winners(figures, judged(figures))

    mean, _ = _moments_of_the_largest(n)
    assert winner == Winner("match_ratio", None, n, (n + 1) / 2, winner.advantage)
    assert winner.advantage == pytest.approx(mean, rel=0.05)


def _moments_of_the_largest(n: int) -> tuple[float, float]:
    x = np.linspace(-9, 9, 200_001)
    density = n * stats.norm.cdf(x) ** (n - 1) * stats.norm.pdf(x) * (x[1] - x[0])
    return float((x * density).sum()), float((x**2 * density).sum())


def test_the_variance_is_the_mean_of_theirs() -> None:
    """Of variances 1, 1 and 16, which is 6."""
    figures = candidates(3)
    figures[2] = replace(figures[2], sample=Sample(4 * FIVE))

    (winner,), (equal,) = (winners(several, judged(several)) for several in (figures, candidates(3)))

    assert winner.advantage == pytest.approx(math.sqrt(6) * equal.advantage)


def test_replicates_that_agree_by_chance_have_luck_too() -> None:
    """Where units differ between replicates the figure may as well; what units differ by themselves is not counted."""
    parts = np.array([[1.0, -1.0], [-1.0, 1.0]])
    # demand is left out by the question, and events are by their name
    units = Stratum("events", parts + np.array([3.0, -3.0]), np.ones(2), is_on_log=True)
    figures = [replace(one, sample=Sample(np.zeros(2), (units,))) for one in candidates(2)]

    (winner,) = winners(figures, judged(figures))

    # half of an interplay of 2 * (2 + 2) / 2
    assert winner.advantage == pytest.approx(float(stats.norm.ppf(1.625 / 2.25)) * math.sqrt(2))


def test_one_candidate_has_no_advantage() -> None:
    """There is nobody to be the best of."""
    figures = candidates(1)

    assert winners(figures, judged(figures)) == []


def test_only_those_that_are_judged_count() -> None:
    """The incumbent and figures without a probability are no candidates."""
    figures = candidates(4)
    verdicts = judged(figures)[:3]

    three, two = winners(figures, verdicts), winners(figures, [*verdicts[:2], replace(verdicts[2], p_value=math.nan)])

    assert [one.candidates for one in (*three, *two)] == [3, 2]
    assert [one.value for one in (*three, *two)] == [2.0, 1.5]


def test_without_luck_of_the_placement_there_is_none() -> None:
    """Equals come out the same then."""
    figures = [replace(one, sample=Sample(np.full(5, one.value))) for one in candidates(3)]

    assert winners(figures, judged(figures)) == []


def test_every_figure_has_its_own_in_the_order_of_the_estimates() -> None:
    """Candidates are compared figure by figure."""
    figures = [*candidates(2, "moves"), *candidates(3, "match_ratio"), *candidates(1, "imbalance_cv")]

    found = winners(figures, judged(figures))

    assert [(one.metric, one.candidates) for one in found] == [("moves", 2), ("match_ratio", 3)]


class TestScored:
    """Winners of a whole comparison."""

    @staticmethod
    def parts(*policies: str) -> list[MetricSums]:
        """Let every policy match a rack more or less often by replicate."""
        return [
            ratios(policy, [0.5 + 0.02 * place + 0.01 * value] * 30, "match_ratio", key="rack", seed=seed, **where)
            for place, policy in enumerate(policies)
            for seed, value in zip(SEEDS, np.roll([-2, -1, 0, 1, 2], place), strict=True)
            for where in ({}, {"by": (("tenant", "t"),)})
        ]

    def test_two_candidates(self) -> None:
        """Pooled over the demand; the standard error of every mean is 0.01 times the root of a half."""
        (winner,) = scored(self.parts("stock", "new", "old"), plan("stock", "new", "old", seeds=SEEDS)).winners

        assert (winner.metric, winner.key, winner.candidates) == ("match_ratio", "rack", 2)
        assert winner.value == pytest.approx(0.53)
        assert winner.advantage == pytest.approx(0.01 * math.sqrt(0.5) * stats.norm.ppf(1.625 / 2.25))
