"""Hold rows of a log back while later lines may complete or withdraw them. They keep the order of the source."""

from __future__ import annotations

import math
from collections import deque
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from lookup.model.documents import Refuted, Row, Unreadable

__all__ = ["Pairing"]

#: A lookup (`operation_timeout_seconds`) and a broker's wait for an owner end after 30 s. Later lines are unrelated.
_PATIENCE_US = 30_000_000
#: Maximum number of rows held back, if the clock of a log does not advance.
_MOST_HELD = 100_000


@dataclass(slots=True)
class _Entry:
    line: int
    ts: int
    values: dict[str, Any] | None = None
    #: a record that is not a row
    other: Unreadable | Refuted | None = None
    table: Any = "lookups"
    #: topic whose answer the request waits for, None if it does not wait
    topic: str | None = None
    #: claim by which a later line may withdraw the row, None if none can
    claim: str | None = None
    is_withdrawn: bool = False


class Pairing:
    """A queue that joins requests with their answers, and withdraws rows that later lines refute.

    Rows wait for earlier ones. Answers lack their request's id, so the topic's oldest waiting request gets the answer.
    """

    def __init__(self) -> None:
        self._entries: deque[_Entry] = deque()
        self._waiting: dict[str, deque[_Entry]] = {}
        self._claims: dict[str, _Entry] = {}

    def ask(self, row: Row) -> None:
        """Add a request, a row of LOOKUPS that may still get an answer."""
        topic = row.values["topic"]
        request = _Entry(row.line, row.values["ts"], dict(row.values), topic=topic)
        self._entries.append(request)
        self._waiting.setdefault(topic, deque()).append(request)

    def answer(self, row: Row) -> None:
        """Give an answer to the waiting request, which keeps its time and client, or make it a row of its own."""
        request = self._take_request(row.values["topic"])
        if request is None or request.values is None:
            self.put(row)
        else:
            # Threads write late, so an answer may have an earlier time than its request.
            latency_ms = max(row.values["ts"] - request.ts, 0) / 1_000
            request.values = {**row.values, **request.values, "latency_ms": latency_ms}

    def put(self, record: Row | Unreadable | Refuted, claim: str | None = None) -> None:
        """Add a row or record that does not wait for an answer. A later line may withdraw it by its claim."""
        if not isinstance(record, Row):
            self._entries.append(_Entry(record.line, 0, other=record))
            return
        entry = _Entry(record.line, record.values["ts"], dict(record.values), table=record.table, claim=claim)
        self._entries.append(entry)
        if claim is not None:
            self._claims[claim] = entry

    def claimed_at(self, claim: str) -> int | None:
        """Look up the time of the latest row that a claim can still withdraw, µs, None if there is none."""
        entry = self._claims.get(claim)
        return None if entry is None else entry.ts

    def withdraw(self, claim: str) -> None:
        """Withdraw the latest row with a claim."""
        entry = self._claims.pop(claim)
        entry.is_withdrawn, entry.claim = True, None

    def ready(self, now: float = math.inf) -> Iterator[Row | Unreadable | Refuted]:
        """Yield the records that need not be held any longer at a time, µs, and all records at the end of a log."""
        while self._entries:
            first = self._entries[0]
            waits = first.topic is not None or first.claim is not None
            if waits and now - first.ts <= _PATIENCE_US and len(self._entries) <= _MOST_HELD:
                return
            self._entries.popleft()
            if first.topic is not None:
                # The oldest entry of all is the oldest of its topic as well.
                self._take_request(first.topic)
            if first.claim is not None and self._claims.get(first.claim) is first:
                del self._claims[first.claim]
            if not first.is_withdrawn:
                yield first.other or Row(first.table, first.line, first.values or {})

    def _take_request(self, topic: str) -> _Entry | None:
        queue = self._waiting.get(topic)
        if queue is None:
            return None
        request = queue.popleft()
        request.topic = None
        # Empty queues go, or a log with many topics would fill the memory.
        if not queue:
            del self._waiting[topic]
        return request
