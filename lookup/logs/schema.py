"""Arrow schemas of all tables that flow through a replay, and the Parquet layout of the canonical ones.

The canonical tables are derived from `columns.py`. QUARANTINE, DECISIONS, OWNERS, CYCLES, CELLS and FLOWS are defined
here, since they are written and never read back by row.

A table is a flat folder of files only. Paths are for people, all data is in columns (`docs/decisions/flat-tables.md`).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from lookup.logs.columns import TABLES
from lookup.logs.outputs import create_file, keep_on_disk
from lookup.logs.sources import has_folders, locate

__all__ = [
    "CANONICAL", "CELLS", "CYCLES", "DECISIONS", "FLOWS", "OWNERS", "OWNER_CHANGES", "QUARANTINE", "ROWS_PER_FILE",
    "SERVED_DECISIONS", "VIEWS", "RollingFiles", "schema_of", "write_parquet",
]  # fmt: skip

#: Arrow's type of each kind of column, for the kinds of the canonical tables, and for numbers and integers by text.
_TYPES: Mapping[str, pa.DataType] = {
    "time": pa.timestamp("us", tz="UTC"),
    "integer": pa.int64(),
    "number": pa.float64(),
    "flag": pa.bool_(),
    "text": pa.string(),
    "json": pa.string(),
    "properties": pa.string(),
    "texts": pa.list_(pa.string()),
    "numbers": pa.map_(pa.string(), pa.float64()),
    "counts": pa.map_(pa.string(), pa.int64()),
}

#: Canonical tables by name.
CANONICAL: Mapping[str, pa.Schema] = {
    table: pa.schema([(column.name, _TYPES[column.kind]) for column in columns]) for table, columns in TABLES.items()
}


def schema_of(columns: str) -> pa.Schema:
    """Build the schema of columns like `ts:time cluster`, each with its kind after a colon, texts without."""
    named = (column.partition(":") for column in columns.split())
    return pa.schema([(name, _TYPES[kind or "text"]) for name, _, kind in named])


#: Records that could not be used, with their source and line, the reason, and the beginning of the record.
QUARANTINE = schema_of("table source line:integer reason text")

# A run's tables begin with the columns of a row's simulation, `cluster policy seed`.

#: One row per decision, in which `key` and `weight` are null.
DECISIONS = schema_of("""
    cluster policy seed:integer ts:time bundle key broker propensity:number declined count:integer weight:number
    odds:numbers rejected:counts margin:number ties:integer fingerprint
""")

#: DECISIONS of the decision server, with one row per request and policy that was called. The rows have all data that is
#: needed to decide again. `key`, `count` and `weight` are a replay's and null here. `carried` marks the answer that was
#: sent to a broker that carries out answers. `asked_ts` is by the clock of the broker that sent the request. `owners`
#: is the state of OWNER_CHANGES for the decision, null if the policy does not read owners. `rolls` is the number of the
#: random draw, and `dice` its result in [0, 1), null if no random draw was needed.
SERVED_DECISIONS = pa.schema([*DECISIONS, *schema_of("""
    decision carried:flag asked_broker asked_ts:time topic client listener properties candidates:texts view owners
    rolls:integer dice:number settings
""")])  # fmt: skip

#: Views of brokers on each other when they sent requests to the decision server, with one row per view and broker.
VIEWS = schema_of("cluster ts:time view broker lookup_data load")

#: Changes of owners that the decision server has followed, numbered from 1 within a series that begins without owners:
#: applied in order they give every state that a policy saw. A bundle without broker has no owner any more.
OWNER_CHANGES = schema_of("cluster ts:time series number:integer bundle broker")

#: Intervals of ownership. `to` is null if it outlasts the log. `reason` is the shedder's, if each unload has one.
OWNERS = schema_of("cluster policy seed:integer bundle broker from:time to:time state ended_by reason")

#: One row per cycle of a policy's shedder, whether it unloaded anything or not.
CYCLES = schema_of("""
    cluster policy seed:integer ts:time role label reason average:number deviation:number modelled_deviation:number
    over:integer excess:number accepted:integer rejected:counts
""")

#: One row per balance cell and broker that was registered in it, with its served weight and its location.
CELLS = schema_of("cluster policy seed:integer ts:time broker region zone rack weight:number")

#: One row per place of clients and place of their brokers, which is null for unanswered lookups.
FLOWS = schema_of("""
    cluster policy seed:integer client_region client_zone client_rack answered:flag broker_region broker_zone
    broker_rack lookups:number weight:number
""")

#: Rows of one file and of its row group, chosen so that a task's share is neither many files nor many gigabytes.
ROWS_PER_FILE = 1_000_000
# Parquet's default of 1 MiB holds fewer than 20,000 topics of 45 bytes. Above it a column falls back to plain strings.
_DICTIONARY_PAGE_BYTES = 256 * 1024 * 1024
# Times and places in the source rise steadily, so their differences take a fraction of the space.
_RISING = {"ts": "DELTA_BINARY_PACKED", "seq": "DELTA_BINARY_PACKED"}


def write_parquet(table: pa.Table, path: str, metadata: Mapping[bytes, str] | None = None) -> None:
    """Write a file of the canonical layout, with dictionaries, zstd and one row group, without Arrow's schema.

    Args:
        metadata: of the file, in addition to its schema.
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
        folder: parent of the tables, path or URI.
        schemas: of the tables, by name.
    """

    def __init__(self, folder: str, schemas: Mapping[str, pa.Schema]) -> None:
        self.folder, self._schemas = folder.rstrip("/"), schemas
        self._system, self._root = locate(folder)

    def write(
        self, table: str, name: str, rows: Sequence[Sequence[Any]], metadata: Mapping[bytes, str] | None = None
    ) -> None:
        """Write a file of one table, which appears when it is complete.

        Args:
            name: of the file, `part-...`.
            rows: in the order of the table's columns.
            metadata: metadata of the file.

        Raises:
            OSError: if it cannot be written. pa.ArrowException: if a value does not fit its column.
        """
        schema = self._schemas[table]
        columns = zip(zip(*rows, strict=True) if rows else ((),) * len(schema), schema, strict=True)
        arrays = [_convert_column(values, column.type) for values, column in columns]
        content = pa.Table.from_arrays(arrays, schema=schema)
        if not has_folders(self._system):
            # In a store an object appears when it is complete.
            write_parquet(content, f"{self.folder}/{table}/{name}", metadata)
            return
        self._system.create_dir(f"{self._root}/{table}", recursive=True)
        # The file is beside the tables, since Polars and DuckDB read hidden files in a folder as well.
        hidden = f".{name}.{table}"
        try:
            write_parquet(content, f"{self.folder}/{hidden}", metadata)
            keep_on_disk(Path(self._root, hidden))
            self._system.move(f"{self._root}/{hidden}", f"{self._root}/{table}/{name}")
        except BaseException:
            with suppress(OSError):
                self._system.delete_file(f"{self._root}/{hidden}")
            raise

    def remove_hidden(self) -> None:
        """Remove the files of a process that ended while it wrote. No other process may write below the folder."""
        if has_folders(self._system):
            # Earlier releases had hidden files in the tables' folders.
            for hidden in Path(self._root).rglob(".part-*"):
                hidden.unlink()


def _convert_column(values: Sequence[Any], kind: pa.DataType) -> pa.Array:
    """Convert a column. Tuples, which thousands of rows share, are converted once per distinct one."""
    if not pa.types.is_nested(kind) or list in map(type, values):
        return pa.array(values, kind)
    distinct = {value: number for number, value in enumerate(dict.fromkeys(values))}
    return pa.array([*distinct], kind).take(pa.array([distinct[value] for value in values], pa.int64()))
