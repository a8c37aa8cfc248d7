"""Arrow schemas of all tables that flow through a replay, and the Parquet layout of the canonical ones.

The canonical tables are derived from `columns.py`. QUARANTINE, DECISIONS, OWNERS, CYCLES, CELLS
and FLOWS are defined here: they are written and never read back by row.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any
from urllib.parse import quote

import pyarrow as pa
import pyarrow.parquet as pq

from lookup.logs.columns import TABLES, Kind
from lookup.logs.outputs import create_file, keep_on_disk
from lookup.logs.sources import has_folders, locate

__all__ = [
    "CANONICAL", "CELLS", "CYCLES", "DECISIONS", "FLOWS", "OWNERS", "OWNER_CHANGES", "QUARANTINE", "ROWS_PER_FILE",
    "SERVED_DECISIONS", "VIEWS", "RollingFiles", "partition_of", "write_parquet",
]  # fmt: skip

_TS = pa.timestamp("us", tz="UTC")
#: Arrow's type of each kind of column.
_TYPES: Mapping[Kind, pa.DataType] = {
    "time": _TS,
    "integer": pa.int64(),
    "number": pa.float64(),
    "flag": pa.bool_(),
    "text": pa.string(),
    "json": pa.string(),
    "properties": pa.string(),
    "texts": pa.list_(pa.string()),
}

#: Canonical tables by name.
CANONICAL: Mapping[str, pa.Schema] = {
    table: pa.schema([(column.name, _TYPES[column.kind]) for column in columns]) for table, columns in TABLES.items()
}

#: Records that could not be used: their source and line, the reason, and the beginning of the record.
QUARANTINE = pa.schema(
    [
        ("table", pa.string()),
        ("source", pa.string()),
        ("line", pa.int64()),
        ("reason", pa.string()),
        ("text", pa.string()),
    ]
)

#: Columns of the simulation that a row is of.
_SIMULATION = (("cluster", pa.string()), ("policy", pa.string()), ("seed", pa.int64()))

#: One row per decision; under shared ownership one per tick and decision key (`key`, with `weight` and without
#: `bundle`).
DECISIONS = pa.schema(
    [
        *_SIMULATION,
        ("ts", _TS),
        ("bundle", pa.string()),
        ("key", pa.string()),
        ("broker", pa.string()),
        ("propensity", pa.float64()),
        ("declined", pa.string()),
        ("count", pa.int64()),
        ("weight", pa.float64()),
        ("odds", pa.map_(pa.string(), pa.float64())),
        ("rejected", pa.map_(pa.string(), pa.int64())),
        ("margin", pa.float64()),
        ("ties", pa.int64()),
        ("fingerprint", pa.string()),
    ]
)

#: DECISIONS of the decision server: one row per request and policy that was asked, with all that is needed to decide
#: again. `key`, `count` and `weight` are a replay's and null here.
SERVED_DECISIONS = pa.schema(
    [
        *DECISIONS,
        ("decision", pa.string()),
        # true: the answer that was sent to a broker which carries answers out
        ("carried", pa.bool_()),
        ("asked_broker", pa.string()),
        # by the clock of the broker that asked
        ("asked_ts", _TS),
        ("topic", pa.string()),
        ("client", pa.string()),
        ("listener", pa.string()),
        ("properties", pa.string()),
        ("candidates", pa.list_(pa.string())),
        ("view", pa.string()),
        # state of OWNER_CHANGES that was decided on; null if the policy does not read owners
        ("owners", pa.string()),
        # number the dice were rolled with, and the number in [0, 1) they gave; null if no dice were needed
        ("rolls", pa.int64()),
        ("dice", pa.float64()),
        ("settings", pa.string()),
    ]
)

#: What brokers knew of each other when they asked the decision server: one row per view and broker.
VIEWS = pa.schema(
    [
        ("cluster", pa.string()),
        ("ts", _TS),
        ("view", pa.string()),
        ("broker", pa.string()),
        ("lookup_data", pa.string()),
        ("load", pa.string()),
    ]
)

#: Changes of owners that the decision server has followed, numbered from 1 within a series that begins without owners:
#: applied in order they give every state that a policy saw. A bundle without broker has no owner any more.
OWNER_CHANGES = pa.schema(
    [
        ("cluster", pa.string()),
        ("ts", _TS),
        ("series", pa.string()),
        ("number", pa.int64()),
        ("bundle", pa.string()),
        ("broker", pa.string()),
    ]
)

#: Intervals of ownership, `to` null if it outlasts the log; `reason` is the shedder's, if it has one for each unload.
OWNERS = pa.schema(
    [
        *_SIMULATION,
        ("bundle", pa.string()),
        ("broker", pa.string()),
        ("from", _TS),
        ("to", _TS),
        ("state", pa.string()),
        ("ended_by", pa.string()),
        ("reason", pa.string()),
    ]
)

#: One row per cycle of a policy's shedder, whether it unloaded anything or not.
CYCLES = pa.schema(
    [
        *_SIMULATION,
        ("ts", _TS),
        ("role", pa.string()),
        ("label", pa.string()),
        ("reason", pa.string()),
        ("average", pa.float64()),
        ("deviation", pa.float64()),
        ("modelled_deviation", pa.float64()),
        ("over", pa.int64()),
        ("excess", pa.float64()),
        ("accepted", pa.int64()),
        ("rejected", pa.map_(pa.string(), pa.int64())),
    ]
)

#: One row per balance cell and broker that was registered in it: the weight it served, and where it stands.
CELLS = pa.schema(
    [
        *_SIMULATION,
        ("ts", _TS),
        ("broker", pa.string()),
        ("region", pa.string()),
        ("zone", pa.string()),
        ("rack", pa.string()),
        ("weight", pa.float64()),
    ]
)

#: One row per place of clients and place of the brokers that served them; these are null for unanswered lookups.
FLOWS = pa.schema(
    [
        *_SIMULATION,
        ("client_region", pa.string()),
        ("client_zone", pa.string()),
        ("client_rack", pa.string()),
        ("answered", pa.bool_()),
        ("broker_region", pa.string()),
        ("broker_zone", pa.string()),
        ("broker_rack", pa.string()),
        ("lookups", pa.float64()),
        ("weight", pa.float64()),
    ]
)

#: Rows of one file and of its row group: a task's share of the log is neither many files nor many gigabytes.
ROWS_PER_FILE = 1_000_000
# Parquet's default of 1 MiB holds fewer than 20,000 topics of 45 bytes; above it a column falls back to plain strings.
_DICTIONARY_PAGE_BYTES = 256 * 1024 * 1024
# Times and places in the source rise steadily: their differences take a fraction of the space.
_RISING = {"ts": "DELTA_BINARY_PACKED", "seq": "DELTA_BINARY_PACKED"}


def partition_of(cluster: str, date: str) -> str:
    """Return the folder of a cluster's day, in Hive's manner."""
    return f"cluster={quote(cluster, safe='')}/date={date}"


def write_parquet(table: pa.Table, path: str, metadata: Mapping[bytes, str] | None = None) -> None:
    """Write a file of the canonical layout: dictionaries, zstd, one row group, no schema of Arrow's own.

    Args:
        metadata: of the file, besides its schema.
    """
    with (
        create_file(path) as sink,
        pq.ParquetWriter(
            sink,
            table.schema,
            use_dictionary=[name for name in table.column_names if name not in _RISING],
            column_encoding={name: encoding for name, encoding in _RISING.items() if name in table.column_names},
            dictionary_pagesize_limit=_DICTIONARY_PAGE_BYTES,
            compression="zstd",
            store_schema=False,
        ) as writer,
    ):
        writer.write_table(table, row_group_size=ROWS_PER_FILE)
        if metadata is not None:
            writer.add_key_value_metadata(metadata)


class RollingFiles:
    """The files of some tables, each table in a folder of its name, on a disk or in an object store.

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
