"""The whole way from sums to a scored comparison."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
import pytest

from lookup.errors import PluginError, SettingsError
from lookup.replay.outcome import ReplayOutcome
from lookup.score.scoring import score
from tests.score.cases import plan, ratios, scored, spread, sums


def test_the_incumbent_alone_is_a_valid_run() -> None:
    """Figures, no verdicts, exit code 0, even where a decision is required."""
    result = scored([ratios("stock", spread(0.5, 0.1))], plan("stock", require_decision=True))

    assert [one.value for one in result.estimates] == pytest.approx([0.5, 0.5])
    assert (result.verdicts, result.exit_code) == ([], 0)


def test_one_roll_is_told() -> None:
    """A policy that rolls dice and has one seed; not one with two, not one without dice."""
    parts = [ratios(name, [0.5] * 30) for name in ("stock", "dice")]
    parts += [ratios("twice", [0.5] * 30, seed=seed) for seed in (1, 2)]

    result = scored(parts, plan("stock", "dice", "twice"), rolled=frozenset({"dice", "twice"}))

    assert result.one_roll == ("dice",)


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


def test_seeds_of_the_incumbent_may_differ_from_those_of_a_candidate() -> None:
    """A policy without dice is replayed once, one with dice several times."""
    shares = spread(0.5, 0.1)
    parts = [ratios("stock", shares)] + [
        ratios("new", [share + 0.1 * seed for share in shares], seed=seed) for seed in (1, 2, 3)
    ]

    (verdict,) = scored(parts, plan(seeds=(1, 2, 3))).verdicts

    assert verdict.verdict == "better"
    assert (verdict.low, verdict.delta, verdict.high) == pytest.approx((0.1, 0.2, 0.3), abs=0.04)


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


def test_a_resample_of_infinite_value_is_refused_too() -> None:
    """A bundle with something above the line has something below it, or the metric is none."""
    rows = [[1, 1]] + [[1, 0]] * 2
    parts = [sums(policy, rows, "infinite") for policy in ("stock", "new")]

    with pytest.raises(PluginError, match=r"^metric 'infinite' answered the value inf;"):
        score(ReplayOutcome(parts), [Infinite()], plan(min_units=1))
