"""Bound how near lookups could be served if in every tick each bundle were where most of its clients are.

Owners in such a placement move freely, so no policy with the same bundles serves lookups nearer. The bundles are the
first bundles of a policy, divided by the log's own splits.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from functools import reduce
from typing import ClassVar, Protocol

import numpy as np
from numpy.typing import NDArray

from lookup.engine.ledger import MICRO
from lookup.model import Roster, Topology
from lookup.model.batch import ClientClass
from lookup.replay.counted import weights_of
from lookup.replay.days import SliceRows
from lookup.replay.grouping import column_keys
from lookup.replay.outcome import AtBest
from lookup.replay.plan import ClusterPlan, RunPlan
from lookup.replay.walk import RegistryEpochs, Tick

__all__ = ["BestWalk"]

Ints = NDArray[np.int64]
Floats = NDArray[np.float64]
Mask = NDArray[np.bool_]

#: Approximate number of counts, by group and piece, that are held at a time. So many fit in a core's cache.
_MANY_COUNTS = 1 << 19


class _Figure(Protocol):
    """A figure of locality, by groups of clients that are equal for every broker."""

    metric: ClassVar[str]
    key: str | None
    #: group of each client class, shape (n_clients,)
    group_of: Ints
    n_groups: int

    def best(self, roster: Roster, registered: Mask, amounts: Floats) -> tuple[Floats, Floats]:
        """Compute the best total of each piece on one broker and the counted amount, both of shape (n_pieces,).

        Args:
            amounts: lookups or weight of groups in pieces, each whole on one broker, shape (n_groups, n_pieces).
        """


class _Matches:
    metric: ClassVar[str] = "match_ratio"

    def __init__(self, key: str, clients: Sequence[ClientClass], rosters: Sequence[Roster]) -> None:
        self.key: str | None = key
        self._property = key
        sent = [client.properties.get(key) for client in clients]
        published = {label for roster in rosters for label in roster.labels(key)}
        labels = sorted({value for value in sent if value is not None and value in published})
        self._codes = {label: code for code, label in enumerate(labels)}
        #: the last two groups are labels of no broker, and clients without the property
        self.n_groups = len(self._codes) + 2
        self.group_of = np.array(
            [self._codes.get(value, self.n_groups - 2) if value is not None else self.n_groups - 1 for value in sent]
        )

    def best(self, roster: Roster, registered: Mask, amounts: Floats) -> tuple[Floats, Floats]:
        labels = set(roster.labels(self._property)[registered].tolist())
        here = [code for label, code in self._codes.items() if label in labels]
        return amounts[here].max(axis=0, initial=0.0), amounts[:-1].sum(axis=0)


class _Distances:
    """Milliseconds between clients and their brokers, times weight, where both have a place."""

    metric: ClassVar[str] = "network_ms_mean"
    key: str | None = None

    def __init__(self, clients: Sequence[ClientClass], topology: Topology) -> None:
        self._topology = topology
        self._homes = list(dict.fromkeys(client.location for client in clients))
        self.n_groups = len(self._homes)
        self.group_of = np.array([self._homes.index(client.location) for client in clients])

    def are_known(self, roster: Roster) -> bool:
        """Check whether any client has a distance to any broker."""
        places = {broker.location for broker in roster}
        return any(self._topology.distance(home, place) is not None for home in self._homes for place in places)

    def best(self, roster: Roster, registered: Mask, amounts: Floats) -> tuple[Floats, Floats]:
        places = {broker.location for broker, is_in in zip(roster, registered.tolist(), strict=True) if is_in}
        distances = [[self._topology.distance(home, place) for home in self._homes] for place in places]
        ms = np.array(distances, dtype=np.float64)
        is_known: Mask = np.any(np.isfinite(ms), axis=0)
        # An unknown distance counts as the shortest of its client, since a bound must not exceed a reachable value.
        ms = np.where(np.isfinite(ms), ms, np.nanmin(np.where(is_known, ms, 0.0), axis=0))
        # Not by BLAS, whose last bits depend on how many pieces there are.
        totals = (
            sum(distance * amount for distance, amount in zip(row, amounts, strict=True))
            for row in np.unique(ms, axis=0)
        )
        return reduce(np.minimum, totals), amounts[is_known].sum(axis=0)


class BestWalk:
    """An observer of a walk over a cluster that adds up the best of every scored tick.

    Args:
        registry: registry epochs of the observed walk.
        bundles: numbers of first bundles of the run's policies. None among them is the default number.
    """

    def __init__(
        self, cluster: ClusterPlan, run: RunPlan, registry: RegistryEpochs, bundles: Sequence[int | None]
    ) -> None:
        self._name, self._registry = cluster.name, registry
        self._maps = {count: cluster.first_bundles(count) for count in bundles}
        clients, rosters = cluster.clients, [roster for roster, _ in cluster.timeline.epochs]
        keys = sorted({key for client in clients for key in client.properties})
        matches = (_Matches(key, clients, rosters) for key in keys)
        self._figures: list[_Figure] = [figure for figure in matches if figure.n_groups > 2]
        distances = _Distances(clients, run.topology)
        if any(distances.are_known(roster) for roster in rosters):
            self._figures.append(distances)
        #: by number of bundles and figure, best and counted amount of each tick with lookups
        self._sums: dict[tuple[int | None, int], list[tuple[Floats, Floats]]] = {
            (count, number): [] for count in self._maps for number in range(len(self._figures))
        }
        self._many_rows = _MANY_COUNTS // max((figure.n_groups for figure in self._figures), default=1)
        #: first row and sizes of the ticks that are not counted yet
        self._low = 0
        self._sizes: list[int] = []

    def take(self, tick: Tick, *, is_scored: bool) -> None:
        """Process the next tick, before its change of the registry is applied."""
        if tick.events.splits or tick.events.registry is not None or sum(self._sizes) >= self._many_rows:
            self.settle(tick.rows)
        for parent, children in tick.events.splits:
            for bundles in self._maps.values():
                bundles.split(parent, children)
        if is_scored and tick.high > tick.low:
            self._low = self._low if self._sizes else tick.low
            self._sizes.append(tick.high - tick.low)

    def settle(self, rows: SliceRows) -> None:
        """Count the held ticks, since the rows of the next slice have other numbers."""
        sizes, self._sizes = self._sizes, []
        registered, roster = self._registry.registered, self._registry.rosters[self._registry.epoch]
        if not sizes or not registered.any():
            return
        span = slice(self._low, self._low + sum(sizes))
        atom, client, weights = rows.column("atom", span), rows.column("properties", span), weights_of(rows, span)
        of_tick = column_keys(np.repeat(np.arange(len(sizes)), sizes), size=len(sizes))
        for count, bundles in self._maps.items():
            starts, _ = bundles.sort_bundles()
            number_of = np.repeat(np.arange(len(starts)), np.diff(np.append(starts, len(bundles.names))))
            (tick, _), piece = of_tick.by(number_of.take(atom), size=len(starts)).number_keys()
            for number, figure in enumerate(self._figures):
                shape = figure.n_groups, len(tick)
                keys = (figure.group_of * len(tick)).take(client) + piece
                # Equal weights need no pass over the rows.
                by_row, unit = (None, weights) if isinstance(weights, float) else (weights, 1.0)
                by_row, unit = (by_row, unit) if figure.key is None else (None, 1.0)
                counts = np.bincount(keys, weights=by_row, minlength=math.prod(shape))
                amounts = np.asarray(counts * unit, dtype=np.float64).reshape(shape)
                sums = figure.best(roster, registered, amounts)
                best, counted = (np.bincount(tick, weights=of_pieces).astype(np.float64) for of_pieces in sums)
                self._sums[count, number].append((best, counted))

    def at_best(self) -> list[AtBest]:
        """List the best of all scored ticks, by number of bundles and figure."""
        figures = []
        for (count, number), sums in self._sums.items():
            figure, unit = self._figures[number], MICRO if self._figures[number].key is None else 1
            # Sums are exact, so the grouping of ticks changes no bit.
            best, counted = (math.fsum(part for pair in sums for part in pair[column]) / unit for column in (0, 1))
            if counted:
                figures.append(AtBest(self._name, figure.metric, figure.key, count, best, counted))
        return figures
