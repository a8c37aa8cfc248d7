"""Finds placements, with a bound that says how much better any other could be."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from lookup.errors import InputError
from lookup.placement.alike import alike
from lookup.placement.balance import balanced, least_imbalance
from lookup.placement.prices import Market, found_prices
from lookup.placement.problem import TOLERANCE, Ints, Problem, problem_of
from lookup.placement.program import can_program, programmed
from lookup.placement.rounding import improved, rounded

__all__ = ["Placement", "best_placement"]

#: Subgradient steps, and values of choices that they may compute together: a large problem gets fewer steps.
_STEPS, _VALUES = 150, 1_500_000_000
_FEWEST_STEPS = 30
#: Placements of which all are looked at, at most, and loads of brokers in all of them together.
_MOST, _MOST_LOADS = 1 << 17, 1 << 22
_NONE_FOUND = (
    "no placement was found that keeps max_imbalance, max_moved_weight, max_moves and admitted together, and there may "
    "be none; loosen one of them"
)


@dataclass(frozen=True, eq=False)
class Placement:
    """A placement within the limits, and a proof of how good it is."""

    #: number of each bundle's broker, shape (n_bundles,)
    owners: Ints
    #: share of the weight that is near, or most load over capacity of a broker / total weight over total capacity
    value: float
    #: no placement within the limits has a better value
    bound: float

    @property
    def gap(self) -> float:
        """Return how much better any placement could be, as a ratio of the bound; 0.0: none is better."""
        return abs(self.bound - self.value) / self.bound if self.bound else 0.0


def best_placement(  # noqa: PLR0913  what a problem consists of, by keyword
    weights: ArrayLike,
    capacities: ArrayLike,
    *,
    owners: Sequence[int] | Ints | None = None,
    near: ArrayLike | None = None,
    admitted: ArrayLike | None = None,
    max_imbalance: float | None = None,
    max_moved_weight: float | None = None,
    max_moves: int | None = None,
) -> Placement:
    """Return the best placement found of bundles on brokers, and a bound that no placement passes.

    With `near` it is the share of the weight that is near its clients that becomes most; without, the imbalance becomes
    least: most load over capacity of a broker / total weight over total capacity. Up to 131,072 placements are all
    looked at, fewer of more than 32 brokers; of larger problems the bound is proven and the placement is near it,
    mostly within a percent. The same arguments give the same answer.

    Args:
        weights: of the bundles, in any unit, 0 or more, shape (n_bundles,).
        capacities: of the brokers, weight that they carry at the same degree of use, shape (n_brokers,).
        owners: number of each bundle's present broker, -1 for none; the first placement of such a one is no move.
        near: how near each broker is to the clients of each bundle, in [0, 1], shape (n_bundles, n_brokers): the share
            of the bundle's lookups that come from its rack, say.
        admitted: which brokers may have each bundle, shape (n_bundles, n_brokers); one that its present broker may not
            have has to move.
        max_imbalance: a limit for placements by `near`, 1.05 for 5 % above the mean.
        max_moved_weight: most weight of the bundles that leave their broker, in the unit of `weights`.
        max_moves: most bundles that leave their broker.

    Raises:
        InputError: if an argument is not as described, or if no placement keeps the limits, or none was found.
    """
    problem = problem_of(
        weights,
        capacities,
        owners,
        near,
        admitted,
        max_imbalance=max_imbalance,
        max_moved_weight=max_moved_weight,
        max_moves=max_moves,
    )
    if _is_small(problem):
        best = _best_of_all(problem)
        if best is None:
            raise InputError(_too_tight(problem) or "no placement keeps all limits together; loosen one of them")
        return Placement(best, _value(problem, best), _value(problem, best))
    reason = _too_tight(problem)
    if reason is not None:
        raise InputError(reason)
    return _most_balanced(problem) if problem.near is None else _nearest(problem)


def _is_small(problem: Problem) -> bool:
    """Return whether so few placements exist that all can be looked at, with the load of each broker in each."""
    brokers = len(problem.capacities)
    return len(problem.weights) * math.log2(brokers) <= math.log2(min(_MOST, _MOST_LOADS / brokers))


def _best_of_all(problem: Problem) -> Ints | None:
    """Return the best placement within the limits, of equal ones the one that moves least; None if there is none."""
    bundles, brokers = len(problem.weights), len(problem.capacities)
    # One row for each placement, the last bundle's broker changing fastest; a dimension for each bundle would be more
    # than numpy has.
    owners = np.arange(brokers**bundles)[:, None] // brokers ** np.arange(bundles)[::-1] % brokers
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
    least = cost[keeps].min()
    best = keeps & (cost <= least + TOLERANCE * abs(least))
    order = np.lexsort((weight, moves, ~best))
    best_one: Ints = owners[order[0]].astype(np.int64)
    return best_one


def _value(problem: Problem, owners: Ints) -> float:
    return problem.imbalance(owners) if problem.near is None else problem.locality(owners)


def _too_tight(problem: Problem) -> str | None:
    """Return why no placement keeps the limits, None if they are not known to be too tight."""
    least = least_imbalance(problem)
    if np.isinf(least):
        unwanted = (problem.owners >= 0) & ~problem.is_placed
        return (
            f"{int(unwanted.sum())} bundles, {float(problem.weights[unwanted].sum()):g} of the weight, have to leave "
            "brokers that may not have them, which is more than max_moves or max_moved_weight allows"
        )
    allowed = float((problem.room / problem.capacities).max()) / problem.mean
    if least <= allowed * (1 + TOLERANCE):
        return None
    heaviest = int(np.argmax(problem.weights))
    share = float(problem.weights[heaviest] / problem.weights.sum())
    return (
        f"max_imbalance is {allowed:g}, but under the other limits no placement comes below {least:.4g} "
        f"(the heaviest bundle, number {heaviest}, has {share:.2%} of the weight)"
    )


def _most_balanced(problem: Problem) -> Placement:
    bound = least_imbalance(problem)
    owners = balanced(problem, bound)
    if owners is None:
        raise InputError(_NONE_FOUND)
    return Placement(owners, problem.imbalance(owners), bound)


def _nearest(problem: Problem) -> Placement:
    scaled = problem.scaled()
    total = float(scaled.weights.sum())
    market = Market(scaled, alike(scaled))
    best, worth = programmed(scaled) if can_program(scaled) else (None, math.inf)
    if best is None:
        best, lowest = _priced(market, total)
        worth = min(worth, lowest)
    else:
        # A program ends at a gap, and what is little beside the largest gain is lost in its tolerances.
        best = improved(market, best)
    value = problem.locality(best)
    # Both are sums of the same numbers in another order: the bound may fall short of the value by round-off.
    return Placement(best, value, max(value, min(worth / total, 1.0)))


def _priced(market: Market, total: float) -> tuple[Ints, float]:
    """Return a placement by prices of the limits, and the most weight that these prove can be near."""
    problem = market.problem
    starts = list(_starts(problem))
    floor = max(map(problem.locality, starts), default=0.0)
    steps = int(min(_STEPS, max(_FEWEST_STEPS, _VALUES // (market.alike.near.size + 1))))
    worth, prices = found_prices(market, floor * total, steps)
    found = rounded(market, prices)
    tried = [found] if found is not None else [improved(market, owners) for owners in starts]
    if not tried:
        raise InputError(_NONE_FOUND)
    return max(tried, key=problem.locality), worth


def _starts(problem: Problem) -> Iterator[Ints]:
    """Yield placements within the limits that ask for little: the present one, and a balanced one."""
    if problem.is_placed.all() and problem.is_kept_by(problem.owners):
        yield problem.owners
    even = balanced(problem, least_imbalance(problem))
    if even is not None and problem.is_kept_by(even):
        yield even
