"""Count changes of owner, such as a policy's decisions, its moves, redundant or circular moves, and moved weight."""

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
    """Decisions that gave a bundle an owner. Transfers to a destination of the shedder count only as moves."""

    name: ClassVar[str] = "assignments"
    unit: ClassVar[str] = "decisions"

    def accumulate(self, batch: Batch, key: str | None) -> FloatArray:
        """Count decisions, shape (n_bundles + n_events, 1)."""
        return _sum_changes(batch, lambda changes: changes.decided.astype(np.float64))


@dataclass(frozen=True)
class Moves(ChangeTotal):
    """Ownership changes to a different owner, by cause. A bundle's first assignment does not count."""

    name: ClassVar[str] = "moves"
    unit: ClassVar[str] = "moves"
    every_key: ClassVar[tuple[str, ...]] = tuple(CAUSE_WORDS)

    def keys(self, batch: Batch) -> Sequence[str | None]:
        """List the whole and every cause, or no key if owners are not known."""
        return () if batch.changes is None else (None, *CAUSE_WORDS)

    def accumulate(self, batch: Batch, key: str | None) -> FloatArray:
        """Count moves, all or those of one cause, shape (n_bundles + n_events, 1)."""

        def select_cause(changes: OwnerChanges) -> FloatArray:
            moves = _moves_of(changes)
            return (moves if key is None else moves & (changes.cause == key)).astype(np.float64)

        return _sum_changes(batch, select_cause)


@dataclass(frozen=True)
class Unloads(ChangeTotal):
    """Bundles taken from their owner, for any next owner, since clients reconnect even to the same one."""

    name: ClassVar[str] = "unloads"
    unit: ClassVar[str] = "unloads"

    def accumulate(self, batch: Batch, key: str | None) -> FloatArray:
        """Count unloads, shape (n_bundles + n_events, 1)."""
        return _sum_changes(batch, lambda changes: (changes.broker < 0).astype(np.float64))


@dataclass(frozen=True)
class RedundantMoves(ChangeTotal):
    """Moves on the way back to an owner that the bundle left at most `window_s` ago, including the departure."""

    name: ClassVar[str] = "redundant_moves"
    unit: ClassVar[str] = "moves"

    def accumulate(self, batch: Batch, key: str | None) -> FloatArray:
        """Count redundant moves, shape (n_bundles + n_events, 1)."""
        window_us = batch.window_s * 1_000_000

        def mark_redundant(changes: OwnerChanges) -> FloatArray:
            moves = np.flatnonzero(_moves_of(changes))
            # Stable, so moves of a bundle are adjacent, in order of time. Each child of a split has its own path.
            moves = moves[np.argsort(changes.path[moves], kind="stable")]
            departures = _find_last_departures(changes, moves)
            returns = np.flatnonzero(departures >= 0)
            returns = returns[changes.ts[moves[returns]] - changes.ts[moves[departures[returns]]] <= window_us]
            # Every move in a closed interval [departure, return] is redundant. The number of open intervals increases
            # by one from the departure on, and decreases by one after the return.
            size = len(moves)
            depth = np.bincount(departures[returns], minlength=size + 1) - np.bincount(returns + 1, minlength=size + 1)
            marks = np.zeros(len(changes.ts))
            marks[moves[np.cumsum(depth)[:size] > 0]] = 1.0
            return marks

        return _sum_changes(batch, mark_redundant)


@dataclass(frozen=True)
class MovedWeight(ChangeTotal):
    """The sum of the bundle's ledger weight at each move, which is the weight that reconnects because of moves."""

    name: ClassVar[str] = "moved_weight"
    unit: ClassVar[str] = "weight/s"

    def accumulate(self, batch: Batch, key: str | None) -> FloatArray:
        """Compute moved weight per second, shape (n_bundles + n_events, 1)."""
        return _sum_changes(batch, lambda changes: np.where(_moves_of(changes), changes.weight, 0.0))


@dataclass(frozen=True)
class _GraphMoves(ChangeTotal):
    """Moves on the cycles of the graph of moves between brokers, or the others, as in `lookup.model.churn`."""

    unit: ClassVar[str] = "moves"
    #: whether those on cycles are counted, or those on none
    on_cycles: ClassVar[bool]

    def accumulate(self, batch: Batch, key: str | None) -> FloatArray:
        """Count the moves of this kind, shape (n_bundles + n_events, 1)."""
        # The earlier epochs of a run do not have changes, and must not remove those of the last from the cache.
        if batch.changes is None or not len(batch.changes.bundle):
            return np.zeros((len(batch.bundles) + len(batch.events), 1))
        moves, are_on_cycles = _build_graph(batch.changes)
        counted = np.zeros(len(batch.changes.bundle))
        counted[moves[are_on_cycles == self.on_cycles]] = 1.0
        return per_unit(batch, batch.changes, counted)


@dataclass(frozen=True)
class CycleMoves(_GraphMoves):
    """Moves on cycles of the graph of moves, without which brokers have the same numbers of bundles."""

    name: ClassVar[str] = "cycle_moves"
    on_cycles: ClassVar[bool] = True


@dataclass(frozen=True)
class NecessaryMoves(_GraphMoves):
    """Moves that remain when all cycles are taken out of the graph of moves between brokers."""

    name: ClassVar[str] = "necessary_moves"
    better: ClassVar[Better] = "info"
    on_cycles: ClassVar[bool] = False


# Two metrics in a row need the graph of the same changes. Changes are equal by identity.
@lru_cache(maxsize=1)
def _build_graph(changes: OwnerChanges) -> tuple[IndexArray, BoolArray]:
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


def _find_last_departures(changes: OwnerChanges, moves: IndexArray) -> IndexArray:
    """Find for each move the position in `moves` of the latest earlier departure from its destination, or -1.

    Both ends of all moves are sorted together by (bundle, broker, position). The departure is the last one before.
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
