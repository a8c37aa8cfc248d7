"""Hold counts: rows of a slice by what no policy changes, groups of lookups, and broker-time by balance cell."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from lookup.engine.ledger import MICRO
from lookup.model.batch import Cells
from lookup.replay.days import SliceRows
from lookup.replay.grouping import column_keys, ranges
from lookup.replay.plan import ClusterPlan, RunPlan

__all__ = ["CellLedger", "GroupSums", "Groups", "RowCounts", "added_up", "count_rows", "rows_of_atoms", "weights_of"]

Ints = NDArray[np.int64]
Floats = NDArray[np.float64]
#: Groups of so many rows at least are added up: more leave a core's cache, fewer are added up more often than need be.
_MANY_ROWS = 1 << 17


@dataclass(frozen=True, eq=False)
class RowCounts:
    """Lookups of some rows of a slice by atom, logged broker and client class; columns of shape (n_groups,)."""

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
        keys = column_keys(self.atom).by(self.client, size=self.n_clients)
        (atom, client), (lookups, weight) = keys.summed(self.lookups, self.weight)
        return atom, client, lookups, weight

    @cached_property
    def by_logged(self) -> tuple[Ints, Ints, Floats]:
        """Return atom, logged broker and lookups, whatever the client class."""
        keys = column_keys(self.atom).by(self.logged, size=int(self.logged.max()) + 3, low=-2)
        (atom, logged), (lookups,) = keys.summed(self.lookups)
        return atom, logged, lookups


def count_rows(cluster: ClusterPlan, rows: SliceRows, span: slice) -> RowCounts:
    """Count some rows of a slice, at least one, once for all policies."""

    def count() -> RowCounts:
        """Count them now."""
        n_clients, width = max(len(cluster.clients), 1), len(cluster.timeline.roster) + 2
        pairs = column_keys(rows.column("atom", span)).by(rows.column("broker", span), size=width, low=-2)
        # A bundle meets few brokers in a cell: only the pairs that occur are told apart by client.
        keys = pairs.compacted().by(rows.column("properties", span), size=n_clients)
        (atom, logged, client), lookups, weight = keys.counted(weights_of(rows, span))
        return RowCounts(n_clients, atom, logged, client, lookups, weight)

    return rows.once(("counts", span.start, span.stop), count)


def rows_of_atoms(rows: SliceRows, span: slice, atoms: Ints) -> NDArray[np.int32]:
    """Return the rows of some atoms by their places in a span, in the order of (atom, row).

    The rows of a span are put in that order once for all policies; which atoms change hands differs between them.
    """

    def order_rows() -> tuple[NDArray[np.int32], Ints]:
        """Return the rows in the order of (atom, row), and where those of each atom end in it."""
        codes = rows.column("atom", span)
        ends = np.cumsum(np.bincount(codes))
        # numpy sorts integers of 16 bits in one pass per byte.
        codes = codes.astype(np.uint16) if len(ends) <= 1 << 16 else codes
        return np.argsort(codes, kind="stable").astype(np.int32), ends

    order, ends = rows.once(("by atom", span.start, span.stop), order_rows)
    atoms = atoms[atoms < len(ends)]
    starts = np.where(atoms > 0, ends[atoms - 1], 0)
    chosen: NDArray[np.int32] = order[ranges(starts, ends[atoms] - starts)]
    return chosen


def weights_of(rows: SliceRows, span: slice) -> Floats | float:
    """Return the weight of some rows in micro-units, one number if all have the same."""
    constant = rows.constant("weight")
    return rows.column("weight", span) if constant is None else float(constant)


@dataclass(frozen=True, eq=False)
class Groups:
    """Counts by bundle, answering broker and client class; columns of shape (n_groups,)."""

    #: start of the balance cell, µs; 0 if cells were added up
    cell_us: int
    #: number of the registry epoch
    epoch: int
    unit: Ints
    broker: Ints
    client: Ints
    lookups: Floats
    #: micro-units
    weight: Floats
    #: whether these are sums already: each key once, keys ascending
    is_sum: bool = False


def added_up(groups: Sequence[Groups]) -> Groups:
    """Add groups of one registry epoch up, in their order; there is at least one."""
    if len(groups) == 1 and groups[0].is_sum:
        return groups[0]
    names = ("unit", "broker", "client", "lookups", "weight")
    unit, broker, client, lookups, weight = (
        np.concatenate([getattr(group, name) for group in groups]) for name in names
    )
    if len(unit):
        pairs = column_keys(unit).by(broker, size=int(broker.max()) + 2, low=-1)
        # Few of the pairs that could be do occur, so that the keys that tell clients apart stay small.
        keys = pairs.compacted().by(client, size=int(client.max()) + 1)
        (unit, broker, client), (lookups, weight) = keys.summed(lookups, weight)
    return Groups(0, groups[0].epoch, unit, broker, client, lookups, weight, is_sum=True)


class GroupSums:
    """Groups as they are counted; if cells are not told apart they are added up whenever many are held.

    So what is held grows neither with the log nor with the length of a day. If `by` tells demand apart, every cell
    keeps its groups.
    """

    def __init__(self, run: RunPlan) -> None:
        #: by registry epoch
        self._sums: dict[int, Groups] = {}
        #: not yet added up
        self._recent: list[Groups] = []
        self._recent_rows = 0
        #: how many rows are many: no fewer than the sums have that are gone through with them
        self._many = _MANY_ROWS
        self._is_by_cell = bool(run.by)

    def add(self, group: Groups) -> None:
        """Add counts."""
        self._recent.append(group)
        self._recent_rows += len(group.unit)
        if self._recent_rows > self._many and not self._is_by_cell:
            self.settle()

    def settle(self) -> None:
        """Add up what is held, if cells are not told apart."""
        if self._is_by_cell:
            return
        by_epoch: dict[int, list[Groups]] = {}
        for group in self._recent:
            by_epoch.setdefault(group.epoch, []).append(group)
        # An epoch that is over is not gone through again: a log has many epochs, and few of them are current.
        for epoch, groups in by_epoch.items():
            self._sums[epoch] = added_up([self._sums[epoch], *groups] if epoch in self._sums else groups)
        self._recent, self._recent_rows = [], 0
        self._many = max(_MANY_ROWS, sum(len(self._sums[epoch].unit) for epoch in by_epoch))

    @property
    def all(self) -> Sequence[Groups]:
        """Return what is held, sums first, by registry epoch."""
        return [*(group for _, group in sorted(self._sums.items())), *self._recent]


@dataclass(slots=True)
class _BrokerTime:
    """The broker-time of one cell, columns of shape (n_brokers,)."""

    registered: NDArray[np.bool_]
    known_s: Floats
    overloaded_s: Floats


class CellLedger:
    """Broker-time by balance cell: which brokers were registered, of known usage, overloaded."""

    def __init__(self, run: RunPlan, n_brokers: int) -> None:
        self._run = run
        self._n_brokers = n_brokers
        self._times: dict[int, _BrokerTime] = {}
        #: cell and registered brokers of the last tick: most ticks have those of the one before, and the same array, of
        #: which every registry epoch has a new one
        self._last: tuple[int, NDArray[np.bool_]] | None = None
        self._served: dict[int, Floats] = {}

    def add(self, start_us: int, end_us: int, registered: NDArray[np.bool_], usage: Floats | None) -> None:
        """Add one tick; `usage` is None if it means nothing."""
        cell = self._run.cell_of(start_us)
        time = self._times.get(cell)
        if time is None:
            n = self._n_brokers
            time = self._times[cell] = _BrokerTime(np.zeros(n, bool), np.zeros(n), np.zeros(n))
        if self._last is None or self._last[0] != cell or self._last[1] is not registered:
            np.logical_or(time.registered, registered, out=time.registered)
            self._last = cell, registered
        if usage is None:
            return
        known = registered & ~np.isnan(usage)
        time.known_s[known] += (end_us - start_us) / MICRO
        time.overloaded_s[known & (usage > self._run.overload_threshold)] += (end_us - start_us) / MICRO

    def serve(self, start_us: int, micro: Floats) -> None:
        """Add what each broker served in a tick, micro-units, shape (n_brokers,), if groups do not say it."""
        cell = self._run.cell_of(start_us)
        self._served[cell] = self._served[cell] + micro if cell in self._served else micro

    def serve_groups(self, group: Groups) -> None:
        """Add what each broker served by the groups of one cell."""
        self.serve(group.cell_us, self._by_broker(group).astype(np.float64))

    def _by_broker(self, group: Groups) -> NDArray[Any]:
        # -1 stands for no broker: the first sum is left out.
        return np.bincount(group.broker + 1, weights=group.weight, minlength=self._n_brokers + 1)[1:]

    def cells(self, groups: Sequence[Groups], *, is_known: bool) -> Cells:
        """Put broker-time and the weight served together.

        Args:
            groups: give the weight served, if ticks or groups did not give it before.
            is_known: whether usage means something.
        """
        starts = sorted(self._times)
        row_of = {start: row for row, start in enumerate(starts)}
        shape = (len(starts), self._n_brokers)
        served = np.zeros(shape)
        for start, micro in self._served.items():
            served[row_of[start]] = micro
        for group in groups if not self._served else ():
            served[row_of[group.cell_us]] += self._by_broker(group)
        times = [self._times[start] for start in starts]
        return Cells(
            start=np.array(starts, dtype=np.int64),
            served=served / MICRO,
            registered=np.array([time.registered for time in times], dtype=bool).reshape(shape),
            known_s=np.array([time.known_s for time in times]).reshape(shape) if is_known else None,
            overloaded_s=np.array([time.overloaded_s for time in times]).reshape(shape) if is_known else None,
        )
