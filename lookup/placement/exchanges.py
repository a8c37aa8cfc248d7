"""Improves a placement of some hundred bundles by single moves and by pairs of moves, whichever gains most.

Where brokers are nearly full hardly any bundle can move alone: two exchange their brokers. Where a budget is used up
one bundle moves for another that goes back. Overload is allowed on the way, at a price that no nearness outweighs, so
placements that do not quite fit are repaired as well.
"""

from __future__ import annotations

import numpy as np

from lookup.placement.problem import TOLERANCE, Floats, Ints, Problem

__all__ = ["exchanged"]

#: What a unit of weight beyond a broker's room costs, in units of nearness.
_OVERLOAD = 3.0
#: Steps, for each bundle.
_STEPS = 3


def exchanged(problem: Problem, owners: Ints) -> Ints:
    """Return a placement that no move and no exchange improves; its moves stay within the budgets if they were.

    Time and memory grow with the square of the number of bundles.

    Args:
        owners: where the search begins; brokers may be overloaded, not bundles on brokers that may not have them.
    """
    search = _Search(problem, owners)
    for _ in range(_STEPS * len(owners)):
        if not search.step():
            break
    return search.owners


class _Search:
    """A placement on its way."""

    def __init__(self, problem: Problem, owners: Ints) -> None:
        self._problem, self.owners = problem, owners.copy()
        assert problem.near is not None
        self._rows = np.arange(len(owners))
        nearness = problem.weights[:, None] * problem.near
        #: what each broker is worth to each bundle, shape (n_bundles, n_brokers)
        self._worth = nearness if problem.admitted is None else np.where(problem.admitted, nearness, -np.inf)
        #: weight and number of moves that a bundle on each broker takes of the budgets
        is_move = (problem.owners >= 0)[:, None] & (np.arange(len(problem.room)) != problem.owners[:, None])
        self._moves = is_move.astype(np.float64)
        self._moved = self._moves * problem.weights[:, None]

    def step(self) -> bool:
        """Make the move or exchange that gains most; return whether one gained anything."""
        problem, owners, rows = self._problem, self.owners, self._rows
        free = problem.room - problem.loads(owners)
        gain = self._worth - self._worth[rows, owners][:, None]
        moved = self._moved - self._moved[rows, owners][:, None]
        moves = self._moves - self._moves[rows, owners][:, None]
        weight_left = problem.max_moved_weight - float(self._moved[rows, owners].sum())
        moves_left = problem.max_moves - float(self._moves[rows, owners].sum())

        weights = problem.weights
        alone = gain + _relief(free[owners], weights)[:, None] + _relief(free[None, :], -weights[:, None])
        alone[rows, owners] = 0.0
        # Of each bundle the best move whatever it costs, and the way back; each alone, or two of them together.
        home = np.where(problem.owners >= 0, problem.owners, owners)
        bundle, target = np.tile(rows, 2), np.concatenate([alone.argmax(axis=1), home])
        gains, weight, count = (table[bundle, target] for table in (alone, moved, moves))
        twice = gains[:, None] + gains[None, :]
        twice[(weight[:, None] + weight > weight_left + TOLERANCE) | (count[:, None] + count > moves_left)] = -np.inf
        twice[(bundle[:, None] == bundle) | (target[:, None] == target)] = -np.inf
        alone[(moved > weight_left + TOLERANCE) | (moves > moves_left)] = -np.inf
        # Exchanges: the gain of each bundle with the broker of the other.
        crossed, weight, count = gain[:, owners], moved[:, owners], moves[:, owners]
        relief = _relief(free[owners][:, None], weights[:, None] - weights[None, :])
        pairs = crossed + crossed.T + relief + relief.T
        pairs[(weight + weight.T > weight_left + TOLERANCE) | (count + count.T > moves_left)] = -np.inf
        pairs[owners[:, None] == owners[None, :]] = 0.0

        tables = (alone, pairs, twice)
        places = [int(np.argmax(table)) for table in tables]
        best = [table.flat[place] for table, place in zip(tables, places, strict=True)]
        if max(best) <= TOLERANCE:
            return False
        kind = int(np.argmax(best))
        one, other = divmod(places[kind], tables[kind].shape[1])
        if kind == 0:
            owners[one] = other
        elif kind == 1:
            owners[[one, other]] = owners[[other, one]]
        else:
            owners[bundle[[one, other]]] = target[[one, other]]
        return True


def _relief(free: Floats, freed: Floats) -> Floats:
    """Return what is gained where weight is freed, or lost where it is added: the price of overload avoided."""
    relief: Floats = _OVERLOAD * (np.minimum(free + freed, 0.0) - np.minimum(free, 0.0))
    return relief
