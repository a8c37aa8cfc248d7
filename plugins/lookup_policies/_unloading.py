"""Helps the shedders of Pulsar's modular load manager: figures by broker, giving up bundles, the end of a cycle.

No part lives here.
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
    """Return a column of the view by broker number, without brokers that are gone or have not reported."""
    # A broker that has gone may still have its last report on the board.
    numbers = (view.registered & ~np.isnan(column)).nonzero()[0]
    return dict(zip(numbers.tolist(), column[numbers].tolist(), strict=True))


def average_of(figures: Collection[float]) -> float:
    """Return the mean, added up one by one in the order of brokers as in Pulsar; there must be a figure."""
    # Not sum(), which compensates for round-off in newer versions of Python: Java adds one by one.
    total = 0.0
    for figure in figures:
        total += figure
    return total / len(figures)


def no_figures(view: ClusterView) -> CycleOutcome:
    """Return the outcome of a cycle in which no broker has a figure."""
    reason = CycleReason.NO_LOAD_DATA if view.registered.any() else CycleReason.NO_BROKERS
    return CycleOutcome(CycleLabel.SKIP, reason)


def give_up(view: ClusterView, number: int, needed: float) -> Generator[Unload, Ruling, int]:
    """Propose a broker's bundles, most loaded first, until enough has gone; returns how many were accepted.

    A refused bundle is passed over for the next, and a broker with a single bundle keeps it.

    Args:
        needed: load to give up; the bundle that reaches it is the last, so at least one goes.
    """
    if view.ownership.bundles()[number] <= 1:
        return 0
    accepted, moved, source = 0, 0.0, view.brokers[number].id
    for bundle, load, _ in reversed(view.load.top_bundles[number]):
        if (yield Unload(bundle, source)).accepted:
            accepted, moved = accepted + 1, moved + load
            # After the bundle, not before: at least one goes, even if it is larger than what is needed.
            if moved >= needed:
                break
    return accepted


def descending(bundles: Sequence[BundleLoad], traffic: Callable[[BundleLoad], float]) -> list[BundleLoad]:
    """Return bundles by traffic, most first; among equals the later name comes first, as in `give_up`."""
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
    """Return the outcome of a cycle, with mean and population standard deviation of usage.

    Args:
        accepted: unloads that took place; none is a success.
        over: how far each broker is above what is tolerated, only of brokers that are.
        reason: of a success.
        idle: why the brokers that should have given something up did not.
        acting: those brokers, all that are over by default; none means that the condition was not met.
        short: what the cycle fell short of, if nothing was unloaded.
    """
    average = average_of(usage.values()) if usage else None
    deviation = None if average is None else math.sqrt(average_of([(u - average) ** 2 for u in usage.values()]))
    excess = max([0.0, *over.values()])
    if accepted:
        return CycleOutcome(CycleLabel.SUCCESS, reason, average, deviation, over=len(over), excess=excess)
    # Without any unload: no broker was over, or those that were had nothing to give up.
    reason = idle if (over if acting is None else acting) else CycleReason.HIT_COUNT
    return CycleOutcome(CycleLabel.SKIP, reason, average, deviation, over=len(over), excess=excess, short=short)


#: Bytes in the unit in which limits of throughput are told.
_MIB = 1024.0 * 1024.0


def traffic_short(view: ClusterView, needed: float, minimum: float) -> Shortfall | None:
    """Return that a throughput is too little to be moved; None if it is the weight of lookups, not bytes."""
    if view.load.bundle_unit != "bytes/s":
        return None
    return Shortfall(needed / _MIB, "MiB/s to unload", minimum / _MIB)


def few_bundles(view: ClusterView, broker: int) -> Shortfall | None:
    """Return that a broker has too few bundles to give one up; None if it has two."""
    count = int(view.ownership.bundles()[broker])
    return Shortfall(count, f"bundles on {view.brokers[broker].id}", 2) if count <= 1 else None
