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

from lookup.placement.problem import Floats, Ints, Problem

__all__ = ["can_program", "programmed"]

#: Pairs of a bundle and a broker that may have it, at most: with more it takes too long.
_MOST = 8_000
#: A gap at which the search ends, as a ratio, and branches after which it does; seconds would give other placements on
#: a slower machine.
_GAP, _NODES = 1e-3, 40
#: By how much HiGHS's own bound may be wrong, as a ratio: that of its tolerances.
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
    is_admitted = np.ones(problem.near.shape, dtype=bool) if problem.admitted is None else problem.admitted
    bundles, brokers = np.nonzero(is_admitted)
    weights, pairs = problem.weights[bundles], np.arange(len(bundles))
    has_moved = (problem.owners[bundles] >= 0) & (problem.owners[bundles] != brokers)
    by_bundle, by_broker = (
        sparse.csr_array((values, (rows, pairs)), shape=(count, len(pairs)))
        for values, rows, count in zip(
            (np.ones(len(pairs)), weights), (bundles, brokers), problem.near.shape, strict=True
        )
    )
    limits = [
        optimize.LinearConstraint(by_bundle, 1, 1),
        optimize.LinearConstraint(by_broker, -np.inf, problem.room),
    ]
    for each, most in ((weights, problem.max_moved_weight), (np.ones(len(pairs)), problem.max_moves)):
        if np.isfinite(most):
            limits.append(optimize.LinearConstraint(sparse.csr_array((each * has_moved)[None, :]), -np.inf, most))
    gains: Floats = weights * problem.near[bundles, brokers]
    found = optimize.milp(
        -gains,
        constraints=limits,
        integrality=np.ones(len(pairs), dtype=np.int64),
        bounds=optimize.Bounds(0, 1),
        options={"mip_rel_gap": _GAP, "node_limit": _NODES},
    )
    bound = np.inf if found.mip_dual_bound is None else -float(found.mip_dual_bound) * (1 + _ROUNDING)
    if found.x is None:
        return None, bound
    chosen = found.x > 0.5
    owners = np.full(len(problem.weights), -1, dtype=np.int64)
    owners[bundles[chosen]] = brokers[chosen]
    # What HiGHS lets pass as whole may exceed a limit by more than round-off.
    is_kept = bool((owners >= 0).all()) and problem.is_kept_by(owners)
    return owners if is_kept else None, bound
