"""The built-in policies: every part that comes with the framework, registered through the hooks like anybody else's."""

from __future__ import annotations

from lookup.hooks import Filter, Lister, Scorer, Selector, Shedder, SplitAlgorithm, Splitter, hookimpl
from lookup_policies.anti_affinity import AntiAffinity
from lookup_policies.avg import Avg
from lookup_policies.avg_placement import AvgPlacement
from lookup_policies.best import Best
from lookup_policies.bounded_consistent_hash import BoundedConsistentHash
from lookup_policies.default import Default
from lookup_policies.default_split import DefaultSplit
from lookup_policies.even_distribution import EvenDistribution
from lookup_policies.explore import Explore
from lookup_policies.fallback import Fallback
from lookup_policies.fewest_bundles import FewestBundles
from lookup_policies.flow_or_qps_equally_divide import FlowOrQpsEquallyDivide
from lookup_policies.headroom import Headroom
from lookup_policies.indexed import Indexed
from lookup_policies.isolation import Isolation
from lookup_policies.least_long_term_message_rate import LeastLongTermMessageRate
from lookup_policies.least_resource_usage import LeastResourceUsage
from lookup_policies.least_resource_usage_with_weight import LeastResourceUsageWithWeight
from lookup_policies.load_manager_class import LoadManagerClass
from lookup_policies.max_topics import MaxTopics
from lookup_policies.overload import Overload
from lookup_policies.power_of_two import PowerOfTwo
from lookup_policies.property_filter import PropertyFilter
from lookup_policies.property_match import PropertyMatch
from lookup_policies.random import Random
from lookup_policies.range_equally_divide import RangeEquallyDivide
from lookup_policies.rendezvous import Rendezvous
from lookup_policies.round_robin import RoundRobin
from lookup_policies.softmax import Softmax
from lookup_policies.specified_positions_divide import SpecifiedPositionsDivide
from lookup_policies.tenant_scope import TenantScope
from lookup_policies.threshold import Threshold
from lookup_policies.topic_count_equally_divide import TopicCountEquallyDivide
from lookup_policies.topology_distance import TopologyDistance
from lookup_policies.transfer import Transfer
from lookup_policies.uniform import Uniform
from lookup_policies.version import Version
from lookup_policies.weighted_random import WeightedRandom
from lookup_policies.zone_spill import ZoneSpill

__all__ = ["FILTERS", "LISTERS", "SCORERS", "SELECTORS", "SHEDDERS", "SPLITTERS", "SPLIT_ALGORITHMS"]

FILTERS: tuple[type[Filter], ...] = (LoadManagerClass, MaxTopics, Version, AntiAffinity, Isolation, EvenDistribution)
SCORERS: tuple[type[Scorer], ...] = (PropertyMatch, TopologyDistance, Headroom, FewestBundles)
SELECTORS: tuple[type[Selector], ...] = (
    Best,
    Random,
    WeightedRandom,
    Softmax,
    LeastResourceUsage,
    RoundRobin,
    LeastLongTermMessageRate,
    LeastResourceUsageWithWeight,
    AvgPlacement,
    PowerOfTwo,
    Rendezvous,
    BoundedConsistentHash,
    Explore,
    Fallback,
    ZoneSpill,
)
SHEDDERS: tuple[type[Shedder], ...] = (Threshold, Transfer, Overload, Uniform, Avg)
SPLITTERS: tuple[type[Splitter], ...] = (DefaultSplit,)
SPLIT_ALGORITHMS: tuple[type[SplitAlgorithm], ...] = (
    RangeEquallyDivide,
    TopicCountEquallyDivide,
    SpecifiedPositionsDivide,
    FlowOrQpsEquallyDivide,
)
LISTERS: tuple[type[Lister], ...] = (Default, PropertyFilter, Indexed, TenantScope)


@hookimpl
def lookup_register_filters() -> tuple[type[Filter], ...]:
    """Return the built-in filters."""
    return FILTERS


@hookimpl
def lookup_register_scorers() -> tuple[type[Scorer], ...]:
    """Return the built-in scorers."""
    return SCORERS


@hookimpl
def lookup_register_selectors() -> tuple[type[Selector], ...]:
    """Return the built-in selectors, wrappers included."""
    return SELECTORS


@hookimpl
def lookup_register_shedders() -> tuple[type[Shedder], ...]:
    """Return the built-in shedders."""
    return SHEDDERS


@hookimpl
def lookup_register_splitters() -> tuple[type[Splitter], ...]:
    """Return the built-in splitters."""
    return SPLITTERS


@hookimpl
def lookup_register_split_algorithms() -> tuple[type[SplitAlgorithm], ...]:
    """Return the built-in split algorithms."""
    return SPLIT_ALGORITHMS


@hookimpl
def lookup_register_listers() -> tuple[type[Lister], ...]:
    """Return the built-in listers."""
    return LISTERS
