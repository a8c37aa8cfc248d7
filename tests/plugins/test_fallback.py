"""The wrapper `fallback`."""

from __future__ import annotations

from typing import Any

import pytest

from lookup.hooks import reads_of
from lookup.testing import candidates, cluster, request
from lookup_policies.fallback import Fallback
from lookup_policies.hashing import Rendezvous
from lookup_policies.round_robin import RoundRobin
from lookup_policies.score_selectors import Best, Random
from tests.plugins.worlds import shares

VIEW = cluster("b1", "b2", usage={"b1": 0.9, "b2": 0.1})


@pytest.mark.parametrize(
    ("top", "expected"), [(0.8, {"b1": 1.0}), (0.4, {"b2": 1.0})], ids=["first-answers", "second-answers"]
)
def test_the_first_that_answers_is_followed(top: float, expected: dict[str, float]) -> None:
    """By default: the best if it is good enough, else Pulsar's choice by load."""
    assert shares(Fallback(), VIEW, scores={"b1": top, "b2": 0.0}) == expected


def test_where_nobody_answers_it_declines() -> None:
    """All children declining is a decline."""
    part = Fallback((Best(min_score=0.5), Best(min_score=0.6)))

    assert shares(part, VIEW, scores={"b1": 0.1, "b2": 0.1}) == {}


def test_it_reads_what_any_child_reads() -> None:
    """Reads and order are those of all children together."""
    part = Fallback((Rendezvous(key="topic"), RoundRobin()))

    assert reads_of(part) == {"topic", "bundle", "view.memory", "view.salt"}
    assert part.order_sensitive
    assert not Fallback().order_sensitive


def test_children_that_keep_something_are_told() -> None:
    """A stateful child remembers through the wrapper; without one the wrapper has nothing to remember."""
    memory: dict[str, Any] = {}
    Fallback((Random(), RoundRobin())).remember(memory, request(), candidates(VIEW)[0])

    assert memory == {"counter": 1}
    assert not hasattr(Fallback(), "remember")


def test_no_children_are_refused() -> None:
    """A fallback without children could only decline."""
    with pytest.raises(ValueError, match="fallback has no children; name at least one selector"):
        Fallback(())
