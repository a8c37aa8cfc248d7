"""What was counted: groups of lookups, and broker-time by balance cell."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from lookup.engine.ledger import MICRO
from lookup.model.batch import Cells
from lookup.replay.counts import compacted, summed
from lookup.replay.plan import RunPlan

__all__ = ["CellLedger", "GroupSums", "Groups", "added_up"]

Ints = NDArray[np.int64]
Floats = NDArray[np.float64]
#: Groups of so many rows at least are added up: more leave a core's cache, fewer are added up more often than need be.
_MANY_ROWS = 1 << 17


@dataclass(frozen=True, eq=False)
class Groups:
    """Counts by bundle, answering broker and client class; columns of shape (n_groups,)."""

    #: start of the balance cell, µs; 0 where cells were added up
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


class CellLedger:
    """Broker-time by balance cell: who was registered, whose usage was known, who was overloaded."""

    def __init__(self, run: RunPlan, n_brokers: int) -> None:
        self._run = run
        self._n_brokers = n_brokers
        self._cells: dict[int, tuple[NDArray[np.bool_], Floats, Floats]] = {}
        self._served: dict[int, Floats] = {}

    def add(self, start_us: int, end_us: int, registered: NDArray[np.bool_], usage: Floats | None) -> None:
        """Add one tick; `usage` is None where it means nothing."""
        cell = start_us // self._run.balance_us * self._run.balance_us
        held = self._cells.get(cell)
        if held is None:
            held = np.zeros(self._n_brokers, bool), np.zeros(self._n_brokers), np.zeros(self._n_brokers)
            self._cells[cell] = held
        np.logical_or(held[0], registered, out=held[0])
        if usage is None:
            return
        known = registered & ~np.isnan(usage)
        held[1][known] += (end_us - start_us) / MICRO
        held[2][known & (usage > self._run.overload_threshold)] += (end_us - start_us) / MICRO

    def serve(self, start_us: int, micro: Floats) -> None:
        """Add what each broker served in a tick, micro-units, shape (n_brokers,), where groups do not tell."""
        cell = start_us // self._run.balance_us * self._run.balance_us
        held = self._served.get(cell)
        self._served[cell] = micro if held is None else held + micro

    def serve_groups(self, group: Groups) -> None:
        """Add what each broker served by the groups of one cell."""
        answered = group.broker >= 0
        served = np.bincount(group.broker[answered], group.weight[answered], minlength=self._n_brokers)
        self.serve(group.cell_us, served.astype(np.float64))

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


class GroupSums:
    """Groups as they are counted; where nothing is told apart by cell they are added up whenever many are held.

    So what is held grows neither with the log nor with the length of a day. Where `--by` tells demand apart,
    every cell keeps its groups.
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
        """Add up what is held, where cells are not told apart."""
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


def added_up(groups: Sequence[Groups]) -> Groups:
    """Add groups of one registry epoch up, in their order; there is at least one."""
    if len(groups) == 1 and groups[0].is_sum:
        return groups[0]
    unit, broker, client, lookups, weight = (
        np.concatenate([getattr(group, name) for group in groups])
        for name in ("unit", "broker", "client", "lookups", "weight")
    )
    if len(unit):
        width, n_clients = int(broker.max()) + 2, int(client.max()) + 1
        # Few of the pairs that could be do occur, so that the keys that tell clients apart stay small.
        pairs, pair = compacted(unit * width + broker + 1)
        keys, (lookups, weight) = summed(pair * n_clients + client, lookups, weight)
        held = pairs[keys // n_clients]
        unit, broker, client = held // width, held % width - 1, keys % n_clients
    return Groups(0, groups[0].epoch, unit, broker, client, lookups, weight, is_sum=True)
