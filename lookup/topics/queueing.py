"""The two bounded queues of a watch: changes a slow client has not been told, and events that came while listing.

Neither loses anything in silence: a queue that is full says so, and whoever owns it lists anew.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator

from lookup.model.catalog import TopicEvent

__all__ = ["QUEUE_MAX", "Backlog", "Untold"]

#: Changes or events that may wait per watcher; Pulsar's bound (`docs/pulsar/protocol.md`).
QUEUE_MAX = 10_000


class Untold:
    """The net changes one watcher has not been told yet, coalesced: a topic that came and went leaves nothing.

    | untold before      | enters          | leaves                     |
    | ------------------ | --------------- | -------------------------- |
    | nothing            | added           | removed                    |
    | added              | (cannot happen) | nothing                    |
    | removed            | nothing         | (cannot happen)            |
    | removed, destroyed | removed + added | (cannot happen)            |
    | removed + added    | (cannot happen) | removed, destroyed         |

    Args:
        limit: changes that may wait; one more and `is_overflown` holds until `clear`, with nothing kept.
    """

    __slots__ = ("_added", "_destroyed", "_limit", "_removed", "is_overflown")

    def __init__(self, limit: int = QUEUE_MAX) -> None:
        self._limit = limit
        self._added: set[str] = set()
        self._removed: set[str] = set()
        #: removed topics that do not exist any more; created again, they are other topics
        self._destroyed: set[str] = set()
        self.is_overflown = False

    def __bool__(self) -> bool:
        return self.is_overflown or bool(self._added or self._removed)

    def __len__(self) -> int:
        return len(self._added) + len(self._removed)

    def enter(self, topic: str) -> None:
        """Note that a topic joined the set."""
        if self.is_overflown:
            return
        if topic in self._removed and topic not in self._destroyed:
            self._removed.discard(topic)
        else:
            self._added.add(topic)
            self._bound()

    def leave(self, topic: str, *, destroyed: bool = False) -> None:
        """Note that a topic left the set, because it was deleted or for a change of its labels."""
        if self.is_overflown:
            return
        if topic in self._added:
            self._added.discard(topic)
            return
        self._removed.add(topic)
        if destroyed:
            self._destroyed.add(topic)
        self._bound()

    def destroy(self, topic: str) -> None:
        """Note the end of a topic that had left the set before."""
        if topic in self._removed:
            self._destroyed.add(topic)

    def _bound(self) -> None:
        if len(self) > self._limit:
            self.clear()
            self.is_overflown = True

    def changes(self) -> tuple[tuple[str, ...], tuple[str, ...]]:
        """Return what to remove and what to add, each sorted."""
        return tuple(sorted(self._removed)), tuple(sorted(self._added))

    def clear(self) -> None:
        """Forget everything: it was told, or a whole set is told in its place."""
        self._added.clear()
        self._removed.clear()
        self._destroyed.clear()
        self.is_overflown = False


class Backlog:
    """The events that came while a listing was under way; where there are too many the oldest are let go.

    Args:
        limit: events that are kept.
    """

    __slots__ = ("_events", "_lost_to")

    def __init__(self, limit: int = QUEUE_MAX) -> None:
        self._events: deque[TopicEvent] = deque(maxlen=limit)
        #: revision of the latest event that was let go; 0: none was
        self._lost_to = 0

    def add(self, event: TopicEvent) -> None:
        """Keep an event, at the cost of the oldest where the backlog is full."""
        if len(self._events) == self._events.maxlen:
            self._lost_to = self._events[0].revision if self._events else event.revision
        self._events.append(event)

    def covers(self, revision: int | None) -> bool:
        """Tell whether every event after a listing's revision is here; None: the listing does not say when it was."""
        return self._lost_to <= (revision or 0)

    def after(self, revision: int | None) -> Iterator[TopicEvent]:
        """Yield the events after a revision, in order; all of them for None."""
        return (event for event in self._events if event.revision > (revision or 0))

    def clear(self) -> None:
        """Begin anew."""
        self._events.clear()
        self._lost_to = 0
