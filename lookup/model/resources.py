"""Resources of brokers in columns: how full each is, and the one figure Pulsar makes of them.

Percentages are Pulsar's: worked out in 32-bit floats, then widened. Where they come from is not told here.

Source: `docs/pulsar/load-managers.md`.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import fields

import numpy as np
from numpy.typing import NDArray

from lookup.model.load import Resources

__all__ = ["RESOURCES", "weighted_usage"]

#: The columns of `ClusterView.resources`, in their order.
RESOURCES = tuple(entry.name for entry in fields(Resources))


def weighted_usage(
    resources: NDArray[np.float64], weights: Sequence[float], *, limit: float = math.inf
) -> NDArray[np.float64]:
    """Return each broker's largest weighted percentage as a ratio, shape (n_brokers,), NaN where there is no report.

    Args:
        resources: percentages in the order of `RESOURCES`, shape (n_brokers, 5).
        weights: one per resource, >= 0.
        limit: weighted percentages above it are left out; a broker with no other has usage 0, as in Pulsar.
    """
    weighted = resources * np.asarray(weights, dtype=np.float64)
    # a comparison with NaN is false, so brokers without report stay NaN
    weighted[weighted > limit] = 0.0
    usage: NDArray[np.float64] = weighted.max(axis=1) / 100.0
    return usage
