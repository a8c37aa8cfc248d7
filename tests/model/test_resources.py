"""Resources in columns."""

from __future__ import annotations

import numpy as np

from lookup.model import RESOURCES, weighted_usage

PERCENT = np.array([[50.0, 90.0, 20.0, 120.0, 0.0], [np.nan] * 5, [150.0, 0.0, 0.0, 130.0, 0.0]])


def test_the_largest_weighted_percentage_counts() -> None:
    """Weights may leave a resource out or stress it; a broker without report has no usage."""
    assert len(RESOURCES) == PERCENT.shape[1]
    assert weighted_usage(PERCENT, (1, 0, 1, 1, 1))[[0, 2]].tolist() == [1.2, 1.5]
    assert weighted_usage(PERCENT, (1, 1, 1, 0, 1))[0] == 0.9
    assert np.isnan(weighted_usage(PERCENT, (0, 0, 0, 0, 0))[1])


def test_percentages_above_a_limit_may_be_left_out() -> None:
    """The limit itself stays; where nothing is left usage is 0."""
    assert weighted_usage(PERCENT, (1, 0, 1, 1, 1), limit=100.0)[[0, 2]].tolist() == [0.5, 0.0]
    assert weighted_usage(PERCENT, (1, 0, 1, 1, 1), limit=120.0)[0] == 1.2
    assert np.isnan(weighted_usage(PERCENT, (1, 1, 1, 1, 1), limit=1.0)[1])
