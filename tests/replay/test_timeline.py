"""From events to ticks."""

from __future__ import annotations

from lookup.model.broker import BrokerLookupData
from lookup.replay.timeline import ClusterEvents, OwnershipEvent, Registration, Timeline, build_timeline

WHOLE = "t/n/0x00000000_0xffffffff"


def _data(rack: str) -> BrokerLookupData:
    return BrokerLookupData(properties={"lookup.rack": rack})


def _built(events: ClusterEvents, first: int = 5, last: int = 25) -> Timeline:
    return build_timeline(events, first_us=first, last_us=last, tick_us=10)


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
