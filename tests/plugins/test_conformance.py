"""The conformance kit over every built-in part, as it comes and with other parameters, also in drawn worlds."""

from __future__ import annotations

from dataclasses import fields
from importlib import import_module
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import lookup_policies
from lookup.engine.policy import Policy, WeightedScorer
from lookup.hooks import ALL_READS, Filter, Scorer, Selector, reads_of
from lookup.testing import parametrize_with_policies
from lookup.testing.conformance import (
    check_answers_are_sound,
    check_order_does_not_matter,
    check_rejections_are_explained,
    policy_of,
)
from lookup.testing.worlds import World as KitWorld
from lookup_policies.best_fit import BestFit
from lookup_policies.broker_filters import LoadManagerClass, MaxTopics, Version
from lookup_policies.default_split import DefaultSplit
from lookup_policies.hashing import BoundedConsistentHash, Rendezvous
from lookup_policies.isolation import AntiAffinity, Isolation
from lookup_policies.rebalance import Rebalance
from lookup_policies.round_robin import RoundRobin
from lookup_policies.score_selectors import Best, PowerOfTwo, Softmax, WeightedRandom
from lookup_policies.scorers import Headroom, PropertyMatch
from lookup_policies.splits import FlowOrQpsEquallyDivide, TopicCountEquallyDivide
from lookup_policies.strategies import LeastLongTermMessageRate, LeastResourceUsage, LeastResourceUsageWithWeight
from lookup_policies.threshold import Threshold
from lookup_policies.transfer import Transfer
from lookup_policies.wrappers import ByNamespace, Explore, Fallback, ZoneSpill
from tests.plugins.worlds import World, worlds

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
    BestFit(near="rack", max_imbalance=1.5),
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
    LeastResourceUsageWithWeight(history=0.5),
    LoadManagerClass(class_name="org.example.Ours"),
    MaxTopics(max_topics=10),
    PowerOfTwo(by="bundles"),
    PowerOfTwo(by="usage", choices=3),
    PowerOfTwo(by="usage", choices=5),
    PropertyMatch(key="dc", unlabelled=0.3, unasked=0.0),
    PropertyMatch(keys={"rack": 0.7, "zone": 0.1}, unlabelled=0.3),
    Rendezvous(key="client"),
    Rendezvous(key="properties.rack", weight_property="weight"),
    Softmax(temperature=1e-6),
    Rebalance(near="rack", max_imbalance=1.0, min_gain=0.0, hit_count=0, max_share=1.0, history=1),
    Threshold(threshold=0.0, history=0.0),
    Threshold(threshold=0.2, lower_boundary=True),
    Transfer(hit_count=0, target_std=0.05, quirks="intended"),
    Transfer(hit_count=0, target_std=0.0, transfer=False, shed_with_policies=True, top_bundles=2),
    Version(prefer_later=True),
    WeightedRandom(power=0.0),
    WeightedRandom(power=3.0),
    ZoneSpill(min_cluster_size=2, child=Explore(child=Softmax())),
    ZoneSpill(key="rack", min_cluster_size=1, child=LeastResourceUsage()),
]
_PARTS: list[Any] = [*(found() for found in _CLASSES), *_OTHERS]
_DECIDING = [part for part in _PARTS if isinstance(part, Filter | Scorer | Selector)]
_SELECTORS = [part for part in _DECIDING if isinstance(part, Selector)]
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


@parametrize_with_policies([*_PARTS, *_POLICIES])
def test_built_in_parts_conform(policy: Policy, check: Any) -> None:
    """A built-in part keeps every promise of the protocols."""
    check(policy)


@pytest.mark.parametrize("part", _DECIDING, ids=repr)
@settings(max_examples=40)
@given(world=worlds())
def test_built_in_parts_conform_in_any_world(part: Any, world: World) -> None:
    """Answers are sound, whatever the order of the candidates, and rejections have a sentence."""
    drawn = KitWorld("drawn", world.view, world.request)
    for check in (check_answers_are_sound, check_order_does_not_matter, check_rejections_are_explained):
        check(policy_of(part), [drawn])


@pytest.mark.parametrize("part", _SELECTORS, ids=repr)
@settings(max_examples=40)
@given(world=worlds(), data=st.data())
def test_odds_belong_to_the_broker_and_not_to_its_place(part: Selector, world: World, data: st.DataObject) -> None:
    """One finite weight of at least 0 per candidate, to the last bit the same in another order, for any scores."""
    odds = world.odds(part, world.ids)

    assert odds.shape == (len(world.ids),)
    assert np.isfinite(odds).all()
    assert (odds >= 0).all()
    if not getattr(part, "order_sensitive", False):
        order = data.draw(st.permutations(world.ids))
        expected = dict(zip(world.ids, odds.tolist(), strict=True))
        assert dict(zip(order, world.odds(part, order).tolist(), strict=True)) == expected


@pytest.mark.parametrize("part", _PARTS, ids=repr)
def test_a_part_has_defaults_and_does_not_read_everything(part: Any) -> None:
    """It can be named in settings without any parameter; a filter can say why it rejects."""
    assert type(part)() is not None
    assert all(entry.init for entry in fields(part))
    assert not reads_of(part) >= ALL_READS
    assert hasattr(part, "detail") or not isinstance(part, Filter)


def test_every_part_is_registered_once_and_every_file_holds_one() -> None:
    """A part that is exported and forgotten in the root would be there, but not to be named in settings."""
    registered = [
        *lookup_policies.FILTERS,
        *lookup_policies.SCORERS,
        *lookup_policies.SELECTORS,
        *lookup_policies.SHEDDERS,
        *lookup_policies.SPLITTERS,
        *lookup_policies.SPLIT_ALGORITHMS,
        *lookup_policies.LISTERS,
    ]
    paths = [path for path in Path(str(lookup_policies.__file__)).parent.glob("*.py") if not path.stem.startswith("_")]
    modules = [import_module(f"lookup_policies.{path.stem}") for path in paths]
    exported = [getattr(module, name) for module in modules for name in module.__all__]
    parts = [found for found in exported if hasattr(found, "name")]

    assert sorted(map(repr, parts)) == sorted(map(repr, registered))
    assert {found.__module__ for found in registered} == {module.__name__ for module in modules}
