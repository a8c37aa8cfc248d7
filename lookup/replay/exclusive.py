"""Replays one policy over one cluster under exclusive ownership, tick by tick, by asking the engine where Pulsar would.

Only lookups of bundles without owner reach the engine; all others are hits and are counted by `tally.py`. The result
equals, row for row, a loop that calls `LoadManager.assign` once per lookup.

Source: `design/architecture.md` sections 6.2 and 6.3.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from lookup.engine.booking import Decided, OwnerChange
from lookup.engine.ledger import MICRO
from lookup.engine.policy import Policy
from lookup.replay.bundle_map import BundleMap
from lookup.replay.counted import Counted
from lookup.replay.loads import AtomLoads, BrokerLoads, Demand
from lookup.replay.ordering import DayRows
from lookup.replay.owners import OwnerIntervals
from lookup.replay.plan import ClusterPlan, RunPlan, new_manager
from lookup.replay.requests import RequestMaker
from lookup.replay.tally import CellLedger, ChangeRecord, OwnerTally
from lookup.replay.walk import Registry, Tick, walk_ticks
from lookup.replay.work import WorkDir

__all__ = ["ExclusiveReplay"]

Ints = NDArray[np.int64]


class ExclusiveReplay:
    """One policy, cluster and seed."""

    def __init__(self, cluster: ClusterPlan, run: RunPlan, policy: Policy, *, seed: int, work: WorkDir) -> None:
        timeline, n_brokers = cluster.timeline, len(cluster.timeline.roster)
        self.manager = new_manager(cluster, run, policy, seed)
        self.decisions: list[Decided] = []
        self.intervals = OwnerIntervals(timeline.roster)
        self._cluster, self._run, self._work = cluster, run, work
        self._bundles = BundleMap(cluster.words.atoms, timeline.initial_splits)
        self._owners = np.full(cluster.words.atoms.count, -1, dtype=np.int32)
        self._is_free = cluster.pinned == -1
        self._requests = RequestMaker(cluster, self._bundles)
        self._registry = Registry(timeline.roster)
        self._loads = AtomLoads(cluster, run, work)
        self._brokers = BrokerLoads(cluster, self._loads, self._bundles, work)
        self._usage = np.full(n_brokers, np.nan)
        #: usage means something, and is counted in every tick
        self._has_usage = cluster.assumed_capacity is None
        #: a grid instant whose figures nobody has asked for: when, each atom's owner then, and the demand before
        self._instant: tuple[int, NDArray[np.int32], Demand] | None = None
        self._spans: list[tuple[DayRows, int, int]] = []
        self._tally, self._cells = OwnerTally(cluster, run), CellLedger(run, n_brokers)
        self._changes: list[ChangeRecord] = []
        self._scored_from = int(timeline.bounds[0]) + run.warmup_us

    def run(self) -> Counted:
        """Walk all ticks; return what was counted."""
        for tick in walk_ticks(self._cluster, self._run, self._work):
            self._events(tick)
            if tick.is_grid:
                self._grid_instant(tick)
            is_scored = tick.start_us >= self._scored_from
            if is_scored:
                self._tally.begin(tick.rows, tick.start_us, self._registry.epoch)
            late = self._lookups(tick)
            self._loads.add(tick.rows, tick.low, tick.high)
            self._spans.append((tick.rows, tick.low, tick.high))
            if is_scored:
                self._cells.add(tick.start_us, tick.end_us, self._registry.registered, self._usage)
                self._tally.end(tick.low, tick.high, late)
            if tick.is_last_of_day:
                self._tally.flush(tick.rows)
            self.decisions.extend(self.manager.take_decisions())
        return self._counted()

    def _events(self, tick: Tick) -> None:
        events = tick.events
        if events.registry is not None or events.splits or events.unloads:
            self._settle_load()
        self.manager.begin_tick(tick.start_us)
        if events.registry is not None:
            self._registry.apply(events.registry)
            self.manager.set_registry(*events.registry)
            self._follow(tick)
            self._pin(tick)
        for parent, children in events.splits:
            if self._bundles.split(parent, children):
                self.manager.split(parent, children)
                self.intervals.split(parent, children, tick.start_us)
        for bundle in events.unloads:
            if self.manager.ownership.owner(bundle) is not None:
                self.manager.unload(bundle)
                self._follow(tick)
        if tick.number == self._cluster.timeline.restore_tick:
            owners = self._cluster.timeline.owners
            self.manager.restore({bundle: broker for bundle, broker in owners.items() if bundle in self._bundles})
            self._follow(tick)

    def _grid_instant(self, tick: Tick) -> None:
        self._loads.close_cell(tick.start_us)
        demand = Demand(self._cluster, self._spans, self._run.tick_us / MICRO)
        self._instant, self._spans = (tick.start_us, self._owners.copy(), demand), []
        if self._has_usage or self.manager.policy.shedder is not None:
            self._settle_load()
        if self.manager.policy.shedder is not None:
            self.manager.shed()
            self._follow(tick)

    def _settle_load(self) -> None:
        """Put the figures of the last grid instant into the view, if they are not there: few ticks need any."""
        if self._instant is not None:
            (now_us, owners, demand), self._instant = self._instant, None
            figures = self._brokers.at(
                now_us,
                owners,
                capacity=self.manager.capacity,
                registered=self._registry.registered,
                demand=demand,
            )
            self._usage = figures.usage
            self.manager.set_load(figures)

    def _lookups(self, tick: Tick) -> Ints:
        """Let the engine decide where a bundle has no owner; return the rows that came too early to be answered."""
        if tick.high == tick.low:
            return np.empty(0, np.int64)
        atoms = tick.rows.column("atom", slice(tick.low, tick.high))
        unowned = (self._owners[atoms] < 0) & self._is_free[atoms]
        if not unowned.any():
            return np.empty(0, np.int64)
        self._settle_load()
        before = self._owners.copy()
        may_assign = unowned & (tick.rows.column("read_only", slice(tick.low, tick.high)) == 0)
        made = np.full(len(before), -1, dtype=np.int64)
        for row in (tick.low + np.flatnonzero(may_assign)).tolist():
            atom = int(atoms[row - tick.low])
            if self._owners[atom] < 0:
                request = self._requests.request(tick.rows, row)
                self.manager.select(request, int(tick.rows.ts[row]))
                self._follow(tick)
                made[self._bundles.atoms_of(request.bundle)] = row
        gained = (before < 0) & (self._owners >= 0)
        rows = np.arange(tick.low, tick.high)
        early: Ints = rows[gained[atoms] & (made[atoms] > rows)]
        return early

    def _follow(self, tick: Tick) -> None:
        """Note the changes of ownership the manager made."""
        for change in self.manager.take_changes():
            if change.bundle not in self._bundles:
                continue
            atoms = self._bundles.atoms_of(change.bundle)
            owner = -1 if change.broker is None else change.broker
            self._owners[atoms] = owner
            self._tally.set_owner(atoms, owner, tick.rows)
            self.intervals.note(change)
            if change.broker is not None and tick.start_us >= self._scored_from:
                self._changes.append(self._record(change, change.broker, atoms))

    def _record(self, change: OwnerChange, broker: int, atoms: slice) -> ChangeRecord:
        return ChangeRecord(
            unit=int(self._cluster.units[1][atoms.start]),
            ts_us=change.ts_us,
            source=-1 if change.source is None else change.source,
            broker=broker,
            cause=change.cause,
            decided=change.decided,
            weight=self._loads.weight_of(atoms),
        )

    def _pin(self, tick: Tick) -> None:
        """Give the bundles of heartbeat and SLA namespaces to the broker in their name while it is registered."""
        for atom in np.flatnonzero(~self._is_free).tolist():
            number = int(self._cluster.pinned[atom])
            owner = number if number >= 0 and self._registry.registered[number] else -1
            self._owners[atom] = owner
            self._tally.set_owner(slice(atom, atom + 1), owner, tick.rows)

    def _counted(self) -> Counted:
        return Counted(
            cluster=self._cluster,
            run=self._run,
            rosters=self._registry.rosters,
            groups=self._tally.groups,
            cells=self._cells,
            changes=self._changes,
            logged=self._tally.logged,
            agreed=self._tally.agreed,
            has_usage=self._has_usage,
        )
