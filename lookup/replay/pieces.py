"""Cut the demand of a cluster into pieces that one broker serves whole, and bound what placements of them can reach.

Under exclusive ownership a piece is what comes for one bundle in one tick, in which a bundle has one owner; the log's
own splits are followed. Under shared ownership every lookup is one, and may be answered by odds. Nothing is known of
policies here: a bound holds whatever they filter.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import groupby

import numpy as np
from numpy.typing import NDArray

from lookup.engine.ledger import MICRO
from lookup.model import Roster
from lookup.placement.frontier import Locality, Multipliers, Stretch, evenness, split_gains
from lookup.replay.atoms import BundleMap
from lookup.replay.counted import weights_of
from lookup.replay.days import SliceRows
from lookup.replay.fullness import FullnessWalk
from lookup.replay.grouping import column_keys
from lookup.replay.outcome import POSSIBLE, BoundSums, LocalityBound, MetricSums
from lookup.replay.plan import ClusterPlan, RunPlan
from lookup.replay.walk import RegistryEpochs, Tick

__all__ = ["PieceWalk"]

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]


@dataclass(frozen=True, eq=False)
class _Pieces:
    """Pieces between two changes of brokers or bundles; columns of shape (n_pieces,)."""

    #: number of the registry epoch, and brokers registered in it
    epoch: int
    registered: NDArray[np.bool_]
    #: how many bundles there have been: more after a split
    born: int
    bundles: Ints
    #: micro-units
    weights: Floats
    #: by property, lookups near each of its labels, shape (n_pieces, n_labels)
    near: Mapping[str, Floats]


@dataclass(frozen=True, eq=False)
class _Property:
    """A property by which lookups can be near, and what is bounded by it."""

    #: values that both clients and brokers have, sorted
    labels: tuple[str, ...]
    #: label of each client class, -1 for none of these, and whether it sent the property; shape (n_clients,)
    wanted: Ints
    is_sent: NDArray[np.bool_]
    #: near lookups at most, and lookups that count, by unit and by registry epoch
    by_unit: Floats
    by_epoch: Floats
    locality: Locality

    def labels_of(self, key: str, roster: Roster, registered: NDArray[np.bool_]) -> Ints:
        """Return the label of each broker as a stretch has it."""
        code_of = {label: code for code, label in enumerate(self.labels)}
        codes = np.array([code_of.get(label, len(self.labels)) for label in roster.labels(key)], dtype=np.int64)
        return np.where(registered, codes, -1)


@dataclass(frozen=True, eq=False)
class _Cell:
    """A cell of time that is not over."""

    start_us: int
    #: at any time in it, shape (n_brokers,)
    registered: NDArray[np.bool_]
    pieces: list[_Pieces] = field(default_factory=list)


class PieceWalk:
    """Follows the bundles of a cluster over its ticks, and adds up the bounds of its scored cells.

    Args:
        registry: of the walk that this one goes along with.
    """

    def __init__(self, cluster: ClusterPlan, run: RunPlan, registry: RegistryEpochs, multipliers: Multipliers) -> None:
        self._cluster, self._run, self._registry, self._multipliers = cluster, run, registry, multipliers
        timeline = cluster.timeline
        self._map = BundleMap(cluster.words.atoms, timeline.initial_splits)
        #: number of the bundle of each atom, at first that of its unit; children of a split get new ones
        self._numbers = cluster.units[1].copy()
        self._unit_of = list(range(len(cluster.units[0])))
        splits = [split for events in timeline.events.values() for split in events.splits]
        most = len(self._unit_of) + sum(len(children) for _, children in splits)
        #: whether moves are bounded: without owners there are none, and a bundle that is split late, when its hand-over
        #: has ended, moves once for all the children that are followed here
        self._has_moves = not (run.is_shared or (run.handover_us and splits))
        rosters = [timeline.roster, *(e.registry[0] for e in timeline.events.values() if e.registry is not None)]
        self._properties = {
            key: self._property(key, rosters, most)
            for key in sorted({key for client in cluster.clients for key in client.properties})
        }
        self._cell: _Cell | None = None
        #: registry epoch, brokers, first row and sizes of the ticks that are not cut into pieces yet
        self._epoch, self._registered, self._low = 0, registry.registered, 0
        self._sizes: list[int] = []
        self._first_us = 0
        #: by cell, max x brokers and deviation x brokers at least, and weight
        self._cells: list[tuple[float, float, float]] = []
        self._still, self._gains = 0.0, np.zeros(len(multipliers.splits))
        #: None if usage is not known, or reported: that is the same wherever bundles are
        has_usage = cluster.assumed_capacity is None and not run.is_reported
        self._fullness = FullnessWalk(cluster, run) if has_usage else None

    def _property(self, key: str, rosters: Sequence[Roster], n_bundles: int) -> _Property:
        sent = [client.properties.get(key) for client in self._cluster.clients]
        published = {label for roster in rosters for label in roster.labels(key)}
        labels = tuple(sorted({value for value in sent if value is not None and value in published}))
        return _Property(
            labels=labels,
            wanted=np.array([labels.index(value) if value in labels else -1 for value in sent]),
            is_sent=np.array([value is not None for value in sent]),
            by_unit=np.zeros((len(self._cluster.units[0]), 2)),
            by_epoch=np.zeros((len(rosters), 2)),
            locality=Locality(self._multipliers, len(labels), n_bundles if self._has_moves else None),
        )

    def begin_slice(self, first: Tick) -> None:
        """Begin the slice that begins with a tick."""
        if self._fullness is not None:
            self._fullness.begin_slice(first)

    def take(self, tick: Tick, *, is_scored: bool) -> None:
        """Take in the next tick; its change of the registry was applied before."""
        if tick.events.splits:
            self._cut(tick.rows)
            self._split(tick)
        if self._fullness is not None:
            self._fullness.take(tick, self._numbers, self._registry, is_scored=is_scored)
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

    def _split(self, tick: Tick) -> None:
        for parent, children in tick.events.splits:
            if self._map.split(parent, children):
                for child in filter(self._map.__contains__, children):
                    atoms = self._map.atoms_of(child)
                    self._numbers[atoms] = len(self._unit_of)
                    self._unit_of.append(int(self._cluster.units[1][atoms.start]))

    def _cut(self, rows: SliceRows) -> None:
        """Cut the rows of the ticks since the last cut into pieces."""
        if not self._sizes or self._cell is None:
            return
        span = slice(self._low, self._low + sum(self._sizes))
        bundles = self._numbers[rows.column("atom", span)]
        ticks, self._sizes = np.repeat(np.arange(len(self._sizes)), self._sizes), []
        weights = weights_of(rows, span)
        if self._run.is_shared:
            # Lookups that weigh and want the same are as good as one, since odds divide them as they like.
            ticks = np.zeros_like(ticks) if isinstance(weights, float) else np.unique(weights, return_inverse=True)[1]
        keys = column_keys(ticks).by(bundles, size=len(self._unit_of)).compacted()
        keys = keys.by(rows.column("properties", span), size=max(len(self._cluster.clients), 1))
        (tick, bundle, client), lookups, weight = keys.counted(weights)
        # Keys ascend, so those of a piece are neighbours.
        begins = np.append(True, (np.diff(tick) != 0) | (np.diff(bundle) != 0) | self._run.is_shared)
        piece, first = np.cumsum(begins) - 1, np.flatnonzero(begins)
        near = {}
        for key, of_key in self._properties.items():
            n_labels, wanted = len(of_key.labels), of_key.wanted[client]
            is_near = wanted >= 0
            places = piece[is_near] * n_labels + wanted[is_near]
            counts = np.bincount(places, weights=lookups[is_near], minlength=len(first) * n_labels)
            near[key] = counts.astype(np.float64).reshape(len(first), n_labels)
            units = np.array(self._unit_of)[bundle]
            counted = np.bincount(units, weights=lookups * of_key.is_sent[client], minlength=len(of_key.by_unit))
            labels = of_key.labels_of(key, self._registry.rosters[self._epoch], self._registered)
            is_there = np.isin(np.arange(n_labels), labels)
            most = (near[key] * is_there).max(axis=1, initial=0.0)
            matched = np.bincount(units[first], weights=most, minlength=len(of_key.by_unit))
            sums = np.stack([matched, counted], axis=1)
            of_key.by_unit[:] += sums
            of_key.by_epoch[self._epoch] += sums.sum(axis=0)
        micro = np.bincount(piece, weights=weight).astype(np.float64)
        pieces = _Pieces(self._epoch, self._registered, len(self._unit_of), bundle[first], micro, near)
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
        self._cells.append((least, deviation, total))
        if self._has_moves:
            whole = np.bincount(np.concatenate([each.bundles for each in pieces]), weights=weights)
            still, gains = split_gains(whole.astype(np.float64), least, n_brokers, self._multipliers.splits)
            self._still, self._gains = self._still + still, self._gains + gains
        for key, of_key in self._properties.items():
            if of_key.labels:
                of_key.locality.add_cell(list(self._stretches(pieces, key, of_key)), n_brokers)

    def _stretches(self, pieces: Sequence[_Pieces], key: str, of_key: _Property) -> Iterator[Stretch]:
        """Yield the stretches of a cell; where a slice ended within one, its parts are put together."""
        for (epoch, _), group in groupby(pieces, lambda each: (each.epoch, each.born)):
            parts = list(group)
            yield Stretch(
                labels=of_key.labels_of(key, self._registry.rosters[epoch], parts[0].registered),
                near=np.concatenate([each.near[key] for each in parts]),
                weights=np.concatenate([each.weights for each in parts]),
                bundles=np.concatenate([each.bundles for each in parts]),
            )

    def bounds(self) -> BoundSums:
        """Return the bounds of all cells."""
        self._close()
        self._cell = None
        name = self._cluster.name
        cells = np.array(self._cells).reshape(-1, 3)
        figures = [
            MetricSums(name, POSSIBLE, 0, metric, None, (), cells[:, [column, 2]] / MICRO, self._first_us)
            for column, metric in enumerate(("imbalance_max_mean", "imbalance_cv"))
        ]
        if self._fullness is not None:
            seconds = self._fullness.seconds()
            figures.append(MetricSums(name, POSSIBLE, 0, "overload_ratio", None, (), seconds, self._first_us))
        figures += [
            MetricSums(name, POSSIBLE, 0, "match_ratio", key, (), of_key.by_unit, epochs=of_key.by_epoch)
            for key, of_key in self._properties.items()
        ]
        return BoundSums(
            figures=figures,
            weight=float(cells[:, 2].sum()),
            still=self._still,
            gains=self._gains,
            localities={
                key: LocalityBound(of_key.locality.free, of_key.locality.few, of_key.locality.dearest)
                for key, of_key in self._properties.items()
                if of_key.labels
            },
        )
