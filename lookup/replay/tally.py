"""Count lookups, balance cell by balance cell, from the owners of atoms and the rows at which they change.

The walk says which broker owns each atom from which row on; the rows of a whole cell are then counted at once, by
bundle, answering broker and client class. No row is touched in Python. A hand-over is an interval of time, and rows of
a slice are in order of time: it is a span of rows of some atoms.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, TypeVar, cast

import numpy as np
from numpy.typing import NDArray

from lookup.engine.ownership import HandOver
from lookup.model.batch import TRANSIT_STATES
from lookup.replay.counted import CellLedger, Groups, GroupSums, count_rows, rows_of_atoms, weights_of
from lookup.replay.days import SliceRows
from lookup.replay.grouping import column_keys, ranges
from lookup.replay.plan import ClusterPlan, RunPlan

__all__ = ["CellTally", "LoggedTally", "OwnerTally", "Transits", "values_at"]

Ints = NDArray[np.int64]
Floats = NDArray[np.float64]
_AnyColumns = TypeVar("_AnyColumns", bound=tuple[NDArray[Any], ...])


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
            self._cells.serve_groups(group)


class LoggedTally(CellTally):
    """Counts rows by the broker the log says; a broker the roster does not know counts as no answer."""

    def _count(self, rows: SliceRows, span: slice) -> None:
        counts = count_rows(self._cluster, rows, span)
        broker = np.maximum(counts.logged, -1)
        self._add(self._unit[counts.atom], broker, counts.client, counts.lookups, counts.weight)


class OwnerTally(CellTally):
    """Counts rows under exclusive ownership.

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
        #: owner of each atom now, and when the span began, shape (n_atoms,)
        self.owners = np.full(len(self._unit), -1, dtype=np.int64)
        self._first_owners = self.owners.copy()
        #: (row from which it holds, first atom, atom after the last, owner) of each change since the span began
        self._changes: list[tuple[int, int, int, int]] = []

    def set_owner(self, atoms: slice, broker: int, row: int) -> None:
        """Note the owner of the atoms of one bundle from a row of the slice on, -1 for no broker."""
        self.owners[atoms] = broker
        self._changes.append((row, atoms.start, atoms.stop, broker))

    def flush(self, rows: SliceRows) -> None:
        """Count what is held of the current cell, and begin another span with the owners of this moment."""
        super().flush(rows)
        self._first_owners, self._changes = self.owners.copy(), []

    def end_slice(self, rows: SliceRows) -> None:
        """Count what is held of a slice."""
        super().end_slice(rows)
        self.transits.end_slice()
        self.moving.settle()

    def _count(self, rows: SliceRows, span: slice) -> None:
        counts = count_rows(self._cluster, rows, span)
        by_client, by_logged, moved = counts.by_client, counts.by_logged if self._has_log else None, None
        if self._changes:
            has_moved = np.zeros(len(self._unit), dtype=bool)
            for _, first, stop, _ in self._changes:
                has_moved[first:stop] = True
            moved = rows_of_atoms(rows, span, np.flatnonzero(has_moved))
            by_client = _kept(by_client, ~has_moved)
            by_logged = None if by_logged is None else _kept(by_logged, ~has_moved)
        atom, client, lookups, weight = by_client
        self._add(self._unit[atom], self._first_owners[atom], client, lookups, weight)
        if by_logged is not None:
            atom, logged, lookups = by_logged
            self._compare(atom, self._first_owners[atom], logged, lookups)
        if moved is not None and len(moved):
            self._count_moved(rows, span, moved)
        in_transit = self.transits.count(rows, span)
        if in_transit is not None:
            self.moving.add(Groups(self._cell, self._epoch, *in_transit))

    def _count_moved(self, rows: SliceRows, span: slice, moved: NDArray[np.int32]) -> None:
        """Count rows of atoms that changed hands within a span, by their places in it, in the order of (atom, row)."""
        atoms = rows.column("atom", span)[moved].astype(np.int64)
        owners = values_at(atoms, moved + span.start, len(rows), self._first_owners, self._changes)
        n_clients, width = max(len(self._cluster.clients), 1), len(self._cluster.timeline.roster) + 1
        # A bundle meets few owners in a cell: only the pairs that occur are told apart by client.
        pairs = column_keys(self._unit[atoms]).by(owners, size=width, low=-1)
        keys = pairs.compacted().by(rows.column("properties", span)[moved], size=n_clients)
        weights = weights_of(rows, span)
        (unit, owner, client), lookups, weight = keys.counted(weights if isinstance(weights, float) else weights[moved])
        self._add(unit, owner, client, lookups, weight)
        if self._has_log:
            self._compare(atoms, owners, rows.column("broker", span)[moved], np.ones(len(moved)))

    def _compare(self, atoms: Ints, owners: Ints, logged: Ints, lookups: Floats) -> None:
        """Count the lookups that were answered both by a logged broker and by an owner, and those where they agree."""
        units, n_units = self._unit[atoms], len(self.logged)
        both = lookups * ((logged != -1) & (owners >= 0))
        self.logged += np.bincount(units, weights=both, minlength=n_units)
        self.agreed += np.bincount(units, weights=both * (logged == owners), minlength=n_units)


def values_at(
    atoms: Ints, rows: NDArray[np.integer[Any]], n_rows: int, first: Ints, changes: Sequence[tuple[int, int, int, int]]
) -> Ints:
    """Return the value that each row's atom has when the row comes, shape (n_rows,).

    Args:
        atoms: of each row, of those that changed; in order of (atom, row).
        rows: number of each row.
        n_rows: of the slice.
        first: value of every atom before the changes, shape (n_atoms,).
        changes: (row from which on it holds, first atom, atom after the last, value), in order of time.
    """
    # A change holds for the rows of its atom up to the next change: so many rows in a row.
    since, start, stop, value = np.array(changes, dtype=np.int64).T
    sizes = stop - start
    changed = ranges(start, sizes)
    # What held before counts as a change in row 0, before all others of its atom.
    distinct = np.unique(changed)
    atom = np.concatenate([distinct, changed])
    row = np.concatenate([np.zeros(len(distinct), np.int64), np.repeat(since, sizes)])
    values = np.concatenate([first[distinct], np.repeat(value, sizes)])
    order = np.lexsort((row, atom))
    starts = np.searchsorted(atoms * (n_rows + 1) + rows, (atom * (n_rows + 1) + row)[order])
    return np.repeat(values[order], np.diff(np.append(starts, len(rows))))


def _kept(columns: _AnyColumns, is_kept: NDArray[np.bool_]) -> _AnyColumns:
    """Return the rows of columns, of which the first is the atom, whose atoms are kept, shape (n_atoms,)."""
    places = np.flatnonzero(is_kept[columns[0]])
    # `take` is several times faster than an index of truth values.
    return cast("_AnyColumns", tuple(column.take(places) for column in columns))


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
        spans[:, 3:5] = spans[:, 3:5].clip(span.start, span.stop)
        spans = spans[spans[:, 3] < spans[:, 4], :5]
        if not len(spans):
            return None
        low, high = int(spans[:, 3].min()), int(spans[:, 4].max())
        spans[:, 3:] -= low
        atoms = rows.column("atom", slice(low, high))
        moved, states = _rows_in_transit(atoms, len(self._unit), spans)
        if not len(moved):
            return None
        keys = column_keys(self._unit[atoms[moved]], size=int(self._unit.max()) + 1)
        keys = keys.by(states, size=len(TRANSIT_STATES))
        keys = keys.by(rows.column("properties", slice(low, high))[moved], size=self._n_clients)
        (unit, state, client), lookups, weight = keys.counted(rows.column("weight", slice(low, high))[moved])
        return unit, state, client, lookups, weight


def _rows_in_transit(atoms: NDArray[np.integer[Any]], n_atoms: int, spans: Ints) -> tuple[Ints, Ints]:
    """Return the places of the rows in transit, and the state of each.

    Args:
        atoms: of every row.
        spans: first atom, atom after the last, state, first row and row after the last of every transit.
    """
    is_moving = np.zeros(n_atoms, dtype=bool)
    for first, stop in np.unique(spans[:, :2], axis=0).tolist():
        is_moving[first:stop] = True
    places = np.flatnonzero(is_moving[atoms])
    codes = atoms[places].astype(np.int64)
    order = np.argsort(codes, kind="stable")
    places, codes = places[order], codes[order]
    # Rows of such atoms in the order of (atom, row): those of a transit are one stretch for each of its atoms.
    width = len(atoms) + 1
    keys = codes * width + places
    sizes = spans[:, 1] - spans[:, 0]
    transit = np.repeat(np.arange(len(spans)), sizes)
    atom = ranges(spans[:, 0], sizes)
    starts, stops = (np.searchsorted(keys, atom * width + spans[transit, column]) for column in (3, 4))
    return places[ranges(starts, stops - starts)], np.repeat(spans[transit, 2], stops - starts)
