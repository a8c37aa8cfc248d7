"""Hold the watchers of each connection and the messages that wait for it.

A watcher makes its messages when they are taken, never earlier: a slow client costs its pending changes and nothing
else, and the message it finally reads agrees with the topics at that moment. Of unanswered requests a watcher keeps
only the newest, whose answer covers those before it.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator
from typing import TypeAlias

from lookup.topics.watching.messages import Closed, Connection, Message, Refused, Resync, Snapshot, Update, WatchRequest
from lookup.topics.watching.query_topics import PendingChanges, QueryTopics

__all__ = ["Watcher", "WatcherConnection"]

#: (type of a message, its watcher's id): of each only the newest message waits.
_Kind: TypeAlias = tuple[type, int]


class Watcher:
    """A watcher: a request that waits for a listing, a request that may be answered, and pending changes.

    Args:
        watcher_id: the client's name for it, unique within its connection.
        topics: the topics it watches.
        queue_max: changes that may wait for a slow client before the whole list is sent in their place.
    """

    __slots__ = ("_answerable", "_has_list", "_pending", "_waiting", "topics", "watcher_id")

    def __init__(self, watcher_id: int, topics: QueryTopics, *, queue_max: int) -> None:
        self.watcher_id = watcher_id
        self.topics = topics
        self._pending = PendingChanges(queue_max)
        self._waiting: WatchRequest | None = None
        self._answerable: WatchRequest | None = None
        #: whether the client was sent a list, which changes refer to
        self._has_list = False

    @property
    def is_due(self) -> bool:
        """Return whether there is a message to send."""
        return self._answerable is not None or (self._has_list and bool(self._pending))

    @property
    def is_started(self) -> bool:
        """Return whether a snapshot was sent or can be."""
        return self._has_list or self._answerable is not None

    def ask(self, request: WatchRequest) -> None:
        """Let a request wait for the next listing, in place of one that waits."""
        self._waiting = request

    def answer(self) -> None:
        """Let the request that waits be answered, with the topics as they are when the answer is taken."""
        self._answerable, self._waiting = self._waiting or self._answerable, None

    def refuse(self) -> WatchRequest | None:
        """Return the request that waits, and forget it."""
        refused, self._waiting = self._waiting, None
        return refused

    def leave(self) -> None:
        """Stop noting changes for this watcher."""
        self.topics.part(self._pending)

    def catch_up(self) -> None:
        """Note what the last listing changed, if that is not done."""
        self.topics.catch_up(self._pending)

    def messages(self) -> Iterator[Message]:
        """Yield every message there is to send, made now.

        Changes come first: a client that asked with a hash has applied them when it reads the answer, so "unchanged"
        means the list it holds then, whatever happened since it asked.
        """
        self.catch_up()
        if self._has_list and self._pending:
            topics = self.topics.as_list()
            is_overflown, (removed, added) = self._pending.is_overflown, self._pending.changes()
            # Cleared before the message is yielded: its taker may stop here, and a change must not be sent twice.
            self._pending.clear()
            if is_overflown:
                yield Resync(self.watcher_id, topics, topics.topics_hash)
            else:
                yield Update(self.watcher_id, removed, added, topics.topics_hash)
        if self._answerable is not None:
            request = self._answerable
            topics = self.topics.as_list()
            # Changes are noted from the first snapshot on; before it there is no list that they would change.
            if not self._has_list:
                self._has_list = True
                self.topics.join(self._pending)
            is_same = request.topics_hash == topics.topics_hash
            names = () if is_same else topics
            yield Snapshot(request.request_id, self.watcher_id, names, topics.topics_hash, not is_same)
            self._answerable = None


class WatcherConnection:
    """A connection as the server sees it: ready messages, and watchers that make theirs when they are taken.

    Args:
        connection: the server's name for it.
        ready_max: ready messages that may wait for a slow client.
    """

    __slots__ = ("_begun", "_ready", "_ready_max", "_turns", "connection", "watchers")

    def __init__(self, connection: Connection, *, ready_max: int) -> None:
        self.connection = connection
        self._ready_max = ready_max
        #: by the client's ids
        self.watchers: dict[int, Watcher] = {}
        #: watchers and ready messages in the order of sending; a watcher has one turn at a time
        self._turns: dict[Watcher | _Kind, None] = {}
        self._ready: dict[_Kind, Message] = {}
        #: the rest of a turn that was not taken to its end
        self._begun: deque[Message] = deque()

    @property
    def is_due(self) -> bool:
        """Return whether there is a message to send."""
        return bool(self._begun or self._turns)

    def say(self, message: Closed | Refused) -> None:
        """Add a message that is ready, in place of an older one of its kind about its watcher.

        If too many wait, the oldest is dropped: its client asked for more than it reads, and will ask again.
        """
        kind = (type(message), message.watcher_id)
        # Taken out first, so that the newer message goes to the end of both queues.
        self._drop_ready(kind)
        self._ready[kind], self._turns[kind] = message, None
        if len(self._ready) > self._ready_max:
            self._drop_ready(next(iter(self._ready)))

    def _drop_ready(self, kind: _Kind) -> None:
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
        """Yield the messages to send, in order; each counts as sent when it is yielded."""
        while self.is_due:
            if not self._begun:
                turn = next(iter(self._turns))
                del self._turns[turn]
                self._begun.extend(turn.messages() if isinstance(turn, Watcher) else [self._ready.pop(turn)])
            # A turn may be empty: its changes cancelled each other since the watcher was marked.
            if self._begun:
                yield self._begun.popleft()
