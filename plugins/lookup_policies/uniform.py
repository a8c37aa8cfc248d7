"""The shedder `uniform`, which unloads the busiest broker while it is far ahead of the least busy one."""

from __future__ import annotations

from collections.abc import Generator, MutableMapping
from dataclasses import dataclass
from operator import attrgetter
from typing import Annotated, Any, ClassVar, Literal

from lookup.hooks import Conf, Ge, Unit
from lookup.model import ClusterView, CycleOutcome, CycleReason, Ruling, Shortfall, Unload
from lookup_policies._unloading import (
    Figures,
    descending,
    few_bundles,
    no_figures,
    outcome_of,
    read_column,
    traffic_short,
)

__all__ = ["Uniform"]

#: Java's largest 32-bit integer.
_MAX_INT = 2**31 - 1
#: Traffic up to this much counts as none in Pulsar.
_EPSILON = 1e-6


@dataclass(frozen=True)
class _Excess:
    """Traffic that the busiest broker has to give up."""

    broker: int
    #: most that the bundles given up may carry together, in the unit of `traffic`
    required: float
    #: least that is worth while
    minimum: float
    #: whether messages decide, or throughput
    is_messages: bool
    #: distance of the broker above the tolerance, in the measure of `rate_difference` or `throughput_multiple`
    ahead: float


@dataclass(frozen=True)
class Uniform:
    """Unload bundles of the broker with the most traffic while it is far ahead of the one with the least.

    Messages come first. The busiest broker by messages per second is ahead when it exceeds the least busy one by more
    than `rate_difference`, as a ratio of that one's. Else the busiest by throughput (the view's load) is ahead with
    more than `throughput_multiple` times the least. It gives up bundles, most busy first, each with at most the
    remainder of `max_share` of the difference plus `extra`. A rejected bundle is skipped. The next lookup of each
    decides its new owner. If messages per second are not known only throughput counts.

    Quirks: with `quirks = "upstream"` a broker above 2^31 - 1 (2.1 GB/s) is never the least busy, and if all are above
    it that number replaces it, so a busy cluster looks uneven. The required traffic is a whole number of at most 2^31 -
    1, each bundle reduces it only by the whole part of its traffic, and bundles without traffic are taken as well. With
    `"intended"` the least is the least, all figures are exact and bundles without traffic stay.

    Match -> Result -> Reason:
        * no registered broker, none with a report -> nothing -> `no-brokers`, `no-load-data`
        * one broker is ahead, has more than one bundle and enough to give up -> unloads -> `overloaded`
        * one is ahead, but less than the minimum would have to go -> nothing -> `too-little`
        * one is ahead but nothing could be unloaded -> nothing -> `no-bundles`
        * none is ahead -> nothing -> `hit-count`, the condition is not met

    Source: UniformLoadShedder, and apache/pulsar #21906 for `extra`.
    """

    name: ClassVar[str] = "uniform"
    reads: ClassVar[frozenset[str]] = frozenset({"view.load", "view.load.rates", "view.ownership"})

    #: tolerated excess of messages per second, as a ratio of the least. With 0 messages do not count
    rate_difference: Annotated[float, Ge(0), Conf("loadBalancerMsgRateDifferenceShedderThreshold", scale=0.01)] = 0.5
    #: tolerated multiple of the least throughput. With 0 throughput does not count
    throughput_multiple: Annotated[
        float, Ge(0), Conf("loadBalancerMsgThroughputMultiplierDifferenceShedderThreshold")
    ] = 4.0
    #: how much of the difference is given up in one cycle, as a ratio
    max_share: Annotated[float, Ge(0), Conf("maxUnloadPercentage")] = 0.2
    #: messages per second below which moving is not worth while
    min_rate: Annotated[float, Ge(0), Conf("minUnloadMessage"), Unit("messages/s", "rate_difference")] = 1000.0
    #: throughput below which moving is not worth while
    min_throughput: Annotated[
        float, Ge(0), Conf("minUnloadMessageThroughput"), Unit("bytes/s", "throughput_multiple")
    ] = 1_048_576.0
    #: most bundles of one cycle, -1 for no limit
    max_bundles: Annotated[int, Ge(-1), Conf("maxUnloadBundleNumPerShedding")] = -1
    #: traffic that a bundle may have beyond the remainder, in messages/s or bytes/s, 1000 in Pulsar 4.0 and before
    extra: Annotated[float, Ge(0)] = 0.0
    #: whether accidents of Pulsar's code are kept
    quirks: Literal["upstream", "intended"] = "upstream"

    def propose(self, view: ClusterView, memory: MutableMapping[str, Any]) -> Generator[Unload, Ruling, CycleOutcome]:
        """Propose bundles of the busiest broker, most busy first."""
        throughput = read_column(view, view.load.throughput)
        if not throughput:
            return no_figures(view)
        rates = {} if view.load.rates is None else read_column(view, view.load.rates)
        excess = self._compute_excess(rates, throughput)
        # A broker keeps its last bundle, since unloading it would only move the load to another broker.
        accepted, idle = 0, CycleReason.NO_BUNDLES
        if excess is not None and excess.required < excess.minimum:
            idle = CycleReason.TOO_LITTLE
        elif excess is not None and view.ownership.bundles()[excess.broker] > 1:
            remaining, traffic_of = excess.required, attrgetter("rate" if excess.is_messages else "load")
            for entry in descending(view.load.top_bundles[excess.broker], traffic_of):
                if accepted == self.max_bundles:
                    break
                traffic = traffic_of(entry)
                if traffic > remaining + self.extra or (not traffic and self.quirks == "intended"):
                    continue
                ruling = yield Unload(entry.bundle, view.brokers[excess.broker].id)
                if ruling.accepted:
                    accepted, remaining = accepted + 1, remaining - self._round_down(traffic)
        over = {} if excess is None else {excess.broker: excess.ahead}
        usage = read_column(view, view.load.measured)
        short = self._describe_shortfall(view, rates, throughput, excess)
        return outcome_of(usage, accepted, over=over, reason=CycleReason.OVERLOADED, idle=idle, short=short)

    def _describe_shortfall(
        self, view: ClusterView, rates: Figures, throughput: Figures, excess: _Excess | None
    ) -> Shortfall | None:
        if excess is not None and excess.required < excess.minimum:
            if excess.is_messages:
                return Shortfall(excess.required, "messages/s to unload", excess.minimum)
            return traffic_short(view, excess.required, excess.minimum)
        if excess is not None:
            return few_bundles(view, excess.broker)
        if rates and self.rate_difference:
            _, most, least = self._find_extremes(rates)
            return Shortfall(
                (most - least) * 100.0 / least, "% more messages than the idlest broker", self.rate_difference * 100.0
            )
        if not self.throughput_multiple:
            return None
        _, most, least = self._find_extremes(throughput)
        return Shortfall(most / least, "times the traffic of the idlest broker", self.throughput_multiple)

    def _compute_excess(self, rates: Figures, throughput: Figures) -> _Excess | None:
        # Messages come first. Throughput counts only if they are not known, or no broker is ahead by them.
        if rates and self.rate_difference:
            busiest, most, least = self._find_extremes(rates)
            if (most - least) * 100 / least > self.rate_difference * 100:
                required = self._round_down((most - least) * self.max_share)
                ahead = (most - least) / least - self.rate_difference
                return _Excess(busiest, required, self.min_rate, is_messages=True, ahead=ahead)
        busiest, most, least = self._find_extremes(throughput)
        if not self.throughput_multiple or most / least <= self.throughput_multiple:
            return None
        required = self._round_down((most - least) * self.max_share)
        ahead = most / least - self.throughput_multiple
        return _Excess(busiest, required, self.min_throughput, is_messages=False, ahead=ahead)

    def _find_extremes(self, figures: Figures) -> tuple[int, float, float]:
        # Number of the busiest, the first of equals, its figure, and that of the least busy.
        busiest = max(figures, key=lambda number: figures[number])
        least = min(figures.values())
        if self.quirks == "upstream":
            # Pulsar looks for the least from an int's greatest value down.
            least = min(least, float(_MAX_INT))
        return busiest, figures[busiest], 1.0 if abs(least) <= _EPSILON else least

    def _round_down(self, figure: float) -> float:
        # Java's (int) cuts fractions off and stops at the largest integer.
        return float(min(int(figure), _MAX_INT)) if self.quirks == "upstream" else figure
