"""The selector `best`."""

from __future__ import annotations

import pytest

from lookup.testing import cluster
from lookup_policies.best import Best
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
