"""The shedder `rebalance`, which solves the placement problem for the current load and makes worthwhile moves."""

from __future__ import annotations

import math
from collections.abc import Collection, Generator, Mapping, MutableMapping, Sequence
from dataclasses import dataclass
from typing import Annotated, Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from lookup.hooks import Ge, Gt, Le
from lookup.model import ClusterView, CycleLabel, CycleOutcome, CycleReason, Probe, Reason, Ruling, Shortfall, Unload
from lookup_policies._placing import ROUND_OFF, able, capacities_of, sum_loads
from lookup_policies._planning import Placement, Problem
from lookup_policies._unloading import no_figures, outcome_of

__all__ = ["Rebalance"]

Bools = NDArray[np.bool_]
Floats = NDArray[np.float64]
Ints = NDArray[np.int64]

#: Number of times that a cycle plans again because the engine rejects its plan.
_ATTEMPTS = 4
#: A broker that refuses so many bundles and takes none is taken to refuse all.
_ENOUGH_REFUSALS = 3

_Proposals = Generator[Unload | Probe, Ruling, int]


@dataclass(frozen=True)
class Rebalance:
    """Move bundles to their brokers in the best placement, with as few moves as possible.

    The best placement has no broker above `max_imbalance` and as much load near its clients as possible, where
    each unit of load that moves costs `move_price`. The load that moves only for balance is as small as
    possible. If balance takes more than the budget of a cycle, `max_moves` and `max_share`, the fullest brokers
    come first, and the next cycle continues. Every unload names its destination. Moves that the engine rejects
    are left out, and the rest is planned again.

    Loads are those of bundles, averaged over `history` cycles, so a single busy minute does not cause moves,
    and a relieved broker does not look full any longer. Other load of brokers, such as other processes, stays.
    Unknown capacities are equal, or the mean of the known ones.

    Load is near on brokers whose lookup property has the value that its clients send for `near`. For a bundle,
    only the lookups with a value count.

    Match -> Result -> Reason:
        * no broker with a report, a single one, no load -> nothing -> `no-brokers`, `no-load-data`
        * nothing to gain, or not `hit_count` times in a row before -> nothing -> `hit-count`
        * the best placement within the budget gains less than `min_gain` -> nothing -> `too-little`
        * the engine rejects the moves that would gain more -> nothing -> `no-bundles`
        * the fullest broker is above `max_imbalance` + `min_gain` -> unloads -> `overloaded`
        * else load comes near -> unloads -> `locality`

    Memory, with lists by bundle, where every mean has the number of its cycles:

        {"bundles": [bundle], "counts": [cycles], "weights": [load], "values": [value], "origins": [[load by value]],
         "besides": {broker: [cycles, load]}, "moved_us": {bundle: time}, "hits": cycles in a row}
    """

    name: ClassVar[str] = "rebalance"

    #: client property, as `rack`, by which bundles are brought near their clients, or None to aim only for balance
    near: str | None = None
    #: load / capacity of the fullest broker over that of the cluster that is even enough
    max_imbalance: Annotated[float, Ge(1)] = 1.2
    #: smallest improvement that justifies moves, of the imbalance or of the share of load that is near
    min_gain: Annotated[float, Ge(0)] = 0.02
    #: load that has to come near for each unit of load that moves, as a ratio. Every move also counts as a mean bundle
    move_price: Annotated[float, Ge(0)] = 0.4
    #: most bundles of one cycle
    max_moves: Annotated[int, Ge(1)] = 50
    #: greatest load of one cycle, as a share of the cluster's. For balance a single bundle may exceed it
    max_share: Annotated[float, Gt(0), Le(1)] = 0.1
    #: seconds for which a bundle that was moved stays
    rest_s: Annotated[int, Ge(0)] = 3600
    #: cycles over which loads are averaged
    history: Annotated[int, Ge(1)] = 30
    #: cycles in a row with something to gain after which the next one acts
    hit_count: Annotated[int, Ge(0)] = 3

    def __post_init__(self) -> None:
        if self.near == "":
            raise ValueError("near is empty; name a client property, such as rack, or leave it out")

    @property
    def reads(self) -> frozenset[str]:
        """The load, with its origins if they matter, owners and the time."""
        origins = frozenset[str]() if self.near is None else frozenset({"view.load.origins"})
        return origins | {"view.load", "view.now", "view.ownership"}

    def propose(
        self, view: ClusterView, memory: MutableMapping[str, Any]
    ) -> Generator[Unload | Probe, Ruling, CycleOutcome]:
        """Propose the moves that lead to the best placement within the budget."""
        past = _Past(memory, self.history)
        past.add(view, self.near)
        numbers = np.flatnonzero(_find_reporting(view)).tolist()
        if not numbers:
            return no_figures(view)
        if len(numbers) == 1:
            return CycleOutcome(CycleLabel.SKIP, CycleReason.NO_BROKERS)
        moved: Mapping[str, int] = memory.get("moved_us", {})
        resting = {name: us for name, us in sorted(moved.items()) if view.now_us - us < self.rest_s * 1_000_000}
        problem, names = _problem_of(self, view, past, resting)
        if not problem.weights.sum() > 0:
            return CycleOutcome(CycleLabel.SKIP, CycleReason.NO_LOAD_DATA)
        filled, distant = problem.relative_loads(problem.owners), problem.distant()
        is_over = filled.max() - self.max_imbalance >= self.min_gain
        hits = memory.get("hits", 0) + 1 if is_over or distant >= self.min_gain else 0
        accepted, idle = 0, CycleReason.HIT_COUNT
        reason = CycleReason.OVERLOADED if is_over else CycleReason.LOCALITY
        short: Shortfall | None = Shortfall(hits, "cycles in a row with something to gain", self.hit_count + 1)
        if not hits and self.near is None:
            most = float(filled.max())
            short = Shortfall(most, "times the mean on the fullest broker", self.max_imbalance + self.min_gain)
        elif not hits:
            short = Shortfall(100.0 * distant, "% of the load to bring near", 100.0 * self.min_gain)
        elif hits > self.hit_count:
            cycle = _RebalanceCycle(self, problem, names, [view.brokers[number].id for number in numbers], reason)
            accepted = yield from cycle.proposals()
            resting.update(dict.fromkeys(cycle.moved, view.now_us))
            idle, short = CycleReason.TOO_LITTLE, cycle.short
            if cycle.refused:
                idle, short = CycleReason.NO_BUNDLES, None
            # Brokers that are still too full are handled in the next cycle. Otherwise the count starts from zero.
            hits = hits if accepted and is_over else 0
        memory.update(hits=hits, moved_us=resting)
        usage = dict(zip(numbers, (filled * problem.mean).tolist(), strict=True))
        ahead = dict(zip(numbers, (filled - self.max_imbalance).tolist(), strict=True))
        over = {number: by for number, by in ahead.items() if by > 0.0}
        return outcome_of(usage, accepted, over=over, reason=reason, idle=idle, acting=numbers, short=short)


def _find_reporting(view: ClusterView) -> Bools:
    """Find the brokers that can give and take, shape (n_brokers,)."""
    return able(view) & ~np.isnan(view.load.throughput)


class _Past:
    """The mean loads of bundles, the other load of brokers and the origins of load, kept in a part's memory.

    A mean is that of the cycles since it began, in the long run of at most the last `history`. A bundle without
    owner is forgotten in as many cycles as it was known.
    """

    def __init__(self, memory: MutableMapping[str, Any], history: int) -> None:
        self._memory, self._history = memory, history
        self.names: list[str] = list(memory.get("bundles", []))
        self.values: list[str] = list(memory.get("values", []))
        self._counts = np.array(memory.get("counts", []), np.int64)
        self.weights = np.array(memory.get("weights", []), np.float64)
        #: weight by value of the clients' property, shape (n_bundles, n_values)
        self.origins = np.array(memory.get("origins", []), np.float64).reshape(len(self.names), len(self.values))
        #: number of each bundle's owner, -1 for none
        self.owners = np.empty(0, np.int64)
        #: by broker number, the load other than bundles
        self.besides = np.empty(0)

    def add(self, view: ClusterView, near: str | None) -> None:
        """Add the figures of one cycle."""
        now: dict[str, float] = {}
        of_bundles = np.zeros(len(view.brokers))
        reporting = _find_reporting(view)
        for number in np.flatnonzero(reporting).tolist():
            loads = {bundle: load for bundle, load, _ in view.load.loaded_bundles(number) if load < math.inf}
            now |= loads
            of_bundles[number] = sum(loads.values())
        origins = {} if near is None else view.load.origins.get(near, {})
        values = set[str]().union(*origins.values())
        self._grow(sorted(now.keys() - set(self.names)), sorted(values - set(self.values)))
        owners = map(view.ownership.owner, self.names)
        self.owners = np.array([-1 if owner is None else owner for owner in owners], np.int64)
        is_owned = self.owners >= 0
        # A broker without report does not show its bundles, and a bundle without owner does not have load to report.
        is_seen = is_owned & reporting[self.owners]
        self._counts += np.where(is_seen, 1, np.where(is_owned, 0, -1))
        np.minimum(self._counts, self._history, out=self._counts)
        share = np.where(is_seen, 1.0 / np.maximum(1, self._counts), 0.0)
        self.weights += share * (np.array([now.get(name, 0.0) for name in self.names]) - self.weights)
        by_name = [origins.get(name, {}) for name in self.names]
        for column, value in enumerate(self.values):
            amounts = np.array([origin.get(value, 0.0) for origin in by_name])
            self.origins[:, column] += share * (amounts - self.origins[:, column])
        self._average_other_load(view, of_bundles)
        self._keep()

    def _grow(self, names: Sequence[str], values: Sequence[str]) -> None:
        self.names += names
        self.values += values
        self.origins = np.pad(self.origins, ((0, len(names)), (0, len(values))))
        self._counts = np.pad(self._counts, (0, len(names)))
        self.weights = np.pad(self.weights, (0, len(names)))

    def _average_other_load(self, view: ClusterView, of_bundles: Floats) -> None:
        """Average the load that brokers report beyond their bundles, such as other processes and system topics."""
        whole = sum_loads(view)
        # Reports of a log whose bundles weigh lookups are of another unit.
        is_known = np.isfinite(whole) & (view.load.source == "simulated" or view.load.bundle_unit == "bytes/s")
        beyond = np.where(is_known, np.maximum(0.0, whole - of_bundles), 0.0)
        # Of rounding something is left.
        beyond[beyond <= ROUND_OFF * np.nan_to_num(whole)] = 0.0
        means: MutableMapping[str, list[float]] = self._memory.setdefault("besides", {})
        self.besides = np.zeros(len(beyond))
        for number in np.flatnonzero(is_known).tolist():
            broker, now = view.brokers[number].id, float(beyond[number])
            count, mean = means.get(broker, (0, 0.0))
            count = min(count + 1, self._history)
            means[broker] = [count, mean + (now - mean) / count]
            # Smoothed or late usage contains moved bundles for a while, but the mean hardly does.
            self.besides[number] = min(now, means[broker][1])

    def _keep(self) -> None:
        rows = np.flatnonzero(self._counts > 0)
        self.names = [self.names[row] for row in rows.tolist()]
        self._counts, self.weights, self.origins = self._counts[rows], self.weights[rows], self.origins[rows]
        self.owners = self.owners[rows]
        self._memory.update(
            bundles=self.names,
            values=self.values,
            counts=self._counts.tolist(),
            weights=self.weights.tolist(),
            origins=self.origins.tolist(),
        )


def _problem_of(part: Rebalance, view: ClusterView, past: _Past, resting: Collection[str]) -> tuple[Problem, list[str]]:
    """Build the problem of the reporting brokers, by their order, and list the names of the bundles that may move.

    The other load of a broker is treated as a bundle that stays. Such bundles are the last, and have no name.
    """
    numbers = np.flatnonzero(_find_reporting(view))
    place = np.full(len(view.brokers), -1)
    place[numbers] = np.arange(len(numbers))
    rows = np.flatnonzero((past.owners >= 0) & (past.weights > ROUND_OFF**2 * past.weights.sum()))
    rows = rows[place[past.owners[rows]] >= 0]
    fixed = np.flatnonzero(past.besides[numbers] > 0.0)
    names = [past.names[row] for row in rows.tolist()]
    weights = np.concatenate([past.weights[rows], past.besides[numbers][fixed]])
    near = np.zeros((len(weights), len(numbers)))
    if part.near is not None and past.values:
        origins = past.origins[rows]
        totals = origins.sum(axis=1, keepdims=True)
        shares = np.divide(origins, totals, out=np.zeros_like(origins), where=totals > 0.0)
        for broker, label in enumerate(view.brokers.labels(part.near)[numbers]):
            if label in past.values:
                near[: len(rows), broker] = shares[:, past.values.index(label)]
    # Clients reconnect however little they send, so a move costs its load and a mean bundle's.
    mean = weights[: len(rows)].mean() if len(rows) else 0.0
    problem = Problem(
        weights=weights,
        capacities=capacities_of(view)[numbers],
        owners=np.concatenate([place[past.owners[rows]], fixed]),
        near=near,
        admitted=np.ones(near.shape, np.bool_),
        costs=max(part.move_price, ROUND_OFF) * (weights + mean),
        max_imbalance=part.max_imbalance,
        max_moves=part.max_moves,
        max_weight=part.max_share * float(weights.sum()),
    )
    problem.pin([row for row in range(len(weights)) if row >= len(names) or names[row] in resting])
    return problem, names


class _RebalanceCycle:
    """One cycle that acts, which plans moves, proposes them, and plans again without the rejected ones."""

    def __init__(
        self, part: Rebalance, problem: Problem, names: Sequence[str], ids: Sequence[str], reason: CycleReason
    ) -> None:
        self._part, self._problem, self._names, self._ids, self._reason = part, problem, names, ids, reason
        #: bundles that were moved
        self.moved: list[str] = []
        #: whether the engine refused something
        self.refused = False
        #: the shortfall of the last plan
        self.short: Shortfall | None = None
        self._refusals, self._takes = np.zeros(len(ids), np.int64), np.zeros(len(ids), np.bool_)

    def proposals(self) -> _Proposals:
        """Propose the moves, and return the number of accepted ones."""
        problem = self._problem
        for attempt in range(_ATTEMPTS):
            plan = Placement(problem)
            plan.even_out()
            plan.bring_near()
            owners, allowed = plan.owners, problem.owners.copy()
            if not self._is_worth(owners):
                return 0
            for row in self._list_moves(owners):
                ruling = yield Probe(self._build_unload(row, owners[row]))
                if ruling.accepted:
                    allowed[row] = owners[row]
                    self._takes[owners[row]] = True
                else:
                    self.refused = True
                    yield from self._learn(row, owners[row], ruling)
            if (allowed == owners).all() or (attempt + 1 == _ATTEMPTS and self._is_worth(allowed)):
                for row in self._list_moves(allowed):
                    if (yield self._build_unload(row, allowed[row])).accepted:
                        self.moved.append(self._names[row])
                return len(self.moved)
        return 0

    def _list_moves(self, owners: Ints) -> list[int]:
        # In an order that depends on nothing else, the heaviest first.
        moves = np.flatnonzero(owners != self._problem.owners).tolist()
        return sorted(moves, key=lambda row: (-self._problem.weights[row], self._names[row]))

    def _build_unload(self, row: int, destination: int) -> Unload:
        source = self._ids[self._problem.owners[row]]
        return Unload(self._names[row], source, self._ids[destination], reason=self._reason)

    def _learn(self, row: int, refusing: int, ruling: Ruling) -> Generator[Unload | Probe, Ruling, None]:
        """Find out where a bundle may go that one broker was refused, so that the next plan knows."""
        problem = self._problem
        for place in [refusing, *np.flatnonzero(problem.admitted[row]).tolist()]:
            if place == problem.owners[row] or not problem.admitted[row, place]:
                continue
            if place != refusing:
                ruling = yield Probe(self._build_unload(row, place))
            if ruling.accepted:
                self._takes[place] = True
            elif ruling.reason is Reason.DESTINATION_FILTERED:
                problem.admitted[row, place] = False
                self._refusals[place] += 1
                if self._refusals[place] >= _ENOUGH_REFUSALS and not self._takes[place]:
                    problem.admitted[:, place] = problem.owners == place
            else:
                # The bundle may not leave its owner, wherever it went.
                problem.pin([row])
                return

    def _is_worth(self, owners: Ints) -> bool:
        limit, least, problem = self._part.max_imbalance, self._part.min_gain, self._problem
        before, after = (
            np.sort(np.maximum(limit, problem.relative_loads(of)))[::-1] for of in (problem.owners, owners)
        )
        # From the fullest broker, or from the first in order that anything relieves.
        relief = next((each for each in (before - after).tolist() if abs(each) > ROUND_OFF), 0.0)
        nearer = problem.nearness(owners)
        self.short = Shortfall(100.0 * nearer, "% of the load brought near", 100.0 * least)
        if self._reason is CycleReason.OVERLOADED:
            self.short = Shortfall(relief, "of the mean taken from the fullest broker", least)
        return relief >= 0.0 and max(relief, nearer) > 0.0 and max(relief, nearer) >= least
