"""Churn: moves that cancel each other out among brokers, and load that swings back and forth.

Source: TiKV's `pd-analysis` (transfer counter: cycles in the graph of moves between stores) and CockroachDB's `asim`
(trend-discounting total variation of a store's load). What each leaves open is settled here and in `docs/scoring.md`.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

from lookup.model.batch import Batch, Cells, OwnerChanges
from lookup.score.metrics.kinds import Better, Grain, Resample
from lookup.score.metrics.totals import ChangeTotal, moves_of, per_bundle, quotient

__all__ = ["CycleMoves", "LoadVariation", "NecessaryMoves"]

FloatArray = NDArray[np.float64]
BoolArray = NDArray[np.bool_]
IndexArray = NDArray[np.int64]

#: CockroachDB's exponent: how fast variation counts in full as the lesser direction catches up with the greater.
_TREND_EXPONENT = 0.8


@dataclass(frozen=True)
class _GraphMoves(ChangeTotal):
    """Some of the moves of the graph of moves between brokers."""

    unit: ClassVar[str] = "moves"
    #: whether those on cycles are counted, or those on none
    on_cycles: ClassVar[bool]

    def accumulate(self, batch: Batch, key: str | None) -> FloatArray:
        """Return how many moves are counted, shape (n_bundles, 1)."""
        if batch.changes is None:
            return np.zeros((len(batch.bundles), 1))
        moves = np.flatnonzero(moves_of(batch.changes))
        kept = moves[_on_cycles(batch.changes, moves) == self.on_cycles]
        return per_bundle(batch, batch.changes.bundle[kept], np.ones(len(kept)))


@dataclass(frozen=True)
class CycleMoves(_GraphMoves):
    """Moves on cycles of the graph of moves between brokers: without them every broker has as many bundles as with."""

    name: ClassVar[str] = "cycle_moves"
    on_cycles: ClassVar[bool] = True


@dataclass(frozen=True)
class NecessaryMoves(_GraphMoves):
    """Moves that remain when all cycles are taken out of the graph of moves between brokers."""

    name: ClassVar[str] = "necessary_moves"
    better: ClassVar[Better] = "info"
    on_cycles: ClassVar[bool] = False


@dataclass(frozen=True)
class LoadVariation:
    """How much the load of brokers swings from cell to cell, against its trend, as a ratio of the load."""

    name: ClassVar[str] = "load_variation"
    every_key: ClassVar[tuple[str, ...]] = ()
    unit: ClassVar[str] = "ratio"
    better: ClassVar[Better] = "down"
    grain: ClassVar[Grain] = "cell"
    resample: ClassVar[Resample] = "time"

    def keys(self, batch: Batch) -> Sequence[str | None]:
        """Return one whole."""
        return (None,)

    def accumulate(self, batch: Batch, key: str | None) -> FloatArray:
        """Return discounted variation against the cell before, and weight, shape (n_cells, 2)."""
        cells = batch.cells
        weight = np.where(cells.registered, cells.served, 0.0).sum(axis=1)
        return np.stack([_discounted(_steps(cells)).sum(axis=1), weight], axis=1)

    def value(self, sums: FloatArray) -> FloatArray:
        """Return variation per weight; 0.0 where load only ever grows, or only ever shrinks."""
        return quotient(sums)


def _on_cycles(changes: OwnerChanges, moves: IndexArray) -> BoolArray:
    """Mark the moves that lie on cycles, shape (n_moves,).

    Between two brokers one move is like another for the graph; it is the latest ones that closed the cycles.
    """
    source, target = changes.source[moves], changes.broker[moves]
    size = int(max(source.max(initial=0), target.max(initial=0))) + 1
    edges = source * size + target
    flow = np.bincount(edges, minlength=size * size)
    necessary = _without_cycles(flow.reshape(size, size)).ravel()
    order = np.argsort(edges, kind="stable")
    place = np.arange(len(moves)) - np.searchsorted(edges[order], edges[order])
    marks = np.zeros(len(moves), dtype=np.bool_)
    marks[order] = place >= necessary[edges[order]]
    return marks


def _without_cycles(flow: IndexArray) -> IndexArray:
    """Take cycles out of a graph: broker by broker, the shortest through it first, until there is none.

    Args:
        flow: moves from each broker (row) to each (column), shape (n_brokers, n_brokers).
    """
    rest = flow.copy()
    for start in np.flatnonzero(rest.any(axis=1)).tolist():
        while (cycle := _shortest_cycle(rest, start)) is not None:
            steps = cycle, np.roll(cycle, -1)
            rest[steps] -= rest[steps].min()
    return rest


def _shortest_cycle(flow: IndexArray, start: int) -> IndexArray | None:
    """Return the brokers of the shortest cycle from one back to it; of equally short ones the first by numbers."""
    came_from = np.full(len(flow), -1)
    came_from[start] = start
    level = np.array([start])
    while len(level):
        closing = level[flow[level, start] > 0]
        if len(closing):
            return _way(came_from, int(closing[0]))
        reached = (flow[level] > 0) & (came_from < 0)
        found = np.flatnonzero(reached.any(axis=0))
        # whoever comes first in a level is where a way goes on, so that ways stay in the order of their numbers
        parent = reached[:, found].argmax(axis=0)
        came_from[found] = level[parent]
        level = found[np.lexsort((found, parent))]
    return None


def _way(came_from: IndexArray, end: int) -> IndexArray:
    way = [end]
    while came_from[way[-1]] != way[-1]:
        way.append(int(came_from[way[-1]]))
    return np.array(way[::-1])


def _steps(cells: Cells) -> FloatArray:
    """Return how each broker's weight differs from the last cell it was registered in, shape (n_cells, n_brokers).

    Cells before a broker served anything are left out: its first load is no swing.
    """
    steps = np.zeros(cells.served.shape)
    for broker in range(cells.served.shape[1]):
        places = np.flatnonzero(cells.registered[:, broker])
        served = cells.served[places, broker]
        begun = np.flatnonzero(served)
        if len(begun):
            steps[places[begun[0] + 1 :], broker] = np.diff(served[begun[0] :])
    return steps


def _discounted(steps: FloatArray) -> FloatArray:
    """Discount the variation of each broker's series by its trend, shape (n_cells, n_brokers).

    With u and d the sums of all steps up and down, m the lesser and a = (m / the greater) ^ 0.8, a series varies by
    a (u + d) + (1 - a) m. That is a sum over steps: each counts a times, those in the lesser direction in full.
    """
    ups, downs = np.maximum(steps, 0.0), np.maximum(-steps, 0.0)
    up, down = ups.sum(axis=0), downs.sum(axis=0)
    lesser, greater = np.minimum(up, down), np.maximum(up, down)
    share = np.divide(lesser, greater, out=np.zeros_like(lesser), where=greater > 0) ** _TREND_EXPONENT
    against = np.where(up <= down, ups, downs)
    discounted: FloatArray = share * (ups + downs) + (1.0 - share) * against
    return discounted
