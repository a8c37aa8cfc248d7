"""Cut the demand of a cluster into pieces that one broker serves whole, and bound what placements of them can reach.

Under exclusive ownership a piece is what comes for one bundle in one tick, in which a bundle has one owner; the log's
own splits are followed. If policies differ in their bundles a piece is what comes for one atom, which no bundle of any
of them divides. Under shared ownership every lookup is one, and may be answered by odds. Of policies it is known at
most, besides, off which brokers the filters of all of them keep bundles (`reach.py`).
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from itertools import groupby

import numpy as np
from numpy.typing import NDArray

from lookup.engine.ledger import MICRO
from lookup.engine.policy import Policy
from lookup.placement.frontier import (
    Locality,
    Multipliers,
    Reach,
    Stretch,
    crowding,
    evenness,
    split_prices,
    whole_unevenness,
)
from lookup.replay.atoms import BundleMap
from lookup.replay.counted import weights_of
from lookup.replay.days import SliceRows
from lookup.replay.fullness import FullnessWalk
from lookup.replay.grouping import column_keys
from lookup.replay.nearness import Nearness, near_by_distance, near_by_property
from lookup.replay.outcome import POSSIBLE, BoundSums, LocalityBound, MetricSums
from lookup.replay.plan import ClusterPlan, RunPlan
from lookup.replay.reach import ReachWalk, limiting
from lookup.replay.walk import RegistryEpochs, Tick

__all__ = ["Bounding", "PieceWalk"]

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]

#: Figures of balance, in the order of the columns of cells.
_EVENNESS = ("imbalance_max_mean", "imbalance_cv")


@dataclass(frozen=True, eq=False)
class _Pieces:
    """Pieces between two changes of brokers or bundles; columns of shape (n_pieces,)."""

    #: number of the registry epoch, and brokers registered in it
    epoch: int
    registered: NDArray[np.bool_]
    #: brokers that pieces are kept to, None if each may be on any
    reach: Reach | None
    #: how many bundles there have been: more after a split
    born: int
    bundles: Ints
    #: micro-units
    weights: Floats
    #: by figure, what is gained with each of its labels, shape (n_pieces, n_labels), and what counts
    gained: Sequence[Floats]
    counted: Sequence[Floats]


@dataclass(frozen=True, eq=False)
class _Aim:
    """A figure of nearness, and what is bounded by it."""

    nearness: Nearness
    #: near lookups for each unit of what is gained
    scale: float
    #: gained at most, and counted, by unit and by registry epoch
    by_unit: Floats
    by_epoch: Floats
    locality: Locality

    @property
    def name(self) -> tuple[str, str | None]:
        """Return the metric and its key."""
        return self.nearness.metric, self.nearness.key


@dataclass(frozen=True, eq=False)
class _Cell:
    """A cell of time that is not over."""

    start_us: int
    #: at any time in it, shape (n_brokers,)
    registered: NDArray[np.bool_]
    pieces: list[_Pieces] = field(default_factory=list)


@dataclass(frozen=True, eq=False)
class Bounding:
    """What bounds are made with."""

    multipliers: Multipliers
    #: that the bounds are to hold for; without any, each bundle may be on any broker
    policies: Sequence[Policy]


class PieceWalk:
    """Follows the bundles of a cluster over its ticks, and adds up the bounds of its scored cells.

    Args:
        registry: of the walk that this one goes along with.
    """

    def __init__(self, cluster: ClusterPlan, run: RunPlan, registry: RegistryEpochs, bounding: Bounding) -> None:
        multipliers, limited = bounding.multipliers, limiting(bounding.policies)
        self._cluster, self._run, self._registry, self._multipliers = cluster, run, registry, multipliers
        timeline = cluster.timeline
        splits = [split for events in timeline.events.values() for split in events.splits]
        #: the bundles, None if policies differ in them: atoms, which nothing splits, stand for them then
        self._map = None if cluster.words.atoms.rule.counts else cluster.first_bundles()
        #: number of the bundle of each atom, at first that of its unit; children of a split get new ones
        self._numbers = cluster.units[1].copy()
        self._unit_of = list(range(len(cluster.units[0])))
        if self._map is None:
            self._numbers, self._unit_of = np.arange(cluster.words.atoms.count), cluster.units[1].tolist()
        most = len(self._unit_of) + sum(len(children) for _, children in splits)
        #: whether moves are bounded: without owners there are none, a bundle that is split late, when its hand-over has
        #: ended, moves once for all the children that are followed here, and of other bundles a move is another thing
        self._has_moves = self._map is not None and not (run.is_shared or (run.handover_us and splits))
        self._aims = [self._aim(nearness, most) for nearness in self._nearness()]
        self._cell: _Cell | None = None
        #: registry epoch, brokers, first row and sizes of the ticks that are not cut into pieces yet
        self._epoch, self._registered, self._low = 0, registry.registered, 0
        self._reaches = ReachWalk(cluster, run, limited) if limited else None
        #: brokers that units, and bundles by their numbers, may be on now; None if each may be on any
        self._of_units: Reach | None = None
        self._reach: Reach | None = None
        self._sizes: list[int] = []
        self._first_us = 0
        #: by cell, max x brokers and deviation x brokers at least, and weight
        self._cells: list[tuple[float, float, float]] = []
        self._evenness = {metric: np.zeros(len(multipliers.splits)) for metric in _EVENNESS}
        #: None if usage is not known, or reported: that is the same wherever bundles are
        has_usage = cluster.assumed_capacity is None and not run.is_reported
        self._fullness = FullnessWalk(cluster, run) if has_usage else None

    def _nearness(self) -> Iterator[Nearness]:
        clients, rosters = self._cluster.clients, [roster for roster, _ in self._cluster.timeline.epochs]
        for key in sorted({key for client in clients for key in client.properties}):
            yield near_by_property(key, clients, rosters)
        if self._multipliers.farthest_ms:
            yield near_by_distance(clients, rosters, self._run.topology, self._multipliers.farthest_ms)

    def _aim(self, nearness: Nearness, n_bundles: int) -> _Aim:
        return _Aim(
            nearness=nearness,
            scale=self._multipliers.per_ms if nearness.key is None else 1.0,
            by_unit=np.zeros((len(self._cluster.units[0]), 2)),
            by_epoch=np.zeros((1 + len(self._cluster.timeline.epochs), 2)),
            locality=Locality(self._multipliers, len(nearness.gains), n_bundles if self._has_moves else None),
        )

    def begin_slice(self, first: Tick) -> None:
        """Begin the slice that begins with a tick."""
        if self._fullness is not None:
            self._fullness.begin_slice(first)

    def take(self, tick: Tick, *, is_scored: bool) -> None:
        """Take in the next tick; its change of the registry was applied before."""
        if tick.events.splits and self._map is not None:
            self._cut(tick.rows)
            self._split(tick, self._map)
        if tick.events.registry is not None and self._reaches is not None:
            self._cut(tick.rows)
            self._of_units = self._reaches.begin_epoch(*tick.events.registry)
        if tick.events.splits or tick.events.registry is not None:
            units = self._of_units
            self._reach = None if units is None else Reach(units.members, units.of[np.array(self._unit_of)])
        if self._fullness is not None:
            self._fullness.take(tick, self._numbers, self._registry, self._reach, is_scored=is_scored)
        if not is_scored:
            return
        start_us, registered = self._run.cell_of(tick.start_us), self._registry.registered
        if self._cell is None or start_us != self._cell.start_us:
            self._cut(tick.rows)
            self._close()
            self._cell = _Cell(start_us, np.zeros(len(registered), dtype=bool))
        if self._registry.epoch != self._epoch:
            self._cut(tick.rows)
            self._epoch, self._registered = self._registry.epoch, registered
        np.logical_or(self._cell.registered, registered, out=self._cell.registered)
        if tick.high > tick.low:
            self._low = self._low if self._sizes else tick.low
            self._sizes.append(tick.high - tick.low)

    def end_slice(self, rows: SliceRows) -> None:
        """Cut what is left of a slice: the rows of the next one are numbered anew."""
        self._cut(rows)
        if self._fullness is not None:
            self._fullness.end_slice(rows)

    def _split(self, tick: Tick, bundles: BundleMap) -> None:
        for parent, children in tick.events.splits:
            if bundles.split(parent, children):
                for child in filter(bundles.__contains__, children):
                    atoms = bundles.atoms_of(child)
                    self._numbers[atoms] = len(self._unit_of)
                    self._unit_of.append(int(self._cluster.units[1][atoms.start]))

    def _cut(self, rows: SliceRows) -> None:
        """Cut the rows of the ticks since the last cut into pieces."""
        if not self._sizes or self._cell is None:
            return
        span = slice(self._low, self._low + sum(self._sizes))
        bundle = self._numbers[rows.column("atom", span)]
        ticks, self._sizes = np.repeat(np.arange(len(self._sizes)), self._sizes), []
        client, weights = rows.column("properties", span), weights_of(rows, span)
        lookups: Floats | float = 1.0
        if self._run.is_shared:
            # Lookups that weigh and want the same are as good as one, since odds divide them as they like.
            kinds = np.zeros_like(ticks) if isinstance(weights, float) else np.unique(weights, return_inverse=True)[1]
            keys = column_keys(kinds).by(bundle, size=len(self._unit_of)).compacted()
            keys = keys.by(client, size=max(len(self._cluster.clients), 1))
            (_, bundle, client), lookups, weights = keys.counted(weights)
            piece = np.arange(len(bundle))
        else:
            (_, bundle), piece = column_keys(ticks).by(bundle, size=len(self._unit_of)).numbered()
        gained, counted = [], []
        reach = None if self._reach is None else Reach(self._reach.members, self._reach.of[bundle])
        for aim in self._aims:
            amount = weights if aim.nearness.key is None else lookups
            labels = aim.nearness.labels(self._registry.rosters[self._epoch], self._registered)
            gained.append(aim.nearness.gained(piece, client, amount, len(bundle)))
            counted.append(aim.nearness.counted(piece, client, amount, labels, len(bundle), reach))
        micro = np.bincount(piece, weights=np.broadcast_to(weights, piece.shape)).astype(np.float64)
        born = len(self._unit_of)
        pieces = _Pieces(self._epoch, self._registered, reach, born, bundle, micro, gained, counted)
        self._cell.pieces.append(pieces)

    def _close(self) -> None:
        """Add the bounds of the cell that ends."""
        if self._cell is None:
            return
        self._first_us = self._first_us if self._cells else self._cell.start_us
        pieces, n_brokers = self._cell.pieces, int(self._cell.registered.sum())
        if not pieces or not n_brokers:
            self._cells.append((0.0, 0.0, 0.0))
            return
        weights = np.concatenate([each.weights for each in pieces])
        heaviest = 0.0 if self._run.is_shared else float(weights.max())
        least, deviation = evenness(total := float(weights.sum()), heaviest, n_brokers)
        if any(each.reach is not None for each in pieces):
            crowded = crowding(*self._by_set(pieces), total, n_brokers)
            least, deviation = max(least, crowded[0]), max(deviation, crowded[1])
        self._cells.append((least, deviation, total))
        if self._has_moves:
            whole = np.bincount(np.concatenate([each.bundles for each in pieces]), weights=weights).astype(np.float64)
            for metric, left in zip(_EVENNESS, whole_unevenness(whole, least, deviation, n_brokers), strict=True):
                self._evenness[metric] += split_prices(left, self._multipliers.splits)
        for number, aim in enumerate(self._aims):
            self._bring(pieces, number, aim, n_brokers)

    def _by_set(self, pieces: Sequence[_Pieces]) -> tuple[NDArray[np.bool_], Floats]:
        """Return the sets of brokers that the pieces of a cell are kept to, and the weight of those of each set."""
        members, weights = [], []
        for _, group in groupby(pieces, lambda each: each.epoch):
            parts = list(group)
            of_epoch, reach = np.concatenate([each.weights for each in parts]), _joined(parts)
            if not parts[0].registered.any():
                continue  # what came then has no answer
            if reach is None:
                reach = Reach(parts[0].registered[None, :], np.zeros(len(of_epoch), dtype=np.int64))
            members.append(reach.members)
            weights.append(np.bincount(reach.of, weights=of_epoch, minlength=len(reach.members)))
        return np.concatenate(members), np.concatenate(weights)

    def _bring(self, pieces: Sequence[_Pieces], number: int, aim: _Aim, n_brokers: int) -> None:
        """Add the pieces of a cell to a figure of nearness.

        Args:
            number: of the figure.
        """
        stretches, units = [], np.array(self._unit_of)
        # What a slice cut apart is put together first, so that sums do not depend on slices.
        for (epoch, _), group in groupby(pieces, lambda each: (each.epoch, each.born)):
            parts = list(group)
            labels = aim.nearness.labels(self._registry.rosters[epoch], parts[0].registered)
            gained = np.concatenate([each.gained[number] for each in parts])
            bundles = np.concatenate([each.bundles for each in parts])
            reach = _joined(parts)
            if reach is None:
                most = gained[:, np.isin(np.arange(gained.shape[1]), labels)].max(axis=1, initial=0.0)
            else:
                has_label = np.stack([np.isin(np.arange(gained.shape[1]), labels[of_set]) for of_set in reach.members])
                most = gained.max(axis=1, initial=0.0, where=has_label[reach.of])
            for column, of_piece in enumerate((most, np.concatenate([each.counted[number] for each in parts]))):
                aim.by_unit[:, column] += np.bincount(units[bundles], weights=of_piece, minlength=len(aim.by_unit))
                aim.by_epoch[epoch, column] += of_piece.sum()
            weights = np.concatenate([each.weights for each in parts])
            stretches.append(Stretch(labels, gained * aim.scale, weights, bundles, reach))
        if aim.nearness.gains.any():
            aim.locality.add_cell(stretches, n_brokers)

    def bounds(self) -> BoundSums:
        """Return the bounds of all cells."""
        self._close()
        self._cell = None
        name = self._cluster.name
        cells = np.array(self._cells).reshape(-1, 3)
        figures = [
            MetricSums(name, POSSIBLE, 0, metric, None, (), cells[:, [column, 2]] / MICRO, self._first_us)
            for column, metric in enumerate(_EVENNESS)
        ]
        if self._fullness is not None:
            seconds = self._fullness.seconds()
            figures.append(MetricSums(name, POSSIBLE, 0, "overload_ratio", None, (), seconds, self._first_us))
        for aim in self._aims:
            rows = [aim.by_unit, aim.by_epoch]
            if aim.nearness.key is None:
                # Gained is what the farthest broker would have more.
                ms = [self._multipliers.farthest_ms * each[:, 1] - each[:, 0] for each in rows]
                rows = [np.column_stack([np.maximum(a, 0.0), b[:, 1]]) / MICRO for a, b in zip(ms, rows, strict=True)]
            figures.append(MetricSums(name, POSSIBLE, 0, *aim.name, (), rows[0], epochs=rows[1]))
        return BoundSums(
            figures=figures,
            weight=float(cells[:, 2].sum()),
            evenness=self._evenness,
            localities={
                aim.name: LocalityBound(aim.locality.free, aim.locality.few, aim.locality.dearest)
                for aim in self._aims
                if aim.nearness.gains.any()
            },
        )


def _joined(parts: Sequence[_Pieces]) -> Reach | None:
    """Return the brokers that the pieces of one registry epoch are kept to, None if each may be on any."""
    reaches = [each.reach for each in parts if each.reach is not None]
    return Reach(reaches[0].members, np.concatenate([each.of for each in reaches])) if reaches else None
