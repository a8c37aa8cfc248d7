"""Replay one policy over one cluster, and call the engine, tick by tick, whenever Pulsar would.

Only lookups of bundles without owner reach the engine. All others are hits, which `tally.py` counts. The result
equals, row for row, a loop that calls `LoadManager.assign` once per lookup.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from lookup.engine.ballots import Decided
from lookup.engine.ledger import MICRO
from lookup.engine.manager import ManagerObserver
from lookup.engine.ownership import OwnershipChange
from lookup.engine.policy import Policy
from lookup.engine.reporting import ReportBoard
from lookup.model.batch import UNLOADED_BY
from lookup.model.broker import Roster
from lookup.replay.counted import ChangeRecord, Counted
from lookup.replay.days import Span, copy_tail
from lookup.replay.grouping import compact
from lookup.replay.loads import AtomLoads, BrokerLoads, Demand
from lookup.replay.plan import ClusterPlan, RunPlan, new_manager
from lookup.replay.records import Cycle, OwnerInterval, OwnerIntervals
from lookup.replay.tally import OwnerTally
from lookup.replay.walk import ClusterWalk, RequestMaker, Tick

__all__ = ["ExclusiveReplay"]


@dataclass(frozen=True, eq=False, slots=True)
class _GridInstant:
    """A grid instant whose load has not been computed yet."""

    now_us: int
    #: owner of each atom then
    owners: NDArray[np.int64]
    #: of the cell before
    demand: Demand


class ExclusiveReplay(ClusterWalk):
    """One policy, cluster and seed, at which an observer may look on."""

    def __init__(
        self, cluster: ClusterPlan, run: RunPlan, policy: Policy, *, seed: int, observer: ManagerObserver | None = None
    ) -> None:
        super().__init__(cluster, run)
        self.manager = new_manager(cluster, run, policy, seed, observer)
        self._bundles = cluster.first_bundles(policy.bundles)
        self._requests = RequestMaker(cluster, self._bundles)
        self._usage = np.full(len(cluster.timeline.roster), np.nan)
        #: None if policies see load as it is. Only policies see published load. The ledger, and so every metric, keeps
        #: the measured load (`docs/decisions/load-reports.md`)
        self._board: ReportBoard | None = None
        if run.is_published:
            self._board = ReportBoard(len(self._usage), int(cluster.timeline.bounds[0]), policy.cadence)
        #: capacities are given, so that usage has a meaning and is counted in every tick
        self._has_usage = cluster.assumed_capacity is None
        self.decisions: list[Decided] = []
        self.intervals = OwnerIntervals()
        #: number by broker id, -1 for no broker
        self._numbers: dict[str | None, int] = {None: -1}
        self._numbers.update({broker: number for number, broker in enumerate(cluster.timeline.roster.ids)})
        #: the cycles of the policy's shedder
        self.cycles: list[Cycle] = []
        self._loads = AtomLoads(cluster, run, with_origins=policy.asks_origins)
        self._brokers = BrokerLoads(cluster, self._loads, self._bundles)
        #: whether a decision may read load
        self._sees_load = "view.load" in policy.reads
        #: whether the load of every grid instant is computed, even if no decision reads it
        self._settles_at_once = self._has_usage or self._board is not None or policy.shedder is not None
        self._instant: _GridInstant | None = None
        #: rows since the last grid instant
        self._spans: list[Span] = []
        #: of the load that the policy sees, or will see
        self._demand = Demand(cluster, [], run.tick_us / MICRO)
        self._tally = OwnerTally(cluster, run, self._cells)
        #: whether each atom is not pinned to a broker, shape (n_atoms,)
        self._is_free = cluster.pinned == -1
        #: a lookup of it makes the policy choose
        self._is_open = self._is_free.copy()
        self._changes: list[ChangeRecord] = []
        #: number of the event that took a bundle from its last owner, by bundle, -1 if the policy's shedder did
        self._taken_by: dict[str, int] = {}
        self._tick_number = 0
        #: whether the current tick is after the warm-up
        self._is_scored = False

    def take(self, ticks: Sequence[Tick]) -> None:
        """Replay the ticks of one slice."""
        # The load of the last grid instant before may still be read.
        self._brokers.begin_slice(ticks[0].reports, ticks[0].start_us - self._run.tick_us)
        for tick in ticks:
            self._tick_number = tick.number
            self._is_scored = tick.start_us >= self.scored_from
            self._apply_events(tick)
            if tick.is_grid:
                self._begin_grid_instant(tick)
            if self._is_scored:
                self._tally.begin(tick.rows, tick.start_us, self._registry.epoch)
            self._decide_lookups(tick)
            self._loads.add(tick.rows, tick.low, tick.high)
            self._spans.append((tick.rows, tick.low, tick.high))
            if self._is_scored:
                usage = self._usage if self._has_usage else None
                self._cells.add(tick.start_us, tick.end_us, self._registry.registered, usage)
                self._tally.end(tick.low, tick.high)
            self.decisions.extend(self.manager.take_decisions())
        # Everything that needs the rows of a slice is computed here, so that two slices need not be held at a time.
        rows = ticks[-1].rows
        self._tally.end_slice(rows)
        self._settle_load()
        self._loads.end_slice(rows)
        copy_tail(rows, [self._spans, self._demand.spans])

    def _apply_events(self, tick: Tick) -> None:
        events = tick.events
        # The load of the last grid instant is that of its brokers and bundles, so it is settled before they change.
        if events.registry is not None or events.splits or events.unloads:
            self._settle_load()
        self.manager.begin_tick(tick.start_us)
        if events.registry is not None:
            self._begin_epoch(tick, events.registry)
        for parent, children in events.splits:
            if self._bundles.split(parent, children):
                self.manager.split(parent, children)
                if parent in self._taken_by:
                    self._taken_by.update(dict.fromkeys(children, self._taken_by[parent]))
                self.intervals.split(parent, children, tick.start_us)
        for bundle in events.unloads:
            if self.manager.ownership.owner(bundle) is not None:
                self.manager.unload(bundle)
                self._record_changes(tick.low)
        if tick.number == self._cluster.timeline.restore_tick:
            owners = self._cluster.timeline.owners
            self.manager.restore({bundle: broker for bundle, broker in owners.items() if bundle in self._bundles})
            self._record_changes(tick.low)

    def _begin_epoch(self, tick: Tick, registry: tuple[Roster, NDArray[np.bool_]]) -> None:
        self._registry.apply(registry)
        self.manager.set_registry(*registry)
        if self._board is not None:
            self._board.leave(~self._registry.registered, tick.start_us)
        self._record_changes(tick.low)
        # Bundles of heartbeat and SLA namespaces belong to the broker in their name while it is registered.
        for atom in np.flatnonzero(~self._is_free).tolist():
            number = int(self._cluster.pinned[atom])
            owner = number if number >= 0 and self._registry.registered[number] else -1
            self._set_owner(slice(atom, atom + 1), owner, tick.low)

    def _begin_grid_instant(self, tick: Tick) -> None:
        self._loads.close_cell(tick.start_us)
        if self._sees_load or self._settles_at_once:
            self._demand = Demand(self._cluster, self._spans, self._run.tick_us / MICRO)
            self._instant = _GridInstant(tick.start_us, self._tally.owners_now(), self._demand)
        self._spans = []
        if self._settles_at_once:
            self._settle_load()
        report = self.manager.shed()
        if report is not None:
            self.cycles.append(Cycle(tick.start_us, report))
            self._record_changes(tick.low)

    def _settle_load(self) -> None:
        """Show the policy the load of the last grid instant, if it has not seen it yet. Few ticks need it."""
        if self._instant is not None:
            instant, self._instant = self._instant, None
            figures = self._brokers.at(
                instant.now_us,
                instant.owners,
                capacity=self.manager.capacity,
                registered=self._registry.registered,
                demand=instant.demand,
            )
            self._usage = figures.usage
            if self._board is not None:
                figures = self._board.shown(figures, self.manager.ownership.bundles(), instant.now_us)
            self.manager.set_load(figures)

    def _decide_lookups(self, tick: Tick) -> None:
        """Let the engine decide about bundles without owner."""
        if tick.low == tick.high or not np.count_nonzero(self._is_open):
            return
        span = slice(tick.low, tick.high)
        atoms = tick.rows.column("atom", span)
        # The cheapest check is first. Mostly no atom that occurs is open, and all policies share the atoms that occur.
        present = tick.rows.once(("atoms", tick.low, tick.high), lambda: compact(atoms)[0])
        if not np.count_nonzero(self._is_open.take(present)):
            return
        self._settle_load()
        # `take` is several times faster than an index of narrow codes.
        (offsets,) = (self._is_open.take(atoms) & (tick.rows.column("read_only", span) == 0)).nonzero()
        for row, atom in zip((offsets + tick.low).tolist(), atoms[offsets].tolist(), strict=True):
            # A decision of this tick may have closed it.
            if self._is_open[atom]:
                self.manager.select(self._requests.request(tick.rows, row), int(tick.rows.ts[row]))
                self._record_changes(row)

    def _record_changes(self, row: int) -> None:
        """Note the changes of ownership the manager made, which hold from a row of the slice on."""
        for change in self.manager.take_changes():
            if change.bundle in self._bundles:
                self._record_change(change, row)

    def _record_change(self, change: OwnershipChange, row: int) -> None:
        timeline = self._cluster.timeline
        source, broker = self._numbers[change.source], self._numbers[change.broker]
        atoms = self._bundles.atoms_of(change.bundle)
        self._set_owner(atoms, broker, row)
        self.intervals.note(change)
        if change.broker is None:
            # A leaving broker is one event for all bundles it owned. Unloads and splits are events of one bundle.
            name = change.source or "" if change.cause == "forced" else change.bundle
            event = timeline.event_numbers.get((self._tick_number, change.cause, name), -1)
            self._taken_by[change.bundle] = event
        is_unload = change.broker is None and change.cause in UNLOADED_BY
        if self._is_scored and (change.broker is not None or is_unload):
            self._changes.append(
                ChangeRecord(
                    unit=int(self._cluster.units[1][atoms.start]),
                    ts_us=change.ts_us,
                    source=source,
                    broker=broker,
                    cause=change.cause,
                    decided=change.decided,
                    weight=self._loads.weight_of(atoms),
                    path=change.bundle,
                    event=self._taken_by.get(change.bundle, -1),
                )
            )

    def _set_owner(self, atoms: slice, owner: int, row: int) -> None:
        self._tally.set_owner(atoms, owner, row)
        self._is_open[atoms] = self._is_free[atoms] if owner < 0 else False

    @property
    def owners(self) -> list[OwnerInterval]:
        """The intervals of OWNERS."""
        return self.intervals.rows

    def collect_counts(self) -> Counted:
        """Collect the counts of the replay."""
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
        )
