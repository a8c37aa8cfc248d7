"""Write the files of a replay, which are the files between its jobs, in `OUTPUT/.work/`, and the final tables.

All are written to any file system that pyarrow supports. A work file holds named columns of one length and a small JSON
note. Local files are mapped into memory, so policies that read one day share its pages. A job's results for the driver
pass through a file as well, since Spark holds those of tasks several times over, up to `spark.driver.maxResultSize`.
"""

from __future__ import annotations

import json
import pickle
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.fs as pafs
import pyarrow.parquet as pq
from numpy.typing import NDArray

from lookup.logs.outputs import create_file, remove_folder
from lookup.logs.rows import Quarantined
from lookup.logs.schema import QUARANTINE
from lookup.logs.sources import locate

__all__ = ["WorkDir", "fetch", "write_quarantine", "write_table"]

Columns = Mapping[str, NDArray[Any]]
_ALL = slice(None)
#: Rows that are fetched together of a file in an object store, where each request takes its time.
_PIECE_ROWS = 1 << 16


@dataclass(frozen=True, slots=True)
class WorkDir:
    """A folder that every Spark worker can reach."""

    root: str

    def write(self, name: str, columns: Columns, note: Mapping[str, Any] | None = None) -> None:
        """Write columns of one length, and a note that JSON can hold."""
        # Arrow packs booleans into bits, which numpy cannot map.
        plain = {key: values.view(np.uint8) if values.dtype == np.bool_ else values for key, values in columns.items()}
        table = pa.table({key: pa.array(values) for key, values in plain.items()})
        table = table.replace_schema_metadata({"note": json.dumps(note or {})})
        with create_file(f"{self.root}/{name}") as sink, pa.ipc.new_file(sink, table.schema) as writer:
            # A file is written in pieces if a reader of some rows has to fetch them. Mapped files are best whole.
            writer.write_table(table, None if isinstance(locate(self.root)[0], pafs.LocalFileSystem) else _PIECE_ROWS)

    def read(self, name: str, rows: slice = _ALL) -> tuple[dict[str, NDArray[Any]], dict[str, Any]]:
        """Read some rows of the columns, read-only and without a copy if the file is local, and the note."""
        system, root = locate(self.root)
        source = f"{root}/{name}"
        if isinstance(system, pafs.LocalFileSystem):
            # Files are mapped, not read, so all workers of a machine share the pages, and unread columns stay on disk.
            table = pa.ipc.open_file(pa.memory_map(source)).read_all()[rows]
        else:
            with system.open_input_file(source) as stream:
                table = fetch(pa.ipc.open_file(stream), rows)
        note = json.loads(table.schema.metadata[b"note"])
        columns: dict[str, NDArray[Any]] = {}
        for key in table.column_names:
            column = table.column(key)
            chunks = [
                chunk.to_numpy(zero_copy_only=chunk.null_count == 0 and not pa.types.is_string(chunk.type))
                for chunk in column.chunks
            ] or [np.empty(0, dtype=column.type.to_pandas_dtype())]
            columns[key] = chunks[0] if len(chunks) == 1 else np.concatenate(chunks)
        return columns, note

    def dump(self, name: str, result: object) -> str:
        """Write the result of a task for the driver, and return its name, for `load`."""
        with create_file(f"{self.root}/{name}") as sink:
            pickle.dump(result, sink, protocol=5)
        return name

    def load(self, name: str) -> Any:
        """Read the result that a task wrote."""
        system, root = locate(self.root)
        with system.open_input_file(f"{root}/{name}") as stream:
            return pickle.loads(stream.read())

    def remove(self) -> None:
        """Remove the folder and everything in it."""
        system, root = locate(self.root)
        if system.get_file_info(root).type != pafs.FileType.NotFound:
            remove_folder(system, root)


def fetch(reader: pa.RecordBatchFileReader, rows: slice, *, piece_rows: int = _PIECE_ROWS) -> pa.Table:
    """Read some rows of a file with pieces of a fixed number of rows. Pieces without any of them are not fetched."""
    n_pieces = reader.num_record_batches
    low, high, _ = rows.indices(n_pieces * piece_rows)
    pieces = [reader.get_batch(number) for number in range(low // piece_rows, min(-(-high // piece_rows), n_pieces))]
    offset = low // piece_rows * piece_rows
    return pa.Table.from_batches(pieces, reader.schema)[low - offset : max(high, low) - offset]


def write_table(table: pa.Table, folder: str, file: str) -> None:
    """Write a table as one Parquet file of a folder."""
    with create_file(f"{folder}/{file}") as sink:
        pq.write_table(table, sink, compression="zstd")


def write_quarantine(rows: Sequence[Quarantined], table: str, folder: str, file: str) -> None:
    """Write rows that could not be used. No file is written if there are none."""
    if rows:
        columns = [[table] * len(rows)] + [[getattr(row, key) for row in rows] for key in QUARANTINE.names[1:]]
        write_table(pa.table(columns, schema=QUARANTINE), folder, file)
