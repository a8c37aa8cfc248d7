"""Write rows as Parquet files that roll, on a disk or in an object store: each is complete when it appears."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

import pyarrow as pa

from lookup.logs.outputs import keep_on_disk
from lookup.logs.schema import write_parquet
from lookup.logs.sources import has_folders, locate

__all__ = ["RollingFiles"]


class RollingFiles:
    """The files of some tables, each table in a folder of its name.

    Args:
        folder: above the tables, path or URI.
        schemas: of the tables, by name.
    """

    def __init__(self, folder: str, schemas: Mapping[str, pa.Schema]) -> None:
        self.folder, self._schemas = folder.rstrip("/"), schemas
        self._system, self._root = locate(folder)

    def write(
        self, table: str, files: Mapping[str, Sequence[Sequence[Any]]], metadata: Mapping[bytes, str] | None = None
    ) -> None:
        """Write files of one table; all of them appear, or none.

        Args:
            files: rows, in the order of the table's columns, by the file's path in the table's folder.
            metadata: goes into every file.

        Raises:
            OSError: if they cannot be written.
            pa.ArrowException: if a value does not fit its column.
        """
        is_hidden = has_folders(self._system)
        begun = []
        try:
            for name, rows in files.items():
                target = Path(table, name)
                # On a disk hidden until all are complete: if one cannot be written all are written again later, and no
                # row may be there twice. In a store an object appears when it is complete.
                path = target.with_name(f".{target.name}") if is_hidden else target
                begun.append((f"{self._root}/{path}", f"{self._root}/{target}"))
                write_parquet(_filled(self._schemas[table], rows), f"{self.folder}/{path}", metadata)
                if is_hidden:
                    keep_on_disk(Path(self._root) / path)
        except BaseException:
            for written, _ in begun:
                with suppress(OSError):
                    self._system.delete_file(written)
            raise
        for written, appears in begun if is_hidden else ():
            self._system.move(written, appears)

    def remove_hidden(self) -> None:
        """Remove what a process has left that ended while it wrote; no other process may write below the folder."""
        if has_folders(self._system):
            for table in self._schemas:
                for hidden in (Path(self._root) / table).rglob(".part-*"):
                    hidden.unlink()


def _filled(schema: pa.Schema, rows: Sequence[Sequence[Any]]) -> pa.Table:
    columns = zip(zip(*rows, strict=True) if rows else ((),) * len(schema), schema, strict=True)
    return pa.Table.from_arrays([_array(values, column.type) for values, column in columns], schema=schema)


def _array(values: Sequence[Any], kind: pa.DataType) -> pa.Array:
    """Convert a column; of tuples, which thousands of rows have in common, each distinct one once."""
    if not pa.types.is_nested(kind) or list in map(type, values):
        return pa.array(values, kind)
    distinct = {value: number for number, value in enumerate(dict.fromkeys(values))}
    return pa.array([*distinct], kind).take(pa.array([distinct[value] for value in values], pa.int64()))
