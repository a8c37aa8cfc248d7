"""One watcher of one connection: the requests it has to answer, and what it says when the client can read.

Messages are made when they are taken, never earlier: a slow client costs its untold changes and nothing else, and what
it reads at last agrees with the set at that moment.
"""

from __future__ import annotations

from collections.abc import Iterator

from lookup.topics.messages import Message, Resync, Snapshot, Update, WatchRequest
from lookup.topics.queueing import Untold
from lookup.topics.watched import WatchedSet

__all__ = ["Watcher"]


class Watcher:
    """A watcher between two calls: requests that wait for a listing, requests that may be answered, untold changes.

    Args:
        watcher_id: the client's name for it, unique within its connection.
        watched: the set it watches.
        queue_max: changes that may wait for a slow client before the whole set is sent in their place.
    """

    __slots__ = ("_answerable", "_is_told", "_untold", "_waiting", "watched", "watcher_id")

    def __init__(self, watcher_id: int, watched: WatchedSet, *, queue_max: int) -> None:
        self.watcher_id = watcher_id
        self.watched = watched
        self._untold = Untold(queue_max)
        self._waiting: list[WatchRequest] = []
        self._answerable: list[WatchRequest] = []
        self._is_told = False

    @property
    def is_waiting(self) -> bool:
        """Tell whether a request waits for a listing."""
        return bool(self._waiting)

    @property
    def is_due(self) -> bool:
        """Tell whether there is something to say."""
        return bool(self._answerable or (self._is_told and self._untold))

    @property
    def is_started(self) -> bool:
        """Tell whether a snapshot was sent or can be."""
        return self._is_told or bool(self._answerable)

    def ask(self, request: WatchRequest) -> None:
        """Let a request wait for the next listing."""
        self._waiting.append(request)

    def answer(self) -> None:
        """Let the requests that wait be answered with the set as it is when they are taken."""
        self._answerable += self._waiting
        self._waiting.clear()

    def refuse(self) -> list[WatchRequest]:
        """Return the requests that wait, and forget them."""
        refused, self._waiting = self._waiting, []
        return refused

    def leave(self) -> None:
        """Have no more changes noted."""
        self.watched.part(self._untold)

    def messages(self) -> Iterator[Message]:
        """Say everything there is to say.

        Changes come first: a client that asked with a hash has applied them when it reads the answer, so "unchanged"
        means the set it holds then, whatever happened since it asked.
        """
        if self._is_told and self._untold:
            yield self._changes()
        for request in self._answerable:
            yield self._snapshot(request)
        self._answerable.clear()

    def _changes(self) -> Update | Resync:
        topics, topics_hash = self.watched.told()
        is_overflown, (removed, added) = self._untold.is_overflown, self._untold.changes()
        self._untold.clear()
        if is_overflown:
            return Resync(self.watcher_id, topics, topics_hash)
        return Update(self.watcher_id, removed, added, topics_hash)

    def _snapshot(self, request: WatchRequest) -> Snapshot:
        topics, topics_hash = self.watched.told()
        if not self._is_told:
            self._is_told = True
            self.watched.join(self._untold)
        is_same = request.topics_hash == topics_hash
        return Snapshot(request.request_id, self.watcher_id, () if is_same else topics, topics_hash, not is_same)
