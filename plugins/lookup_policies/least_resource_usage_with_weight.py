"""The selector `least-resource-usage-with-weight`: the strategy of that name of Pulsar's modular manager."""

from __future__ import annotations

from collections.abc import Mapping, MutableMapping
from dataclasses import dataclass
from typing import Annotated, Any, ClassVar, Literal

import numpy as np
from numpy.typing import NDArray

from lookup.hooks import Conf, Ge, Le, Offer
from lookup.model import Broker, Candidates, ClusterView, LookupRequest
from lookup_policies._unloading import measured_usage

__all__ = ["LeastResourceUsageWithWeight"]

FloatArray = NDArray[np.float64]


@dataclass(frozen=True)
class LeastResourceUsageWithWeight:
    """Choose by a usage of its own smoothing: the least, or in newer releases any that is clearly below the average.

    Usage is smoothed by broker: `history` * before + (1 - `history`) * now, moved on for every candidate by every
    selection, so its memory gets the shorter the more bundles are assigned. (`least-resource-usage` is the extensible
    manager's strategy and goes by what brokers report.) A broker without report has usage 0. Scores do not matter.

    Match -> Result -> Reason:
        * `rule = "least"`, smoothed usage <= `overloaded`, no candidate has less -> an equal share
        * `rule = "least"`, every candidate is overloaded -> an equal share for all
        * `rule = "average"`, smoothed usage + `difference` <= mean of the candidates -> an equal share
        * `rule = "average"`, no candidate is that far below -> an equal share for all
        * otherwise -> never

    Source: LeastResourceUsageWithWeight of the modular manager; the rule "average": apache/pulsar at 01f60ad1, where a
    broker that carries nothing also starts smoothing anew.
    """

    name: ClassVar[str] = "least-resource-usage-with-weight"
    reads: ClassVar[frozenset[str]] = frozenset({"view.load", "view.memory"})

    #: weight of the past in smoothed usage, in [0, 1]
    history: Annotated[float, Ge(0), Le(1), Conf("loadBalancerHistoryResourcePercentage")] = 0.9
    #: smoothed usage above which a broker is chosen only where all are, as a ratio of its capacity
    overloaded: Annotated[float, Ge(0), Conf("loadBalancerBrokerOverloadedThresholdPercentage", scale=0.01)] = 0.85
    #: how far below the mean a broker must be, as a ratio of its capacity
    difference: Annotated[
        float, Ge(0), Conf("loadBalancerAverageResourceUsageDifferenceThresholdPercentage", scale=0.01)
    ] = 0.1
    #: who is chosen: the least, or any that is clearly below the average as in newer releases
    rule: Literal["least", "average"] = "least"

    def odds(self, request: LookupRequest, brokers: Candidates, scores: FloatArray, view: ClusterView) -> FloatArray:
        """Return 1 for the candidates the rule takes."""
        usage = np.array([used for _, used in self._smoothed(view.memory, brokers, view)])
        if self.rule == "average":
            # In the order of ids, one by one as Pulsar adds: the last bits decide about a broker on the edge.
            mean = np.add.accumulate(usage[np.argsort(brokers.index)])[-1] / len(usage)
            below = usage + self.difference <= mean
            return below.astype(np.float64) if below.any() else np.ones(len(usage))
        usage[usage > self.overloaded] = np.inf
        least: NDArray[np.bool_] = usage == usage.min()
        return least.astype(np.float64)

    def observe(self, memory: MutableMapping[str, Any], request: LookupRequest, broker: Broker, offer: Offer) -> None:
        """Move smoothed usage on for everybody who was a candidate."""
        moved = self._smoothed(memory, offer.brokers, offer.view)
        memory["usage"] = {**memory.get("usage", {}), **dict(moved)}

    def _smoothed(self, memory: Mapping[str, Any], brokers: Candidates, view: ClusterView) -> list[tuple[str, float]]:
        before: Mapping[str, float] = memory.get("usage", {})
        now, idle = np.nan_to_num(measured_usage(view)[brokers.index]), view.load.throughput[brokers.index] == 0.0
        figures = zip(brokers.ids, now.tolist(), idle.tolist(), strict=True)
        return [(broker, self._moved(before.get(broker), used, is_idle=still)) for broker, used, still in figures]

    def _moved(self, past: float | None, now: float, *, is_idle: bool) -> float:
        starts_anew = past is None or (is_idle and self.rule == "average")
        return now if starts_anew or past is None else past * self.history + (1.0 - self.history) * now
