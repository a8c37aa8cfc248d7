"""Find and open input, which is lines of log files, compressed or not, and row groups of canonical Parquet.

Files may be on any file system that Arrow supports. Only the footers of Parquet files are read here, to divide a table
among Spark tasks. Order matters, since the sorted path and the place in the file decide if rows have no `seq`.
"""

from __future__ import annotations

import fnmatch
import glob
import io
import os
import re
import sys
import threading
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from urllib.parse import unquote

import pyarrow as pa
import pyarrow.parquet as pq
from pyarrow import fs as arrow_fs

from lookup.errors import Argument, InputError
from lookup.logs.columns import REQUIRED, TABLES, Kind
from lookup.logs.readers.values import LATIN_1
from lookup.model.documents import TableName, special_kind
from lookup.model.time import FIRST_US, LAST_US, US_PER_S, mistaken_unit

__all__ = [
    "NAME_KEY", "UNFINISHED", "FileSplit", "LogFile", "check_types", "forks_are_safe", "has_folders",
    "list_files", "list_log", "locate", "open_lines", "open_parquet", "require_finished", "share_out",
    "statistics_of", "table_span",
]  # fmt: skip

#: In the metadata of a Parquet file with another name for users than its path, such as the copy of a DataFrame.
NAME_KEY = b"lookup.name"
#: An object beside unfinished tables in an object store, which is removed when they are complete.
UNFINISHED = "_unfinished"

#: Codes that colour text on a terminal, which no reader needs.
_COLOURS = re.compile(r"\x1b\[[0-9;]*[mK]")
#: Kinds of the stores that this process has connected to.
_CONNECTED: set[str] = set()
_WILDCARDS = frozenset("*?[")
#: First bytes of compressed files, whatever their names, and functions that decompress them.
_PACKED = {b"\x1f\x8b": "gzip", b"BZh": "bz2", b"\x28\xb5\x2f\xfd": "zstd"}
#: First bytes of compressed files that are not supported here, and their formats.
_REFUSED = {
    b"PK\x03\x04": "a zip archive",
    b"\xfd7zX": "packed by xz",
    b"7z\xbc\xaf": "a 7z archive",
    b"Rar!": "a rar archive",
}


@dataclass(frozen=True, slots=True)
class LogFile:
    """One Parquet file of a table, with the values in its path in hive's form (`cluster=east/date=2026-01-05`)."""

    path: str
    #: rows of each row group
    row_groups: tuple[int, ...]
    columns: tuple[str, ...]
    #: the cluster that the path names
    cluster: str | None = None
    #: name in messages and in quarantine instead of the path, if its writer has given one in `NAME_KEY`
    own_name: str | None = None
    #: first and last time in the statistics of its footer, µs, None without statistics
    span: tuple[int, int] | None = None

    @property
    def name(self) -> str:
        """The name of the file for users."""
        return self.own_name or self.path

    @property
    def rows(self) -> int:
        """The number of rows in the file."""
        return sum(self.row_groups)


@dataclass(frozen=True, slots=True)
class FileSplit:
    """Neighbouring row groups of one file."""

    file: LogFile
    first_group: int
    groups: int
    #: rows of the file before the first of the split
    first_row: int


def locate(path: str) -> tuple[arrow_fs.FileSystem, str]:
    """Find the file system of a path or URI, and the path in it.

    Raises:
        InputError: if Arrow does not support the scheme of a URI, or a URI of a store has more than a name.
    """
    if "://" not in path:
        return arrow_fs.LocalFileSystem(), os.path.abspath(path)
    if path.startswith("s3://"):
        return _locate_in_bucket(path)
    try:
        system, inner = arrow_fs.FileSystem.from_uri(path)
    except (pa.ArrowInvalid, OSError) as error:
        raise InputError(f"{path}: no such file system: {error}") from error
    if not isinstance(system, arrow_fs.LocalFileSystem):
        _CONNECTED.add(system.type_name)
    return system, inner


def _locate_in_bucket(path: str) -> tuple[arrow_fs.FileSystem, str]:
    """Find an object's store, and its name there, not decoded since a partition's folder may be `cluster=a%2Fb`."""
    name = path.removeprefix("s3://")
    bucket = name.partition("/")[0]
    if "@" in bucket or ":" in bucket:
        # All users would see them in a list of processes and in the manifest, so they are not printed here either.
        place = f"s3://{name.rpartition('@')[2]}" if "@" in name else "an s3 path"
        raise InputError(
            f"{place}: credentials do not belong into its path; give them as AWS_ACCESS_KEY_ID and "
            "AWS_SECRET_ACCESS_KEY in the environment, or name a profile in AWS_PROFILE"
        )
    if "?" in name:
        reason = "settings of a store do not belong into a path"
        raise InputError(f"{path}: {reason}; give AWS_ENDPOINT_URL or AWS_REGION in the environment")
    if not bucket:
        raise InputError(f"{path}: names no bucket; s3://BUCKET/FOLDER would be right")
    try:
        return _bucket(bucket, os.getpid()), name
    except (pa.ArrowException, OSError) as error:
        raise InputError(f"{path}: its store cannot be asked: {error}") from error


@lru_cache(maxsize=64)
def _bucket(name: str, process: int) -> arrow_fs.FileSystem:  # noqa: ARG001  of all functions of its kind
    _CONNECTED.add("s3")
    endpoint = os.environ.get("AWS_ENDPOINT_URL_S3") or os.environ.get("AWS_ENDPOINT_URL")
    if endpoint:
        return arrow_fs.S3FileSystem(endpoint_override=endpoint)
    if os.environ.get("AWS_REGION") or os.environ.get("AWS_DEFAULT_REGION"):
        return arrow_fs.S3FileSystem()
    return arrow_fs.S3FileSystem(region=arrow_fs.resolve_s3_region(name))


def forks_are_safe() -> bool:
    """Check whether a fork of this process can continue.

    A fork lacks all threads but one. Threads belong to connections to a store, or to plug-ins and programs, unless they
    are daemons, for which no code waits. On macOS libraries that numpy calls have threads as well.
    """
    callers = {threading.current_thread(), threading.main_thread()}
    has_threads = any(not thread.daemon for thread in threading.enumerate() if thread not in callers)
    return sys.platform == "linux" and not _CONNECTED and not has_threads


def has_folders(system: arrow_fs.FileSystem) -> bool:
    """Check whether folders exist and can be moved, as on disks, or are only parts of names."""
    return system.type_name in ("local", "hdfs")


def list_files(sources: Sequence[str]) -> list[str]:
    """List the files of paths, directories, globs and URIs, sorted, each once.

    Files and folders whose name begins with `.` or `_` are left out of directories, as Spark does.
    """
    if not sources:
        raise InputError("no source is given; name at least one log file or directory")
    if not all(sources):
        raise InputError("source '' is empty; name a log file or a directory, `.` for the working folder")
    files: set[str] = set()
    for source in sources:
        expanded = _list_matching(source) if _WILDCARDS.intersection(source) else _list_below(source)
        if not expanded:
            raise InputError(f"source {source!r} holds no file; expected log files")
        files.update(expanded)
    return sorted(files)


def _list_below(source: str) -> list[str]:
    system, inner = locate(source)
    kind = special_kind(inner) if isinstance(system, arrow_fs.LocalFileSystem) else None
    if kind is not None:
        raise InputError(f"source {source!r} is {kind}, which cannot be read twice; expected a file or a directory")
    info = system.get_file_info(inner)
    if info.type is arrow_fs.FileType.NotFound:
        raise InputError(f"source {source!r} does not exist; expected a file, a directory or a glob")
    return [source] if info.is_file else _list_files_in(source.rstrip("/"), system, inner)


def _list_matching(pattern: str) -> list[str]:
    if "://" not in pattern:
        return [path for path in glob.glob(pattern, recursive=True) if Path(path).is_file()]
    # Arrow does not have globs, so everything below the last folder without a wildcard is listed and compared.
    base = pattern[: min(pattern.find(mark) for mark in _WILDCARDS if mark in pattern)].rpartition("/")[0]
    return [path for path in _list_files_in(base, *locate(base)) if fnmatch.fnmatchcase(path, pattern)]


def _list_files_in(base: str, system: arrow_fs.FileSystem, folder: str) -> list[str]:
    listed = system.get_file_info(arrow_fs.FileSelector(folder, recursive=True))
    names = [os.path.relpath(info.path, folder) for info in listed if info.is_file]
    return [f"{base}/{name}" for name in names if not any(part.startswith((".", "_")) for part in name.split("/"))]


def open_lines(path: str) -> Iterator[tuple[int, str]]:
    """Yield the numbered lines of a text file, without their ends. Gzip, bzip2 and zstd are decompressed.

    Bytes that are not UTF-8 are read as Latin-1, so that different names stay different.
    """
    system, inner = locate(path)
    with system.open_input_stream(inner, compression=None) as stream:
        start = stream.read(4)
    packed = next((name for magic, name in _PACKED.items() if start.startswith(magic)), None)
    refused = next((kind for magic, kind in _REFUSED.items() if start.startswith(magic)), None)
    if refused is not None:
        raise OSError(f"it is {refused}; unpack it, or pack its files with gzip")
    encoding, errors = "utf-8-sig", LATIN_1
    if start.startswith((b"\xff\xfe", b"\xfe\xff")):
        encoding, errors = "utf-16", "replace"
    # The content decides, as names may be wrong. Rotation removes endings, and browsers decompress without renaming.
    with system.open_input_stream(inner, compression=packed) as stream:
        # Only "\n" ends a line, not a lone "\r", since with universal newlines a "\r" inside a record would cut it.
        text = io.TextIOWrapper(stream, encoding=encoding, errors=errors, newline="\n")
        for number, line in enumerate(text, start=1):
            plain = _COLOURS.sub("", line) if "\x1b" in line else line
            if number == 1 and "\r" in plain[:-1] and not plain.endswith("\n"):
                # A file without any "\n" has "\r" in its place.
                yield from enumerate(plain.removesuffix("\r").split("\r"), start=1)
            else:
                yield number, plain.rstrip("\r\n")


def list_log(path: str, table: TableName = "lookups") -> tuple[LogFile, ...]:
    """Find the Parquet files under a path, sorted by path.

    Raises:
        InputError: if the path has no files, a file is no Parquet file, or a required column is missing.
    """
    system, root = locate(path)
    prefix = path[: -len(root)] if "://" in path and path.endswith(root) else ""
    kind = special_kind(root) if isinstance(system, arrow_fs.LocalFileSystem) else None
    if kind is not None:
        raise InputError(f"{path}: is {kind}, which cannot be read twice; expected a Parquet file or a folder of them")
    try:
        info = system.get_file_info(root)
    except OSError as error:
        raise InputError(f"{path}: cannot be looked up: {error}") from None
    if info.type == arrow_fs.FileType.NotFound:
        is_early = system.get_file_info(str(Path(root).parent)).type == arrow_fs.FileType.NotFound
        hint = "; `lookup ingest` writes it from a log" if is_early and table == "lookups" else ""
        raise InputError(f"{path}: there is no such file or directory{hint}")
    require_finished(system, root, path)
    names = [root]
    if not info.is_file:
        # A file that is given may have any name.
        below = _delta_files(path) if _check_table_format(system, root, path) else _list_files_in(root, system, root)
        names = sorted(name for name in below if name.endswith(".parquet"))
    if not names:
        raise InputError(f"{path}: holds no Parquet file; `lookup ingest` makes them from other formats")
    folders = {name[len(root) :].strip("/").partition("/")[0] for name in names}
    if table in folders and folders & ({*TABLES, "quarantine"} - {table}):
        raise InputError(f"{path}: holds several tables; name the one of them, {path.rstrip('/')}/{table}")
    files = tuple(_describe_file(prefix + name, name[len(root) :], table) for name in names)
    # A log may have no owners and no reports, but it must have lookups.
    if table == "lookups" and not sum(file.rows for file in files):
        raise InputError(f"{path}: the table {table} has no row")
    mistake = mistaken_unit(*(table_span(files) or (0, 0)))
    if mistake is not None:
        raise InputError(f"{files[0].own_name or path}: {mistake}")
    return files


def _check_table_format(system: arrow_fs.FileSystem, root: str, path: str) -> bool:
    """Check whether a folder is a table of Delta, and refuse one with files outside the table."""
    below = {
        os.path.relpath(info.path, root) for info in system.get_file_info(arrow_fs.FileSelector(root, recursive=True))
    }
    beside = arrow_fs.FileSelector(f"{root.rpartition('/')[0]}/metadata", allow_not_found=True)
    names = [*below, *(info.path for info in system.get_file_info(beside) if root.endswith("/data"))]
    export = "export the rows that count as plain Parquet, or give a DataFrame of Spark"
    for format_, mark in (("Iceberg", r"metadata\.json"), ("Hudi", r"(?:^|/)\.hoodie")):
        if any(re.search(rf"{mark}(?:$|/)", name) for name in names):
            raise InputError(f"{path}: is a table of {format_}, and some of its files may not count any more; {export}")
    if any("/_delta_log" in name for name in below):
        raise InputError(f"{path}: holds a table of Delta further below; name the table's own folder")
    return "_delta_log" in below


def _delta_files(path: str) -> list[str]:
    try:
        from deltalake import DeltaTable  # noqa: PLC0415  an extra
        from deltalake.exceptions import DeltaError  # noqa: PLC0415  an extra
    except ImportError:
        raise InputError(
            f"{path}: is a table of Delta, whose log says which files count; to read it, pip install "
            "'pulsar-lookup[delta]', or give a DataFrame of Spark"
        ) from None
    try:
        table = DeltaTable(path)
        features = {*(table.protocol().reader_features or ())} - {"timestampNtz"}
    except (DeltaError, OSError) as error:
        raise InputError(f"{path}: cannot be read as a table of Delta: {str(error).splitlines()[0]}") from None
    if features:
        raise InputError(f"{path}: is a table of Delta with {', '.join(sorted(features))}; give a DataFrame of Spark")
    return [locate(name)[1] for name in table.file_uris()]


def require_finished(system: arrow_fs.FileSystem, root: str, path: str) -> None:
    """Refuse a table, or a folder of tables, that is being written to an object store."""
    if has_folders(system):
        return
    folders = [root, root.rpartition("/")[0]]
    for info in system.get_file_info([f"{folder}/{UNFINISHED}" for folder in folders if folder]):
        if info.is_file:
            when = "" if info.mtime is None else f", since {info.mtime:%Y-%m-%d %H:%M} UTC"
            problem = f"{path}: is being written{when}, or its writer was killed; wait, or write it again with "
            raise InputError(problem, Argument("force", value=True))


def _describe_file(path: str, inner: str, table: TableName) -> LogFile:
    with open_parquet(path) as parquet:
        metadata, schema = parquet.metadata, parquet.schema_arrow
    columns = tuple(schema.names)
    cluster = next((unquote(step[8:]) for step in inner.split("/") if step.startswith("cluster=")), None)
    names = {*columns, *(("cluster",) if cluster is not None else ())}
    if table == "brokers" and not names & {"ts", "event"}:
        # The table lists brokers that exist all the time, and may call their column `id`.
        names |= {"ts", "event"} | ({"broker"} if "id" in names else set())
    missing = [column for column in REQUIRED[table] if column not in names]
    if missing:
        raise InputError(f"{path}: has no column {', '.join(map(repr, missing))}, which the table {table} needs")
    check_types(path, schema, table)
    groups = tuple(metadata.row_group(group).num_rows for group in range(metadata.num_row_groups))
    own_name = (metadata.metadata or {}).get(NAME_KEY)
    return LogFile(
        path, groups, columns, cluster, None if own_name is None else own_name.decode(), _read_span(metadata)
    )


def _is_text(kind: pa.DataType) -> bool:
    plain = kind.value_type if pa.types.is_dictionary(kind) else kind
    return bool(pa.types.is_string(plain) or pa.types.is_large_string(plain) or pa.types.is_string_view(plain))


_TEXTS = _is_text, "texts"
#: Types that can hold each kind of column, which are more than `ingest` writes, and their names in messages.
_READABLE: Mapping[Kind, tuple[Callable[[pa.DataType], bool], str]] = {
    "time": (lambda kind: pa.types.is_timestamp(kind) or pa.types.is_integer(kind), "timestamps"),
    "integer": (pa.types.is_integer, "whole numbers"),
    "number": (
        lambda kind: pa.types.is_floating(kind) or pa.types.is_integer(kind) or pa.types.is_decimal(kind),
        "numbers",
    ),
    "flag": (pa.types.is_boolean, "true or false"),
    "text": _TEXTS,
    "json": _TEXTS,
    "properties": _TEXTS,
    "texts": (
        # Lists that are all empty have no type.
        lambda kind: (
            (pa.types.is_list(kind) or pa.types.is_large_list(kind))
            and (_is_text(kind.value_type) or pa.types.is_null(kind.value_type))
        ),
        "lists of texts",
    ),
}


def _require_once(source: str, schema: pa.Schema) -> None:
    """Refuse columns with the same name, which Parquet permits, since it is not clear which to read."""
    for name, count in Counter(schema.names).items():
        if count > 1:
            raise InputError(f"{source}: column {name!r} is there {count} times; a table has each column once")


def check_types(source: str, schema: pa.Schema, table: TableName) -> None:
    """Refuse columns that cannot hold the table's values. Columns with only nulls may have any type."""
    _require_once(source, schema)
    for column in TABLES[table]:
        position = schema.get_field_index(column.name)
        actual = schema.field(position).type if position >= 0 else pa.null()
        can_hold, expected = _READABLE[column.kind]
        if not (pa.types.is_null(actual) or can_hold(actual)):
            raise InputError(f"{source}: column {column.name!r} of the table {table} holds {actual}, not {expected}")


def share_out(files: Sequence[LogFile], tasks: int) -> tuple[tuple[FileSplit, ...], ...]:
    """Divide files into about `tasks` shares of neighbouring row groups, in order. No share is empty."""
    total = max(1, sum(file.rows for file in files))
    shares: list[list[FileSplit]] = [[] for _ in range(max(tasks, 1))]
    rows_before = 0
    for file in files:
        first_row = 0
        for group, rows in enumerate(file.row_groups):
            # A group belongs to the share that contains its middle, so shares differ in length by at most one group.
            share = shares[min((2 * rows_before + rows) * len(shares) // (2 * total), len(shares) - 1)]
            last = share[-1] if share else None
            if last is not None and last.file is file:
                # Groups come in order, so one of the same file follows the last. A longer split opens the file once.
                share[-1] = FileSplit(file, last.first_group, last.groups + 1, last.first_row)
            else:
                share.append(FileSplit(file, group, 1, first_row))
            rows_before += rows
            first_row += rows
    return tuple(tuple(share) for share in shares if share)


@contextmanager
def open_parquet(path: str, *, dictionaries: Sequence[str] = ()) -> Iterator[pq.ParquetFile]:
    """Open a Parquet file anywhere. Errors while reading have the same message as errors while opening.

    Args:
        dictionaries: columns of texts that are read as dictionaries where Arrow can do so.

    Raises:
        InputError: if it is no Parquet file, is cut off or damaged, or has a column twice.
    """
    system, name = locate(path)
    is_local = isinstance(system, arrow_fs.LocalFileSystem)
    try:
        where = name if is_local else system.open_input_file(name)
        with pq.ParquetFile(where, memory_map=is_local) as file:
            _require_once(path, file.schema_arrow)
            plain = _find_delta_columns(file.metadata) if dictionaries else ()
            columns = [column for column in dictionaries if column not in plain]
            if not columns:
                yield file
                return
            metadata = file.metadata
        again = name if is_local else system.open_input_file(name)
        with pq.ParquetFile(again, memory_map=is_local, metadata=metadata, read_dictionary=columns) as file:
            yield file
    except UnicodeDecodeError as error:
        raise InputError(f"{path}: holds bytes that are no text in UTF-8: {error}") from None
    except (pa.ArrowException, OSError) as error:
        if "magic bytes" in str(error):
            raise InputError(
                f"{path}: is not a Parquet file, or was cut off; `lookup ingest` makes tables from other formats"
            ) from None
        # Arrow's further lines are its own call stack.
        raise InputError(f"{path}: cannot be read as Parquet: {str(error).splitlines()[0]}") from None


def _find_delta_columns(metadata: pq.FileMetaData) -> set[str]:
    """List the columns of texts that Arrow cannot read as dictionaries."""
    groups = map(metadata.row_group, range(metadata.num_row_groups))
    columns = (group.column(place) for group in groups for place in range(metadata.num_columns))
    return {each.path_in_schema for each in columns if any(name.startswith("DELTA") for name in each.encodings)}


def table_span(files: Iterable[LogFile]) -> tuple[int, int] | None:
    """Find the first and the last time in the footers of a table, µs, None if they have no statistics."""
    spans = [file.span for file in files if file.span is not None]
    return (min(first for first, _ in spans), max(last for _, last in spans)) if spans else None


def _read_span(metadata: pq.FileMetaData) -> tuple[int, int] | None:
    # As they are stored, since Arrow loads pandas to make datetimes of them.
    counts = [count for _, each in statistics_of(metadata, ("ts",)) for count in (each.min_raw, each.max_raw)]
    if not counts:
        return None
    kind = metadata.schema.to_arrow_schema().field("ts").type
    per_s = {"ms": 1_000, "us": US_PER_S, "ns": 1_000_000_000}[kind.unit if pa.types.is_timestamp(kind) else "us"]
    first_us, last_us = min(counts) * US_PER_S // per_s, max(counts) * US_PER_S // per_s
    # Rows with times beyond the calendar are refused.
    return (first_us, last_us) if first_us >= FIRST_US and last_us <= LAST_US else None


def statistics_of(metadata: pq.FileMetaData, names: Sequence[str]) -> Iterator[tuple[str, pq.Statistics]]:
    """Yield the statistics of some columns in each row group, as far as there are any."""
    for rows in map(metadata.row_group, range(metadata.num_row_groups)):
        for column in map(rows.column, range(rows.num_columns)):
            if column.path_in_schema in names and column.statistics is not None and column.statistics.has_min_max:
                yield column.path_in_schema, column.statistics
