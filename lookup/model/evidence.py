"""Weigh evidence as the number of units of equal weight that units of unequal weight are worth."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

__all__ = ["effective"]


def effective(weights: NDArray[np.float64]) -> float:
    """Compute the number of units of equal weight with the same evidence, 0.0 if all weights are zero.

    Source: Kish, Survey Sampling (Wiley, 1965).

    Example:
        >>> effective(np.ones(60)), round(effective(np.array([0.6, *[0.4 / 59] * 59])), 1)
        (60.0, 2.8)
    """
    largest = float(weights.max(initial=0.0))
    if not largest:
        return 0.0
    # Squares of very large weights are no numbers.
    shares = weights / largest
    return float(shares.sum()) ** 2 / float((shares**2).sum())
