"""Facts about one cluster that no policy changes.

What the log's own choices score, the balance nobody can beat easily, and how much of the demand was induced by the
logged policy's moves.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from lookup.replay.cells import CellLedger, Groups, GroupSums
from lookup.replay.counted import Counted
from lookup.replay.counts import count_rows
from lookup.replay.days import DayRows
from lookup.replay.plan import ClusterPlan, RunPlan
from lookup.replay.timeline import OwnershipEvent, Registration, children_of
from lookup.replay.walk import Registry, Tick

__all__ = ["ClusterFacts", "FactsWalk", "InducedMarks", "induced_marks"]

Ints = NDArray[np.int64]


@dataclass(frozen=True, slots=True)
class InducedMarks:
    """Bundles that lost their owner in the log: when, and which atoms; columns of shape (n_marks,)."""

    ts: Ints
    first: Ints
    stop: Ints


@dataclass(frozen=True)
class ClusterFacts:
    """What holds for every policy."""

    #: the brokers the log says were answered, counted; None where too few lookups carry one
    logged: Counted | None
    #: sums of (max / mean x weight, weight) over balance cells under a per-lookup round-robin
    floor: tuple[float, float]
    #: demand within `reconnect_s` after its bundle lost its owner in the log
    induced: int
    demand: int
    ticks: int
    #: bundles the run begins with
    bundles: int


class FactsWalk:
    """Gathers the facts; only scored ticks count for balance and the logged choice.

    Args:
        reconnect_us: how long after a bundle lost its owner its lookups count as induced.
        has_log: whether the logged choice is to be scored.
    """

    def __init__(
        self, cluster: ClusterPlan, run: RunPlan, marks: InducedMarks, reconnect_us: int, has_log: bool
    ) -> None:
        self._cluster, self._run = cluster, run
        self._marks, self._reconnect_us = marks, reconnect_us
        self._registry = Registry(cluster.timeline.roster)
        self._cells = CellLedger(run, len(cluster.timeline.roster))
        self._logged = _LoggedTally(cluster, run, self._cells) if has_log else None
        self._floor = _Floor(run, len(cluster.timeline.roster))
        self._induced = self._demand = 0
        self._scored_from = int(cluster.timeline.bounds[0]) + run.warmup_us

    def day(self, ticks: Sequence[Tick]) -> None:
        """Look at the ticks of one day."""
        for tick in ticks:
            if tick.events.registry is not None:
                self._registry.apply(tick.events.registry)
            self._demand += tick.high - tick.low
            self._induced += _induced(tick, self._marks, self._reconnect_us)
            if tick.start_us >= self._scored_from:
                self._scored(tick)
        if self._logged is not None:
            self._logged.flush(ticks[-1].rows)
            self._logged.groups.settle()

    def _scored(self, tick: Tick) -> None:
        self._cells.add(tick.start_us, tick.end_us, self._registry.registered, None)
        if self._logged is not None:
            self._logged.add(tick, self._registry.epoch)
        self._floor.add(tick, self._registry.registered)

    def facts(self) -> ClusterFacts:
        """Return what was found."""
        return ClusterFacts(
            logged=None if self._logged is None else self._counted(self._logged),
            floor=self._floor.sums(),
            induced=self._induced,
            demand=self._demand,
            ticks=self._cluster.timeline.n_ticks,
            bundles=len(self._cluster.units[0]),
        )

    def _counted(self, logged: _LoggedTally) -> Counted:
        nothing = np.zeros(len(self._cluster.units[0]))
        rosters = self._registry.rosters
        return Counted(
            self._cluster, self._run, rosters, logged.groups.all, self._cells, None, nothing, nothing, has_usage=False
        )


def induced_marks(
    cluster: ClusterPlan, ownership: Sequence[OwnershipEvent], registrations: Sequence[Registration]
) -> InducedMarks:
    """Return when which bundle lost its owner in the log: unloads, and what a broker owned that left."""
    losses = [event for event in registrations if event.event == "unregistered"]
    owners: dict[str, str] = {}
    marks: list[tuple[int, str]] = []
    history: list[OwnershipEvent | Registration] = [*ownership, *losses]
    for event in sorted(history, key=lambda event: event.ts_us):
        if isinstance(event, Registration):
            orphans = sorted(bundle for bundle, owner in owners.items() if owner == event.broker)
            marks.extend((event.ts_us, bundle) for bundle in orphans)
            owners = {bundle: owner for bundle, owner in owners.items() if owner != event.broker}
        elif event.event == "owned" and event.broker is not None:
            owners[event.bundle] = event.broker
        else:
            owner = owners.pop(event.bundle, None)
            if event.event == "unloaded":
                marks.append((event.ts_us, event.bundle))
            elif event.event == "split" and owner is not None:
                owners.update(dict.fromkeys(children_of(event), owner))
    places = [(ts, cluster.words.atoms.slice_of(bundle)) for ts, bundle in marks]
    known = [(ts, place) for ts, place in places if place is not None]
    return InducedMarks(
        ts=np.array([ts for ts, _ in known], dtype=np.int64),
        first=np.array([place.start for _, place in known], dtype=np.int64),
        stop=np.array([place.stop for _, place in known], dtype=np.int64),
    )


def _induced(tick: Tick, marks: InducedMarks, reconnect_us: int) -> int:
    if not len(marks.ts) or tick.high == tick.low:
        return 0
    near = np.flatnonzero((marks.ts < tick.end_us) & (marks.ts + reconnect_us > tick.start_us))
    if not len(near):
        return 0
    ts, atoms = tick.rows.ts[tick.low : tick.high], tick.rows.column("atom", slice(tick.low, tick.high))
    hit = np.zeros(len(ts), dtype=bool)
    for mark in near.tolist():
        since = ts - marks.ts[mark]
        hit |= (since >= 0) & (since < reconnect_us) & (atoms >= marks.first[mark]) & (atoms < marks.stop[mark])
    return int(hit.sum())


class _LoggedTally:
    """Counts rows by the broker the log says; a broker the roster does not know counts as no answer."""

    def __init__(self, cluster: ClusterPlan, run: RunPlan, cells: CellLedger) -> None:
        self.groups = GroupSums(run)
        self._cluster, self._run, self._cells = cluster, run, cells
        self._place = (-1, 0)
        self._low = self._high = 0

    def add(self, tick: Tick, epoch: int) -> None:
        """Add a tick; rows of one cell and registry epoch are counted at once."""
        place = tick.start_us // self._run.balance_us * self._run.balance_us, epoch
        if place != self._place:
            self.flush(tick.rows)
            self._place = place
        if self._low == self._high:
            self._low = tick.low
        self._high = tick.high

    def flush(self, rows: DayRows) -> None:
        """Count what is held; `rows` is the day it came from."""
        if self._low == self._high:
            return
        counts = count_rows(self._cluster, rows, slice(self._low, self._high))
        unit, broker = self._cluster.units[1][counts.atom], np.maximum(counts.logged, -1)
        group = Groups(*self._place, unit, broker, counts.client, counts.lookups, counts.weight)
        self.groups.add(group)
        if not self._run.by:
            self._cells.serve_groups(group)
        self._low = self._high


class _Floor:
    """The balance of a per-lookup round-robin over the brokers registered in a cell, cell by cell."""

    def __init__(self, run: RunPlan, n_brokers: int) -> None:
        self._run = run
        self._registered = np.zeros(n_brokers, dtype=bool)
        self._weights: list[NDArray[np.float64]] = []
        self._cell = -1
        self._sums = (0.0, 0.0)

    def add(self, tick: Tick, registered: NDArray[np.bool_]) -> None:
        """Add the lookups of a tick."""
        cell = tick.start_us // self._run.balance_us
        if cell != self._cell:
            self._close()
            self._cell = cell
        self._registered |= registered
        if tick.high > tick.low:
            self._weights.append(tick.rows.column("weight", slice(tick.low, tick.high)))

    def sums(self) -> tuple[float, float]:
        """Return the sums of (max / mean x weight, weight) over the cells."""
        self._close()
        return self._sums

    def _close(self) -> None:
        if self._weights and self._registered.any():
            worst, weight = _round_robin(np.concatenate(self._weights), int(self._registered.sum()))
            self._sums = self._sums[0] + worst, self._sums[1] + weight
        self._weights, self._registered = [], np.zeros_like(self._registered)


def _round_robin(weights: NDArray[np.float64], brokers: int) -> tuple[float, float]:
    served = np.bincount(np.arange(len(weights)) % brokers, weights=weights, minlength=brokers)
    total = float(served.sum())
    return (float(served.max()) * brokers, total) if total else (0.0, 0.0)
