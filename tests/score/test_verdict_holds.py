"""Verdicts: whether they hold for a policy, one placement of it or these hours, and with how few seeds none do."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

import numpy as np
import pytest
from scipy import stats

from lookup.replay.outcome import MetricSums
from lookup.report.figures import results_of
from lookup.score.scoring import Scored
from tests.score.cases import SEEDS, copies, decided, moves, plan, ratios, replicated, scored, spread, sums


class TestHoldsFor:
    """Whether a verdict is about a policy or about one placement of it."""

    PARTS = tuple(
        ratios(policy, spread(mean, 0.1), "match_ratio")
        for policy, mean in (("stock", 0.5), ("new", 0.4), ("old", 0.6))
    )

    @pytest.mark.parametrize(
        ("unsalted", "expected"),
        [
            ({}, ["policy", "policy"]),
            ({"new": ("rendezvous",)}, ["placement", "policy"]),
            ({"stock": ("rendezvous",)}, ["placement", "placement"]),
        ],
    )
    def test_parts_without_salt(self, unsalted: Mapping[str, tuple[str, ...]], expected: list[str]) -> None:
        """Of the candidate for its verdicts, of the incumbent for all."""
        result = scored(replicated(self.PARTS), plan("stock", "new", "old", seeds=SEEDS), unsalted=unsalted)

        assert [one.holds_for for one in result.verdicts] == expected

    def test_one_seed(self) -> None:
        """One replicate is one placement."""
        assert {one.holds_for for one in scored(self.PARTS[:2]).verdicts} == {"placement"}

    def test_replicates_that_are_all_the_same(self) -> None:
        """They are one placement."""
        parts = [copy for part in self.PARTS[:2] for copy in copies(part)]

        assert {one.holds_for for one in scored(parts, plan(seeds=SEEDS)).verdicts} == {"placement"}

    @pytest.mark.parametrize(("accept", "code"), [(False, 0), (True, 3)])
    def test_the_exit_code_is_about_policies(self, accept: bool, code: int) -> None:
        """Worse for this placement only fails a run if the settings accept that; it is worse all the same."""
        result = scored(self.PARTS[:2], plan(accept_placement=accept, primary=("match_ratio",)))

        assert (result.verdicts[0].verdict, result.verdicts[0].primary, result.exit_code) == ("worse", True, code)
        assert results_of(result).comparisons == ((1, 0, 0) if accept else (0, 1, 1))

    @pytest.mark.parametrize(("accept", "code"), [(False, 4), (True, 0)])
    def test_a_required_decision_is_about_policies(self, accept: bool, code: int) -> None:
        """Better for this placement only is no decision."""
        parts = [self.PARTS[0], ratios("new", spread(0.6, 0.1), "match_ratio")]
        rules: dict[str, Any] = {"accept_placement": accept, "require_decision": True, "primary": ("match_ratio",)}

        assert scored(parts, plan(**rules)).exit_code == code


class TestDrift:
    """What a difference that drifts as slowly as the log is long says: nothing of other hours."""

    #: By how much the candidate is worse in sixty hours: more from hour to hour, and the same without order.
    RISING = np.linspace(0.4, 0.6, 60)
    MIXED = np.array(spread(0.5, 0.1, 60))

    @staticmethod
    def result(loss: np.ndarray, **rules: Any) -> Scored:
        """Compare a candidate with this loss in every hour."""
        parts = [ratios("stock", [1.0] * 60, "imbalance_cv"), ratios("new", 1.0 + loss, "imbalance_cv")]
        return decided(parts, primary=("imbalance_cv",), **rules)

    @pytest.mark.parametrize(("loss", "holds_for", "code"), [(RISING, "hours", 0), (MIXED, "policy", 3)])
    def test_it_holds_for_hours_and_fails_nothing(self, loss: np.ndarray, holds_for: str, code: int) -> None:
        """It is worse in these hours all the same; without order it is worse for good."""
        result = self.result(loss)

        assert (result.verdicts[0].verdict, result.verdicts[0].holds_for, result.exit_code) == (
            "worse",
            holds_for,
            code,
        )

    def test_it_is_no_decision_where_one_is_required(self) -> None:
        """That placements are accepted does not make other hours known."""
        assert self.result(self.RISING, require_decision=True, accept_placement=True).exit_code == 4
        assert self.result(self.RISING, accept_placement=True).exit_code == 0

    def test_of_one_placement_it_holds_for_that(self) -> None:
        """One seed says less still."""
        parts = [ratios("stock", [1.0] * 60, "imbalance_cv"), ratios("new", 1.0 + self.RISING, "imbalance_cv")]

        (verdict,) = scored(parts).verdicts

        assert (verdict.verdict, verdict.holds_for) == ("worse", "placement")

    def test_a_constant_difference_does_not_drift(self) -> None:
        """Hours of other weight and imbalance, in each of which the candidate is worse by just as much."""
        rng, found = np.random.default_rng(0), set()
        for _ in range(30):
            weights, before = rng.integers(50, 150, 60), 1 + rng.random(60)
            rows = {"stock": before, "new": before + 0.3}
            parts = [sums(name, np.stack([of * weights, weights], axis=1), "imbalance_cv") for name, of in rows.items()]
            result = decided(parts, primary=("imbalance_cv",))
            found.add((result.verdicts[0].holds_for, result.exit_code))

        assert found == {("policy", 3)}

    def test_its_interval_rests_on_three_blocks(self) -> None:
        """Of twenty hours each, with two degrees of freedom."""
        (verdict,) = self.result(self.RISING).verdicts

        residuals = (self.RISING - 0.5) / 60
        blocks = np.sum([np.roll(residuals, -hour) for hour in range(20)], axis=0)
        half = stats.t.ppf(0.975, 2) * math.sqrt(3 / 2 * (blocks**2).sum() / 20)
        assert (verdict.low, verdict.high) == pytest.approx((-0.5 - half, -0.5 + half))


class TestFewSeeds:
    """Two replicates, or three, that agree by chance."""

    @staticmethod
    def moved(seeds: int) -> tuple[list[MetricSums], np.ndarray]:
        """Write down moves of 40 bundles and by how many the candidate differs: in sum always one fewer."""
        rng = np.random.default_rng(6)
        stock = rng.integers(3, 9, (seeds, 40))
        apart = np.array([rng.permutation([1] * 10 + [0] * 19 + [-1] * 11) for _ in range(seeds)])
        rows = {"stock": stock, "new": stock + apart}
        parts = [
            moves(policy, row.tolist(), seed=seed) for policy, of in rows.items() for seed, row in enumerate(of, 1)
        ]
        return parts, apart

    @pytest.mark.parametrize("seeds", [2, 3])
    def test_equal_differences_of_other_bundles_are_no_certainty(self, seeds: int) -> None:
        """They count as one replicate more that varies as bundles do between replicates."""
        parts, apart = self.moved(seeds)

        (verdict,) = scored(parts, plan(seeds=tuple(range(1, seeds + 1)))).verdicts

        assert (verdict.delta, verdict.verdict) == (1.0, "inconclusive")
        interplay = 40 / 39 * np.var(apart, axis=0, ddof=1).sum() / seeds
        half = stats.t.ppf(0.975, seeds - 1) * math.sqrt(interplay / seeds)
        assert (verdict.on_log.low, verdict.on_log.high) == pytest.approx((1 - half, 1 + half))
        assert verdict.low < 0 < verdict.high

    def test_two_seeds_carry_no_verdict(self) -> None:
        """However large and certain the loss; three carry one that decides nothing, and four one that fails the run."""
        parts = [ratios(policy, [share] * 30, "match_ratio") for policy, share in (("stock", 0.9), ("new", 0.1))]
        rules: dict[str, Any] = {"primary": ("match_ratio",), "require_decision": True}

        two, three, four = (scored(replicated(parts, SEEDS[:n]), plan(seeds=SEEDS[:n], **rules)) for n in (2, 3, 4))

        assert (two.verdicts[0].p_value, two.verdicts[0].alone, two.exit_code) == (1 / 8, None, 4)
        assert "probability below 0.12" in str(two.verdicts[0].reason)
        assert (three.verdicts[0].p_value, three.verdicts[0].alone, three.exit_code) == (1 / 32, "worse", 4)
        assert (four.verdicts[0].p_value, four.verdicts[0].verdict, four.exit_code) == (1 / 128, "worse", 3)

    def test_two_seeds_can_show_equivalence(self) -> None:
        """What lies within the margin is no difference, however few replicates there are."""
        parts = [ratios(policy, [share] * 30, "match_ratio") for policy, share in (("stock", 0.9), ("new", 0.901))]

        assert scored(replicated(parts, (1, 2)), plan(seeds=(1, 2))).verdicts[0].verdict == "equivalent"


class TestClusters:
    """Clusters of which some gain and others lose."""

    LOSS = -0.2

    def found(self, gain: float, width: float, **kind: Any) -> list[tuple[str, float, float, float]]:
        """Let `c` gain so much, with bundles that differ by that width, and `d` lose, and return what is found."""
        rows = {"c": np.array(spread(gain, width, 30)), "d": np.full(30, self.LOSS)}
        parts = [ratios("stock", [0.5] * 30, cluster=name, **kind) for name in rows]
        parts += [ratios("new", 0.5 + gains, cluster=name, **kind) for name, gains in rows.items()]
        (verdict,) = scored(parts).verdicts
        return [(one.cluster, one.delta, one.low, one.high) for one in verdict.clusters]

    @staticmethod
    def half(width: float, level: float) -> float:
        """Return half the width of the interval of such a gain, by Student's t."""
        error = np.std(np.linspace(-width, width, 30), ddof=1) / math.sqrt(30)
        return float(stats.t.ppf(1 - level / 2, 29) * error)

    def test_each_has_an_interval(self) -> None:
        """All of them hold together with 95 %: of two clusters each with 97.5 %."""
        c, d = self.found(0.1, 0.2, metric="match_ratio")

        half = self.half(0.2, 0.025)
        assert (c[0], d[0]) == ("c", "d")
        assert c[1:] == pytest.approx((0.1, 0.1 - half, 0.1 + half))
        assert d[1:] == pytest.approx((self.LOSS,) * 3)

    def test_a_gain_that_is_certain_only_alone_is_no_disagreement(self) -> None:
        """It must be beyond chance among all clusters."""
        gain = (self.half(0.4, 0.05) + self.half(0.4, 0.025)) / 2

        assert self.found(gain, 0.4, metric="match_ratio") == []
        assert self.found(1.2 * gain, 0.4, metric="match_ratio") != []

    def test_on_the_log_bundles_are_what_they_are(self) -> None:
        """What is guarded has lost and gained there, however much bundles differ."""
        c, _ = self.found(0.01, 0.4, metric="answered_ratio")

        assert c[1:] == pytest.approx((0.01,) * 3)

    @pytest.mark.parametrize("losses", [(-0.2, -0.1), (0.2, 0.1), (0.2, 0.0)])
    def test_clusters_that_agree_are_not_named(self, losses: tuple[float, float]) -> None:
        """All lose, all gain, or one does neither."""
        parts = [ratios("stock", [0.5] * 30, "match_ratio", cluster=name) for name in "cd"]
        parts += [
            ratios("new", [0.5 + loss] * 30, "match_ratio", cluster=name)
            for name, loss in zip("cd", losses, strict=True)
        ]

        assert scored(parts).verdicts[0].clusters == ()

    def test_fewer_moves_are_a_gain(self) -> None:
        """Differences are turned so that up is better, as the verdict's."""
        parts = [moves("stock", [2] * 30, cluster=name) for name in "cd"]
        parts += [moves("new", [count] * 30, cluster=name) for name, count in (("c", 1), ("d", 4))]

        (verdict,) = scored(parts).verdicts

        assert [(one.cluster, one.delta) for one in verdict.clusters] == [("c", 30.0), ("d", -60.0)]
