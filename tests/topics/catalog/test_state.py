"""Writes touch their namespace only; listeners hear every event once and in order, whatever they do."""

from __future__ import annotations

from collections.abc import Callable

from lookup.model.catalog import TopicEvent
from tests.topics.catalogs import filled, heard, topic


def test_what_a_listener_writes_comes_after_what_is_being_told() -> None:
    """Every listener hears the same order, also the one that comes after the writer."""
    catalog = filled()
    catalog.subscribe(
        lambda event: catalog.set_pairs("labels", event.topic, {"seen": "1"}) if event.kind == "created" else None
    )
    events = heard(catalog)
    catalog.create(topic("z"), partitions=2)

    assert [event.kind for event in events] == ["created", "created", "labels", "labels"]
    assert [event.revision for event in events] == sorted(event.revision for event in events)


def test_a_listener_hears_nothing_from_before_it_came() -> None:
    """One that is added while an event is announced hears the next one first."""
    catalog, late = filled(), list[TopicEvent]()
    leave: list[Callable[[], None]] = []

    def add(_: TopicEvent) -> None:
        if not leave:
            leave.append(catalog.subscribe(late.append))

    catalog.subscribe(add)
    catalog.set_pairs("properties", topic("q"), {"seen": "1"})
    catalog.set_pairs("properties", topic("q"), {"seen": "2"})

    assert [event.new["seen"] for event in late] == ["2"]
