"""Count changes of owner: decisions a policy made, bundles it moved, moves in vain or in circles, weight that moved."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

from lookup.engine.ownership import CAUSE_WORDS
from lookup.hooks import Better
from lookup.model.batch import Batch, OwnerChanges
from lookup.model.churn import on_cycles
from lookup.score.metrics.totals import ChangeTotal, FloatArray, per_unit

__all__ = ["Assignments", "CycleMoves", "MovedWeight", "Moves", "NecessaryMoves", "RedundantMoves", "Unloads"]

BoolArray = NDArray[np.bool_]
IndexArray = NDArray[np.int64]


@dataclass(frozen=True)
class Assignments(ChangeTotal):
    """Decisions that gave a bundle an owner; transfers to a destination that the shedder names are moves only."""

    name: ClassVar[str] = "assignments"
    unit: ClassVar[str] = "decisions"

    def accumulate(self, batch: Batch, key: str | None) -> FloatArray:
        """Return decisions, shape (n_bundles + n_events, 1)."""
        return _sum_changes(batch, lambda changes: changes.decided.astype(np.float64))


@dataclass(frozen=True)
class Moves(ChangeTotal):
    """Ownership changes to a different owner, by cause; a bundle's first assignment is none."""

    name: ClassVar[str] = "moves"
    unit: ClassVar[str] = "moves"
    every_key: ClassVar[tuple[str, ...]] = tuple(CAUSE_WORDS)

    def keys(self, batch: Batch) -> Sequence[str | None]:
        """Return the whole and every cause, nothing if owners are not known."""
        return () if batch.changes is None else (None, *CAUSE_WORDS)

    def accumulate(self, batch: Batch, key: str | None) -> FloatArray:
        """Return moves, all or those of one cause, shape (n_bundles + n_events, 1)."""

        def of_cause(changes: OwnerChanges) -> FloatArray:
            moves = _moves_of(changes)
            return (moves if key is None else moves & (changes.cause == key)).astype(np.float64)

        return _sum_changes(batch, of_cause)


@dataclass(frozen=True)
class Unloads(ChangeTotal):
    """Bundles taken from their owner, wherever they go next: clients reconnect also if they come back to it."""

    name: ClassVar[str] = "unloads"
    unit: ClassVar[str] = "unloads"

    def accumulate(self, batch: Batch, key: str | None) -> FloatArray:
        """Return unloads, shape (n_bundles + n_events, 1)."""
        return _sum_changes(batch, lambda changes: (changes.broker < 0).astype(np.float64))


@dataclass(frozen=True)
class RedundantMoves(ChangeTotal):
    """Moves that lead back: when one returns to an owner left at most `window_s` ago, all moves from there to here."""

    name: ClassVar[str] = "redundant_moves"
    unit: ClassVar[str] = "moves"

    def accumulate(self, batch: Batch, key: str | None) -> FloatArray:
        """Return redundant moves, shape (n_bundles + n_events, 1)."""
        window_us = batch.window_s * 1_000_000

        def redundant(changes: OwnerChanges) -> FloatArray:
            moves = np.flatnonzero(_moves_of(changes))
            # Stable: moves of a bundle become neighbours and stay in order of time. The children of a split have a path
            # of their own each.
            moves = moves[np.argsort(changes.path[moves], kind="stable")]
            left = _last_departures(changes, moves)
            returns = np.flatnonzero(left >= 0)
            returns = returns[changes.ts[moves[returns]] - changes.ts[moves[left[returns]]] <= window_us]
            # Every move in a closed interval [departure, return] is redundant: one more interval is open from its
            # departure on, one fewer after its return.
            size = len(moves)
            depth = np.bincount(left[returns], minlength=size + 1) - np.bincount(returns + 1, minlength=size + 1)
            marks = np.zeros(len(changes.ts))
            marks[moves[np.cumsum(depth)[:size] > 0]] = 1.0
            return marks

        return _sum_changes(batch, redundant)


@dataclass(frozen=True)
class MovedWeight(ChangeTotal):
    """The bundle's ledger weight at each move, added up: what reconnects because of moves."""

    name: ClassVar[str] = "moved_weight"
    unit: ClassVar[str] = "weight/s"

    def accumulate(self, batch: Batch, key: str | None) -> FloatArray:
        """Return moved weight per second, shape (n_bundles + n_events, 1)."""
        return _sum_changes(batch, lambda changes: np.where(_moves_of(changes), changes.weight, 0.0))


@dataclass(frozen=True)
class _GraphMoves(ChangeTotal):
    """Moves on the cycles of the graph of moves between brokers, or the others; see `lookup.model.churn`."""

    unit: ClassVar[str] = "moves"
    #: whether those on cycles are counted, or those on none
    on_cycles: ClassVar[bool]

    def accumulate(self, batch: Batch, key: str | None) -> FloatArray:
        """Return how many moves are counted, shape (n_bundles + n_events, 1)."""
        # The epochs of a run before the last have no changes; they must not drive those of the last out of the cache.
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


# Two metrics ask for the graph of the same changes, one after the other; changes are equal by identity.
@lru_cache(maxsize=1)
def _graph(changes: OwnerChanges) -> tuple[IndexArray, BoolArray]:
    moves = np.flatnonzero(_moves_of(changes))
    return moves, on_cycles(changes.source[moves], changes.broker[moves])


def _moves_of(changes: OwnerChanges) -> BoolArray:
    moved: BoolArray = (changes.source >= 0) & (changes.broker >= 0) & (changes.source != changes.broker)
    return moved


def _sum_changes(batch: Batch, figure: Callable[[OwnerChanges], FloatArray]) -> FloatArray:
    """Add one figure of every change up by bundle or event, shape (n_bundles + n_events, 1)."""
    if batch.changes is None:
        return np.zeros((len(batch.bundles) + len(batch.events), 1))
    return per_unit(batch, batch.changes, figure(batch.changes))


def _last_departures(changes: OwnerChanges, moves: IndexArray) -> IndexArray:
    """Return for each move the position in `moves` of the last one before it that left its destination; -1 for none.

    Both ends of all moves are put in one order of (bundle, broker, position); the departure sought is the last before.
    """
    size, brokers = len(moves), int(max(changes.source.max(initial=0), changes.broker.max(initial=0))) + 1
    positions = np.arange(size)
    path = changes.path[moves] * brokers
    departures = np.sort((path + changes.source[moves]) * size + positions)
    arrivals = (path + changes.broker[moves]) * size + positions
    before = np.searchsorted(departures, arrivals) - 1
    if not size:
        return before
    nearest = departures[before]
    # The nearest departure may be of another bundle or broker.
    is_same_end = (before >= 0) & (nearest // size == arrivals // size)
    departed: IndexArray = np.where(is_same_end, nearest % size, -1)
    return departed
