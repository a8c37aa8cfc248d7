"""Places some hundred bundles near their clients as an integer program, which HiGHS solves and bounds.

Where brokers are nearly full and budgets are used up hardly any bundle can move alone: a heavy one makes way for
several light ones, brokers pass bundles on in a circle, one goes back so that another may leave. Branch and cut sees
all of that at once.

Source: Huangfu and Hall, Parallelizing the dual revised simplex method, Mathematical Programming Computation 10 (2018),
for HiGHS; it comes with SciPy.
"""

from __future__ import annotations

from importlib.util import find_spec

import numpy as np

from lookup.placement.problem import TOLERANCE, Floats, Ints, Problem

__all__ = ["can_program", "programmed"]

#: Pairs of a bundle and a broker that may have it, at most: with more it takes too long.
_MOST = 8_000
#: A gap at which the search ends, as a ratio, and branches after which it does; seconds would give other placements on
#: a slower machine.
_GAP, _NODES = 1e-3, 40
#: By how much HiGHS's own bound may be wrong, as a ratio of all that bundles could gain: its tolerances are 1e-7 for
#: the worth of each column, of which a bundle takes one, and 1e-6 for whole numbers and gaps.
_ROUNDING = 1e-6


def can_program(problem: Problem) -> bool:
    """Return whether a problem is small enough, and SciPy is there: the core does without it."""
    pairs = len(problem.weights) * len(problem.capacities)
    return pairs <= _MOST and find_spec("scipy") is not None


def programmed(problem: Problem) -> tuple[Ints | None, float]:
    """Return the best placement found within the limits, None if there is none, and the most weight that can be near.

    Args:
        problem: with `near`, scaled.
    """
    from scipy import optimize, sparse

    assert problem.near is not None
    # What a limit forbids to a bundle alone is left out: its gain may be far above all that is possible.
    room, budget = problem.room * (1 + TOLERANCE), problem.max_moved_weight * (1 + TOLERANCE)
    is_possible = problem.weights[:, None] <= room
    if problem.admitted is not None:
        is_possible &= problem.admitted
    stuck = (problem.owners >= 0) & ((problem.weights > budget) | (problem.max_moves < 1))
    is_possible[stuck] &= np.arange(len(room)) == problem.owners[stuck, None]
    bundles, brokers = np.nonzero(is_possible)
    if not is_possible.any(axis=1).all():
        return None, np.inf
    weights, pairs = problem.weights[bundles], np.arange(len(bundles))
    has_moved = (problem.owners[bundles] >= 0) & (problem.owners[bundles] != brokers)
    by_bundle, by_broker = (
        sparse.csr_array((values, (rows, pairs)), shape=(count, len(pairs)))
        for values, rows, count in zip(
            (np.ones(len(pairs)), weights / _unit(room)[brokers]), (bundles, brokers), problem.near.shape, strict=True
        )
    )
    limits = [
        optimize.LinearConstraint(by_bundle, 1, 1),
        optimize.LinearConstraint(by_broker, -np.inf, room / _unit(room)),
    ]
    for each, most in ((weights, budget), (np.ones(len(pairs)), problem.max_moves)):
        if np.isfinite(most):
            unit = float(_unit(np.array(most)))
            row = sparse.csr_array((each * has_moved)[None, :] / unit)
            limits.append(optimize.LinearConstraint(row, -np.inf, most / unit))
    gains: Floats = weights * problem.near[bundles, brokers]
    # HiGHS's tolerances are absolute, so gains are written in the mean of what bundles could gain.
    possible = float((problem.weights * np.where(is_possible, problem.near, 0.0).max(axis=1)).sum())
    mean = possible / len(problem.weights) or 1.0
    found = optimize.milp(
        -gains / mean,
        constraints=limits,
        integrality=np.ones(len(pairs), dtype=np.int64),
        bounds=optimize.Bounds(0, 1),
        options={"mip_rel_gap": _GAP, "node_limit": _NODES},
    )
    bound = possible
    if found.mip_dual_bound is not None and np.isfinite(found.mip_dual_bound):
        bound = min(bound, _ROUNDING * possible - float(found.mip_dual_bound) * mean)
    if found.x is None:
        return None, bound
    chosen = found.x > 0.5
    owners = np.full(len(problem.weights), -1, dtype=np.int64)
    owners[bundles[chosen]] = brokers[chosen]
    # What HiGHS lets pass as whole may exceed a limit by more than round-off.
    is_kept = bool((owners >= 0).all()) and problem.is_kept_by(owners)
    return owners if is_kept else None, bound


def _unit(limits: Floats) -> Floats:
    """Return what limits are written in: a limit that is below HiGHS's absolute tolerances would be none."""
    return np.where(limits > 0, np.minimum(limits, 1.0), 1.0)
