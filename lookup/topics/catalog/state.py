"""Keep the topics of a catalog in memory as its storage has them, and announce changes.

    write:  the storage begins, and waits for other processes -> memory follows it, as it does at any other time ->
            writes go to the storage -> it commits -> memory follows -> listeners are called

Only committed changes are valid. Memory reads the events after its own revision, from any process, and an error on the
way leaves it behind until the next query. So a write that fails has nothing to undo here.

There are two locks, taken in this order. `_writer` is held by a write from beginning to end, `_memory` by a query and
while memory follows, so no query waits for another process or a transaction. Listeners are called without either.

`catalog.py` decides which writes are allowed.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from itertools import groupby, islice
from threading import Lock, RLock, get_ident

from lookup.errors import InputError, NotFoundError, StateError
from lookup.model.catalog import TopicEntry, TopicEvent
from lookup.model.quoting import shown, suggestion
from lookup.topics.catalog.namespace import NamespaceTopics
from lookup.topics.catalog.naming import namespace_of
from lookup.topics.catalog.sqlite import SqliteStorage

__all__ = ["Announcer", "CatalogState", "Listener"]


def _find_differences(topic: str, now: TopicEntry | None, target: TopicEntry | None) -> Iterator[TopicEvent]:
    """Yield the events, with revision 0, from one state of a topic to another, None if it does not exist."""
    if target is None:
        if now is not None:
            yield TopicEvent(0, "deleted", topic, old=now.labels)
        return
    if now is None:
        yield TopicEvent(0, "created", topic, new=target.labels, properties=target.properties)
        return
    if now.labels != target.labels:
        yield TopicEvent(0, "labels", topic, now.labels, target.labels)
    if now.properties != target.properties:
        yield TopicEvent(0, "properties", topic, now.properties, target.properties)


#: A function that is called with every event.
Listener = Callable[[TopicEvent], None]


class Announcer:
    """A queue of events for listeners. Each receives every event once, by revision.

    One thread at a time calls listeners, which do not raise. Events that come meanwhile from another thread wait until
    every listener has received the earlier ones, and are then announced by the same thread.
    """

    def __init__(self) -> None:
        self._lock = Lock()
        self.listeners: dict[object, tuple[int, Listener]] = {}
        self._queue: deque[TopicEvent] = deque()
        self._is_announcing = False

    def subscribe(self, listener: Listener, *, after: int) -> Callable[[], None]:
        """Call a listener with every event after a revision, and return a function that removes it."""
        # Listeners are not keys, since the same function may be subscribed twice.
        token = object()
        self.listeners[token] = (after, listener)

        def unsubscribe() -> None:
            self.listeners.pop(token, None)

        return unsubscribe

    def expect(self, events: Iterable[TopicEvent]) -> None:
        """Put events in the queue, in the order of revisions. They must have been kept by the storage."""
        with self._lock:
            self._queue.extend(events)

    def announce(self) -> None:
        """Call the listeners with every event in the queue, unless that is under way."""
        is_ours = False
        try:
            with self._lock:
                if self._is_announcing:
                    return
                self._is_announcing = is_ours = True
            while (event := self._take_next()) is not None:
                for after, listener in tuple(self.listeners.values()):
                    if event.revision > after:
                        listener(event)
        except BaseException:
            # Events that were not announced are noticed as missing, and the next ones are announced.
            if is_ours:
                self._is_announcing = False
            raise

    def _take_next(self) -> TopicEvent | None:
        with self._lock:
            if self._queue:
                return self._queue.popleft()
            self._is_announcing = False
            return None


#: Topics that are read from a storage at once, enough to save calls, few enough to be freed soon.
_BATCH = 1_000


class CatalogState:
    """Topics by namespace in memory, as the storage has them. Every use of `namespaces` is inside `asking`.

    Raises:
        InputError: if the storage cannot be read.
    """

    def __init__(self, storage: SqliteStorage) -> None:
        self._storage = storage
        self._writer, self._memory = RLock(), RLock()
        #: the thread that began the latest transaction, and the thread in a block of `reading`, None if there is none
        self._writing: int | None = None
        self._reading: int | None = None
        self._announcer = Announcer()
        #: memory may be on its way to the storage's revision, and was interrupted if no thread is at it
        self._is_behind = False
        with storage.reading():
            self.namespaces = {namespace: NamespaceTopics() for namespace in storage.namespaces()}
            for namespace, entries in groupby(storage.entries(), lambda entry: namespace_of(entry.name)):
                if namespace not in self.namespaces:
                    problem = f"it has topics of {shown(namespace)}, and no such namespace"
                    raise InputError(f"the catalog was changed by another program: {problem}")
                while batch := tuple(islice(entries, _BATCH)):
                    self.namespaces[namespace].extend(batch)
            #: of the last event that memory has
            self.revision = storage.revision

    @property
    def is_writing(self) -> bool:
        """Whether this thread is in a transaction."""
        return self._writing == get_ident() and self._storage.is_writing

    @contextmanager
    def asking(self) -> Iterator[None]:
        """Keep memory at one revision."""
        with self._memory:
            # In a block that reads from one revision a writer may have committed, and waits for the end of the block.
            if self._is_behind and self._reading != get_ident():
                self._apply_committed()
            yield

    @contextmanager
    def reading(self) -> Iterator[None]:
        """Answer every question of the block from one revision."""
        with self.asking():
            before, self._reading = self._reading, get_ident()
            try:
                yield
            finally:
                self._reading = before

    def topics_of(self, namespace: str) -> NamespaceTopics:
        """Look up the topics of a namespace, or raise NotFoundError with the most similar name."""
        topics = self.namespaces.get(namespace)
        if topics is None:
            raise NotFoundError(
                f"there is no namespace {shown(namespace)}; {suggestion(namespace, list(self.namespaces))}"
            )
        return topics

    def entry(self, topic: str) -> TopicEntry | None:
        """Look up one topic, None if there is no such topic or namespace."""
        topics = self.namespaces.get(namespace_of(topic))
        return None if topics is None else topics.entry(topic)

    @contextmanager
    def together(self) -> Iterator[None]:
        """Join all writes in the block into one transaction. A block inside it belongs to it."""
        if self.is_writing:
            yield
            return
        self._refuse_in_reading()
        try:
            with self._writer, self._transaction():
                yield
        finally:
            # This is done also after a failure, since events of other processes were applied, and are safe.
            self._announcer.announce()

    @contextmanager
    def _transaction(self) -> Iterator[None]:
        try:
            self._writing = get_ident()
            self._storage.begin()
            self._apply_committed()
            yield
            self._is_behind = True
            self._storage.commit()
        except BaseException:
            self._storage.rollback()
            raise
        self._apply_committed()

    def save(self, event: TopicEvent, entry: TopicEntry | None = None) -> None:
        """Write the next event, with its topic afterwards, in a transaction."""
        if not self.is_writing:
            raise StateError("a catalog changes in a transaction only")
        self._storage.save(event, entry)

    def make(self, topic: str, wanted: TopicEntry | None) -> None:
        """Change a topic to another state, None for deleted, with an event per difference, in a transaction."""
        for change in _find_differences(topic, self._storage.entry(topic), wanted):
            self.save(change, wanted)

    def subscribe(self, listener: Listener) -> Callable[[], None]:
        """Add a listener for later events, and return a function that removes it."""
        with self.asking():
            return self._announcer.subscribe(listener, after=self.revision)

    def refresh(self) -> None:
        """Read the writes of other processes. A transaction began with that, so this does nothing in one."""
        if self.is_writing:
            return
        self._refuse_in_reading()
        self._apply_committed()
        self._announcer.announce()

    def _refuse_in_reading(self) -> None:
        # This thread has locked memory there, and the writer that it would wait for waits for memory, a deadlock.
        if self._reading == get_ident():
            raise StateError("a block that reads from one revision can neither write nor take in writes of others")

    def _apply_committed(self) -> None:
        """Apply the events that the storage has committed since. Repeating a step changes nothing."""
        with self._memory, self._storage.reading():
            current = self._storage.revision
            if current == self.revision:
                self._is_behind = False
                return
            missed: Iterable[TopicEvent]
            try:
                missed, are_all = self._storage.events_since(self.revision), True
            except StateError:
                # The file was restored to an earlier time, so the later events of this catalog have not happened.
                if current < self.revision:
                    raise
                missed, are_all = self._list_changes(current), False
            taken_in: list[TopicEvent] = []
            self._is_behind = True
            try:
                for event in missed:
                    self._place(event)
                    # Differences are not a history. If they were interrupted, the others are found again.
                    if are_all:
                        self.revision = event.revision
                    if self._announcer.listeners:
                        taken_in.append(event)
                self.revision = current
                self._is_behind = False
            finally:
                # They are in the queue before later events, also if only some of them were applied.
                self._announcer.expect(taken_in)

    def _list_changes(self, current: int) -> Sequence[TopicEvent]:
        """List the differences between memory and the storage, for events that are no longer kept.

        Each took an event or more, so revisions suffice, up to the storage's. The gap before them shows missed events.
        """
        changes: list[TopicEvent] = []
        namespaces = set(self._storage.namespaces())
        targets = {entry.name: entry for entry in self._storage.entries()}
        # Removals first, so that a plain topic and the partitions that took its name never exist together.
        for topics in self.namespaces.values():
            for entry in topics.entries():
                if entry.name not in targets:
                    changes += _find_differences(entry.name, entry, None)
        changes += (TopicEvent(0, "namespace-deleted", name) for name in self.namespaces.keys() - namespaces)
        changes += (TopicEvent(0, "namespace-created", name) for name in namespaces - self.namespaces.keys())
        for entry in targets.values():
            changes += _find_differences(entry.name, self.entry(entry.name), entry)
        return [replace(change, revision=current - len(changes) + number) for number, change in enumerate(changes, 1)]

    def _place(self, event: TopicEvent) -> None:
        if event.kind == "namespace-created":
            self.namespaces.setdefault(event.topic, NamespaceTopics())
            return
        if event.kind == "namespace-deleted":
            self.namespaces.pop(event.topic, None)
            return
        topics = self.namespaces[namespace_of(event.topic)]
        match event.kind:
            case "created":
                topics.put(TopicEntry(event.topic, event.properties, event.new))
            case "deleted":
                topics.remove(event.topic)
            case "labels" | "properties":
                entry = topics.entry(event.topic)
                if entry is not None:
                    labels = event.new if event.kind == "labels" else entry.labels
                    properties = event.new if event.kind == "properties" else entry.properties
                    topics.put(TopicEntry(event.topic, properties, labels))
