"""Bounds how much of the weight can be near its clients, by prices for what is scarce.

A Lagrangian relaxation: every limit gets a price, and each bundle, by itself, takes the broker that is worth most to it
after prices. No placement within the limits is worth more than what all bundles take and the limits cost together,
whatever the prices are; subgradient steps find prices that make this bound low. Brokers that no bundle can tell apart
are one class with one price. A bundle also has the choice to stay on its broker, which costs no move; a broker whose
own bundles are too much for it has a price for staying.

Source: Fisher, The Lagrangian Relaxation Method for Solving Integer Programming Problems, Management Science 27 (1981);
step lengths after Polyak.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace

import numpy as np

from lookup.placement.alike import Alike
from lookup.placement.problem import TOLERANCE, Bools, Floats, Ints, Problem

__all__ = ["Market", "Prices", "found_prices"]

#: Values of bundles that are looked at together: they stay in the processor's cache.
_TOGETHER = 1 << 16
#: Steps without a lower bound after which steps become shorter, and by how much.
_PATIENCE, _SHORTER = 12, 0.6


@dataclass(frozen=True, eq=False)
class Prices:
    """What the limits cost, all at least 0."""

    #: of a unit of weight, by class, shape (n_classes,)
    room: Floats
    #: of a unit of weight that stays where it is, by broker, shape (n_brokers,)
    stay: Floats
    #: of a unit of weight that moves
    weight: float = 0.0
    #: of a move
    move: float = 0.0


@dataclass(frozen=True, eq=False)
class Market:
    """A problem as its bundles see it: what each of their choices is worth after prices.

    Choices are numbered: the classes, in which a bundle is placed anew, and last to stay where it is.
    """

    #: weights with a mean of 1
    problem: Problem
    alike: Alike
    #: classes in which a bundle found no broker with enough room, shape (n_bundles, n_classes)
    barred: Bools | None = None

    @property
    def stay(self) -> int:
        """Return the number of the choice to stay."""
        return self.alike.count

    def values(self, prices: Prices, rows: Ints | slice) -> Floats:
        """Return what each choice is worth to some bundles, shape (n_rows, n_classes + 1), -inf if they lack it."""
        problem, alike = self.problem, self.alike
        weights, owners = problem.weights[rows], problem.owners[rows]
        near = alike.near[rows].astype(np.float64, copy=False)
        values = np.empty((len(weights), alike.count + 1))
        np.subtract(near, prices.room, out=values[:, :-1])
        values[:, :-1] *= weights[:, None]
        owned = owners >= 0
        values[:, :-1] -= np.where(owned, weights * prices.weight + prices.move, 0.0)[:, None]
        own = alike.of_broker[owners]
        nearness = np.take_along_axis(near, own[:, None], axis=1)[:, 0]
        stays = weights * (nearness - prices.room[own] - prices.stay[owners])
        values[:, -1] = np.where(owned, stays, -np.inf)
        if alike.admitted is not None:
            values[:, :-1][~alike.admitted[rows]] = -np.inf
            values[~np.take_along_axis(alike.admitted[rows], own[:, None], axis=1)[:, 0], -1] = -np.inf
        if self.barred is not None:
            values[:, :-1][self.barred[rows]] = -np.inf
        return values

    def taken(self, prices: Prices) -> tuple[Ints, float]:
        """Return what each bundle takes, shape (n_bundles,), and what that is worth to all of them together."""
        choice = np.empty(len(self.problem.weights), dtype=np.int64)
        worth = 0.0
        for rows in self.slices():
            values = self.values(prices, rows)
            choice[rows] = values.argmax(axis=1)
            worth += float(values[np.arange(len(values)), choice[rows]].sum())
        return choice, worth

    def class_of(self, choice: Ints) -> Ints:
        """Return the class each bundle is in if it takes a choice, shape (n_bundles,)."""
        return np.where(choice == self.stay, self.alike.of_broker[self.problem.owners], choice)

    def moves(self, choice: Ints) -> Bools:
        """Return which bundles leave their broker if they take a choice, shape (n_bundles,)."""
        moves: Bools = (choice != self.stay) & (self.problem.owners >= 0)
        return moves

    def left(self, choice: Ints) -> tuple[Floats, Floats, float, float]:
        """Return how much of each limit choices leave: of classes, of staying by broker, of moved weight, of moves."""
        problem = self.problem
        in_class = np.bincount(self.class_of(choice), problem.weights, self.alike.count)
        stays = choice == self.stay
        staying = np.bincount(problem.owners[stays], problem.weights[stays], len(problem.room))
        moves = self.moves(choice)
        return (
            self.alike.room - in_class,
            problem.room - staying,
            problem.max_moved_weight - float(problem.weights[moves].sum()),
            problem.max_moves - float(moves.sum()),
        )

    def cost(self, prices: Prices) -> float:
        """Return what all limits cost together at some prices."""
        problem = self.problem
        limits = (
            (prices.room, self.alike.room),
            (prices.stay, problem.room),
            (prices.weight, problem.max_moved_weight),
            (prices.move, problem.max_moves),
        )
        # An infinite limit has the price 0.
        return sum(
            float(np.multiply(price, np.where(np.equal(price, 0.0), 0.0, limit)).sum()) for price, limit in limits
        )

    def slices(self) -> Iterator[slice]:
        """Yield the bundles in pieces whose values are computed together."""
        step = max(1, _TOGETHER // (self.alike.count + 1))
        return (slice(low, low + step) for low in range(0, len(self.problem.weights), step))


def found_prices(market: Market, floor: float, steps: int) -> tuple[float, Prices]:
    """Return the lowest bound found, of the weight near its clients, and the prices that prove it.

    Args:
        floor: what is known to be possible, so that no bound lies below it.
        steps: most subgradient steps.
    """
    problem = market.problem
    has_room = np.isfinite(market.alike.room)
    stays = np.bincount(problem.owners[problem.is_placed], problem.weights[problem.is_placed], len(problem.room))
    crowded = stays > problem.room * (1 + TOLERANCE)
    has_weight, has_moves = np.isfinite(problem.max_moved_weight), np.isfinite(problem.max_moves)
    prices = lowest = Prices(np.zeros(market.alike.count), np.zeros(len(problem.room)))
    bound, length, since = np.inf, 1.0, 0
    for _ in range(steps):
        choice, worth = market.taken(prices)
        worth += market.cost(prices)
        if worth < bound:
            bound, lowest, since = worth, prices, 0
        else:
            since += 1
            if since == _PATIENCE:
                # Back to the best prices, from which shorter steps lead further down.
                length, since, prices = length * _SHORTER, 0, lowest
                choice, _ = market.taken(prices)
        room, stay, weight, moves = market.left(choice)
        room, stay = np.where(has_room, room, 0.0), np.where(crowded, stay, 0.0)
        weight, moves = weight if has_weight else 0.0, moves if has_moves else 0.0
        # A price of 0 does not fall.
        room[(prices.room == 0) & (room > 0)] = 0.0
        stay[(prices.stay == 0) & (stay > 0)] = 0.0
        weight = 0.0 if prices.weight == 0 and weight > 0 else weight
        moves = 0.0 if prices.move == 0 and moves > 0 else moves
        square = float(room @ room) + float(stay @ stay) + weight * weight + moves * moves
        if not square or bound <= floor * (1 + 1e-7):
            break
        step = length * max(bound - floor, 1e-9 * abs(bound)) / square
        prices = replace(
            prices,
            room=np.maximum(prices.room - step * room, 0.0),
            stay=np.maximum(prices.stay - step * stay, 0.0),
            weight=max(prices.weight - step * weight, 0.0),
            move=max(prices.move - step * moves, 0.0),
        )
    return bound, lowest
