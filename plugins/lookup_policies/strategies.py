"""Placement strategies of Pulsar's load managers, by usage, by smoothed usage, and by messages in the long run.

Source: "Load managers" in the documentation (the placement strategies of both load managers).
"""

from __future__ import annotations

import math
from collections.abc import Mapping, MutableMapping
from dataclasses import dataclass
from typing import Annotated, Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from lookup.hooks import Conf, Ge, Le, Offer
from lookup.model import Broker, Candidates, ClusterView, LookupRequest

__all__ = ["LeastLongTermMessageRate", "LeastResourceUsage", "LeastResourceUsageWithWeight", "give", "given_since"]

FloatArray = NDArray[np.float64]


@dataclass(frozen=True)
class LeastResourceUsage:
    """Choose at random among the candidates whose usage is clearly below the average.

    Despite its name it does not look for the least usage, and it does not exclude an overloaded broker. Scores do not
    matter. Usage is added one by one as in Pulsar, in the order of ids, since the last bits decide about a broker
    exactly on the edge.

    Match -> Result -> Reason:
        * usage + `difference` <= mean usage of the candidates with a report -> an equal share
        * no candidate is that far below, or none has a report -> an equal share for all, unreported ones included
        * otherwise, also for an unreported broker if others are that far below -> never

    Source: LeastResourceUsageWithWeight.
    """

    name: ClassVar[str] = "least-resource-usage"
    reads: ClassVar[frozenset[str]] = frozenset({"view.load"})

    #: how far below the mean a broker must be, as a ratio of its capacity, where 1.0 makes it `random`
    difference: Annotated[
        float, Ge(0), Conf("loadBalancerAverageResourceUsageDifferenceThresholdPercentage", scale=0.01)
    ] = 0.1

    def odds(self, request: LookupRequest, brokers: Candidates, scores: FloatArray, view: ClusterView) -> FloatArray:
        """Give equal odds to the brokers clearly below the average, or to all."""
        usage = view.load.usage[brokers.index]
        equal_odds = np.ones(len(usage))
        # In the order of ids, because the last bits of the mean depend on the order.
        ordered = view.load.usage[np.sort(brokers.index)]
        reported = ordered[~np.isnan(ordered)]
        if not len(reported):
            return equal_odds
        # Not sum(), which adds in pairs: Pulsar adds one by one.
        mean = np.add.accumulate(reported)[-1] / len(reported)
        below: NDArray[np.bool_] = usage + self.difference <= mean
        return below.astype(np.float64) if below.any() else equal_odds


@dataclass(frozen=True)
class LeastResourceUsageWithWeight:
    """Choose at random among the candidates whose smoothed usage is clearly below the average.

    Usage is smoothed by broker, as `history` * before + (1 - `history`) * now. Each selection updates it for every
    candidate, so its memory gets shorter with the number of assigned bundles. The smoothing of a broker without load
    starts again. A broker without report has usage 0. Scores do not matter. `least-resource-usage` is the strategy of
    the extensible manager, which takes the usage that brokers report.

    Match -> Result -> Reason:
        * smoothed usage + `difference` <= mean of the candidates -> an equal share
        * no candidate is that far below -> an equal share for all
        * otherwise -> never

    Source: LeastResourceUsageWithWeight of the modular manager, equal in Pulsar 4.0.8, 4.2.4 and 5.0.1.
    """

    name: ClassVar[str] = "least-resource-usage-with-weight"
    reads: ClassVar[frozenset[str]] = frozenset({"view.load", "view.memory"})

    #: weight of the past in smoothed usage, in [0, 1]
    history: Annotated[float, Ge(0), Le(1), Conf("loadBalancerHistoryResourcePercentage")] = 0.9
    #: how far below the mean a broker must be, as a ratio of its capacity
    difference: Annotated[
        float, Ge(0), Conf("loadBalancerAverageResourceUsageDifferenceThresholdPercentage", scale=0.01)
    ] = 0.1

    def odds(self, request: LookupRequest, brokers: Candidates, scores: FloatArray, view: ClusterView) -> FloatArray:
        """Give equal odds to the brokers clearly below the average, or to all."""
        usage = np.array([used for _, used in self._smooth(view.memory, brokers, view)])
        # In the order of ids, one by one as Pulsar adds. The last bits decide about a broker on the edge.
        mean = np.add.accumulate(usage[np.argsort(brokers.index)])[-1] / len(usage)
        below: NDArray[np.bool_] = usage + self.difference <= mean
        return below.astype(np.float64) if below.any() else np.ones(len(usage))

    def observe(self, memory: MutableMapping[str, Any], request: LookupRequest, broker: Broker, offer: Offer) -> None:
        """Update the smoothed usage of every broker that was a candidate."""
        moved = self._smooth(memory, offer.brokers, offer.view)
        memory["usage"] = {**memory.get("usage", {}), **dict(moved)}

    def _smooth(self, memory: Mapping[str, Any], brokers: Candidates, view: ClusterView) -> list[tuple[str, float]]:
        before: Mapping[str, float] = memory.get("usage", {})
        now, idle = np.nan_to_num(view.load.weighted[brokers.index]), view.load.throughput[brokers.index] == 0.0
        smoothed = []
        for broker, used, is_idle in zip(brokers.ids, now.tolist(), idle.tolist(), strict=True):
            past = before.get(broker)
            if past is None or is_idle:
                smoothed.append((broker, used))
            else:
                smoothed.append((broker, past * self.history + (1.0 - self.history) * used))
        return smoothed


@dataclass(frozen=True)
class LeastLongTermMessageRate:
    """Choose the broker with the least messages per second in the long run, overloaded ones last.

    A broker's rate is its reported rate plus the rates of the bundles that it got since, which no report includes yet.
    If long-term rates are unknown, present rates count, and otherwise the load. Every grid instant is a report. A
    broker without report has rate and usage 0. Scores do not matter.

    Match -> Result -> Reason:
        * usage <= `overloaded`, no candidate has a smaller rate -> an equal share
        * usage > `overloaded` for every candidate -> an equal share for all, since their rates count as infinite
        * otherwise -> never

    Source: LeastLongTermMessageRate, ModularLoadManagerImpl.
    """

    name: ClassVar[str] = "least-long-term-message-rate"
    reads: ClassVar[frozenset[str]] = frozenset({"bundle", "view.load", "view.load.rates", "view.now", "view.memory"})

    #: usage above which a broker is chosen only if all are, as a ratio of its capacity
    overloaded: Annotated[float, Ge(0), Conf("loadBalancerBrokerOverloadedThresholdPercentage", scale=0.01)] = 0.85
    #: messages per second, in + out, of an unknown bundle, of which Pulsar assumes 50 in and 50 out. Any number above 0
    #: spreads bundles that are assigned at the same time
    unknown_rate: Annotated[float, Ge(0)] = 100.0

    def odds(self, request: LookupRequest, brokers: Candidates, scores: FloatArray, view: ClusterView) -> FloatArray:
        """Give equal odds to the candidates with the least rate."""
        columns = (view.load.long_term_rates, view.load.rates, view.load.throughput)
        reported = next(rates for rates in columns if rates is not None)
        loads = given_since(view.memory, view.now_us)
        expected = [math.fsum(loads.get(broker_id, {}).values()) for broker_id in brokers.ids]
        rates = np.nan_to_num(reported[brokers.index]) + expected
        # Infinite, not left out. If every candidate is overloaded, they tie and one of them is chosen.
        rates[view.load.weighted[brokers.index] > self.overloaded] = np.inf
        least: NDArray[np.bool_] = rates == rates.min()
        return least.astype(np.float64)

    def observe(self, memory: MutableMapping[str, Any], request: LookupRequest, broker: Broker, offer: Offer) -> None:
        """Add the bundle's rate to its new owner until the next report."""
        if not offer.is_assigned:
            return
        rate = offer.view.load.long_term_bundle_rates.get(request.bundle, self.unknown_rate)
        give(memory, offer.view.now_us, broker, request.bundle, rate)


def given_since(memory: Mapping[str, Any], now_us: int) -> Mapping[str, Mapping[str, float]]:
    """Read the bundles that each broker got since the report of an instant, with the rate of each."""
    loads: Mapping[str, Mapping[str, float]] = memory.get("given", {}) if memory.get("at_us") == now_us else {}
    return loads


def give(memory: MutableMapping[str, Any], now_us: int, broker: Broker, bundle: str, load: float) -> None:
    """Add a bundle to a broker since the report of an instant, which includes earlier bundles."""
    loads = dict(given_since(memory, now_us))
    loads[broker.id] = {**loads.get(broker.id, {}), bundle: load}
    memory.update(at_us=now_us, given=loads)
