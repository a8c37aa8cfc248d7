"""Churn: moves that cancel each other out among brokers, and load that swings back and forth.

The arithmetic is `lookup.model.churn`'s; here it is laid over bundles and cells, so that intervals can be drawn.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

from lookup.hooks import Better
from lookup.model.batch import Batch, Cells, OwnerChanges
from lookup.model.churn import discounted, on_cycles
from lookup.score.metrics.totals import CellQuotient, ChangeTotal, moves_of, per_unit

__all__ = ["CycleMoves", "LoadVariation", "NecessaryMoves"]

FloatArray = NDArray[np.float64]


@dataclass(frozen=True)
class _GraphMoves(ChangeTotal):
    """Some of the moves of the graph of moves between brokers."""

    unit: ClassVar[str] = "moves"
    #: whether those on cycles are counted, or those on none
    on_cycles: ClassVar[bool]

    def accumulate(self, batch: Batch, key: str | None) -> FloatArray:
        """Return how many moves are counted, shape (n_bundles + n_events, 1)."""
        if batch.changes is None or not len(batch.changes.bundle):
            return np.zeros((len(batch.bundles) + len(batch.events), 1))
        moves, are_on_cycles = _graph(batch.changes)
        counted = np.zeros(len(batch.changes.bundle))
        counted[moves[are_on_cycles == self.on_cycles]] = 1.0
        return per_unit(batch, batch.changes, counted)


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


# Two metrics ask this of the same changes, one after the other.
# Of a run's epochs only the last has changes, which are known by identity and held until others come.
@lru_cache(maxsize=1)
def _graph(changes: OwnerChanges) -> tuple[NDArray[np.int64], NDArray[np.bool_]]:
    """Return the places of the moves, and which of them lie on cycles."""
    moves = np.flatnonzero(moves_of(changes))
    return moves, on_cycles(changes.source[moves], changes.broker[moves])


@dataclass(frozen=True)
class LoadVariation(CellQuotient):
    """How much the load of brokers swings from cell to cell, against its trend, as a ratio of the load.

    It is 0.0 where load only ever grows, or only ever shrinks.
    """

    name: ClassVar[str] = "load_variation"

    def accumulate(self, batch: Batch, key: str | None) -> FloatArray:
        """Return discounted variation against the cell before, and weight, shape (n_cells, 2)."""
        cells = batch.cells
        weight = np.where(cells.registered, cells.served, 0.0).sum(axis=1)
        return np.stack([discounted(_steps(cells)).sum(axis=1), weight], axis=1)


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
