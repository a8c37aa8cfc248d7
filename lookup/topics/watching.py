"""Watch the topics of a query (PIP-145), with the watched topics, messages, and the changes that events make.

| message    | when                                                             | action of the client         |
| ---------- | ---------------------------------------------------------------- | ---------------------------- |
| `Snapshot` | at the beginning, and if the changes since a mark are not known  | uses it as its list          |
| `Update`   | something changed since the message before                       | removes first, and adds then |
| `Trouble`  | the topics cannot be listed now, or the server cannot be reached | keeps its list               |

Each message but the last has a mark, with which a watch continues where another one ended. A `WatchedTopics` builds the
messages of one watch. Pulsar's own listing follows events by themselves, while any other lister is called again.

Source: PIP-145, first draft of PIP-451, `docs/pulsar/protocol.md`.
"""

from __future__ import annotations

import json
from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass, replace
from typing import TypeAlias
from zlib import crc32

from lookup.errors import NotFoundError, StateError
from lookup.model.catalog import EventKind, TopicEvent
from lookup.topics.catalog import Catalog
from lookup.topics.catalog.naming import namespace_of
from lookup.topics.listing import TopicList, TopicLister, TopicQuery

__all__ = [
    "Message", "Snapshot", "Trouble", "Update", "WatchedList", "WatchedTopics", "changes_between", "message_in",
    "message_text",
]  # fmt: skip

#: The encoder is made once, since making it takes longer than writing a change.
_ENCODER = json.JSONEncoder(ensure_ascii=False)
#: Events that change which topics there are, or which of them a selector selects.
_MEMBERSHIP: frozenset[EventKind] = frozenset({"created", "deleted", "labels"})


@dataclass(frozen=True, slots=True)
class Snapshot:
    """The whole list."""

    mark: str
    #: sorted, each once
    topics: Sequence[str]
    #: the namespace does not exist, and its topics come when it is created
    is_absent: bool = False
    #: whether the properties of the watch change anything
    reads_properties: bool = True


@dataclass(frozen=True, slots=True)
class Update:
    """The changes since the last message. A client removes first and then adds.

    A topic in both lists was deleted and created again, and its old subscriptions are gone.
    """

    mark: str
    removed: Sequence[str]
    added: Sequence[str]


@dataclass(frozen=True, slots=True)
class Trouble:
    """A reason why the list stays as it was for now."""

    sentence: str


Message: TypeAlias = Snapshot | Update | Trouble


def message_text(message: Message) -> str:
    """Write a message as one server-sent event."""
    match message:
        case Snapshot(mark, topics, is_absent, reads_properties):
            names = topics.json if isinstance(topics, TopicList) else TopicList(topics).json
            flags = {"is_absent": is_absent, "reads_properties": reads_properties}
            # The names come last, since they are written once for each list, for all watches that receive it.
            return f'id: {mark}\nevent: snapshot\ndata: {json.dumps(flags)[:-1]}, "topics": {names}}}\n\n'
        case Update(mark, removed, added):
            changes = _ENCODER.encode({"removed": removed, "added": added})
            return f"id: {mark}\nevent: update\ndata: {changes}\n\n"
        case Trouble(sentence):
            return f"event: trouble\ndata: {json.dumps({'sentence': sentence})}\n\n"


def message_in(kind: str, mark: str, data: str) -> Message:
    """Read a message from the fields of a server-sent event, or raise ValueError, KeyError or TypeError."""
    content = json.loads(data)
    lists = [value for value in content.values() if not isinstance(value, str | bool)]
    if not all(isinstance(names, list) and all(isinstance(name, str) for name in names) for names in lists):
        raise TypeError("names are texts")
    match kind:
        case "snapshot":
            return Snapshot(mark, **content)
        case "update":
            return Update(mark, **content)
        case _:
            return Trouble(**content)


def _build_mark(revision: int, *content: str) -> str:
    return f"{revision}-{crc32(' '.join(content).encode(errors='replace')):x}"


class WatchedTopics:
    """The topics of one watch over a catalog, which any number of threads may use.

    Args:
        is_driven: whether the lister decides which changes an event makes. Else the listing is Pulsar's, from events.
    """

    __slots__ = ("_belongs", "_catalog", "_lister", "_salt", "is_driven", "query")

    def __init__(self, query: TopicQuery, catalog: Catalog, lister: TopicLister, *, is_driven: bool) -> None:
        self.query, self._catalog, self._lister = query, catalog, lister
        self.is_driven = is_driven
        self._belongs = query.matcher()
        # A list of another lister is none to go on from.
        self._salt = f"{catalog.identity} {'driven' if is_driven else 'listed'}"

    def mark_of(self, event: TopicEvent | None) -> str:
        """Build the mark of the revision of an event, None for before the first. It is recognised for equal lists."""
        return (
            _build_mark(0, self._salt)
            if event is None
            else _build_mark(event.revision, self._salt, event.kind, event.topic)
        )

    def take_snapshot(self, *, is_first: bool = True) -> Snapshot:
        """List all topics.

        Args:
            is_first: whether the namespace must exist.

        Raises:
            PulsarLookupError: as raised by the lister.
        """
        topics, is_absent = TopicList(), False
        with self._catalog.reading():
            try:
                topics = self._lister.answer(self.query).topics
            except NotFoundError:
                # Any other error, as of a lister whose own source is away, makes no list an empty one.
                if is_first or self.query.namespace in self._catalog.namespaces():
                    raise
                is_absent = True
            last = self._catalog.revision
            return Snapshot(
                self.mark_of(self._catalog.events_since(last - 1)[0] if last else None),
                topics,
                is_absent,
                reads_properties="properties" in self._lister.interests,
            )

    def since(self, mark: str) -> Update | None:
        """List changes since the message with a mark, None if unknown now (always for a lister), or too many."""
        number = mark.partition("-")[0]
        if self.is_driven or len(number) > 18 or not (number.isascii() and number.isdigit()):
            return None
        since = int(number)
        with self._catalog.reading():
            if not 0 <= self._catalog.revision - since <= self._lister.limits.queue_max:
                return None
            try:
                # From the event of the mark on.
                events = [*self._catalog.events_since(max(0, since - 1))]
            except StateError:
                return None
        if mark != self.mark_of(events[0] if since else None):
            return None
        return self.changes(events[1:] if since else events, self.mark_of(events[-1]) if events else mark)

    def concerns(self, events: Iterable[TopicEvent]) -> bool:
        """Check whether a lister may have another list after some events."""
        # A selector is applied with any lister, and a deletion is noted, since a topic created again is another.
        kinds = _MEMBERSHIP | {"namespace-deleted"} | self._lister.interests
        return any(
            event.kind in kinds and (namespace_of(event.topic) or event.topic) == self.query.namespace
            for event in events
        )

    def changes(self, events: Iterable[TopicEvent], mark: str) -> Update:
        """List the changes that events make, in the order of their revisions, none twice. There may be none."""
        #: topic -> whether it was in the list before, and is now
        was: dict[str, bool] = {}
        is_in: dict[str, bool] = {}
        destroyed: set[str] = set()
        for event in events:
            if event.kind not in _MEMBERSHIP:
                continue
            before = event.kind != "created" and self._belongs(event.topic, event.old)
            after = event.kind != "deleted" and self._belongs(event.topic, event.new)
            if not (before or after or event.topic in was):
                continue
            was.setdefault(event.topic, before)
            is_in[event.topic] = after
            if event.kind == "deleted":
                destroyed.add(event.topic)
        removed = sorted(topic for topic in was if was[topic] and (not is_in[topic] or topic in destroyed))
        added = sorted(topic for topic in was if is_in[topic] and (not was[topic] or topic in destroyed))
        return Update(mark, removed, added)


def changes_between(before: Snapshot, after: Snapshot, destroyed: Collection[str]) -> Update:
    """List the changes from one list to a later one.

    Args:
        destroyed: topics that were deleted meanwhile. If they were created again, they are other topics.
    """
    old, new = {*before.topics}, {*after.topics}
    again = {topic for topic in destroyed if topic in old and topic in new}
    return Update(after.mark, sorted(old - new | again), sorted(new - old | again))


class WatchedList:
    """The list of a watch at its client, updated by the messages of the server.

    Raises:
        PatternError: if the pattern cannot be used.

    Source: `docs/pulsar/protocol.md` (clients that delete subscriptions).
    """

    def __init__(self, query: TopicQuery) -> None:
        self.topics: frozenset[str] = frozenset()
        #: the server's answer is accepted, since its engine may interpret a pattern in another way
        self._trusted = replace(query, pattern=None)
        # It is compiled only for its errors, before any request.
        query.matcher()

    def take(self, message: Message) -> tuple[frozenset[str], frozenset[str]]:
        """Apply a message, and return the removed and the added topics. A recreated topic is in both."""
        before, again = self.topics, frozenset[str]()
        match message:
            case Snapshot(topics=topics, is_absent=False):
                self.topics = self._select_watched(topics)
            case Update(removed=removed, added=names):
                added = self._select_watched(names)
                self.topics, again = (before - frozenset(removed)) | added, added.intersection(removed)
            # In trouble, and if a new server does not know the namespace yet, the list stays. Clients that lose a topic
            # from it give up a subscription, with all its unread messages.
        return before - self.topics | again & before, self.topics - before | again

    def _select_watched(self, topics: Sequence[str]) -> frozenset[str]:
        # A faulty server names topics of other namespaces.
        return frozenset(self._trusted.among(topics))
