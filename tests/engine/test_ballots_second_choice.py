"""A second choice: fewer filters where the first choice is none, or falls on an overloaded broker."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lookup.engine.ballots import Ballot, SecondChoice
from lookup.engine.build import build_policies, policy_table
from lookup.engine.explain import explain
from lookup.engine.plugins import load_plugins
from lookup.errors import SettingsError
from lookup.model import Candidates, ClusterView, Reason
from lookup.settings import PolicySpec
from lookup.testing import cluster
from tests.engine.asked import ASKED
from tests.engine.parts import Keep, Odds, Score, instant, policy, raising

IDS = ("b1", "b2", "b3")
#: The first filter holds in any case: nobody ever gets to b4.
FIRST = Keep(IDS, reason=Reason.ISOLATION)


def _view(usage: dict[str, float] | None = None, **figures: Any) -> ClusterView:
    return cluster(*IDS, "b4", usage=usage or {}, **figures)


def _ballot(
    *parts: Any, usage: dict[str, float] | None = None, view: ClusterView | None = None, **changes: Any
) -> Ballot:
    tested = policy(FIRST, *parts, second_choice=SecondChoice(filters=1), **changes)
    return tested.ballot(ASKED, instant(tested, view or _view(usage)))


def test_only_the_share_of_overloaded_brokers_is_given_away() -> None:
    """Odds of the others stay; the overloaded broker's go by the odds of the second choice."""
    selector = Odds({"b1": 2.0, "b2": 1.0, "b3": 1.0})
    found = _ballot(Keep(("b1", "b2")), selector, usage={"b1": 0.9})

    assert found.odds == pytest.approx({"b1": 2 / 3 * 1 / 2, "b2": 1 / 3 + 2 / 3 * 1 / 4, "b3": 2 / 3 * 1 / 4})
    assert found.cumulative[-1] == pytest.approx(1.0)
    assert list(found.numbers) == [0, 1, 2]


@pytest.mark.parametrize(
    ("figures", "is_full"),
    [
        ({"usage": {"b1": 0.1}, "max_usage": {"b1": 0.9}}, True),
        ({"usage": {"b1": 0.9}, "max_usage": {"b1": 0.1}}, False),
        ({"usage": {"b1": 0.1}, "resources": {"b1": {"cpu": 90.0}}}, True),
        ({"usage": {"b1": 0.9}, "resources": {"b1": {"memory": 90.0}}}, False),
        ({}, False),
    ],
    ids=["as-measured", "not-smoothed", "a-resource", "memory-does-not-count", "no-report"],
)
def test_the_fullest_resource_counts_as_measured(figures: Any, is_full: bool) -> None:
    """Not what was smoothed, and not memory; who reports nothing is not full."""
    assert (len(_ballot(Keep(("b1",)), view=_view(**figures)).odds) == 3) is is_full


def test_a_filter_that_fails_leaves_only_the_first_ones() -> None:
    """Where the policy goes on without it; what the others between them rejected is forgotten."""
    broken = Keep(answer=raising(KeyError("x")))
    found = _ballot(Keep(("b1",)), broken, on_error="skip")
    closed = _ballot(Keep(("b1",)), broken, on_error="fail-closed")

    assert found.odds == dict.fromkeys(IDS, 1 / 3)
    assert closed.declined is Reason.POLICY_ERROR


def test_who_observes_is_told_whom_the_second_choice_was_among() -> None:
    """As soon as any of it was made."""

    class Observing(Odds):
        def observe(self, *told: Any) -> None:
            """Need nothing but to be there."""

    mixed = _ballot(Keep(("b1", "b2")), Observing(), usage={"b1": 0.9})
    all_full = _ballot(Keep(("b1",)), Observing(), usage={"b1": 0.9})

    assert [offer.ids for offer in mixed.offers] == [IDS]
    assert [offer.ids for offer in all_full.offers] == [("b1",), IDS]


def test_a_policy_with_a_second_choice_reads_load() -> None:
    """So its decisions are not kept beyond the load they were taken by."""
    assert policy(FIRST).reads == frozenset()
    assert policy(FIRST, second_choice=SecondChoice(1)).reads == {"view.load"}


def test_an_explanation_shows_odds_of_a_broker_a_filter_rejected() -> None:
    """With the filter's reason, which counted only at the first choice."""
    tested = policy(FIRST, Keep(("b1",)), Score({"b1": 0.5}), second_choice=SecondChoice(1))
    votes = {vote.broker: vote for vote in explain(tested, ASKED, _view({"b1": 0.9})).votes}

    assert votes["b2"].reason is Reason.FILTERED
    assert sum(vote.probability for vote in votes.values()) == pytest.approx(1.0)
    assert votes["b4"].probability == 0.0


_WEIGHTS = st.fixed_dictionaries(dict.fromkeys(IDS, st.sampled_from([0.0, 0.25, 1.0])))


@given(_WEIGHTS, _WEIGHTS, st.sets(st.sampled_from(IDS)))
def test_the_odds_are_those_of_choosing_twice(first: dict[str, float], usage: dict[str, float], kept: set[str]) -> None:
    """As if the dice were rolled, and rolled again where they show an overloaded broker."""
    found = _ballot(Keep(tuple(sorted(kept))), Odds(first), usage=usage)
    among = {name: first[name] for name in kept if first[name]}
    total, whole = sum(among.values()), sum(first.values())
    if not kept:
        among, total = {name: odds for name, odds in first.items() if odds}, whole

    expected: dict[str, float] = {}
    for name, odds in among.items():
        if usage[name] <= 0.85:
            expected[name] = expected.get(name, 0.0) + odds / total
            continue
        for other, again in first.items():
            expected[other] = expected.get(other, 0.0) + odds / total * again / whole

    assert dict(found.odds) == pytest.approx({name: odds for name, odds in expected.items() if odds})


def _built(**table: Any) -> Any:
    spec = PolicySpec.model_validate({"name": "p", "selector": "best", "filters": ["isolation"], **table})
    return build_policies(load_plugins(), [spec])[0]


def test_settings_say_how_many_filters_count() -> None:
    """And the threshold, which a `broker.conf` fills; what is printed builds the same policy again."""
    conf = {"loadBalancerBrokerOverloadedThresholdPercentage": 70}
    built = _built(second_choice={"filters": 1}, broker_conf=conf)

    assert built.second_choice == SecondChoice(1, 0.7)
    again = PolicySpec.model_validate(policy_table(built))
    assert replace(build_policies(load_plugins(), [again])[0], name="p") == built


@pytest.mark.parametrize(
    ("table", "said"),
    [
        ({"filters": 2}, "filters = 2: "),
        ({"overload": 1.0}, "'second_choice' has no parameter 'overload'"),
        ({"overloaded": -1.0}, "overloaded = -1.0: "),
    ],
)
def test_a_wrong_second_choice_is_a_sentence(table: dict[str, Any], said: str) -> None:
    """What it may not be."""
    with pytest.raises(SettingsError, match=rf"policy 'p' second_choice: {said}"):
        _built(second_choice=table)


def test_a_failure_at_the_second_choice_closes_the_policy() -> None:
    """The odds of the first choice do not outlive it where a policy fails closed."""

    def alone_or_broken(brokers: Candidates) -> list[float]:
        if len(brokers) > 1:
            raise KeyError("x")
        return [1.0]

    selector = Odds(answer=alone_or_broken)
    closed = _ballot(Keep(("b1",)), selector, usage={"b1": 0.9}, on_error="fail-closed")

    assert closed == Ballot(rejected={Reason.ISOLATION: 1}, declined=Reason.POLICY_ERROR)
    assert dict(_ballot(Keep(("b1",)), selector, usage={"b1": 0.9}, on_error="skip").odds) == {"b1": 1.0}
