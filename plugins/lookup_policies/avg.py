"""Even out pairs of brokers with a shedder that plans an owner for each unloaded bundle, and its placement.

Source: "Load managers" in the documentation (AvgShedder, which is Pulsar's shedder and placement in one).
"""

from __future__ import annotations

import math
from collections.abc import Generator, Mapping, MutableMapping
from dataclasses import dataclass
from operator import attrgetter
from typing import Annotated, Any, ClassVar, Literal

import numpy as np
from numpy.typing import NDArray

from lookup.hooks import Conf, Ge, Offer, Unit
from lookup.model import (
    Broker,
    Candidates,
    ClusterView,
    CycleOutcome,
    CycleReason,
    Load,
    LookupRequest,
    Ruling,
    Shortfall,
    Unload,
)
from lookup_policies._unloading import Figures, descending, no_figures, outcome_of, read_column, traffic_short

__all__ = ["Avg", "AvgPlacement"]

FloatArray = NDArray[np.float64]

#: (number of the broker that takes, number of the broker that gives)
_Pair = tuple[int, int]


@dataclass(frozen=True)
class Avg:
    """Pair the least with the most loaded broker, the next with the next, and even out pairs that stay far apart.

    A broker's score is the usage of its fullest resource by the policy's weights, times 100. Two counts are kept of
    each broker. One counts the cycles in which its pair was at least `low_threshold` points apart, the other those in
    which it was at least `high_threshold` points apart. A pair acts when a count of either broker reaches its limit,
    and the counts of both start from zero again. To act, the busier broker gives up bundles, most busy first, each with
    at most the remainder of `max_share` of the difference. The difference is in messages per second if that is more
    than `min_rate`, else in throughput if that is more than `min_throughput`. A rejected bundle is skipped. Each bundle
    is planned for the other broker of its pair, and the placement `avg-placement` follows the plan.

    Match -> Result -> Reason:
        * no registered broker, none with a report -> nothing -> `no-brokers`, `no-load-data`
        * a pair has been far apart often enough and has traffic to even out -> unloads -> `overloaded`
        * such pairs, but none has more than the minimum to even out -> nothing -> `too-little`
        * such a pair but nothing could be unloaded -> nothing -> `no-bundles`
        * no pair has -> nothing -> `hit-count`

    Memory, under the key `avg` that the placement of that name shares. Each of its entries may be absent. All entries
    except the counts hold until the next report:

        {"high": {broker: hits}, "low": {broker: hits}, "at_us": time of the report, "plans": {bundle: [source,
        destination]}, "bound": {content: broker}}

    Source: AvgShedder.
    """

    name: ClassVar[str] = "avg"
    memory_key: ClassVar[str] = "avg"
    reads: ClassVar[frozenset[str]] = frozenset({"view.load", "view.load.rates", "view.load.resources", "view.now"})

    #: points of score from which on a pair is apart
    low_threshold: Annotated[float, Ge(0), Conf("loadBalancerAvgShedderLowThreshold")] = 15.0
    #: points of score from which on it is far apart
    high_threshold: Annotated[float, Ge(0), Conf("loadBalancerAvgShedderHighThreshold")] = 40.0
    #: cycles for which a pair has to be apart
    low_hits: Annotated[int, Ge(0), Conf("loadBalancerAvgShedderHitCountLowThreshold")] = 8
    #: cycles for which it has to be far apart
    high_hits: Annotated[int, Ge(0), Conf("loadBalancerAvgShedderHitCountHighThreshold")] = 2
    #: how much of a pair's difference is given up at once, as a ratio
    max_share: Annotated[float, Ge(0), Conf("maxUnloadPercentage")] = 0.2
    #: messages per second not worth moving
    min_rate: Annotated[float, Ge(0), Conf("minUnloadMessage"), Unit("messages/s")] = 1000.0
    #: throughput not worth moving
    min_throughput: Annotated[float, Ge(0), Conf("minUnloadMessageThroughput"), Unit("bytes/s")] = 1_048_576.0

    def propose(self, view: ClusterView, memory: MutableMapping[str, Any]) -> Generator[Unload, Ruling, CycleOutcome]:
        """Propose bundles of the busier brokers of pairs, most busy first."""
        usage = read_column(view, view.load.weighted)
        if not usage:
            return no_figures(view)
        # Releases from 5.0 on drop plans that had no effect. Earlier releases do not find them again, since the next
        # report changes the content by which they are kept.
        _drop_old_memory(memory, view)["plans"] = {}
        over, acting = self._count_pairs(view, {number: ratio * 100.0 for number, ratio in usage.items()}, memory)
        accepted, idle = 0, CycleReason.TOO_LITTLE
        for pair in acting:
            moved = yield from self._even_out(view, pair, memory)
            if moved is not None:
                accepted, idle = accepted + moved, CycleReason.NO_BUNDLES
        givers = [giver for _, giver in acting]
        if acting:
            short = self._describe_low_traffic(view, acting) if idle is CycleReason.TOO_LITTLE else None
        else:
            short = self._describe_close_pairs(usage, memory, is_apart=bool(over))
        reason = CycleReason.OVERLOADED
        return outcome_of(usage, accepted, over=over, reason=reason, idle=idle, acting=givers, short=short)

    def _describe_close_pairs(self, usage: Figures, memory: Mapping[str, Any], *, is_apart: bool) -> Shortfall:
        """Describe that no pair is apart far enough, or for long enough."""
        if not is_apart:
            points = (max(usage.values()) - min(usage.values())) * 100.0
            return Shortfall(points, "points of score between two brokers", self.low_threshold)
        counts = ((memory["high"], self.high_hits), (memory["low"], self.low_hits))
        short = [Shortfall(max(hits.values(), default=0), "cycles in a row apart", limit) for hits, limit in counts]
        return max(short, key=lambda pair: pair.nearness)

    def _describe_low_traffic(self, view: ClusterView, acting: list[_Pair]) -> Shortfall | None:
        """Describe that no pair's difference is worth moving, in messages where these are known, else in bytes."""
        load = view.load
        column = load.throughput if load.rates is None else load.rates
        needed = max(0.0, *(float(column[giver] - column[taker]) for taker, giver in acting)) * self.max_share
        if load.rates is None:
            return traffic_short(view, needed, self.min_throughput)
        return Shortfall(needed, "messages/s to unload", self.min_rate)

    def _count_pairs(
        self, view: ClusterView, scores: Figures, memory: MutableMapping[str, Any]
    ) -> tuple[Figures, list[_Pair]]:
        """Count the pairs that are apart. Return each giver's distance as a ratio, and the pairs that act now."""
        high, low = dict(memory.get("high", {})), dict(memory.get("low", {}))
        ids, order = view.brokers.ids, sorted(scores, key=scores.__getitem__)
        apart: dict[_Pair, float] = {}
        # From both ends inward. The middle broker of an odd number is its own partner.
        for rank in range(math.ceil(len(order) / 2)):
            taker, giver = order[rank], order[-1 - rank]
            difference = scores[giver] - scores[taker]
            for counts, limit in ((low, self.low_threshold), (high, max(self.low_threshold, self.high_threshold))):
                for broker in (ids[taker], ids[giver]):
                    counts[broker] = counts.get(broker, 0) + 1 if difference >= limit else 0
            if difference >= self.low_threshold:
                apart[taker, giver] = (difference - self.low_threshold) / 100.0
        acting = []
        for pair in apart:
            brokers = [ids[number] for number in pair]
            if any(high[broker] >= self.high_hits or low[broker] >= self.low_hits for broker in brokers):
                # A pair that acts counts from zero again, even if nothing can be unloaded.
                high.update(dict.fromkeys(brokers, 0))
                low.update(dict.fromkeys(brokers, 0))
                acting.append(pair)
        # If no pair is apart all counts are 0, so those of brokers that have gone are dropped too.
        memory["high"] = {broker: hits for broker, hits in high.items() if hits and apart}
        memory["low"] = {broker: hits for broker, hits in low.items() if hits and apart}
        return {giver: ahead for (_, giver), ahead in apart.items()}, acting

    def _even_out(
        self, view: ClusterView, pair: _Pair, memory: MutableMapping[str, Any]
    ) -> Generator[Unload, Ruling, int | None]:
        """Move traffic within a pair. Return the number of moved bundles, None if the difference is too small."""
        load, (taker, giver) = view.load, pair
        traffic = attrgetter("rate")
        needed = 0.0 if load.rates is None else float(load.rates[giver] - load.rates[taker]) * self.max_share
        # A difference of NaN exceeds no limit, so throughput decides, as if messages were not known.
        if not needed > self.min_rate:
            traffic = attrgetter("load")
            needed = float(load.throughput[giver] - load.throughput[taker]) * self.max_share
            if not needed > self.min_throughput:
                return None
        accepted = 0
        for entry in descending(load.top_bundles[giver], traffic):
            carried = traffic(entry)
            # A bundle that does not fit is passed over, since a smaller one further down may.
            if not 0 < carried <= needed:
                continue
            source, destination = view.brokers[giver].id, view.brokers[taker].id
            ruling = yield Unload(entry.bundle, source)
            if ruling.accepted:
                accepted, needed = accepted + 1, needed - carried
                # The unload names no destination: Pulsar's shedder cannot, so its placement has to know.
                memory["plans"][entry.bundle] = [source, destination]
                memory["bound"][content(load, entry.bundle)] = destination
        return accepted


@dataclass(frozen=True)
class AvgPlacement:
    """Assign a bundle to the broker that the shedder `avg` planned for it, else to any.

    Load does not matter here, since the shedder chose the new owner when it unloaded the bundle, and the two share
    their memory under the key `avg`. Pulsar draws among the others by the CRC-32 of a random number, which is
    equivalent to equal odds. Scores do not matter.

    Releases differ in how a plan is kept. Before 5.0 (`plan = "content"`) it is kept by all known figures of the
    bundle, and a drawn broker is remembered in the same way. Bundles with equal figures then share one broker, above
    all the new ones, whose figures are unknown before the next report. From 5.0 on (`plan = "bundle"`) it is kept by
    the bundle's name, no drawn broker is remembered, and an overloaded destination is replaced.

    Match -> Result -> Reason:
        * `plan = "content"`, the broker of the bundle's content is a candidate -> always
        * `plan = "bundle"`, the planned broker is a candidate, not overloaded -> always
        * `plan = "bundle"`, it is overloaded -> an equal share for the others that are not, without the
          bundle's owner
        * `plan = "bundle"`, it is overloaded like all others -> always
        * `plan = "bundle"`, it is not a candidate -> an equal share for all but the bundle's owner
        * otherwise -> an equal share for all

    Source: AvgShedder, which is Pulsar's shedder and placement in one.
    """

    name: ClassVar[str] = "avg-placement"
    memory_key: ClassVar[str] = "avg"
    reads: ClassVar[frozenset[str]] = frozenset({"bundle", "view.load", "view.load.rates", "view.now", "view.memory"})

    #: how the shedder's plan is kept, either by the bundle's figures or by its name
    plan: Literal["content", "bundle"] = "content"
    #: usage above which a planned broker is replaced, as a ratio of its capacity, only for plans by name
    overloaded: Annotated[float, Ge(0), Conf("loadBalancerBrokerOverloadedThresholdPercentage", scale=0.01)] = 0.85

    def odds(self, request: LookupRequest, brokers: Candidates, scores: FloatArray, view: ClusterView) -> FloatArray:
        """Give odds 1 to the planned broker, or to all that may replace it."""
        ids: NDArray[np.str_] = np.array(brokers.ids)
        memory = view.memory if view.memory.get("at_us") == view.now_us else {}
        if self.plan == "content":
            bound: NDArray[np.bool_] = ids == memory.get("bound", {}).get(content(view.load, request.bundle), "")
            return bound.astype(np.float64) if bound.any() else np.ones(len(ids))
        if request.bundle not in memory.get("plans", {}):
            return np.ones(len(ids))
        source, destination = memory["plans"][request.bundle]
        planned: NDArray[np.bool_] = ids == destination
        others: NDArray[np.bool_] = (ids != source) & ~planned
        if not planned.any():
            return others.astype(np.float64)
        usage = view.load.weighted[brokers.index]
        healthy = others & (usage <= self.overloaded)
        is_full = bool((usage[planned] > self.overloaded).any())
        return (healthy if is_full and healthy.any() else planned).astype(np.float64)

    def observe(self, memory: MutableMapping[str, Any], request: LookupRequest, broker: Broker, offer: Offer) -> None:
        """Remember the broker that was drawn, as releases before 5.0 do."""
        if self.plan == "content":
            _drop_old_memory(memory, offer.view)["bound"][content(offer.view.load, request.bundle)] = broker.id


def _drop_old_memory(memory: MutableMapping[str, Any], view: ClusterView) -> MutableMapping[str, Any]:
    """Drop the part of the memory that was kept before the report of this instant, and return the rest."""
    if memory.get("at_us") != view.now_us:
        memory.update(at_us=view.now_us, plans={}, bound={})
    return memory


def content(load: Load, bundle: str) -> str:
    """Identify a bundle by its figures as a text. All bundles with unknown figures have the same text.

    Pulsar compares its `BundleData`, means of messages and bytes. If one of the two is unknown, different
    bundles of a log would look equal, so each is identified by its name.
    """
    rate, throughput = load.long_term_bundle_rates.get(bundle), load.long_term_bundle_throughputs.get(bundle)
    if rate is None and throughput is None:
        return ""
    return bundle if rate is None or throughput is None else f"{rate!r} {throughput!r}"
