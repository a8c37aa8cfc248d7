"""A storage that lives as long as the process, for tests and for catalogs that follow others."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext
from itertools import islice

from lookup.errors import StateError
from lookup.model.catalog import TopicEntry, TopicEvent
from lookup.topics.storage import check_kept, check_revision

__all__ = ["MemoryStorage"]


class MemoryStorage:
    """The last events of one catalog; the topics themselves are in the catalog's own memory, not here a second time.

    Args:
        n_events: how many events are kept for those who ask what they have missed.
    """

    def __init__(self, n_events: int = 10_000) -> None:
        self._events: deque[TopicEvent] = deque(maxlen=check_kept(n_events))
        self._revision = 0
        self._draft: list[TopicEvent] = []

    @property
    def revision(self) -> int:
        """Return the revision of the last event."""
        return self._revision

    def namespaces(self) -> Iterable[str]:
        """Return none: the catalog has them."""
        return ()

    def entries(self) -> Iterable[TopicEntry]:
        """Return none; a storage with a past belongs to a catalog that still has the topics.

        Raises:
            StateError: where a second catalog asks.
        """
        if self._revision:
            raise StateError("this MemoryStorage belongs to another catalog; a new catalog needs one of its own")
        return ()

    def events_since(self, revision: int) -> Sequence[TopicEvent]:
        """Return the events after a revision, in order.

        Raises:
            StateError: where some of them are no longer kept, or the revision is ahead.
        """
        check_revision(revision, self._revision)
        missed = self._revision - revision
        if missed > len(self._events):
            raise StateError(
                f"of the {missed} events since revision {revision} only the last {len(self._events)} are kept"
            )
        return tuple(islice(self._events, len(self._events) - missed, None))

    def add_namespace(self, namespace: str) -> None:
        """Keep nothing: the catalog has its namespaces."""

    def save(self, event: TopicEvent, entry: TopicEntry | None) -> None:
        """Keep an event until newer ones push it out."""
        self._draft.append(event)

    def reading(self) -> AbstractContextManager[None]:
        """Return a block; nobody else can write meanwhile."""
        return nullcontext()

    @contextmanager
    def writing(self) -> Iterator[None]:
        """Keep what is saved in the block when it ends, and nothing where it raises."""
        self._draft = []
        yield
        self._events.extend(self._draft)
        self._revision += len(self._draft)

    def close(self) -> None:
        """Do nothing: there is nothing to let go of."""
