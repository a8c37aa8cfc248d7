"""The first stage in which two policies differ over one request, and the words for it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

import numpy as np
import pytest

from lookup.engine.manager import LoadManager
from lookup.engine.policy import Policy, WeightedScorer
from lookup.engine.stages import Cause, Stages, first_difference, stages_of
from lookup.model import Broker, BrokerLookupData, LookupOptions, Roster
from lookup.model.request import request_of
from lookup_policies.broker_filters import LoadManagerClass
from lookup_policies.score_selectors import Best, Random, Softmax
from lookup_policies.scorers import PropertyMatch

_ROSTER = Roster(
    [
        Broker(f"b{number}:8080", BrokerLookupData(properties={"lookup.rack": rack}, load_manager_class_name=kind))
        for number, (rack, kind) in enumerate([("a", "m.One"), ("b", "m.Two"), ("a", "m.One")])
    ]
)
_PLAIN = Policy(name="plain", selector=Random())
_MATCHING = replace(_PLAIN, name="matching", scorers=(WeightedScorer(PropertyMatch(), 0.5),))


def _answered(policy: Policy) -> tuple[Stages, Mapping[str, float]]:
    manager = LoadManager(policy, "c", _ROSTER)
    manager.set_registry(_ROSTER, np.ones(3, dtype=bool))
    request = request_of(None, "t/n/0x00000000_0xffffffff", LookupOptions(properties={"rack": "a"}))
    return stages_of(policy, request, manager.instant()), manager.decide(request)[0].odds


def _difference(*policies: Policy) -> Cause:
    stages, odds = zip(*map(_answered, policies), strict=True)
    return first_difference(policies, stages, odds)


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
    assert _difference(one, other) == cause


def test_the_same_odds_leave_the_dice() -> None:
    """Scores that made no other odds are no cause."""
    assert _difference(_PLAIN, _MATCHING).stage == "dice"


def test_without_a_candidate_there_are_no_scores() -> None:
    """Every broker has its reason."""
    stages, _ = _answered(replace(_PLAIN, filters=(LoadManagerClass(class_name="m.None"),)))

    assert (list(stages.rejected), len(stages.kept), len(stages.scores)) == ([0, 1, 2], 0, 0)
