"""Placements near their clients as an integer program, which HiGHS solves."""

from __future__ import annotations

import numpy as np
from scipy import optimize, sparse

from lookup.placement.problem import Floats, Ints


def best_locality(
    weights: Floats,
    capacities: Floats,
    near: Floats,
    owners: Ints,
    *,
    max_imbalance: float,
    max_moved_weight: float | None = None,
) -> float:
    """Return the greatest share of the weight that can be near its clients."""
    bundles, brokers = near.shape
    each = sparse.kron(sparse.eye(bundles), np.ones((1, brokers)))
    loads = sparse.kron(weights[None, :], sparse.eye(brokers))
    limits = [
        optimize.LinearConstraint(each, 1, 1),
        optimize.LinearConstraint(loads, 0, max_imbalance * weights.sum() / capacities.sum() * capacities),
    ]
    if max_moved_weight is not None:
        moved = np.repeat(weights, brokers)
        moved[np.arange(bundles) * brokers + owners] = 0.0
        limits.append(optimize.LinearConstraint(moved[None, :], 0, max_moved_weight))
    found = optimize.milp(
        -(weights[:, None] * near).ravel(),
        constraints=limits,
        integrality=np.ones(bundles * brokers),
        bounds=optimize.Bounds(0, 1),
        options={"time_limit": 60, "mip_rel_gap": 1e-5},
    )
    return float(-found.fun / weights.sum())
