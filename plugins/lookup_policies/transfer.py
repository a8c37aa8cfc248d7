"""The shedder `transfer`: Pulsar's TransferShedder, which hands bundles of the fullest brokers to the emptiest."""

from __future__ import annotations

import math
from collections.abc import Generator, Iterator, MutableMapping, Sequence
from dataclasses import dataclass, field
from typing import Annotated, Any, ClassVar, Literal

import numpy as np

from lookup.hooks import Conf, Ge
from lookup.model import (
    BundleLoad,
    ClusterView,
    CycleLabel,
    CycleOutcome,
    CycleReason,
    LoadStats,
    Probe,
    Ruling,
    Shortfall,
    Unload,
)

__all__ = ["Transfer"]

#: A swap must leave the source with less than this share of its load, or moving would hardly help it.
_SWAPPED_SHARE = 0.75

_Proposals = Generator[Unload | Probe, Ruling, None]


@dataclass(frozen=True)
class Transfer:
    """Move bundles from the broker with the highest usage to the one with the lowest until usage is even enough.

    Acts after more than `hit_count` consecutive cycles that meet a condition. Either the deviation of usage
    exceeds `target_std`, or the emptiest broker is underloaded, or the fullest is overloaded. A broker is
    underloaded if its usage is below the average, or its smoothed load below the fullest broker's, times half
    of `target_std` within [0, 0.5]. It is overloaded if its usage is above `overloaded` and above the average +
    `target_std`. Brokers are paired from both ends, at most `brokers_per_cycle` pairs. A broker offers the
    `top_bundles` that rank highest, lowest of these first, and keeps one. They move while they fit into half of
    the pair's difference. A bundle that does not fit moves if bundles of the emptier broker return for it.
    Their destination must pass the policy's filters, even if `transfer` is off and the next lookup decides it.

    Loads in bytes are ranked as by Pulsar's TopKBundles, by steps of 100 kB/s inbound, then outbound, then by
    messages. The weight of lookups, which such steps would not distinguish, is ranked by its exact value.

    Match -> Result -> Reason:
        * some broker unloaded in the last `cool_down_s` before it measured its load -> nothing -> `cool-down`
        * all reports are older than `ttl_s` -> nothing -> `out-dated-data`
        * no broker reports -> nothing -> `no-brokers`
        * a registered broker does not report -> nothing -> `no-load-data`
        * balanced, or not `hit_count` times out of balance before -> nothing -> `hit-count`
        * deviation above `target_std`, or the fullest broker overloaded -> unloads -> `overloaded`
        * else the emptiest broker underloaded -> unloads -> `underloaded`
        * no bundle fits or may go -> nothing -> `no-load-data` if a source reports no bundles, else
          `no-bundles`

    `quirks`, all from TransferShedder's source. `upstream` does as Pulsar does, `intended` follows the evident
    intention:
        * bundles that return in a swap are counted only with `debug`. Without it the modelled deviation stays
          too high and further bundles are compared with a too high value. Intended: they always count.
        * brokers with outdated reports are left out of the average but may be paired. Intended: they are not.
        * reports of brokers that are no longer registered count and may be paired. Intended: they do not.
        * a source with usage 0 but some load gives up all bundles but one. Intended: none.
        * swaps are compared by load alone, so if usage is not in proportion to load they can raise the modelled
          deviation. Intended: such a swap is not made.
        * a bundle may return in a swap though it was unloaded within the grace period. Intended: it stays.

    Unlike in Pulsar, the broker's id and not the order of a hash map decides between equals (unless the view
    has a `store_order`).

    Source: TransferShedder, UnloadScheduler, and TopKBundles for top bundles.
    """

    name: ClassVar[str] = "transfer"
    reads: ClassVar[frozenset[str]] = frozenset({"view.load", "view.now"})

    #: standard deviation of usage that is even enough, ratio of capacity
    target_std: Annotated[float, Ge(0), Conf("loadBalancerBrokerLoadTargetStd")] = 0.25
    #: cycles out of balance in a row after which the next one acts
    hit_count: Annotated[int, Ge(0), Conf("loadBalancerSheddingConditionHitCountThreshold")] = 3
    #: whether bundles get their new owner at once. Without it the next lookup decides
    transfer: Annotated[bool, Conf("loadBalancerTransferEnabled")] = True
    #: how many brokers may give up bundles in one cycle
    brokers_per_cycle: Annotated[int, Ge(0), Conf("loadBalancerMaxNumberOfBrokerSheddingPerCycle")] = 3
    #: usage above which a broker can be overloaded
    overloaded: Annotated[float, Ge(0), Conf("loadBalancerBrokerOverloadedThresholdPercentage", scale=0.01)] = 0.85
    #: seconds between a broker's unload and the load it has to measure before the next cycle acts
    cool_down_s: Annotated[int, Ge(0), Conf("loadBalanceSheddingDelayInSeconds")] = 180
    #: seconds after which a load report counts no more
    ttl_s: Annotated[int, Ge(0), Conf("loadBalancerBrokerLoadDataTTLInSeconds")] = 1800
    #: whether bundles of namespaces with isolation policies or anti-affinity groups are touched
    shed_with_policies: Annotated[bool, Conf("loadBalancerSheddingBundlesWithPoliciesEnabled")] = False
    #: how many bundles a broker reports, and so offers
    top_bundles: Annotated[int, Ge(1), Conf("loadBalancerMaxNumberOfBundlesInBundleLoadReport")] = 10
    #: Pulsar's debug mode, which changes decisions, see `quirks`
    debug: Annotated[bool, Conf("loadBalancerDebugModeEnabled")] = False
    #: whether Pulsar's accidents are reproduced
    quirks: Literal["upstream", "intended"] = "upstream"

    def propose(
        self, view: ClusterView, memory: MutableMapping[str, Any]
    ) -> Generator[Unload | Probe, Ruling, CycleOutcome]:
        """Propose bundles of the fullest brokers, pair by pair."""
        cooling: MutableMapping[str, int] = memory.setdefault("unloaded_us", {})
        listed, counted, reason = self._gather(view, cooling)
        if reason is not None:
            return CycleOutcome(CycleLabel.SKIP, reason)
        reports = _Reports(self, view)
        stats = LoadStats.of(reports.usage[number] for number in counted)
        cycle = _TransferCycle(self, reports, stats, sorted(listed, key=reports.usage.__getitem__))
        memory["hits"] = 0 if cycle.reason() is None else memory.get("hits", 0) + 1
        if memory["hits"] > self.hit_count:
            yield from cycle.pairs()
        ahead = [reports.usage[number] - stats.average - self.target_std for number in counted]
        over, excess = sum(by > 0 for by in ahead), max(0.0, *ahead)
        label, reason = CycleLabel.SKIP, cycle.idle()
        if cycle.sources:
            memory["hits"] = 0
            cooling.update(dict.fromkeys(cycle.sources, view.now_us))
            label, reason = CycleLabel.SUCCESS, cycle.reasons[0]
        modelled, short = (
            cycle.stats.deviation,
            None if cycle.sources else self._describe_shortfall(cycle, memory["hits"]),
        )
        return CycleOutcome(
            label, reason, stats.average, stats.deviation, modelled, over=over, excess=excess, short=short
        )

    def _describe_shortfall(self, cycle: _TransferCycle, hits: int) -> Shortfall | None:
        # The obstacle, which is the condition, its count, or the last bundle of the fullest broker.
        if not hits:
            return Shortfall(cycle.stats.deviation, "deviation of usage", self.target_std)
        if hits <= self.hit_count:
            return Shortfall(hits, "cycles in a row out of balance", self.hit_count + 1)
        fullest = cycle.order[-1]
        count = len(cycle.reports.top(fullest))
        return Shortfall(count, f"bundles in the report of {cycle.reports.ids[fullest]}", 2) if count <= 1 else None

    def _gather(
        self, view: ClusterView, cooling: MutableMapping[str, int]
    ) -> tuple[list[int], list[int], CycleReason | None]:
        # Returns the brokers that may be paired, the brokers that count in the average, and the reason if no cycle
        # runs. Like the load store, it lists brokers with a report, registered or not.
        listed, counted = np.flatnonzero(~np.isnan(view.load.usage)).tolist(), list[int]()
        if view.load.store_order is not None:
            numbers = set(listed)
            listed = [number for number in view.load.store_order if number in numbers]
        if self.quirks == "intended":
            listed = [number for number in listed if view.registered[number]]
        for number in listed:
            updated = view.now_us if view.load.updated_us is None else int(view.load.updated_us[number])
            if view.now_us - updated > self.ttl_s * 1_000_000:
                continue
            unloaded = cooling.get(view.brokers[number].id)
            if unloaded is not None:
                if updated - unloaded < self.cool_down_s * 1_000_000:
                    return [], [], CycleReason.COOL_DOWN
                del cooling[view.brokers[number].id]
            counted.append(number)
        if not counted:
            return [], [], CycleReason.OUT_DATED_DATA if listed else CycleReason.NO_BROKERS
        # A broker that has not reported yet could be the emptiest, so nothing is moved before it has.
        if np.isnan(view.load.usage[view.registered]).any():
            return [], [], CycleReason.NO_LOAD_DATA
        return counted if self.quirks == "intended" else listed, counted, None


class _Reports:
    """Reports of brokers by number. Unknown load counts as 0, as in Pulsar's reports."""

    def __init__(self, part: Transfer, view: ClusterView) -> None:
        self.ids: Sequence[str] = view.brokers.ids
        self.usage: list[float] = view.load.usage.tolist()
        smoothed = view.load.smoothed_throughput
        self.load: list[float] = np.nan_to_num(view.load.throughput).tolist()
        self.smoothed: list[float] = self.load if smoothed is None else np.nan_to_num(smoothed).tolist()
        self._part, self._view = part, view

    def top(self, number: int) -> Sequence[BundleLoad]:
        """List the bundles in a broker's report, the least loaded first."""
        part, view = self._part, self._view
        return view.load.reported_bundles(
            number, part.top_bundles, policies=view.namespaces, with_policies=part.shed_with_policies
        )


@dataclass
class _TransferCycle:
    """One running cycle, with pairs of brokers from both ends of the order of usage."""

    part: Transfer
    reports: _Reports
    stats: LoadStats
    #: numbers of brokers, ascending by usage
    order: Sequence[int]
    low: int = 0
    #: sources that reported no bundles, and sources that had nothing to give
    silent: int = 0
    idling: int = 0
    #: the reason of each pair that moved something
    reasons: list[CycleReason] = field(default_factory=list)
    #: ids of brokers that gave up bundles
    sources: dict[str, None] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.high = len(self.order) - 1

    def reason(self) -> CycleReason | None:
        """Find why the brokers at both ends should be paired, None if they are balanced."""
        part, usage = self.part, self.reports.usage
        emptiest, fullest = self.order[self.low], self.order[self.high]
        if self.stats.deviation > part.target_std:
            return CycleReason.OVERLOADED
        # Bounded as in Pulsar. With a target above 1, any broker slightly below the average would count as underloaded.
        factor = min(0.5, max(0.0, part.target_std / 2.0))
        smoothed = self.reports.smoothed
        if usage[emptiest] < self.stats.average * factor or smoothed[emptiest] < smoothed[fullest] * factor:
            return CycleReason.UNDERLOADED
        is_over = usage[fullest] > part.overloaded and usage[fullest] > self.stats.average + part.target_std
        return CycleReason.OVERLOADED if is_over else None

    def pairs(self) -> _Proposals:
        """Pair brokers until they are balanced, enough have given something up, or the ends meet."""
        while len(self.reasons) < self.part.brokers_per_cycle and self.low < self.high:
            reason = self.reason()
            if reason is None:
                return
            pair = _Pair(self, reason)
            self.high -= 1
            if not pair.top:
                self.silent += 1
                continue
            yield from pair.proposals()
            if pair.out > 0:
                self.stats, self.low = pair.stats_after_moves(self.stats), self.low + 1
                self.reasons.append(reason)
                self.sources.update(dict.fromkeys(pair.sources))
            else:
                self.idling += 1

    def idle(self) -> CycleReason:
        """Find the reason for a cycle without moves."""
        if self.silent:
            return CycleReason.NO_LOAD_DATA
        return CycleReason.NO_BUNDLES if self.idling else CycleReason.HIT_COUNT


class _Pair:
    """A full broker, the source, and an empty one, the destination, with loads in weight per second."""

    def __init__(self, cycle: _TransferCycle, reason: CycleReason) -> None:
        part, reports, source, destination = cycle.part, cycle.reports, cycle.order[cycle.high], cycle.order[cycle.low]
        self.part, self.reason = part, reason
        self.source, self.destination = reports.ids[source], reports.ids[destination]
        self.usage = reports.usage[source], reports.usage[destination]
        self.load = reports.load[source], reports.load[destination]
        self.top = reports.top(source)
        #: bundles that may come back, each looked at once
        self.returns: Iterator[BundleLoad] = iter(reports.top(destination) if part.transfer else ())
        #: load that left the source, and load that came back in exchange as far as it counts
        self.out = self.gain = 0.0
        #: ids of brokers that gave up bundles
        self.sources: list[str] = []

    def proposals(self) -> _Proposals:
        """Offer bundles of the source until half of the difference is moved or one is left."""
        full, empty = self.usage
        # Java divides by a usage of 0 without noticing, and nothing exceeds the NaN or infinity it gets.
        idle_target = math.inf if self.part.quirks == "upstream" else -math.inf
        target = self.load[0] * ((full - empty) / 2.0) / full if full else idle_target
        remaining = len(self.top)
        for offered in self.top:
            # Only moved bundles count, since a rejected bundle stays.
            if remaining <= 1:
                break
            unload = Unload(offered.bundle, self.source, self.destination, self.reason)
            if not offered.load or not (yield Probe(unload)).accepted:
                continue
            back: Sequence[BundleLoad] = ()
            if self.out - self.gain + offered.load > target:
                back = yield from self._find_swap(offered.load)
                if not back:
                    break
            proposal = unload if self.part.transfer else Unload(offered.bundle, self.source, None, self.reason)
            if (yield proposal).accepted:
                self.out, remaining = self.out + offered.load, remaining - 1
                self.sources.append(self.source)
                for entry in back:
                    if (yield self._build_return(entry)).accepted:
                        self.sources.append(self.destination)
                        # Pulsar counts returned bundles only in its debug mode, see `quirks`.
                        if self.part.debug or self.part.quirks == "intended":
                            self.gain += entry.load

    def stats_after_moves(self, stats: LoadStats) -> LoadStats:
        """Compute the figures after the moves of this pair."""
        return stats.after_move(*self.usage, self._compute_moved_usage(self.out - self.gain))

    def _compute_moved_usage(self, load: float) -> float:
        return load * self.usage[0] / self.load[0] if self.load[0] else 0.0

    def _find_swap(self, offered: float) -> Generator[Unload | Probe, Ruling, Sequence[BundleLoad]]:
        # The bundles of the destination that return for a bundle that is too large, none if that does not help.
        whole, least = self.load
        source, destination = whole - self.out + self.gain - offered, least + self.out - self.gain + offered
        back: list[BundleLoad] = []
        for entry in self.returns:
            if not entry.load or not (source + entry.load < whole and destination - entry.load < whole):
                continue
            if not (yield Probe(self._build_return(entry))).accepted:
                continue
            source, destination = source + entry.load, destination - entry.load
            back.append(entry)
            if destination <= source < whole * _SWAPPED_SHARE:
                if self.part.quirks == "upstream":
                    return back
                # Load may even out while usage does not, if usage does not go with load.
                return back if self._compute_moved_usage(whole - source) < self.usage[0] - self.usage[1] else ()
        return ()

    def _build_return(self, entry: BundleLoad) -> Unload:
        is_exempt = self.part.quirks == "upstream"
        return Unload(entry.bundle, self.destination, self.source, self.reason, in_exchange=is_exempt)
