"""Count lookups, balance cell by balance cell, from the owners of atoms and the rows at which they change.

The walk says which broker owns each atom from which row on; the rows of a whole cell are then counted at once, by
bundle, answering broker and client class. No row is touched in Python. A hand-over is an interval of time, and rows of
a slice are in order of time: it is a span of rows of some atoms.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from lookup.engine.ownership import HandOver
from lookup.model.batch import TRANSIT_STATES
from lookup.replay.counted import (
    CellLedger,
    Groups,
    GroupSums,
    RowCounts,
    count_rows,
    counts_of,
    rows_by_atom,
    weights_of,
)  # fmt: skip
from lookup.replay.days import SliceRows
from lookup.replay.grouping import column_keys, ranges
from lookup.replay.plan import ClusterPlan, RunPlan

__all__ = ["CellTally", "LoggedTally", "OwnerTally", "Transits"]

Ints = NDArray[np.int64]
Floats = NDArray[np.float64]
_NO_ATOMS: Ints = np.empty(0, dtype=np.int64)


class CellTally(ABC):
    """Holds the rows of one balance cell and registry epoch, and has them counted at once."""

    def __init__(self, cluster: ClusterPlan, run: RunPlan, cells: CellLedger) -> None:
        self.groups = GroupSums(run)
        self._cluster, self._run, self._cells = cluster, run, cells
        #: unit of each atom, shape (n_atoms,)
        self._unit = cluster.units[1]
        #: rows of the span
        self._low = self._high = 0
        self._cell, self._epoch = -1, 0

    def begin(self, rows: SliceRows, start_us: int, epoch: int) -> None:
        """Begin a tick; rows held of another cell or registry epoch are counted first."""
        cell = self._run.cell_of(start_us)
        if (cell, epoch) != (self._cell, self._epoch):
            self.flush(rows)
            self._cell, self._epoch = cell, epoch

    def end(self, low: int, high: int) -> None:
        """End a tick whose rows are [low, high)."""
        if self._low == self._high:
            self._low = low
        self._high = high

    def flush(self, rows: SliceRows) -> None:
        """Count what is held of the current cell; `rows` is the slice it came from."""
        if self._low < self._high:
            self._count(rows, slice(self._low, self._high))
        self._low = self._high

    def end_slice(self, rows: SliceRows) -> None:
        """Count what is held of a slice: the rows of the next one are numbered anew."""
        self.flush(rows)
        self.groups.settle()

    @abstractmethod
    def _count(self, rows: SliceRows, span: slice) -> None:
        """Count a span of rows of one slice, all of one cell and epoch."""

    def _add(self, unit: Ints, broker: Ints, client: Ints, lookups: Floats, weight: Floats) -> None:
        group = Groups(self._cell, self._epoch, unit, broker, client, lookups, weight)
        self.groups.add(group)
        # Without `by` groups of cells are added up, so what each broker served is kept before.
        if not self._run.by:
            self._cells.serve(group)


class LoggedTally(CellTally):
    """Counts rows by the broker the log says; a broker the roster does not know counts as no answer."""

    def _count(self, rows: SliceRows, span: slice) -> None:
        counts = count_rows(self._cluster, rows, span)
        broker = np.maximum(counts.logged, -1)
        self._add(self._unit[counts.atom], broker, counts.client, counts.lookups, counts.weight)


class OwnerTally(CellTally):
    """Counts rows by the owners of their atoms.

    Most atoms keep their owner through a balance cell: their rows were counted for all policies at once. Rows of the
    others are looked at one by one, in numpy.
    """

    def __init__(self, cluster: ClusterPlan, run: RunPlan, cells: CellLedger) -> None:
        super().__init__(cluster, run, cells)
        self.transits = Transits(cluster)
        #: lookups in transit; the number of a state stands for the broker
        self.moving = GroupSums(run)
        n_units = len(cluster.units[0])
        #: lookups answered with a logged broker, and answered as logged, shape (n_units,)
        self.logged, self.agreed = np.zeros(n_units), np.zeros(n_units)
        self._has_log = any(cluster.words.by_broker.values())
        #: owner of each atom now, a copy that no change has made old, and when the span began; shape (n_atoms,)
        self.owners = np.full(len(self._unit), -1, dtype=np.int64)
        self._kept: Ints | None = None
        self._first_owners = self.owners_now()
        #: (row from which it holds, first atom, atom after the last, owner) of each change since the span began
        self._changes: list[tuple[int, int, int, int]] = []

    def set_owner(self, atoms: slice, broker: int, row: int) -> None:
        """Note the owner of the atoms of one bundle from a row of the slice on, -1 for no broker."""
        self.owners[atoms] = broker
        self._kept = None
        self._changes.append((row, atoms.start, atoms.stop, broker))

    def owners_now(self) -> Ints:
        """Return the owner of each atom as it stays when owners change, the same array until then; shape (n_atoms,)."""
        if self._kept is None:
            self._kept = self.owners.copy()
        return self._kept

    def flush(self, rows: SliceRows) -> None:
        """Count what is held of the current cell, and begin another span with the owners of this moment."""
        super().flush(rows)
        self._first_owners, self._changes = self.owners_now(), []

    def end_slice(self, rows: SliceRows) -> None:
        """Count what is held of a slice."""
        super().end_slice(rows)
        self.transits.end_slice()
        self.moving.settle()

    def _count(self, rows: SliceRows, span: slice) -> None:
        counts, owners, moved = count_rows(self._cluster, rows, span), self._first_owners, _NO_ATOMS
        if self._changes:
            by_atom = rows_by_atom(rows, span, len(self._unit))
            since, start, stop, owner = np.array(self._changes, dtype=np.int64).T
            sizes = stop - start
            atom, row, owner = ranges(start, sizes), np.repeat(since - span.start, sizes), np.repeat(owner, sizes)
            # An atom that changes hands before its first row only, as most do that get an owner at all, has one owner;
            # of several values for one atom numpy keeps the last.
            is_early = row <= by_atom.first[atom]
            owners = owners.copy()
            owners[atom[is_early]] = owner[is_early]
            moving = ~is_early & (row <= by_atom.last[atom])
            if moving.any():
                places, sizes, moved, owner = by_atom.tenures(owners, atom[moving], row[moving], owner[moving])
                logged, client = (rows.column(name, span).take(places) for name in ("broker", "properties"))
                weights = weights_of(rows, span)
                weights = weights if isinstance(weights, float) else weights.take(places)
                numbers = np.repeat(np.arange(len(sizes)), sizes)
                self._serve(counts_of(self._cluster, weights, numbers, logged, client), self._unit[moved], owner)
        self._serve(counts, self._unit, owners, without=moved)
        in_transit = self.transits.count(rows, span)
        if in_transit is not None:
            self.moving.add(Groups(self._cell, self._epoch, *in_transit))

    def _serve(self, counts: RowCounts, units: Ints, owners: Ints, *, without: Ints = _NO_ATOMS) -> None:
        """Add rows by who answers them, and compare that with the log; some atoms may be left out.

        Units and owners are of each atom, or of what stands for it in the counts.
        """
        is_kept = np.ones(len(owners), dtype=bool)
        is_kept[without] = False
        atom, client, lookups, weight = _kept(counts.by_client, is_kept)
        self._add(units[atom], owners[atom], client, lookups, weight)
        if self._has_log:
            atom, logged, lookups = _kept(counts.by_logged, is_kept)
            both = lookups * ((logged != -1) & (owners[atom] >= 0))
            self.logged += np.bincount(units[atom], weights=both, minlength=len(self.logged))
            self.agreed += np.bincount(units[atom], weights=both * (logged == owners[atom]), minlength=len(self.logged))


def _kept(columns: Sequence[NDArray[Any]], is_kept: NDArray[np.bool_]) -> list[NDArray[Any]]:
    """Return the rows of columns, of which the first is the atom, whose atoms are kept, shape (n_atoms,)."""
    places = np.flatnonzero(is_kept[columns[0]])
    # `take` is several times faster than an index of truth values.
    return [column.take(places) for column in columns]


@dataclass(slots=True)
class _Transit:
    """One state of one bundle, in [from_us, until_us)."""

    first: int
    stop: int
    #: number of the state in TRANSIT_STATES
    state: int
    from_us: int
    until_us: int
    #: row of the current day before which it does not hold: lookups of its first instant may have come before it
    row: int


class Transits:
    """The hand-overs of one replay that are not counted yet, or not over."""

    def __init__(self, cluster: ClusterPlan) -> None:
        self._unit, self._n_clients = cluster.units[1], max(len(cluster.clients), 1)
        self._open: list[_Transit] = []
        #: the states of the last hand-over by first atom of its bundle
        self._last: dict[int, list[_Transit]] = {}

    def begin(self, atoms: slice, hand_over: HandOver, row: int) -> None:
        """Note a hand-over of a bundle that begins with a row of the slice."""
        begun = [
            _Transit(atoms.start, atoms.stop, TRANSIT_STATES.index(state), from_us, until_us, row)
            for state, from_us, until_us in hand_over.phases
        ]
        self._last[atoms.start] = begun
        self._open += begun

    def end(self, atoms: slice, now_us: int) -> None:
        """End the hand-over of a bundle, if it is in one, at the start of a tick."""
        for transit in self._last.pop(atoms.start, ()):
            transit.until_us = min(transit.until_us, now_us)

    def end_slice(self) -> None:
        """Leave a slice: rows are numbered anew, and what is still on its way holds from the first one on."""
        for transit in self._open:
            transit.row = 0

    def count(self, rows: SliceRows, span: slice) -> tuple[Ints, Ints, Ints, Floats, Floats] | None:
        """Count rows of a slice, at least one, in order of time from one call to the next.

        Returns:
            Unit, state, client class, lookups and weight in micro-units, columns of shape (n_groups,); None if no row
            was in transit.
        """
        if not self._open:
            return None
        spans = np.array([(t.first, t.stop, t.state, t.from_us, t.until_us, t.row) for t in self._open], np.int64)
        last_us = int(rows.ts[span.stop - 1])
        self._open = [transit for transit in self._open if transit.until_us > last_us]
        # Times become rows, so that all states of a span are found with two searches.
        spans[:, 3:5] = np.searchsorted(rows.ts, spans[:, 3:5])
        spans[:, 3] = np.maximum(spans[:, 3], spans[:, 5])
        spans[:, 3:5] = spans[:, 3:5].clip(span.start, span.stop) - span.start
        spans = spans[spans[:, 3] < spans[:, 4], :5]
        sizes = spans[:, 1] - spans[:, 0]
        atom, (state, low, high) = ranges(spans[:, 0], sizes), np.repeat(spans[:, 2:], sizes, axis=0).T
        by_atom = rows_by_atom(rows, span, len(self._unit))
        starts, stops = by_atom.find(atom, low), by_atom.find(atom, high)
        places, sizes = by_atom.order[ranges(starts, stops - starts)], stops - starts
        if not len(places):
            return None
        keys = column_keys(np.repeat(self._unit[atom], sizes), size=int(self._unit.max()) + 1)
        keys = keys.by(np.repeat(state, sizes), size=len(TRANSIT_STATES))
        keys = keys.by(rows.column("properties", span).take(places), size=self._n_clients)
        (unit, state, client), lookups, weight = keys.counted(rows.column("weight", span).take(places))
        return unit, state, client, lookups, weight
