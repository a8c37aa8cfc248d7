"""Support the shedders of Pulsar's modular load manager with figures by broker, unloads and the end of a cycle.

This module does not contain parts.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Collection, Generator, Sequence

import numpy as np
from numpy.typing import NDArray

from lookup.model import BundleLoad, ClusterView, CycleLabel, CycleOutcome, CycleReason, Ruling, Shortfall, Unload

__all__ = [
    "Figures", "average_of", "descending", "few_bundles", "give_up", "no_figures", "outcome_of", "read_column",
    "traffic_short",
]  # fmt: skip

#: One ratio by broker number, only of registered brokers with a report, in order of their numbers.
Figures = dict[int, float]


def read_column(view: ClusterView, column: NDArray[np.float64]) -> Figures:
    """Read a column of the view by broker number, without brokers that left or have not reported."""
    # A broker that has gone may still have its last report on the board.
    numbers = (view.registered & ~np.isnan(column)).nonzero()[0]
    return dict(zip(numbers.tolist(), column[numbers].tolist(), strict=True))


def average_of(figures: Collection[float]) -> float:
    """Compute the mean, added up one by one in the order of brokers as in Pulsar. At least one figure is needed."""
    # Not sum(), which compensates for round-off in newer versions of Python: Java adds one by one.
    total = 0.0
    for figure in figures:
        total += figure
    return total / len(figures)


def no_figures(view: ClusterView) -> CycleOutcome:
    """Build the outcome of a cycle in which no broker has a figure."""
    reason = CycleReason.NO_LOAD_DATA if view.registered.any() else CycleReason.NO_BROKERS
    return CycleOutcome(CycleLabel.SKIP, reason)


def give_up(view: ClusterView, number: int, needed: float) -> Generator[Unload, Ruling, int]:
    """Propose a broker's bundles, most loaded first, until enough load has left. Return the accepted number.

    A rejected bundle is skipped, and a broker with a single bundle keeps it.

    Args:
        needed: load to give up. The bundle that reaches it is the last, so at least one moves.
    """
    if view.ownership.bundles()[number] <= 1:
        return 0
    accepted, moved, source = 0, 0.0, view.brokers[number].id
    for bundle, load, _ in reversed(view.load.top_bundles[number]):
        if (yield Unload(bundle, source)).accepted:
            accepted, moved = accepted + 1, moved + load
            # After the bundle, not before, so at least one moves, even if it is larger than needed.
            if moved >= needed:
                break
    return accepted


def descending(bundles: Sequence[BundleLoad], traffic: Callable[[BundleLoad], float]) -> list[BundleLoad]:
    """Sort bundles by traffic, most first. Among equals the later name comes first, as in `give_up`."""
    return sorted(bundles, key=lambda entry: (traffic(entry), entry.bundle), reverse=True)


def outcome_of(  # noqa: PLR0913  each is a choice of its own, and most have a default
    usage: Figures,
    accepted: int,
    *,
    over: Figures,
    reason: CycleReason,
    idle: CycleReason = CycleReason.NO_BUNDLES,
    acting: Collection[int] | None = None,
    short: Shortfall | None = None,
) -> CycleOutcome:
    """Build the outcome of a cycle, with mean and population standard deviation of usage.

    Args:
        accepted: number of unloads that took place. At least one is a success.
        over: distance above the tolerance of each broker above it.
        reason: reason of a success.
        idle: why the brokers that should have given up load did not.
        acting: these brokers, by default all in `over`. If there are none, the condition was not met.
        short: the shortfall of the cycle, if nothing was unloaded.
    """
    average = average_of(usage.values()) if usage else None
    deviation = None if average is None else math.sqrt(average_of([(u - average) ** 2 for u in usage.values()]))
    excess = max([0.0, *over.values()])
    if accepted:
        return CycleOutcome(CycleLabel.SUCCESS, reason, average, deviation, over=len(over), excess=excess)
    # Without any unload, either no broker was above the tolerance, or the brokers above it could not give up anything.
    reason = idle if (over if acting is None else acting) else CycleReason.HIT_COUNT
    return CycleOutcome(CycleLabel.SKIP, reason, average, deviation, over=len(over), excess=excess, short=short)


#: Bytes in the unit in which limits of throughput are printed.
_MIB = 1024.0 * 1024.0


def traffic_short(view: ClusterView, needed: float, minimum: float) -> Shortfall | None:
    """Describe a throughput that is too low to be moved, or return None for the weight of lookups."""
    if view.load.bundle_unit != "bytes/s":
        return None
    return Shortfall(needed / _MIB, "MiB/s to unload", minimum / _MIB)


def few_bundles(view: ClusterView, broker: int) -> Shortfall | None:
    """Describe a broker with too few bundles to give one up, or return None if it has two."""
    count = int(view.ownership.bundles()[broker])
    return Shortfall(count, f"bundles on {view.brokers[broker].id}", 2) if count <= 1 else None
