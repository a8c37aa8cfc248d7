"""One connection's watchers, and what is to be said over it, in order."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator
from typing import TypeAlias

from lookup.topics.messages import Closed, Connection, Message, Refused
from lookup.topics.watcher import Watcher

__all__ = ["Line"]


#: Of messages that are ready one kind about one watcher has one turn.
_Kind: TypeAlias = tuple[type, int]


class Line:
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
