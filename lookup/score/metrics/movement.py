"""What a policy does to ownership: decisions it made, bundles it moved, moves that were in vain, weight that moved."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

from lookup.model.batch import Batch, OwnerChanges
from lookup.score.metrics.totals import ChangeTotal, moves_of, per_unit

__all__ = ["CAUSES", "Assignments", "MovedWeight", "Moves", "RedundantMoves"]

FloatArray = NDArray[np.float64]
BoolArray = NDArray[np.bool_]
IndexArray = NDArray[np.int64]

#: Why a bundle that moved had lost its owner.
CAUSES = ("forced", "shed", "admin", "split")


@dataclass(frozen=True)
class Assignments(ChangeTotal):
    """Decisions that gave a bundle an owner; transfers, where the shedder names the destination, are moves only."""

    name: ClassVar[str] = "assignments"
    unit: ClassVar[str] = "decisions"

    def accumulate(self, batch: Batch, key: str | None) -> FloatArray:
        """Return decisions, shape (n_bundles + n_events, 1)."""
        return _counted(batch, lambda changes: changes.decided.astype(np.float64))


@dataclass(frozen=True)
class Moves(ChangeTotal):
    """Ownership changes to a different owner, by cause; a bundle's first assignment is none."""

    name: ClassVar[str] = "moves"
    unit: ClassVar[str] = "moves"
    every_key: ClassVar[tuple[str, ...]] = CAUSES

    def keys(self, batch: Batch) -> Sequence[str | None]:
        """Return the whole and every cause, nothing where nobody owns."""
        return () if batch.changes is None else (None, *CAUSES)

    def accumulate(self, batch: Batch, key: str | None) -> FloatArray:
        """Return moves, all or those of one cause, shape (n_bundles + n_events, 1)."""
        return _counted(batch, lambda changes: (moves_of(changes) & _because(changes, key)).astype(np.float64))


@dataclass(frozen=True)
class RedundantMoves(ChangeTotal):
    """Moves that lead back: when one returns to an owner left at most `window_s` ago, all moves from there to here."""

    name: ClassVar[str] = "redundant_moves"
    unit: ClassVar[str] = "moves"

    def accumulate(self, batch: Batch, key: str | None) -> FloatArray:
        """Return redundant moves, shape (n_bundles + n_events, 1)."""
        return _counted(batch, lambda changes: _redundant(changes, batch.window_s * 1_000_000).astype(np.float64))


@dataclass(frozen=True)
class MovedWeight(ChangeTotal):
    """The bundle's ledger weight at each move, added up: what reconnects because of moves."""

    name: ClassVar[str] = "moved_weight"
    unit: ClassVar[str] = "weight/s"

    def accumulate(self, batch: Batch, key: str | None) -> FloatArray:
        """Return moved weight per second, shape (n_bundles + n_events, 1)."""
        return _counted(batch, lambda changes: np.where(moves_of(changes), changes.weight, 0.0))


def _counted(batch: Batch, figure: Callable[[OwnerChanges], FloatArray]) -> FloatArray:
    """Add one figure of every change up by bundle or event, shape (n_bundles + n_events, 1)."""
    if batch.changes is None:
        return np.zeros((len(batch.bundles) + len(batch.events), 1))
    return per_unit(batch, batch.changes, figure(batch.changes))


def _because(changes: OwnerChanges, key: str | None) -> BoolArray:
    if key is None:
        return np.ones(len(changes.cause), dtype=np.bool_)
    same: BoolArray = changes.cause == key
    return same


def _redundant(changes: OwnerChanges, window_us: int) -> BoolArray:
    """Mark redundant moves, shape (n_changes,)."""
    moves = np.flatnonzero(moves_of(changes))
    # stable: moves of a bundle stay in order of time and become neighbours; the children of a split walk on their own
    moves = moves[np.argsort(changes.path[moves], kind="stable")]
    left = _last_departure(changes, moves)
    returns = np.flatnonzero(left >= 0)
    returns = returns[changes.ts[moves[returns]] - changes.ts[moves[left[returns]]] <= window_us]
    marks = np.zeros(len(changes.ts), dtype=np.bool_)
    marks[moves[_inside(left[returns], returns, len(moves))]] = True
    return marks


def _last_departure(changes: OwnerChanges, moves: IndexArray) -> IndexArray:
    """Return for each move the place in `moves` of the last one before it that left its destination; -1 for none.

    Both ends of all moves are put in one order of (bundle, broker, place); the departure sought is the last one before.
    """
    size, brokers = len(moves), int(max(changes.source.max(initial=0), changes.broker.max(initial=0))) + 1
    place = np.arange(size)
    base = changes.path[moves] * brokers
    departures = (base + changes.source[moves]) * size + place
    arrivals = (base + changes.broker[moves]) * size + place
    ordered = np.sort(departures)
    before = np.searchsorted(ordered, arrivals) - 1
    if not size:
        return before
    found = ordered[before]
    same_end = (before >= 0) & (found // size == arrivals // size)
    departed: IndexArray = np.where(same_end, found % size, -1)
    return departed


def _inside(starts: IndexArray, ends: IndexArray, size: int) -> BoolArray:
    """Mark the places that lie in any of the closed intervals [start, end], shape (size,)."""
    depth = np.bincount(starts, minlength=size + 1) - np.bincount(ends + 1, minlength=size + 1)
    inside: BoolArray = np.cumsum(depth)[:size] > 0
    return inside
