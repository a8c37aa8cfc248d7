"""Record lookups, decisions and views in rolling Parquet files, each of which is complete when it appears.

Rows wait in memory until the next flush, so a crash loses one interval at most. While nothing can be written, as on a
full disk, no lookups are accepted, and brokers keep them. Others wait up to a bound, the rest is lost and counted.
"""

from __future__ import annotations

import fcntl
import json
from collections import Counter
from collections.abc import Mapping, Sequence
from contextlib import ExitStack, suppress
from itertools import count
from pathlib import Path
from threading import Lock
from typing import Any

import pyarrow as pa

from lookup.engine.owners import OwnerChange
from lookup.errors import InputError
from lookup.logs.outputs import keep_on_disk, named_refusals
from lookup.logs.schema import CANONICAL, OWNER_CHANGES, SERVED_DECISIONS, VIEWS, RollingFiles
from lookup.logs.sources import open_parquet
from lookup.model.recent import Recent
from lookup.model.time import time_text
from lookup.serve.deciding import PolicyAnswer
from lookup.serve.messages import RecordMessage
from lookup.serve.senders import Mark, SenderNumbers
from lookup.serve.views import View

__all__ = ["TABLES", "Recorder"]

#: Tables of a record, each in a folder of its name, in the order of writing. The target of a row's reference appears
#: before the row, also for readers while the server runs.
TABLES: Mapping[str, pa.Schema] = {
    "owner_changes": OWNER_CHANGES,
    "views": VIEWS,
    "brokers": CANONICAL["brokers"],
    "loads": CANONICAL["loads"],
    "decisions": SERVED_DECISIONS,
    "lookups": CANONICAL["lookups"],
}
#: Bundles whose last decision is remembered, for the propensity of the lookups that follow.
_MOST_BUNDLES = 200_000
#: Views that are known to be recorded.
_MOST_VIEWS = 10_000
#: Names the folder in sentences for operators.
_KEY = "serving.record"
#: In the metadata of a file of lookups, the position of each broker at its last row.
_SENDERS = b"lookup.senders"
#: Rows of one file at most, as many as memory holds well while it is written.
_ROWS_PER_FILE = 100_000


class Recorder:
    """A recorder that collects rows, and writes them when flushed. Rows may be added while it writes.

    Args:
        folder: folder of the record, which may hold earlier records.
        run: makes the names of files differ between runs of the server.
        max_pending: greatest number of waiting rows. Above it no lookups are accepted, and no rows of other tables.
    """

    def __init__(self, folder: str, cluster: str, run: str, max_pending: int) -> None:
        self.folder, self._cluster, self._run = Path(folder), cluster, run
        self.max_pending = max_pending
        #: rows lost because too many waited, and rows written, by table
        self.lost: Counter[str] = Counter()
        self.written: Counter[str] = Counter()
        #: why the last flush failed, None if it did not
        self.failure: str | None = None
        self._pending: dict[str, list[tuple[Any, ...]]] = {table: [] for table in TABLES}
        self._files = RollingFiles(folder, TABLES)
        self._numbers, self._seq = count(1), count(1)
        self._writing = Lock()
        #: broker and propensity of the last decision that was carried out, by bundle
        self._chosen: Recent[str, tuple[str, float]] = Recent(_MOST_BUNDLES)
        self._views: Recent[str, None] = Recent(_MOST_VIEWS)
        #: lookup data of every broker that is registered, and time of its last load report in ms
        self._registered: dict[str, str] = {}
        self._reported: dict[str, int] = {}
        #: positions of brokers in the accepted lookups, and in the written ones
        self.senders, self._written_senders = SenderNumbers(), SenderNumbers()
        #: of each lookup that waits
        self._marks: list[Mark] = []
        self._lock = ExitStack()

    def prepare(self) -> None:
        """Make the folder and try to write in it, or raise InputError."""
        with named_refusals(str(self.folder), _KEY), ExitStack() as stack:
            self.folder.mkdir(parents=True, exist_ok=True)
            # Held to the end of the server, for any kind of end, since the files of two servers would not fit together.
            lock = stack.enter_context((self.folder / ".lock").open("a"))
            try:
                fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                raise InputError(
                    f"{self.folder}: another server records there; wait for its end, or name another folder"
                ) from None
            self._files.remove_hidden()
            self._resume_counts()
            trial = self.folder / f".trial-{self._run}"
            trial.mkdir()
            trial.rmdir()
            self._lock = stack.pop_all()
        # Arrow's first array loads pandas, if installed, which takes a second or more, so not while brokers wait.
        pa.array([0])

    def _resume_counts(self) -> None:
        """Count lost lookups from where the latest file leaves off, as far as one can be read."""
        files = (self.folder / "lookups").glob("part-*.parquet")
        for file in sorted(files, key=lambda file: (file.stat().st_mtime_ns, file.name))[-1:]:
            with suppress(InputError, KeyError, TypeError, ValueError), open_parquet(str(file)) as parquet:
                text = (parquet.metadata.metadata or {}).get(_SENDERS, b"").decode() or None
                self.senders, self._written_senders = SenderNumbers(text), SenderNumbers(text)

    @property
    def pending(self) -> int:
        """How many rows wait."""
        return sum(map(len, self._pending.values()))

    @property
    def refusal(self) -> str | None:
        """The reason why lookups cannot be stored now, None if they can."""
        if self.failure is None and self.pending >= self.max_pending:
            return f"serving.max_pending_rows: {self.pending} rows wait to be written to {self.folder}"
        return self.failure

    def add_lookups(self, message: RecordMessage) -> tuple[int, bool]:
        """Record new lookups. Return their number, and whether they are the first of a start with numbers."""
        rows, is_new = self.senders.take(message)
        for bundle, values, mark in rows:
            # A lookup that got the owner of the bundle's last decision has its propensity.
            broker, propensity = self._chosen.get(bundle, (None, None))
            row = {**values, "cluster": self._cluster, "seq": next(self._seq)}
            if broker is not None and values.get("broker") == broker:
                row["propensity"] = propensity
            # Before its row, of which a flush takes as many marks.
            self._marks.append(mark)
            self._pending["lookups"].append(tuple(row.get(name) for name in TABLES["lookups"].names))
        return len(rows), is_new and bool(rows and message.start)

    def add_decision(self, answer: PolicyAnswer, row: Sequence[Any], *, is_carried: bool) -> None:
        """Record a decision, as a row of SERVED_DECISIONS, after its view."""
        self._add("decisions", row)
        bundle = answer.message.request.bundle
        if is_carried and answer.broker is not None and answer.propensity is not None:
            self._chosen.put(bundle, (answer.broker, answer.propensity))

    def knows(self, view: View) -> bool:
        """Check whether a view has been recorded."""
        return view.reference in self._views

    def add_view(self, view: View, current: Sequence[View]) -> None:
        """Record a view, and its new data as BROKERS and LOADS.

        Args:
            current: the latest view of every requesting broker. A broker in none of them is not registered any more.
        """
        self._views.put(view.reference, None)
        for broker, (data, load) in view.records.items():
            self._add("views", (self._cluster, view.ts_us, view.reference, broker, data, load))
        for broker, (data, load) in view.records.items():
            if self._registered.get(broker) != data:
                event = "updated" if broker in self._registered else "registered"
                self._registered[broker] = data
                self._add("brokers", (view.ts_us, self._cluster, broker, event, data))
            if load is not None:
                # Brokers see a report one after another, so an older one must not follow a newer one.
                reported = json.loads(load).get("updatedAt") or 0
                if reported > self._reported.get(broker, -1):
                    self._reported[broker] = reported
                    self._add("loads", (view.ts_us, self._cluster, broker, load))
        for broker in sorted(self._registered.keys() - {name for other in current for name in other.records}):
            del self._registered[broker]
            self._add("brokers", (view.ts_us, self._cluster, broker, "unregistered", None))

    def add_owner_change(self, change: OwnerChange, ts_us: int) -> bool:
        """Record a change of owners. Return whether there was room for it."""
        return self._add("owner_changes", (self._cluster, ts_us, *change))

    def _add(self, table: str, row: Sequence[Any]) -> bool:
        if self.pending >= self.max_pending:
            self.lost[table] += 1
            # A view whose rows are incomplete is recorded again with the next decision on it.
            if table == "views":
                self._views.pop(str(row[2]), None)
            return False
        self._pending[table].append(tuple(row))
        return True

    def describe(self, reference: str, document: Mapping[str, Any]) -> None:
        """Write the document that describes policies, under the reference that decisions have of it."""
        target = self.folder / "settings" / f"{reference}.json"
        with named_refusals(str(self.folder), _KEY):
            target.parent.mkdir(parents=True, exist_ok=True)
            hidden = target.with_name(f".{target.name}.{self._run}")
            try:
                hidden.write_text(json.dumps(document, indent=2, sort_keys=True) + "\n", encoding="utf-8")
                keep_on_disk(hidden)
                hidden.replace(target)
            finally:
                hidden.unlink(missing_ok=True)

    def close(self) -> None:
        """Let another server record in the folder."""
        self._lock.close()

    def flush(self) -> None:
        """Write the waiting rows, a file for each table. Rows that cannot be written remain waiting."""
        with self._writing:
            # Counted backwards, and written forwards, so a later row with a reference waits together with its target.
            waiting = {table: len(self._pending[table]) for table in reversed([*TABLES])}
            for table, pending in self._pending.items():
                for _ in range(0, waiting[table], _ROWS_PER_FILE):
                    # Rows are only removed here, and others only appended, so the first ones stay the first.
                    rows = pending[: min(waiting[table], _ROWS_PER_FILE)]
                    marks = self._marks[: len(rows)] if table == "lookups" else []
                    for mark in marks:
                        self._written_senders.note(mark)
                    try:
                        # With the day of its first row, so that old days can be removed by their names.
                        day = time_text(rows[0][TABLES[table].names.index("ts")])[:10]
                        name = f"part-{self._run}-{next(self._numbers):06d}-{day}.parquet"
                        metadata = {_SENDERS: self._written_senders.text()} if marks else None
                        with named_refusals(f"{self.folder}/{table}/{name}", _KEY):
                            self._files.write(table, name, rows, metadata)
                    except (OSError, InputError, OverflowError, ValueError, pa.ArrowException) as error:
                        self.failure = str(error)
                        return
                    del pending[: len(rows)], self._marks[: len(marks)]
                    waiting[table] -= len(rows)
                    self.written[table] += len(rows)
            self.failure = None
