"""Plan moves of bundles within milliseconds from their present places, always with the best move or exchange next.

A shedder plans hundreds of times in a replay, and its budget of moves allows few changes.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from lookup_policies._placing import ROUND_OFF

__all__ = ["Placement", "Problem"]

Bools = NDArray[np.bool_]
Floats = NDArray[np.float64]
Ints = NDArray[np.int64]

#: Bundles that find no room for which an exchange is looked for, in each plan.
_EXCHANGES = 200
#: Number of passes over all bundles, since moves and exchanges make room for others.
_PASSES = 2


@dataclass(frozen=True, eq=False)
class Problem:
    """Bundles and brokers, and the permitted changes."""

    #: shape (n_bundles,), not all 0
    weights: Floats
    #: shape (n_brokers,), above 0
    capacities: Floats
    #: number of each bundle's broker, shape (n_bundles,)
    owners: Ints
    #: share of each bundle's load that each broker is near, in [0, 1], shape (n_bundles, n_brokers)
    near: Floats
    #: which brokers may have each bundle, its owner among them, shape (n_bundles, n_brokers)
    admitted: Bools
    #: load that has to come near for the move of each bundle, above 0, shape (n_bundles,)
    costs: Floats
    #: load / capacity of a broker over that of the cluster that is even enough
    max_imbalance: float
    #: most bundles that move
    max_moves: int
    #: greatest load that moves, in the unit of the weights. To relieve a broker that is too full, one bundle may exceed
    #: it
    max_weight: float

    @property
    def mean(self) -> float:
        """The load / capacity of the cluster."""
        return float(self.weights.sum() / self.capacities.sum())

    def pin(self, rows: Sequence[int]) -> None:
        """Let bundles stay where they are."""
        self.admitted[rows] = False
        self.admitted[rows, self.owners[rows]] = True

    def relative_loads(self, owners: Ints) -> Floats:
        """Compute load / capacity of every broker, relative to the cluster's, shape (n_brokers,)."""
        return np.bincount(owners, self.weights, len(self.capacities)) / self.capacities / self.mean

    def nearness(self, owners: Ints) -> float:
        """Compute the gain in near load, less the costs of the moves, as a share of all load."""
        gained = (self.weights * (self._near_at(owners) - self._near_at(self.owners))).sum()
        return float((gained - self.costs[owners != self.owners].sum()) / self.weights.sum())

    def distant(self) -> float:
        """Compute an upper bound of the nearness of all owners within the budget."""
        gains = np.where(self.admitted, self.near, 0.0).max(axis=1) - self._near_at(self.owners)
        worth = np.maximum(0.0, self.weights * gains - self.costs).sum()
        return float(min(worth, self.max_weight) / self.weights.sum())

    def _near_at(self, owners: Ints) -> Floats:
        near: Floats = self.near[np.arange(len(owners)), owners]
        return near


class Placement:
    """A placement under construction, which first relieves full brokers and then brings load near clients.

    No bundle moves twice.
    """

    def __init__(self, problem: Problem) -> None:
        self._weights, self._capacities, self._start = problem.weights, problem.capacities, problem.owners
        self._near, self._admitted, self._costs = problem.near, problem.admitted, problem.costs
        #: where the plan has the bundles
        self.owners = problem.owners.copy()
        self._loads = np.bincount(problem.owners, problem.weights, len(problem.capacities))
        self._room = problem.max_imbalance * problem.mean * problem.capacities * (1.0 + ROUND_OFF)
        self._moves_left, self._weight_left = problem.max_moves, problem.max_weight

    def even_out(self) -> None:
        """Relieve the fullest broker repeatedly, until the only full brokers left cannot be relieved."""
        relievable = np.ones(len(self._loads), np.bool_)
        while self._moves_left and relievable.any():
            filled = self._loads / self._capacities
            fullest = int(np.argmax(np.where(relievable, filled, -np.inf)))
            excess = self._loads[fullest] - self._room[fullest]
            if excess <= 0.0:
                return
            rows = self._find_movable(np.flatnonzero(self.owners == fullest))
            weights = self._weights[rows][:, None]
            after = (self._loads + weights) / self._capacities
            may = self._admitted[rows] & (np.arange(len(filled)) != fullest)
            fits = may & (self._loads + weights <= self._room)
            if fits.any():
                # The cost of a unit of relief, and the emptiest broker of equals.
                gain = weights * (self._near[rows] - self._near[rows, fullest][:, None])
                costs = (self._costs[rows][:, None] - gain) / np.minimum(weights, excess)
                equal = fits & (costs <= np.where(fits, costs, np.inf).min() + ROUND_OFF)
            else:
                # No broker has room for any of it, but two brokers can still become more even.
                least = np.maximum(after, (self._loads[fullest] - weights) / self._capacities[fullest])
                equal = may & (least < filled[fullest] * (1.0 - ROUND_OFF))
                if not equal.any():
                    relievable[fullest] = False
                    continue
                equal &= least <= np.where(equal, least, np.inf).min() * (1.0 + ROUND_OFF)
            row, broker = divmod(int(np.argmin(np.where(equal, after, np.inf))), len(filled))
            self._move(int(rows[row]), broker)

    def bring_near(self) -> None:
        """Move bundles near their clients, then exchange bundles that found no room.

        The bundles that come nearest for their load move first.
        """
        for _ in range(_PASSES):
            rows = np.arange(len(self.owners))
            nearest = np.where(self._admitted, self._near, 0.0).max(axis=1)
            gains = self._weights * (nearest - self._near[rows, self.owners]) - self._costs
            gains[(self.owners != self._start) | (self._weights <= 0.0)] = 0.0
            rates = np.divide(gains, self._weights, out=np.zeros(len(rows)), where=gains > 0.0)
            order = np.lexsort((rows, -self._weights, -rates))
            wanting = order[: int((rates > ROUND_OFF).sum())].tolist()
            rest = [row for row in wanting if not self._place_near(row)]
            for row in rest[:_EXCHANGES]:
                self._exchange(row)

    def _place_near(self, row: int) -> bool:
        """Move a bundle to the nearest broker with room, the emptiest of equals. Return whether one has room."""
        if not (self._moves_left and self._weights[row] <= self._weight_left):
            return False
        weight = self._weights[row]
        worth = self._near[row] - self._near[row, self.owners[row]] - self._costs[row] / weight
        fits = self._admitted[row] & (self._loads + weight <= self._room) & (worth > ROUND_OFF)
        if not fits.any():
            return False
        best = fits & (worth >= worth[fits].max() - ROUND_OFF)
        self._move(row, int(np.argmin(np.where(best, self._loads / self._capacities, np.inf))))
        return True

    def _exchange(self, row: int) -> None:
        """Exchange a bundle with the bundle that gains most, or loses least, by moving in the opposite direction."""
        own, weight, owners = int(self.owners[row]), self._weights[row], self.owners
        rows = np.arange(len(owners))
        gains = weight * (self._near[row, owners] - self._near[row, own]) - self._costs[row]
        gains += self._weights * (self._near[:, own] - self._near[rows, owners]) - self._costs
        may = (gains > ROUND_OFF * weight) & (owners != own) & (owners == self._start)
        may &= self._admitted[row, owners] & self._admitted[:, own]
        may &= self._loads[owners] + weight - self._weights <= self._room[owners]
        may &= self._loads[own] - weight + self._weights <= self._room[own]
        may &= weight + self._weights <= self._weight_left
        if may.any() and self._moves_left > 1:
            other = int(np.argmax(np.where(may, gains, -np.inf)))
            broker = int(owners[other])
            self._move(other, own)
            self._move(row, broker)

    def _find_movable(self, rows: Ints) -> Ints:
        """Find the bundles that may still move and fit the budget, or all of them if none fits and none has moved."""
        rows = rows[(self.owners[rows] == self._start[rows]) & (self._weights[rows] > 0.0)]
        affordable = rows[self._weights[rows] <= self._weight_left]
        return affordable if len(affordable) or (self.owners != self._start).any() else rows

    def _move(self, row: int, broker: int) -> None:
        weight = self._weights[row]
        self._loads[self.owners[row]] -= weight
        self._loads[broker] += weight
        self.owners[row] = broker
        self._moves_left, self._weight_left = self._moves_left - 1, self._weight_left - weight
