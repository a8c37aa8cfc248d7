"""The built-in policies, whose parts are registered through the same hooks as those of any plug-in."""

from __future__ import annotations

from lookup.hooks import Filter, Lister, Scorer, Selector, Shedder, SplitAlgorithm, Splitter, hookimpl
from lookup_policies.avg import Avg, AvgPlacement
from lookup_policies.best_fit import BestFit
from lookup_policies.broker_filters import EvenDistribution, LoadManagerClass, MaxTopics, Version
from lookup_policies.default_split import DefaultSplit, ModularSplit
from lookup_policies.hashing import BoundedConsistentHash, Rendezvous
from lookup_policies.isolation import AntiAffinity, Isolation
from lookup_policies.listers import Default, Indexed, TenantScope
from lookup_policies.rebalance import Rebalance
from lookup_policies.round_robin import RoundRobin
from lookup_policies.score_selectors import Best, PowerOfTwo, Random, Softmax, WeightedRandom
from lookup_policies.scorers import FewestBundles, Headroom, PropertyMatch, TopologyDistance
from lookup_policies.splits import (
    FlowOrQpsEquallyDivide,
    RangeEquallyDivide,
    SpecifiedPositionsDivide,
    TopicCountEquallyDivide,
)
from lookup_policies.strategies import LeastLongTermMessageRate, LeastResourceUsage, LeastResourceUsageWithWeight
from lookup_policies.threshold import Overload, Threshold
from lookup_policies.transfer import Transfer
from lookup_policies.uniform import Uniform
from lookup_policies.wrappers import ByNamespace, Explore, Fallback, ZoneSpill

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
    BestFit,
    PowerOfTwo,
    Rendezvous,
    BoundedConsistentHash,
    Explore,
    Fallback,
    ZoneSpill,
    ByNamespace,
)
SHEDDERS: tuple[type[Shedder], ...] = (Threshold, Transfer, Overload, Uniform, Avg, Rebalance)
SPLITTERS: tuple[type[Splitter], ...] = (DefaultSplit, ModularSplit)
SPLIT_ALGORITHMS: tuple[type[SplitAlgorithm], ...] = (
    RangeEquallyDivide,
    TopicCountEquallyDivide,
    SpecifiedPositionsDivide,
    FlowOrQpsEquallyDivide,
)
LISTERS: tuple[type[Lister], ...] = (Default, Indexed, TenantScope)


@hookimpl
def lookup_register_filters() -> tuple[type[Filter], ...]:
    """Register the built-in filters."""
    return FILTERS


@hookimpl
def lookup_register_scorers() -> tuple[type[Scorer], ...]:
    """Register the built-in scorers."""
    return SCORERS


@hookimpl
def lookup_register_selectors() -> tuple[type[Selector], ...]:
    """Register the built-in selectors, including wrappers."""
    return SELECTORS


@hookimpl
def lookup_register_shedders() -> tuple[type[Shedder], ...]:
    """Register the built-in shedders."""
    return SHEDDERS


@hookimpl
def lookup_register_splitters() -> tuple[type[Splitter], ...]:
    """Register the built-in splitters."""
    return SPLITTERS


@hookimpl
def lookup_register_split_algorithms() -> tuple[type[SplitAlgorithm], ...]:
    """Register the built-in split algorithms."""
    return SPLIT_ALGORITHMS


@hookimpl
def lookup_register_listers() -> tuple[type[Lister], ...]:
    """Register the built-in listers."""
    return LISTERS
