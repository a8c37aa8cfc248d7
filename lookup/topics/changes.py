"""What an event makes of a topic, and which events make one topic of another.

The one rule by which catalogs, their storage and their followers keep in step.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from lookup.errors import StateError
from lookup.model.catalog import TopicEntry, TopicEvent

__all__ = ["advanced", "differences"]


def advanced(entry: TopicEntry | None, event: TopicEvent) -> TopicEntry | None:
    """Return a topic as it is after an event, None once it is deleted.

    Raises:
        StateError: where the event does not fit: created twice, or changed without being there.
    """
    if event.kind == "created":
        if entry is not None:
            raise StateError(f"event {event.revision} creates {event.topic}, which exists")
        return TopicEntry(event.topic, event.properties, event.new, is_loaded=False)
    if entry is None:
        raise StateError(f"event {event.revision} ({event.kind}) is about {event.topic}, which does not exist")
    return _changed(entry, event)


def _changed(entry: TopicEntry, event: TopicEvent) -> TopicEntry | None:
    match event.kind:
        case "labels":
            return replace(entry, labels=event.new)
        case "properties":
            return replace(entry, properties=event.new)
        case "loaded" | "unloaded":
            return replace(entry, is_loaded=event.kind == "loaded")
        case _:
            return None


def differences(topic: str, now: TopicEntry | None, wanted: TopicEntry | None) -> Iterator[TopicEvent]:
    """Yield the changes, without revisions, that make a topic what is wanted; none where it is that already."""
    if wanted is None:
        if now is not None:
            yield TopicEvent(0, "deleted", topic, old=now.labels)
        return
    if now is None:
        yield TopicEvent(0, "created", topic, new=wanted.labels, properties=wanted.properties)
        now = replace(wanted, is_loaded=False)
    if now.labels != wanted.labels:
        yield TopicEvent(0, "labels", topic, now.labels, wanted.labels)
    if now.properties != wanted.properties:
        yield TopicEvent(0, "properties", topic, now.properties, wanted.properties)
    if now.is_loaded != wanted.is_loaded:
        yield TopicEvent(0, "loaded" if wanted.is_loaded else "unloaded", topic)
