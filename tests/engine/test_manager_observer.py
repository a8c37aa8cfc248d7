"""A load manager is observed while it acts."""

from __future__ import annotations

import numpy as np
import pytest

from lookup.engine.cycles import CycleReport
from lookup.engine.manager import Conditions, LoadManager, ManagerObserver
from lookup.engine.policy import Policy
from lookup.model import Broker, Load, LookupOptions, LookupRequest, Roster, Unload
from lookup.model.load import BundleLoad
from lookup.model.request import request_of
from lookup_policies.broker_filters import LoadManagerClass
from lookup_policies.score_selectors import Random
from lookup_policies.threshold import Threshold

_ROSTER = Roster([Broker(f"b{number}:8080", capacity=1.0) for number in range(3)])
_BUNDLES = [f"t/n/0x{number:x}0000000_0x{number + 1:x}0000000" for number in range(6)]


def _manager(policy: Policy, observer: ManagerObserver | None = None) -> LoadManager:
    manager = LoadManager(policy, "c", _ROSTER, conditions=Conditions(observer=observer))
    manager.begin_tick(0)
    manager.set_registry(_ROSTER, np.ones(3, dtype=bool))
    manager.restore(dict.fromkeys(_BUNDLES[:5], "b0:8080"))
    usage = np.array([0.9, 0.1, 0.1])
    loads = [BundleLoad(bundle, 0.18) for bundle in _BUNDLES[:5]]
    manager.set_load(Load(usage, usage, np.zeros(3, np.int64), (loads, [], [])))
    manager.begin_tick(60_000_000)
    return manager


def test_a_decision_is_observed_before_it_is_taken() -> None:
    """The bundle has no owner yet, no dice are rolled; a request that is only declined once more says so."""
    seen: list[tuple[int | None, int, int, bool]] = []

    def look(manager: LoadManager, request: LookupRequest, ts_us: int, is_repeated: bool) -> None:
        """Note the owner, the rolls, the instant and whether the request was declined before."""
        bundle = request.bundle
        seen.append((manager.ownership.owner(bundle), manager.draws.rolls(bundle), ts_us, is_repeated))

    request = request_of(None, _BUNDLES[5], LookupOptions())
    manager = _manager(Policy(name="p", selector=Random()), ManagerObserver(before_decision=look))
    manager.select(request, 61)
    manager.unload(request.bundle)
    manager.select(request, 62)
    declining = Policy(name="p", selector=Random(), filters=(LoadManagerClass(class_name="m.None"),))
    manager = _manager(declining, ManagerObserver(before_decision=look))
    manager.select(request, 63)
    manager.select(request, 64)

    assert seen == [(None, 0, 61, False), (None, 1, 62, False), (None, 0, 63, False), (None, 0, 64, True)]


@pytest.mark.parametrize("destination_first", [False, True])
def test_cycles_are_observed_before_and_after_they_are_taken(*, destination_first: bool) -> None:
    """The owners before, and the report that the caller gets."""
    seen: list[int] = []
    reports: list[CycleReport[Unload]] = []
    observer = ManagerObserver(
        before_cycle=lambda manager: seen.append(manager.ownership.bundles()[0]), after_cycle=reports.append
    )
    policy = Policy(name="p", selector=Random(), shedder=Threshold(threshold=0.2), destination_first=destination_first)
    shed = _manager(policy, observer).shed()

    assert seen == [5]
    assert reports == [shed]
    assert all((unload.destination is not None) == destination_first for unload in reports[0].accepted)
