"""Turns prices into a placement: what bundles take is brought within the limits, packed into brokers, and improved.

At good prices all but a few bundles take what they have in a best placement. The others are found as in an auction:
while a limit is broken its price rises until enough of those who use it prefer something else.

Source: Bertsekas, The auction algorithm, Annals of Operations Research 14 (1988), for prices that rise.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from heapq import heapify, heapreplace
from itertools import count

import numpy as np

from lookup.placement.prices import Market, Prices
from lookup.placement.problem import TOLERANCE, Bools, Floats, Ints

__all__ = ["improved", "rounded"]

#: What a price rises by at least, in units of nearness: prices that do not rise may go round in a circle.
_RISE = 1e-5
#: Rises after which the least rise is twice as large, after as many again thrice.
_PATIENCE = 200
#: That many times an auction is over.
_ROUNDS = 16
#: Auctions, each without the choices for which no broker had room in the one before.
_AUCTIONS = 20
#: Share of the classes' room that is left free, so that whole bundles fit into brokers; the first that works is taken.
_SPARE = (0.0, 0.01)
#: Bundles that make way for heavier ones while those of a class are packed, at most.
_MOST_EXCHANGES = 10_000
#: Passes of improvement, and classes that each tries for a bundle, the nearest ones.
_PASSES, _NEAREST = 4, 8
#: Room of a broker that is given away, as a ratio: so far below what a limit tolerates that sums cannot pass that.
_ROOM = 1 + TOLERANCE / 2


def rounded(market: Market, prices: Prices) -> Ints | None:
    """Return a placement that keeps all limits, by the prices that prove the lowest bound; None if none is found."""
    starts = (owners for spare in _SPARE for owners in _attempts(market, prices, spare))
    kept = next(filter(market.problem.is_kept_by, starts), None)
    return None if kept is None else improved(market, kept)


def _attempts(market: Market, prices: Prices, spare: float) -> Iterator[Ints]:
    """Yield placements that follow prices; in those before the last some bundles are too much for their brokers."""
    barred = np.zeros(market.alike.near.shape, dtype=bool)
    for _ in range(_AUCTIONS):
        found = _within_limits(market, prices, spare)
        if found is None:
            return
        choice, prices = found
        owners, homeless = _packed(market, choice)
        yield owners
        if not len(homeless):
            return
        # Too heavy for what is left free in any broker of the class it takes: the auction goes on without that choice.
        barred = barred.copy()
        barred[homeless, choice[homeless]] = True
        market = replace(market, barred=barred)


@dataclass(frozen=True, eq=False)
class _Limit:
    """A limit that choices break."""

    #: its field in `Prices`, and its place there if that is a column
    price: str
    place: int | None
    excess: float
    #: the bundles that use it, and how much of it each takes
    users: Ints
    usage: Floats
    #: which choices of theirs do not use it, shape (n_users, n_classes + 1)
    without: Bools


def _within_limits(market: Market, prices: Prices, spare: float) -> tuple[Ints, Prices] | None:
    """Return a choice for each bundle that keeps the limits of classes, moves and stays, and the prices for it.

    If it takes too long some bundles are too much for their class or their broker; moves are within their budgets.
    """
    choice, worth = market.taken(prices)
    if not np.isfinite(worth):
        return None
    for rises in count():
        limit = _broken(market, choice, spare)
        is_over = rises >= _ROUNDS * _PATIENCE
        if limit is None or (is_over and limit.price not in ("weight", "move")):
            break
        values = market.values(prices, limit.users)
        present = values[np.arange(len(values)), choice[limit.users]]
        values[~limit.without] = -np.inf
        other = values.argmax(axis=1)
        # what a unit of the limit has to cost before a user prefers its best other choice
        tips = (present - values[np.arange(len(values)), other]) / limit.usage
        leaving = _enough(tips, limit.usage, limit.excess)
        if leaving is None:
            break
        choice[limit.users[leaving]] = other[leaving]
        prices = _raised(prices, limit, max(float(tips[leaving].max()), 0.0) + _RISE * (1 + rises / _PATIENCE))
    return choice, prices


def _enough(tips: Floats, usage: Floats, excess: float) -> Ints | None:
    """Return the users that leave first and together free at least so much; None if they cannot."""
    order = np.argsort(tips, kind="stable")
    freed = np.cumsum(usage[order])
    enough = int(np.searchsorted(freed, excess)) + 1
    if enough > len(order) or not np.isfinite(tips[order[enough - 1]]):
        return None
    leaving = order[:enough]
    # Heavy ones stay if the others are enough: a room that is left empty is lost.
    surplus = float(freed[enough - 1]) - excess
    stays = np.zeros(enough, dtype=bool)
    for place in np.argsort(-usage[leaving], kind="stable").tolist():
        if usage[leaving[place]] <= surplus:
            surplus -= float(usage[leaving[place]])
            stays[place] = True
    return leaving[~stays]


def _broken(market: Market, choice: Ints, spare: float) -> _Limit | None:
    """Return a limit that choices break, None if they keep all; of the classes the fullest."""
    problem, alike = market.problem, market.alike
    room, stay, weight, moves = market.left(choice)
    columns = np.arange(alike.count + 1)
    has_weight = problem.weights > 0
    if weight < -TOLERANCE * problem.max_moved_weight or moves < 0:
        users = np.flatnonzero(market.moves(choice) & (has_weight | (moves < 0)))
        without = np.broadcast_to(columns == market.stay, (len(users), len(columns)))
        if moves < 0:
            return _Limit("move", None, -moves, users, np.ones(len(users)), without)
        return _Limit("weight", None, -weight, users, problem.weights[users], without)
    crowded = int(np.argmin(stay))
    if stay[crowded] < -TOLERANCE * problem.room[crowded]:
        users = np.flatnonzero((choice == market.stay) & (problem.owners == crowded) & has_weight)
        without = np.broadcast_to(columns != market.stay, (len(users), len(columns)))
        return _Limit("stay", crowded, -float(stay[crowded]), users, problem.weights[users], without)
    if not np.isfinite(alike.room).all():
        return None
    room = room / alike.room - spare
    fullest = int(np.argmin(room))
    if room[fullest] >= -TOLERANCE:
        return None
    users = np.flatnonzero((market.class_of(choice) == fullest) & has_weight)
    without = np.tile(columns != fullest, (len(users), 1))
    without[alike.of_broker[problem.owners[users]] == fullest, market.stay] = False
    return _Limit("room", fullest, -float(room[fullest] * alike.room[fullest]), users, problem.weights[users], without)


def _raised(prices: Prices, limit: _Limit, by: float) -> Prices:
    old = getattr(prices, limit.price)
    if limit.place is None:
        return replace(prices, **{limit.price: old + by})
    column = old.copy()
    column[limit.place] += by
    return replace(prices, **{limit.price: column})


def _packed(market: Market, choice: Ints) -> tuple[Ints, Ints]:
    """Return a broker for each bundle, of the class it takes, and the bundles for which no broker has enough room.

    Those are on the broker that lacks least.
    """
    problem = market.problem
    owners = np.where(choice == market.stay, problem.owners, -1)
    free = np.where(np.isfinite(problem.room), problem.room * _ROOM, 0.0) - problem.loads(owners)
    anew = np.flatnonzero(owners < 0)
    # heaviest first, class by class
    anew = anew[np.lexsort((-problem.weights[anew], choice[anew]))]
    bounds = np.searchsorted(choice[anew], np.arange(market.alike.count + 1))
    for number, brokers in enumerate(market.alike.members):
        bundles = anew[bounds[number] : bounds[number + 1]]
        if len(bundles):
            _pack(market, bundles, brokers, free, owners)
    homeless = np.flatnonzero(owners < 0)
    for bundle in homeless.tolist():
        brokers = market.alike.members[int(choice[bundle])]
        owners[bundle] = brokers[np.argmax(free[brokers])]
        free[owners[bundle]] -= problem.weights[bundle]
    return owners, homeless


def _pack(market: Market, bundles: Ints, brokers: Ints, free: Floats, owners: Ints) -> None:
    """Place bundles, heaviest first, each where most is free.

    Args:
        free: weight that each broker can still take, is kept up; without limits the negative of its load.
        owners: is filled in, where there is room.
    """
    weights, is_bounded = market.problem.weights, bool(np.isfinite(market.problem.room[brokers[0]]))
    heap = [(-free[broker], broker) for broker in brokers.tolist()]
    heapify(heap)
    waiting: list[int] = []
    for bundle in bundles.tolist():
        weight, (least, broker) = weights[bundle], heap[0]
        if is_bounded and weight > -least:
            waiting.append(bundle)
            continue
        owners[bundle] = broker
        heapreplace(heap, (least + weight, broker))
    for least, broker in heap:
        free[broker] = -least
    # A lighter bundle makes way for each, so those that wait become lighter and lighter.
    for _ in range(_MOST_EXCHANGES):
        if not waiting:
            break
        bundle = waiting.pop()
        leaver = _make_way(weights, bundle, bundles, brokers, free, owners)
        if leaver is not None and leaver >= 0:
            waiting.append(leaver)


def _make_way(weights: Floats, bundle: int, bundles: Ints, brokers: Ints, free: Floats, owners: Ints) -> int | None:
    """Place a bundle where a lighter one of the same bundles makes way; return that one, -1 if none has to."""
    weight = weights[bundle]
    for broker in brokers[np.argsort(-free[brokers], kind="stable")].tolist():
        if weight <= free[broker]:
            owners[bundle] = broker
            free[broker] -= weight
            return -1
        there = bundles[owners[bundles] == broker]
        enough = there[(weights[there] >= weight - free[broker]) & (weights[there] < weight)]
        if len(enough):
            leaver = int(enough[np.argmin(weights[enough])])
            owners[bundle], owners[leaver] = broker, -1
            free[broker] += weights[leaver] - weight
            return leaver
    return None


def improved(market: Market, owners: Ints) -> Ints:
    """Return a placement within the limits improved by single moves, the nearest first, as long as any fits."""
    problem, alike = market.problem, market.alike
    start, owners = owners, owners.copy()
    free = problem.room * _ROOM - problem.loads(owners)
    moved = problem.moved(owners)
    weight_left = problem.max_moved_weight - float(problem.weights[moved].sum())
    moves_left = problem.max_moves - float(moved.sum())
    for _ in range(_PASSES):
        changed = False
        for bundle, number in _gainful(market, owners, free):
            present, weight = int(owners[bundle]), float(problem.weights[bundle])
            is_first = problem.owners[bundle] == present
            brokers = alike.members[number]
            broker = int(brokers[np.argmax(free[brokers])])
            if alike.near[bundle, number] <= alike.near[bundle, alike.of_broker[present]]:
                continue
            if weight > free[broker] or (is_first and (weight > weight_left or moves_left < 1)):
                continue
            owners[bundle] = broker
            free[broker] -= weight
            free[present] += weight
            if is_first:
                weight_left, moves_left = weight_left - weight, moves_left - 1
            changed = True
        if not changed:
            break
    # Where bundles of very different weight came and went, what is left of them in a sum may be more than a tiny room.
    return owners if problem.is_kept_by(owners) else start


def _gainful(market: Market, owners: Ints, free: Floats) -> list[tuple[int, int]]:
    """Return pairs of a bundle and a nearer class with a broker that has room for it, the greatest gain first."""
    alike, pairs = market.alike, []
    roomiest = np.array([free[brokers].max() for brokers in alike.members])
    nearest = min(_NEAREST, alike.count)
    for rows in market.slices():
        near = alike.near[rows].astype(np.float64)
        own = alike.of_broker[owners[rows]]
        near -= np.take_along_axis(near, own[:, None], axis=1)
        near[market.problem.weights[rows][:, None] > roomiest] = 0.0
        if alike.admitted is not None:
            near[~alike.admitted[rows]] = 0.0
        classes = np.argpartition(-near, nearest - 1, axis=1)[:, :nearest]
        gains = np.take_along_axis(near, classes, axis=1)
        places = np.nonzero(gains > 0)
        pairs.append(np.stack([gains[places], places[0] + rows.start, classes[places]]))
    gains, bundles, classes = np.concatenate(pairs, axis=1)
    order = np.lexsort((classes, bundles, -gains))
    return list(zip(bundles[order].astype(int).tolist(), classes[order].astype(int).tolist(), strict=True))
