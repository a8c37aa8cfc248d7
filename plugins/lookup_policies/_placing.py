"""Compute loads and capacities of brokers for `rebalance` and `best-fit`, in the unit of capacities."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from lookup.model import ClusterView

__all__ = ["ROUND_OFF", "able", "capacities_of", "sum_loads"]

Floats = NDArray[np.float64]

#: Ratios this close are equal.
ROUND_OFF = 1e-9


def able(view: ClusterView) -> NDArray[np.bool_]:
    """Find the brokers that can have bundles, registered and with a capacity other than 0, shape (n_brokers,)."""
    registered: NDArray[np.bool_] = view.registered & ~(view.capacity <= 0.0)
    return registered


def sum_loads(view: ClusterView) -> Floats:
    """Compute the total load of every broker, including other sources, shape (n_brokers,), NaN without report."""
    load: Floats = np.where(view.capacity > 0.0, view.load.measured * view.capacity, view.load.throughput)
    return load


def capacities_of(view: ClusterView) -> Floats:
    """Compute capacities, shape (n_brokers,).

    An unknown capacity is the mean of the others, or 1 if all are unknown.
    """
    are_known = np.isfinite(view.capacity) & (view.capacity > 0.0)
    return np.where(are_known, view.capacity, view.capacity[are_known].mean() if are_known.any() else 1.0)
