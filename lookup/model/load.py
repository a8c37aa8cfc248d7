"""Describe the load of a cluster at one grid instant for policies, with brokers, bundles, traffic and demand.

The module also has the arithmetic of policies on load, which is Pulsar's weighted usage, its ranking of
bundles, and mean and deviation with Pulsar's rounding. Load reports in Pulsar's form are in `load_data.py`.

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
#: One row per topic with its hash, messages per second and bytes per second, each in + out.
TOPIC_TRAFFIC = np.dtype([("hash", np.int64), ("rate", np.float64), ("throughput", np.float64)])
#: No namespace has a policy.
_NO_POLICIES = NamespacePolicies()


def topic_traffic(rows: Iterable[tuple[int, float, float]]) -> NDArray[np.void]:
    """Convert rows (hash, rate, throughput) to a read-only array of `TOPIC_TRAFFIC`, shape (n_topics,)."""
    table = np.array(list(rows), dtype=TOPIC_TRAFFIC)
    table.setflags(write=False)
    return table


_NO_TOPICS = topic_traffic(())


@dataclass(frozen=True, eq=False)
class Traffic:
    """Traffic of bundles and topics at one instant, for splitters. Traffic of absent bundles is unknown."""

    #: by bundle name, in the order in which a broker goes over its bundles
    stats: Mapping[str, NamespaceBundleStats] = field(default_factory=dict)
    #: arrays of `TOPIC_TRAFFIC` by bundle name, shape (n_topics,), in any order
    topics: Mapping[str, NDArray[np.void]] = field(default_factory=dict)
    #: bundles by namespace. An absent namespace could not be counted
    bundle_counts: Mapping[str, int] = field(default_factory=dict)
    #: names of the bundles with a split in progress at this instant (Pulsar: state Splitting)
    splitting: frozenset[str] = frozenset()

    def topics_of(self, bundle: str) -> NDArray[np.void]:
        """Find the topics of a bundle as an array of `TOPIC_TRAFFIC`, empty if none is known."""
        return self.topics.get(bundle, _NO_TOPICS)


#: Nothing is known of any bundle.
NO_TRAFFIC = Traffic()


class BundleLoad(NamedTuple):
    """A bundle and its load in weight per second, or Pulsar's throughput in bytes per second, in and out together."""

    bundle: str
    load: float
    #: messages per second, in and out together, 0.0 if unknown
    rate: float = 0.0


@dataclass(frozen=True, eq=False)
class Load:
    """Load of one cluster at one grid instant.

    Arrays have shape (n_brokers,) unless stated otherwise, by broker number, and are read-only in a view. None
    is unknown. A replay without load reports knows only the first five fields.
    """

    #: throughput / capacity, 1.0 is full, NaN without a report (Pulsar: weightedMaxEMA)
    usage: Floats
    #: weight per second, NaN without a report (Pulsar: msgThroughputIn + msgThroughputOut, in bytes per second)
    throughput: Floats
    #: topics a broker serves, 0 without a report
    topics: Ints
    #: by broker number, the known bundles that it owned at the start of the tick, in the order of `ascending`,
    #: including idle bundles and bundles of system namespaces
    top_bundles: Sequence[Sequence[BundleLoad]]
    #: weight per second of the last grid cell, by client property, then value
    demand: Mapping[str, Mapping[str, float]] = field(default_factory=dict)
    source: Literal["simulated", "reported"] = "simulated"
    #: traffic of bundles and topics, empty in a replay
    traffic: Traffic = NO_TRAFFIC
    #: `usage` as measured for the report, not smoothed (Pulsar: maxResourceUsage), None if it is `usage` itself
    max_usage: Floats | None = None
    #: `throughput` smoothed over time (Pulsar: msgThroughputEMA), None if it is `throughput` itself
    smoothed_throughput: Floats | None = None
    #: time of each broker's last load measurement, µs since the Unix epoch (Pulsar: updatedAt), None for now
    updated_us: Ints | None = None
    #: numbers of the brokers with a report in the order of the load store, None if ascending
    store_order: Sequence[int] | None = None
    #: resource percentages as in `RESOURCES`, shape (n_brokers, 5), NaN without a report, None if only usage is known
    resources: Floats | None = None
    #: usage of the fullest resource by the weights of the policy, as measured, NaN without a report (Pulsar:
    #: getMaxResourceUsageWithWeight), None if it is `measured`
    weighted_usage: Floats | None = None
    #: messages per second, in and out together, NaN without a report
    rates: Floats | None = None
    #: for placement, messages per second in the long run, in + out, NaN without a report, None to use `throughput`
    long_term_rates: Floats | None = None
    #: the same by bundle, owned or not. The rate of an absent bundle is unknown
    long_term_bundle_rates: Mapping[str, float] = field(default_factory=dict)
    #: for splitters, the same in bytes per second
    long_term_bundle_throughputs: Mapping[str, float] = field(default_factory=dict)
    #: unit of the loads of `top_bundles`, which is the weight of lookups, or bytes if a source provides them
    bundle_unit: Literal["weight/s", "bytes/s"] = "weight/s"
    #: weight per second of lookups by client property, then bundle, then value, owned or not, for the period of the
    #: bundles' loads (in a scenario, their load). A bundle is absent if its clients do not send the property. Empty
    #: unless a part declares `view.load.origins`, and in the decision server, which sees too few lookups
    origins: Mapping[str, Mapping[str, Mapping[str, float]]] = field(default_factory=dict)

    @classmethod
    def unknown(cls, n_brokers: int, topics: Ints | None = None) -> Load:
        """Create the load before the first complete cell of the grid, when no broker has reported."""
        nan = np.full(n_brokers, np.nan)
        return cls(nan, nan, np.zeros(n_brokers, np.int64) if topics is None else topics, [()] * n_brokers)

    def read_only(self) -> Load:
        """Make the same load with read-only arrays, which follow the originals."""
        # Called once per instant of the grid, where `dataclasses.replace` and `copy.copy` take several times as long.
        view = object.__new__(type(self))
        columns = vars(view)
        columns.update(vars(self))
        for name, value in vars(self).items():
            if isinstance(value, np.ndarray):
                column = columns[name] = value.view()
                column.flags.writeable = False
        return view

    def renumber(self, numbers: Sequence[int]) -> Load:
        """Convert the load to the numbers of another roster. New brokers do not have a report.

        Args:
            numbers: the number here of each broker there, -1 for a new one.
        """
        columns: dict[str, Any] = {}
        for entry in fields(self):
            value = getattr(self, entry.name)
            if isinstance(value, np.ndarray):
                # One extra row for index -1, with the values of a broker without report.
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
        """List the bundles of a broker that carry load, without those of system namespaces."""
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
        """List the bundles that a broker of Pulsar's extensible manager reports, least loaded first.

        Loads in bytes are ranked by `top_bundles`. Its steps of 100 kB/s do not apply to the weight of lookups, so
        such loads stay in the order of `ascending`. The same bundles are left out.

        Args:
            broker: its number.
            k: as for `top_bundles`, like the other arguments.
        """
        named = {entry.bundle: entry for entry in self.top_bundles[broker]}
        if self.bundle_unit == "bytes/s":
            stats_of = self.traffic.stats
            stats = {bundle: stats_of.get(bundle) or _split_in_halves(entry) for bundle, entry in named.items()}
            chosen = top_bundles(stats, k, policies=policies, with_policies=with_policies)
            return [named[bundle] for bundle in chosen]
        entries = [
            entry
            for bundle, entry in named.items()
            if not is_system_bundle(bundle) and (with_policies or may_be_shed(bundle_name_parts(bundle)[0], policies))
        ]
        return entries[-k:]


def _split_in_halves(entry: BundleLoad) -> NamespaceBundleStats:
    # Only sums are known. With one consumer per producer, incoming traffic goes out once.
    half, rate = entry.load / 2.0, entry.rate / 2.0
    return NamespaceBundleStats(msg_rate_in=rate, msg_rate_out=rate, msg_throughput_in=half, msg_throughput_out=half)


def weighted_usage(resources: Floats, weights: Sequence[float]) -> Floats:
    """Compute each broker's largest weighted percentage as a ratio, shape (n_brokers,), NaN without a report.

    Percentages are Pulsar's, calculated in 32-bit floats and then widened.

    Args:
        resources: percentages in the order of `RESOURCES`, shape (n_brokers, 5).
        weights: one per resource, >= 0.
    """
    usage: Floats = (resources * np.asarray(weights, dtype=np.float64)).max(axis=1) / 100.0
    return usage


@dataclass(frozen=True, slots=True)
class LoadStats:
    """Mean and population standard deviation of some loads. Moves of load do not change the mean.

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
        """Sum loads and their squares in the order given. All figures are 0 without loads."""
        count, total, squares = 0, 0.0, 0.0
        for load in loads:
            count, total, squares = count + 1, total + load, squares + load * load
        if not count:
            return cls()
        average = total / count
        # Rounding can make this negative. In Java it is NaN, which is never above a target, and neither is 0.
        return cls(count, squares, average, math.sqrt(max(0.0, squares / count - average * average)))

    def after_move(self, source: float, destination: float, amount: float) -> LoadStats:
        """Compute the figures after an amount moved from one load to another. The source stays at 0 or above."""
        rest, raised = max(0.0, source - amount), destination + amount
        # As in Pulsar, the two old squares are subtracted from the sum before the two new squares are added.
        squares = self.squares - (source * source + destination * destination) + (rest * rest + raised * raised)
        deviation = math.sqrt(abs(squares / self.count - self.average * self.average))
        return replace(self, squares=squares, deviation=deviation)


# Rankings of bundles


def ascending(bundles: Iterable[BundleLoad]) -> tuple[BundleLoad, ...]:
    """Sort bundles by load, least loaded first, and bundles of equal load by name."""
    return tuple(sorted(bundles, key=attrgetter("load", "bundle")))


def top_bundles(
    stats: Mapping[str, NamespaceBundleStats],
    k: int,
    *,
    policies: NamespacePolicies = _NO_POLICIES,
    with_policies: bool = False,
) -> list[str]:
    """List the names of the `k` most loaded bundles, the least loaded of them first.

    Bundles without throughput, of system namespaces, and of namespaces with an isolation policy or anti-affinity group
    are left out. Pulsar leaves the order of equal loads open. Here it is by name.

    Args:
        stats: by bundle name.
        k: Pulsar's loadBalancerMaxNumberOfBundlesInBundleLoadReport, by default 10 there.
        with_policies: whether bundles with policies are kept (Pulsar: loadBalancerSheddingBundlesWithPoliciesEnabled).

    Source: `TopKBundles.update`.
    """
    ranked = [
        (figures.rank, bundle)
        for bundle, figures in stats.items()
        if figures.msg_throughput_in + figures.msg_throughput_out != 0
        and not is_system_namespace(namespace := bundle_name_parts(bundle)[0])
        and (with_policies or may_be_shed(namespace, policies))
    ]
    chosen = sorted(ranked)[max(0, len(ranked) - max(0, k)) :]
    return [bundle for _, bundle in chosen]


def may_be_shed(namespace: str, policies: NamespacePolicies) -> bool:
    """Check whether Pulsar sheds a namespace's bundles by default, without isolation policy or non-blank group."""
    return not policies.isolation.get(namespace) and not policies.anti_affinity_group.get(namespace, "").strip()
