"""Facts about one cluster that no policy changes.

What the log's own choices score, the balance nobody can beat easily, and how much of the demand was induced by the
logged policy's moves.

Source: `design/architecture.md` sections 6.2 (induced_ratio), 6.4 (floor) and 6.5 (fidelity).
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from lookup.replay.counted import Counted
from lookup.replay.plan import ClusterPlan, RunPlan
from lookup.replay.tally import CellLedger, Groups, compacted, grouped
from lookup.replay.timeline import OwnershipEvent, Registration, children_of
from lookup.replay.walk import Registry, Tick, walk_ticks
from lookup.replay.work import WorkDir

__all__ = ["ClusterFacts", "InducedMarks", "gather_facts", "induced_marks"]

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


def gather_facts(
    cluster: ClusterPlan, run: RunPlan, marks: InducedMarks, *, reconnect_us: int, has_log: bool, work: WorkDir
) -> ClusterFacts:
    """Walk the ticks once and gather the facts; only scored ticks count for balance and the logged choice."""
    registry = Registry(cluster.timeline.roster)
    cells = CellLedger(run, len(cluster.timeline.roster))
    unknown = np.full(len(cluster.timeline.roster), np.nan)
    logged = _LoggedTally(cluster, run)
    weights: dict[int, list[NDArray[np.float64]]] = {}
    induced = demand = 0
    scored_from = int(cluster.timeline.bounds[0]) + run.warmup_us
    for tick in walk_ticks(cluster, run, work):
        if tick.events.registry is not None:
            registry.apply(tick.events.registry)
        demand += tick.high - tick.low
        induced += _induced(tick, marks, reconnect_us)
        if tick.start_us < scored_from:
            continue
        cells.add(tick.start_us, tick.end_us, registry.registered, unknown)
        if has_log:
            logged.add(tick, registry.epoch)
        if tick.high > tick.low:
            cell = tick.start_us // run.balance_us * run.balance_us
            weights.setdefault(cell, []).append(tick.rows.column("weight", slice(tick.low, tick.high)))
    held, nothing = cells.cells((), is_known=False), np.zeros(len(cluster.units[0]))
    counted = Counted(cluster, run, registry.rosters, logged.groups, cells, None, nothing, nothing, has_usage=False)
    return ClusterFacts(
        logged=counted if has_log else None,
        floor=_floor(weights, held.start, held.registered),
        induced=induced,
        demand=demand,
        ticks=cluster.timeline.n_ticks,
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

    def __init__(self, cluster: ClusterPlan, run: RunPlan) -> None:
        self.groups: list[Groups] = []
        self._cluster, self._run = cluster, run
        self._place = (-1, 0)
        self._low = self._high = 0

    def add(self, tick: Tick, epoch: int) -> None:
        """Add a tick; rows of one cell, roster epoch and day are counted at once."""
        place = tick.start_us // self._run.balance_us * self._run.balance_us, epoch
        if place != self._place:
            self.flush(tick)
            self._place = place
        if self._low == self._high:
            self._low = tick.low
        self._high = tick.high
        if tick.is_last_of_day:
            self.flush(tick)

    def flush(self, tick: Tick) -> None:
        """Count what is held; it came from the tick's day."""
        if self._low == self._high:
            return
        span = slice(self._low, self._high)
        width, n_clients = len(self._cluster.timeline.roster) + 1, max(len(self._cluster.clients), 1)
        brokers = np.maximum(tick.rows.column("broker", span).astype(np.int64), -1) + 1
        pairs, pair = compacted(self._cluster.units[1][tick.rows.column("atom", span)] * width + brokers)
        keys = pair * n_clients + tick.rows.column("properties", span)
        found, lookups, weight = grouped(keys, tick.rows.column("weight", span), len(pairs) * n_clients)
        held = pairs[found // n_clients]
        groups = Groups(*self._place, held // width, held % width - 1, found % n_clients, lookups, weight)
        self.groups.append(groups)
        self._low = self._high


def _floor(
    weights: dict[int, list[NDArray[np.float64]]], starts: Ints, registered: NDArray[np.bool_]
) -> tuple[float, float]:
    sums = [_round_robin(np.concatenate(held), int(n)) for held, n in _cells(weights, starts, registered)]
    return sum(part for part, _ in sums), sum(weight for _, weight in sums)


def _cells(
    weights: dict[int, list[NDArray[np.float64]]], starts: Ints, registered: NDArray[np.bool_]
) -> Iterator[tuple[list[NDArray[np.float64]], int]]:
    for place, start in enumerate(starts.tolist()):
        if start in weights and registered[place].any():
            yield weights[start], int(registered[place].sum())


def _round_robin(weights: NDArray[np.float64], brokers: int) -> tuple[float, float]:
    served = np.bincount(np.arange(len(weights)) % brokers, weights=weights, minlength=brokers)
    total = float(served.sum())
    return (float(served.max()) * brokers, total) if total else (0.0, 0.0)
