"""Watch the owners of bundles while they are moved, and when brokers last reported their load.

Owners come from the state topic. The sources are those of `lookup collect`, and the observer interprets their records.
Everything happens in the caller's thread when it calls `look`.
"""

from __future__ import annotations

import time
from collections import Counter
from queue import Empty, Queue
from typing import Any

from lookup.collect.observing import CaughtUp, Observer, Record, follow
from lookup.errors import InputError
from lookup.logs.columns import TABLES
from lookup.moving.state import Owned

__all__ = ["OwnerWatch"]

_COLUMNS = {table: [column.name for column in TABLES[table]] for table in ("ownership", "loads")}


class OwnerWatch:
    """A tracker of the owners of all bundles by records of the state topic and of load reports."""

    def __init__(self, cluster: str, records: Queue[Record]) -> None:
        self._observer = Observer(cluster)
        self._records = records
        self._owners: dict[str, str] = {}
        self._since_us: dict[str, int] = {}
        self._is_complete = False
        #: how often each bundle was given up by an owner
        self.releases: Counter[str] = Counter()
        #: bundles that were split
        self.split: set[str] = set()
        #: when each broker's latest report of its load arrived, of the monotonic clock
        self.reported: dict[str, float] = {}
        #: when the watch began, of the monotonic clock
        self.began = time.monotonic()

    def look(self, within_s: float = 0.0) -> None:
        """Read all new records. If there are none, wait for one up to some seconds."""
        try:
            record = self._records.get(timeout=within_s) if within_s else self._records.get_nowait()
            while True:
                self._take_record(record)
                record = self._records.get_nowait()
        except Empty:
            return

    def _take_record(self, record: Record) -> None:
        self._observer.take(record)
        pending = self._observer.pending
        for row in self._rows("ownership"):
            if row["event"] == "split":
                self.split.add(row["bundle"])
            if row["event"] != "owned":
                self.releases[row["bundle"]] += 1
            for bundle, broker in follow(self._owners, row).items():
                if broker is not None:
                    self._since_us[bundle] = row["ts"]
        for row in self._rows("loads"):
            self.reported[row["broker"]] = time.monotonic()
        for rows in pending.values():
            rows.clear()
        self._is_complete = self._is_complete or isinstance(record, CaughtUp)

    def _rows(self, table: str) -> list[dict[str, Any]]:
        return [dict(zip(_COLUMNS[table], values, strict=True)) for values in self._observer.pending[table]]

    def owner(self, bundle: str) -> Owned | None:
        """Look up the owner of a bundle, None if it has none, for example during a transfer."""
        broker = self._owners.get(bundle)
        return None if broker is None else Owned(broker, self._since_us[bundle])

    @property
    def trouble(self) -> str | None:
        """The reason why the state topic cannot be read, None while it can."""
        return self._observer.troubles.get("state")

    def settle(self, within_s: float) -> None:
        """Wait until the state topic has been read to its end, or raise InputError if that takes longer."""
        deadline = time.monotonic() + within_s
        while not self._is_complete:
            if time.monotonic() > deadline:
                reason = self.trouble or "it is still being read"
                raise InputError(
                    f"owners of bundles are not known after {within_s:g} s: the state topic cannot be read, {reason}"
                )
            self.look(0.1)
