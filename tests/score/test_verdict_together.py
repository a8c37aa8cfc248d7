"""Verdicts: what chance alone would bring among comparisons that are made for one purpose is taken back (Holm)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

from lookup.score.series import series_of
from lookup.score.verdict import Verdict, judge
from tests.score.cases import METRICS, SEEDS, decided, ratios, spread
from tests.score.pairs import case, estimated


def together(
    chances: Sequence[float], *, policies: Sequence[str] = ("new",), gain: float = 0.1, **how: Any
) -> list[Verdict]:
    """Judge as many comparisons, each with this probability between equals; by default all are primary."""
    parts = [
        ratios(policy, spread(0.5, width), "match_ratio", key=f"k{place}", seed=seed)
        for policy, width in (("stock", 0.1), *((name, 0.2) for name in policies))
        for place in range(len(chances))
        for seed in SEEDS
    ]
    several = series_of(parts, METRICS, ["stock", *policies])
    quantile = stats.t(4).ppf
    halves = {f"k{place}": 0.1 * quantile(0.975) / quantile(1 - chance / 2) for place, chance in enumerate(chances)}
    estimates = [
        estimated(one, 0.5) if one.policy == "stock" else estimated(one, 0.5 + gain, halves[str(one.key)])
        for one in several
    ]
    return judge(estimates, ["stock", *policies], replace(case(*several), **how))


class TestTogether:
    """Comparisons that decide the exit code are judged together (Holm)."""

    def test_by_hand(self) -> None:
        """Times 4 for the least, times 3, 2 and 1 for the next, never less than the one before."""
        chances = [0.003, 0.06, 0.015, 0.002]
        gains, losses = together(chances), together(chances, gain=-0.1)

        assert [one.p_value for one in gains] == pytest.approx(chances)
        assert [one.p_family for one in gains] == pytest.approx([0.009, 0.06, 0.03, 0.008])
        assert [one.verdict for one in gains] == ["better", "inconclusive", "better", "better"]
        # A loss fails a build, so that 0.01 is asked for.
        assert [one.verdict for one in losses] == ["worse", "inconclusive", "inconclusive", "worse"]

    def test_what_is_taken_back_says_so(self) -> None:
        """With the word that it would have had, how many decide, and the probability."""
        kept, taken_back, *_ = together([0.003, 0.02, 0.015, 0.002], gain=-0.1)

        assert (kept.reason, kept.alone, taken_back.alone) == (None, None, "worse")
        for part in ("alone it would be worse", "in 4 comparisons for", "probability 0.03", "0.01 is"):
            assert part in str(taken_back.reason)

    @pytest.mark.parametrize(
        ("chance", "gain", "primary", "word"),
        [
            (0.009, -0.1, ("match_ratio",), "worse"),
            (0.011, -0.1, ("match_ratio",), "inconclusive"),
            (0.011, 0.1, ("match_ratio",), "better"),
            (0.011, -0.1, (), "worse"),
            (0.049, 0.1, (), "better"),
            (0.051, 0.1, (), "inconclusive"),
        ],
    )
    def test_a_single_comparison(self, chance: float, gain: float, primary: tuple[str, ...], word: str) -> None:
        """A loss for the exit code must be beyond one in a hundred, anything else beyond one in twenty."""
        (verdict,) = together([chance], gain=gain, primary=primary)

        assert verdict.p_family == pytest.approx(chance)
        assert verdict.verdict == word
        is_taken_back = "in 1 comparison for" in str(verdict.reason)
        assert is_taken_back is (word == "inconclusive" and bool(primary))

    def test_candidates_count_together(self) -> None:
        """Two candidates with two figures each are four comparisons."""
        verdicts = together([0.01, 0.02], policies=("new", "old"))

        assert [one.p_family for one in verdicts] == pytest.approx([0.04, 0.04, 0.04, 0.04])

    def test_a_loss_that_is_taken_back_fails_nothing(self) -> None:
        """What fails the run alone is expected by chance beside other figures."""
        chance = np.random.default_rng(1).normal(0, 1, (3, 40)) / 10
        chance[0] -= 0.042
        names = ("match_ratio", "imbalance_cv", "imbalance_max_mean")
        parts = [ratios("stock", spread(0.5, 0.3), name) for name in names]
        parts += [ratios("new", spread(0.5, 0.3) + row, name) for name, row in zip(names, chance, strict=True)]

        alone, beside = (decided(parts, margin=0.0, primary=names[:count]) for count in (1, 3))

        assert (alone.verdicts[0].verdict, alone.exit_code) == ("worse", 3)
        assert "in 3 comparisons for" in str(beside.verdicts[0].reason)
        assert beside.exit_code == 0

    @given(st.lists(st.floats(0.001, 0.9), min_size=1, max_size=8))
    def test_probabilities_together(self, chances: list[float]) -> None:
        """They are in the order of those alone, at least as large, and at most as many times larger."""
        pairs = sorted((one.p_value, one.p_family) for one in together(chances))

        assert [family for _, family in pairs] == sorted(family for _, family in pairs)
        assert all(alone <= family <= min(1.0, len(chances) * alone) + 1e-12 for alone, family in pairs)


class TestOfOneFigure:
    """Comparisons that decide nothing are judged together with those of the other candidates in the same figure."""

    def test_by_hand(self) -> None:
        """Three candidates by two figures: each probability counts three times, as they are all the same."""
        verdicts = together([0.01, 0.02], policies=("new", "old", "late"), primary=())

        assert [one.p_family for one in verdicts] == pytest.approx([0.03, 0.06] * 3)
        assert [one.verdict for one in verdicts] == ["better", "inconclusive"] * 3

    def test_what_is_taken_back_says_so(self) -> None:
        """The best of many is looked at first; a single candidate has nobody beside it."""
        taken_back, alone = (together([0.03], policies=names, primary=())[0] for names in (("new", "old"), ("new",)))

        assert (taken_back.verdict, taken_back.alone) == ("inconclusive", "better")
        for part in ("alone it would be better", "in 2 comparisons of this figure", "probability 0.06", "0.05 is"):
            assert part in str(taken_back.reason)
        assert (alone.verdict, alone.alone) == ("better", None)
        assert alone.p_family == pytest.approx(0.03)

    def test_figures_that_decide_are_apart(self) -> None:
        """They are not counted among those that do not, nor the other way round."""
        verdicts = together([0.01, 0.02, 0.04], primary=("match_ratio:k0", "match_ratio:k1"))

        assert [one.p_family for one in verdicts] == pytest.approx([0.02, 0.02, 0.04])

    def test_those_that_hold_for_a_placement_are_of_one_figure(self) -> None:
        """A candidate that was placed once decides nothing, and is counted among the others of its figure."""
        verdicts = together([0.02], policies=("new", "old", "late"), placed_once=frozenset({"old", "late"}))

        assert [one.holds_for for one in verdicts] == ["policy", "placement", "placement"]
        assert [one.p_family for one in verdicts] == pytest.approx([0.02, 0.04, 0.04])
