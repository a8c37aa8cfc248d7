"""Chooses by scores alone, or by nothing: the best, any in proportion to its score, any at all."""

from __future__ import annotations

import math

import pytest

from lookup.testing import cluster
from lookup_policies.score_selectors import Best, Random, Softmax, WeightedRandom
from tests.plugins.worlds import shares

VIEW = cluster("b1", "b2", "b3")


@pytest.mark.parametrize(
    ("scores", "expected"),
    [
        ({"b1": 0.2, "b2": 0.9, "b3": 0.3}, {"b2": 1.0}),
        ({"b1": 0.9, "b2": 0.9 - 5e-10, "b3": 0.9 - 2e-9}, {"b1": 0.5, "b2": 0.5}),
        ({"b1": 0.0, "b2": 0.0, "b3": 0.0}, {"b1": 1 / 3, "b2": 1 / 3, "b3": 1 / 3}),
    ],
    ids=["clear", "tied-within-1e-9", "all-zero"],
)
def test_the_highest_scores_share_the_odds(scores: dict[str, float], expected: dict[str, float]) -> None:
    """The best candidate has all the odds, tied ones equal shares."""
    assert shares(Best(), VIEW, scores=scores) == pytest.approx(expected)


@pytest.mark.parametrize(("top", "answered"), [(0.5, True), (0.4999, False)])
def test_a_score_below_the_minimum_is_declined(top: float, answered: bool) -> None:
    """`min_score` itself is good enough, anything less is no answer."""
    scores = {"b1": top, "b2": 0.1, "b3": 0.1}

    assert bool(shares(Best(min_score=0.5), VIEW, scores=scores)) is answered


def test_everybody_has_the_same_odds() -> None:
    """Scores make no difference."""
    view = cluster("b1", "b2", "b3", "b4")

    assert shares(Random(), view, scores={"b1": 1.0, "b2": 0.0, "b3": 0.2, "b4": 0.9}) == dict.fromkeys(
        ("b1", "b2", "b3", "b4"), 0.25
    )


SCORES = {"b1": 0.2, "b2": 0.6, "b3": 0.0}


@pytest.mark.parametrize(
    ("power", "expected"),
    [
        (1.0, {"b1": 0.25, "b2": 0.75}),
        (2.0, {"b1": 0.1, "b2": 0.9}),
        (0.0, {"b1": 1 / 3, "b2": 1 / 3, "b3": 1 / 3}),
        (5000.0, {"b2": 1.0}),
    ],
)
def test_odds_are_powers_of_the_scores(power: float, expected: dict[str, float]) -> None:
    """Odds are in proportion to the scores, sharpened or flattened by the power."""
    assert shares(WeightedRandom(power), VIEW, scores=SCORES) == pytest.approx(expected)


def test_scores_of_zero_are_declined() -> None:
    """Where nobody scores there is nothing to choose by."""
    assert shares(WeightedRandom(), VIEW, scores=dict.fromkeys(SCORES, 0.0)) == {}


TWO = cluster("b1", "b2")


def test_odds_fall_by_e_per_temperature() -> None:
    """A score one temperature lower has 1/e of the odds."""
    odds = shares(Softmax(temperature=0.2), TWO, scores={"b1": 0.7, "b2": 0.5})

    assert odds["b1"] / odds["b2"] == pytest.approx(math.e)


def test_a_tiny_temperature_does_not_overflow() -> None:
    """The best candidate keeps its odds however cold it is."""
    assert shares(Softmax(temperature=1e-9), TWO, scores={"b1": 1.0, "b2": 0.0}) == {"b1": 1.0}
