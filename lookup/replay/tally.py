"""Count lookups, balance cell by balance cell, from the owners of atoms and the rows at which they change.

The walk gives the owner of each atom and the row from which on it holds. The rows of a whole cell are then counted at
once, by bundle, answering broker and client class. No row is touched in Python.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

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
from lookup.replay.grouping import ranges
from lookup.replay.plan import ClusterPlan, RunPlan

__all__ = ["CellTally", "LoggedTally", "OwnerTally"]

Ints = NDArray[np.int64]
Floats = NDArray[np.float64]
_NO_ATOMS: Ints = np.empty(0, dtype=np.int64)


class CellTally(ABC):
    """A holder of the rows of one balance cell and registry epoch, which counts them at once."""

    def __init__(self, cluster: ClusterPlan, run: RunPlan, cells: CellLedger) -> None:
        self.groups = GroupSums(run)
        self._cluster, self._run, self._cells = cluster, run, cells
        #: unit of each atom, shape (n_atoms,)
        self._unit = cluster.units[1]
        #: rows of the span
        self._low = self._high = 0
        self._cell, self._epoch = -1, 0

    def begin(self, rows: SliceRows, start_us: int, epoch: int) -> None:
        """Begin a tick, and first count the held rows of another cell or registry epoch."""
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
        """Count the held rows of the current cell. `rows` is their slice."""
        if self._low < self._high:
            self._count(rows, slice(self._low, self._high))
        self._low = self._high

    def end_slice(self, rows: SliceRows) -> None:
        """Count the held rows of a slice, since the rows of the next one have other numbers."""
        self.flush(rows)
        self.groups.settle()

    @abstractmethod
    def _count(self, rows: SliceRows, span: slice) -> None:
        """Count a span of rows of one slice, all of one cell and epoch."""

    def _add(self, unit: Ints, broker: Ints, client: Ints, lookups: Floats, weight: Floats) -> None:
        group = Groups(self._cell, self._epoch, unit, broker, client, lookups, weight)
        self.groups.add(group)
        # Without `by`, groups of cells are added up, so the weight that each broker served is kept before.
        if not self._run.by:
            self._cells.serve(group)


class LoggedTally(CellTally):
    """A counter of rows by logged broker. A broker outside the roster counts as no answer."""

    def _count(self, rows: SliceRows, span: slice) -> None:
        counts = count_rows(self._cluster, rows, span)
        broker = np.maximum(counts.logged, -1)
        self._add(self._unit[counts.atom], broker, counts.client, counts.lookups, counts.weight)


class OwnerTally(CellTally):
    """A counter of rows by the owners of their atoms.

    Most atoms keep their owner in a balance cell and were counted for all policies. Numpy counts other rows singly.
    """

    def __init__(self, cluster: ClusterPlan, run: RunPlan, cells: CellLedger) -> None:
        super().__init__(cluster, run, cells)
        n_units = len(cluster.units[0])
        #: lookups answered with a logged broker, and answered as logged, shape (n_units,)
        self.logged, self.agreed = np.zeros(n_units), np.zeros(n_units)
        self._has_log = any(cluster.words.by_broker.values())
        #: owner of each atom now, a copy with current owners, and owners at the span's beginning, shape (n_atoms,)
        self.owners = np.full(len(self._unit), -1, dtype=np.int64)
        self._kept: Ints | None = None
        self._first_owners = self.owners_now()
        #: (row from which it holds, first atom, atom after the last, owner) of each change since the span began
        self._changes: list[tuple[int, int, int, int]] = []

    def set_owner(self, atoms: slice, broker: int, row: int) -> None:
        """Record the owner of the atoms of one bundle from a row of the slice on, -1 for no broker."""
        self.owners[atoms] = broker
        self._kept = None
        self._changes.append((row, atoms.start, atoms.stop, broker))

    def owners_now(self) -> Ints:
        """Copy the owner of each atom, shape (n_atoms,). The array is the same until an owner changes."""
        if self._kept is None:
            self._kept = self.owners.copy()
        return self._kept

    def flush(self, rows: SliceRows) -> None:
        """Count the held rows of the current cell, and begin another span with the current owners."""
        super().flush(rows)
        self._first_owners, self._changes = self.owners_now(), []

    def _count(self, rows: SliceRows, span: slice) -> None:
        counts, owners, moved = count_rows(self._cluster, rows, span), self._first_owners, _NO_ATOMS
        if self._changes:
            by_atom = rows_by_atom(rows, span, len(self._unit))
            since, start, stop, owner = np.array(self._changes, dtype=np.int64).T
            sizes = stop - start
            atom, row, owner = ranges(start, sizes), np.repeat(since - span.start, sizes), np.repeat(owner, sizes)
            # An atom whose owner changes only before its first row has one owner in this span. This is true of most
            # atoms that get an owner. Of several values for one atom numpy keeps the last.
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
                self._add_answers(counts_of(self._cluster, weights, numbers, logged, client), self._unit[moved], owner)
        self._add_answers(counts, self._unit, owners, without=moved)

    def _add_answers(self, counts: RowCounts, units: Ints, owners: Ints, *, without: Ints = _NO_ATOMS) -> None:
        """Add rows by the broker that answers them, and compare that with the log. Some atoms may be left out.

        Units and owners are those of each atom, or of each number that replaces atoms in the counts.
        """
        atom, client, lookups, weight = _drop_atoms(counts.by_client, without)
        self._add(units.take(atom), owners.take(atom), client, lookups, weight)
        if self._has_log:
            atom, logged, lookups = _drop_atoms(counts.by_logged, without)
            unit, owner = units.take(atom), owners.take(atom)
            both = lookups * ((logged != -1) & (owner >= 0))
            self.logged += np.bincount(unit, weights=both, minlength=len(self.logged))
            self.agreed += np.bincount(unit, weights=both * (logged == owner), minlength=len(self.logged))


def _drop_atoms(columns: Sequence[NDArray[Any]], without: Ints) -> Sequence[NDArray[Any]]:
    if not len(without):
        return columns
    (places,) = np.isin(columns[0], without, invert=True).nonzero()
    # `take` is several times faster than an index of truth values.
    return [column.take(places) for column in columns]
