"""Replays one policy over one cluster under exclusive ownership, tick by tick, by asking the engine where Pulsar would.

Only lookups of bundles without owner reach the engine; all others are hits and are counted by `tally.py`. The result
equals, row for row, a loop that calls `LoadManager.assign` once per lookup.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from lookup.engine.ballots import Decided
from lookup.engine.ledger import MICRO
from lookup.engine.ownership import OwnerChange
from lookup.engine.policy import Policy
from lookup.replay.atoms import BundleMap
from lookup.replay.cells import CellLedger
from lookup.replay.counted import Counted
from lookup.replay.counts import occurring
from lookup.replay.days import DayRows
from lookup.replay.loads import AtomLoads, BrokerLoads, Demand
from lookup.replay.plan import ClusterPlan, RunPlan, new_manager
from lookup.replay.published import Publications
from lookup.replay.records import Cycle, OwnerInterval, OwnerIntervals
from lookup.replay.requests import RequestMaker
from lookup.replay.tally import ChangeRecord, OwnerTally
from lookup.replay.walk import Registry, Tick
from lookup.replay.work import WorkDir

__all__ = ["ExclusiveReplay"]

#: Before every instant of a log, which may begin before 1970.
_EVER = np.iinfo(np.int64).min


class ExclusiveReplay:
    """One policy, cluster and seed."""

    def __init__(self, cluster: ClusterPlan, run: RunPlan, policy: Policy, *, seed: int, work: WorkDir) -> None:
        timeline, n_brokers = cluster.timeline, len(cluster.timeline.roster)
        self.manager = new_manager(cluster, run, policy, seed)
        self.decisions: list[Decided] = []
        self.intervals = OwnerIntervals(timeline.roster)
        #: what came of every cycle of the policy's shedder
        self.cycles: list[Cycle] = []
        self._cluster, self._run = cluster, run
        self._bundles = BundleMap(cluster.words.atoms, timeline.initial_splits)
        self._owners = np.full(cluster.words.atoms.count, -1, dtype=np.int32)
        self._is_free = cluster.pinned == -1
        #: whether a lookup of the atom makes the policy choose, shape (n_atoms,), but not before the other says, µs
        self._is_open = self._is_free.copy()
        self._opens_us = np.full(len(self._owners), _EVER, dtype=np.int64)
        #: no atom opens after that
        self._last_opening_us = int(_EVER)
        self._requests = RequestMaker(cluster, self._bundles)
        self._registry = Registry(timeline.roster)
        self._loads = AtomLoads(cluster, run, work)
        self._brokers = BrokerLoads(cluster, self._loads, self._bundles, work)
        self._reports = Publications(cluster, run, policy)
        self._usage = np.full(n_brokers, np.nan)
        #: usage means something, and is counted in every tick
        self._has_usage = cluster.assumed_capacity is None
        #: a decision may ask for load; every grid instant's load is wanted, whether one asks or not
        self._sees_load = "view.load" in policy.reads
        self._settles_at_once = self._has_usage or self._reports.is_kept or policy.shedder is not None
        #: a grid instant whose figures nobody has asked for: when, each atom's owner then, and the demand before
        self._instant: tuple[int, NDArray[np.int32], Demand] | None = None
        self._spans: list[tuple[DayRows, int, int]] = []
        self._cells = CellLedger(run, n_brokers)
        self._tally = OwnerTally(cluster, run, self._cells)
        self._changes: list[ChangeRecord] = []
        #: number of the event that took a bundle from its last owner, by bundle; -1 if the policy's shedder did
        self._taken_by: dict[str, int] = {}
        self._tick_number = 0
        #: splits that wait for a hand-over to end; how many there were, and how many unloads a hand-over stood against
        self._late: list[tuple[str, tuple[str, ...]]] = []
        self.late_splits = self.refused_unloads = 0
        self._scored_from = int(timeline.bounds[0]) + run.warmup_us
        #: whether the current tick counts
        self._is_scored = False

    def day(self, ticks: Sequence[Tick]) -> None:
        """Replay the ticks of one day."""
        for tick in ticks:
            self._tick(tick)
        self._tally.end_day(ticks[-1].rows)

    def _tick(self, tick: Tick) -> None:
        self._tick_number = tick.number
        self._is_scored = tick.start_us >= self._scored_from
        self._events(tick)
        if tick.is_grid:
            self._grid_instant(tick)
        if self._is_scored:
            self._tally.begin(tick.rows, tick.start_us, self._registry.epoch)
        self._lookups(tick)
        self._loads.add(tick.rows, tick.low, tick.high)
        self._spans.append((tick.rows, tick.low, tick.high))
        if self._is_scored:
            usage = self._usage if self._has_usage else None
            self._cells.add(tick.start_us, tick.end_us, self._registry.registered, usage)
            self._tally.end(tick.low, tick.high)
        self.decisions.extend(self.manager.take_decisions())

    def _events(self, tick: Tick) -> None:
        events = tick.events
        if events.registry is not None or events.splits or events.unloads or self._late:
            self._settle_load()
        self.manager.begin_tick(tick.start_us)
        if events.registry is not None:
            self._registry.apply(events.registry)
            self.manager.set_registry(*events.registry)
            self._reports.leave(~self._registry.registered, tick.start_us)
            self._follow(tick.low)
            self._pin(tick.low)
        if events.splits or self._late:
            self._split(tick)
        for bundle in events.unloads:
            if self.manager.in_flight(bundle) is not None:
                self.refused_unloads += 1
            elif self.manager.ownership.owner(bundle) is not None:
                self.manager.unload(bundle)
                self._follow(tick.low)
        if tick.number == self._cluster.timeline.restore_tick:
            owners = self._cluster.timeline.owners
            self.manager.restore({bundle: broker for bundle, broker in owners.items() if bundle in self._bundles})
            self._follow(tick.low)

    def _split(self, tick: Tick) -> None:
        """Split what the log says; what is in flight is split at the start of the first tick that finds it settled."""
        n_late, due, self._late = len(self._late), [*self._late, *tick.events.splits], []
        unborn: set[str] = set()
        for place, (parent, children) in enumerate(due):
            if parent in unborn or self.manager.in_flight(parent) is not None:
                self._late.append((parent, children))
                unborn.update(children)
                self.late_splits += place >= n_late
            elif self._bundles.split(parent, children):
                self._divide(parent, children, tick)

    def _divide(self, parent: str, children: Sequence[str], tick: Tick) -> None:
        begun = self.manager.split(parent, children)
        if parent in self._taken_by:
            self._taken_by.update(dict.fromkeys(children, self._taken_by[parent]))
        self.intervals.split(parent, children, tick.start_us, begun)
        if begun is not None:
            for child in filter(self._bundles.__contains__, children):
                self._tally.transits.begin(self._bundles.atoms_of(child), begun, tick.low)

    def _grid_instant(self, tick: Tick) -> None:
        self._loads.close_cell(tick.start_us)
        if self._sees_load or self._settles_at_once:
            demand = Demand(self._cluster, self._spans, self._run.tick_us / MICRO)
            self._instant = tick.start_us, self._owners.copy(), demand
        self._spans = []
        if self._settles_at_once:
            self._settle_load()
        report = self.manager.shed()
        if report is not None:
            self.cycles.append(Cycle(tick.start_us, report))
            self._follow(tick.low)

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
            self.manager.set_load(self._reports.shown(figures, self.manager.ownership.bundles(), now_us))

    def _lookups(self, tick: Tick) -> None:
        """Let the engine decide where a bundle has no owner."""
        if tick.low == tick.high:
            return
        span = slice(tick.low, tick.high)
        atoms = tick.rows.column("atom", span)
        met = tick.rows.once(("atoms", tick.low, tick.high), lambda: occurring(atoms))
        if not np.count_nonzero(self._is_open[met]):
            return
        is_open = self._is_open[atoms]
        if self._last_opening_us > tick.start_us:
            is_open &= tick.rows.ts[span] >= self._opens_us[atoms]
        if not is_open.any():
            return
        self._settle_load()
        may_assign = is_open & (tick.rows.column("read_only", span) == 0)
        for place in np.flatnonzero(may_assign).tolist():
            if self._is_open[atoms[place]]:
                row = tick.low + place
                self.manager.select(self._requests.request(tick.rows, row), int(tick.rows.ts[row]))
                self._follow(row)

    def _follow(self, row: int) -> None:
        """Note the changes of ownership the manager made, which hold from a row of the day on."""
        for change in self.manager.take_changes():
            if change.bundle not in self._bundles:
                continue
            atoms = self._bundles.atoms_of(change.bundle)
            had_owner = self._owners[atoms.start] >= 0
            self._set_owner(atoms, -1 if change.broker is None else change.broker, row)
            self.intervals.note(change)
            # A release that is cut short takes the bundle from no broker: what began it did.
            if change.broker is None and had_owner:
                self._taken_by[change.bundle] = self._event_of(change)
            if self._run.handover_us:
                self._hand_over(change, atoms, row)
            if change.broker is not None and self._is_scored:
                self._changes.append(self._record(change, change.broker, atoms))

    def _hand_over(self, change: OwnerChange, atoms: slice, row: int) -> None:
        """Note what a bundle goes through from a row of the day on; what it went through has ended."""
        self._tally.transits.end(atoms, change.ts_us)
        self._opens_us[atoms] = _EVER
        if change.hand_over is not None:
            self._tally.transits.begin(atoms, change.hand_over, row)
            if change.broker is None:
                self._opens_us[atoms] = change.hand_over.until_us
                self._last_opening_us = max(self._last_opening_us, change.hand_over.until_us)

    def _set_owner(self, atoms: slice, owner: int, row: int) -> None:
        self._owners[atoms] = owner
        self._is_open[atoms] = self._is_free[atoms] if owner < 0 else False
        self._tally.set_owner(atoms, owner, row)

    def _event_of(self, change: OwnerChange) -> int:
        """Return the number of the event of this tick that took a bundle from its owner, -1 if none did."""
        timeline = self._cluster.timeline
        source = "" if change.source is None else timeline.roster[change.source].id
        name = source if change.cause == "forced" else change.bundle
        return timeline.event_numbers.get((self._tick_number, change.cause, name), -1)

    def _record(self, change: OwnerChange, broker: int, atoms: slice) -> ChangeRecord:
        return ChangeRecord(
            unit=int(self._cluster.units[1][atoms.start]),
            ts_us=change.ts_us,
            source=-1 if change.source is None else change.source,
            broker=broker,
            cause=change.cause,
            decided=change.decided,
            weight=self._loads.weight_of(atoms),
            path=change.bundle,
            event=self._taken_by.get(change.bundle, -1),
        )

    def _pin(self, row: int) -> None:
        """Give the bundles of heartbeat and SLA namespaces to the broker in their name while it is registered."""
        for atom in np.flatnonzero(~self._is_free).tolist():
            number = int(self._cluster.pinned[atom])
            owner = number if number >= 0 and self._registry.registered[number] else -1
            self._set_owner(slice(atom, atom + 1), owner, row)

    @property
    def owners(self) -> list[OwnerInterval]:
        """Return the intervals of OWNERS."""
        return self.intervals.rows(int(self._cluster.timeline.bounds[-1]))

    def counted(self) -> Counted:
        """Return what was counted."""
        return Counted(
            cluster=self._cluster,
            run=self._run,
            rosters=self._registry.rosters,
            groups=self._tally.groups.all,
            cells=self._cells,
            changes=self._changes,
            logged=self._tally.logged,
            agreed=self._tally.agreed,
            has_usage=self._has_usage,
            moving=self._tally.moving.all if self._run.handover_us else None,
        )
