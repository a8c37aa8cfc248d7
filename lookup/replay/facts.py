"""Gather the facts about one cluster that no policy changes.

They are the score of the log's choices, the locality of the best owners, and demand induced by the logged moves.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from lookup.replay.at_best import BestWalk
from lookup.replay.clusters import InducedMarks
from lookup.replay.counted import Counted
from lookup.replay.days import SliceRows
from lookup.replay.grouping import column_keys
from lookup.replay.outcome import AtBest
from lookup.replay.plan import ClusterPlan, RunPlan
from lookup.replay.senders import Homes, most_sent
from lookup.replay.tally import LoggedTally
from lookup.replay.walk import ClusterWalk, Tick

__all__ = ["ClusterFacts", "FactsWalk"]

Ints = NDArray[np.int64]
Floats = NDArray[np.float64]


@dataclass(frozen=True)
class ClusterFacts:
    """Facts that hold for every policy."""

    #: the logged answers, counted, None if too few lookups have a logged broker
    logged: Counted | None
    at_best: list[AtBest]
    #: by property, where the namespaces live
    homes: Homes
    #: demand within `reconnect_s` after its bundle lost its owner in the log
    induced: int
    demand: int
    ticks: int
    #: bundles that the log begins with
    bundles: int


class FactsWalk(ClusterWalk):
    """An observer of a walk that gathers the facts. Only scored ticks count for balance and the logged choice.

    Args:
        reconnect_us: time after the loss of a bundle's owner in which its lookups count as induced.
        has_log: whether the logged choice is scored.
        bundles: numbers of first bundles of the run's policies. None among them is the default number.
    """

    def __init__(
        self,
        cluster: ClusterPlan,
        run: RunPlan,
        marks: InducedMarks,
        reconnect_us: int,
        *,
        has_log: bool,
        bundles: Sequence[int | None],
    ) -> None:
        super().__init__(cluster, run)
        self._marks, self._reconnect_us = marks, reconnect_us
        self._logged = LoggedTally(cluster, run, self._cells) if has_log else None
        self._best = BestWalk(cluster, run, self._registry, bundles)
        self._induced = self._demand = 0
        atoms = cluster.units[1]
        self._namespace = cluster.senders.namespace[atoms]
        #: namespace, client class and lookups of each slice
        self._sent: list[tuple[Ints, Ints, Floats]] = []

    def take(self, ticks: Sequence[Tick]) -> None:
        """Gather the facts of one slice."""
        self._count_senders(ticks[-1].rows, slice(ticks[0].low, ticks[-1].high))
        for tick in ticks:
            self._best.take(tick, is_scored=tick.start_us >= self.scored_from)
            if tick.events.registry is not None:
                self._registry.apply(tick.events.registry)
            self._demand += tick.high - tick.low
            self._induced += self._count_induced(tick)
            if tick.start_us < self.scored_from:
                continue
            self._cells.add(tick.start_us, tick.end_us, self._registry.registered, None)
            if self._logged is not None:
                self._logged.begin(tick.rows, tick.start_us, self._registry.epoch)
                self._logged.end(tick.low, tick.high)
        if self._logged is not None:
            self._logged.end_slice(ticks[-1].rows)
        self._best.settle(ticks[-1].rows)

    def _count_senders(self, rows: SliceRows, span: slice) -> None:
        if span.start == span.stop:
            return
        keys = column_keys(self._namespace.take(rows.column("atom", span)), size=len(self._cluster.senders.namespaces))
        (namespace, client), lookups, _ = keys.by(
            rows.column("properties", span), size=len(self._cluster.clients)
        ).count_keys(1.0)
        self._sent.append((namespace, client, lookups))

    def _count_induced(self, tick: Tick) -> int:
        """Count the rows of a tick that come soon after their bundle lost its owner."""
        marks = self._marks
        if not len(marks.ts) or tick.high == tick.low:
            return 0
        near = np.flatnonzero((marks.ts < tick.end_us) & (marks.ts + self._reconnect_us > tick.start_us))
        if not len(near):
            return 0
        ts, atoms = tick.rows.ts[tick.low : tick.high], tick.rows.column("atom", slice(tick.low, tick.high))
        # A row counts once, however many losses came before it.
        is_induced = np.zeros(len(ts), dtype=bool)
        for mark in near.tolist():
            since = ts - marks.ts[mark]
            is_soon = (since >= 0) & (since < self._reconnect_us)
            is_induced |= is_soon & (atoms >= marks.first[mark]) & (atoms < marks.stop[mark])
        return int(is_induced.sum())

    def facts(self) -> ClusterFacts:
        """Collect the facts."""
        logged, zeros = None, np.zeros(len(self._cluster.units[0]))
        if self._logged is not None:
            logged = Counted(
                cluster=self._cluster,
                run=self._run,
                rosters=self._registry.rosters,
                groups=self._logged.groups.all,
                cells=self._cells,
                changes=None,
                logged=zeros,
                agreed=zeros,
                has_usage=False,
            )
        return ClusterFacts(
            logged=logged,
            at_best=self._best.at_best(),
            homes=most_sent(self._sent, self._cluster.clients),
            induced=self._induced,
            demand=self._demand,
            ticks=self._cluster.timeline.n_ticks,
            bundles=len(self._cluster.first_bundles().sort_bundles()[0]),
        )
