"""Keep the state of a catalog, memory, storage and listeners, in step by transactions.

    write:  storage.writing() begins -> writes of other processes are taken in -> memory and storage change
            -> the storage commits -> listeners are called, in the order of revisions
    error before the commit: memory and storage have the writes of other processes only, and so do listeners

Catalogs, their storage and their followers agree on events by the functions `advanced` and `differences` alone.
`catalog.py` decides which writes are allowed.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from itertools import groupby, islice

from lookup.errors import NotFoundError, StateError
from lookup.model.catalog import TopicEntry, TopicEvent
from lookup.model.quoting import closest, shown, suggestion
from lookup.topics.catalog.namespace import NamespaceTopics
from lookup.topics.catalog.naming import namespace_of
from lookup.topics.catalog.storage import Storage

__all__ = ["Announcer", "CatalogState", "Listener", "advanced", "differences"]


def advanced(entry: TopicEntry | None, event: TopicEvent) -> TopicEntry | None:
    """Return a topic as it is after an event, None once it is deleted.

    Raises:
        StateError: if the event does not fit: created twice, or changed without being there.
    """
    if event.kind == "created":
        if entry is not None:
            raise StateError(f"event {event.revision} creates {event.topic}, which exists")
        return TopicEntry(event.topic, event.properties, event.new, is_loaded=False)
    if entry is None:
        raise StateError(f"event {event.revision} ({event.kind}) is about {event.topic}, which does not exist")
    match event.kind:
        case "labels":
            return replace(entry, labels=event.new)
        case "properties":
            return replace(entry, properties=event.new)
        case "loaded" | "unloaded":
            return replace(entry, is_loaded=event.kind == "loaded")
        case _:  # deleted
            return None


def differences(topic: str, now: TopicEntry | None, wanted: TopicEntry | None) -> Iterator[TopicEvent]:
    """Yield the events, with revision 0, that turn one state of a topic into another; none if both are equal.

    Args:
        now: the topic as it is; None: there is none.
        wanted: the topic as it shall be; None: gone.
    """
    if wanted is None:
        if now is not None:
            yield TopicEvent(0, "deleted", topic, old=now.labels)
        return
    if now is None:
        yield TopicEvent(0, "created", topic, new=wanted.labels, properties=wanted.properties)
        # The event carries labels and properties, but not that a broker serves the topic: that is an event of its own.
        now = replace(wanted, is_loaded=False)
    if now.labels != wanted.labels:
        yield TopicEvent(0, "labels", topic, now.labels, wanted.labels)
    if now.properties != wanted.properties:
        yield TopicEvent(0, "properties", topic, now.properties, wanted.properties)
    if now.is_loaded != wanted.is_loaded:
        yield TopicEvent(0, "loaded" if wanted.is_loaded else "unloaded", topic)


#: A function that is called with every event.
Listener = Callable[[TopicEvent], None]


class Announcer:
    """A queue of events for listeners: each hears every event once, by revision, whatever the others do.

    Events that a listener causes wait until every listener has heard those before them.
    """

    def __init__(self) -> None:
        self._listeners: dict[object, tuple[int, Listener]] = {}
        self._queue: deque[TopicEvent] = deque()
        self._is_announcing = False

    def subscribe(self, listener: Listener, *, after: int) -> Callable[[], None]:
        """Add a listener for the events after a revision; return a function that takes it out again."""
        # Not keyed by the listener: the same function may listen twice.
        token = object()
        self._listeners[token] = (after, listener)

        def unsubscribe() -> None:
            self._listeners.pop(token, None)

        return unsubscribe

    def expect(self, events: Iterable[TopicEvent]) -> None:
        """Put events in the queue; only those that the storage has kept."""
        self._queue.extend(events)

    def announce(self) -> None:
        """Call the listeners with every event in the queue, unless that is under way.

        Raises:
            Exception: the first that a listener raised, after all listeners heard all events.
        """
        # A listener that writes calls this again; the loop under way takes its events in their turn.
        if self._is_announcing:
            return
        self._is_announcing = True
        errors: list[Exception] = []
        try:
            while self._queue:
                event = self._queue.popleft()
                for token in tuple(self._listeners):
                    # One listener may have taken another out a moment ago.
                    after, listener = self._listeners.get(token, (event.revision, None))
                    if listener is None or event.revision <= after:
                        continue
                    try:
                        listener(event)
                    except Exception as error:  # noqa: BLE001  it may raise anything; the others must hear the event
                        errors.append(error)
        finally:
            self._is_announcing = False
        if errors:
            raise errors[0]


#: Above this many topics no similar name is looked for: it would take minutes in the largest namespaces.
_SEARCHED = 2_000
#: Topics that are read from a storage at once: enough to spare calls, few enough to be forgotten soon.
_BATCH = 1_000


@dataclass(slots=True)
class _Draft:
    """The changes of a transaction so far, and the states that undo them."""

    #: topics as they were before each change, the first change first
    before: list[tuple[str, TopicEntry | None]] = field(default_factory=list)
    namespaces: list[str] = field(default_factory=list)
    events: list[TopicEvent] = field(default_factory=list)


class CatalogState:
    """Topics by namespace in memory, over a storage.

    Raises:
        InputError: if the storage cannot be read.
    """

    def __init__(self, storage: Storage) -> None:
        self._storage = storage
        self._draft: _Draft | None = None
        self._announcer = Announcer()
        with storage.reading():
            self.namespaces = {namespace: NamespaceTopics() for namespace in storage.namespaces()}
            for namespace, entries in groupby(storage.entries(), lambda entry: namespace_of(entry.name)):
                while batch := tuple(islice(entries, _BATCH)):
                    self.namespaces[namespace].extend(batch)
            #: of the last event that memory knows of
            self.revision = storage.revision

    def topics_of(self, namespace: str) -> NamespaceTopics:
        """Return the topics of a namespace.

        Raises:
            NotFoundError: if there is no such namespace, with the one that was probably meant.
        """
        topics = self.namespaces.get(namespace)
        if topics is None:
            raise NotFoundError(
                f"there is no namespace {shown(namespace)}; {suggestion(namespace, list(self.namespaces))}"
            )
        return topics

    def entry(self, topic: str) -> TopicEntry | None:
        """Return one topic, None if there is no such topic or namespace."""
        topics = self.namespaces.get(namespace_of(topic))
        return None if topics is None else topics.entry(topic)

    def meant_by(self, topic: str) -> Sequence[TopicEntry]:
        """Return the entries a complete name stands for, at least one.

        Raises:
            NotFoundError: if there are none.
        """
        topics = self.topics_of(namespace_of(topic))
        entries = [entry for name in topics.parts(topic) if (entry := topics.entry(name)) is not None]
        if not entries:
            near = closest(topic, topics.names("all")) if len(topics) <= _SEARCHED else None
            hint = f"; did you mean {near!r}?" if near is not None else ""
            raise NotFoundError(f"there is no topic {shown(topic)}{hint}")
        return entries

    @contextmanager
    def together(self) -> Iterator[None]:
        """Make one transaction of all writes in the block; a block inside it belongs to it."""
        if self._draft is not None:
            yield
            return
        draft = self._draft = _Draft()
        try:
            try:
                with self._storage.writing():
                    self._take_in()
                    yield
            except BaseException:
                self._undo(draft)
                raise
            finally:
                # Before listeners are called: their writes are transactions of their own.
                self._draft = None
        except Exception as error:
            # Events of other processes were taken in all the same, and are safe: they wait for no write of ours.
            try:
                self._announcer.announce()
            except Exception as second:  # noqa: BLE001  a listener may raise anything; the failed write goes before it
                error.add_note(f"a listener raised {type(second).__name__}: {second}")
            raise
        self._announcer.expect(draft.events)
        self._announcer.announce()

    def add_namespace(self, namespace: str) -> None:
        """Add a namespace unless it is there; only in a transaction."""
        if namespace not in self.namespaces:
            self._open().namespaces.append(namespace)
            self.namespaces[namespace] = NamespaceTopics()
            self._storage.add_namespace(namespace)

    def make(self, topic: str, wanted: TopicEntry | None) -> None:
        """Give a topic another state, None: gone, with an event for each difference; only in a transaction."""
        draft = self._open()
        for change in differences(topic, self.entry(topic), wanted):
            event = replace(change, revision=self.revision + 1)
            draft.before.append((topic, self.entry(topic)))
            draft.events.append(event)
            self._storage.save(event, self._place(event))

    def subscribe(self, listener: Listener) -> Callable[[], None]:
        """Add a listener for events that are not safe yet and those to come; return a function that takes it out."""
        unsafe = 0 if self._draft is None else len(self._draft.events)
        return self._announcer.subscribe(listener, after=self.revision - unsafe)

    def refresh(self) -> None:
        """Take in the writes of other processes; nothing to do in a transaction, which began with that."""
        if self._draft is None:
            with self._storage.reading():
                self._take_in()
            self._announcer.announce()

    def _take_in(self) -> None:
        """Repeat the writes of other processes; none of them is undone with a transaction of ours."""
        for namespace in self._storage.namespaces():
            self.namespaces.setdefault(namespace, NamespaceTopics())
        if self._storage.revision != self.revision:
            events = self._storage.events_since(self.revision)
            for event in events:
                self._place(event)
            # In the queue before our own events, whose revisions are higher.
            self._announcer.expect(events)

    def _place(self, event: TopicEvent) -> TopicEntry | None:
        after = advanced(self.entry(event.topic), event)
        self._put(event.topic, after)
        self.revision = event.revision
        return after

    def _put(self, topic: str, entry: TopicEntry | None) -> None:
        topics = self.namespaces[namespace_of(topic)]
        if entry is None:
            topics.remove(topic)
        else:
            topics.put(entry)

    def _undo(self, draft: _Draft) -> None:
        for topic, before in reversed(draft.before):
            # A change that failed half way left the topic as it was.
            if self.entry(topic) != before:
                self._put(topic, before)
                self.revision -= 1
        for namespace in draft.namespaces:
            del self.namespaces[namespace]

    def _open(self) -> _Draft:
        if self._draft is None:
            raise StateError("a catalog changes in a transaction only")
        return self._draft
