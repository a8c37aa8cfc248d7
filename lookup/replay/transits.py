"""Counts the lookups that come while their bundle is being handed over, by the state it is in.

A hand-over is an interval of time, and rows of a day are in order of time: it is a span of rows of some atoms. Only
rows of such atoms are looked at, when a span of ticks is counted.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from lookup.engine.ownership import HandOver
from lookup.model.batch import TRANSIT_STATES
from lookup.replay.counts import grouped
from lookup.replay.days import DayRows
from lookup.replay.plan import ClusterPlan

__all__ = ["Transits"]

Ints = NDArray[np.int64]
Floats = NDArray[np.float64]

#: Unit, state, client class, lookups and weight in micro-units; columns of shape (n_groups,).
Counts: TypeAlias = tuple[Ints, Ints, Ints, Floats, Floats]


@dataclass(slots=True)
class _Transit:
    """One state of one bundle, in [from_us, until_us)."""

    first: int
    stop: int
    #: place among the states
    state: int
    from_us: int
    until_us: int
    #: row of the current day before which it does not hold: lookups of its first instant may have come before it
    row: int


class Transits:
    """The hand-overs of one replay that are not counted yet, or not over."""

    def __init__(self, cluster: ClusterPlan) -> None:
        self._unit, self._n_clients = cluster.units[1], max(len(cluster.clients), 1)
        self._held: list[_Transit] = []
        #: the states of the last hand-over by first atom of its bundle
        self._last: dict[int, list[_Transit]] = {}

    def begin(self, atoms: slice, hand_over: HandOver, row: int) -> None:
        """Note a hand-over of a bundle that begins with a row of the day."""
        begun = [
            _Transit(atoms.start, atoms.stop, TRANSIT_STATES.index(state), from_us, until_us, row)
            for state, from_us, until_us in hand_over.phases
        ]
        self._last[atoms.start] = begun
        self._held += begun

    def end(self, atoms: slice, now_us: int) -> None:
        """End the hand-over of a bundle, if it is in one, at the start of a tick."""
        for transit in self._last.pop(atoms.start, ()):
            transit.until_us = min(transit.until_us, now_us)

    def end_day(self) -> None:
        """Leave a day: rows are numbered anew, and what is still on its way holds from the first one on."""
        for transit in self._held:
            transit.row = 0

    def count(self, rows: DayRows, span: slice) -> Counts | None:
        """Count rows of a day, at least one, in order of time from one call to the next; None: none was in transit."""
        if not self._held:
            return None
        columns = _columns(self._held, rows, span)
        last_us = int(rows.ts[span.stop - 1])
        self._held = [one for one in self._held if one.until_us > last_us]
        return self._counted(rows, columns) if len(columns) else None

    def _counted(self, rows: DayRows, columns: Ints) -> Counts | None:
        low, high = int(columns[:, 3].min()), int(columns[:, 4].max())
        span = slice(low, high)
        columns[:, 3:] -= low
        places, states = _places(rows.column("atom", span), len(self._unit), columns)
        if not len(places):
            return None
        units = self._unit[rows.column("atom", span)[places]]
        keys = (units * len(TRANSIT_STATES) + states) * self._n_clients + rows.column("properties", span)[places]
        n_keys = (int(self._unit.max()) + 1) * len(TRANSIT_STATES) * self._n_clients
        found, lookups, weight = grouped(keys, rows.column("weight", span)[places], n_keys)
        held = found // self._n_clients
        return held // len(TRANSIT_STATES), held % len(TRANSIT_STATES), found % self._n_clients, lookups, weight


def _columns(held: Sequence[_Transit], rows: DayRows, span: slice) -> Ints:
    """Return first atom, atom after the last, state, first row and row after the last of what holds within a span."""
    found = np.array(
        [(one.first, one.stop, one.state, one.from_us, one.until_us, one.row) for one in held], dtype=np.int64
    )
    found[:, 3:5] = np.searchsorted(rows.ts, found[:, 3:5])
    found[:, 3] = np.maximum(found[:, 3], found[:, 5])
    found[:, 3:5] = found[:, 3:5].clip(span.start, span.stop)
    return found[found[:, 3] < found[:, 4], :5]


def _places(atoms: Ints, n_atoms: int, columns: Ints) -> tuple[Ints, Ints]:
    """Return the places of the rows in transit, and the state of each.

    Args:
        atoms: of every row.
        columns: first atom, atom after the last, state, first row and row after the last of every transit.
    """
    is_moving = np.zeros(n_atoms, dtype=bool)
    for first, stop in np.unique(columns[:, :2], axis=0).tolist():
        is_moving[first:stop] = True
    places = np.flatnonzero(is_moving[atoms])
    codes = atoms[places].astype(np.int64)
    order = np.argsort(codes, kind="stable")
    places, codes = places[order], codes[order]
    keys, width = codes * (len(atoms) + 1) + places, len(atoms) + 1
    sizes = columns[:, 1] - columns[:, 0]
    which = np.repeat(np.arange(len(columns)), sizes)
    atom = np.arange(sizes.sum()) - np.repeat(np.cumsum(sizes) - sizes, sizes) + columns[which, 0]
    starts, stops = (np.searchsorted(keys, atom * width + columns[which, column]) for column in (3, 4))
    counts = stops - starts
    chosen = np.arange(counts.sum()) - np.repeat(np.cumsum(counts) - counts, counts) + np.repeat(starts, counts)
    return places[chosen], np.repeat(columns[which, 2], counts)
