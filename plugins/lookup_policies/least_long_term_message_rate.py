"""The selector `least-long-term-message-rate`: the modular manager's default before Pulsar 5.0."""

from __future__ import annotations

import math
from collections.abc import Mapping, MutableMapping
from dataclasses import dataclass
from typing import Annotated, Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from lookup.hooks import Conf, Ge, Offer
from lookup.model import Broker, Candidates, ClusterView, LookupRequest
from lookup_policies._unloading import measured_usage

__all__ = ["LeastLongTermMessageRate"]


@dataclass(frozen=True)
class LeastLongTermMessageRate:
    """Choose the broker with the least messages per second in the long run, overloaded ones last.

    A broker's rate is the one it reported plus those of the bundles it was given since, whose traffic no report shows
    yet. Where rates of the long run are not known the present ones count, else the load; every grid instant is a
    report. A broker without report has rate and usage 0. Scores do not matter.

    Match -> Result -> Reason:
        * usage <= `overloaded`, no candidate has a smaller rate -> an equal share
        * usage > `overloaded` for every candidate -> an equal share for all: their rates count as infinite, and tie
        * otherwise -> never

    Source: LeastLongTermMessageRate, ModularLoadManagerImpl.
    """

    name: ClassVar[str] = "least-long-term-message-rate"
    reads: ClassVar[frozenset[str]] = frozenset({"bundle", "view.load", "view.load.rates", "view.now", "view.memory"})

    #: usage above which a broker is chosen only where all are, as a ratio of its capacity
    overloaded: Annotated[float, Ge(0), Conf("loadBalancerBrokerOverloadedThresholdPercentage", scale=0.01)] = 0.85
    #: messages per second, in + out, of a bundle nothing is known of; Pulsar takes 50 of each. Any number above 0 makes
    #: bundles that come in one go spread out
    unknown_rate: Annotated[float, Ge(0)] = 100.0

    def odds(
        self, request: LookupRequest, brokers: Candidates, scores: NDArray[np.float64], view: ClusterView
    ) -> NDArray[np.float64]:
        """Return 1 for the candidates with the least rate."""
        known = (view.load.long_term_rates, view.load.rates, view.load.throughput)
        reported = next(rates for rates in known if rates is not None)
        given = _given(view.memory, view.now_us)
        expected = [math.fsum(given.get(broker_id, {}).values()) for broker_id in brokers.ids]
        rates = np.nan_to_num(reported[brokers.index]) + expected
        rates[measured_usage(view)[brokers.index] > self.overloaded] = np.inf
        least: NDArray[np.bool_] = rates == rates.min()
        return least.astype(np.float64)

    def observe(self, memory: MutableMapping[str, Any], request: LookupRequest, broker: Broker, offer: Offer) -> None:
        """Count the bundle's rate for its new owner until the next report."""
        now_us = offer.view.now_us
        given = dict(_given(memory, now_us))
        rate = offer.view.load.long_term_bundle_rates.get(request.bundle, self.unknown_rate)
        given[broker.id] = {**given.get(broker.id, {}), request.bundle: rate}
        memory.update(at_us=now_us, given=given)


def _given(memory: Mapping[str, Any], now_us: int) -> Mapping[str, Mapping[str, float]]:
    # By broker, then bundle: rates of what was given since the report of this instant.
    given: Mapping[str, Mapping[str, float]] = memory.get("given", {}) if memory.get("at_us") == now_us else {}
    return given
