"""What has to change for a broker to be preferred, as the engine itself confirms."""

from __future__ import annotations

from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from lookup.engine.build import build_policies
from lookup.engine.edits import Edit, changes, cost_of, is_enough, prefers, smallest_changes
from lookup.engine.plugins import load_plugins
from lookup.engine.policy import Policy
from lookup.model import ClusterView, LookupRequest
from lookup.settings.policy import PolicySpec
from lookup.testing import broker, cluster, request

_POLICIES: tuple[dict[str, Any], ...] = (
    {"scorers": [{"use": "property-match", "weight": 0.7}, {"use": "headroom", "weight": 0.3}], "selector": "best"},
    {"scorers": [{"use": "property-match", "keys": {"rack": 2.0, "tier": 1.0}}], "selector": "softmax"},
    {"selector": "least-resource-usage"},
    {"scorers": ["topology-distance", "headroom"], "selector": "best"},
    {"selector": "random"},
    {"filters": ["max-topics"], "selector": {"use": "rendezvous"}},
)
_LABELS = st.sampled_from([None, "a", "b", "c"])


def _policy(**parts: Any) -> Policy:
    (policy,) = build_policies(load_plugins(), [PolicySpec.model_validate({"name": "p", **parts})])
    return policy


@st.composite
def _scenes(draw: st.DrawFn) -> tuple[Policy, LookupRequest, ClusterView, str]:
    """Draw a policy, a request, three brokers with labels and load, and one of them."""
    policy = _policy(**draw(st.sampled_from(_POLICIES)))
    brokers = []
    for name in ("x:1", "y:1", "z:1"):
        labels = {key: label for key in ("rack", "tier") if (label := draw(_LABELS)) is not None}
        brokers.append(broker(name, capacity=10.0, **labels))
    usage = {b.id: draw(st.integers(0, 20)) / 20 for b in brokers if draw(st.booleans())}
    view = cluster(*brokers, usage=usage, throughput={name: 10.0 * used for name, used in usage.items()})
    sent = {key: label for key in ("rack", "tier") if (label := draw(_LABELS)) is not None}
    return policy, request(properties=sent), view, draw(st.sampled_from(["x:1", "y:1", "z:1"]))


@given(_scenes())
def test_a_change_turns_the_choice_and_none_that_is_cheaper_does(
    scene: tuple[Policy, LookupRequest, ClusterView, str],
) -> None:
    """The first change returned is enough, and of all that are tried no cheaper one is; without any, none is."""
    policy, asked, view, wanted = scene
    found = smallest_changes(policy, asked, view, wanted)
    tried = list(changes(policy, asked, view, wanted))

    if prefers(policy, asked, view, wanted):
        assert found == []
        return
    assert all(is_enough(change, policy, asked, view, wanted) for change in found)
    assert [cost_of(change) for change in found] == sorted(map(cost_of, found))
    least = cost_of(found[0]) if found else float("inf")
    assert not any(
        is_enough(change, policy, asked, view, wanted) for change in tried if cost_of(change) < least - 1e-12
    )


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
