"""From counts to the batches metrics see: the whole demand of a replay, and the parts of it that `--by` asks for."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from lookup.engine.ledger import MICRO
from lookup.errors import SettingsError
from lookup.model.batch import Batch, Cells, OwnerChanges, Served, Transitions
from lookup.model.broker import Roster
from lookup.model.time import US_PER_S, moment_at
from lookup.replay.cells import CellLedger, Groups, added_up
from lookup.replay.plan import ClusterPlan, RunPlan
from lookup.replay.tally import ChangeRecord

__all__ = ["BY_DIMENSIONS", "By", "Counted", "check_by"]

#: What `--by` can tell demand apart by.
BY_DIMENSIONS = ("tenant", "namespace", "rack", "hour")
By = tuple[tuple[str, str], ...]
Floats = NDArray[np.float64]
Mask = NDArray[np.bool_]
_HOUR_US = 3_600_000_000


def check_by(by: Sequence[str], balance_us: int) -> None:
    """Refuse what demand cannot be told apart by.

    Raises:
        SettingsError: naming the dimension and what would be right.
    """
    for name in by:
        if name not in BY_DIMENSIONS:
            raise SettingsError(f"--by {name}: demand can be told apart by {', '.join(BY_DIMENSIONS)}")
    if "hour" in by and _HOUR_US % balance_us:
        raise SettingsError(f"--by hour: needs evaluation.balance_s to divide 3600; it is {balance_us // MICRO}")


@dataclass(frozen=True)
class _Part:
    """A part of the demand: some bundles, some clients, or one hour."""

    units: Mask | None = None
    clients: Mask | None = None
    hour: int | None = None


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
    #: lookups in transit, where the place of a state stands for the broker; None where bundles change hands at once
    moving: Sequence[Groups] | None = None

    def batches(self) -> list[Batch]:
        """Return the whole demand, one batch per registry epoch."""
        return self._batches(_Part())

    def parts(self) -> Iterator[tuple[By, list[Batch]]]:
        """Yield the whole demand, then every part `--by` asks for, with its name."""
        yield (), self.batches()
        for dimension in self.run.by:
            for value, part in self._parts_by(dimension):
                yield ((dimension, value),), self._batches(part)

    def _parts_by(self, dimension: str) -> Iterator[tuple[str, _Part]]:
        if dimension == "hour":
            for hour in sorted({group.cell_us // _HOUR_US for group in self.groups}):
                at = moment_at(hour * 3600 * US_PER_S)
                yield at.strftime("%Y-%m-%dT%H:00Z"), _Part(hour=hour)
            return
        names = self._names_by(dimension)
        for value in sorted({name for name in names if name is not None}):
            mask = np.array([name == value for name in names])
            yield value, (_Part(clients=mask) if dimension == "rack" else _Part(units=mask))

    def _names_by(self, dimension: str) -> list[str | None]:
        if dimension == "rack":
            return [client.properties.get("rack") for client in self.cluster.clients]
        namespaces = [name.rpartition("/")[0] for name in self.cluster.units[0]]
        return [name.partition("/")[0] if dimension == "tenant" else name for name in namespaces]

    def _batches(self, part: _Part) -> list[Batch]:
        groups = [kept for group in self.groups if (kept := _kept(group, part)) is not None]
        cells = self.cells.cells(groups, is_known=self.has_usage and part.units is None and part.clients is None)
        if part.hour is not None:
            cells = _of_hour(cells, part.hour)
        epochs = sorted({group.epoch for group in groups}) or [0]
        return [self._batch(part, groups, cells, (epoch, epoch == epochs[-1])) for epoch in epochs]

    def _batch(self, part: _Part, groups: Sequence[Groups], cells: Cells, place: tuple[int, bool]) -> Batch:
        epoch, is_last = place
        kept = self._units_kept(part) if is_last else np.zeros(len(self.logged), dtype=bool)
        return Batch(
            cluster=self.cluster.name,
            brokers=self.rosters[epoch],
            bundles=self.cluster.units[0],
            clients=self.cluster.clients,
            served=_served([group for group in groups if group.epoch == epoch]),
            logged=np.where(kept, self.logged, 0.0),
            agreed=np.where(kept, self.agreed, 0.0),
            changes=self._changes(part, is_last=is_last),
            cells=cells if is_last else _empty_like(cells),
            topology=self.run.topology,
            bytes_per_weight=self.run.bytes_per_weight,
            window_s=self.run.window_s,
            transitions=self._transitions(part, epoch),
            events=self.cluster.timeline.event_causes,
            epoch=epoch,
        )

    def _transitions(self, part: _Part, epoch: int) -> Transitions | None:
        if self.moving is None:
            return None
        found = _served(
            [kept for group in self.moving if group.epoch == epoch and (kept := _kept(group, part)) is not None]
        )
        return Transitions(found.bundle, found.broker, found.client, found.lookups, found.weight)

    def _units_kept(self, part: _Part) -> Mask:
        # Agreement is counted by bundle only: nothing is said about racks and hours.
        nothing = part.clients is not None or part.hour is not None
        every = np.ones(len(self.logged), dtype=bool) if part.units is None else part.units
        return every & (not nothing)

    def _changes(self, part: _Part, *, is_last: bool) -> OwnerChanges | None:
        if self.changes is None or part.clients is not None:
            return None
        found = self.changes if is_last else ()
        if part.units is not None:
            found = [change for change in found if part.units[change.unit]]
        if part.hour is not None:
            found = [change for change in found if change.ts_us // _HOUR_US == part.hour]
        return _columns(found)


def _kept(group: Groups, part: _Part) -> Groups | None:
    if part.hour is not None:
        return group if group.cell_us // _HOUR_US == part.hour else None
    if part.units is None and part.clients is None:
        return group
    mask = part.units[group.unit] if part.units is not None else _chosen(part.clients, group)
    names = ("unit", "broker", "client", "lookups", "weight")
    return replace(group, **{name: getattr(group, name)[mask] for name in names})


def _chosen(clients: Mask | None, group: Groups) -> Mask:
    return np.ones(len(group.client), dtype=bool) if clients is None else clients[group.client]


def _served(groups: Sequence[Groups]) -> Served:
    if not groups:
        nobody, nothing = np.empty(0, np.int64), np.empty(0)
        return Served(nobody, nobody, nobody, nothing, nothing)
    total = added_up(groups)
    return Served(total.unit, total.broker, total.client, total.lookups, total.weight / MICRO)


def _columns(changes: Sequence[ChangeRecord]) -> OwnerChanges:
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


def _of_hour(cells: Cells, hour: int) -> Cells:
    kept = cells.start // _HOUR_US == hour
    known = (
        None if cells.known_s is None or cells.overloaded_s is None else (cells.known_s[kept], cells.overloaded_s[kept])
    )
    return Cells(cells.start[kept], cells.served[kept], cells.registered[kept], *(known or (None, None)))


def _empty_like(cells: Cells) -> Cells:
    zero = np.zeros_like(cells.served)
    known = None if cells.known_s is None else zero
    return Cells(cells.start, zero, np.zeros_like(cells.registered), known, known)
