"""Samples drawn from sums that are written down."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from lookup.replay.outcome import MetricSums
from lookup.score.units import Sample, sample
from tests.score.cases import layout, moves, series

#: Sums of a quotient, shape (n_bundles, 2).
QUOTIENTS = np.array([[1, 4], [3, 5], [9, 9], [2, 8], [0, 3]], dtype=np.float64)


def drawn(*parts: MetricSums, cluster: str | None = None, **how: Any) -> Sample:
    """Return the figure of the policy `new` in every replicate."""
    several = series(*parts)
    return sample(several[-1], layout(several, **how), cluster)


def table(rows: ArrayLike, **where: Any) -> list[MetricSums]:
    """Write down moves by replicate and bundle, shape (n_replicates, n_bundles)."""
    return [moves("new", row, seed=seed, **where) for seed, row in enumerate(np.asarray(rows, dtype=np.float64), 1)]


def kish(weights: ArrayLike) -> float:
    """Return Kish's number of units: as many of equal weight have that variance."""
    weights = np.asarray(weights, dtype=np.float64)
    return float(np.sum(weights) ** 2 / np.sum(weights**2))
