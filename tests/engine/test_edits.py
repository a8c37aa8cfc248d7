"""What has to change for another broker or another end of a cycle, as the engine itself confirms."""

from __future__ import annotations

import json
from dataclasses import dataclass, replace
from functools import cache
from types import SimpleNamespace
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from lookup.engine.build import build_policies
from lookup.engine.edits import Change, Edit, changes, cheapest, cost_of, edits_that_change, smallest_changes
from lookup.engine.plugins import load_plugins
from lookup.engine.policy import Instant, Policy
from lookup.model import ClusterView, LookupRequest
from lookup.settings.policy import PolicySpec
from lookup.testing import broker, cluster, request
from lookup_policies.score_selectors import Best
from lookup_policies.threshold import Threshold
from lookup_policies.transfer import Transfer

_POLICIES: tuple[dict[str, Any], ...] = (
    {"scorers": [{"use": "property-match", "weight": 0.7}, {"use": "headroom", "weight": 0.3}], "selector": "best"},
    {"scorers": [{"use": "property-match", "keys": {"rack": 2.0, "tier": 1.0}}], "selector": "softmax"},
    {"selector": "least-resource-usage"},
    {"scorers": ["topology-distance", "headroom"], "selector": "best"},
    {"selector": "random"},
    {"filters": ["max-topics"], "selector": {"use": "rendezvous"}},
)
_LABELS = st.sampled_from([None, "a", "b", "c"])


_REGISTRY = load_plugins()


def _policy(**parts: Any) -> Policy:
    return _built(json.dumps(parts, sort_keys=True))


@cache
def _built(parts: str) -> Policy:
    # Scenes are drawn by the hundred, and policies are few.
    (policy,) = build_policies(_REGISTRY, [PolicySpec.model_validate({"name": "p", **json.loads(parts)})])
    return policy


@dataclass(frozen=True)
class _Scene:
    """A policy, a request and brokers as plain values, which a change is applied to without the code under test."""

    parts: dict[str, Any]
    sent: dict[str, str]
    labels: dict[str, dict[str, str]]
    usage: dict[str, float]

    def built(self) -> tuple[Policy, LookupRequest, ClusterView]:
        """Build what the engine takes."""
        brokers = [broker(name, capacity=10.0, **labels) for name, labels in self.labels.items()]
        throughput = {name: 10.0 * used for name, used in self.usage.items()}
        view = cluster(*brokers, usage=self.usage, throughput=throughput)
        return _policy(**self.parts), request(properties=self.sent), view

    def after(self, change: Change) -> _Scene:
        """Return the scene that a change describes."""
        scene = self
        for edit in change:
            label = {} if edit.after is None else {edit.key or "": str(edit.after)}
            name = edit.broker or ""
            if edit.kind == "client property":
                kept = {key: value for key, value in scene.sent.items() if key != edit.key}
                scene = replace(scene, sent=kept | label)
            elif edit.kind == "broker property":
                scene = replace(scene, labels=scene.labels | {name: scene.labels[name] | label})
            elif edit.kind == "load":
                scene = replace(scene, usage=scene.usage | {name: float(edit.after or 0.0)})
            else:
                scorers = [{"use": one} if isinstance(one, str) else dict(one) for one in scene.parts["scorers"]]
                scorers[edit.place or 0]["weight"] = edit.after
                scene = replace(scene, parts=scene.parts | {"scorers": scorers})
        return scene

    def is_won_by(self, wanted: str) -> bool:
        """Return whether a broker alone has the greatest odds."""
        policy, asked, view = self.built()
        odds = policy.ballot(asked, Instant(policy, view)).odds
        return (
            odds.get(wanted, 0.0) > max((share for name, share in odds.items() if name != wanted), default=0.0) + 1e-9
        )


@st.composite
def _scenes(draw: st.DrawFn) -> tuple[_Scene, str]:
    """Draw a policy, a request, three brokers with labels and load, and one of them."""
    names = ("x:1", "y:1", "z:1")

    def labels() -> dict[str, str]:
        """Draw labels of a client or a broker."""
        return {key: label for key in ("rack", "tier") if (label := draw(_LABELS)) is not None}

    published = {name: labels() for name in names}
    usage = {name: draw(st.integers(0, 20)) / 20 for name in names if draw(st.booleans())}
    return _Scene(draw(st.sampled_from(_POLICIES)), labels(), published, usage), draw(st.sampled_from(names))


@given(_scenes())
@settings(deadline=None, max_examples=50)
def test_a_change_turns_the_choice_and_none_that_is_cheaper_does(drawn: tuple[_Scene, str]) -> None:
    """The first change returned is enough, and of all that are tried no cheaper one is; without any, none is."""
    scene, wanted = drawn
    found = smallest_changes(*scene.built(), wanted)

    if scene.is_won_by(wanted):
        assert found == []
        return
    assert all(scene.after(change).is_won_by(wanted) for change in found)
    assert [cost_of(change) for change in found] == sorted(map(cost_of, found))
    least = cost_of(found[0]) if found else float("inf")
    # Pairs are many: of them a choice is asked, single edits are asked all.
    tried = [change for change in changes(*scene.built(), wanted) if cost_of(change) < least - 1e-12]
    singles, pairs = ([change for change in tried if len(change) == size] for size in (1, 2))
    assert not any(scene.after(change).is_won_by(wanted) for change in [*singles, *pairs[:: len(pairs) // 20 + 1]])


def test_every_kind_of_change_is_found() -> None:
    """A client's label, a broker's label, a load, a weight: each is named with what is and what would have to be."""
    policy = _policy(**_POLICIES[0])
    brokers = broker("x:1", capacity=10.0, rack="a"), broker("y:1", capacity=10.0, rack="b")
    view = cluster(*brokers, usage={"x:1": 0.9, "y:1": 0.1}, throughput={"x:1": 9.0, "y:1": 1.0})

    found = smallest_changes(policy, request(properties={"rack": "a"}), view, "y:1")

    by_kind = {change[0].kind: change[0] for change in found if len(change) == 1}
    # 0.7 and 0.03 of x against 0.27 of y: the weight of the rack has to fall below 0.24.
    assert by_kind["weight"] == Edit(
        "weight", "property-match", None, 0, 0.7, by_kind["weight"].after, by_kind["weight"].cost
    )
    assert 0.22 < float(by_kind["weight"].after or 0) < 0.24
    # Of these two the alphabet decides, since both cost a property.
    assert (by_kind["client property"].before, by_kind["client property"].after) == ("a", "b")
    assert (by_kind["broker property"].before, by_kind["broker property"].after) == ("b", "a")
    assert "load" not in by_kind


def test_a_property_and_a_load_together() -> None:
    """Where a label alone makes a tie, the load that breaks it is named as well."""
    policy = _policy(**_POLICIES[0])
    names = {"x:1": "a", "y:1": "b", "z:1": "b"}
    view = cluster(
        *(broker(name, capacity=10.0, rack=rack) for name, rack in names.items()),
        usage=dict.fromkeys(names, 0.5),
        throughput=dict.fromkeys(names, 5.0),
    )

    (first, *_) = smallest_changes(policy, request(properties={"rack": "a"}), view, "y:1")

    assert [(edit.kind, edit.after) for edit in first] == [("client property", "b"), ("load", 0.49)]


def test_what_is_preferred_needs_no_change_and_what_reads_nothing_has_none() -> None:
    """The broker that wins as it is, and a policy whose odds depend on nothing that can be changed."""
    view = cluster(broker("x:1", capacity=1.0, rack="a"), broker("y:1", capacity=1.0, rack="b"))
    asked = request(properties={"rack": "a"})

    assert smallest_changes(_policy(**_POLICIES[0]), asked, view, "x:1") == []
    assert smallest_changes(_policy(selector="random"), asked, view, "x:1") == []


@given(
    st.lists(st.tuples(st.sampled_from("abc"), st.integers(0, 9)), max_size=20), st.integers(0, 9), st.integers(0, 9)
)
def test_the_cheapest_of_each_subject_is_found(drawn: list[tuple[str, int]], least: int, together: int) -> None:
    """Single edits from a cost on, and pairs from a sum on if no cheaper edit of one of their subjects is enough."""
    edits = [SimpleNamespace(subject=subject, cost=float(cost)) for subject, cost in drawn]
    tried = [*((edit,) for edit in edits), *((one, other) for one in edits for other in edits if one is not other)]

    def is_enough(change: tuple[Any, ...]) -> bool:
        """Return whether a change costs as much as it must."""
        return cost_of(change) >= (least if len(change) == 1 else together)

    found = cheapest(tried, is_enough, lambda edit: edit.subject)

    assert [cost_of(change) for change in found] == sorted(map(cost_of, found))
    costs = {tuple(edit.subject for edit in change): cost_of(change) for change in found}
    assert len(costs) == len(found)
    for change in filter(is_enough, tried):
        subjects = tuple(edit.subject for edit in change)
        known = [costs[key] for key in (subjects, *((subject,) for subject in subjects)) if key in costs]
        assert known
        assert min(known) <= cost_of(change)


def _with_shedder(shedder: Any) -> Policy:
    return Policy(name="p", selector=Best(), shedder=shedder)


@given(st.floats(0.001, 1.0), st.floats(0.0, 0.999))
def test_a_limit_is_found_from_either_side(before: float, limit: float) -> None:
    """What flips at a limit is changed to just beyond it, within a hundredth, and by no setting that has no part."""

    def is_below(policy: Policy) -> bool:
        return policy.shedder.threshold < limit  # type: ignore[union-attr]

    policy = _with_shedder(Threshold(threshold=before))
    found = edits_that_change(policy, lambda changed: is_below(changed) != is_below(policy))

    assert all(edit.setting == "shedder.threshold" for edits in found for edit in edits)
    for (edit,) in found:
        changed = replace(policy, shedder=Threshold(threshold=float(edit.after)))
        assert is_below(changed) != is_below(policy)
        assert abs(edit.after - limit) <= 0.02 * max(limit, abs(before - limit)) + 1e-3
    # A limit of almost 0 lies below the last value that is tried; any other is found.
    assert found or limit < 1e-3 or before < limit


@given(st.integers(0, 12), st.integers(0, 12))
def test_a_count_changes_by_no_more_than_it_must(before: int, limit: int) -> None:
    """The least other count that is enough is found."""
    policy = _with_shedder(Transfer(hit_count=before))
    found = edits_that_change(policy, lambda changed: (changed.shedder.hit_count >= limit) != (before >= limit))  # type: ignore[union-attr]

    if before >= limit and limit == 0:
        assert not found
    else:
        (edit,) = found[0]
        assert edit.after == (limit - 1 if before >= limit else limit)


def test_a_count_that_hides_another_condition_is_changed_with_it() -> None:
    """If no setting alone is enough, a count at its least and another one are; with Pulsar's keys."""
    policy = _with_shedder(Transfer(hit_count=3, target_std=0.25))
    found = edits_that_change(
        policy,
        lambda changed: changed.shedder.hit_count == 0 and changed.shedder.target_std <= 0.2,  # type: ignore[union-attr]
    )

    first, second = found[0]
    assert (first.setting, first.after) == ("shedder.hit_count", 0)
    assert (second.setting, second.key) == ("shedder.target_std", "loadBalancerBrokerLoadTargetStd")
    assert second.after == pytest.approx(0.2, rel=0.02)


def test_switches_and_the_grace_period_are_settings_too() -> None:
    """A switch is turned, and seconds are counted; bounds of a parameter are kept."""
    policy = _with_shedder(Threshold())
    (switch,) = edits_that_change(policy, lambda changed: bool(changed.shedder.lower_boundary))[0]  # type: ignore[union-attr]
    (grace,) = edits_that_change(policy, lambda changed: changed.grace_us < 600_000_000)[0]

    assert (switch.setting, switch.before, switch.after, switch.cost) == ("shedder.lower_boundary", False, True, 1.0)
    assert (grace.setting, grace.before, grace.after) == ("grace_s", 1800, 599)
    # A share of the past of more than 1 cannot be set.
    assert not edits_that_change(policy, lambda changed: changed.shedder.history > 1.0)  # type: ignore[union-attr]
