"""Write rows as Parquet files that roll: each is complete when it appears, whatever happens to process and disk."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import pyarrow as pa

from lookup.logs.schema import write_parquet

__all__ = ["RollingFiles", "keep_on_disk"]


class RollingFiles:
    """The files of some tables, each table in a folder of its name.

    Args:
        folder: above the tables.
        schemas: of the tables, by name.
    """

    def __init__(self, folder: Path, schemas: Mapping[str, pa.Schema]) -> None:
        self.folder, self._schemas = folder, schemas

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
        schema, finished = self._schemas[table], []
        try:
            for name, rows in files.items():
                target = self.folder / table / name
                hidden = target.with_name(f".{target.name}")
                finished.append((hidden, target))
                columns = zip(zip(*rows, strict=True) if rows else ((),) * len(schema), schema, strict=True)
                arrays = [_array(values, column.type) for values, column in columns]
                write_parquet(pa.Table.from_arrays(arrays, schema=schema), str(hidden), metadata)
                keep_on_disk(hidden)
        except BaseException:
            for hidden, _ in finished:
                hidden.unlink(missing_ok=True)
            raise
        # Only now: if one cannot be written all are written again later, and no row may be there twice.
        for hidden, target in finished:
            hidden.replace(target)

    def remove_hidden(self) -> None:
        """Remove what a process has left that ended while it wrote; no other process may write below the folder."""
        for table in self._schemas:
            for hidden in (self.folder / table).rglob(".part-*"):
                hidden.unlink()


def keep_on_disk(path: Path) -> None:
    """Wait until the disk has a file: moved after that, it is there whole or not at all after a power cut too."""
    with path.open("rb") as written:
        os.fsync(written.fileno())


def _array(values: Sequence[Any], kind: pa.DataType) -> pa.Array:
    """Convert a column; of tuples, which thousands of rows have in common, each distinct one once."""
    if not pa.types.is_nested(kind) or list in map(type, values):
        return pa.array(values, kind)
    distinct = {value: number for number, value in enumerate(dict.fromkeys(values))}
    return pa.array([*distinct], kind).take(pa.array([distinct[value] for value in values], pa.int64()))
