"""Keep the rolling Parquet files of a record, and read the end of an earlier record.

Each file is complete when it appears.
    FOLDER/brokers, loads, bundles, ownership   canonical tables, part-000001.parquet and so on
    FOLDER/journal                              history of the record: started, stopped, gap, lost, back
    namespaces.toml                             bundles of each namespace when it was first seen, as in settings

Every file has in its metadata the instant until which the record is complete, and files of OWNERSHIP the last message
of the state topic. Both arrive with the rows or not at all.
"""

from __future__ import annotations

import fcntl
import json
from collections.abc import Mapping, Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import IO, Any

import pyarrow as pa
from pyarrow.fs import FileSelector

from lookup.collect.observing import COLLECTED, JOURNAL, Past, Position, follow
from lookup.errors import Argument, InputError
from lookup.logs.outputs import named_refusals, write_beside
from lookup.logs.schema import CANONICAL, RollingFiles, schema_of
from lookup.logs.sources import has_folders, locate, open_parquet
from lookup.model.documents import toml_table

__all__ = ["RecordFolder"]

_SCHEMAS: Mapping[str, pa.Schema] = {**{table: CANONICAL[table] for table in COLLECTED}, "journal": schema_of(JOURNAL)}
_UNTIL, _POSITION = b"lookup.until_us", b"lookup.position"


class RecordFolder:
    """The folder of one record, and a context in which no other process can record into it.

    An object store does not have locks. There the second of two processes is refused when it would overwrite a file.

    Args:
        path: path or URI.

    Raises:
        InputError: if the folder has other content, cannot be written, or another process records into it.
    """

    def __init__(self, path: str) -> None:
        self.path = path.rstrip("/") or "/"
        self._system, self._root = locate(path)
        self._lock: IO[str] | None = None
        self._files = RollingFiles(path, _SCHEMAS)
        #: number of each table's next file
        self._next: dict[str, int] = {}
        self._namespaces = 0

    def __enter__(self) -> RecordFolder:
        with named_refusals(self.path), ExitStack() as undone:
            there = self._list_names_in("")
            if there and "journal" not in there:
                advice = "holds no record of `lookup collect`; name a folder that does, or that does not exist"
                raise InputError(Argument("output"), f": {self.path} is not empty and {advice}")
            if has_folders(self._system):
                # The journal comes before the tables, so a folder with it is a record, however early a kill comes.
                for table in ("journal", *COLLECTED):
                    self._system.create_dir(f"{self._root}/{table}", recursive=True)
                self._lock = undone.enter_context(Path(self._root, ".lock").open("a"))
                try:
                    fcntl.flock(self._lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
                except BlockingIOError:
                    raise self._build_in_use_error() from None
            self._files.remove_hidden()
            for table in ("journal", *COLLECTED):
                parts = self._list_parts(table)
                self._next[table] = _number(parts[-1]) + 1 if parts else 1
                if not parts:
                    # An evaluation refuses a table without files, and reads one without rows.
                    self._write_part(table, [], {})
            undone.pop_all()
        return self

    def __exit__(self, *_: object) -> None:
        if self._lock is not None:
            self._lock.close()

    def _build_in_use_error(self) -> InputError:
        advice = "another process records into it; name another folder"
        return InputError(Argument("output"), f": {self.path}: {advice}")

    def _list_names_in(self, table: str) -> list[str]:
        folder = f"{self._root}/{table}".rstrip("/")
        return [info.base_name for info in self._system.get_file_info(FileSelector(folder, allow_not_found=True))]

    def _list_parts(self, table: str) -> list[str]:
        parts = [name for name in self._list_names_in(table) if name.startswith("part-") and name.endswith(".parquet")]
        strange = next((name for name in parts if _number(name) < 0), None)
        if strange is not None:
            problem = f": {self.path}/{table}/{strange} is not a file of this record; move it elsewhere"
            raise InputError(Argument("output"), problem)
        # Files are sorted by number, since beyond a million files the names have another length.
        return sorted(parts, key=_number)

    def past(self, cluster: str) -> Past:
        """Read the end of the record.

        Raises:
            InputError: if it is a record of another cluster, or a file cannot be read.
        """
        past = Past()
        for table in _SCHEMAS:
            parts = self._list_parts(table)
            # Of the other tables only the last file is read, which has their end, since a record of weeks has many.
            for part in parts if table in ("brokers", "ownership") else parts[-1:]:
                self._take_part(table, f"{self.path}/{table}/{part}", past, cluster)
        if "namespaces.toml" in self._list_names_in(""):
            try:
                with self._system.open_input_file(f"{self._root}/namespaces.toml") as stream:
                    entries = toml_table(stream.read().decode())["namespaces"]
                past.boundaries = {
                    entry["name"]: tuple(int(end, 16) for end in entry["boundaries"]) for entry in entries
                }
            except (OSError, ValueError, TypeError, KeyError) as error:
                fault = f": {self.path}/namespaces.toml is not a file of `lookup collect`: {error}; name another folder"
                raise InputError(Argument("output"), fault) from None
        self._namespaces = len(past.boundaries)
        return past

    def _take_part(self, table: str, part: str, past: Past, cluster: str) -> None:
        with open_parquet(part) as parquet:
            metadata = parquet.metadata.metadata or {}
            rows = [] if table in ("loads", "bundles") else parquet.read(use_threads=False).to_pylist()
        if _UNTIL in metadata:
            past.until_us = max(int(metadata[_UNTIL]), past.until_us or 0)
        if _POSITION in metadata:
            ledger, entry, index = json.loads(metadata[_POSITION])
            past.position = ledger, entry, index
        for row in rows:
            if row["cluster"] != cluster:
                problem = f"is a record of cluster {row['cluster']!r}, not of {cluster!r}"
                raise InputError(Argument("output"), f": {self.path} {problem}; name another folder")
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
        """Write the next file of a table.

        Raises:
            OSError: if it cannot be written, and then no file has appeared.
        """
        metadata = {_UNTIL: str(until_us)}
        if table == "ownership" and position is not None:
            metadata[_POSITION] = json.dumps(position)
        self._write_part(table, rows, metadata)

    def _write_part(self, table: str, rows: Sequence[tuple[Any, ...]], metadata: Mapping[bytes, str]) -> None:
        name = f"part-{self._next[table]:06d}.parquet"
        if self._lock is None and self._system.get_file_info(f"{self._root}/{table}/{name}").is_file:
            raise self._build_in_use_error()
        self._files.write(table, name, rows, metadata)
        self._next[table] += 1

    def write_namespaces(self, boundaries: Mapping[str, Sequence[int]]) -> None:
        """Write the bundles of namespaces, as `[[namespaces]]` of an evaluation has them, if there are new ones."""
        if len(boundaries) == self._namespaces:
            return
        lines = [
            "# Bundles of each namespace when `lookup collect` first saw it, the latest last; OWNERSHIP has splits."
        ]
        for name, ends in boundaries.items():
            texts = ", ".join(f'"0x{end:08x}"' for end in ends)
            lines += ["", "[[namespaces]]", f"name = {json.dumps(name, ensure_ascii=False)}", f"boundaries = [{texts}]"]
        write_beside(self.path, "namespaces.toml", "\n".join([*lines, ""]).encode())
        self._namespaces = len(boundaries)


def _number(part: str) -> int:
    number = part.removeprefix("part-").removesuffix(".parquet")
    return int(number) if number.isascii() and number.isdigit() else -1
