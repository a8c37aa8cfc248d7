"""Keep the state of a catalog, memory, storage and listeners, in step by transactions.

    write:  the storage begins, and waits for other processes -> memory is locked -> writes of other processes are
            taken in -> memory and storage change -> the storage commits -> memory is unlocked -> listeners are called
    error before the commit: memory and storage have the writes of other processes only, and so do listeners

Two locks: `_writer` is held from before the storage begins, so that one thread writes at a time; `_memory` after that,
and by every question, so that no question waits for another process. They are taken in this order. Listeners are called
without either.

Catalogs, their storage and their followers agree on events by the functions `advanced` and `differences` alone.
`catalog.py` decides which writes are allowed.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from itertools import groupby, islice
from threading import Lock, RLock, get_ident

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

    One thread at a time calls listeners. Events that come meanwhile, from a listener or another thread, wait until
    every listener has heard those before them, and are then announced by the same thread.
    """

    def __init__(self) -> None:
        self._lock = Lock()
        self._listeners: dict[object, tuple[int, Listener]] = {}
        self._queue: deque[TopicEvent] = deque()
        self._is_announcing = False

    @property
    def has_listeners(self) -> bool:
        """Return whether any listener is there."""
        return bool(self._listeners)

    def subscribe(self, listener: Listener, *, after: int) -> Callable[[], None]:
        """Call a listener with every event after a revision; return a function that takes it out again."""
        # Not keyed by the listener: the same function may listen twice.
        token = object()
        self._listeners[token] = (after, listener)

        def unsubscribe() -> None:
            self._listeners.pop(token, None)

        return unsubscribe

    def expect(self, events: Iterable[TopicEvent]) -> None:
        """Put events in the queue, in the order of revisions; only those that the storage has kept."""
        with self._lock:
            self._queue.extend(events)

    def announce(self) -> None:
        """Call the listeners with every event in the queue, unless that is under way.

        Raises:
            Exception: the first that a listener raised, after all listeners heard all events.
        """
        errors: list[Exception] = []
        is_ours = False
        try:
            with self._lock:
                if self._is_announcing:
                    return
                self._is_announcing = is_ours = True
            while (event := self._next()) is not None:
                for token in tuple(self._listeners):
                    # One listener may have taken another out a moment ago.
                    after, listener = self._listeners.get(token, (event.revision, None))
                    if listener is None or event.revision <= after:
                        continue
                    try:
                        listener(event)
                    except Exception as error:  # noqa: BLE001  it may raise anything; the others must hear the event
                        errors.append(error)
        except BaseException:
            # Events that were not announced are noticed as missing; the next ones come.
            if is_ours:
                self._is_announcing = False
            raise
        if errors:
            raise errors[0]

    def _next(self) -> TopicEvent | None:
        """Return the next event; None ends the announcement, before any other event can come."""
        with self._lock:
            if self._queue:
                return self._queue.popleft()
            self._is_announcing = False
            return None


#: Above this many topics no similar name is looked for: it would take minutes in the largest namespaces.
_SEARCHED = 2_000
#: Topics that are read from a storage at once: enough to spare calls, few enough to be forgotten soon.
_BATCH = 1_000


@dataclass(slots=True)
class _Draft:
    """The changes of a transaction so far, and the states that undo them."""

    #: of the last event before it
    revision: int
    #: None: there are no listeners to announce them to
    events: list[TopicEvent] | None = None
    #: topics and namespaces as they were before each change, the first change first
    before: list[tuple[str, TopicEntry | NamespaceTopics | None]] = field(default_factory=list)


class CatalogState:
    """Topics by namespace in memory, over a storage; `asking` goes around every use but the methods that lock.

    Raises:
        InputError: if the storage cannot be read.
    """

    def __init__(self, storage: Storage) -> None:
        self._storage = storage
        self._writer, self._memory = RLock(), RLock()
        self._draft: _Draft | None = None
        #: the thread in a block of `reading`, None: there is none
        self._reader: int | None = None
        self._announcer = Announcer()
        self._is_damaged = False
        with storage.reading():
            self.namespaces = {namespace: NamespaceTopics() for namespace in storage.namespaces()}
            for namespace, entries in groupby(storage.entries(), lambda entry: namespace_of(entry.name)):
                while batch := tuple(islice(entries, _BATCH)):
                    self.namespaces[namespace].extend(batch)
            #: of the last event that memory knows of
            self.revision = storage.revision

    @contextmanager
    def asking(self) -> Iterator[None]:
        """Keep memory at one revision, and in no transaction of another thread.

        Raises:
            StateError: if a transaction could neither be kept nor undone.
        """
        with self._memory:
            if self._is_damaged:
                raise StateError("a write to this catalog failed and could not be undone; open the catalog anew")
            yield

    @contextmanager
    def reading(self) -> Iterator[None]:
        """Answer every question of the block from one revision."""
        with self.asking():
            before, self._reader = self._reader, get_ident()
            try:
                yield
            finally:
                self._reader = before

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
        self._refuse_in_reading()
        with self._writer:
            # A transaction that is under way is this thread's own: no other thread holds the lock.
            is_inside = self._draft is not None
        if is_inside:
            yield
            return
        try:
            with self._writer, self._transaction():
                yield
        except Exception as error:
            # Events of other processes were taken in all the same, and are safe: they wait for no write of ours.
            try:
                self._announcer.announce()
            except Exception as second:  # noqa: BLE001  a listener may raise anything; the failed write goes before it
                error.add_note(f"a listener raised {type(second).__name__}: {second}")
            raise
        self._announcer.announce()

    def add_namespace(self, namespace: str) -> None:
        """Add a namespace unless it is there; only in a transaction."""
        if namespace not in self.namespaces:
            self._save(TopicEvent(0, "namespace-created", namespace))

    def remove_namespace(self, namespace: str) -> None:
        """Remove a namespace that has no topics; only in a transaction."""
        self._save(TopicEvent(0, "namespace-deleted", namespace))

    def make(self, topic: str, wanted: TopicEntry | None) -> None:
        """Give a topic another state, None: gone, with an event for each difference; only in a transaction."""
        for change in differences(topic, self.entry(topic), wanted):
            self._save(change)

    def subscribe(self, listener: Listener) -> Callable[[], None]:
        """Add a listener for the events to come; return a function that takes it out.

        Raises:
            StateError: in a transaction.
        """
        with self.asking():
            if self._draft is not None:
                raise StateError("a listener is added before or after a transaction, which may still be undone")
            return self._announcer.subscribe(listener, after=self.revision)

    def refresh(self) -> None:
        """Take in the writes of other processes; nothing to do in a transaction, which began with that."""
        self._refuse_in_reading()
        with self.asking():
            if self._draft is not None:
                return
            self._take_in()
        self._announcer.announce()

    def _refuse_in_reading(self) -> None:
        # Memory is locked by this thread there, and by the writer that it would wait for next: neither would go on.
        if self._reader == get_ident() and self._draft is None:
            raise StateError("a block that reads from one revision can neither write nor take in writes of others")

    @contextmanager
    def _transaction(self) -> Iterator[None]:
        try:
            self._storage.begin()
            with self.asking():
                self._take_in()
                draft = _Draft(self.revision, [] if self._announcer.has_listeners else None)
                try:
                    self._draft = draft
                    yield
                    self._storage.commit()
                except BaseException:
                    self._undo(draft)
                    raise
                finally:
                    self._draft = None
                self._announcer.expect(draft.events or ())
        except BaseException:
            self._draft = None
            self._storage.rollback()
            raise

    def _take_in(self) -> None:
        """Repeat the writes of other processes, all or none; they are not undone with a transaction of ours."""
        with self._storage.reading():
            current = self._storage.revision
            if current == self.revision:
                return
            draft = _Draft(self.revision)
            try:
                events = self._missed(current)
                for event in events:
                    # Another process knows what it has loaded, and it may be gone; its event is counted all the same.
                    if event.kind not in ("loaded", "unloaded"):
                        self._place(event, draft)
                self.revision = current
            except BaseException:
                self._undo(draft)
                raise
            # In the queue before our own events, whose revisions are higher.
            self._announcer.expect(events)

    def _missed(self, current: int) -> Sequence[TopicEvent]:
        """Return the events up to the storage's revision, or the differences if some of them are no longer kept."""
        try:
            return self._storage.events_since(self.revision)
        except StateError:
            # The file was put back to a time before: what this catalog has heard of has not happened.
            if current < self.revision:
                raise
        changes = list(self._changes())
        # Each difference took one event or more, so there are enough revisions; the gap before them shows that some
        # events were missed. They end at the storage's revision.
        first = current - len(changes) + 1
        return [replace(change, revision=revision) for revision, change in enumerate(changes, first)]

    def _changes(self) -> Iterator[TopicEvent]:
        """Yield the differences between memory and the storage, with revision 0."""
        namespaces = set(self._storage.namespaces())
        wanted = {entry.name: entry for entry in self._storage.entries()}
        # Removals first, so that a plain topic and the partitions that took its name never exist together.
        for topics in self.namespaces.values():
            for entry in topics.entries():
                if entry.name not in wanted:
                    yield from differences(entry.name, entry, None)
        for namespace in self.namespaces.keys() - namespaces:
            yield TopicEvent(0, "namespace-deleted", namespace)
        for namespace in namespaces - self.namespaces.keys():
            yield TopicEvent(0, "namespace-created", namespace)
        for entry in wanted.values():
            now = self.entry(entry.name)
            # The storage does not know what is loaded: a topic stays as it was.
            yield from differences(entry.name, now, replace(entry, is_loaded=now is not None and now.is_loaded))

    def _save(self, event: TopicEvent) -> None:
        """Make the next event happen in memory and storage."""
        draft = self._draft
        if draft is None:
            raise StateError("a catalog changes in a transaction only")
        event = replace(event, revision=self.revision + 1)
        self._storage.save(event, self._place(event, draft))
        if draft.events is not None:
            draft.events.append(event)

    def _place(self, event: TopicEvent, draft: _Draft) -> TopicEntry | None:
        """Make an event happen in memory; return its topic as it is then."""
        after = None
        if event.kind == "namespace-created":
            if event.topic in self.namespaces:
                raise StateError(f"event {event.revision} creates namespace {event.topic}, which exists")
            draft.before.append((event.topic, None))
            self.namespaces[event.topic] = NamespaceTopics()
        elif event.kind == "namespace-deleted":
            draft.before.append((event.topic, self.namespaces[event.topic]))
            del self.namespaces[event.topic]
        else:
            topics = self.namespaces[namespace_of(event.topic)]
            before = topics.entry(event.topic)
            after = advanced(before, event)
            draft.before.append((event.topic, before))
            if after is None:
                topics.remove(event.topic)
            else:
                topics.put(after)
            topics.keep_up()
        self.revision = event.revision
        return after

    def _undo(self, draft: _Draft) -> None:
        self._is_damaged = True
        for name, before in reversed(draft.before):
            if isinstance(before, NamespaceTopics):
                self.namespaces[name] = before
            elif isinstance(before, TopicEntry):
                self.namespaces[namespace_of(name)].put(before)
            elif name in self.namespaces:
                del self.namespaces[name]
            elif namespace_of(name) in self.namespaces:
                self.namespaces[namespace_of(name)].remove(name)
        self.revision = draft.revision
        self._is_damaged = False
