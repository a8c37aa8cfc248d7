"""Turn counts into the batches metrics see: the whole demand of a replay, and the parts of it that `by` asks for."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from lookup.engine.ledger import MICRO
from lookup.errors import Argument, SettingsError
from lookup.model.batch import Batch, Cells, OwnerChanges, Served, Transitions
from lookup.model.broker import Roster
from lookup.model.time import US_PER_S, moment_at
from lookup.replay.cells import CellLedger, Groups, added_up
from lookup.replay.plan import ClusterPlan, RunPlan
from lookup.replay.tally import ChangeRecord

__all__ = ["BY_DIMENSIONS", "By", "Counted", "check_by"]

#: The dimensions by which demand can be told apart.
BY_DIMENSIONS = ("tenant", "namespace", "rack", "hour")
By = tuple[tuple[str, str], ...]
Floats = NDArray[np.float64]
Mask = NDArray[np.bool_]
_HOUR_US = 3_600_000_000


def check_by(by: Sequence[str], balance_us: int) -> None:
    """Refuse dimensions by which demand cannot be told apart.

    Raises:
        SettingsError: naming the dimension and what would be right.
    """
    for name in by:
        if name not in BY_DIMENSIONS:
            known = f": demand can be told apart by {', '.join(BY_DIMENSIONS)}"
            raise SettingsError(Argument("by", name), known)
    if "hour" in by and _HOUR_US % balance_us:
        needed = f": needs evaluation.balance_s to divide 3600; it is {balance_us // MICRO}"
        raise SettingsError(Argument("by", "hour"), needed)


@dataclass(frozen=True)
class _Part:
    """A part of the demand: some bundles, some clients, or one hour."""

    units: Mask | None = None
    clients: Mask | None = None
    hour: int | None = None

    def of(self, group: Groups) -> Groups | None:
        """Return the counts of a group that belong to the part, None if its cell is of another hour."""
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


@dataclass(frozen=True)
class Counted:
    """Everything that was counted in one replay."""

    cluster: ClusterPlan
    run: RunPlan
    #: by number of the registry epoch
    rosters: Sequence[Roster]
    groups: Sequence[Groups]
    cells: CellLedger
    #: None under shared ownership and for the logged choice
    changes: Sequence[ChangeRecord] | None
    #: lookups answered with a logged broker, and answered as logged, shape (n_bundles,)
    logged: Floats
    agreed: Floats
    #: whether usage means something: capacities are given
    has_usage: bool
    #: lookups in transit, the number of a state in place of the broker; None if bundles change hands at once
    moving: Sequence[Groups] | None = None

    @cached_property
    def batches(self) -> list[Batch]:
        """Return the whole demand, one batch per registry epoch."""
        return self._batches(_Part())

    def parts(self) -> Iterator[tuple[By, list[Batch]]]:
        """Yield the whole demand, then every part `by` asks for, with its name."""
        yield (), self.batches
        for dimension in self.run.by:
            for value, part in self._parts_by(dimension):
                yield ((dimension, value),), self._batches(part)

    def _parts_by(self, dimension: str) -> Iterator[tuple[str, _Part]]:
        """Yield the parts of one dimension, sorted by their names; what has no value is in no part."""
        if dimension == "hour":
            for hour in sorted({group.cell_us // _HOUR_US for group in self.groups}):
                at = moment_at(hour * 3600 * US_PER_S)
                yield at.strftime("%Y-%m-%dT%H:00Z"), _Part(hour=hour)
            return
        namespaces = [name.rpartition("/")[0] for name in self.cluster.units[0]]
        names: list[str | None]
        if dimension == "rack":
            names = [client.properties.get("rack") for client in self.cluster.clients]
        else:
            names = [name.partition("/")[0] if dimension == "tenant" else name for name in namespaces]
        for value in sorted({name for name in names if name is not None}):
            mask = np.array([name == value for name in names])
            yield value, (_Part(clients=mask) if dimension == "rack" else _Part(units=mask))

    def _batches(self, part: _Part) -> list[Batch]:
        groups = [kept for group in self.groups if (kept := part.of(group)) is not None]
        # Usage is a broker's as a whole: no part of its bundles or clients has one.
        cells = self.cells.cells(groups, is_known=self.has_usage and part.units is None and part.clients is None)
        if part.hour is not None:
            of_hour = cells.start // _HOUR_US == part.hour
            times = (None if column is None else column[of_hour] for column in (cells.known_s, cells.overloaded_s))
            cells = Cells(cells.start[of_hour], cells.served[of_hour], cells.registered[of_hour], *times)
        nothing = np.zeros_like(cells.served)
        no_usage = None if cells.known_s is None else nothing
        no_cells = Cells(cells.start, nothing, np.zeros_like(cells.registered), no_usage, no_usage)
        # Agreement is counted by bundle only: there is none to report by rack and by hour.
        is_compared = part.clients is None and part.hour is None
        every = np.ones(len(self.logged), dtype=bool) if part.units is None else part.units
        batches = []
        epochs = sorted({group.epoch for group in groups}) or [0]
        for epoch in epochs:
            # Cells, changes and agreement are counted over all epochs: the last batch brings them, once.
            is_last = epoch == epochs[-1]
            compared = every & (is_last and is_compared)
            transitions = None
            if self.moving is not None:
                of_epoch = (group for group in self.moving if group.epoch == epoch)
                moving = _served([kept for group in of_epoch if (kept := part.of(group)) is not None])
                transitions = Transitions(moving.bundle, moving.broker, moving.client, moving.lookups, moving.weight)
            batches.append(
                Batch(
                    cluster=self.cluster.name,
                    brokers=self.rosters[epoch],
                    bundles=self.cluster.units[0],
                    clients=self.cluster.clients,
                    served=_served([group for group in groups if group.epoch == epoch]),
                    logged=np.where(compared, self.logged, 0.0),
                    agreed=np.where(compared, self.agreed, 0.0),
                    changes=self._changes(part, is_last=is_last),
                    cells=cells if is_last else no_cells,
                    topology=self.run.topology,
                    bytes_per_weight=self.run.bytes_per_weight,
                    window_s=self.run.window_s,
                    transitions=transitions,
                    events=self.cluster.timeline.event_causes,
                    epoch=epoch,
                )
            )
        return batches

    def _changes(self, part: _Part, *, is_last: bool) -> OwnerChanges | None:
        """Return the changes of owner in a part, None if it is one of clients: bundles have owners, clients do not."""
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


def _served(groups: Sequence[Groups]) -> Served:
    if not groups:
        no_codes, nothing = np.empty(0, np.int64), np.empty(0)
        return Served(no_codes, no_codes, no_codes, nothing, nothing)
    total = added_up(groups)
    return Served(total.unit, total.broker, total.client, total.lookups, total.weight / MICRO)
