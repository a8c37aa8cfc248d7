"""The whole way from sums to a scored comparison."""

from __future__ import annotations

import numpy as np
import pytest

from lookup.errors import SettingsError
from tests.score.cases import plan, ratios, scored, spread


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
