"""Where bundles may be under all policies of a run: what isolation leaves, what may have stayed, and who is exempt."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from lookup.engine.policy import Policy
from lookup.replay.reach import ReachWalk, limiting
from tests.replay.plans import NOON, WHOLE, lookup, planned, policy
from tests.replay.worlds import MICRO

BROKERS = [{"id": f"{name}:1"} for name in "abc"]
#: t/n is kept to a, and to b if a is gone.
ISOLATED = [{"name": "t/n", "isolation": [{"primary": ["a"], "secondary": ["b"]}]}]
OTHER = "persistent://t/other/topic"


def reached(folder: Path, *policies: Policy, topics: tuple[str, ...] = (), **given: Any) -> dict[str, list[str]]:
    """Return by registry epoch and namespace the brokers that bundles may be on, after the first, empty epoch."""
    rows = [lookup(0), *(lookup(1, topic=topic) for topic in topics), lookup(600)]
    plan = planned(folder, rows, **{"brokers": BROKERS, "namespaces": ISOLATED} | given)
    walk = ReachWalk(plan.cluster, plan.run, limiting(policies or [policy(filters=["isolation"])]))
    found = {}
    for number, (roster, registered) in enumerate(plan.cluster.timeline.epochs):
        reach = walk.begin_epoch(roster, registered)
        for unit, name in enumerate(plan.cluster.units[0]):
            members = registered if reach is None else reach.members[reach.of[unit]]
            ids = [broker.id[0] for broker, is_in in zip(roster, members, strict=True) if is_in]
            found[f"{number} {name.rpartition('/')[0]}"] = ids
    return found


def test_namespaces_are_kept_to_their_brokers_and_off_those_of_others(tmp_path: Path) -> None:
    """Secondaries count, since another filter may leave no primary."""
    assert reached(tmp_path, topics=(OTHER,)) == {"0 t/n": ["a", "b"], "0 t/other": ["b", "c"]}


@pytest.mark.parametrize(
    "others",
    [
        {"filters": ["max-topics"]},
        {"filters": ["isolation"], "second_choice": {"filters": 0}},
        {"filters": ["anti-affinity", "isolation"], "second_choice": {"filters": 1}},
    ],
)
def test_a_policy_that_may_use_any_broker_frees_all(others: dict[str, Any]) -> None:
    """One without isolation, or with a second choice that does not ask it."""
    assert not limiting([policy(filters=["isolation"]), policy(**others)])


def test_each_policy_adds_the_brokers_that_it_may_use(tmp_path: Path) -> None:
    """Pulsar's filter drops brokers without a port, the other one does not."""
    policies = [policy(filters=[{"use": "isolation", "portless": portless}]) for portless in ("drop", "keep")]
    brokers = [{"id": "a:1"}, {"id": "b"}, {"id": "c:1"}]

    assert reached(tmp_path / "drop", policies[0], brokers=brokers) == {"0 t/n": ["a"]}
    assert reached(tmp_path / "both", *policies, brokers=brokers) == {"0 t/n": ["a", "b"]}


def test_what_no_broker_may_have_may_be_anywhere(tmp_path: Path) -> None:
    """No policy answers it, and what is not answered is in no bound."""
    namespaces = [{"name": "t/n", "isolation": [{"primary": ["z"]}]}]

    assert reached(tmp_path, namespaces=namespaces) == {"0 t/n": ["a", "b", "c"]}


def test_pinned_bundles_pass_no_filter(tmp_path: Path) -> None:
    """Their broker is in their names."""
    found = reached(tmp_path, topics=("persistent://pulsar/a:1/healthcheck",))

    assert found["0 pulsar/a:1"] == ["a", "b", "c"]


def test_kinds_of_topics_that_occur_are_asked_about(tmp_path: Path) -> None:
    """A broker that serves non-persistent topics only counts if there are any in the log."""
    rows = [_event(-1, "registered", "a:1"), _event(-1, "registered", "b:1", is_persistent=False)]
    given: dict[str, Any] = {"brokers": [], "namespaces": [], "tables": {"brokers": rows}}

    assert reached(tmp_path / "one", **given) == {"0 t/n": ["a"]}
    assert reached(tmp_path / "two", topics=("non-persistent://t/m/topic",), **given)["0 t/n"] == ["a", "b"]


def _event(minute: int, event: str, broker: str, *, is_persistent: bool = True) -> dict[str, Any]:
    data = json.dumps({"persistentTopicsEnabled": is_persistent, "nonPersistentTopicsEnabled": True})
    at = {"ts": NOON + minute * 60 * MICRO, "cluster": "east", "broker": broker, "event": event}
    return {**at, "lookup_data": None if event == "unregistered" else data}


@pytest.mark.parametrize(("ownership", "then"), [("exclusive", ["a", "b"]), ("shared", ["a"])])
def test_a_broker_may_keep_what_it_was_given_until_it_is_lost(tmp_path: Path, ownership: str, then: list[str]) -> None:
    """An update takes no bundles away; without owners each lookup is filtered anew."""
    rows = [_event(-1, "registered", f"{name}:1") for name in "ab"]
    rows += [_event(2, "updated", "b:1", is_persistent=False)]
    rows += [_event(4, "unregistered", "b:1"), _event(6, "registered", "b:1", is_persistent=False)]
    found = reached(tmp_path, brokers=[], namespaces=[], tables={"brokers": rows}, evaluation={"ownership": ownership})

    assert list(found.values()) == [["a", "b"], then, ["a"], ["a"]]


def test_owners_of_before_the_run_may_stay(tmp_path: Path) -> None:
    """They pass no filter."""
    owned = {"ts": NOON - MICRO, "cluster": "east", "bundle": WHOLE, "event": "owned", "broker": "c:1"}

    assert reached(tmp_path, tables={"ownership": [owned]}) == {"0 t/n": ["a", "b", "c"]}
    shared = reached(tmp_path / "shared", tables={"ownership": [owned]}, evaluation={"ownership": "shared"})
    assert shared == {"0 t/n": ["a", "b"]}
