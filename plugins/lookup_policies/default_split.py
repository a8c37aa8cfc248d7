"""Splitters that divide bundles above a limit, `default-split` of the extensible manager and `modular-split`."""

from __future__ import annotations

from collections import Counter
from collections.abc import Generator, Mapping, MutableMapping
from dataclasses import dataclass, field
from typing import Annotated, Any, ClassVar, Literal

from lookup.errors import InputError
from lookup.hooks import Conf, Ge, SplitAlgorithm, Unit
from lookup.hooks.raised import read_bounded
from lookup.model import (
    ClusterView,
    CycleLabel,
    CycleOutcome,
    CycleReason,
    NamespaceBundle,
    NamespaceBundleStats,
    Ruling,
    Split,
)
from lookup_policies.splits import RangeEquallyDivide

__all__ = ["DefaultSplit", "ModularSplit"]

#: Bytes in the unit of `max_bandwidth_mib`.
_MIB = 1024 * 1024
#: A bundle with fewer topics is never split.
_FEWEST_TOPICS = 2

#: How often in a row each bundle of one broker exceeded a limit.
_Hits = dict[str, int]


@dataclass
class _Tally:
    """Result of one cycle of all brokers."""

    accepted: int = 0
    failures: int = 0
    #: of the last accepted split
    reason: CycleReason = CycleReason.HIT_COUNT

    def outcome(self) -> CycleOutcome:
        """Build the outcome at the end of the cycle."""
        if self.accepted:
            return CycleOutcome(CycleLabel.SUCCESS, self.reason, failures=self.failures)
        if self.failures:
            return CycleOutcome(CycleLabel.FAILURE, CycleReason.UNKNOWN, failures=self.failures)
        return CycleOutcome(CycleLabel.SKIP, CycleReason.HIT_COUNT)


@dataclass
class _Turn:
    """One broker's cycle, with its view, its hit counts, and its decisions so far."""

    view: ClusterView
    broker: str
    hits: _Hits
    tally: _Tally
    #: splits by namespace
    decided: Counter[str] = field(default_factory=Counter)


@dataclass(frozen=True)
class _Limits:
    """The limits of a bundle's traffic, and of the number of bundles in a namespace."""

    #: topics above which a bundle is divided
    max_topics: Annotated[int, Ge(0), Conf("loadBalancerNamespaceBundleMaxTopics")] = 1000
    #: producers and consumers above which it is divided, without limit at 0 and below
    max_sessions: Annotated[int, Ge(-1), Conf("loadBalancerNamespaceBundleMaxSessions")] = 1000
    #: messages per second, in + out
    max_msg_rate: Annotated[float, Ge(0), Conf("loadBalancerNamespaceBundleMaxMsgRate"), Unit("messages/s")] = 30_000.0
    #: MiB per second, in + out
    max_bandwidth_mib: Annotated[float, Ge(0), Conf("loadBalancerNamespaceBundleMaxBandwidthMbytes"), Unit("MiB/s")] = (
        100.0
    )
    #: bundles a namespace may have
    max_bundles: Annotated[int, Ge(0), Conf("loadBalancerNamespaceMaximumBundles")] = 128

    def _find_exceeded(self, stats: NamespaceBundleStats, rate: float, throughput: float) -> CycleReason | None:
        """Find the limit that a bundle exceeds by its rate or throughput, in + out, None if there is none."""
        # Pulsar asks in this order, so the first limit that is exceeded is the reason.
        if stats.topics > self.max_topics:
            return CycleReason.TOPICS
        if 0 < self.max_sessions < stats.producer_count + stats.consumer_count:
            return CycleReason.SESSIONS
        if rate > self.max_msg_rate:
            return CycleReason.MSG_RATE
        return CycleReason.BANDWIDTH if throughput > self.max_bandwidth_mib * _MIB else None

    def _has_room(self, view: ClusterView, name: str, decided: Counter[str], tally: _Tally) -> bool:
        """Check whether the namespace of a bundle may have one more. An uncountable one is a failure."""
        namespace = _namespace(name)
        count = view.load.traffic.bundle_counts.get(namespace)
        tally.failures += count is None
        return count is not None and count + decided[namespace] < self.max_bundles


@dataclass(frozen=True)
class DefaultSplit(_Limits):
    """Let every broker divide its own bundles that exceed a limit more than `hit_threshold` times in a row.

    Each broker visits its bundles in the order of `view.load.traffic.stats` independently. Limits of a cycle
    are per broker, and so are hit counts, which a bundle loses with its broker. Bundles are visited once per
    cycle of the policy (Pulsar: `loadBalancerSplitIntervalMinutes`).

    Match -> Result -> Reason:
        * fewer than 2 topics -> nothing, the hit count stays
        * a range of one hash -> nothing, counted as a failure
        * more than `max_topics` topics, else `max_sessions` producers and consumers (if above 0), else
          `max_msg_rate`, else `max_bandwidth_mib` -> one hit more -> `topics`, `sessions`, `msg-rate`,
          `bandwidth`
        * no limit exceeded -> the hits are forgotten
        * at most `hit_threshold` hits -> nothing
        * the namespace has `max_bundles` bundles, including those decided in this cycle -> nothing, the hits
          stay
        * the bundles of the namespace cannot be counted -> a failure
        * a bundle in state Splitting touches it -> nothing, the hits stay
        * the algorithm fails or does not return exactly one boundary -> nothing, counted as a failure, the hits
          stay
        * otherwise -> a split, the hits are forgotten. After `max_splits` of them the broker stops
        * in the end, some split accepted -> success with the reason of the last
        * in the end, only failures -> failure, `unknown`
        * in the end, else -> skip, `hit-count`

    Quirk: a splitting bundle touches this one if the texts of their names match. Its namespace's name starts
    with this namespace's, and its range starts with this lower or ends with this upper end. Effect: a split in
    `t/ns-2` delays one in `t/ns`. "intended" compares the namespace as a whole, and ranges as numbers.

    Source: DefaultNamespaceBundleSplitStrategyImpl.
    """

    name: ClassVar[str] = "default-split"
    reads: ClassVar[frozenset[str]] = frozenset({"view.load", "view.ownership"})

    #: splits of one broker in one cycle
    max_splits: Annotated[int, Ge(1), Conf("loadBalancerMaxNumberOfBundlesToSplitPerCycle")] = 10
    #: a limit has to be exceeded in more cycles in a row than this
    hit_threshold: Annotated[int, Ge(0), Conf("loadBalancerNamespaceBundleSplitConditionHitCountThreshold")] = 3
    #: chooses the boundary (Pulsar: `defaultNamespaceBundleSplitAlgorithm`)
    algorithm: SplitAlgorithm = RangeEquallyDivide()
    #: how it is decided whether a bundle that is being split touches another
    quirks: Literal["upstream", "intended"] = "upstream"

    def propose(self, view: ClusterView, memory: MutableMapping[str, Any]) -> Generator[Split, Ruling, CycleOutcome]:
        """Let the brokers propose one after the other. Hit counts are kept in memory by broker and bundle."""
        before: Mapping[str, _Hits] = memory.get("hits", {})
        after: dict[str, _Hits] = {}
        tally = _Tally()
        for broker, bundles in _group_by_owner(view).items():
            # Hits of bundles that the broker has no figures of any more are dropped.
            hits = {bundle: count for bundle, count in before.get(broker, {}).items() if bundle in bundles}
            turn = _Turn(view, broker, hits, tally)
            for name, stats in bundles.items():
                split = self._decide_split(turn, name, stats)
                if split is None:
                    continue
                ruling = yield split
                # Counted even if the engine refuses it: Pulsar's strategy has decided by now.
                turn.decided[_namespace(name)] += 1
                turn.hits.pop(name, None)
                if ruling.accepted:
                    tally.accepted, tally.reason = tally.accepted + 1, split.reason
                if turn.decided.total() == self.max_splits:
                    break
            if hits:
                after[broker] = hits
        memory["hits"] = after
        return tally.outcome()

    def _decide_split(self, turn: _Turn, name: str, stats: NamespaceBundleStats) -> Split | None:
        if stats.topics < _FEWEST_TOPICS:
            return None
        bundle = NamespaceBundle.parse(name)
        if bundle.range.upper - bundle.range.lower <= 1:
            turn.tally.failures += 1
            return None
        rate, throughput = stats.msg_rate_in + stats.msg_rate_out, stats.msg_throughput_in + stats.msg_throughput_out
        reason = self._find_exceeded(stats, rate, throughput)
        if reason is None:
            # Hits count in a row, so one cycle within the limits resets them.
            turn.hits.pop(name, None)
            return None
        turn.hits[name] = turn.hits.get(name, 0) + 1
        if turn.hits[name] <= self.hit_threshold or not self._has_room(turn.view, name, turn.decided, turn.tally):
            return None
        as_text = self.quirks == "upstream"
        if any(_touches(name, splitting, as_text=as_text) for splitting in turn.view.load.traffic.splitting):
            return None
        boundaries = _find_boundaries(self.algorithm, turn.view, name)
        # Pulsar's strategy divides in two only, whatever number of children an algorithm would make.
        if len(boundaries) == 1:
            return Split(name, turn.broker, boundaries, reason)
        turn.tally.failures += 1
        return None


@dataclass(frozen=True)
class ModularSplit(_Limits):
    """Let the leader divide every bundle above a limit at once, into as many parts as the algorithm chooses.

    Topics and sessions are those of the last report, messages and bytes means of the long run
    (`view.load.long_term_bundle_rates`, `long_term_bundle_throughputs`). For a bundle without a mean they count as 0.

    Match -> Result -> Reason:
        * at most one registered broker -> nothing is divided
        * fewer than 2 topics, or no limit exceeded -> nothing
        * the namespace has `max_bundles` bundles, including those decided in this cycle -> nothing
        * the bundles of the namespace cannot be counted -> a failure
        * a range of one hash, or an algorithm that fails or finds no boundary -> nothing, counted as a failure
        * otherwise -> a split at every boundary -> `topics`, `sessions`, `msg-rate`, `bandwidth`
        * in the end -> as `default-split`

    Source: BundleSplitterTask, ModularLoadManagerImpl.checkNamespaceBundleSplit (apache/pulsar at 009a9bf2).
    """

    name: ClassVar[str] = "modular-split"
    reads: ClassVar[frozenset[str]] = frozenset({"view.load", "view.load.rates", "view.ownership"})

    #: chooses the boundaries (Pulsar: `defaultNamespaceBundleSplitAlgorithm`)
    algorithm: SplitAlgorithm = RangeEquallyDivide()

    def propose(self, view: ClusterView, memory: MutableMapping[str, Any]) -> Generator[Split, Ruling, CycleOutcome]:
        """Propose the bundles of one broker after the other, without memory."""
        tally = _Tally()
        if view.registered.sum() <= 1:
            return CycleOutcome(CycleLabel.SKIP, CycleReason.NO_BROKERS)
        decided: Counter[str] = Counter()
        for broker, bundles in _group_by_owner(view).items():
            for name, stats in bundles.items():
                reason = self._find_reason(view, name, stats)
                if reason is None or not self._has_room(view, name, decided, tally):
                    continue
                decided[_namespace(name)] += 1
                boundaries = _find_boundaries(self.algorithm, view, name)
                if not boundaries:
                    tally.failures += 1
                    continue
                ruling = yield Split(name, broker, boundaries, reason)
                if ruling.accepted:
                    tally.accepted, tally.reason = tally.accepted + 1, reason
        return tally.outcome()

    def _find_reason(self, view: ClusterView, name: str, stats: NamespaceBundleStats) -> CycleReason | None:
        if stats.topics < _FEWEST_TOPICS:
            return None
        load = view.load
        rates, throughputs = load.long_term_bundle_rates, load.long_term_bundle_throughputs
        return self._find_exceeded(stats, rates.get(name, 0.0), throughputs.get(name, 0.0))


def _find_boundaries(algorithm: SplitAlgorithm, view: ClusterView, name: str) -> tuple[int, ...]:
    # Nothing for a range of one hash, or if the algorithm fails.
    bundle = NamespaceBundle.parse(name)
    if bundle.range.upper - bundle.range.lower <= 1:
        return ()
    try:
        return tuple(read_bounded(algorithm.boundaries(bundle, view.load.traffic.topics_of(name), None)))
    except InputError:
        return ()


def _group_by_owner(view: ClusterView) -> dict[str, dict[str, NamespaceBundleStats]]:
    # By broker in the order of ids, with a broker's bundles in the order of its visits.
    owned: dict[int, dict[str, NamespaceBundleStats]] = {}
    for bundle, stats in view.load.traffic.stats.items():
        owner = view.ownership.owner(bundle)
        if owner is not None:
            owned.setdefault(owner, {})[bundle] = stats
    return {view.brokers[number].id: owned[number] for number in sorted(owned)}


def _namespace(bundle: str) -> str:
    return bundle.rpartition("/")[0]


def _touches(bundle: str, splitting: str, *, as_text: bool) -> bool:
    if as_text:
        # Pulsar looks for parts of names in names, which also finds namespaces that begin alike.
        namespace, _, bounds = bundle.rpartition("/")
        splitting_namespace, _, splitting_bounds = splitting.rpartition("/")
        lower, _, upper = bounds.partition("_")
        shares_an_end = splitting_bounds.startswith(lower) or splitting_bounds.endswith(upper)
        return shares_an_end and splitting_namespace.startswith(namespace)
    first, second = NamespaceBundle.parse(bundle), NamespaceBundle.parse(splitting)
    shares_an_end = first.range.lower == second.range.lower or first.range.upper == second.range.upper
    return shares_an_end and first.namespace == second.namespace
