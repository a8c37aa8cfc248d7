"""The selector `weighted-random`."""

from __future__ import annotations

import pytest

from lookup.testing import cluster
from lookup_policies.weighted_random import WeightedRandom
from tests.plugins.worlds import shares

VIEW = cluster("b1", "b2", "b3")
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
