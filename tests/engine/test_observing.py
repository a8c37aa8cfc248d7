"""Parts that observe what was offered for an assignment."""

from __future__ import annotations

from collections.abc import MutableMapping
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
import pytest

from lookup.engine.manager import LoadManager
from lookup.engine.policy import Ballot, Policy
from lookup.errors import PolicyError, StateError
from lookup.hooks import Offer
from lookup.model import Broker, LookupRequest, Roster
from tests.engine.parts import Keep, Odds, policy

BUNDLE = "t/ns/0x00000000_0xffffffff"
ROSTER = Roster([Broker("b1"), Broker("b2"), Broker("b3")])


@dataclass(frozen=True)
class Watching(Odds):
    """A selector that writes down what it observes."""

    name: ClassVar[str] = "watching"
    reads: frozenset[str] = frozenset({"view.memory", "view.ownership"})
    fails: bool = False

    def observe(self, memory: MutableMapping[str, Any], request: LookupRequest, broker: Broker, offer: Offer) -> None:
        """Note who was offered, and the owner before."""
        if self.fails:
            raise RuntimeError("cannot watch")
        memory["offered"] = [*offer.brokers.ids]
        memory["before"] = offer.view.ownership.owner(BUNDLE)


def _manager(policy: Policy) -> LoadManager:
    manager = LoadManager(policy, "c", ROSTER)
    manager.set_registry(ROSTER, np.array([True, True, True]))
    return manager


def test_an_observer_is_shown_whom_the_filters_left() -> None:
    """It sees the candidates and the view of the decision, in which the bundle has no owner yet."""
    manager = _manager(policy(Watching(), Keep(("b1", "b3"))))

    manager.assign(None, BUNDLE)
    manager.assign(None, BUNDLE)

    assert manager.memory == {"watching": {"offered": ["b1", "b3"], "before": None}}
    assert manager.policy.is_stateful


def test_a_failing_observer_ends_the_run_where_the_policy_says_stop() -> None:
    """The sentence names the part."""
    with pytest.raises(PolicyError, match="'watching' raised RuntimeError: cannot watch"):
        _manager(Policy("p", Watching(fails=True))).assign(None, BUNDLE)


class Stray(Policy):
    """A policy that chooses a broker whoever is registered."""

    def ballot(self, request: LookupRequest, instant: Any) -> Ballot:
        """Choose b3."""
        return Ballot(numbers=(2,), cumulative=(1.0,), odds={"b3": 1.0})


def test_choosing_a_broker_that_is_not_registered_is_a_failure() -> None:
    """A sentence says which one, and for what."""
    manager = LoadManager(Stray("p", Odds()), "c", ROSTER)
    manager.set_registry(ROSTER, np.array([True, True, False]))

    with pytest.raises(StateError, match=r"b3 was chosen .* not .*registered"):
        manager.assign(None, BUNDLE)
