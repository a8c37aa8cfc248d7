"""Writing the generated tables: LOOKUPS in hive partitions of files of a million rows, the others in one file each.

The layout of a file is that of every canonical log, see `lookup.logs.canonical`.
"""

from __future__ import annotations

import shutil
from collections import deque
from collections.abc import Iterable, Iterator, Mapping
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray
from pyarrow.fs import LocalFileSystem

from lookup.logs.canonical import ROWS_PER_FILE, partition_of, write_parquet
from lookup.logs.schema import CANONICAL
from lookup.logs.staging import made_for, require_free, staging_place

__all__ = ["LookupColumns", "LookupWriter", "replaced_tables", "write_table"]

#: Files of one cluster that are written at the same time.
_WRITING = 2
_DISK = LocalFileSystem()

#: Columns of LOOKUPS as arrays of one length: codes for dictionary columns (-1 is null), values for the others.
LookupColumns = Mapping[str, NDArray[np.generic]]


@contextmanager
def replaced_tables(output: Path, names: tuple[str, ...], *, force: bool) -> Iterator[Path]:
    """Hand out a hidden directory and, when the body ends well, move its tables to `output`.

    With `force` tables of these names are replaced, anything else in `output` stays. Where the body fails, nothing is
    left behind and `output` is as it was.

    Raises:
        InputError: if `output` can be no folder, or holds something and `force` is not set.
    """
    require_free(str(output), force=force)
    output = output.absolute()
    with made_for(str(output)):
        draft = Path(staging_place(_DISK, str(output)))
        draft.mkdir(parents=True)
    try:
        yield draft
        output.mkdir(exist_ok=True)
        for name in names:
            _replace(draft / name, output / name)
    finally:
        shutil.rmtree(draft, ignore_errors=True)


def _replace(source: Path, target: Path) -> None:
    """Put a table in the place of another; a table that was not made only removes the old one."""
    if target.is_dir():
        shutil.rmtree(target)
    if source.exists():
        source.rename(target)


def write_table(directory: Path, name: str, rows: Iterable[Mapping[str, object]]) -> int:
    """Write a small canonical table, one file of rows in order of time, and return how many rows it has."""
    ordered = sorted(rows, key=lambda row: (row["ts"], row["cluster"]))
    table = pa.Table.from_pylist(ordered, schema=CANONICAL[name])
    (directory / name).mkdir()
    write_parquet(table, _DISK, str(directory / name / "part-00000.parquet"))
    return len(ordered)


class LookupWriter:
    """Collects the rows of one cluster and writes a file before it outgrows a million, or when the day ends.

    Encoding runs beside the generator in `pool`, at most two files at a time: memory does not grow with the log.

    Args:
        directory: of the table LOOKUPS.
        dictionaries: the values behind the codes, by column.
    """

    def __init__(
        self, directory: Path, cluster: str, dictionaries: Mapping[str, Iterable[str]], pool: ThreadPoolExecutor
    ) -> None:
        self._directory = directory
        self._cluster = cluster
        values = {"cluster": [cluster], **dictionaries}
        self._dictionaries = {name: pa.array(list(entries), pa.string()) for name, entries in values.items()}
        self._pool = pool
        self._pending: deque[Future[None]] = deque()
        self._waiting: list[LookupColumns] = []
        self._rows = 0
        self._files = 0
        self._date = ""

    def add(self, columns: LookupColumns) -> None:
        """Take rows of one day, later than all before."""
        if not len(columns["ts"]):
            return
        date = datetime.fromtimestamp(int(columns["ts"][0]) // 1_000_000, tz=UTC).date().isoformat()
        if date != self._date or self._rows + len(columns["ts"]) > ROWS_PER_FILE:
            self._flush()
            self._date = date
        self._waiting.append(columns)
        self._rows += len(columns["ts"])

    def close(self) -> None:
        """Write what is left and wait until all of it is on disk."""
        self._flush()
        self._await(0)

    def _flush(self) -> None:
        if not self._waiting:
            return
        self._await(_WRITING - 1)
        path = self._directory / partition_of(self._cluster, self._date) / f"part-{self._files:05}.parquet"
        path.parent.mkdir(parents=True, exist_ok=True)
        self._pending.append(self._pool.submit(self._write, path, self._waiting))
        self._waiting, self._rows, self._files = [], 0, self._files + 1

    def _await(self, most: int) -> None:
        """Wait until at most so many files are being written, and raise what went wrong with the others."""
        while len(self._pending) > most:
            self._pending.popleft().result()

    def _write(self, path: Path, pieces: list[LookupColumns]) -> None:
        arrays = [self._array(field, pieces) for field in CANONICAL["lookups"]]
        table = pa.Table.from_arrays(arrays, names=CANONICAL["lookups"].names)
        write_parquet(table, _DISK, str(path))

    def _array(self, field: pa.Field, pieces: list[LookupColumns]) -> pa.Array:
        dictionary = self._dictionaries.get(field.name)
        if field.name == "cluster":
            values = np.zeros(sum(len(piece["ts"]) for piece in pieces), dtype=np.int8)
        else:
            values = np.concatenate([piece[field.name] for piece in pieces])
        if dictionary is not None:
            return pa.DictionaryArray.from_arrays(pa.array(values, mask=values < 0), dictionary)
        if values.dtype.kind == "f":
            return pa.array(values, mask=np.isnan(values))
        return pa.array(values).cast(field.type)
