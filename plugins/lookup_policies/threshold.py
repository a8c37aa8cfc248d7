"""Shed load from overloaded brokers, above the average by a threshold or above a fixed usage.

Source: "Load managers" in the documentation (ThresholdShedder, OverloadShedder).
"""

from __future__ import annotations

import math
from collections.abc import Generator, MutableMapping
from dataclasses import dataclass
from typing import Annotated, Any, ClassVar, Literal

from lookup.hooks import Conf, Ge, Le, Unit
from lookup.model import ClusterView, CycleOutcome, CycleReason, Ruling, Shortfall, Unload
from lookup_policies._unloading import (
    Figures,
    average_of,
    few_bundles,
    give_up,
    no_figures,
    outcome_of,
    read_column,
    traffic_short,
)

__all__ = ["Overload", "Threshold"]

#: Pulsar takes a little more than the excess away, as a ratio of capacity (ThresholdShedder, OverloadShedder).
_EXTRA = 0.05
#: In Pulsar, half of the threshold's worth of the busiest broker moves when another is far below the average.
_LOWER_BOUNDARY_SHARE = 0.5
#: Bytes in the megabyte in which Pulsar counts the least throughput.
_MIB = 1024.0 * 1024.0


@dataclass(frozen=True)
class Threshold:
    """Unload the most loaded bundles of brokers whose smoothed usage exceeds the average by a threshold.

    Usage is that of a broker's fullest resource by the policy's weights. It is smoothed by broker as `history`
    * before + (1 - `history`) * now. An overloaded broker gives up bundles, most loaded first, until their load
    reaches its load times (usage - average - `threshold` + 0.05). A rejected bundle is skipped. The next lookup
    of each decides its new owner.

    Quirk: the search for a broker far below the average computes the average again. So smoothed usage moves twice in
    that cycle, and a cluster with nothing to unload forgets its past twice as fast. `quirks = "intended"` does not.

    Match -> Result -> Reason:
        * no registered broker, none with a report -> nothing -> `no-brokers`, `no-load-data`
        * usage >= average + `threshold`, more than one bundle, enough to offload -> unloads -> `overloaded`
        * none accepted, `lower_boundary`, some usage < average - `threshold` -> the busiest broker with more
          than one bundle gives up half the threshold's worth -> `underloaded`
        * brokers are above the threshold, but none has `min_offload` to offload -> nothing -> `too-little`
        * brokers are above the threshold but nothing could be unloaded -> nothing -> `no-bundles`
        * otherwise balanced -> nothing -> `hit-count`, the condition is not met

    Memory: `{"usage": {broker: smoothed usage}}`.

    Source: ThresholdShedder.
    """

    name: ClassVar[str] = "threshold"
    reads: ClassVar[frozenset[str]] = frozenset({"view.load", "view.load.resources", "view.ownership"})

    #: how far above the average, as a ratio of capacity, a broker is overloaded
    threshold: Annotated[float, Ge(0), Conf("loadBalancerBrokerThresholdShedderPercentage", scale=0.01)] = 0.1
    #: weight of the past in smoothed usage, in [0, 1]
    history: Annotated[float, Ge(0), Le(1), Conf("loadBalancerHistoryResourcePercentage")] = 0.9
    #: load below which unloading is not worthwhile. Pulsar's 10 MiB/s apply only to load in bytes
    min_offload: Annotated[
        float, Ge(0), Conf("loadBalancerBundleUnloadMinThroughputThreshold", scale=_MIB), Unit("bytes/s")
    ] = 0.0
    #: whether the busiest broker also gives up bundles to a broker far below the average
    lower_boundary: Annotated[bool, Conf("lowerBoundarySheddingEnabled")] = False
    #: whether accidents of Pulsar's code are kept
    quirks: Literal["upstream", "intended"] = "upstream"

    def propose(self, view: ClusterView, memory: MutableMapping[str, Any]) -> Generator[Unload, Ruling, CycleOutcome]:
        """Propose bundles of overloaded brokers, most loaded first."""
        now = read_column(view, view.load.weighted)
        if not now:
            return no_figures(view)
        usage = self._smooth(view, now, memory)
        average = average_of(usage.values())
        limit = average + self.threshold
        over = {number: used - limit for number, used in usage.items() if average and used >= limit}
        reason, accepted = CycleReason.OVERLOADED, 0
        # Before any proposal, since bundles given up by one broker do not change the load another should give up.
        needed = {
            number: self._compute_excess(view, number, usage[number] - average - self.threshold + _EXTRA)
            for number in over
        }
        for number, load in needed.items():
            if load is not None:
                accepted += yield from give_up(view, number, load)
        if not accepted and average and self.lower_boundary:
            if self.quirks == "upstream":
                usage = self._smooth(view, now, memory)
            reason, lower = CycleReason.UNDERLOADED, average_of(usage.values()) - self.threshold
            bundles = view.ownership.bundles()
            able = [number for number, ratio in usage.items() if bundles[number] > 1 and ratio > lower]
            if able and min(usage.values()) < lower:
                busiest = max(able, key=usage.__getitem__)
                load = self._compute_excess(view, busiest, self.threshold * _LOWER_BOUNDARY_SHARE)
                if load is not None:
                    accepted += yield from give_up(view, busiest, load)
        # Two reasons, so that a report shows which limit stood in the way.
        is_enough = any(load is not None for load in needed.values())
        idle = CycleReason.NO_BUNDLES if is_enough else CycleReason.TOO_LITTLE
        short = None if accepted else self._describe_shortfall(view, usage, over)
        return outcome_of(usage, accepted, over=over, reason=reason, idle=idle, short=short)

    def _describe_shortfall(self, view: ClusterView, usage: Figures, over: Figures) -> Shortfall | None:
        # The obstacle for the busiest broker, which is the average, the smallest load worth moving, or its last bundle.
        average = average_of(usage.values())
        if not over:
            above = (max(usage.values()) - average) * 100.0
            return Shortfall(above, "points of usage above the mean", self.threshold * 100.0)
        busiest = max(usage, key=usage.__getitem__)
        share = usage[busiest] - average - self.threshold + _EXTRA
        if self._compute_excess(view, busiest, share) is None:
            return traffic_short(view, float(view.load.throughput[busiest]) * share, self.min_offload)
        return few_bundles(view, busiest)

    def _smooth(self, view: ClusterView, now: Figures, memory: MutableMapping[str, Any]) -> Figures:
        ids, before, share = view.brokers.ids, memory.get("usage", {}), 1.0 - self.history
        # A new or returning broker starts with its present usage, since its past is not 0.
        after: Figures = {}
        usage = memory["usage"] = {}
        for number, used in now.items():
            past: float | None = before.get(ids[number])
            usage[ids[number]] = after[number] = used if past is None else self.history * past + share * used
        return after

    def _compute_excess(self, view: ClusterView, number: int, share: float) -> float | None:
        # A share of the broker's load, None if that is not worthwhile.
        needed = float(view.load.throughput[number]) * share
        return None if math.isnan(needed) or needed < self.min_offload else needed


@dataclass(frozen=True)
class Overload:
    """Unload the most loaded bundles of brokers whose usage has reached a threshold.

    Usage is that of a broker's fullest resource by the policy's weights, not smoothed. An overloaded broker
    gives up bundles, most loaded first, until their load reaches its load times (usage - `threshold` + 0.05),
    at least one. A rejected bundle is skipped. The next lookup of each decides its new owner, which may be
    another overloaded broker. If all are above the threshold, all give up bundles in every cycle.

    Match -> Result -> Reason:
        * no registered broker, none with a report -> nothing -> `no-brokers`, `no-load-data`
        * usage >= `threshold`, more than one bundle -> unloads -> `overloaded`
        * a broker has reached the threshold but nothing could be unloaded -> nothing -> `no-bundles`
        * no broker has -> nothing -> `hit-count`, the condition is not met

    Source: OverloadShedder.
    """

    name: ClassVar[str] = "overload"
    reads: ClassVar[frozenset[str]] = frozenset({"view.load", "view.load.resources", "view.ownership"})

    #: usage from which on a broker is overloaded, as a ratio of capacity
    threshold: Annotated[float, Ge(0), Conf("loadBalancerBrokerOverloadedThresholdPercentage", scale=0.01)] = 0.85

    def propose(self, view: ClusterView, memory: MutableMapping[str, Any]) -> Generator[Unload, Ruling, CycleOutcome]:
        """Propose bundles of overloaded brokers, most loaded first."""
        usage = read_column(view, view.load.weighted)
        if not usage:
            return no_figures(view)
        over = {number: used - self.threshold for number, used in usage.items() if used >= self.threshold}
        accepted = 0
        for number in over:
            needed = float(view.load.throughput[number]) * (usage[number] - self.threshold + _EXTRA)
            # A broker may report its usage without throughput, so a share of that is unknown too.
            if not math.isnan(needed):
                accepted += yield from give_up(view, number, needed)
        busiest = max(usage, key=usage.__getitem__)
        used = Shortfall(usage[busiest] * 100.0, "% usage of the fullest broker", self.threshold * 100.0)
        short = few_bundles(view, busiest) if over else used
        return outcome_of(usage, accepted, over=over, reason=CycleReason.OVERLOADED, short=short)
