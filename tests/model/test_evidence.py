"""Evidence: how many units of equal weight units of unequal weight are worth."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from lookup.model.evidence import effective

WEIGHTS = st.lists(st.floats(1e-6, 1e6), min_size=1, max_size=50).map(np.array)


@given(WEIGHTS)
def test_it_is_one_at_least_and_their_number_at_most(weights: np.ndarray) -> None:
    """Whatever their weights."""
    assert 1 - 1e-9 <= effective(weights) <= len(weights) * (1 + 1e-9)


@given(WEIGHTS, st.sampled_from([1e-300, 1e-3, 1e300]))
def test_the_unit_of_weight_does_not_matter(weights: np.ndarray, scale: float) -> None:
    """Nor whether its squares are numbers."""
    assert effective(weights * scale) == pytest.approx(effective(weights), rel=1e-6)


@pytest.mark.parametrize(
    ("weights", "worth"),
    [([], 0.0), ([0.0, 0.0], 0.0), ([5.0], 1.0), ([2.0] * 7, 7.0), ([3.0, 1.0], 1.6), ([1.0, 1.0, 0.0], 2.0)],
)
def test_by_hand(weights: list[float], worth: float) -> None:
    """The square of the sum over the sum of the squares: 16 / 10."""
    assert effective(np.array(weights)) == pytest.approx(worth)
