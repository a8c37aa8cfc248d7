"""Improves a placement of some hundred bundles by placing a few of them anew, again and again, all brokers at once.

Where brokers are nearly full and budgets are used up hardly any bundle can move alone: a heavy one makes way for
several light ones, brokers pass bundles on in a circle, one goes back so that another may leave. All this is among the
placements of a few dozen bundles while the others stay. Prices say by how much each choice of a bundle falls short of
its best; a better placement has few choices that do, so a search that begins with the heaviest bundle and keeps the
most promising beginnings mostly finds one. Values that are a little wrong at first, and less and less so, lead away
from placements that nothing of this kind improves.

Source: Shaw, Using constraint programming and local search methods to solve vehicle routing problems, CP (1998), for
what is placed anew; Ow and Morton, Filtered beam search in scheduling, International Journal of Production Research 26
(1988); Charon and Hudry, The noising method, Operations Research Letters 14 (1993).
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import islice

import numpy as np

from lookup.placement.prices import Market, Prices
from lookup.placement.problem import TOLERANCE, Floats, Ints

__all__ = ["exchanged"]

#: Bundles that are placed anew together, brokers that they are on by turns, and beginnings of placements that are kept.
_TOGETHER, _FEW_BROKERS, _KEPT = 40, 3, 60
#: Times that bundles are placed anew, at most, and the work of all of them together, which 0.6 s are enough for: of one
#: time (bundles with a choice + what all take) x (brokers + what all take).
_STEPS, _WORK, _ALL_BUNDLES, _ALL_BROKERS = 800, 1_300_000, 8, 50
#: The most that is added to values at first, in units of nearness for a bundle of the mean weight, and the share of
#: the search after which nothing is added.
_NOISE, _NOISY = 0.05, 0.8
#: What a unit of weight beyond a broker's room costs, in units of nearness.
_OVERLOAD = 3.0
#: Any large number that makes neighbours differ from the first turn on.
_FACTOR = 997


def exchanged(
    market: Market, prices: Prices, owners: Ints, enough: float, turns: Iterator[int]
) -> tuple[Ints, float] | None:
    """Return the best placement found within the limits, and its locality; None if none found keeps them.

    Args:
        prices: those that prove a bound.
        owners: where the search begins: within the budgets and on admitted brokers, which may be overloaded.
        enough: a locality at which the search ends.
        turns: numbers of turns, which decide what is placed anew: ascending, and not those of another search.
    """
    problem, search = market.problem, _Search(market, prices, owners)
    brokers, bundles = len(problem.room), len(owners)
    # Heavy bundles are what does not fit; a light one counts for little, but has its turns.
    odds = np.sqrt(problem.weights) + TOLERANCE
    best: tuple[Ints, float] | None = None
    for step, turn in enumerate(islice(turns, _STEPS + 1)):
        full = problem.loads(search.owners) > problem.room * (1 + TOLERANCE)
        locality = problem.locality(search.owners)
        if not full.any() and (best is None or locality > best[1]):
            best = search.owners, locality
        share_done = max(step / _STEPS, search.work / _WORK)
        # What half of the search has not repaired stays overloaded.
        if share_done >= (0.5 if best is None else 1.0) or (best is not None and best[1] >= enough):
            break
        # By turns any bundles, for budgets, and those of few brokers, which have to be packed in another way.
        few = np.argsort(_spread(turn, np.arange(brokers)))[: _FEW_BROKERS if step % 2 else brokers]
        chosen = np.flatnonzero(np.isin(search.owners, few))
        # Each has chances in proportion to its odds, as in a sample without replacement.
        order = np.argsort(np.log1p(-_spread(turn, brokers + chosen)) / odds[chosen])
        chosen = np.union1d(chosen[order[-_TOGETHER:]], np.flatnonzero(full[search.owners]))
        chosen = chosen[np.argsort(-problem.weights[chosen], kind="stable")]
        noise = _spread(turn, brokers + bundles + chosen[:, None] * brokers + np.arange(brokers)) - 0.5
        most = _NOISE * max(0.0, 1 - share_done / _NOISY) * np.sqrt(problem.weights[chosen])
        search.place_anew(chosen, 2 * most[:, None] * noise)
    return best


def _spread(turn: int, places: Ints) -> Floats:
    """Return numbers in [0, 1) for some places, which turns spread evenly, for each place in a way of its own.

    Source: Weyl, Über die Gleichverteilung von Zahlen mod. Eins, Mathematische Annalen 77 (1916): multiples of an
    irrational number.
    """
    # The root of half an odd number is irrational.
    spread: Floats = turn * _FACTOR * np.sqrt(places + 0.5) % 1
    return spread


#: Columns of what a choice adds to a placement: moved weight, moves, value after prices, nearness x weight.
_MOVED, _MOVES, _VALUE, _WORTH = range(4)


class _Search:
    """A placement on its way."""

    def __init__(self, market: Market, prices: Prices, owners: Ints) -> None:
        problem, of_broker = market.problem, market.alike.of_broker
        self._problem, self.owners, self.work = problem, owners, 0
        self._room_price, self._prices = prices.room[of_broker], prices
        #: whether each broker has the bundle now, shape (n_bundles, n_brokers)
        self._is_home = problem.owners[:, None] == np.arange(len(problem.room))
        values = market.values(prices, slice(None))
        moves = ~self._is_home & (problem.owners[:, None] >= 0)
        #: what each choice adds, shape (n_bundles, n_brokers, 4)
        self._adds = np.stack(
            [
                moves * problem.weights[:, None],
                moves,
                np.where(self._is_home, values[:, -1:], values[:, of_broker]),
                problem.weights[:, None] * market.alike.near[:, of_broker],
            ],
            axis=2,
        )

    def place_anew(self, bundles: Ints, noise: Floats) -> None:
        """Give some bundles better brokers, if such are found.

        Args:
            bundles: which, the heaviest first.
            noise: is added to what brokers are worth to them, shape (n_bundles, n_brokers).
        """
        problem, prices = self._problem, self._prices
        rows, weights, present = np.arange(len(bundles)), problem.weights[bundles], self.owners[bundles]
        adds = self._adds[bundles]
        adds[:, :, _VALUE:] += noise[:, :, None]
        adds[:, :, _VALUE] -= adds[:, :, _VALUE].max(axis=1)[:, None]
        now = adds[rows, present]

        # What the others leave of the limits, and what the bundles take of that now.
        others, has_left = self.owners.copy(), problem.moved(self.owners)
        others[bundles], has_left[bundles] = -1, False
        free = problem.room - problem.loads(others)
        budgets = np.array([problem.max_moved_weight, problem.max_moves])
        budgets -= float(problem.weights[has_left].sum()), float(has_left.sum())
        load = np.bincount(present, weights, len(free))
        stays = np.where(self._is_home[bundles, present], weights, 0.0)
        overload = _OVERLOAD * float(np.maximum(load - free, 0.0).sum())
        # A better placement falls less short of the best choices than this one, with what that leaves of scarce limits.
        cost = np.concatenate([self._room_price, prices.stay, [prices.weight, prices.move]])
        left = np.concatenate(
            [free - load, free - np.bincount(present, stays, len(free)), budgets - now[:, :_VALUE].sum(axis=0)]
        )
        most = overload - now[:, _VALUE].sum() + cost[cost > 0] @ left[cost > 0]

        # A bundle with no other choice that is good enough stays.
        is_open = (adds[:, :, _VALUE] > -most).sum(axis=1) > 1
        self.work += (int(is_open.sum()) + _ALL_BUNDLES) * (len(free) + _ALL_BROKERS)
        loads = (load - np.bincount(present, np.where(is_open, weights, 0.0), len(free)))[None, :]
        sums, choices = now[~is_open].sum(axis=0)[None, :], present[None, :]
        # Brokers that have too much may keep it, at a cost, but get no more.
        limit = np.maximum(free, load) + TOLERANCE
        limited = np.flatnonzero(np.isfinite(budgets)).tolist()
        for bundle in np.flatnonzero(is_open).tolist():
            add, weight = adds[bundle], weights[bundle]
            short = sums[:, _VALUE, None] + add[:, _VALUE]
            if overload:
                excess = np.maximum(loads - free, 0.0)
                excess_after = excess.sum(axis=1)[:, None] - excess + np.maximum(loads + weight - free, 0.0)
                short -= _OVERLOAD * excess_after
            fits = (short > -most) & (loads <= limit - weight)
            for column in limited:
                fits &= sums[:, column, None] <= budgets[column] + TOLERANCE - add[:, column]
            begun, broker = np.nonzero(fits)
            if len(begun) > _KEPT:
                kept = np.argpartition(-short[begun, broker], _KEPT)[:_KEPT]
                begun, broker = begun[kept], broker[kept]
            loads, sums, choices = loads[begun], sums[begun] + add[broker], choices[begun]
            loads[np.arange(len(begun)), broker] += weight
            choices[:, bundle] = broker
        gained = sums[:, _WORTH] - _OVERLOAD * np.maximum(loads - free, 0.0).sum(axis=1)
        if len(gained) and gained.max() > now[:, _WORTH].sum() - overload + TOLERANCE:
            self.owners = self.owners.copy()
            self.owners[bundles] = choices[np.argmax(gained)]
