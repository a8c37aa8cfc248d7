"""Counts what a replay did, cell by cell, until the metrics' batches are all that is left of the log.

The walk says which broker owns each atom from which row on; here the rows of a whole cell are then counted at once, by
bundle, answering broker and client class. No row is touched in Python.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from lookup.replay.cells import CellLedger, Groups, GroupSums
from lookup.replay.counts import compacted, count_rows, grouped, places_of
from lookup.replay.days import DayRows
from lookup.replay.plan import ClusterPlan, RunPlan
from lookup.replay.transits import Transits

__all__ = ["ChangeRecord", "OwnerTally"]

Ints = NDArray[np.int64]
Floats = NDArray[np.float64]


class ChangeRecord(NamedTuple):
    """One change of ownership with what metrics want to know of it."""

    unit: int
    ts_us: int
    source: int
    broker: int
    cause: str
    decided: bool
    weight: float
    #: name of the bundle at that moment; `unit` is the one it belongs to
    path: str
    #: number of the cluster's event that took the bundle from its last owner, -1 for none
    event: int = -1


class OwnerTally:
    """Counts rows under exclusive ownership, from the changes of owners and the rows at which they took place.

    Most atoms keep their owner through a balance cell: their rows were counted for all policies at once. Rows of the
    others are looked at one by one, in numpy.
    """

    def __init__(self, cluster: ClusterPlan, run: RunPlan, cells: CellLedger) -> None:
        self.groups = GroupSums(run)
        self.transits = Transits(cluster)
        #: lookups in transit; the place of a state stands for the broker
        self.moving = GroupSums(run)
        n_units = len(cluster.units[0])
        self.logged, self.agreed = np.zeros(n_units), np.zeros(n_units)
        self._cluster, self._run, self._cells = cluster, run, cells
        self._unit = cluster.units[1]
        self._has_log = any(cluster.words.by_broker.values())
        #: owner of each atom now, and when the span began, shape (n_atoms,)
        self._owners = np.full(len(self._unit), -1, dtype=np.int64)
        self._first_owners = self._owners.copy()
        #: (row from which it holds, first atom, atom after the last, owner) of each change since the span began
        self._changes: list[tuple[int, int, int, int]] = []
        #: rows of the span
        self._low = self._high = 0
        self._cell, self._epoch = -1, 0

    def set_owner(self, atoms: slice, broker: int, row: int) -> None:
        """Note who owns the atoms of one bundle from a row of the day on, -1 for nobody."""
        self._owners[atoms] = broker
        self._changes.append((row, atoms.start, atoms.stop, broker))

    def begin(self, rows: DayRows, start_us: int, epoch: int) -> None:
        """Begin a tick; what was held of another cell or registry epoch is counted first."""
        cell = start_us // self._run.balance_us * self._run.balance_us
        if (cell, epoch) != (self._cell, self._epoch):
            self.flush(rows)
            self._cell, self._epoch = cell, epoch

    def end(self, low: int, high: int) -> None:
        """End a tick whose rows are [low, high)."""
        if self._low == self._high:
            self._low = low
        self._high = high

    def flush(self, rows: DayRows) -> None:
        """Count what is held of the current cell; `rows` is the day it came from."""
        if self._low < self._high:
            self._count(rows, slice(self._low, self._high))
        self._low = self._high
        self._first_owners, self._changes = self._owners.copy(), []

    def end_day(self, rows: DayRows) -> None:
        """Count what is held of a day."""
        self.flush(rows)
        self.transits.end_day()
        self.groups.settle()
        self.moving.settle()

    def _add(self, group: Groups) -> None:
        self.groups.add(group)
        if not self._run.by:
            self._cells.serve_groups(group)

    def _count(self, rows: DayRows, span: slice) -> None:
        counts = count_rows(self._cluster, rows, span)
        has_moved = np.zeros(len(self._unit), dtype=bool)
        for _, first, stop, _ in self._changes:
            has_moved[first:stop] = True
        atom, client, lookups, weight = _kept(counts.by_client, has_moved)
        owner = self._first_owners[atom]
        self._add(Groups(self._cell, self._epoch, self._unit[atom], owner, client, lookups, weight))
        if self._has_log:
            atom, logged, lookups = _kept(counts.by_logged, has_moved)
            self._compare(atom, self._first_owners[atom], logged, lookups)
        if self._changes:
            self._count_moved(rows, span, places_of(rows, span, np.flatnonzero(has_moved)))
        moving = self.transits.count(rows, span)
        if moving is not None:
            self.moving.add(Groups(self._cell, self._epoch, *moving))

    def _count_moved(self, rows: DayRows, span: slice, places: Ints) -> None:
        """Count rows of atoms that changed hands within a span; `places` are in the order of (atom, row)."""
        if not len(places):
            return
        atoms = rows.column("atom", span)[places].astype(np.int64)
        owners = self._owners_at(atoms, places + span.start, len(rows))
        n_clients, width = max(len(self._cluster.clients), 1), len(self._cluster.timeline.roster) + 1
        pairs, pair = compacted(self._unit[atoms] * width + owners + 1)
        keys = pair * n_clients + rows.column("properties", span)[places]
        weights = rows.column("weight", span)[places]
        found, lookups, weight = grouped(keys, weights, len(pairs) * n_clients)
        held = pairs[found // n_clients]
        columns = held // width, held % width - 1, found % n_clients, lookups, weight
        self._add(Groups(self._cell, self._epoch, *columns))
        if self._has_log:
            self._compare(atoms, owners, rows.column("broker", span)[places], np.ones(len(places)))

    def _owners_at(self, atoms: Ints, rows: Ints, n_rows: int) -> Ints:
        """Return who owned each row's atom when it came; rows are in order of (atom, row), all of atoms that changed.

        A change holds for the rows of its atom up to the next change: so many rows in a row.
        """
        changed, since, owner = self._change_columns()
        order = np.lexsort((since, changed))
        starts = np.searchsorted(atoms * (n_rows + 1) + rows, (changed * (n_rows + 1) + since)[order])
        return np.repeat(owner[order], np.diff(np.append(starts, len(rows))))

    def _change_columns(self) -> tuple[Ints, Ints, Ints]:
        """Return atom, first row and owner of every change, after an entry for each such atom's owner at the start."""
        changes = np.array(self._changes, dtype=np.int64)
        sizes = changes[:, 2] - changes[:, 1]
        places = np.arange(sizes.sum()) - np.repeat(np.cumsum(sizes) - sizes, sizes)
        changed = np.repeat(changes[:, 1], sizes) + places
        met = np.unique(changed)
        return (
            np.concatenate([met, changed]),
            np.concatenate([np.zeros(len(met), np.int64), np.repeat(changes[:, 0], sizes)]),
            np.concatenate([self._first_owners[met], np.repeat(changes[:, 3], sizes)]),
        )

    def _compare(self, atoms: Ints, owners: Ints, logged: Ints, lookups: Floats) -> None:
        """Count the lookups that were answered both by a logged broker and by an owner, and those where they agree."""
        both = np.flatnonzero((logged != -1) & (owners >= 0))
        units, n_units, lookups = self._unit[atoms.take(both)], len(self.logged), lookups.take(both)
        self.logged += np.bincount(units, weights=lookups, minlength=n_units)
        self.agreed += np.bincount(units, lookups * (logged.take(both) == owners.take(both)), n_units)


def _kept(columns: tuple[NDArray[Any], ...], has_moved: NDArray[np.bool_]) -> list[NDArray[Any]]:
    """Return the rows of columns whose first says an atom that kept its owner."""
    kept = np.flatnonzero(~has_moved[columns[0]])
    return [column.take(kept) for column in columns]
