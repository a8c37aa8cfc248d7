"""What files a canonical Parquet table consists of, and how their row groups are shared out among Spark tasks.

Only footers are read here. Order matters: where rows carry no `seq`, the sorted path and the row decide.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any
from urllib.parse import unquote

import pyarrow as pa
import pyarrow.fs as pafs
import pyarrow.parquet as pq

from lookup.errors import InputError
from lookup.logs.columns import REQUIRED, TABLES, Kind
from lookup.logs.sources import locate
from lookup.model.documents import TableName, special_kind

__all__ = ["LogFile", "Split", "check_types", "list_log", "open_parquet", "share_out"]


def _is_text(kind: pa.DataType) -> bool:
    plain = kind.value_type if pa.types.is_dictionary(kind) else kind
    return bool(pa.types.is_string(plain) or pa.types.is_large_string(plain) or pa.types.is_string_view(plain))


def _is_list(kind: pa.DataType) -> bool:
    return bool(pa.types.is_list(kind) or pa.types.is_large_list(kind)) and _is_text(kind.value_type)


def _is_number(kind: pa.DataType) -> bool:
    return bool(pa.types.is_floating(kind) or pa.types.is_integer(kind) or pa.types.is_decimal(kind))


_TEXTS = _is_text, "texts"
#: By kind of column: the types that can hold it, more than `ingest` writes, and how to say so.
_READABLE: Mapping[Kind, tuple[Callable[[pa.DataType], bool], str]] = {
    "time": (lambda kind: pa.types.is_timestamp(kind) or pa.types.is_int64(kind), "timestamps"),
    "integer": (pa.types.is_integer, "whole numbers"),
    "number": (_is_number, "numbers"),
    "flag": (pa.types.is_boolean, "true or false"),
    "text": _TEXTS,
    "json": _TEXTS,
    "properties": _TEXTS,
    "texts": (_is_list, "lists of texts"),
}


@dataclass(frozen=True, slots=True)
class LogFile:
    """One Parquet file of a table, with what its path says in hive's manner (`cluster=east/date=2026-01-05`)."""

    path: str
    #: rows of each row group
    row_groups: tuple[int, ...]
    columns: tuple[str, ...]
    cluster: str | None = None

    @property
    def rows(self) -> int:
        """Return how many rows the file has."""
        return sum(self.row_groups)


@dataclass(frozen=True, slots=True)
class Split:
    """Neighbouring row groups of one file."""

    file: LogFile
    first_group: int
    groups: int
    #: rows of the file before the first of the split
    first_row: int


def list_log(path: str, table: TableName = "lookups") -> tuple[LogFile, ...]:
    """Find the Parquet files under a path, sorted by path.

    Raises:
        InputError: where nothing is there, a file is no Parquet file, or a required column is missing.
    """
    system, root = locate(path)
    prefix = path[: -len(root)] if "://" in path and path.endswith(root) else ""
    kind = special_kind(root) if isinstance(system, pafs.LocalFileSystem) else None
    if kind is not None:
        raise InputError(f"{path}: is {kind}, which cannot be read twice; expected a Parquet file or a folder of them")
    info = system.get_file_info(root)
    if info.type == pafs.FileType.NotFound:
        raise InputError(f"{path}: there is no such file or directory")
    found = [info] if info.type == pafs.FileType.File else system.get_file_info(pafs.FileSelector(root, recursive=True))
    names = sorted(entry.path for entry in found if _is_data(entry, root))
    if not names:
        raise InputError(f"{path}: holds no Parquet file; `lookup ingest` makes them from other formats")
    files = tuple(_described(prefix + name, name[len(root) :], table) for name in names)
    # That nothing was owned or reported is no mistake; that nothing was asked is.
    if table == "lookups" and not sum(file.rows for file in files):
        raise InputError(f"{path}: the table {table} has no row")
    return files


def share_out(files: Sequence[LogFile], tasks: int) -> tuple[tuple[Split, ...], ...]:
    """Divide files into about `tasks` shares of neighbouring row groups, in order; no share is empty."""
    total = max(1, sum(file.rows for file in files))
    shares: list[list[Split]] = [[] for _ in range(max(tasks, 1))]
    before = 0
    for file in files:
        row = 0
        for group, rows in enumerate(file.row_groups):
            # A group belongs where its middle lies, so that no share is longer than another by more than a group.
            shares[min((2 * before + rows) * len(shares) // (2 * total), len(shares) - 1)].append(
                Split(file, group, 1, row)
            )
            before += rows
            row += rows
    return tuple(_joined(share) for share in shares if share)


@contextmanager
def open_parquet(path: str, **options: Any) -> Iterator[pq.ParquetFile]:
    """Open a Parquet file anywhere; what goes wrong while it is read is told in the same words.

    Raises:
        InputError: where it is none, is cut off or damaged.
    """
    system, name = locate(path)
    is_local = isinstance(system, pafs.LocalFileSystem)
    try:
        with pq.ParquetFile(name if is_local else system.open_input_file(name), memory_map=is_local, **options) as file:
            yield file
    except (pa.ArrowException, OSError) as error:
        raise InputError(f"{path}: cannot be read as Parquet: {str(error).splitlines()[0]}") from None


def _is_data(entry: pafs.FileInfo, root: str) -> bool:
    if entry.type != pafs.FileType.File:
        return False
    inner = entry.path[len(root) :].split("/")
    is_hidden = any(step.startswith(("_", ".")) for step in inner if step)
    return not is_hidden and (entry.path.endswith(".parquet") or entry.path == root)


def _described(path: str, inner: str, table: TableName) -> LogFile:
    with open_parquet(path) as parquet:
        metadata, schema = parquet.metadata, parquet.schema_arrow
    columns = tuple(schema.names)
    cluster = next((unquote(step[8:]) for step in inner.split("/") if step.startswith("cluster=")), None)
    known = {*columns, *(("cluster",) if cluster is not None else ())}
    missing = [column for column in REQUIRED[table] if column not in known]
    if missing:
        raise InputError(f"{path}: has no column {', '.join(map(repr, missing))}, which the table {table} needs")
    check_types(path, schema, table)
    groups = tuple(metadata.row_group(group).num_rows for group in range(metadata.num_row_groups))
    return LogFile(path, groups, columns, cluster)


def check_types(source: str, schema: pa.Schema, table: TableName) -> None:
    """Refuse columns that cannot hold what the table says; columns of nothing but nulls may have any type.

    Raises:
        InputError: naming source, column, and both types.
    """
    for column in TABLES[table]:
        position = schema.get_field_index(column.name)
        actual = schema.field(position).type if position >= 0 else pa.null()
        can_hold, expected = _READABLE[column.kind]
        if not (pa.types.is_null(actual) or can_hold(actual)):
            raise InputError(f"{source}: column {column.name!r} of the table {table} holds {actual}, not {expected}")


def _joined(share: Sequence[Split]) -> tuple[Split, ...]:
    joined: list[Split] = []
    for split in share:
        last = joined[-1] if joined else None
        if last is not None and last.file is split.file and last.first_group + last.groups == split.first_group:
            joined[-1] = Split(last.file, last.first_group, last.groups + split.groups, last.first_row)
        else:
            joined.append(split)
    return tuple(joined)
