"""Chooses by scores alone, or by nothing: the best, any in proportion, any at all, the best of a few that are drawn."""

from __future__ import annotations

import math
from collections.abc import Sequence
from itertools import product

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from lookup.hooks import reads_of
from lookup.testing import cluster
from lookup_policies.score_selectors import Best, PowerOfTwo, Random, Softmax, WeightedRandom
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


def _by_counting(scores: Sequence[float], choices: int) -> dict[str, float]:
    # Every equally likely draw with replacement; tied winners share it, each drawn one or not.
    odds = [0.0] * len(scores)
    for draw in product(range(len(scores)), repeat=choices):
        best = max(scores[place] for place in draw)
        tied = [place for place, score in enumerate(scores) if score == best]
        for place in tied:
            odds[place] += 1 / len(tied) / len(scores) ** choices
    return {f"b{place}": share for place, share in enumerate(odds) if share > 0}


@settings(max_examples=50)
@given(st.lists(st.sampled_from([0.0, 0.25, 0.5, 1.0]), min_size=1, max_size=5), st.integers(1, 4))
def test_the_closed_form_equals_counting_all_draws(scores: list[float], choices: int) -> None:
    """The stated odds are those of drawing, comparing and sharing between tied ones."""
    ids = [f"b{place}" for place in range(len(scores))]
    odds = shares(PowerOfTwo(choices=choices), cluster(*ids), scores=dict(zip(ids, scores, strict=True)))

    assert odds == pytest.approx(_by_counting(scores, choices))


def test_usage_ranks_unknown_brokers_last() -> None:
    """The least used of two drawn wins; one without report loses to everybody, overfull or not."""
    view = cluster("b1", "b2", "b3", usage={"b1": 1.4, "b2": 0.1})

    assert shares(PowerOfTwo(by="usage"), view) == pytest.approx({"b2": 5 / 9, "b1": 3 / 9, "b3": 1 / 9})


def test_bundles_rank_the_emptier_broker_first() -> None:
    """The fewest bundles of two drawn win, and brokers with equally many are tied."""
    view = cluster("b1", "b2", "b3", owned={"t/n/1": "b1"})

    assert shares(PowerOfTwo(by="bundles"), view) == pytest.approx({"b1": 1 / 9, "b2": 4 / 9, "b3": 4 / 9})


@pytest.mark.parametrize(
    ("part", "reads"),
    [(PowerOfTwo(), set()), (PowerOfTwo(by="usage"), {"view.load"}), (PowerOfTwo(by="bundles"), {"view.ownership"})],
)
def test_it_reads_what_it_ranks_by(part: PowerOfTwo, reads: set[str]) -> None:
    """Ranking by scores leaves decisions as cacheable as the scorers are."""
    assert reads_of(part) == reads
