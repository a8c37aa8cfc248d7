"""Keep a catalog in one SQLite file in WAL mode, which several processes may open.

Once `commit` has returned, its changes are on the disk, and neither a killed process nor a power failure undoes them.
Every topic has a row, so a catalog opens without a replay of its events. Only the last events are kept.

All changes saved between `begin` and `commit` are kept as a whole, and none of them after `rollback`. The file is open
twice. One connection is for writes and a transaction's reads of its own, the other for all other reads. So these do not
wait for another process, as `begin` does, and do not see an unfinished transaction. One thread at a time uses each. A
catalog without a file has a temporary one, to have both connections without other code or writes to the disk.
"""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import lru_cache
from pathlib import Path
from shutil import rmtree
from tempfile import mkdtemp
from typing import Any
from weakref import finalize

from pydantic import TypeAdapter

from lookup.errors import InputError, StateError
from lookup.model.catalog import TopicEntry, TopicEvent
from lookup.topics.catalog.naming import partition_number, prefixes_of, without_partition

__all__ = ["SqliteStorage"]

#: "PLtc": marks a catalog among SQLite files.
_APPLICATION_ID = 0x504C7463
_VERSION = 2
#: Rows that are read at once, so that their pairs are decoded by one call.
_BATCH = 1_000
#: FULL writes the log to the disk with every transaction. NORMAL would lose the last ones in a power failure.
_SYNCHRONOUS = "FULL"
#: Labels or properties of topics.
_PAIRS = TypeAdapter(list[dict[str, str]])
_TABLES = """
CREATE TABLE namespaces (name TEXT PRIMARY KEY) WITHOUT ROWID, STRICT;
CREATE TABLE topics (name TEXT PRIMARY KEY, properties TEXT NOT NULL, labels TEXT NOT NULL) WITHOUT ROWID, STRICT;
CREATE TABLE events (revision INTEGER PRIMARY KEY, kind TEXT NOT NULL, topic TEXT NOT NULL, old TEXT NOT NULL,
    new TEXT NOT NULL, properties TEXT NOT NULL) STRICT;
CREATE TABLE identity (id TEXT NOT NULL) STRICT;
INSERT INTO identity VALUES (lower(hex(randomblob(8))));
"""


class SqliteStorage:
    """Namespaces, topics and the last events in one file.

    Args:
        path: path of the file, made if it is missing. None is a temporary one, deleted with this object.
        n_events: number of events that are kept, at least one, for followers that missed some.
        lock_timeout_s: time to wait for another process that writes to the file, s.
        must_exist: whether a missing file is a mistake.

    Raises:
        InputError: if the file is missing or a folder, cannot be opened, or is no catalog.
    """

    def __init__(
        self,
        path: Path | str | None = None,
        *,
        n_events: int = 1_000_000,
        lock_timeout_s: float = 5.0,
        must_exist: bool = False,
    ) -> None:
        folder = mkdtemp(prefix="catalog-") if path is None else None
        self._path = Path(folder or "", path or "topics.db")
        self._synchronous = _SYNCHRONOUS if folder is None else "OFF"
        self._n_events = n_events
        #: of the last event before the transaction under way, and of the last one in it
        self._begun = self._saved = 0
        self._lock_timeout_s = lock_timeout_s
        if self._path.is_dir():
            raise InputError(f"the catalog {self._path} is a folder; name a file, such as {self._path / 'topics.db'}")
        # SQLite treats an empty file as a new database. Here it is a catalog that was never written.
        if must_exist and not (self._path.is_file() and self._path.stat().st_size):
            raise InputError(f"there is no catalog {self._path}; a topic that is created makes one")
        self._open()
        self._closing = finalize(self, _close, folder, self._reader, self._writer)

    @property
    def revision(self) -> int:
        """The revision of the last event that any process has kept."""
        return int(self._run_query("SELECT coalesce(max(revision), 0) FROM events").fetchone()[0])

    def namespaces(self) -> Iterable[str]:
        """Read the namespaces."""
        return [name for (name,) in self._run_query("SELECT name FROM namespaces")]

    def entries(self) -> Iterator[TopicEntry]:
        """Yield the topics, in the order of names, none of them loaded."""
        rows = self._run_query("SELECT name, properties, labels FROM topics ORDER BY name")
        with self._raise_sentences():
            while batch := rows.fetchmany(_BATCH):
                names, properties, labels = zip(*batch, strict=True)
                for entry in zip(names, _all_pairs(properties), _all_pairs(labels), strict=True):
                    yield TopicEntry(*entry)

    def events_since(self, revision: int) -> Iterable[TopicEvent]:
        """Read the events after a revision, in order, one at a time."""
        row = self._run_query("SELECT count(*), max(revision) FROM events WHERE revision > ?", revision).fetchone()
        # Without events the revision is read by a second statement, and another process may have written in between.
        n_kept, current = row[0], row[1] or self.revision
        if not 0 <= revision <= current:
            raise StateError(f"there is no revision {revision}: the catalog is at {current}")
        if n_kept and n_kept < current - revision:
            raise StateError(
                f"of the {current - revision} events since revision {revision} only the last {n_kept} are kept"
            )
        return self._events(revision, row[1] or revision)

    def _events(self, after: int, until: int) -> Iterator[TopicEvent]:
        rows = self._run_query(
            "SELECT * FROM events WHERE revision > ? AND revision <= ? ORDER BY revision", after, until
        )
        with self._raise_sentences():
            for number, kind, topic, old, new, properties in rows:
                yield TopicEvent(number, kind, topic, _pairs(old), _pairs(new), _pairs(properties))

    @contextmanager
    def reading(self) -> Iterator[None]:
        """Answer every question of the block from one revision."""
        # A block before this one may have been interrupted while it ended.
        self._reader.rollback()
        try:
            self._run_query("BEGIN")
            yield
        finally:
            self._reader.rollback()

    @property
    def is_writing(self) -> bool:
        """Whether a transaction is under way."""
        return self._writer.in_transaction

    def begin(self) -> None:
        """Keep other writers out, or raise InputError if one lasts longer than `lock_timeout_s`."""
        self.rollback()
        # IMMEDIATE takes the lock now, since a transaction that reads first and writes later may be too late.
        self._write("BEGIN IMMEDIATE")
        self._begun = self._saved = self._write("SELECT coalesce(max(revision), 0) FROM events").fetchone()[0]

    def save(self, event: TopicEvent, entry: TopicEntry | None) -> None:
        """Keep the next event and the state of its topic or namespace, and delete a surplus event.

        Args:
            event: its revision is set here.
            entry: its topic afterwards, None if it was deleted or the event is not of a topic.
        """
        self._saved += 1
        pairs = map(_write_pairs_text, (event.old, event.new, event.properties))
        self._write("INSERT INTO events VALUES (?, ?, ?, ?, ?, ?)", self._saved, event.kind, event.topic, *pairs)
        # The transaction's own events are left out, since memory follows by these.
        self._write("DELETE FROM events WHERE revision <= ?", min(self._begun, self._saved - self._n_events))
        if entry is not None:
            pairs = map(_write_pairs_text, (entry.properties, entry.labels))
            self._write("INSERT OR REPLACE INTO topics VALUES (?, ?, ?)", entry.name, *pairs)
        elif event.kind == "namespace-created":
            self._write("INSERT OR IGNORE INTO namespaces VALUES (?)", event.topic)
        elif event.kind == "namespace-deleted":
            self._write("DELETE FROM namespaces WHERE name = ?", event.topic)
        else:
            self._write("DELETE FROM topics WHERE name = ?", event.topic)

    def has_namespace(self, namespace: str) -> bool:
        """Check whether a namespace exists in the current transaction."""
        return self._write("SELECT 1 FROM namespaces WHERE name = ?", namespace).fetchone() is not None

    def names(self, namespace: str) -> Sequence[str]:
        """List the topics of a namespace, sorted, in the current transaction."""
        return [name for prefix in sorted(prefixes_of(namespace, "all")) for name in self._list_names_from(prefix)]

    def entry(self, topic: str) -> TopicEntry | None:
        """Read one topic in the current transaction, None if there is none."""
        row = self._write("SELECT properties, labels FROM topics WHERE name = ?", topic).fetchone()
        with self._raise_sentences():
            return None if row is None else TopicEntry(topic, _pairs(row[0]), _pairs(row[1]))

    def partitions(self, whole: str) -> Sequence[str]:
        """List the partitions of a topic by number in the current transaction, empty if it is not partitioned."""
        names = (name for name in self._list_names_from(f"{whole}-partition-") if without_partition(name) == whole)
        return sorted(names, key=lambda name: partition_number(name) or 0)

    def commit(self) -> None:
        """Write the saved changes to the disk. If this raises, none is kept."""
        self._write("COMMIT")

    def rollback(self) -> None:
        """Discard the saved changes."""
        # SQLite has already rolled back after some errors, a full disk among them.
        if self.is_writing:
            self._writer.rollback()

    def close(self) -> None:
        """Close the file. No other method may be called afterwards."""
        self._closing()

    def _open(self) -> None:
        self._writer = self._reader = self._connect_file()
        try:
            self._prepare()
            self._reader = self._connect_file()
        except BaseException:
            _close(None, self._reader, self._writer)
            raise

    def _connect_file(self) -> sqlite3.Connection:
        with self._raise_sentences():
            # Used by all threads of a catalog, which has a lock for each connection.
            return sqlite3.connect(
                self._path, timeout=self._lock_timeout_s, isolation_level=None, check_same_thread=False
            )

    def _prepare(self) -> None:
        # Tables are made before the mark. A process that makes them meanwhile makes both in one transaction.
        has_tables = self._has_tables()
        if has_tables and self._write("PRAGMA application_id").fetchone()[0] != _APPLICATION_ID:
            raise InputError(f"{self._path} is an SQLite file, but no catalog of topics")
        self._write(f"PRAGMA synchronous = {self._synchronous}")
        self._write("PRAGMA journal_mode = WAL")
        if not has_tables:
            self._write("BEGIN IMMEDIATE")
            # A second process may have made them since they were counted.
            if not self._has_tables():
                for statement in _TABLES.split(";")[:-1]:
                    self._write(statement)
                self._write(f"PRAGMA application_id = {_APPLICATION_ID}")
                self._write(f"PRAGMA user_version = {_VERSION}")
            self.commit()
        version = self._write("PRAGMA user_version").fetchone()[0]
        #: id of the file, which a new catalog in its place does not share, empty if it is older than ids
        self.identity = ""
        if self._write("SELECT 1 FROM sqlite_schema WHERE name = 'identity'").fetchone():
            self.identity = self._write("SELECT id FROM identity").fetchone()[0]
        if version != _VERSION:
            raise InputError(f"{self._path} is a catalog of version {version}; this release reads version {_VERSION}")

    def _has_tables(self) -> bool:
        return bool(self._write("SELECT count(*) FROM sqlite_schema").fetchone()[0])

    def _list_names_from(self, beginning: str) -> list[str]:
        # The end of the range is the beginning with the character after its last one.
        end = beginning[:-1] + chr(ord(beginning[-1]) + 1)
        rows = self._write("SELECT name FROM topics WHERE name >= ? AND name < ? ORDER BY name", beginning, end)
        return [name for (name,) in rows]

    def _run_query(self, statement: str, *values: Any) -> sqlite3.Cursor:
        with self._raise_sentences():
            return self._reader.execute(statement, values)

    def _write(self, statement: str, *values: Any) -> sqlite3.Cursor:
        with self._raise_sentences():
            return self._writer.execute(statement, values)

    @contextmanager
    def _raise_sentences(self) -> Iterator[None]:
        try:
            yield
        except sqlite3.Error as error:
            raise InputError(f"the catalog {self._path} cannot be used: {error}") from error
        # Of pydantic, or of rows with other numbers of pairs.
        except ValueError:
            problem = "labels or properties of a topic are no pairs of texts"
            raise InputError(f"the catalog {self._path} was changed by another program: {problem}") from None


def _close(folder: str | None, *connections: sqlite3.Connection) -> None:
    for connection in connections:
        connection.close()
    if folder is not None:
        rmtree(folder, ignore_errors=True)


def _write_pairs_text(pairs: Mapping[str, str]) -> str:
    return json.dumps(dict(pairs), ensure_ascii=False, separators=(",", ":"), sort_keys=True) if pairs else "{}"


# Most topics share their pairs with others. A returned mapping is never changed.
@lru_cache(maxsize=1 << 12)
def _pairs(text: str) -> Mapping[str, str]:
    return _PAIRS.validate_json(f"[{text}]")[0]


def _all_pairs(texts: Iterable[str]) -> Sequence[Mapping[str, str]]:
    # There is one call per batch, since for short texts a call costs more than their decoding.
    return _PAIRS.validate_json(f"[{','.join(texts)}]")
