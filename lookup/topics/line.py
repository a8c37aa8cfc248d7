"""One connection's watchers, and what is to be said over it, in order."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator

from lookup.topics.messages import Connection, Message
from lookup.topics.watcher import Watcher

__all__ = ["Line"]


class Line:
    """A connection as a server sees it: ready messages, and watchers that make theirs when they are taken."""

    __slots__ = ("_begun", "_ready", "_turns", "connection", "watchers")

    def __init__(self, connection: Connection) -> None:
        self.connection = connection
        #: by the client's ids
        self.watchers: dict[int, Watcher] = {}
        #: whose turn it is; a watcher has one turn at a time
        self._turns: dict[Watcher | int, Message | None] = {}
        self._ready = 0
        #: the rest of a turn that was not taken to its end
        self._begun: deque[Message] = deque()

    @property
    def is_due(self) -> bool:
        """Tell whether anything is to be said."""
        return bool(self._begun or self._turns)

    def say(self, message: Message) -> None:
        """Add a message that is ready."""
        self._ready += 1
        self._turns[self._ready] = message

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
        message = self._turns.pop(turn)
        self._begun.extend([message] if message is not None else turn.messages() if isinstance(turn, Watcher) else [])
