"""Describes the load of a cluster at one grid instant, as policies see it: brokers, their bundles, traffic and demand.

Also here is the arithmetic policies do on it: Pulsar's weighted usage, its ranking of bundles, and mean and deviation
with Pulsar's rounding. Load reports as Pulsar exchanges them are in `load_data.py`.

Source: `docs/pulsar/load-managers.md`.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, fields, replace
from functools import cached_property
from operator import attrgetter
from typing import Any, Literal, NamedTuple

import numpy as np
from numpy.typing import NDArray

from lookup.model.bundles import NamespacePolicies, bundle_name_parts
from lookup.model.load_data import NamespaceBundleStats, Resources
from lookup.model.names import is_system_bundle, is_system_namespace

__all__ = [
    "NO_TRAFFIC", "RESOURCES", "TOPIC_TRAFFIC", "BundleLoad", "Load", "LoadStats", "Traffic", "ascending",
    "may_be_shed", "top_bundles", "topic_traffic", "weighted_usage",
]  # fmt: skip

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]

#: The columns of `Load.resources`, in their order.
RESOURCES = tuple(entry.name for entry in fields(Resources))
#: One row per topic: its hash, messages per second and bytes per second, each in + out.
TOPIC_TRAFFIC = np.dtype([("hash", np.int64), ("rate", np.float64), ("throughput", np.float64)])
#: No namespace has a policy.
_NO_POLICIES = NamespacePolicies()


def topic_traffic(rows: Iterable[tuple[int, float, float]]) -> NDArray[np.void]:
    """Return rows (hash, rate, throughput) as an array of `TOPIC_TRAFFIC`, shape (n_topics,), read-only."""
    table = np.array(list(rows), dtype=TOPIC_TRAFFIC)
    table.setflags(write=False)
    return table


_NO_TOPICS = topic_traffic(())


@dataclass(frozen=True, eq=False)
class Traffic:
    """Traffic of bundles and topics at one instant, for splitters; of bundles that are not named nothing is known."""

    #: by bundle name, in the order in which a broker goes over its bundles
    stats: Mapping[str, NamespaceBundleStats] = field(default_factory=dict)
    #: by bundle name: arrays of `TOPIC_TRAFFIC`, shape (n_topics,), in any order
    topics: Mapping[str, NDArray[np.void]] = field(default_factory=dict)
    #: bundles by namespace; a namespace that is not there could not be counted
    bundle_counts: Mapping[str, int] = field(default_factory=dict)
    #: names of the bundles that are being split at this instant (Pulsar: state Splitting)
    splitting: frozenset[str] = frozenset()

    def topics_of(self, bundle: str) -> NDArray[np.void]:
        """Return the topics of a bundle as an array of `TOPIC_TRAFFIC`, empty if none is known."""
        return self.topics.get(bundle, _NO_TOPICS)


#: Nothing is known of any bundle.
NO_TRAFFIC = Traffic()


class BundleLoad(NamedTuple):
    """A bundle and its load in weight per second; Pulsar's throughput, in and out together, in bytes per second."""

    bundle: str
    load: float
    #: messages per second, in and out together; 0.0 if unknown
    rate: float = 0.0


@dataclass(frozen=True, eq=False)
class Load:
    """Load of one cluster at one grid instant.

    Arrays of shape (n_brokers,) unless said otherwise, by broker number; in a view they are read-only. What is None is
    unknown: a replay without load reports knows the first five fields only.
    """

    #: throughput / capacity, 1.0 is full, NaN without a report (Pulsar: weightedMaxEMA)
    usage: Floats
    #: weight per second, NaN without a report (Pulsar: msgThroughputIn + msgThroughputOut, in bytes per second)
    throughput: Floats
    #: topics a broker serves, 0 without a report
    topics: Ints
    #: by broker number: the bundles it owned at the start of the tick of which anything is known, idle ones and those
    #: of system namespaces too, as `ascending` orders them
    top_bundles: Sequence[Sequence[BundleLoad]]
    #: by client property, then value: weight per second of the last grid cell
    demand: Mapping[str, Mapping[str, float]] = field(default_factory=dict)
    source: Literal["simulated", "reported"] = "simulated"
    #: what bundles and topics carry; empty in a replay
    traffic: Traffic = NO_TRAFFIC
    #: `usage` as measured for the report, not smoothed (Pulsar: maxResourceUsage); None: `usage` itself
    max_usage: Floats | None = None
    #: `throughput` smoothed over time (Pulsar: msgThroughputEMA); None: `throughput` itself
    smoothed_throughput: Floats | None = None
    #: when each broker last measured its load, µs since the Unix epoch (Pulsar: updatedAt); None: all of them now
    updated_us: Ints | None = None
    #: numbers of the brokers with a report in the order in which the load store lists them; None: ascending
    store_order: Sequence[int] | None = None
    #: percentages of Pulsar's resources, columns as in `RESOURCES`, shape (n_brokers, 5), NaN without a report; None if
    #: usage is all there is
    resources: Floats | None = None
    #: usage of the fullest resource by the weights of the policy, as measured, NaN without a report (Pulsar:
    #: getMaxResourceUsageWithWeight); None: `measured`
    weighted_usage: Floats | None = None
    #: messages per second, in and out together, NaN without a report
    rates: Floats | None = None
    #: for placement: messages per second in the long run, in + out, NaN without a report; None: `throughput` stands in
    long_term_rates: Floats | None = None
    #: the same by bundle, owned or not; of a bundle that is not named nothing is known
    long_term_bundle_rates: Mapping[str, float] = field(default_factory=dict)
    #: for splitters: the same of bytes per second
    long_term_bundle_throughputs: Mapping[str, float] = field(default_factory=dict)
    #: unit of the loads of `top_bundles`: weight of lookups, or bytes if anything gives them
    bundle_unit: Literal["weight/s", "bytes/s"] = "weight/s"
    #: by client property, then bundle, then value: weight per second of the lookups of the time that loads of bundles
    #: are of (in a scenario, their load), owned or not; a bundle whose clients say nothing is not named. Empty unless a
    #: part declares `view.load.origins`, and in the decision server, which sees too few lookups
    origins: Mapping[str, Mapping[str, Mapping[str, float]]] = field(default_factory=dict)

    @classmethod
    def unknown(cls, n_brokers: int, topics: Ints | None = None) -> Load:
        """Return the load before the first complete cell of the grid: no broker has reported."""
        nan = np.full(n_brokers, np.nan)
        return cls(nan, nan, np.zeros(n_brokers, np.int64) if topics is None else topics, [()] * n_brokers)

    def read_only(self) -> Load:
        """Return the same load with read-only arrays, which follow the originals."""
        # Once per instant of the grid: `dataclasses.replace` and `copy.copy` take several times as long.
        shown = object.__new__(type(self))
        columns = vars(shown)
        columns.update(vars(self))
        for name, value in vars(self).items():
            if isinstance(value, np.ndarray):
                column = columns[name] = value.view()
                column.flags.writeable = False
        return shown

    def renumber(self, numbers: Sequence[int]) -> Load:
        """Return the same load by the numbers of another roster; of brokers that are new there is no report.

        Args:
            numbers: the number here of each broker there, -1 for a new one.
        """
        columns: dict[str, Any] = {}
        for entry in fields(self):
            value = getattr(self, entry.name)
            if isinstance(value, np.ndarray):
                # One row more, which -1 finds: what holds of a broker without report.
                unknown = np.full((1, *value.shape[1:]), np.nan if value.dtype.kind == "f" else 0, value.dtype)
                columns[entry.name] = np.concatenate([value, unknown])[list(numbers)]
        if self.store_order is not None:
            new = {number: place for place, number in enumerate(numbers)}
            columns["store_order"] = [new[number] for number in self.store_order if number in new]
        bundles = [() if number < 0 else self.top_bundles[number] for number in numbers]
        return replace(self, top_bundles=bundles, **columns)

    @property
    def measured(self) -> Floats:
        """Usage as it was measured for the last report, not smoothed, shape (n_brokers,), NaN without report."""
        return self.usage if self.max_usage is None else self.max_usage

    @property
    def weighted(self) -> Floats:
        """Usage as Pulsar's modular manager weighs it, shape (n_brokers,), NaN without report."""
        return self.measured if self.weighted_usage is None else self.weighted_usage

    def loaded_bundles(self, broker: int) -> list[BundleLoad]:
        """Return the bundles of a broker that carry anything, without those of system namespaces."""
        # Not a number is no load either.
        return [entry for entry in self.top_bundles[broker] if entry.load > 0 and not is_system_bundle(entry.bundle)]

    @cached_property
    def mean_bundle_load(self) -> float:
        """The mean load of the bundles that carry anything, 1.0 if there are none."""
        loads = [load for number in range(len(self.top_bundles)) for _, load, _ in self.loaded_bundles(number)]
        return math.fsum(loads) / len(loads) if loads else 1.0

    def reported_bundles(
        self, broker: int, k: int, *, policies: NamespacePolicies = _NO_POLICIES, with_policies: bool = False
    ) -> list[BundleLoad]:
        """Return the bundles that a broker of Pulsar's extensible manager names in its report, least loaded first.

        Loads in bytes are ranked by `top_bundles`. Its steps of 100 kB/s say nothing about the weight of lookups, so
        such loads stay in the order of `ascending`; the same bundles are left out.

        Args:
            broker: its number.
            k: as for `top_bundles`, like the other arguments.
        """
        named = {entry.bundle: entry for entry in self.top_bundles[broker]}
        if self.bundle_unit == "bytes/s":
            known = self.traffic.stats
            stats = {bundle: known.get(bundle) or _half_in_half_out(entry) for bundle, entry in named.items()}
            chosen = top_bundles(stats, k, policies=policies, with_policies=with_policies)
            return [named[bundle] for bundle in chosen]
        kept = [
            entry
            for bundle, entry in named.items()
            if not is_system_bundle(bundle) and (with_policies or may_be_shed(bundle_name_parts(bundle)[0], policies))
        ]
        return kept[-k:]


def _half_in_half_out(entry: BundleLoad) -> NamespaceBundleStats:
    # Only sums are known: with one consumer per producer, what comes in goes out once.
    half, rate = entry.load / 2.0, entry.rate / 2.0
    return NamespaceBundleStats(msg_rate_in=rate, msg_rate_out=rate, msg_throughput_in=half, msg_throughput_out=half)


def weighted_usage(resources: Floats, weights: Sequence[float]) -> Floats:
    """Return each broker's largest weighted percentage as a ratio, shape (n_brokers,), NaN without a report.

    Percentages are Pulsar's: calculated in 32-bit floats, then widened.

    Args:
        resources: percentages in the order of `RESOURCES`, shape (n_brokers, 5).
        weights: one per resource, >= 0.
    """
    usage: Floats = (resources * np.asarray(weights, dtype=np.float64)).max(axis=1) / 100.0
    return usage


@dataclass(frozen=True, slots=True)
class LoadStats:
    """Mean and population standard deviation of some loads; moving load keeps the mean as it was.

    The last bits depend on the order in which loads are added, which the caller chooses.
    """

    #: how many loads there are
    count: int = 0
    #: sum of the squared loads
    squares: float = 0.0
    average: float = 0.0
    deviation: float = 0.0

    @classmethod
    def of(cls, loads: Iterable[float]) -> LoadStats:
        """Sum loads and their squares in the order given; all is 0 if there are none."""
        count, total, squares = 0, 0.0, 0.0
        for load in loads:
            count, total, squares = count + 1, total + load, squares + load * load
        if not count:
            return cls()
        average = total / count
        # Round-off can make this negative; Java's NaN there is never above a target, and neither is 0.
        return cls(count, squares, average, math.sqrt(max(0.0, squares / count - average * average)))

    def after_move(self, source: float, destination: float, amount: float) -> LoadStats:
        """Return the figures after an amount went from one load to another; the source does not fall below 0."""
        left, raised = max(0.0, source - amount), destination + amount
        # As in Pulsar: the two old squares leave the sum before the two new ones enter it.
        squares = self.squares - (source * source + destination * destination) + (left * left + raised * raised)
        deviation = math.sqrt(abs(squares / self.count - self.average * self.average))
        return replace(self, squares=squares, deviation=deviation)


# Rankings of bundles


def ascending(bundles: Iterable[BundleLoad]) -> tuple[BundleLoad, ...]:
    """Return bundles, the least loaded first; among equals names decide."""
    return tuple(sorted(bundles, key=attrgetter("load", "bundle")))


def top_bundles(
    stats: Mapping[str, NamespaceBundleStats],
    k: int,
    *,
    policies: NamespacePolicies = _NO_POLICIES,
    with_policies: bool = False,
) -> list[str]:
    """Return the names of the `k` most loaded bundles, the least loaded of them first.

    Left out are bundles without any throughput, those of system namespaces and those whose namespace has an isolation
    policy or an anti-affinity group. Among bundles alike in load Pulsar leaves the order open; here it is that of their
    names.

    Args:
        stats: by bundle name.
        k: Pulsar's loadBalancerMaxNumberOfBundlesInBundleLoadReport, by default 10 there.
        with_policies: keep bundles of namespaces with policies; Pulsar's
            loadBalancerSheddingBundlesWithPoliciesEnabled.

    Source: `TopKBundles.update`.
    """
    kept = [
        (figures.rank, bundle)
        for bundle, figures in stats.items()
        if figures.msg_throughput_in + figures.msg_throughput_out != 0
        and not is_system_namespace(namespace := bundle_name_parts(bundle)[0])
        and (with_policies or may_be_shed(namespace, policies))
    ]
    chosen = sorted(kept)[max(0, len(kept) - max(0, k)) :]
    return [bundle for _, bundle in chosen]


def may_be_shed(namespace: str, policies: NamespacePolicies) -> bool:
    """Return whether Pulsar sheds a namespace's bundles by default: it has neither isolation policy nor group.

    A group whose name is blank is none.
    """
    return not policies.isolation.get(namespace) and not policies.anti_affinity_group.get(namespace, "").strip()
