"""The selector `round-robin`."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from lookup.hooks import Offer
from lookup.testing import candidates, cluster, request
from lookup_policies.round_robin import RoundRobin
from tests.plugins.worlds import shares

VIEW = cluster("a", "b", "c", "d")


def _chosen(*calls: Sequence[str], memory: dict[str, Any] | None = None) -> list[str]:
    part, memory, chosen = RoundRobin(), {} if memory is None else memory, []
    for offered in calls:
        (broker_id,) = shares(part, replace(VIEW, memory=memory), *offered)
        broker = candidates(VIEW, broker_id)[0]
        part.observe(memory, request(), broker, Offer(candidates(VIEW, *offered), replace(VIEW, memory=memory)))
        part.remember(memory, request(), broker)
        chosen.append(broker_id)
    return chosen


def test_brokers_take_turns() -> None:
    """The counter goes on whoever the candidates are."""
    calls = ["abc"] * 4 + ["ac"] * 2 + ["abcd"] * 3

    assert _chosen(*calls) == ["a", "b", "c", "a", "a", "c", "c", "d", "a"]


def test_turns_go_by_the_remembered_list_while_it_is_as_long() -> None:
    """A broker that took another's place has its turn only when the old list names somebody who is gone."""
    assert _chosen("abc", "abd", "bcd") == ["a", "b", "c"]
    assert _chosen("abc", "acd", "acd") == ["a", "c", "d"]


def test_asking_alone_does_not_move_on() -> None:
    """Without an assignment the same broker is chosen again."""
    assert shares(RoundRobin(), VIEW) == shares(RoundRobin(), VIEW) == {"a": 1.0}


def test_the_counter_starts_over() -> None:
    """The counter stays a Java int."""
    memory = {"counter": 2**31 - 2}

    assert _chosen("abc", "abc", memory=memory) == ["abc"[(2**31 - 2) % 3], "a"]


def test_it_goes_by_places_and_says_so() -> None:
    """Another order of the candidates gives the turn to another broker, which the conformance kit is told."""
    assert shares(RoundRobin(), VIEW, "c", "a") == {"c": 1.0}
    assert RoundRobin().order_sensitive
