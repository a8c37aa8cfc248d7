"""What the best placement would have done at one instant with what a policy saw: a scale for what its cycle did."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Any, Literal

import numpy as np

from lookup.model import ClusterView, Unload
from lookup.placement import best_placement

__all__ = ["BestMove", "PossibleMoves", "possible_moves"]


@dataclass(frozen=True, slots=True)
class BestMove:
    """One move of a best placement."""

    bundle: str
    #: ids of brokers
    source: str
    destination: str
    #: in the unit of the loads of bundles
    load: float


@dataclass(frozen=True)
class PossibleMoves:
    """How even a cluster was at an instant, what a cycle made of it, and what was possible.

    An imbalance is the most load / capacity of a broker, over total load / total capacity: 1.0 is even. Loads are those
    of the bundles with an owner, as the policy saw them. An unknown capacity is the mean of those known; if none is,
    all are equal. Filters and grace periods are left out.
    """

    unit: Literal["weight/s", "bytes/s"]
    brokers: int
    bundles: int
    #: imbalance before the cycle
    before: float
    #: imbalance after it; with undecided bundles the least that it can be
    after: float
    #: bundles that the cycle took away without a destination
    undecided: int
    #: imbalance of the best placement found with any moves, and what no placement is below
    free: float
    free_bound: float
    #: bundles that the cycle moved, at least 1
    moves: int
    #: the same as `free` with so many moves, and those moves, the most loaded bundle first
    few: float
    few_bound: float
    best_moves: tuple[BestMove, ...]

    def document(self) -> dict[str, Any]:
        """Return it as JSON has it."""
        return {
            **{name: getattr(self, name) for name in ("unit", "brokers", "bundles", "before", "after", "undecided")},
            "free": {"imbalance": self.free, "bound": self.free_bound},
            "few": {"moves": self.moves, "imbalance": self.few, "bound": self.few_bound},
            "best_moves": [asdict(move) for move in self.best_moves],
        }


def possible_moves(view: ClusterView, unloads: Sequence[Unload]) -> PossibleMoves | str:
    """Return what was possible at an instant, or a sentence why there was nothing to place.

    Args:
        view: before the cycle.
        unloads: what the cycle moved.
    """
    numbers = np.flatnonzero(view.registered & ~(view.capacity <= 0.0)).tolist()
    if len(numbers) < 2:
        return f"{'one broker is' if numbers else 'no broker is'} registered that can carry load: no bundle can move"
    if np.isnan(view.load.throughput[numbers]).all():
        return "no broker has reported its load"
    ids = [view.brokers[number].id for number in numbers]
    places = {number: place for place, number in enumerate(numbers)}
    loads, owners = dict[str, float](), dict[str, int]()
    for entry in (entry for bundles in view.load.top_bundles for entry in bundles if 0.0 < entry.load < np.inf):
        owner = view.ownership.owner(entry.bundle)
        if owner in places:
            loads[entry.bundle], owners[entry.bundle] = entry.load, places[owner]
    if not loads:
        return "no bundle with load has an owner"
    names, weights = list(loads), np.array(list(loads.values()))
    capacities = view.capacity[numbers]
    known = np.isfinite(capacities)
    capacities = np.where(known, capacities, capacities[known].mean() if known.any() else 1.0)
    mean = weights.sum() / capacities.sum()

    def imbalance(placed: Sequence[int]) -> float:
        """Return the imbalance of a placement; a bundle at -1 is on no broker."""
        # One place more, which -1 finds.
        carried = np.bincount(np.array(placed) % (len(ids) + 1), weights, len(ids) + 1)[:-1]
        return float((carried / capacities).max() / mean)

    now = list(owners.values())
    targets = {broker: place for place, broker in enumerate(ids)}
    goals = {unload.bundle: targets.get(unload.destination or "", -1) for unload in unloads}
    then = [goals.get(name, place) for name, place in owners.items()]
    moves, undecided = max(1, len(unloads)), sum(place < 0 for place in goals.values())
    free, few = (best_placement(weights, capacities, owners=now, max_moves=most) for most in (None, moves))
    # Placements are near the best: what a cycle has found can be better, as can what was found with few moves.
    best = few.owners.tolist() if -1 in then else min(few.owners.tolist(), then, key=imbalance)
    found = [
        BestMove(name, ids[source], ids[goal], load)
        for (name, load), source, goal in zip(loads.items(), now, best, strict=True)
        if source != goal
    ]
    return PossibleMoves(
        unit=view.load.bundle_unit,
        brokers=len(ids),
        bundles=len(names),
        before=imbalance(now),
        after=max(few.bound, imbalance(then)) if undecided else imbalance(then),
        undecided=undecided,
        free=min(free.value, imbalance(best)),
        free_bound=free.bound,
        moves=moves,
        few=imbalance(best),
        few_bound=few.bound,
        best_moves=tuple(sorted(found, key=lambda move: (-move.load, move.bundle))),
    )
