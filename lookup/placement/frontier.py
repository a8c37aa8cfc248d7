"""Bound what placements can reach: near lookups and balance, each alone and both at once, with free and with few moves.

A *piece* of demand is served whole by one broker. Let v be the lookups of a piece that are near if a broker of class k
serves it, or what else that gains, w its weight, n the brokers of a cell of time, B of them of class k. For a
multiplier t >= 0 and any prices p >= 0 with sum(B p) = t n, no placement has more than sum over pieces of max over k of
(v - w p) in

    near lookups - t * n * (most weight that a broker serves in the cell),

since the most loaded broker serves at least the mean that the prices weigh. Such sums add up over cells and clusters,
and each t is one line that no placement crosses. With few moves the pieces of a bundle are a path over time, on which
every change of label costs a price as well, and the dearest path is found forwards, stretch by stretch. Whatever the
prices are the bound holds; good ones make it tight, and are sought by multiplicative updates.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from lookup.placement.problem import Bools, Floats, Ints

__all__ = [
    "Locality", "Multipliers", "Reach", "Stretch", "crowding", "evenness", "frontier", "is_too_crowded", "is_too_much",
    "split_prices", "whole_unevenness",
]  # fmt: skip

#: Loss of near lookups for a gain in balance, each as a share of the whole. Full classes of brokers set the price, so
#: what pays lies between 0 and 1: at the share of brokers whose classes are full.
_SLOPES = (0.0, 1 / 24, 1 / 12, 1 / 6, 1 / 4, 1 / 3, 1 / 2, 2 / 3, 3 / 4, 1.0, 2.0)
#: Lookups that a move must gain, as a share of what a bundle has on average.
_WORTHS = (1 / 16, 1 / 8, 1 / 4, 1 / 2, 1.0, 2.0, 4.0, 16.0)
#: Updates of the prices of a cell, the first of them so large (as an exponent); more gain little (measured).
_STEPS, _RATE = 32, 0.7
#: With the prices of an earlier cell to begin with, updates begin here, where they are small.
_LATER = 22
#: Pieces of a cell that prices are sought by; more make bounds hardly tighter (measured).
_SAMPLE = 256
#: Numbers of a table of paths at most, 64 MB for each property; with more, few moves are not bounded.
_MOST_PATHS = 1 << 23
#: Bundles of a block of that table: a block stays in a processor's cache while its paths are lengthened.
_BLOCK = 128
#: Rounding of sums, as a share of them.
_ROUNDING = 1e-9


@dataclass(frozen=True, eq=False)
class Multipliers:
    """The multipliers of all bounds of a run, the same in every cluster: only then do the bounds add up."""

    #: near lookups per weight of the most loaded broker, times its brokers; shape (n_slopes,), the first is 0
    balance: Floats
    #: near lookups per move, shape (n_prices,), ascending from 0 to more than any move can gain
    moves: Floats
    #: weight, times brokers, per move; shape (n_prices,)
    splits: Floats
    #: distance in ms at which a lookup is not near at all, 0.0 if no distance is known
    farthest_ms: float
    #: near lookups for each weight that is a ms nearer
    per_ms: float

    @classmethod
    def of(cls, lookups: float, weight: float, bundles: int, farthest_ms: float = 0.0) -> Multipliers:
        """Choose multipliers by the size of the demand of all clusters."""
        worth = lookups / max(bundles, 1)
        moves = np.array([0.0, *(worth * share for share in _WORTHS), max(lookups, worth * 2 * _WORTHS[-1])])
        per_weight = lookups / weight if weight else 0.0
        return cls(
            balance=np.array(_SLOPES) * per_weight,
            moves=moves,
            splits=moves / per_weight if per_weight else moves,
            farthest_ms=farthest_ms,
            per_ms=per_weight / farthest_ms if farthest_ms else 0.0,
        )


@dataclass(frozen=True, eq=False)
class Reach:
    """The brokers that whatever is placed is kept to, as sets of brokers."""

    #: distinct sets, shape (n_sets, n_brokers); none is empty
    members: Bools
    #: number of the set of each piece, or unit, shape (n,)
    of: Ints


@dataclass(frozen=True, eq=False)
class Stretch:
    """The demand of a stretch of time in which brokers and bundles stay what they are, in pieces."""

    #: label of each broker, n_labels if it has none, -1 if it is not there; shape (n_brokers,)
    labels: Ints
    #: lookups of each piece that are near each label, shape (n_pieces, n_labels)
    near: Floats
    #: weight of each piece, shape (n_pieces,)
    weights: Floats
    #: bundle of each piece, shape (n_pieces,)
    bundles: Ints
    #: the brokers that pieces are kept to, all of them there; None: each may be on any broker
    reach: Reach | None = None


class Locality:
    """Adds up the bounds of near lookups, alone and against balance, over the cells of one cluster.

    In arrays classes of brokers and labels come first, and bundles or pieces last: numpy is slow across a short last
    axis.

    Args:
        n_bundles: bundles that occur, each with a number below it; None: pieces have no owner that could move.
    """

    def __init__(self, multipliers: Multipliers, n_labels: int, n_bundles: int | None) -> None:
        self._multipliers, self._n_labels = multipliers, n_labels
        #: bounds with free moves, shape (n_slopes,)
        self.free = np.zeros(len(multipliers.balance))
        #: the dearest price of any cell: what a bound grows by at most for each weight that is not served
        self.dearest = np.zeros(len(multipliers.balance))
        #: the most that a path can have that ends with each label; shape (n_blocks, n_labels + 1, n_slopes, n_prices,
        #: bundles of a block), of which the last block has some that do not occur
        self._paths: Floats | None = None
        shape = (n_labels + 1, len(multipliers.balance), len(multipliers.moves))
        if n_bundles is not None and np.prod((n_bundles, *shape)) <= _MOST_PATHS:
            self._paths = np.zeros((-(-n_bundles // _BLOCK), *shape, _BLOCK))
        self._last_labels: Ints | None = None
        #: prices of the last cell with the same classes of brokers, for pieces and for whole bundles
        self._last_prices: dict[tuple[str, bytes, bytes], Floats] = {}

    @property
    def few(self) -> Floats | None:
        """Return the bounds by price of a move, what the moves pay left out, shape (n_slopes, n_prices)."""
        return None if self._paths is None else self._paths.max(axis=1).sum(axis=(0, 3))

    def add_cell(self, stretches: Sequence[Stretch], n_brokers: int) -> None:
        """Add a cell of time.

        Args:
            stretches: in order of time.
            n_brokers: registered at any time in the cell.
        """
        # What no broker can serve has no answer, which no bound is about.
        stretches = [one for one in stretches if len(one.weights) and (one.labels >= 0).any()]
        if not stretches:
            return
        labels = np.stack([one.labels for one in stretches])
        members = [one.reach.members for one in stretches if one.reach is not None]
        # Brokers that are alike throughout the cell, also in what may be on them, have one price.
        traits = np.vstack([labels, *members])[:, (labels >= 0).any(axis=0)]
        traits, sizes = np.unique(traits, axis=1, return_counts=True)
        classes, admitted = (
            traits[: len(labels)],
            iter(np.split(traits[len(labels) :], np.cumsum([*map(len, members)]))),
        )
        served = [
            _near_classes(one, of_class, None if one.reach is None else next(admitted) > 0)
            for one, of_class in zip(stretches, classes, strict=True)
        ]
        near, weights = np.concatenate(served, axis=1), np.concatenate([one.weights for one in stretches])
        budgets = self._multipliers.balance * n_brokers
        names = traits.tobytes(), sizes.tobytes()
        prices = _prices(near, weights, sizes, budgets, self._last_prices.get(("pieces", *names)))
        self._last_prices["pieces", *names] = prices
        np.maximum(self.dearest, prices.max(axis=1), out=self.dearest)
        for number, price in enumerate(prices):
            self.free[number] += float(_bargains(near, weights, price).sum())
        if self._paths is None:
            return
        # Whole bundles set other prices than their pieces do.
        bundles = np.concatenate([one.bundles for one in stretches])
        whole = np.stack([np.bincount(bundles, weights=of_class) for of_class in near]).astype(np.float64)
        carried = np.bincount(bundles, weights=weights).astype(np.float64)
        prices = _prices(whole, carried, sizes, budgets, self._last_prices.get(("bundles", *names)))
        self._last_prices["bundles", *names] = prices
        np.maximum(self.dearest, prices.max(axis=1), out=self.dearest)
        for one, of_class, values in zip(stretches, classes, served, strict=True):
            self._relabel(one.labels)
            self._step(one, of_class, values, prices)

    def _relabel(self, labels: Ints) -> None:
        """Let bundles follow a broker whose label changed: that is no move."""
        if self._last_labels is None or self._paths is None:
            self._last_labels = labels.copy()
            return
        last = self._last_labels
        changed = (labels >= 0) & (last >= 0) & (labels != last)
        for before, now in set(zip(last[changed].tolist(), labels[changed].tolist(), strict=True)):
            np.maximum(self._paths[:, now], self._paths[:, before], out=self._paths[:, now])
        self._last_labels = np.where(labels >= 0, labels, last)

    def _step(self, stretch: Stretch, of_class: Ints, values: Floats, prices: Floats) -> None:
        """Lengthen the paths of all bundles with demand in a stretch.

        Args:
            of_class: label of each class in the stretch.
            values: near lookups by class and piece, -inf of a class that is not there or that may not have the piece.
            prices: shape (n_slopes, n_classes).
        """
        assert self._paths is not None  # only called where there are paths
        labels = np.unique(of_class[of_class >= 0])
        near = np.stack([values[of_class == label].max(axis=0) for label in labels])
        # Of the brokers with one label the cheapest class is the best.
        cheapest = np.stack([prices[:, of_class == label].min(axis=1) for label in labels])
        n_bundles = len(self._paths) * _BLOCK
        # Nothing is served from a label that no broker has now, and its bundles may wait for it.
        stay = np.zeros((self._n_labels + 1, len(prices), n_bundles))
        carried = np.bincount(stretch.bundles, weights=stretch.weights, minlength=n_bundles)
        for label, of_label, price in zip(labels.tolist(), near, cheapest, strict=True):
            # A bundle may wait with a label that may not have it as well, and gains nothing there.
            served = of_label if stretch.reach is None else np.maximum(of_label, 0.0)
            gained = np.bincount(stretch.bundles, weights=served, minlength=n_bundles)
            stay[label] = gained - price[:, None] * carried
        # A bundle that moves within the stretch may have the best of every piece. One without demand has no reason to.
        mixed = np.full((len(prices), n_bundles), -np.inf)
        is_asked = np.bincount(stretch.bundles, minlength=n_bundles) > 0
        for number, price in enumerate(cheapest.T):
            best = np.bincount(stretch.bundles, weights=_bargains(near, stretch.weights, price), minlength=n_bundles)
            mixed[number, is_asked] = best[is_asked]
        for number, paths in enumerate(self._paths):
            block = slice(number * _BLOCK, (number + 1) * _BLOCK)
            if is_asked[block].any():
                moved = paths.max(axis=0) - self._multipliers.moves[:, None] + mixed[:, None, block]
                paths += stay[:, :, None, block]
                np.maximum(paths, moved, out=paths)


def _near_classes(stretch: Stretch, of_class: Ints, admitted: Bools | None) -> Floats:
    """Return near lookups by class of brokers and piece, -inf of a class that is not there or may not have it.

    Args:
        admitted: classes that belong to each set of the stretch's reach, shape (n_sets, n_classes).
    """
    near = np.vstack([stretch.near.T, np.zeros(len(stretch.weights))])[of_class]
    near[of_class < 0] = -np.inf
    if admitted is not None and stretch.reach is not None:
        near[~admitted.T[:, stretch.reach.of]] = -np.inf
    return near


def _bargains(near: Floats, weights: Floats, prices: Floats) -> Floats:
    """Return what each piece gains with the class that suits it best, its price paid, shape (n_pieces,).

    Args:
        near: shape (n_classes, n_pieces).
        prices: shape (n_classes,).
    """
    best: Floats = near[0] - prices[0] * weights
    net = np.empty(len(weights))
    for of_class, price in zip(near[1:], prices[1:], strict=True):
        np.subtract(of_class, np.multiply(weights, price, out=net), out=net)
        np.maximum(best, net, out=best)
    return best


def _prices(near: Floats, weights: Floats, sizes: Ints, budgets: Floats, start: Floats | None) -> Floats:
    """Return prices of classes under which few pieces have a bargain, shape (n_slopes, n_classes).

    A class that would serve more than its share becomes dearer, the others cheaper.

    Args:
        near: shape (n_classes, n_pieces).
        sizes: brokers of each class.
        budgets: sum of the prices of all brokers, shape (n_slopes,).
        start: prices of a cell like this one, None if there was none.
    """
    n_classes, n_slopes = len(sizes), len(budgets)
    prices = best = _within(np.ones((n_slopes, n_classes)) if start is None else start, sizes, budgets)
    if n_classes == 1 or not weights.any():
        return prices
    near, weights = _sample(near, weights)
    total = weights.sum()
    # A bundle may have no class that is there all the time.
    is_served = np.isfinite(near).any(axis=0)
    near, weights = near[:, is_served], weights[is_served]
    least, firsts = np.full(n_slopes, np.inf), n_classes * np.arange(n_slopes)[:, None]
    many = np.tile(weights, n_slopes)
    for step in range(0 if start is None else _LATER, _STEPS):
        net = near[:, None] - prices.T[:, :, None] * weights
        bargain = net.max(axis=0)
        value = bargain.sum(axis=1)
        is_better = value < least
        least, best = np.where(is_better, value, least), np.where(is_better[:, None], prices, best)
        # Of classes that are as good the first serves. No matrix product: the order of its terms depends on how many
        # threads there are.
        places = net.argmax(axis=0) + firsts
        load = np.bincount(places.ravel(), weights=many, minlength=firsts.size * n_classes).reshape(n_slopes, -1)
        excess = load / sizes / (total / sizes.sum()) - 1.0
        # Without a limit a class that is far too cheap would become far too dear.
        prices = prices * np.exp(_RATE / (1 + step) ** 0.75 * np.clip(excess, -1.0, 1.0))
        prices = _within(prices, sizes, budgets)
    return best


def _within(prices: Floats, sizes: Ints, budgets: Floats) -> Floats:
    """Return prices in the same proportions that add up to the budgets."""
    within: Floats = prices * (budgets / ((prices * sizes).sum(axis=1) + (budgets == 0)))[:, None]
    return within


def _sample(near: Floats, weights: Floats) -> tuple[Floats, Floats]:
    """Draw pieces by their weights where there are many; each has an equal share of the weight then."""
    if len(weights) <= _SAMPLE:
        return near, weights
    # Steps of the golden ratio fill a circle evenly, and hit no period, such as that of the bundles in each tick.
    places = np.arange(_SAMPLE) * (np.sqrt(5.0) - 1.0) / 2.0 % 1.0
    before = np.cumsum(weights)
    drawn = np.searchsorted(before, places * before[-1], side="right")
    share = before[-1] / _SAMPLE
    return near[:, drawn] / weights[drawn] * share, np.full(_SAMPLE, share)


def evenness(weight: float, heaviest: float, n_brokers: int) -> tuple[float, float]:
    """Return the least imbalance of a cell of time, as max x brokers and as deviation x brokers.

    Args:
        weight: of the cell.
        heaviest: weight of the heaviest piece.
        n_brokers: at least 1.
    """
    mean = weight / n_brokers
    if heaviest <= mean or n_brokers == 1:
        return weight, 0.0
    # The others share evenly what the broker of the heaviest piece leaves.
    squares = (heaviest - mean) ** 2 * n_brokers / (n_brokers - 1)
    return heaviest * n_brokers, float(np.sqrt(squares * n_brokers))


def _within_sets(members: Bools) -> Bools:
    """Return which sets of brokers lie within each one, shape (n_sets, n_sets): [a, b] is true if b is part of a.

    Args:
        members: shape (n_sets, n_brokers).
    """
    # Counts are exact in whatever order a matrix product adds them up.
    outside = (~members).astype(np.float32) @ members.T.astype(np.float32)
    is_part: Bools = outside == 0
    return is_part


def crowding(members: Bools, weights: Floats, weight: float, n_brokers: int) -> tuple[float, float]:
    """Return the least imbalance of a cell of pieces that are kept to sets of brokers, as `evenness` does.

    The brokers of a set have at least the weight of all sets within it. The most that a broker of any set has so bounds
    the most loaded one. For the deviation the fullest sets are counted, one beside the other, as long as they have more
    than what is left for the others: it is least if each of them, and the rest, is even.

    Args:
        members: sets of brokers, none empty, shape (n_sets, n_brokers); the same one may occur several times.
        weights: of the pieces that are kept to each set, shape (n_sets,).
        weight: of the cell.
        n_brokers: registered at any time in it.
    """
    members, weights = members[weights > 0], weights[weights > 0]
    members, same = np.unique(members, axis=0, return_inverse=True)
    of_set, sizes = np.bincount(same.ravel(), weights=weights), members.sum(axis=1)
    loads = np.where(_within_sets(members), of_set, 0.0).sum(axis=1)
    mean, left, others, squares = weight / n_brokers, weight, n_brokers, 0.0
    is_counted = np.zeros(members.shape[1], dtype=bool)
    for number in np.lexsort((-sizes, -loads / sizes)).tolist():
        size, load = int(sizes[number]), float(loads[number])
        if (members[number] & is_counted).any():
            continue
        if size >= others or load * others <= left * size:
            break
        is_counted |= members[number]
        squares += (load / size - mean) ** 2 * size
        left, others = left - load, others - size
    squares += (left / others - mean) ** 2 * others
    return float((loads / sizes).max(initial=0.0)) * n_brokers, float(np.sqrt(squares * n_brokers))


def whole_unevenness(bundles: Floats, least: float, deviation: float, n_brokers: int) -> tuple[Floats, Floats]:
    """Return the least max x brokers of a cell, and deviation x brokers, by how many of its heaviest bundles move.

    A bundle that does not move is served whole, so that the heaviest of these bounds the most loaded broker. Those
    heavier than the mean of what is left are best served alone, heaviest first, and the rest evenly: the most loaded
    brokers have as much as the heaviest bundles together at least, however many are counted.

    Args:
        bundles: weight of each, shape (n_bundles,).
        least, deviation: what both are at least, whatever moves; the last values of the two.
    """
    total = float(bundles.sum())
    mean = total / n_brokers
    weights = np.sort(bundles)[::-1]
    left = []
    for moving in range(int((weights > mean).sum())):
        whole = weights[moving : moving + n_brokers - 1]
        others = n_brokers - np.arange(len(whole) + 1)
        remains = total - np.append(0.0, np.cumsum(whole))
        # One heavier than the mean of what is left makes this mean smaller; the first that is not ends them.
        alone = int(np.logical_and.accumulate(whole * others[:-1] > remains[:-1]).sum())
        squares = ((whole[:alone] - mean) ** 2).sum() + others[alone] * (remains[alone] / others[alone] - mean) ** 2
        left.append(max(deviation, float(np.sqrt(squares * n_brokers))))
    return np.append(weights[weights * n_brokers > least] * n_brokers, least), np.array([*left, deviation])


def split_prices(left: Floats, splits: Floats) -> Floats:
    """Return the least unevenness of a cell at each price of a move, what moves cost included, shape (n_prices,).

    Args:
        left: the least by how many bundles move.
        splits: prices of a move, shape (n_prices,).
    """
    least: Floats = (left + splits[:, None] * np.arange(len(left))).min(axis=1)
    return least


def is_too_much(load: float, heaviest: float, room: Floats) -> bool:
    """Return whether some broker surely has more than its room, wherever load is.

    Args:
        heaviest: what one broker has to carry whole, 0.0 if load can be divided at will.
        room: of each broker, shape (n_brokers,).
    """
    # A policy adds load up in another order.
    return load > float(room.sum()) * (1 + _ROUNDING) or heaviest > float(room.max(initial=0.0)) * (1 + _ROUNDING)


def is_too_crowded(reach: Reach, loads: Floats, room: Floats) -> bool:
    """Return whether some broker surely has more than its room, if loads are kept to sets of brokers.

    Args:
        reach: of the loads.
        loads: each carried whole, shape (n_loads,).
        room: of each broker, shape (n_brokers,).
    """
    of_set = np.bincount(reach.of, weights=loads, minlength=len(reach.members))
    heaviest = np.zeros(len(reach.members))
    np.maximum.at(heaviest, reach.of, loads)
    parts, members = _within_sets(reach.members), reach.members
    all_loads, all_room = np.where(parts, of_set, 0.0).sum(axis=1), np.where(members, room, 0.0).sum(axis=1)
    is_over = all_loads > all_room * (1 + _ROUNDING)
    return bool((is_over | (heaviest > np.where(members, room, 0.0).max(axis=1) * (1 + _ROUNDING))).any())


def frontier(offsets: Floats, slopes: Floats, least: float) -> list[tuple[float, float]]:
    """Return the corners of the curve that no placement crosses, by imbalance; from the last one on it is level.

    Args:
        offsets, slopes: of the lines above which there is no placement, shape (n_lines,); one has slope 0.
        least: of the imbalance; below 0 there is no placement either, so the curve begins where no line is.
    """
    is_steep = slopes > 0
    least = float((-offsets[is_steep] / slopes[is_steep]).max(initial=least))
    corners = [least]
    at = least
    line = int(np.lexsort((slopes, offsets + slopes * at))[0])
    while slopes[line] > 0:
        flatter = np.flatnonzero(slopes < slopes[line])
        crossings = (offsets[flatter] - offsets[line]) / (slopes[line] - slopes[flatter])
        # Of lines that cross in one point the flattest goes on.
        nearest = np.lexsort((slopes[flatter], crossings))[0]
        at, line = max(at, float(crossings[nearest])), int(flatter[nearest])
        corners.append(at)
    return [(corner, max(float((offsets + slopes * corner).min()), 0.0)) for corner in dict.fromkeys(corners)]
