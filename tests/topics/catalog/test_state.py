"""Listeners hear every event once and in order, whatever they do."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from lookup.errors import StateError
from lookup.model.catalog import TopicEvent
from tests.topics.catalogs import filled, heard, topic


def test_what_a_listener_writes_comes_after_what_is_being_told() -> None:
    """Every listener hears the same order, also the one that comes after the writer."""
    catalog = filled()
    catalog.subscribe(lambda event: catalog.load(event.topic) if event.kind == "created" else None)
    events = heard(catalog)
    catalog.create(topic("z"), partitions=2)

    assert [event.kind for event in events] == ["created", "created", "loaded", "loaded"]
    assert [event.revision for event in events] == sorted(event.revision for event in events)


def test_a_listener_that_raises_does_not_silence_the_others() -> None:
    """The write is safe, the others hear it, then the writer gets the error."""
    catalog = filled()
    catalog.subscribe(_fail)
    events = heard(catalog)

    with pytest.raises(ZeroDivisionError):
        catalog.create(topic("z"), partitions=2)

    assert [event.topic for event in events] == [topic("z-partition-0"), topic("z-partition-1")]
    assert catalog.parts(topic("z")) == (topic("z-partition-0"), topic("z-partition-1"))


def test_a_listener_hears_nothing_from_before_it_came() -> None:
    """One that is added while an event is announced hears the next one first."""
    catalog, late = filled(), list[TopicEvent]()
    leave: list[Callable[[], None]] = []

    def add(_: TopicEvent) -> None:
        if not leave:
            leave.append(catalog.subscribe(late.append))

    catalog.subscribe(add)
    catalog.load(topic("q"))
    catalog.unload(topic("q"))

    assert [event.kind for event in late] == ["unloaded"]


def test_one_listener_may_take_out_another() -> None:
    """A listener that is taken out while an event is announced does not hear it any more."""
    catalog, events = filled(), list[TopicEvent]()
    leave: list[Callable[[], None]] = []
    catalog.subscribe(lambda _: leave[0]())
    leave.append(catalog.subscribe(events.append))
    catalog.load(topic("q"))

    assert events == []


def test_no_listener_is_added_in_a_block() -> None:
    """It could not know whether what it finds there will be kept."""
    catalog = filled()

    with catalog.together(), pytest.raises(StateError, match="a listener is added before or after a transaction"):
        heard(catalog)


def _fail(_: TopicEvent) -> None:
    raise ZeroDivisionError
