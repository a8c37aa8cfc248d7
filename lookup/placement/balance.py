"""Balances brokers: the least that the most used one can carry, and moves that come near it.

Source: Graham, Bounds on Multiprocessing Timing Anomalies, SIAM Journal on Applied Mathematics 17 (1969), for longest
first; the bounds are the obvious ones.
"""

from __future__ import annotations

import numpy as np

from lookup.placement.problem import TOLERANCE, Bools, Floats, Ints, Problem

__all__ = ["balanced", "least_imbalance"]

#: Halvings of the interval in which a bound lies.
_HALVINGS = 50
#: Idlest brokers that are tried for a bundle of the busiest one.
_IDLEST = 8
#: Bundles of a broker of which all pairs are looked at.
_MOST_PAIRED = 64
#: Loads of brokers after two moves that are looked at together: of problems with more, not all two are tried.
_MOST_LOADS = 1_000_000
#: Moves and exchanges for each bundle, at most.
_TURNS = 4
#: Levels that are tried for a placement within budgets.
_LEVELS = 10


def least_imbalance(problem: Problem) -> float:
    """Return a number that the imbalance of no placement within the limits is below; infinite if there is none."""
    mean = problem.mean
    if problem.admitted is None:
        widest = np.full(len(problem.weights), problem.capacities.max())
    else:
        widest = np.where(problem.admitted, problem.capacities, 0.0).max(axis=1)
    lowest = max(1.0, float((problem.weights / widest).max()) / mean, _pairs(problem), _islands(problem))
    burdens = _Burdens(problem)
    highest = max(lowest, problem.imbalance(problem.owners)) if (problem.owners >= 0).any() else lowest
    if burdens.are_within(lowest):
        return lowest
    if not burdens.are_within(highest):
        return np.inf
    for _ in range(_HALVINGS):
        middle = (lowest + highest) / 2
        if burdens.are_within(middle):
            highest = middle
        else:
            lowest = middle
    return lowest


def _pairs(problem: Problem) -> float:
    """Return a bound for brokers of one capacity: of more bundles than brokers, two of the heaviest share one."""
    brokers = len(problem.capacities)
    if np.ptp(problem.capacities) or len(problem.weights) <= brokers:
        return 0.0
    heaviest = -np.sort(-problem.weights)
    # Of k x brokers + 1 bundles, k + 1 are on one broker, and none is lighter than the last of them.
    shared = np.arange(1, (len(heaviest) - 1) // brokers + 1)
    return float(((shared + 1) * heaviest[shared * brokers]).max()) / (float(problem.capacities[0]) * problem.mean)


def _islands(problem: Problem) -> float:
    """Return a bound by groups of brokers: bundles that only these may have share their capacity."""
    if problem.admitted is None:
        return 0.0
    # Eight brokers to a byte: rows are compared byte by byte.
    packed = np.packbits(problem.admitted, axis=1)
    _, firsts, of_bundle = np.unique(packed, axis=0, return_index=True, return_inverse=True)
    patterns = problem.admitted[firsts]
    weight = np.bincount(of_bundle.ravel(), problem.weights, len(patterns))
    most = 0.0
    for pattern in patterns:
        inside = ~(patterns & ~pattern).any(axis=1)
        most = max(most, float(weight[inside].sum()) / float(problem.capacities[pattern].sum()))
    return most / problem.mean


class _Burdens:
    """What has to leave its broker for some imbalance."""

    def __init__(self, problem: Problem) -> None:
        self._problem, placed = problem, problem.is_placed
        # Bundles whose broker may not have them.
        unwanted = (problem.owners >= 0) & ~placed
        self._weight, self._moves = float(problem.weights[unwanted].sum()), int(unwanted.sum())
        #: of each broker, the weight of its heaviest bundles, added up: of none, of one, of two, ...
        self._heaviest: list[Floats] = []
        for broker in range(len(problem.capacities)):
            weights = problem.weights[placed & (problem.owners == broker)]
            self._heaviest.append(np.cumsum(np.append(0.0, -np.sort(-weights))))

    def are_within(self, imbalance: float) -> bool:
        """Return whether what must at least move for an imbalance is within the budgets."""
        problem, weight, moves = self._problem, self._weight, self._moves
        allowed = imbalance * problem.mean * problem.capacities * (1 + TOLERANCE)
        for column, most in zip(self._heaviest, allowed.tolist(), strict=True):
            excess = float(column[-1]) - most
            if excess > 0:
                weight += excess
                moves += int(np.searchsorted(column, excess))
        return weight <= problem.max_moved_weight * (1 + TOLERANCE) and moves <= problem.max_moves


def balanced(problem: Problem, bound: float) -> Ints | None:
    """Return a placement within the limits of moves that is as balanced as moves and exchanges make it.

    Args:
        bound: an imbalance at which nothing is left to improve.

    Returns:
        The broker of each bundle, shape (n_bundles,); None if what has to move is more than the limits allow.
    """
    start = np.where(problem.is_placed, problem.owners, -1)
    found = [_Balancing(problem, start).improved(bound)]
    if np.isinf(problem.max_moved_weight) and np.isinf(problem.max_moves):
        found.append(_Balancing(problem, np.full(len(start), -1, dtype=np.int64)).improved(bound))
    else:
        found += _levelled(problem, start, bound, problem.imbalance(found[0]))
    return min(filter(problem.is_kept_by, found), key=problem.imbalance, default=None)


def _levelled(problem: Problem, start: Ints, low: float, high: float) -> list[Ints]:
    """Return placements that spend their moves on brokers above a level only, for lower and lower levels."""
    found = []
    for _ in range(_LEVELS):
        level = (low + high) / 2
        balancing = _Balancing(problem, start)
        if balancing.brought_below(level * problem.mean):
            high = level
            found.append(balancing.improved(low))
        else:
            low = level
    return found


class _Balancing:
    """A placement on its way to balance."""

    def __init__(self, problem: Problem, owners: Ints) -> None:
        self._problem, self._owners = problem, owners.copy()
        self._loads = problem.loads(owners)
        homeless = np.flatnonzero(owners < 0)
        # heaviest first, each where it makes the least use
        for bundle in homeless[np.argsort(-problem.weights[homeless], kind="stable")].tolist():
            use = (self._loads + problem.weights[bundle]) / problem.capacities
            may_have = True if problem.admitted is None else problem.admitted[bundle]
            self._put(bundle, int(np.argmin(np.where(may_have, use, np.inf))))
        moved = problem.moved(self._owners)
        self._weight_left = problem.max_moved_weight - float(problem.weights[moved].sum())
        self._moves_left = problem.max_moves - float(moved.sum())

    def improved(self, bound: float) -> Ints:
        """Move bundles of the busiest broker, or exchange them, until that no longer helps."""
        problem, enough = self._problem, bound * self._problem.mean * (1 + TOLERANCE)
        for _ in range(_TURNS * len(problem.weights)):
            use = self._loads / problem.capacities
            busiest = int(np.argmax(use))
            if use[busiest] <= enough:
                break
            idlest = np.argsort(use, kind="stable")[:_IDLEST]
            if not (
                any(self._relieve(busiest, int(broker)) for broker in idlest)
                or any(self._exchange(busiest, int(broker), most) for most in (1, 2) for broker in idlest)
                or self._move_two(busiest)
            ):
                break
        return self._owners

    def brought_below(self, level: float) -> bool:
        """Move as little as brings every broker's use below a level; return whether that was possible."""
        problem = self._problem
        for _ in range(_TURNS * len(problem.weights)):
            use = self._loads / problem.capacities
            busiest = int(np.argmax(use))
            if use[busiest] <= level * (1 + TOLERANCE):
                return True
            excess = float(self._loads[busiest] - level * problem.capacities[busiest])
            if not any(
                self._unburden(busiest, int(broker), excess, float(level * problem.capacities[broker]))
                for broker in np.argsort(use, kind="stable")[:_IDLEST]
            ):
                return False
        return False

    def _unburden(self, busiest: int, idle: int, excess: float, most: float) -> bool:
        """Move the lightest bundle that frees a broker of its excess, or else the heaviest, where it fits."""
        bundles = self._movable(busiest, idle)
        weights = self._problem.weights[bundles]
        fits = weights <= most - self._loads[idle]
        if not fits.any():
            return False
        is_enough = fits & (weights >= excess * (1 - TOLERANCE))
        best = (
            np.argmin(np.where(is_enough, weights, np.inf))
            if is_enough.any()
            else np.argmax(np.where(fits, weights, -1))
        )
        if not weights[best]:
            return False
        self._move(int(bundles[best]), idle)
        return True

    def _relieve(self, busiest: int, idle: int) -> bool:
        """Move the bundle that makes the busier of two brokers least busy, if one makes it less busy."""
        bundles = self._movable(busiest, idle)
        if not len(bundles):
            return False
        after = self._use_after(busiest, idle, self._problem.weights[bundles])
        best = int(np.argmin(after))
        if after[best] >= self._use(busiest) * (1 - TOLERANCE):
            return False
        self._move(int(bundles[best]), idle)
        return True

    def _exchange(self, busiest: int, idle: int, most: int) -> bool:
        """Exchange bundles of two brokers, up to `most` of each, if that makes the busier one less busy."""
        problem = self._problem
        given, given_weight = self._bunches(self._movable(busiest, idle), most)
        taken, taken_weight = self._bunches(self._movable(idle, busiest), most)
        if not len(given) or not len(taken):
            return False
        order = np.argsort(taken_weight, kind="stable")
        taken, taken_weight = taken[order], taken_weight[order]
        capacities = problem.capacities[[busiest, idle]]
        # the difference that would make both equally busy, which partners on both sides of it come near
        ideal = (self._loads[busiest] * capacities[1] - self._loads[idle] * capacities[0]) / capacities.sum()
        above = np.clip(np.searchsorted(taken_weight, given_weight - ideal), 1, len(taken) - 1 or 1)
        partners = np.stack([above - 1, np.minimum(above, len(taken) - 1)])
        after = self._use_after(busiest, idle, given_weight - taken_weight[partners])
        side, best = divmod(int(np.argmin(after)), len(given))
        if after[side, best] >= self._use(busiest) * (1 - TOLERANCE):
            return False
        leaving, coming = given[best], taken[partners[side, best]]
        both = np.concatenate([leaving[leaving >= 0], coming[coming >= 0]])
        firsts = both[problem.owners[both] == self._owners[both]]
        if float(problem.weights[firsts].sum()) > self._weight_left or len(firsts) > self._moves_left:
            return False
        for bundle in both.tolist():
            self._move(bundle, idle if self._owners[bundle] == busiest else busiest)
        return True

    def _move_two(self, busiest: int) -> bool:
        """Move any two bundles, one of them off the busiest broker, if that makes the busiest one less busy.

        The other may go back to the broker it came from, so that a budget that is used up pays for the one.
        """
        problem, brokers = self._problem, np.arange(len(self._loads))
        if np.count_nonzero(self._owners == busiest) * len(self._owners) * len(brokers) ** 3 > _MOST_LOADS:
            return False
        may_have = (
            np.ones((len(self._owners), len(brokers)), dtype=bool) if problem.admitted is None else problem.admitted
        )
        bundles, targets = np.nonzero(may_have & (brokers != self._owners[:, None]))
        sources, weights = self._owners[bundles], problem.weights[bundles]
        leaving = np.flatnonzero(sources == busiest)
        if not len(leaving):
            return False
        changes = ((targets[:, None] == brokers) - 1.0 * (sources[:, None] == brokers)) * weights[:, None]
        paid = 1.0 * (sources == problem.owners[bundles]) - (targets == problem.owners[bundles])
        after = ((self._loads + changes[leaving, None] + changes) / problem.capacities).max(axis=2)
        after[bundles[leaving, None] == bundles] = np.inf
        after[paid[leaving, None] + paid > self._moves_left] = np.inf
        after[(paid * weights)[leaving, None] + paid * weights > self._weight_left] = np.inf
        one, other = divmod(int(np.argmin(after)), len(bundles))
        if after[one, other] >= self._use(busiest) * (1 - TOLERANCE):
            return False
        for change in (int(leaving[one]), other):
            self._move(int(bundles[change]), int(targets[change]))
        return True

    def _bunches(self, bundles: Ints, most: int) -> tuple[Ints, Floats]:
        """Return bunches of bundles, shape (n_bunches, 2), with -1 for no second, and what each weighs."""
        bunches = np.stack([bundles, np.full(len(bundles), -1)], axis=1)
        if most == 2 and len(bundles) <= _MOST_PAIRED:
            one, other = np.triu_indices(len(bundles), 1)
            bunches = np.concatenate([bunches, np.stack([bundles[one], bundles[other]], axis=1)])
        weights = self._problem.weights[bunches]
        return bunches, weights[:, 0] + np.where(bunches[:, 1] < 0, 0.0, weights[:, 1])

    def _movable(self, source: int, target: int) -> Ints:
        """Return the bundles of a broker that another may have and that the budgets let go, shape (n,)."""
        problem = self._problem
        bundles = np.flatnonzero(self._owners == source)
        if problem.admitted is not None:
            bundles = bundles[problem.admitted[bundles, target]]
        is_first = problem.owners[bundles] == source
        affordable: Bools = (problem.weights[bundles] <= self._weight_left) & (self._moves_left >= 1)
        movable: Ints = bundles[~is_first | affordable]
        return movable

    def _use(self, broker: int) -> float:
        return float(self._loads[broker] / self._problem.capacities[broker])

    def _use_after(self, busiest: int, idle: int, difference: Floats) -> Floats:
        """Return the use of the busier of two brokers after differences of weight went from one to the other."""
        capacities = self._problem.capacities
        left = (self._loads[busiest] - difference) / capacities[busiest]
        busier: Floats = np.maximum(left, (self._loads[idle] + difference) / capacities[idle])
        return busier

    def _put(self, bundle: int, broker: int) -> None:
        self._owners[bundle] = broker
        self._loads[broker] += self._problem.weights[bundle]

    def _move(self, bundle: int, target: int) -> None:
        """Move a bundle; the budgets pay for its first move, and get it back when it returns."""
        problem, source = self._problem, int(self._owners[bundle])
        paid = int(source == problem.owners[bundle]) - int(target == problem.owners[bundle])
        self._weight_left -= paid * float(problem.weights[bundle])
        self._moves_left -= paid
        self._loads[source] -= problem.weights[bundle]
        self._put(bundle, target)
