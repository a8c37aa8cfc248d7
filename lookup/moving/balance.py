"""Loads of brokers while bundles move, and how even they are."""

from __future__ import annotations

from collections.abc import Collection, Iterable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from lookup.moving.state import ClusterState

__all__ = ["Balance", "Move"]

Bools = NDArray[np.bool_]
Floats = NDArray[np.float64]
Ints = NDArray[np.int64]

#: Sums of the same numbers in another order differ by less, as a ratio.
_ROUND_OFF = 1e-9


@dataclass(frozen=True, slots=True)
class Move:
    """A bundle that goes from one broker to another, by their numbers."""

    bundle: str
    source: int
    destination: int
    #: bytes per second, for a bundle without report an equal share of its broker's other load
    weight: float
    reason: str


class Balance:
    """Loads of brokers while bundles move. Even loads are the same load / capacity for all brokers that stay.

    Args:
        drain: ids of brokers that give up their bundles.
    """

    def __init__(self, state: ClusterState, drain: Collection[str]) -> None:
        view = state.view
        #: shape (n_brokers,)
        self.drained: Bools = np.array([broker in drain for broker in view.brokers.ids], dtype=np.bool_)
        named = np.array([sum(entry.load for entry in entries) for entries in view.load.top_bundles], dtype=np.float64)
        reported = np.nan_to_num(view.load.throughput)
        #: bytes per second, shape (n_brokers,)
        self.loads: Floats = np.maximum(reported, named)
        #: load of brokers without that of bundles with a report
        self.besides: Floats = self.loads - named
        is_known = np.isfinite(view.capacity) & (view.capacity > 0.0)
        self.capacities = np.where(is_known, view.capacity, view.capacity[is_known].mean() if is_known.any() else 1.0)
        #: brokers whose load is known, and those of them that stay
        self.counted: Bools = view.registered & ~np.isnan(view.load.throughput)
        self.staying: Bools = self.counted & ~self.drained

    def move(self, moves: Iterable[Move]) -> None:
        """Move bundles."""
        for move in moves:
            rest = self.loads[move.source] - move.weight
            # Of rounding something is left.
            self.loads[move.source] = rest if rest > _ROUND_OFF * move.weight else 0.0
            self.loads[move.destination] += move.weight

    @property
    def mean(self) -> float:
        """Load / capacity if the cluster were even."""
        return float(self.loads[self.counted].sum() / self.capacities[self.staying].sum())

    def gains(self, sources: Ints, destinations: Ints, weights: Floats) -> Floats:
        """Compute by how much each move, made next, would even out the loads, below 0 if they become less even.

        It is the reduction of squared distances to an even load, in bytes per second. For a small move it is twice its
        weight times the difference in load / capacity between its source and its destination, as a ratio to the mean.
        """
        gains = np.zeros(len(weights))
        for ends, change in ((sources, -weights), (destinations, weights)):
            distances = self.loads[ends] / self.capacities[ends] - np.where(self.drained[ends], 0.0, self.mean)
            gains -= change * (2.0 * distances + change / self.capacities[ends])
        return gains / self.mean if self.mean > 0.0 else gains

    def figures(self) -> dict[tuple[str, str | None], float]:
        """Compute imbalance and deviation of the loads, by metric. An idle cluster is even."""
        filled, staying, mean = self.loads / self.capacities, self.staying, self.mean
        if not mean > 0.0:
            return {("imbalance", None): 1.0, ("deviation", None): 0.0}
        most, spread = filled[self.counted].max() / mean, filled[staying].std() / mean
        return {("imbalance", None): float(most), ("deviation", None): float(spread)}
