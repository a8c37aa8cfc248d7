"""Keep the changes of a catalog: the protocol of a storage, and the one that lives as long as the process.

The durable storage, a file, is in `sqlite.py`.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Sequence
from contextlib import AbstractContextManager, nullcontext
from itertools import islice
from typing import Protocol

from lookup.errors import ArgumentError, StateError
from lookup.model.catalog import TopicEntry, TopicEvent

__all__ = ["MemoryStorage", "Storage", "check_kept", "check_revision"]


class Storage(Protocol):
    """A store of namespaces, topics and the last events, for one catalog in any number of threads.

    All that is saved between `begin` and `commit` is kept as a whole, and none of it after `rollback`. One catalog
    writes at a time; it finds the writes of others by `revision`. What a broker serves is not kept, only its events.

    Threads: `begin` and `rollback` may run beside questions of another thread, which show what is kept and neither wait
    for other processes nor see what was saved since. Everything else is called by one thread at a time.
    """

    @property
    def revision(self) -> int:
        """Return the revision of the last event that is kept, 0 before the first."""

    def namespaces(self) -> Iterable[str]:
        """Return the namespaces, in any order."""

    def entries(self) -> Iterable[TopicEntry]:
        """Return the topics, in the order of names, none of them loaded."""

    def events_since(self, revision: int) -> Sequence[TopicEvent]:
        """Return the events after a revision, in order.

        Raises:
            StateError: if some of them are no longer kept, or the revision is ahead.
        """

    def reading(self) -> AbstractContextManager[None]:
        """Return a block in which every answer is of one revision."""

    def begin(self) -> None:
        """Keep other writers out, once they let go."""

    def save(self, event: TopicEvent, entry: TopicEntry | None) -> None:
        """Keep an event, and its topic as it is afterwards (None: deleted, or no topic's event)."""

    def commit(self) -> None:
        """Keep what was saved, safely; if this raises, nothing is kept."""

    def rollback(self) -> None:
        """Forget what was saved; nothing to do if nothing was begun."""

    def close(self) -> None:
        """Close files; nothing else may be called afterwards."""


def check_revision(asked: int, current: int) -> None:
    """Refuse a question for events after a revision that was never reached."""
    if not 0 <= asked <= current:
        raise StateError(f"there is no revision {asked}: the catalog is at {current}")


def check_kept(n_events: int) -> int:
    """Return how many events a storage shall keep, at least one."""
    if n_events < 1:
        raise ArgumentError(f"n_events is {n_events}, at least the last event must be kept")
    return n_events


class MemoryStorage:
    """The last events of one catalog; the topics themselves are in the catalog's own memory, not here a second time.

    Args:
        n_events: how many events are kept for followers that missed some.
    """

    def __init__(self, n_events: int = 10_000) -> None:
        self._events: deque[TopicEvent] = deque(maxlen=check_kept(n_events))
        self._revision = 0
        # No more than are kept: of a transaction of a million events the first are forgotten at once.
        self._draft: deque[TopicEvent] = deque(maxlen=n_events)
        self._n_saved = 0

    @property
    def revision(self) -> int:
        """Return the revision of the last event."""
        return self._revision

    def namespaces(self) -> Iterable[str]:
        """Return none: the catalog has them."""
        return ()

    def entries(self) -> Iterable[TopicEntry]:
        """Return none, for a new catalog; one with events belongs to a catalog that still has the topics.

        Raises:
            StateError: if a second catalog asks.
        """
        if self._revision:
            raise StateError("this MemoryStorage belongs to another catalog; a new catalog needs one of its own")
        return ()

    def events_since(self, revision: int) -> Sequence[TopicEvent]:
        """Return the events after a revision, in order.

        Raises:
            StateError: if some of them are no longer kept, or the revision is ahead.
        """
        check_revision(revision, self._revision)
        missed = self._revision - revision
        if missed > len(self._events):
            raise StateError(
                f"of the {missed} events since revision {revision} only the last {len(self._events)} are kept"
            )
        # Revisions count up by one, so the events after one are the last of the queue, and nothing is searched.
        return tuple(islice(self._events, len(self._events) - missed, None))

    def reading(self) -> AbstractContextManager[None]:
        """Return a block that does nothing: no other process can write meanwhile."""
        return nullcontext()

    def begin(self) -> None:
        """Forget what an unfinished transaction saved."""
        self.rollback()

    def save(self, event: TopicEvent, entry: TopicEntry | None) -> None:
        """Keep an event until newer ones push it out."""
        self._draft.append(event)
        self._n_saved += 1

    def commit(self) -> None:
        """Keep the events that were saved."""
        try:
            self._events.extend(self._draft)
            self._revision += self._n_saved
        except BaseException:
            while self._events and self._events[-1].revision > self._revision:
                self._events.pop()
            raise

    def rollback(self) -> None:
        """Forget the events that were saved."""
        self._draft.clear()
        self._n_saved = 0

    def close(self) -> None:
        """Do nothing: there is no file."""
