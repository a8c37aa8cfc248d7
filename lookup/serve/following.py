"""Follow the state topic in a thread of the decision server, with the observer of `lookup collect`.

The thread reads and interprets records. The changes of owners wait for the event loop, which applies them
between two decisions. While the topic cannot be read, the last known owners remain valid.
"""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Callable
from contextlib import AbstractContextManager
from queue import Empty, Queue
from threading import Event, Thread
from typing import TYPE_CHECKING, TypeAlias

from lookup.collect.observing import CaughtUp, Observer, Record, follow
from lookup.logs.columns import TABLES
from lookup.settings import CollectSection

if TYPE_CHECKING:
    from lookup.collect.sources import Source

__all__ = ["Connect", "Follower"]

#: Makes the source of the state topic, which puts its records into the queue, and closes its client at the end.
Connect: TypeAlias = Callable[[CollectSection, "Queue[Record]"], AbstractContextManager["Source"]]

#: Records between the source and this thread. The source waits at this number.
_MOST_WAITING = 10_000
_PATIENCE_S = 0.2
_COLUMNS = [column.name for column in TABLES["ownership"]]


class Follower(Thread):
    """A follower that turns records of the state topic into changes of owners. Its context ends thread and source."""

    def __init__(self, cluster: str, section: CollectSection, connect: Connect) -> None:
        super().__init__(name="serve-owners", daemon=True)
        self.section = section
        #: bundle, new owner, and µs of its writing, None if nothing else was written by then. Taken by the event loop.
        self.changes: deque[tuple[str | None, str | None, int]] = deque()
        #: all that the topic held at the start has been read
        self.is_complete = Event()
        #: why the topic cannot be read and since when, by the monotonic clock, None while it can
        self.trouble: tuple[str, float] | None = None
        #: how often the topic could not be read any more
        self.losses = 0
        #: records without Pulsar's form, and the reason for the latest
        self.refused = 0
        self.reason: str | None = None
        self._observer = Observer(cluster)
        self._owners: dict[str, str] = {}
        self._records: Queue[Record] = Queue(_MOST_WAITING)
        self._connected = connect(section, self._records)
        self._stopped = Event()

    def __enter__(self) -> Follower:
        self._source = self._connected.__enter__()
        self._source.start()
        self.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._stopped.set()
        self._source.stopped.set()
        # This ends the waiting of the source, since a process that ends while its library still waits is aborted.
        self._connected.__exit__(None, None, None)
        self._source.join(5.0)

    def run(self) -> None:
        """Take records until stopped."""
        while not self._stopped.is_set():
            try:
                record = self._records.get(timeout=_PATIENCE_S)
            except Empty:
                continue
            self._take(record)

    def _take(self, record: Record) -> None:
        observer = self._observer
        observer.take(record)
        for values in observer.pending["ownership"]:
            row = dict(zip(_COLUMNS, values, strict=True))
            # In the row's order, since a split removes the bundle before its children come.
            self.changes.extend((bundle, broker, row["ts"]) for bundle, broker in follow(self._owners, row).items())
        for rows in observer.pending.values():
            rows.clear()
        self.refused, self.reason = observer.refused["state"], observer.reasons.get("state")
        reason = observer.troubles.get("state")
        if reason is None:
            self.trouble = None
        elif self.trouble is None:
            self.trouble = reason, time.monotonic()
            self.losses += 1
        # Set last, since readers must see all changes first.
        if isinstance(record, CaughtUp):
            self.changes.append((None, None, record.ts_us))
            self.is_complete.set()

    def problem(self, allowed_s: float) -> str | None:
        """Explain why the owners are unknown, or have been for longer than allowed, None if they are known.

        Args:
            allowed_s: seconds for which the last known owners remain valid.
        """
        trouble = self.trouble
        if not self.is_complete.is_set():
            return f"the state topic has not been read to its end: {trouble[0] if trouble else 'it is being read'}"
        if trouble is None or (lost_s := time.monotonic() - trouble[1]) < allowed_s:
            return None
        return f"the state topic cannot be read since {lost_s:.0f} s: {trouble[0]}"
