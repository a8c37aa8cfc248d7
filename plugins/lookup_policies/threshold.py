"""The shedder `threshold`: brokers clearly above the average give up bundles."""

from __future__ import annotations

import math
from collections.abc import Generator, Mapping, MutableMapping, Sequence
from dataclasses import dataclass
from typing import Annotated, Any, ClassVar

import numpy as np

from lookup.hooks import Conf, Ge, Le
from lookup.model import ClusterView, CycleLabel, CycleOutcome, CycleReason, Ruling, Unload

__all__ = ["Threshold"]

#: Pulsar takes a little more than the excess away, as a ratio of capacity (facts/loadmanager.md section 12).
_EXTRA = 0.05
#: Pulsar: half of the threshold's worth of the busiest broker moves when another is far below the average.
_LOWER_BOUNDARY_SHARE = 0.5

#: Smoothed usage by broker number, only of registered brokers with a report, in order of their numbers.
_Smoothed = dict[int, float]


@dataclass(frozen=True)
class Threshold:
    """Unload the most loaded bundles of brokers whose smoothed usage exceeds the average by a threshold.

    Usage is smoothed by broker: `history` * before + (1 - `history`) * now. An overloaded broker gives up bundles, most
    loaded first, until their load reaches its load times (usage - average - `threshold` + 0.05); a refused bundle is
    passed over for the next. Where they go is decided by the next lookup. Pulsar smooths again without signals above
    100 %; there is one signal here, so nothing is left to leave out.

    Match -> Result -> Reason:
        * no registered broker, none with a report -> nothing -> `no-brokers`, `no-load-data`
        * usage >= average + `threshold`, more than one bundle, enough to offload -> unloads -> `overloaded`
        * none accepted, `lower_boundary`, some usage < average - `threshold` -> the busiest broker with more than one
          bundle gives up half the threshold's worth -> `underloaded`
        * somebody is above the threshold but nothing could be unloaded -> nothing -> `no-bundles`
        * otherwise balanced -> nothing -> `hit-count`, the condition is not met

    Source: ThresholdShedder (`facts/loadmanager.md` section 12).
    """

    name: ClassVar[str] = "threshold"
    reads: ClassVar[frozenset[str]] = frozenset({"view.load", "view.ownership"})

    #: how far above the average, as a ratio of capacity, a broker is overloaded
    threshold: Annotated[float, Ge(0), Conf("loadBalancerBrokerThresholdShedderPercentage", scale=0.01)] = 0.1
    #: weight of the past in smoothed usage, in [0, 1]
    history: Annotated[float, Ge(0), Le(1), Conf("loadBalancerHistoryResourcePercentage")] = 0.9
    #: weight per second below which moving is not worth while; Pulsar's 10 MB/s mean nothing where load is not in bytes
    min_offload: Annotated[float, Ge(0)] = 0.0
    #: whether the busiest broker also gives up bundles to one that is far below the average
    lower_boundary: Annotated[bool, Conf("lowerBoundarySheddingEnabled")] = False

    def propose(self, view: ClusterView, memory: MutableMapping[str, Any]) -> Generator[Unload, Ruling, CycleOutcome]:
        """Propose bundles of overloaded brokers, most loaded first."""
        usage = self._smoothed(view, memory)
        if not usage:
            nobody = CycleReason.NO_LOAD_DATA if view.registered.any() else CycleReason.NO_BROKERS
            return CycleOutcome(CycleLabel.SKIP, nobody)
        average = _mean(usage)
        overloaded = [number for number, used in usage.items() if average and used >= average + self.threshold]
        reason, accepted = CycleReason.OVERLOADED, 0
        for number in overloaded:
            accepted += yield from self._offload(view, number, usage[number] - average - self.threshold + _EXTRA)
        if not accepted and average and self.lower_boundary:
            # Pulsar works the average out anew, and that moves the smoothed usage on a second time in this cycle.
            usage = self._smoothed(view, memory)
            reason = CycleReason.UNDERLOADED
            for number in self._busiest(view, usage):
                accepted += yield from self._offload(view, number, self.threshold * _LOWER_BOUNDARY_SHARE)
        return _outcome(usage, reason, accepted, overloaded)

    def _smoothed(self, view: ClusterView, memory: MutableMapping[str, Any]) -> _Smoothed:
        before: Mapping[str, float] = memory.get("usage", {})
        numbers = np.flatnonzero(view.registered & ~np.isnan(view.usage)).tolist()
        after: _Smoothed = {}
        for number in numbers:
            now = float(view.usage[number])
            past = before.get(view.brokers[number].id)
            after[number] = now if past is None else self.history * past + (1.0 - self.history) * now
        memory["usage"] = {view.brokers[number].id: used for number, used in after.items()}
        return after

    def _offload(self, view: ClusterView, number: int, share: float) -> Generator[Unload, Ruling, int]:
        # Gives up bundles worth a share of the broker's load; the number of accepted unloads comes back.
        needed = float(view.broker_load[number]) * share
        if math.isnan(needed) or needed < self.min_offload or view.ownership.bundles()[number] <= 1:
            return 0
        accepted, moved = 0, 0.0
        for entry in reversed(view.top_bundles[number]):
            ruling = yield Unload(entry.bundle, view.brokers[number].id)
            if ruling.accepted:
                accepted, moved = accepted + 1, moved + entry.load
                if moved >= needed:
                    break
        return accepted

    def _busiest(self, view: ClusterView, usage: _Smoothed) -> Sequence[int]:
        # One number, or none: nobody is far below the average, or nobody busy has a bundle to spare.
        average, counts = _mean(usage), view.ownership.bundles()
        if min(usage.values()) >= average - self.threshold:
            return ()
        able = [number for number in usage if counts[number] > 1 and usage[number] > average - self.threshold]
        return sorted(able, key=lambda number: (-usage[number], number))[:1]


def _mean(usage: _Smoothed) -> float:
    return math.fsum(usage.values()) / len(usage)


def _outcome(usage: _Smoothed, reason: CycleReason, accepted: int, overloaded: Sequence[int]) -> CycleOutcome:
    average = _mean(usage)
    deviation = math.sqrt(math.fsum((used - average) ** 2 for used in usage.values()) / len(usage))
    if accepted:
        return CycleOutcome(CycleLabel.SUCCESS, reason, average, deviation)
    idle = CycleReason.NO_BUNDLES if overloaded else CycleReason.HIT_COUNT
    return CycleOutcome(CycleLabel.SKIP, idle, average, deviation)
