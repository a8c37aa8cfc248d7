"""One watcher of one connection: the request it has to answer, and what it says when the client can read.

Messages are made when they are taken, never earlier: a slow client costs its untold changes and nothing else, and what
it reads at last agrees with the set at that moment. Of requests that were not answered the newest alone is kept: its
answer says everything that those before it asked for.
"""

from __future__ import annotations

from collections.abc import Iterator

from lookup.topics.messages import Message, Resync, Snapshot, Update, WatchRequest
from lookup.topics.queueing import Untold
from lookup.topics.watched import WatchedSet

__all__ = ["Watcher"]


class Watcher:
    """A watcher between two calls: a request that waits for a listing, one that may be answered, untold changes.

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
        self._waiting: WatchRequest | None = None
        self._answerable: WatchRequest | None = None
        self._is_told = False

    @property
    def is_due(self) -> bool:
        """Tell whether there is something to say."""
        return self._answerable is not None or (self._is_told and bool(self._untold))

    @property
    def is_started(self) -> bool:
        """Tell whether a snapshot was sent or can be."""
        return self._is_told or self._answerable is not None

    def ask(self, request: WatchRequest) -> None:
        """Let a request wait for the next listing, in place of one that waits."""
        self._waiting = request

    def answer(self) -> None:
        """Let the request that waits be answered, with the set as it is when the answer is taken."""
        self._answerable, self._waiting = self._waiting or self._answerable, None

    def refuse(self) -> WatchRequest | None:
        """Return the request that waits, and forget it."""
        refused, self._waiting = self._waiting, None
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
        if self._answerable is not None:
            yield self._snapshot(self._answerable)
            self._answerable = None

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
