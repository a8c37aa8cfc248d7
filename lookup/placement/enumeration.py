"""The best placement of a few bundles on a few brokers, by looking at all there are."""

from __future__ import annotations

import math

import numpy as np

from lookup.placement.problem import TOLERANCE, Ints, Problem

__all__ = ["best_of_all", "is_small"]

#: Placements that are looked at, at most.
_MOST = 1 << 17


def is_small(problem: Problem) -> bool:
    """Return whether so few placements exist that all can be looked at."""
    return len(problem.weights) * math.log2(len(problem.capacities)) <= math.log2(_MOST)


def best_of_all(problem: Problem) -> Ints | None:
    """Return the best placement within the limits, of equal ones the one that moves least; None if there is none."""
    bundles, brokers = len(problem.weights), len(problem.capacities)
    # one row for each placement, the last bundle's broker changing fastest
    owners = np.indices((brokers,) * bundles).reshape(bundles, -1).T
    loads = np.stack([(owners == broker) @ problem.weights for broker in range(brokers)], axis=1)
    moved = (problem.owners >= 0) & (owners != problem.owners)
    weight, moves = moved @ problem.weights, moved.sum(axis=1)
    keeps = (weight <= problem.max_moved_weight * (1 + TOLERANCE)) & (moves <= problem.max_moves)
    keeps &= (loads <= problem.room * (1 + TOLERANCE)).all(axis=1)
    if problem.admitted is not None:
        keeps &= problem.admitted[np.arange(bundles), owners].all(axis=1)
    if not keeps.any():
        return None
    if problem.near is None:
        cost = (loads / problem.capacities).max(axis=1) / problem.mean
    else:
        cost = -(problem.near[np.arange(bundles), owners] @ problem.weights) / problem.weights.sum()
    # Sums that should be equal differ in their last bits.
    best = keeps & (cost <= cost[keeps].min() + TOLERANCE)
    order = np.lexsort((weight, moves, ~best))
    best_one: Ints = owners[order[0]].astype(np.int64)
    return best_one
