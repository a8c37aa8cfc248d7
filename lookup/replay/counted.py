"""Hold the counts of a replay, and build from them the batches that metrics receive.

Rows of a slice are counted by columns that no policy changes, lookups by group, and broker-time by balance cell.
Batches cover the whole demand, and the parts of it that `by` names.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from lookup.engine.ledger import MICRO
from lookup.errors import Argument, SettingsError
from lookup.model.batch import Batch, Cells, OwnerChanges, Served
from lookup.model.broker import Roster
from lookup.model.time import US_PER_S, moment_at
from lookup.replay.days import SliceRows
from lookup.replay.grouping import column_keys, ranges
from lookup.replay.plan import ClusterPlan, RunPlan

__all__ = [
    "BY_DIMENSIONS", "AtomRows", "By", "CellLedger", "ChangeRecord", "Counted", "GroupSums", "Groups", "RowCounts",
    "added_up", "check_by", "count_rows", "counts_of", "rows_by_atom", "weights_of",
]  # fmt: skip

Ints = NDArray[np.int64]
Floats = NDArray[np.float64]
Codes = NDArray[np.integer[Any]]
Mask = NDArray[np.bool_]
By = tuple[tuple[str, str], ...]
#: The dimensions by which demand can be divided.
BY_DIMENSIONS = ("tenant", "namespace", "rack", "hour")
_HOUR_US = 3_600_000_000
#: Groups are added up at this number of rows. More rows do not fit in a core's cache, fewer are added up too often.
_MANY_ROWS = 1 << 17


@dataclass(frozen=True, eq=False)
class RowCounts:
    """Lookups of some rows of a slice by atom, logged broker and client class, in columns of shape (n_groups,)."""

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
        """Atom, client class, lookups and weight, summed over logged brokers."""
        keys = column_keys(self.atom).by(self.client, size=self.n_clients)
        (atom, client), (lookups, weight) = keys.sum_values(self.lookups, self.weight)
        return atom, client, lookups, weight

    @cached_property
    def by_logged(self) -> tuple[Ints, Ints, Floats]:
        """Atom, logged broker and lookups, summed over client classes."""
        keys = column_keys(self.atom).by(self.logged, size=int(self.logged.max()) + 3, low=-2)
        (atom, logged), (lookups,) = keys.sum_values(self.lookups)
        return atom, logged, lookups


def count_rows(cluster: ClusterPlan, rows: SliceRows, span: slice) -> RowCounts:
    """Count some rows of a slice, at least one, once for all policies."""

    def count() -> RowCounts:
        columns = [rows.column(name, span) for name in ("atom", "broker", "properties")]
        return counts_of(cluster, weights_of(rows, span), *columns)

    return rows.once(("counts", span.start, span.stop), count)


def counts_of(cluster: ClusterPlan, weights: Floats | float, atom: Codes, logged: Codes, client: Codes) -> RowCounts:
    """Count rows by their columns of shape (n_rows,), at least one row. `atom` may be another number of a row."""
    n_clients, width = max(len(cluster.clients), 1), len(cluster.timeline.roster) + 2
    # A bundle has few brokers in a cell, so only the pairs that occur are divided by client.
    keys = column_keys(atom).by(logged, size=width, low=-2).compact().by(client, size=n_clients)
    (atom, logged, client), lookups, weight = keys.count_keys(weights)
    return RowCounts(n_clients, atom, logged, client, lookups, weight)


@dataclass(frozen=True, eq=False, slots=True)
class AtomRows:
    """The rows of a span by atom. All columns but the first have shape (n_atoms,)."""

    #: places of rows in the span, in the order of (atom, row), shape (n_rows,)
    order: NDArray[np.int32]
    #: where the rows of each atom start in it, and how many there are
    starts: Ints
    counts: Ints
    #: places of the first and the last row, the last -1 for an atom without rows
    first: NDArray[np.int32]
    last: NDArray[np.int32]

    def find(self, atom: Ints, row: Ints) -> Ints:
        """Find the position in `order` of the first row of each atom at or after a given row, shape (n,)."""
        atoms, numbers = np.unique(atom, return_inverse=True)
        starts, counts, width = self.starts[atoms], self.counts[atoms], len(self.order) + 1
        keys = np.repeat(atoms * width, counts) + self.order[ranges(starts, counts)]
        skipped: Ints = starts - (np.cumsum(counts) - counts)
        return np.searchsorted(keys, atom * width + row) + skipped[numbers]

    def tenures(self, first: Ints, atom: Ints, row: Ints, value: Ints) -> tuple[Codes, Ints, Ints, Ints]:
        """Divide the rows of atoms whose value changes into stretches of one value.

        Args:
            first: value of every atom before the changes, shape (n_atoms,).
            atom: atom of each change, in order of time, at least one.
            row: first row with the new value, or the number of rows if the change comes after all rows.
            value: new value of each change.

        Returns:
            The places of the rows, then for each stretch the number of its rows, its atom and its value.
        """
        # The previous value counts as a change in row 0, before its atom's other changes, in order of time.
        changed = np.unique(atom)
        before = changed, np.zeros(len(changed), np.int64), first[changed]
        atom, row, value = (np.concatenate(pair) for pair in zip(before, (atom, row, value), strict=True))
        order = np.argsort(atom, kind="stable")
        atom, row, value = atom[order], row[order], value[order]
        starts = self.find(atom, row)
        stops = np.where(np.diff(atom, append=-1), (self.starts + self.counts)[atom], np.roll(starts, -1))
        return self.order[ranges(starts, stops - starts)], stops - starts, atom, value


def rows_by_atom(rows: SliceRows, span: slice, n_atoms: int) -> AtomRows:
    """Sort the rows of a span, at least one, by their atoms, once for all policies."""

    def order_rows() -> AtomRows:
        codes = rows.column("atom", span)
        counts = np.bincount(codes, minlength=n_atoms)
        # numpy sorts integers of 16 bits in one pass per byte.
        order = np.argsort(codes.astype(np.uint16) if n_atoms <= 1 << 16 else codes, kind="stable").astype(np.int32)
        starts = np.cumsum(counts) - counts
        first, last = (order.take(places, mode="clip") for places in (starts, starts + counts - 1))
        return AtomRows(order, starts, counts, first, np.where(counts > 0, last, np.int32(-1)))

    return rows.once(("by atom", span.start, span.stop), order_rows)


def weights_of(rows: SliceRows, span: slice) -> Floats | float:
    """Read the weight of some rows in micro-units, as one number if all have the same weight."""
    constant = rows.constant("weight")
    return rows.column("weight", span) if constant is None else float(constant)


@dataclass(frozen=True, eq=False)
class Groups:
    """Counts by bundle, answering broker and client class, in columns of shape (n_groups,)."""

    #: start of the balance cell, µs, 0 if cells were added up
    cell_us: int
    #: number of the registry epoch
    epoch: int
    unit: Ints
    broker: Ints
    client: Ints
    lookups: Floats
    #: micro-units
    weight: Floats
    #: whether these are sums already, with each key once and keys ascending
    is_sum: bool = False


def added_up(groups: Sequence[Groups]) -> Groups:
    """Add groups of one registry epoch up, in their order. There is at least one group."""
    if len(groups) == 1 and groups[0].is_sum:
        return groups[0]
    names = ("unit", "broker", "client", "lookups", "weight")
    unit, broker, client, lookups, weight = (
        np.concatenate([getattr(group, name) for group in groups]) for name in names
    )
    if len(unit):
        pairs = column_keys(unit).by(broker, size=int(broker.max()) + 2, low=-1)
        # Few of the possible pairs occur, so the keys with clients stay small.
        keys = pairs.compact().by(client, size=int(client.max()) + 1)
        (unit, broker, client), (lookups, weight) = keys.sum_values(lookups, weight)
    return Groups(0, groups[0].epoch, unit, broker, client, lookups, weight, is_sum=True)


class GroupSums:
    """The groups of a replay as they are counted. Without `by`, they are added up whenever many are held.

    So the memory grows neither with the log nor with the length of a day. With `by`, every cell keeps its groups.
    """

    def __init__(self, run: RunPlan) -> None:
        #: by registry epoch
        self._sums: dict[int, Groups] = {}
        #: not yet added up
        self._recent: list[Groups] = []
        self._recent_rows = 0
        #: number of rows at which they are added up, at least the number of rows in the sums they are added to
        self._many = _MANY_ROWS
        self._is_by_cell = bool(run.by)

    def add(self, group: Groups) -> None:
        """Add counts."""
        self._recent.append(group)
        self._recent_rows += len(group.unit)
        if self._recent_rows > self._many and not self._is_by_cell:
            self.settle()

    def settle(self) -> None:
        """Add up the held groups, unless `by` needs them by cell."""
        if self._is_by_cell:
            return
        by_epoch: dict[int, list[Groups]] = {}
        for group in self._recent:
            by_epoch.setdefault(group.epoch, []).append(group)
        # An epoch that is over is not added up again, since a log has many epochs and few of them are current.
        for epoch, groups in by_epoch.items():
            self._sums[epoch] = added_up([self._sums[epoch], *groups] if epoch in self._sums else groups)
        self._recent, self._recent_rows = [], 0
        self._many = max(_MANY_ROWS, sum(len(self._sums[epoch].unit) for epoch in by_epoch))

    @property
    def all(self) -> Sequence[Groups]:
        """All held groups, sums first, by registry epoch."""
        return [*(group for _, group in sorted(self._sums.items())), *self._recent]


@dataclass(slots=True)
class _BrokerTime:
    registered: NDArray[np.bool_]
    known_s: Floats
    overloaded_s: Floats


class _ServedBy(NamedTuple):
    """The weight of one cell, micro-units, by broker and share of the senders, in columns of shape (n_pairs,)."""

    #: (1 + broker) x shares + share, ascending
    keys: NDArray[np.int32]
    micro: Floats


class CellLedger:
    """Broker-time by balance cell, in which brokers are registered, have a known usage, or are overloaded."""

    def __init__(self, cluster: ClusterPlan, run: RunPlan) -> None:
        self._run = run
        self._n_brokers = len(cluster.timeline.roster)
        #: share of the senders of each unit, shape (n_units,)
        self._share = cluster.senders.share
        self._n_shares = int(self._share.max(initial=-1)) + 1
        self._times: dict[int, _BrokerTime] = {}
        #: cell and registered brokers of the last tick. Most ticks have the same cell and the same array as the tick
        #: before, since only a registry epoch brings a new array.
        self._last: tuple[int, NDArray[np.bool_]] | None = None
        self._served: dict[int, _ServedBy] = {}

    def add(self, start_us: int, end_us: int, registered: NDArray[np.bool_], usage: Floats | None) -> None:
        """Add one tick. `usage` is None if it has no meaning."""
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

    def serve(self, group: Groups) -> None:
        """Add the weight that each broker served by the groups of one cell."""
        self._add_served(self._served, group)

    def _add_served(self, served: dict[int, _ServedBy], group: Groups) -> None:
        size = (self._n_brokers + 1) * self._n_shares
        keys = (group.broker + 1) * self._n_shares + self._share[group.unit]
        micro = np.bincount(keys, weights=group.weight, minlength=size).astype(np.float64)
        if group.cell_us in served:
            before = served[group.cell_us]
            micro[before.keys] += before.micro
        # Few of the pairs that could be do occur, and cells are held for a whole log.
        keys = np.flatnonzero(micro)
        served[group.cell_us] = _ServedBy(keys.astype(np.int32), micro[keys])

    def _find_served(self, groups: Sequence[Groups]) -> Mapping[int, _ServedBy]:
        """Map the start of each cell to its served weight, counted from these groups if `serve` was not called."""
        if self._served:
            return self._served
        served: dict[int, _ServedBy] = {}
        for group in groups:
            self._add_served(served, group)
        return served

    def cells(self, groups: Sequence[Groups], *, is_known: bool) -> Cells:
        """Combine broker-time and the served weight.

        Args:
            groups: give the served weight if `serve` was not called.
            is_known: whether usage has a meaning.
        """
        starts = sorted(self._times)
        row_of = {start: row for row, start in enumerate(starts)}
        shape = (len(starts), self._n_brokers)
        served = np.zeros(shape)
        for start, by in self._find_served(groups).items():
            # -1 is no broker, so the first sum is left out.
            brokers = np.bincount(by.keys // self._n_shares, weights=by.micro, minlength=self._n_brokers + 1)
            served[row_of[start]] = brokers[1:]
        times = [self._times[start] for start in starts]
        return Cells(
            start=np.array(starts, dtype=np.int64),
            served=served / MICRO,
            registered=np.array([time.registered for time in times], dtype=bool).reshape(shape),
            known_s=np.array([time.known_s for time in times]).reshape(shape) if is_known else None,
            overloaded_s=np.array([time.overloaded_s for time in times]).reshape(shape) if is_known else None,
        )

    def without(self, cells: Cells, groups: Sequence[Groups]) -> Iterator[Cells | None]:
        """Yield the cells without the traffic of one share of the senders after the other, None of one without any."""
        row_of = {start: row for row, start in enumerate(cells.start.tolist())}
        shape = (len(row_of), self._n_brokers + 1, self._n_shares)
        micro = np.zeros(shape)
        for start, by in self._find_served(groups).items():
            if start in row_of:
                micro[row_of[start]].reshape(-1)[by.keys] = by.micro
        total = micro.sum(axis=2)
        for share in range(self._n_shares):
            lost = micro[:, :, share]
            yield replace(cells, served=(total - lost)[:, 1:] / MICRO) if lost.any() else None


def check_by(by: Sequence[str], balance_us: int) -> None:
    """Refuse dimensions by which demand cannot be divided."""
    for name in by:
        if name not in BY_DIMENSIONS:
            right = f": demand can be divided by {', '.join(BY_DIMENSIONS)}"
            raise SettingsError(Argument("by", name), right)
    if "hour" in by and _HOUR_US % balance_us:
        needed = f": needs evaluation.balance_s to divide 3600; it is {balance_us // MICRO}"
        raise SettingsError(Argument("by", "hour"), needed)


@dataclass(frozen=True)
class _DemandPart:
    units: Mask | None = None
    clients: Mask | None = None
    hour: int | None = None

    def of(self, group: Groups) -> Groups | None:
        """Select the counts of a group that belong to the part, None if its cell is in another hour."""
        if self.hour is not None:
            return group if group.cell_us // _HOUR_US == self.hour else None
        if self.units is not None:
            mask = self.units[group.unit]
        elif self.clients is not None:
            mask = self.clients[group.client]
        else:
            return group
        names = ("unit", "broker", "client", "lookups", "weight")
        return replace(group, **{name: getattr(group, name)[mask] for name in names})


class ChangeRecord(NamedTuple):
    """One change of ownership with the facts that metrics need."""

    unit: int
    ts_us: int
    source: int
    broker: int
    cause: str
    decided: bool
    weight: float
    #: name of the bundle at that moment, which lies in `unit`
    path: str
    #: number of the cluster's event that took the bundle from its last owner, -1 for none
    event: int = -1


@dataclass(frozen=True)
class Counted:
    """Everything that was counted in one replay."""

    cluster: ClusterPlan
    run: RunPlan
    #: by number of the registry epoch
    rosters: Sequence[Roster]
    groups: Sequence[Groups]
    cells: CellLedger
    #: None for the logged choice
    changes: Sequence[ChangeRecord] | None
    #: lookups answered with a logged broker, and answered as logged, shape (n_bundles,)
    logged: Floats
    agreed: Floats
    #: whether usage has a meaning, since capacities are given
    has_usage: bool

    @cached_property
    def batches(self) -> list[Batch]:
        """The whole demand, one batch per registry epoch."""
        return self._build_batches(_DemandPart())

    def parts(self) -> Iterator[tuple[By, list[Batch], list[Batch | None]]]:
        """Yield name, batches and reduced batches of the whole demand, then of every part that `by` names.

        A reduced batch is the cells of the last batch without one share of senders, None if that makes no difference.
        """
        yield (), self.batches, self._remove_shares(_DemandPart(), self.batches[-1])
        for dimension in self.run.by:
            for value, part in self._iter_parts_by(dimension):
                batches = self._build_batches(part)
                yield ((dimension, value),), batches, self._remove_shares(part, batches[-1])

    def _remove_shares(self, part: _DemandPart, last: Batch) -> list[Batch | None]:
        rest = self.cells.without(last.cells, self._select_groups(part))
        return [None if cells is None else replace(last, cells=cells) for cells in rest]

    def _select_groups(self, part: _DemandPart) -> list[Groups]:
        return [subset for group in self.groups if (subset := part.of(group)) is not None]

    def _iter_parts_by(self, dimension: str) -> Iterator[tuple[str, _DemandPart]]:
        """Yield the parts of one dimension, sorted by their names. Demand without a value is in no part."""
        if dimension == "hour":
            for hour in sorted({group.cell_us // _HOUR_US for group in self.groups}):
                at = moment_at(hour * 3600 * US_PER_S)
                yield at.strftime("%Y-%m-%dT%H:00Z"), _DemandPart(hour=hour)
            return
        senders = self.cluster.senders
        namespaces = [senders.namespaces[number] for number in senders.namespace.tolist()]
        names: list[str | None]
        if dimension == "rack":
            names = [client.properties.get("rack") for client in self.cluster.clients]
        else:
            names = [name.partition("/")[0] if dimension == "tenant" else name for name in namespaces]
        for value in sorted({name for name in names if name is not None}):
            mask = np.array([name == value for name in names])
            yield value, (_DemandPart(clients=mask) if dimension == "rack" else _DemandPart(units=mask))

    def _build_batches(self, part: _DemandPart) -> list[Batch]:
        groups = self._select_groups(part)
        # Usage belongs to a whole broker, so a part of its bundles or clients does not have one.
        cells = self.cells.cells(groups, is_known=self.has_usage and part.units is None and part.clients is None)
        if part.hour is not None:
            of_hour = cells.start // _HOUR_US == part.hour
            times = (None if column is None else column[of_hour] for column in (cells.known_s, cells.overloaded_s))
            cells = Cells(cells.start[of_hour], cells.served[of_hour], cells.registered[of_hour], *times)
        nothing = np.zeros_like(cells.served)
        no_usage = None if cells.known_s is None else nothing
        no_cells = Cells(cells.start, nothing, np.zeros_like(cells.registered), no_usage, no_usage)
        # Agreement is counted by bundle only, so it is not reported by rack and by hour.
        is_compared = part.clients is None and part.hour is None
        every = np.ones(len(self.logged), dtype=bool) if part.units is None else part.units
        batches = []
        epochs = sorted({group.epoch for group in groups}) or [0]
        for epoch in epochs:
            # Cells, changes and agreement are counted over all epochs, so only the last batch has them.
            is_last = epoch == epochs[-1]
            compared = every & (is_last and is_compared)
            batches.append(
                Batch(
                    cluster=self.cluster.name,
                    brokers=self.rosters[epoch],
                    bundles=self.cluster.units[0],
                    clients=self.cluster.clients,
                    served=_merge_served([group for group in groups if group.epoch == epoch]),
                    logged=np.where(compared, self.logged, 0.0),
                    agreed=np.where(compared, self.agreed, 0.0),
                    changes=self._collect_changes(part, is_last=is_last),
                    cells=cells if is_last else no_cells,
                    topology=self.run.topology,
                    namespaces=self.run.namespaces,
                    bytes_per_weight=self.run.bytes_per_weight,
                    window_s=self.run.window_s,
                    events=self.cluster.timeline.event_causes,
                    epoch=epoch,
                )
            )
        return batches

    def _collect_changes(self, part: _DemandPart, *, is_last: bool) -> OwnerChanges | None:
        """Collect the changes of owner in a part, None for a part of clients, since only bundles have owners."""
        if self.changes is None or part.clients is not None:
            return None
        changes = self.changes if is_last else ()
        if part.units is not None:
            changes = [change for change in changes if part.units[change.unit]]
        if part.hour is not None:
            changes = [change for change in changes if change.ts_us // _HOUR_US == part.hour]
        # Names of bundles become numbers, in order of their first change.
        numbers = {path: number for number, path in enumerate(dict.fromkeys(change.path for change in changes))}
        return OwnerChanges(
            bundle=np.array([change.unit for change in changes], dtype=np.int64),
            ts=np.array([change.ts_us for change in changes], dtype=np.int64),
            source=np.array([change.source for change in changes], dtype=np.int64),
            broker=np.array([change.broker for change in changes], dtype=np.int64),
            cause=np.array([change.cause for change in changes], dtype=object),
            decided=np.array([change.decided for change in changes], dtype=bool),
            weight=np.array([change.weight for change in changes], dtype=np.float64),
            path=np.array([numbers[change.path] for change in changes], dtype=np.int64),
            event=np.array([change.event for change in changes], dtype=np.int64),
        )


def _merge_served(groups: Sequence[Groups]) -> Served:
    if not groups:
        no_codes, nothing = np.empty(0, np.int64), np.empty(0)
        return Served(no_codes, no_codes, no_codes, nothing, nothing)
    total = added_up(groups)
    return Served(total.unit, total.broker, total.client, total.lookups, total.weight / MICRO)
