"""The first stage in which two policies differ over one request, and the words for it."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from lookup.engine.policy import Policy, WeightedScorer
from lookup.engine.stages import Cause, StagedDecision, StagedManager, first_difference
from lookup.model import Broker, BrokerLookupData, LookupOptions, Roster
from lookup.model.request import request_of
from lookup_policies.broker_filters import LoadManagerClass
from lookup_policies.score_selectors import Best, Random, Softmax
from lookup_policies.scorers import PropertyMatch

_BUNDLE = "t/n/0x00000000_0xffffffff"
_ROSTER = Roster(
    [
        Broker(f"b{number}:8080", BrokerLookupData(properties={"lookup.rack": rack}, load_manager_class_name=kind))
        for number, (rack, kind) in enumerate([("a", "m.One"), ("b", "m.Two"), ("a", "m.One")])
    ]
)
_PLAIN = Policy(name="plain", selector=Random())
_MATCHING = replace(_PLAIN, name="matching", scorers=(WeightedScorer(PropertyMatch(), 0.5),))


def _decided(policy: Policy, *, before: int = 0, **options: Any) -> StagedDecision:
    manager = StagedManager(policy, "c", _ROSTER, seed=1)
    manager.begin_tick(0)
    manager.set_registry(_ROSTER, np.ones(3, dtype=bool))
    request = request_of(None, _BUNDLE, LookupOptions(properties={"rack": "a"}, **options))
    for ts_us in range(before):
        manager.select(request, ts_us)
        manager.unload(_BUNDLE)
    manager.select(request, 100)
    return manager.staged[_BUNDLE, 100]


@pytest.mark.parametrize(
    ("one", "other", "cause"),
    [
        (
            replace(_PLAIN, filters=(LoadManagerClass(class_name="m.One"),)),
            replace(_PLAIN, name="second", filters=(LoadManagerClass(class_name="m.Two"),)),
            Cause("filter", "plain rejects by load-manager-class, second rejects by load-manager-class"),
        ),
        (
            replace(_MATCHING, selector=Best()),
            _PLAIN,
            Cause("score", "property-match × 0.5 in matching, no scorer in plain"),
        ),
        (
            _MATCHING,
            replace(_MATCHING, name="soft", selector=Softmax()),
            Cause("selector", "random in matching, softmax in soft"),
        ),
    ],
)
def test_the_first_stage_that_differs_is_named(one: Policy, other: Policy, cause: Cause) -> None:
    """Filters before scores before the selector, with the parts of either policy."""
    assert first_difference((one, other), (_decided(one), _decided(other))) == cause


def test_the_same_odds_leave_the_dice() -> None:
    """A bundle that was rolled for before is rolled for again; scores that made no other odds are no cause."""
    found = first_difference((_PLAIN, _MATCHING), (_decided(_PLAIN), _decided(_MATCHING, before=2)))

    assert found.stage == "dice"


def test_decisions_are_numbered_as_in_the_run() -> None:
    """The third decision has the number 2, whether those before were taken meanwhile or not."""
    assert _decided(_PLAIN, before=2).number == 2


def test_a_request_that_is_declined_once_more_has_no_number() -> None:
    """It was declined before, and is only counted."""
    policy = replace(_PLAIN, filters=(LoadManagerClass(class_name="m.None"),))
    manager = StagedManager(policy, "c", _ROSTER, seed=1)
    manager.set_registry(_ROSTER, np.ones(3, dtype=bool))
    for ts_us in (1, 2):
        manager.select(request_of(None, _BUNDLE, LookupOptions()), ts_us)

    assert [manager.staged[_BUNDLE, ts_us].number for ts_us in (1, 2)] == [0, None]
    assert len(manager.staged[_BUNDLE, 1].stages.kept) == 0
