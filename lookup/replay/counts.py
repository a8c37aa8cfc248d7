"""Counts of rows that no policy changes, made once for all who look at a day, and how rows are counted by keys."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from lookup.replay.days import DayRows
from lookup.replay.plan import ClusterPlan

__all__ = [
    "RowCounts",
    "compacted",
    "count_rows",
    "grouped",
    "occurring",
    "places_of",
    "summed",
    "tallied",
    "weights_of",
]

Ints = NDArray[np.int64]
Floats = NDArray[np.float64]
#: Keys are counted into an array where that has at most this many times as many places as there are rows.
_SPARSE = 16


@dataclass(frozen=True, eq=False)
class RowCounts:
    """Lookups of some rows of a day by atom, logged broker and client class; columns of shape (n_groups,)."""

    n_clients: int
    atom: Ints
    #: roster number, -1 for none, -2 for a broker the roster does not know
    logged: Ints
    client: Ints
    lookups: Floats
    #: micro-units
    weight: Floats

    @cached_property
    def by_client(self) -> tuple[Ints, Ints, Floats, Floats]:
        """Return atom, client class, lookups and weight, whatever broker was logged."""
        keys = self.atom * self.n_clients + self.client
        found, (lookups, weight) = summed(keys, self.lookups, self.weight)
        return found // self.n_clients, found % self.n_clients, lookups, weight

    @cached_property
    def by_logged(self) -> tuple[Ints, Ints, Floats]:
        """Return atom, logged broker and lookups, whatever the client class."""
        width = int(self.logged.max()) + 3
        found, (lookups,) = summed(self.atom * width + self.logged + 2, self.lookups)
        return found // width, found % width - 2, lookups


def count_rows(cluster: ClusterPlan, rows: DayRows, span: slice) -> RowCounts:
    """Count some rows of a day, at least one, once for all who ask."""
    return rows.once(("counts", span.start, span.stop), lambda: _counted(cluster, rows, span))


def _counted(cluster: ClusterPlan, rows: DayRows, span: slice) -> RowCounts:
    n_clients, width = max(len(cluster.clients), 1), len(cluster.timeline.roster) + 2
    # -1 for none and -2 for an unknown broker come first, so that keys start at 0. A bundle meets few brokers in a
    # cell: only the pairs that occur are told apart by client.
    pairs, pair = compacted(rows.column("atom", span) * np.int64(width) + rows.column("broker", span) + 2)
    keys = pair * n_clients + rows.column("properties", span)
    found, lookups, weight = grouped(keys, weights_of(rows, span), len(pairs) * n_clients)
    held = pairs[found // n_clients]
    return RowCounts(n_clients, held // width, held % width - 2, found % n_clients, lookups, weight)


def places_of(rows: DayRows, span: slice, atoms: Ints) -> Ints:
    """Return the places in a span of the rows of some atoms, in the order of (atom, row).

    The rows of a span are put in that order once for all policies; which atoms change hands differs between them.
    """
    order, ends = rows.once(("by atom", span.start, span.stop), lambda: _by_atom(rows.column("atom", span)))
    atoms = atoms[atoms < len(ends)]
    starts = np.where(atoms > 0, ends[atoms - 1], 0)
    sizes = ends[atoms] - starts
    places: Ints = order[np.repeat(starts - (np.cumsum(sizes) - sizes), sizes) + np.arange(sizes.sum())]
    return places


def _by_atom(atoms: NDArray[np.integer[Any]]) -> tuple[NDArray[np.int32], Ints]:
    """Return the places of rows in the order of (atom, row), and where the rows of each atom end in it."""
    ends = np.cumsum(np.bincount(atoms))
    # numpy sorts integers of 16 bits in one pass per byte.
    codes = atoms.astype(np.uint16) if len(ends) <= 1 << 16 else atoms
    return np.argsort(codes, kind="stable").astype(np.int32), ends


def weights_of(rows: DayRows, span: slice) -> Floats | float:
    """Return the weight of some rows in micro-units, one number where all have the same."""
    constant = rows.constant("weight")
    return rows.column("weight", span) if constant is None else float(constant)


def tallied(keys: Ints, weights: Floats | float, n_keys: int) -> tuple[Ints, Floats]:
    """Return how often each key occurs and the sum of its weights, both of shape (n_keys,)."""
    counts = np.bincount(keys, minlength=n_keys)
    sums = counts * weights if isinstance(weights, float) else np.bincount(keys, weights=weights, minlength=n_keys)
    return counts, sums.astype(np.float64)


def grouped(keys: Ints, weights: Floats | float, n_keys: int, *, sparse: int = _SPARSE) -> tuple[Ints, Floats, Floats]:
    """Return the distinct keys, how often each occurs, and the sum of its weights.

    Args:
        keys: in [0, n_keys), shape (n_rows,).
        weights: shape (n_rows,), or one number for every row.
        sparse: keys are counted into an array of at most so many places per row.
    """
    if n_keys > sparse * max(len(keys), 1 << 16):
        found, keys = np.unique(keys, return_inverse=True)
        counts, sums = tallied(keys, weights, len(found))
        return found, counts.astype(np.float64), sums
    counts, sums = tallied(keys, weights, n_keys)
    found = np.flatnonzero(counts)
    return found, counts[found].astype(np.float64), sums[found]


def occurring(codes: NDArray[np.integer[Any]]) -> Ints:
    """Return the codes that occur, ascending; there is at least one."""
    if int(codes.max()) > _SPARSE * max(len(codes), 1 << 16):
        return np.unique(codes)
    occurs = np.zeros(int(codes.max()) + 1, dtype=bool)
    occurs[codes] = True
    return np.flatnonzero(occurs)


def compacted(codes: Ints) -> tuple[Ints, Ints]:
    """Number the codes that occur; return these codes, ascending, and each row's number."""
    if int(codes.max()) > _SPARSE * max(len(codes), 1 << 16):
        found, places = np.unique(codes, return_inverse=True)
        return found, places
    occurs = np.zeros(int(codes.max()) + 1, dtype=bool)
    occurs[codes] = True
    numbers = np.cumsum(occurs) - 1
    return np.flatnonzero(occurs), numbers.take(codes)


def summed(keys: Ints, *columns: Floats) -> tuple[Ints, list[Floats]]:
    """Return the distinct keys, ascending, and each column's sums by key; all of shape (n_rows,), n_rows > 0."""
    found, places = compacted(keys)
    return found, [np.bincount(places, weights=column).astype(np.float64) for column in columns]
