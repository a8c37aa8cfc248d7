"""The wrapper `explore`, and how a child's answer is read."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

import pytest

from lookup.errors import ContractError
from lookup.hooks import reads_of
from lookup.testing import candidates, cluster, request
from lookup_policies.explore import Explore
from lookup_policies.round_robin import RoundRobin
from lookup_policies.score_selectors import Best
from lookup_policies.strategies import LeastResourceUsage
from tests.plugins.worlds import shares

VIEW = cluster("b1", "b2", "b3", "b4")
SCORES = {"b1": 0.9, "b2": 0.1, "b3": 0.1, "b4": 0.9}


@dataclass(frozen=True)
class Says:
    """A selector that answers what it is told to."""

    name: ClassVar[str] = "says"
    answer: tuple[float, ...]

    def odds(self, *_: object) -> Sequence[float]:
        """Return the answer."""
        return self.answer


def test_a_share_of_the_decisions_is_anybodys() -> None:
    """The child's distribution and the uniform one are mixed."""
    expected = {"b1": 0.45, "b2": 0.05, "b3": 0.05, "b4": 0.45}

    assert shares(Explore(epsilon=0.2), VIEW, scores=SCORES) == pytest.approx(expected)


@pytest.mark.parametrize(("epsilon", "expected"), [(0.0, {"b1": 0.5, "b4": 0.5}), (1.0, dict.fromkeys(SCORES, 0.25))])
def test_the_ends_of_the_range(epsilon: float, expected: dict[str, float]) -> None:
    """0 is the child, 1 is anybody."""
    assert shares(Explore(epsilon=epsilon), VIEW, scores=SCORES) == pytest.approx(expected)


def test_weights_of_the_child_are_normalised_first() -> None:
    """A child that answers large weights does not drown exploration."""
    assert shares(Explore(0.4, Says((30.0, 10.0, 0.0, 0.0))), VIEW) == pytest.approx(
        {"b1": 0.55, "b2": 0.25, "b3": 0.1, "b4": 0.1}
    )


def test_what_the_child_declines_is_declined() -> None:
    """Exploration does not answer where the child would not."""
    assert shares(Explore(child=Best(min_score=0.95)), VIEW, scores=SCORES) == {}


@pytest.mark.parametrize(
    ("answer", "sentence"),
    [
        ((1.0,), r"selector says answered odds of shape \(1,\) for 4 brokers"),
        ((1.0, -1.0, 0.0, 1.0), "selector says answered odds .*; odds are finite and not negative"),
        ((1.0, float("nan"), 0.0, 1.0), "selector says answered odds .*; odds are finite and not negative"),
    ],
)
def test_a_childs_breach_is_not_hidden_by_the_mixture(answer: tuple[float, ...], sentence: str) -> None:
    """Wrong lengths, negative odds and NaN of a child end the run as they would without the wrapper."""
    with pytest.raises(ContractError, match=sentence):
        shares(Explore(child=Says(answer)), VIEW)


def test_it_reads_what_the_child_reads() -> None:
    """A wrapper declares its child's reads and order."""
    assert reads_of(Explore(child=LeastResourceUsage())) == {"view.load"}
    assert Explore(child=RoundRobin()).order_sensitive
    assert not Explore().order_sensitive


def test_a_childs_memory_is_kept() -> None:
    """A stateful child remembers through the wrapper; without one the wrapper has nothing to remember."""
    memory: dict[str, Any] = {}
    Explore(child=RoundRobin()).remember(memory, request(), candidates(VIEW)[0])

    assert memory == {"counter": 1}
    assert not hasattr(Explore(), "remember")
