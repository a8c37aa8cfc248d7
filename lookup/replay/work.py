"""Files that pass what is large between the jobs of a replay: `OUTPUT/.work/`, on any file system pyarrow knows.

One file holds named columns of one length and a small JSON note. Local files are mapped into memory, so several
policies that read one day share its pages. What a job leaves to the driver goes by a file as well: Spark holds what
tasks return in its own memory, several times over, and refuses more than `spark.driver.maxResultSize`.
"""

from __future__ import annotations

import json
import pickle
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.fs as pafs
from numpy.typing import NDArray

from lookup.logs.outputs import create_file
from lookup.logs.sources import locate

__all__ = ["WorkDir"]

Columns = Mapping[str, NDArray[Any]]


@dataclass(frozen=True, slots=True)
class WorkDir:
    """A folder that every Spark worker can reach."""

    root: str

    def write(self, name: str, columns: Columns, note: Mapping[str, Any] | None = None) -> None:
        """Write columns of one length, and a note that JSON can hold."""
        table = pa.table({key: pa.array(_plain(values)) for key, values in columns.items()})
        table = table.replace_schema_metadata({"note": json.dumps(note or {})})
        with create_file(f"{self.root}/{name}") as sink, pa.ipc.new_file(sink, table.schema) as writer:
            writer.write_table(table)

    def read(self, name: str) -> tuple[dict[str, NDArray[Any]], dict[str, Any]]:
        """Return the columns, read-only and without a copy where the file is local, and the note."""
        system, root = locate(self.root)
        source = f"{root}/{name}"
        if isinstance(system, pafs.LocalFileSystem):
            table = pa.ipc.open_file(pa.memory_map(source)).read_all()
        else:
            with system.open_input_file(source) as stream:
                table = pa.ipc.open_file(stream).read_all()
        note = json.loads(table.schema.metadata[b"note"])
        return {key: _numpy(table.column(key)) for key in table.column_names}, note

    def leave(self, name: str, left: object) -> str:
        """Write an object for the driver; return the name by which it finds it."""
        with create_file(f"{self.root}/{name}") as sink:
            pickle.dump(left, sink, protocol=5)
        return name

    def find(self, name: str) -> Any:
        """Return what a task left."""
        system, root = locate(self.root)
        with system.open_input_file(f"{root}/{name}") as stream:
            return pickle.loads(stream.read())

    def remove(self) -> None:
        """Remove the folder and everything in it."""
        system, root = locate(self.root)
        if system.get_file_info(root).type != pafs.FileType.NotFound:
            system.delete_dir(root)


def _plain(values: NDArray[Any]) -> NDArray[Any]:
    # Arrow packs booleans into bits, which numpy cannot map.
    return values.view(np.uint8) if values.dtype == np.bool_ else values


def _numpy(column: pa.ChunkedArray) -> NDArray[Any]:
    chunks = [
        chunk.to_numpy(zero_copy_only=chunk.null_count == 0 and not pa.types.is_string(chunk.type))
        for chunk in column.chunks
    ]
    if not chunks:
        return np.empty(0, dtype=column.type.to_pandas_dtype())
    return chunks[0] if len(chunks) == 1 else np.concatenate(chunks)
