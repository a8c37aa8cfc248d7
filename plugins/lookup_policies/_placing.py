"""What `rebalance` and `best-fit` share: what brokers carry and can carry, in the unit of their capacities."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from lookup.model import ClusterView

__all__ = ["ROUND_OFF", "able", "capacities_of", "sum_loads"]

Floats = NDArray[np.float64]

#: Ratios this close are equal.
ROUND_OFF = 1e-9


def able(view: ClusterView) -> NDArray[np.bool_]:
    """Return which brokers can have bundles: those registered, but for any whose capacity is 0; shape (n_brokers,)."""
    registered: NDArray[np.bool_] = view.registered & ~(view.capacity <= 0.0)
    return registered


def sum_loads(view: ClusterView) -> Floats:
    """Return what every broker carries, bundles and all else, shape (n_brokers,), NaN without report."""
    load: Floats = np.where(view.capacity > 0.0, view.load.measured * view.capacity, view.load.throughput)
    return load


def capacities_of(view: ClusterView) -> Floats:
    """Return capacities, shape (n_brokers,): for an unknown one the mean of the others, 1 for all if none is known."""
    are_known = np.isfinite(view.capacity) & (view.capacity > 0.0)
    return np.where(are_known, view.capacity, view.capacity[are_known].mean() if are_known.any() else 1.0)
