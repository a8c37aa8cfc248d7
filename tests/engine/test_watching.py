"""A watched load manager decides as any other does, and what it rehearses is what happens then."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from lookup.engine.policy import Policy
from lookup.engine.watching import WatchedManager
from lookup.model import Broker, Load, LookupOptions, Roster
from lookup.model.load import BundleLoad
from lookup.model.request import request_of
from lookup_policies.score_selectors import Random
from lookup_policies.threshold import Threshold

_ROSTER = Roster([Broker(f"b{number}:8080", capacity=1.0) for number in range(3)])
_BUNDLES = [f"t/n/0x{number:x}0000000_0x{number + 1:x}0000000" for number in range(6)]


def _manager(policy: Policy) -> WatchedManager:
    manager = WatchedManager(policy, "c", _ROSTER, seed=1)
    manager.begin_tick(0)
    manager.set_registry(_ROSTER, np.ones(3, dtype=bool))
    manager.restore(dict.fromkeys(_BUNDLES[:5], "b0:8080"))
    usage = np.array([0.9, 0.1, 0.1])
    loads = [BundleLoad(bundle, 0.18) for bundle in _BUNDLES[:5]]
    manager.set_load(Load(usage, usage, np.zeros(3, np.int64), (loads, [], [])))
    manager.begin_tick(60_000_000)
    return manager


@pytest.mark.parametrize("destination_first", [False, True])
def test_a_rehearsal_is_the_cycle_and_changes_nothing(*, destination_first: bool) -> None:
    """Owners, memory, dice and books are the same before and after it, and the cycle then ends as rehearsed."""
    shedder = Threshold(threshold=0.2)
    manager = _manager(Policy(name="p", selector=Random(), shedder=shedder, destination_first=destination_first))
    before = dict(manager.ownership), dict(manager.memory)

    rehearsed = manager.rehearsed(manager.policy)
    other = manager.rehearsed(replace(manager.policy, shedder=Threshold(threshold=0.9)))

    assert (dict(manager.ownership), dict(manager.memory)) == before
    assert rehearsed.accepted
    assert all((unload.destination is not None) == destination_first for unload in rehearsed.accepted)
    assert not other.accepted
    assert manager.shed() == rehearsed


def test_only_the_wanted_decision_is_kept() -> None:
    """With the brokers as they were before it, and the dice that were rolled."""
    manager = _manager(Policy(name="p", selector=Random()))
    manager.wanted = 1
    manager.select(request_of(None, _BUNDLES[5], LookupOptions()), 61_000_000)
    assert manager.watched is None

    manager.take_decisions()
    manager.unload(_BUNDLES[5])
    decision = manager.select(request_of(None, _BUNDLES[5], LookupOptions()), 62_000_000)

    assert manager.watched is not None
    assert manager.watched.decision == decision
    assert (manager.watched.ts_us, manager.watched.rolls) == (62_000_000, 1)
    assert [broker.bundles for broker in manager.watched.seen] == [5, 0, 0]
