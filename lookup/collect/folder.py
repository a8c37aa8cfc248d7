"""Keep the files of a record: Parquet files that roll, each complete when it appears; read how an earlier record ends.

    FOLDER/brokers, loads, bundles, ownership   canonical tables, part-000001.parquet and so on
    FOLDER/journal                              how the record was made: started, stopped, gap, leader, lost, back
    namespaces.toml                             bundles of each namespace when it was first seen, as settings have them

Every file says in its metadata until when the record is complete, and files of OWNERSHIP which message of the state
topic was the last: both arrive with the rows or not at all.
"""

from __future__ import annotations

import fcntl
import json
import tomllib
from collections.abc import Mapping, Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import IO, Any

import pyarrow as pa

from lookup.collect.observing import COLLECTED, JOURNAL, Past, Position, follow
from lookup.errors import InputError
from lookup.logs.outputs import named_refusals
from lookup.logs.rolling import RollingFiles, keep_on_disk
from lookup.logs.schema import CANONICAL
from lookup.logs.sources import open_parquet
from lookup.model.sentences import Argument, Sentence

__all__ = ["RecordFolder"]

_TS = pa.timestamp("us", tz="UTC")
_SCHEMAS: Mapping[str, pa.Schema] = {
    **{table: CANONICAL[table] for table in COLLECTED},
    "journal": pa.schema([(name, _TS if name in ("ts", "since") else pa.string()) for name in JOURNAL]),
}
_UNTIL, _POSITION = b"lookup.until_us", b"lookup.position"


class RecordFolder:
    """The folder of one record; a context, in which no other process can record into it.

    Raises:
        InputError: if the folder holds something else, cannot be written, or another process records into it.
    """

    def __init__(self, path: str) -> None:
        self.path = Path(path)
        self._lock: IO[str] | None = None
        self._files = RollingFiles(self.path, _SCHEMAS)
        #: number of each table's next file
        self._next: dict[str, int] = {}
        self._namespaces = 0

    def __enter__(self) -> RecordFolder:
        output = str(self.path)
        with named_refusals(output), ExitStack() as undone:
            if self.path.is_dir() and any(self.path.iterdir()) and not (self.path / "journal").is_dir():
                advice = "holds no record of `lookup collect`; name a folder that does, or that does not exist"
                raise InputError(Sentence(Argument("output"), f": {output} is not empty and {advice}"))
            # Before the tables: a folder with the journal is a record, however early the process was killed.
            for table in ("journal", *COLLECTED):
                (self.path / table).mkdir(parents=True, exist_ok=True)
            self._lock = undone.enter_context((self.path / ".lock").open("a"))
            try:
                fcntl.flock(self._lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                advice = "another process records into it; name another folder"
                raise InputError(Sentence(Argument("output"), f": {output}: {advice}")) from None
            self._files.remove_hidden()
            for table in _SCHEMAS:
                parts = self._parts(table)
                self._next[table] = int(parts[-1].stem.partition("-")[2]) + 1 if parts else 1
                if not parts:
                    # An evaluation refuses a table without files, and reads one without rows.
                    self._write_part(table, [], {})
            undone.pop_all()
        return self

    def __exit__(self, *_: object) -> None:
        if self._lock is not None:
            self._lock.close()

    def _parts(self, table: str) -> list[Path]:
        # By number: more than a million files have names of another length.
        numbers: dict[Path, int] = {}
        for part in (self.path / table).glob("part-*.parquet"):
            number = part.stem.partition("-")[2]
            if not (number.isascii() and number.isdigit()):
                raise InputError(Sentence(Argument("output"), f": {part} is no file of this record; move it elsewhere"))
            numbers[part] = int(number)
        return sorted(numbers, key=numbers.__getitem__)

    def past(self, cluster: str) -> Past:
        """Return what the record ends with.

        Raises:
            InputError: if it is a record of another cluster, or a file cannot be read.
        """
        past = Past()
        for table in _SCHEMAS:
            parts = self._parts(table)
            # Of the other tables the last file says how far they are; a record of weeks has many files.
            for part in parts if table in ("brokers", "ownership") else parts[-1:]:
                self._take_part(table, part, past, cluster)
        listed = self.path / "namespaces.toml"
        if listed.exists():
            try:
                entries = tomllib.loads(listed.read_text(encoding="utf-8"))["namespaces"]
                past.boundaries = {
                    entry["name"]: tuple(int(end, 16) for end in entry["boundaries"]) for entry in entries
                }
            except (OSError, ValueError, TypeError, KeyError) as error:
                what = f": {listed} is not what `lookup collect` wrote: {error}; name another folder"
                raise InputError(Sentence(Argument("output"), what)) from None
        self._namespaces = len(past.boundaries)
        return past

    def _take_part(self, table: str, part: Path, past: Past, cluster: str) -> None:
        with open_parquet(str(part)) as parquet:
            metadata = parquet.metadata.metadata or {}
            rows = [] if table in ("loads", "bundles") else parquet.read(use_threads=False).to_pylist()
        if _UNTIL in metadata:
            past.until_us = max(int(metadata[_UNTIL]), past.until_us or 0)
        if _POSITION in metadata:
            ledger, entry, index = json.loads(metadata[_POSITION])
            past.position = ledger, entry, index
        for row in rows:
            if row["cluster"] != cluster:
                what = f"is a record of cluster {row['cluster']!r}, not of {cluster!r}"
                raise InputError(Sentence(Argument("output"), f": {self.path} {what}; name another folder"))
            if table == "ownership":
                follow(past.owners, row)
                if row["event"] == "split":
                    namespace = row["bundle"].rpartition("/")[0]
                    past.cuts.setdefault(namespace, set()).update(int(text, 16) for text in row["boundaries"])
            elif table == "brokers" and row["event"] == "unregistered":
                past.brokers.pop(row["broker"], None)
            elif table == "brokers":
                past.brokers[row["broker"]] = row["lookup_data"]

    def write(self, table: str, rows: Sequence[tuple[Any, ...]], *, until_us: int, position: Position | None) -> None:
        """Write the next file of a table, without its rows if that fails.

        Raises:
            OSError: if it cannot be written; nothing has appeared then.
        """
        metadata = {_UNTIL: str(until_us)}
        if table == "ownership" and position is not None:
            metadata[_POSITION] = json.dumps(position)
        self._write_part(table, rows, metadata)

    def _write_part(self, table: str, rows: Sequence[tuple[Any, ...]], metadata: Mapping[bytes, str]) -> None:
        self._files.write(table, {f"part-{self._next[table]:06d}.parquet": rows}, metadata)
        self._next[table] += 1

    def write_namespaces(self, boundaries: Mapping[str, Sequence[int]]) -> None:
        """Write the bundles of namespaces, as `[[namespaces]]` of an evaluation has them, if there are new ones."""
        if len(boundaries) == self._namespaces:
            return
        lines = ["# Bundles of each namespace when `lookup collect` first saw it; later splits are in OWNERSHIP."]
        for name, ends in sorted(boundaries.items()):
            texts = ", ".join(f'"0x{end:08x}"' for end in ends)
            lines += ["", "[[namespaces]]", f"name = {json.dumps(name, ensure_ascii=False)}", f"boundaries = [{texts}]"]
        hidden = self.path / ".namespaces.toml"
        hidden.write_text("\n".join([*lines, ""]), encoding="utf-8")
        keep_on_disk(hidden)
        hidden.replace(self.path / "namespaces.toml")
        self._namespaces = len(boundaries)
