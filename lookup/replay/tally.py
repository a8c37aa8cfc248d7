"""Counts what a replay did, cell by cell, until the metrics' batches are all that is left of the log.

The walk says after every tick which broker owns each atom; here the rows of whole stretches are then counted at once,
by bundle, answering broker and client class. No row is touched in Python.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from lookup.engine.ledger import MICRO
from lookup.model.batch import Cells
from lookup.replay.ordering import DayRows
from lookup.replay.plan import ClusterPlan, RunPlan

__all__ = ["CellLedger", "ChangeRecord", "Groups", "OwnerTally", "compacted", "grouped"]

Ints = NDArray[np.int64]
Floats = NDArray[np.float64]
#: Keys are counted into an array where that has at most this many times as many places as there are rows.
_SPARSE = 16


@dataclass(frozen=True, eq=False)
class Groups:
    """Counts of one stretch of ticks in one balance cell; columns of shape (n_groups,)."""

    #: start of the balance cell, µs
    cell_us: int
    #: number of the roster epoch the stretch lies in
    epoch: int
    unit: Ints
    broker: Ints
    client: Ints
    lookups: Floats
    #: micro-units
    weight: Floats


@dataclass(frozen=True, slots=True)
class ChangeRecord:
    """One change of ownership with what metrics want to know of it."""

    unit: int
    ts_us: int
    source: int
    broker: int
    cause: str
    decided: bool
    weight: float


def grouped(keys: Ints, weights: Floats | float, n_keys: int) -> tuple[Ints, Floats, Floats]:
    """Return the distinct keys, how often each occurs, and the sum of its weights.

    Args:
        keys: in [0, n_keys), shape (n_rows,).
        weights: shape (n_rows,), or one number for every row.
    """
    if n_keys > _SPARSE * max(len(keys), 1 << 16):
        found, keys = np.unique(keys, return_inverse=True)
        counts, places = np.bincount(keys, minlength=len(found)), np.arange(len(found))
    else:
        counts = np.bincount(keys, minlength=n_keys)
        found = places = np.flatnonzero(counts)
    sums = counts * weights if isinstance(weights, float) else np.bincount(keys, weights=weights, minlength=len(counts))
    return found, counts[places].astype(np.float64), sums[places].astype(np.float64)


def compacted(codes: Ints) -> tuple[Ints, Ints]:
    """Number the codes that occur; return these codes, ascending, and each row's number."""
    if int(codes.max()) > _SPARSE * max(len(codes), 1 << 16):
        found, places = np.unique(codes, return_inverse=True)
        return found, places
    occurs = np.zeros(int(codes.max()) + 1, dtype=bool)
    occurs[codes] = True
    numbers = np.cumsum(occurs) - 1
    return np.flatnonzero(occurs), numbers[codes]


class CellLedger:
    """Broker-time by balance cell: who was registered, whose usage was known, who was overloaded."""

    def __init__(self, run: RunPlan, n_brokers: int) -> None:
        self._run = run
        self._n_brokers = n_brokers
        self._cells: dict[int, tuple[NDArray[np.bool_], Floats, Floats]] = {}
        self._served: dict[int, Floats] = {}

    def add(self, start_us: int, end_us: int, registered: NDArray[np.bool_], usage: Floats) -> None:
        """Add one tick."""
        cell = start_us // self._run.balance_us * self._run.balance_us
        held = self._cells.get(cell)
        if held is None:
            held = np.zeros(self._n_brokers, bool), np.zeros(self._n_brokers), np.zeros(self._n_brokers)
            self._cells[cell] = held
        known = registered & ~np.isnan(usage)
        held[0][registered] = True
        held[1][known] += (end_us - start_us) / MICRO
        held[2][known & (usage > self._run.overload_threshold)] += (end_us - start_us) / MICRO

    def serve(self, start_us: int, micro: Floats) -> None:
        """Add what each broker served in a tick, micro-units, shape (n_brokers,), where groups do not tell."""
        cell = start_us // self._run.balance_us * self._run.balance_us
        held = self._served.get(cell)
        self._served[cell] = micro if held is None else held + micro

    def cells(self, groups: Sequence[Groups], *, is_known: bool) -> Cells:
        """Put broker-time and the weight served together."""
        starts = sorted(self._cells)
        place = {start: row for row, start in enumerate(starts)}
        served = np.zeros((len(starts), self._n_brokers))
        for start, micro in self._served.items():
            served[place[start]] = micro
        for group in groups if not self._served else ():
            answered = group.broker >= 0
            sums = np.bincount(group.broker[answered], weights=group.weight[answered], minlength=self._n_brokers)
            served[place[group.cell_us]] += sums
        shape = (len(starts), self._n_brokers)
        columns = [np.array([self._cells[start][part] for start in starts]).reshape(shape) for part in range(3)]
        return Cells(
            start=np.array(starts, dtype=np.int64),
            served=served / MICRO,
            registered=columns[0].astype(bool),
            known_s=columns[1] if is_known else None,
            overloaded_s=columns[2] if is_known else None,
        )


class OwnerTally:
    """Counts rows under exclusive ownership, from the owners of the atoms at the end of each tick."""

    def __init__(self, cluster: ClusterPlan, run: RunPlan) -> None:
        self.groups: list[Groups] = []
        n_units = len(cluster.units[0])
        self.logged, self.agreed = np.zeros(n_units), np.zeros(n_units)
        self._run = run
        self._unit = cluster.units[1]
        self._n_clients = max(len(cluster.clients), 1)
        self._has_log = any(cluster.words.by_broker.values())
        self._pairs: dict[tuple[int, int], int] = {}
        nobody = np.array([self._pair(unit, -1) for unit in range(n_units)], dtype=np.int64)
        #: key of each atom: number of its pair (unit, owner) times the client classes
        self._keys = nobody[self._unit]
        self._nobody = nobody
        self._owners = np.full(len(self._unit), -1, dtype=np.int16)
        #: rows [low, high) that the owners of this moment serve, and those of them that came too early
        self._low = self._high = 0
        self._early: list[Ints] = []
        self._row_keys: list[Ints] = []
        self._weights: list[Floats | float] = []
        self._cell, self._epoch = -1, 0

    def set_owner(self, atoms: slice, broker: int, rows: DayRows) -> None:
        """Note the owner of the atoms of one bundle, -1 for none; `rows` is the day of the ticks so far."""
        self._settle(rows)
        self._keys[atoms] = self._pair(int(self._unit[atoms.start]), broker)
        self._owners[atoms] = broker

    def begin(self, rows: DayRows, start_us: int, epoch: int) -> None:
        """Begin a tick; what was held of another cell or roster epoch is counted first."""
        cell = start_us // self._run.balance_us * self._run.balance_us
        if (cell, epoch) != (self._cell, self._epoch):
            self.flush(rows)
            self._cell, self._epoch = cell, epoch

    def end(self, low: int, high: int, early: Ints) -> None:
        """End a tick whose rows are [low, high); `early` are rows that came before their bundle had its owner."""
        if self._low == self._high:
            self._low = low
        self._high = high
        if len(early):
            self._early.append(early)

    def flush(self, rows: DayRows) -> None:
        """Count what is held of the current cell; `rows` is the day it came from."""
        self._settle(rows)
        if not self._row_keys:
            return
        keys = np.concatenate(self._row_keys)
        weights = _weights_of(self._weights)
        found, lookups, weight = grouped(keys, weights, len(self._pairs) * self._n_clients)
        pairs = np.array(list(self._pairs), dtype=np.int64)[found // self._n_clients]
        client = found % self._n_clients
        self.groups.append(Groups(self._cell, self._epoch, pairs[:, 0], pairs[:, 1], client, lookups, weight))
        self._row_keys, self._weights = [], []

    def _settle(self, rows: DayRows) -> None:
        """Give the rows since the last change of owners the keys of their bundles' owners."""
        if self._low == self._high:
            return
        span = slice(self._low, self._high)
        atoms = rows.column("atom", span)
        keys = self._keys[atoms]
        early = np.concatenate(self._early) - self._low if self._early else np.empty(0, np.int64)
        keys[early] = self._nobody[self._unit[atoms[early]]]
        if self._has_log:
            self._compare(rows.column("broker", span), self._owners[atoms], self._unit[atoms], early)
        if self._n_clients > 1:
            keys += rows.column("properties", span)
        constant = rows.constant("weight")
        self._row_keys.append(keys)
        self._weights.append(rows.column("weight", span) if constant is None else float(constant))
        self._low = self._high
        self._early = []

    def _compare(self, logged: NDArray[np.int16], owners: NDArray[np.int16], units: Ints, early: Ints) -> None:
        owners[early] = -1
        has_both = (logged != -1) & (owners >= 0)
        self.logged += np.bincount(units[has_both], minlength=len(self.logged))
        self.agreed += np.bincount(units[has_both & (logged == owners)], minlength=len(self.agreed))

    def _pair(self, unit: int, broker: int) -> int:
        return self._pairs.setdefault((unit, broker), len(self._pairs)) * self._n_clients


def _weights_of(held: Sequence[Floats | float]) -> Floats | float:
    # Within a day a column either varies or holds one value.
    first = held[0]
    return first if isinstance(first, float) else np.concatenate([part for part in held if not isinstance(part, float)])
