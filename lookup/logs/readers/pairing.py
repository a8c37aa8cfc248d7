"""Joins the line of a request with the line of its answer, and still yields rows in the order of the source."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from lookup.model.documents import Row, Unreadable

__all__ = ["Pairing"]

#: A client gives a lookup up after 30 s (`operation_timeout_seconds`); no answer comes later than that.
_PATIENCE_US = 30_000_000
#: Rows held back at most, whatever the clock of the log says.
_MOST_HELD = 100_000


@dataclass(slots=True)
class _Held:
    line: int
    ts: int
    values: dict[str, Any] | None = None
    unreadable: Unreadable | None = None
    table: Any = "lookups"
    #: what the request waits under
    topic: str | None = None


class Pairing:
    """Holds rows back while an earlier request waits for its answer.

    Answers carry no id of their request: the oldest waiting request of the topic gets the answer.
    """

    def __init__(self) -> None:
        self._held: deque[_Held] = deque()
        self._waiting: dict[str, deque[_Held]] = {}

    def ask(self, row: Row) -> None:
        """Take a request, a row of LOOKUPS that may still get an answer."""
        topic = row.values["topic"]
        held = _Held(row.line, row.values["ts"], dict(row.values), topic=topic)
        self._held.append(held)
        self._waiting.setdefault(topic, deque()).append(held)

    def answer(self, row: Row) -> None:
        """Give an answer to the request that waits for it; without one it is a row of its own.

        The request keeps its own time and client.
        """
        request = self._take(row.values["topic"])
        if request is None or request.values is None:
            self.put(row)
        else:
            latency_ms = max(row.values["ts"] - request.ts, 0) / 1_000
            request.values = {**row.values, **request.values, "latency_ms": latency_ms}

    def put(self, entry: Row | Unreadable) -> None:
        """Take a row or record that waits for nothing."""
        if isinstance(entry, Unreadable):
            self._held.append(_Held(entry.line, 0, unreadable=entry))
        else:
            self._held.append(_Held(entry.line, entry.values["ts"], dict(entry.values), table=entry.table))

    def ready(self, now: int) -> Iterator[Row | Unreadable]:
        """Yield what need not be held any longer at a time, µs."""
        while self._held:
            first = self._held[0]
            if first.topic is not None and now - first.ts <= _PATIENCE_US and len(self._held) <= _MOST_HELD:
                return
            yield self._released()

    def rest(self) -> Iterator[Row | Unreadable]:
        """Yield everything that is still held."""
        while self._held:
            yield self._released()

    def _take(self, topic: str) -> _Held | None:
        """Return the oldest waiting request of a topic and let it wait no longer."""
        queue = self._waiting.get(topic)
        if queue is None:
            return None
        found = queue.popleft()
        found.topic = None
        if not queue:
            del self._waiting[topic]
        return found

    def _released(self) -> Row | Unreadable:
        held = self._held.popleft()
        if held.topic is not None:
            self._take(held.topic)
        return held.unreadable or Row(held.table, held.line, held.values or {})
