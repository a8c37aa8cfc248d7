"""The conformance kit over every built-in part, as it comes and with other parameters, and over whole policies."""

from __future__ import annotations

from typing import Any

import lookup_policies
from lookup.engine.policy import Policy, WeightedScorer
from lookup.testing import parametrize_with_policies
from lookup_policies.broker_filters import LoadManagerClass, MaxTopics, Version
from lookup_policies.default_split import DefaultSplit
from lookup_policies.hashing import BoundedConsistentHash, Rendezvous
from lookup_policies.isolation import AntiAffinity, Isolation
from lookup_policies.round_robin import RoundRobin
from lookup_policies.score_selectors import Best, PowerOfTwo, Softmax, WeightedRandom
from lookup_policies.scorers import Headroom, PropertyMatch
from lookup_policies.splits import FlowOrQpsEquallyDivide, TopicCountEquallyDivide
from lookup_policies.strategies import LeastLongTermMessageRate, LeastResourceUsage, LeastResourceUsageWithWeight
from lookup_policies.threshold import Threshold
from lookup_policies.transfer import Transfer
from lookup_policies.wrappers import ByNamespace, Explore, Fallback, ZoneSpill

_CLASSES: list[type[Any]] = [
    *lookup_policies.FILTERS,
    *lookup_policies.SCORERS,
    *lookup_policies.SELECTORS,
    *lookup_policies.SHEDDERS,
    *lookup_policies.SPLITTERS,
    *lookup_policies.SPLIT_ALGORITHMS,
]
_OTHERS: list[Any] = [
    AntiAffinity(failure_domains_enabled=True),
    Best(min_score=0.7),
    ByNamespace(namespaces=("team/a",), child=Rendezvous()),
    BoundedConsistentHash(epsilon=0.01, points=3),
    DefaultSplit(hit_threshold=0, max_splits=1, algorithm=TopicCountEquallyDivide()),
    DefaultSplit(hit_threshold=0, algorithm=FlowOrQpsEquallyDivide(quirks="intended"), quirks="intended"),
    Explore(epsilon=1.0, child=Fallback((Best(min_score=0.9), Rendezvous()))),
    Explore(child=RoundRobin()),
    Fallback((Best(min_score=2.0),)),
    Fallback((Best(min_score=2.0), RoundRobin(), Softmax())),
    Headroom(unreported=0.0),
    Explore(child=LeastLongTermMessageRate(overloaded=0.2, unknown_rate=0.0)),
    Fallback((Best(min_score=2.0), LeastResourceUsageWithWeight(history=0.5))),
    Isolation(portless="drop"),
    LeastLongTermMessageRate(overloaded=0.2, unknown_rate=0.0),
    LeastResourceUsage(0.0),
    LeastResourceUsageWithWeight(history=0.5, rule="average"),
    LoadManagerClass(class_name="org.example.Ours"),
    MaxTopics(max_topics=10),
    PowerOfTwo(by="bundles"),
    PowerOfTwo(by="usage", choices=5),
    PropertyMatch(key="dc", unlabelled=0.3, unasked=0.0),
    PropertyMatch(keys={"rack": 0.7, "zone": 0.1}),
    Rendezvous(key="client"),
    Rendezvous(key="properties.rack", weight_property="weight"),
    Softmax(temperature=1e-6),
    Threshold(threshold=0.0, history=0.0),
    Threshold(threshold=0.2, lower_boundary=True),
    Transfer(hit_count=0, target_std=0.05, quirks="intended"),
    Transfer(hit_count=0, target_std=0.0, transfer=False, shed_with_policies=True, top_bundles=2),
    Version(prefer_later=True),
    WeightedRandom(power=3.0),
    ZoneSpill(key="rack", min_cluster_size=1, child=LeastResourceUsage()),
]
_POLICIES = [
    Policy(
        "rack-then-load",
        Best(),
        filters=(LoadManagerClass(), MaxTopics(), Version(), AntiAffinity(), Isolation()),
        scorers=(WeightedScorer(PropertyMatch(), 0.7), WeightedScorer(Headroom(), 0.3)),
        shedder=Threshold(),
        splitter=DefaultSplit(),
    ),
    Policy("explore-usage", Explore(epsilon=0.2, child=LeastResourceUsage()), on_error="skip"),
]


@parametrize_with_policies([*(found() for found in _CLASSES), *_OTHERS, *_POLICIES])
def test_built_in_parts_conform(policy: Policy, check: Any) -> None:
    """A built-in part keeps every promise of the protocols."""
    check(policy)
