"""Chooses as Pulsar's own placement strategies do: by usage, by smoothed usage, by messages in the long run.

Source: "Load managers" in the documentation (the placement strategies of both load managers).
"""

from __future__ import annotations

import math
from collections.abc import Mapping, MutableMapping
from dataclasses import dataclass
from typing import Annotated, Any, ClassVar, Literal

import numpy as np
from numpy.typing import NDArray

from lookup.hooks import Conf, Ge, Le, Offer
from lookup.model import Broker, Candidates, ClusterView, LookupRequest

__all__ = ["LeastLongTermMessageRate", "LeastResourceUsage", "LeastResourceUsageWithWeight", "give", "given_since"]

FloatArray = NDArray[np.float64]


@dataclass(frozen=True)
class LeastResourceUsage:
    """Choose at random among the candidates whose usage is clearly below the average.

    Despite its name it does not look for the least, and an overloaded broker is not excluded. Scores do not matter.
    Figures are added one by one as in Pulsar, in the order of ids: whether a broker exactly on the edge is chosen
    depends on their last bits, here as there.

    Match -> Result -> Reason:
        * usage + `difference` <= mean usage of the candidates with a report -> an equal share
        * no candidate is that far below, or none has a report -> an equal share for all, unreported ones included
        * otherwise, also for an unreported broker if others are that far below -> never

    Source: LeastResourceUsageWithWeight.
    """

    name: ClassVar[str] = "least-resource-usage"
    reads: ClassVar[frozenset[str]] = frozenset({"view.load"})

    #: how far below the mean a broker must be, as a ratio of its capacity; 1.0 makes it `random`
    difference: Annotated[
        float, Ge(0), Conf("loadBalancerAverageResourceUsageDifferenceThresholdPercentage", scale=0.01)
    ] = 0.1

    def odds(self, request: LookupRequest, brokers: Candidates, scores: FloatArray, view: ClusterView) -> FloatArray:
        """Return 1 for the brokers clearly below the average, or for all."""
        usage = view.load.usage[brokers.index]
        equal_odds = np.ones(len(usage))
        # Of candidates, in the order of ids whatever order they came in: the last bits of the mean depend on it.
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
    #: smoothed usage above which a broker is chosen only if all are, as a ratio of its capacity
    overloaded: Annotated[float, Ge(0), Conf("loadBalancerBrokerOverloadedThresholdPercentage", scale=0.01)] = 0.85
    #: how far below the mean a broker must be, as a ratio of its capacity
    difference: Annotated[
        float, Ge(0), Conf("loadBalancerAverageResourceUsageDifferenceThresholdPercentage", scale=0.01)
    ] = 0.1
    #: the brokers to choose: the least, or any that is clearly below the average as in newer releases
    rule: Literal["least", "average"] = "least"

    def odds(self, request: LookupRequest, brokers: Candidates, scores: FloatArray, view: ClusterView) -> FloatArray:
        """Return 1 for the candidates the rule takes."""
        usage = np.array([used for _, used in self._smooth(view.memory, brokers, view)])
        if self.rule == "average":
            # In the order of ids, one by one as Pulsar adds: the last bits decide about a broker on the edge.
            mean = np.add.accumulate(usage[np.argsort(brokers.index)])[-1] / len(usage)
            below = usage + self.difference <= mean
            return below.astype(np.float64) if below.any() else np.ones(len(usage))
        # Overloaded ones tie behind all others, so if all are, any of them will do.
        usage[usage > self.overloaded] = np.inf
        least: NDArray[np.bool_] = usage == usage.min()
        return least.astype(np.float64)

    def observe(self, memory: MutableMapping[str, Any], request: LookupRequest, broker: Broker, offer: Offer) -> None:
        """Move smoothed usage on for every broker that was a candidate."""
        moved = self._smooth(memory, offer.brokers, offer.view)
        # Brokers that were no candidates keep their past: this selection says nothing of them.
        memory["usage"] = {**memory.get("usage", {}), **dict(moved)}

    def _smooth(self, memory: Mapping[str, Any], brokers: Candidates, view: ClusterView) -> list[tuple[str, float]]:
        before: Mapping[str, float] = memory.get("usage", {})
        now, idle = np.nan_to_num(view.load.weighted[brokers.index]), view.load.throughput[brokers.index] == 0.0
        smoothed = []
        for broker, used, is_idle in zip(brokers.ids, now.tolist(), idle.tolist(), strict=True):
            past = before.get(broker)
            # In newer releases a broker that carries nothing forgets what it carried.
            if past is None or (is_idle and self.rule == "average"):
                smoothed.append((broker, used))
            else:
                smoothed.append((broker, past * self.history + (1.0 - self.history) * used))
        return smoothed


@dataclass(frozen=True)
class LeastLongTermMessageRate:
    """Choose the broker with the least messages per second in the long run, overloaded ones last.

    A broker's rate is the one it reported plus those of the bundles it was given since, whose traffic no report shows
    yet. If rates of the long run are not known the present ones count, else the load; every grid instant is a
    report. A broker without report has rate and usage 0. Scores do not matter.

    Match -> Result -> Reason:
        * usage <= `overloaded`, no candidate has a smaller rate -> an equal share
        * usage > `overloaded` for every candidate -> an equal share for all: their rates count as infinite, and tie
        * otherwise -> never

    Source: LeastLongTermMessageRate, ModularLoadManagerImpl.
    """

    name: ClassVar[str] = "least-long-term-message-rate"
    reads: ClassVar[frozenset[str]] = frozenset({"bundle", "view.load", "view.load.rates", "view.now", "view.memory"})

    #: usage above which a broker is chosen only if all are, as a ratio of its capacity
    overloaded: Annotated[float, Ge(0), Conf("loadBalancerBrokerOverloadedThresholdPercentage", scale=0.01)] = 0.85
    #: messages per second, in + out, of an unknown bundle; Pulsar takes 50 of each. Any number above 0 makes
    #: bundles that come in one go spread out
    unknown_rate: Annotated[float, Ge(0)] = 100.0

    def odds(self, request: LookupRequest, brokers: Candidates, scores: FloatArray, view: ClusterView) -> FloatArray:
        """Return 1 for the candidates with the least rate."""
        known = (view.load.long_term_rates, view.load.rates, view.load.throughput)
        reported = next(rates for rates in known if rates is not None)
        given = given_since(view.memory, view.now_us)
        expected = [math.fsum(given.get(broker_id, {}).values()) for broker_id in brokers.ids]
        rates = np.nan_to_num(reported[brokers.index]) + expected
        # Infinite, not left out: if every candidate is overloaded they tie, and one of them is chosen all the same.
        rates[view.load.weighted[brokers.index] > self.overloaded] = np.inf
        least: NDArray[np.bool_] = rates == rates.min()
        return least.astype(np.float64)

    def observe(self, memory: MutableMapping[str, Any], request: LookupRequest, broker: Broker, offer: Offer) -> None:
        """Count the bundle's rate for its new owner until the next report."""
        if not offer.is_assigned:
            return
        rate = offer.view.load.long_term_bundle_rates.get(request.bundle, self.unknown_rate)
        give(memory, offer.view.now_us, broker, request.bundle, rate)


def given_since(memory: Mapping[str, Any], now_us: int) -> Mapping[str, Mapping[str, float]]:
    """Return the bundles that each broker was given since the report of an instant, and what each carries."""
    given: Mapping[str, Mapping[str, float]] = memory.get("given", {}) if memory.get("at_us") == now_us else {}
    return given


def give(memory: MutableMapping[str, Any], now_us: int, broker: Broker, bundle: str, load: float) -> None:
    """Note that a broker was given a bundle since the report of an instant, which has the traffic of those before."""
    given = dict(given_since(memory, now_us))
    given[broker.id] = {**given.get(broker.id, {}), bundle: load}
    memory.update(at_us=now_us, given=given)
