"""The whole way from sums to a scored comparison."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
import pytest

from lookup.errors import PluginError, SettingsError
from lookup.replay.outcome import ReplayOutcome
from lookup.score.scoring import score
from tests.score.cases import copies, decided, plan, ratios, replicated, scored, spread, sums


def test_the_incumbent_alone_is_a_valid_run() -> None:
    """Figures, no verdicts, exit code 0, even where a decision is required."""
    result = scored([ratios("stock", spread(0.5, 0.1))], plan("stock", require_decision=True))

    assert [one.value for one in result.estimates] == pytest.approx([0.5, 0.5])
    assert (result.verdicts, result.exit_code) == ([], 0)


class TestPlacedOnce:
    """Why verdicts on a policy hold for its placement only."""

    PARTS = (ratios("stock", spread(0.5, 0.1)), ratios("new", spread(0.6, 0.1)))

    def test_replicates_that_differ_are_placed_anew(self) -> None:
        """Nothing is said of them."""
        assert decided(self.PARTS).placed_once == {}

    def test_parts_without_salt_are_named(self) -> None:
        """Their replicates differ by dice alone; the other policy's are as they should be."""
        result = scored(replicated(self.PARTS), plan(seeds=(1, 2)), unsalted={"new": ("rendezvous", "hash")})

        assert result.placed_once == {
            "new": "rendezvous and hash tell equal brokers apart by their names, whatever the salt"
        }

    def test_one_seed_is_one_placement(self) -> None:
        """Of every policy."""
        assert scored(self.PARTS).placed_once == dict.fromkeys(("stock", "new"), "it was replayed with one seed")

    def test_replicates_that_are_all_the_same_are_one(self) -> None:
        """Neither dice nor salt did anything; it is said of that policy only."""
        parts = [*replicated(self.PARTS[1:]), *copies(self.PARTS[0])]

        assert scored(parts, plan(seeds=(1, 2))).placed_once == {"stock": "all its replicates are the same"}

    def test_under_shared_ownership_they_may_be_the_same(self) -> None:
        """Figures are expectations over the odds then, and no placement is drawn."""
        parts = [copy for part in self.PARTS for copy in copies(part)]

        assert scored(parts, plan(seeds=(1, 2), ownership="shared")).placed_once == {}

    def test_what_cannot_act_is_passed_on(self) -> None:
        """Reports say so."""
        assert scored(self.PARTS, cannot_act={"new": "no topology"}).cannot_act == {"new": "no topology"}


def test_wrong_names_are_refused() -> None:
    """Before anything is computed."""
    with pytest.raises(SettingsError, match="no metric is named 'mooves'"):
        scored([], plan(primary=("mooves",)))


def test_clusters_are_those_with_figures() -> None:
    """Sorted by name."""
    assert scored([ratios("stock", [1.0], cluster=name) for name in "ba"], plan("stock")).clusters == ("a", "b")


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
    parts = [ratios("stock", shares + 0.1 * seed, seed=seed) for seed in (1, 2, 3)]
    parts += [ratios("new", shares + 0.1 * seed + gain, seed=seed) for seed, gain in ((1, 0.09), (2, 0.1), (3, 0.11))]

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
        (Infinite, "^metric 'infinite' answered the value inf; NaN says that there is nothing to measure$"),
        (Leaving, r"^metric 'infinite' raised SystemExit: 0 \(test_scoring\.py, line \d+\)$"),
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

    with pytest.raises(PluginError, match=r"^metric 'infinite' answered the value inf;"):
        score(ReplayOutcome(parts), [Infinite()], plan(min_units=1))


def test_a_policy_that_places_nothing_has_no_luck_with_it() -> None:
    """All its replicates are the same, since it declines; what it costs holds for the policy, and fails the gate."""
    parts = [ratios(name, [share] * 30, seed=seed) for name, share in (("stock", 0.9), ("new", 0.0)) for seed in (1, 2)]
    parts += [
        sums(name, [[count]] * 30, "assignments", seed=seed)
        for name, count in (("stock", 1), ("new", 0))
        for seed in (1, 2)
    ]
    parts.append(ratios("stock", [0.9] * 29 + [0.8], "agreement_ratio", seed=1))
    parts.append(ratios("stock", [0.9] * 30, "agreement_ratio", seed=2))

    result = scored(parts, plan(seeds=(1, 2)))

    assert dict(result.placed_once) == {}
    assert result.exit_code == 3
