"""Hold the watchers of each connection and the messages that wait for it.

A watcher makes its messages when they are taken, never earlier: a slow client costs its pending changes and nothing
else, and the message it reads at last agrees with the topics at that moment. Of unanswered requests a watcher keeps
the newest alone, whose answer says everything that those before it asked for.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator
from typing import TypeAlias

from lookup.topics.watching.messages import Closed, Connection, Message, Refused, Resync, Snapshot, Update, WatchRequest
from lookup.topics.watching.query_topics import PendingChanges, QueryTopics

__all__ = ["Watcher", "WatcherConnection"]


#: Of messages that are ready one kind about one watcher has one turn.
_Kind: TypeAlias = tuple[type, int]


class WatcherConnection:
    """A connection as a server sees it: ready messages, and watchers that make theirs when they are taken.

    Args:
        connection: what the server tells it apart by.
        ready_max: ready messages that may wait for a slow client.
    """

    __slots__ = ("_begun", "_ready", "_ready_max", "_turns", "connection", "watchers")

    def __init__(self, connection: Connection, *, ready_max: int) -> None:
        self.connection = connection
        self._ready_max = ready_max
        #: by the client's ids
        self.watchers: dict[int, Watcher] = {}
        #: whose turn it is; a watcher has one turn at a time
        self._turns: dict[Watcher | _Kind, None] = {}
        self._ready: dict[_Kind, Message] = {}
        #: the rest of a turn that was not taken to its end
        self._begun: deque[Message] = deque()

    @property
    def is_due(self) -> bool:
        """Tell whether anything is to be said."""
        return bool(self._begun or self._turns)

    def say(self, message: Closed | Refused) -> None:
        """Add a message that is ready, in place of an older one of its kind about its watcher.

        Where too many wait the oldest is let go: its client asked for more than it reads, and will ask again.
        """
        kind = (type(message), message.watcher_id)
        self._unsay(kind)
        self._ready[kind], self._turns[kind] = message, None
        if len(self._ready) > self._ready_max:
            self._unsay(next(iter(self._ready)))

    def _unsay(self, kind: _Kind) -> None:
        self._ready.pop(kind, None)
        self._turns.pop(kind, None)

    def mark(self, watcher: Watcher) -> None:
        """Give a watcher a turn, unless it waits for one."""
        self._turns.setdefault(watcher, None)

    def drop(self, watcher: Watcher) -> None:
        """Forget a watcher and its turn."""
        self.watchers.pop(watcher.watcher_id, None)
        self._turns.pop(watcher, None)
        self._begun = deque(message for message in self._begun if message.watcher_id != watcher.watcher_id)

    def messages(self) -> Iterator[Message]:
        """Yield what is to be said; each message counts as said when it is yielded."""
        while self.is_due:
            if not self._begun:
                self._next_turn()
            if self._begun:
                yield self._begun.popleft()

    def _next_turn(self) -> None:
        turn = next(iter(self._turns))
        del self._turns[turn]
        self._begun.extend(turn.messages() if isinstance(turn, Watcher) else [self._ready.pop(turn)])


class Watcher:
    """A watcher between two calls: a request that waits for a listing, one that may be answered, untold changes.

    Args:
        watcher_id: the client's name for it, unique within its connection.
        watched: the set it watches.
        queue_max: changes that may wait for a slow client before the whole set is sent in their place.
    """

    __slots__ = ("_answerable", "_is_told", "_untold", "_waiting", "watched", "watcher_id")

    def __init__(self, watcher_id: int, watched: QueryTopics, *, queue_max: int) -> None:
        self.watcher_id = watcher_id
        self.watched = watched
        self._untold = PendingChanges(queue_max)
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
