"""From events to ticks."""

from __future__ import annotations

from itertools import permutations

import pytest

from lookup.model.broker import Broker, BrokerLookupData
from lookup.replay.timeline import ClusterEvents, OwnershipEvent, Registration, Timeline, build_timeline

WHOLE = "t/n/0x00000000_0xffffffff"


def _data(rack: str) -> BrokerLookupData:
    return BrokerLookupData(properties={"lookup.rack": rack})


def _built(events: ClusterEvents, first: int = 5, last: int = 25) -> Timeline:
    return build_timeline(events, first_us=first, last_us=last, tick_us=10)


@pytest.mark.parametrize("order", tuple(permutations(range(3))))
def test_events_of_one_instant_have_an_order_of_their_own(order: tuple[int, ...]) -> None:
    """However they are logged, a broker that leaves and comes at once is there, with what it registered last."""
    events = [
        Registration(0, "a", "unregistered"),
        Registration(0, "a", "updated", _data("x")),
        Registration(0, "a", "registered", _data("y")),
    ]
    timeline = _built(ClusterEvents([events[place] for place in order]))
    registry = timeline.events[0].registry
    assert registry is not None
    roster, registered = registry

    assert (roster[0].property_of("rack"), registered.tolist()) == ("y", [True])


def test_each_interval_of_a_broker_has_its_own_settings() -> None:
    """A broker that settings describe twice has the capacity of the time."""
    described = [Broker("a", capacity=1.0), Broker("a", capacity=2.0)]
    events = [
        Registration(0, "a", "registered", described=described[0]),
        Registration(10, "a", "unregistered"),
        Registration(20, "a", "registered", described=described[1]),
    ]
    timeline = _built(ClusterEvents(events, brokers={"a": described[1]}))

    held = [event.registry for event in timeline.events.values() if event.registry]
    assert [(roster[0].capacity, mask[0]) for roster, mask in held] == [(1.0, True), (1.0, False), (2.0, True)]


def test_nobody_is_registered_before_the_first_event() -> None:
    """A cluster whose first broker comes late begins with nobody, who already shows what it will register."""
    timeline = _built(ClusterEvents([Registration(12, "a", "registered", _data("x"))]))
    registry = timeline.events[0].registry
    assert registry is not None

    assert (registry[1].tolist(), timeline.roster[0].property_of("rack")) == ([False], "x")


def test_owners_are_restored_in_the_tick_of_the_first_lookup() -> None:
    """A cut between the cell's start and the first lookup puts the initial owners into the tick after it."""
    timeline = _built(ClusterEvents([Registration(3, "a", "registered")]))

    assert timeline.restore_tick == 1


def test_events_are_numbered_in_order_of_time() -> None:
    """Brokers that leave, then splits, then unloads by an administrator; each by its tick, its cause and its name."""
    half = "t/n/0x00000000_0x80000000"
    registry = [Registration(0, name, "registered") for name in "abc"]
    registry += [Registration(10, name, "unregistered") for name in "cb"]
    splits = [OwnershipEvent(10, WHOLE, "split", boundaries=(0x80000000,))]
    unloads = [OwnershipEvent(ts, half, "unloaded", by="admin") for ts in (10, 20)]
    timeline = _built(ClusterEvents(registry, splits=splits, unloads=unloads))

    assert list(timeline.event_numbers.items()) == [
        ((1, "forced", "b"), 0),
        ((1, "forced", "c"), 1),
        ((1, "split", WHOLE), 2),
        ((1, "admin", half), 3),
        ((2, "admin", half), 4),
    ]
    assert timeline.event_causes == ("forced", "forced", "split", "admin", "admin")


def test_a_broker_that_stays_is_no_event() -> None:
    """Neither if it leaves and comes at once, nor if its labels change, nor before it has come."""
    events = [
        Registration(0, "a", "registered"),
        Registration(10, "a", "unregistered"),
        Registration(10, "a", "registered"),
        Registration(20, "a", "updated", _data("x")),
        Registration(20, "b", "registered"),
    ]

    assert _built(ClusterEvents(events)).event_numbers == {}
