"""Write frames of any library as canonical tables, refuse what no column of these can hold, and read tables as frames.

Every column is written with the type that `ingest` gives it, so that a replay reads frames as it reads files.
Categories become texts, and numbers of any width doubles. Times of any unit and zone become µs in UTC; without a zone
they are in UTC.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.parquet as pq
from pyarrow import fs as arrow_fs

from lookup.errors import InputError
from lookup.logs.columns import REQUIRED
from lookup.logs.schema import CANONICAL, ROWS_PER_FILE
from lookup.logs.sources import NAME_KEY, check_types, locate
from lookup.model.documents import TableName
from lookup.model.quoting import listed

if TYPE_CHECKING:
    import pandas as pd

__all__ = ["read_frame", "write_frame"]

_RIGHT = "a path, or a table of pandas, Arrow, Polars, DuckDB or Spark, would be right"


def write_frame(frame: object, table: TableName, path: str) -> None:
    """Write a frame as a canonical table; columns that the table does not have are left out.

    Args:
        frame: of pandas, of Spark, or with `__arrow_c_stream__`.
        table: its columns, and the name of the argument that mistakes are about.
        path: of the file.

    Raises:
        InputError: naming the column that is missing, there twice, or of a type that the table cannot hold.
    """
    reader = _reader(frame, table)
    _require_columns(reader.schema.names, table)
    check_types(table, reader.schema, table)
    names = [name for name in CANONICAL[table].names if name in reader.schema.names]
    schema = pa.schema([CANONICAL[table].field(name) for name in names])
    with pq.ParquetWriter(path, schema, compression="zstd") as writer:
        for rows in _pieces(reader, names, table):
            columns = [_cast(rows.column(field.name), field, table) for field in schema]
            writer.write_table(pa.Table.from_arrays(columns, schema=schema))
        writer.add_key_value_metadata({NAME_KEY: table})


def _reader(frame: Any, table: TableName) -> pa.RecordBatchReader:
    pandas = sys.modules.get("pandas")
    if pandas is not None and isinstance(frame, pandas.DataFrame):
        return _of_pandas(frame, table).to_reader()
    try:
        # Spark: its stream, which 4.3 has as well, fails if a column holds times.
        if hasattr(frame, "toArrow"):
            return frame.toArrow().to_reader()
        if hasattr(frame, "__arrow_c_stream__"):
            return pa.RecordBatchReader.from_stream(frame)
    except pa.ArrowInvalid:
        pass  # a column of Polars has a stream as well, but none of rows
    except Exception as error:
        # Of any library, as of a query that is run only now.
        raise InputError(f"{table}: cannot be read: {str(error).partition(chr(10))[0]}") from error
    raise InputError(f"{table}: is of type {type(frame).__name__}, which is no table; {_RIGHT}")


def _of_pandas(frame: Any, table: TableName) -> pa.Table:
    index = [name for name in frame.index.names if name in CANONICAL[table].names and name not in frame.columns]
    # A level is also a column of a log that was read with `index_col`.
    frame = frame.reset_index(level=index) if index else frame
    _require_columns([str(name) for name in frame.columns], table)
    present = [name for name in frame.columns if name in CANONICAL[table].names]
    # pandas permits columns of one name, and Arrow does not say which they are.
    check_types(table, pa.schema([(name, pa.null()) for name in present]), table)
    columns = {}
    for name in present:
        try:
            columns[name] = pa.Array.from_pandas(frame[name])
        except (pa.ArrowException, TypeError, ValueError) as error:
            raise InputError(f"{table}: column {name!r} holds values of several types: {error}") from None
    return pa.table(columns)


def _require_columns(names: Sequence[str], table: TableName) -> None:
    missing = [name for name in REQUIRED[table] if name not in names]
    if missing:
        what = f"column {missing[0]} is" if len(missing) == 1 else f"columns {' and '.join(missing)} are"
        has = f"has {listed(names)}" if names else "has no column"
        raise InputError(f"{table}: {what} missing; it needs {listed(REQUIRED[table])}, and {has}")


def _pieces(reader: pa.RecordBatchReader, names: list[str], table: TableName) -> Iterator[pa.Table]:
    batches: list[pa.RecordBatch] = []
    while True:
        try:
            batches.append(reader.read_next_batch().select(names))
        except StopIteration:
            break
        except (pa.ArrowException, OSError) as error:
            raise InputError(f"{table}: its rows cannot be read: {error}") from None
        if sum(each.num_rows for each in batches) >= ROWS_PER_FILE:
            yield pa.Table.from_batches(batches)
            batches = []
    if batches:
        yield pa.Table.from_batches(batches)


def _cast(column: pa.ChunkedArray, field: pa.Field, table: TableName) -> pa.ChunkedArray:
    if pa.types.is_dictionary(column.type):
        # Arrow cannot decode categories that are views, as those of Polars are.
        chunks = (
            pa.DictionaryArray.from_arrays(part.indices, part.dictionary.cast(pa.string())) for part in column.chunks
        )
        column = pa.chunked_array(chunks, pa.dictionary(column.type.index_type, pa.string()))
    # Not safe for times, of which nanoseconds are cut off, and for numbers, which are doubles in any case.
    is_safe = not (pa.types.is_timestamp(field.type) or pa.types.is_floating(field.type))
    try:
        return column.cast(field.type, safe=is_safe)
    except pa.ArrowException as error:
        raise InputError(f"{table}: column {field.name!r} cannot be read as {field.type}: {error}") from None


def read_frame(folder: str, table: str, schema: pa.Schema) -> pd.DataFrame:
    """Read a table below a folder of results; one that was not written, since it has no row, is empty."""
    system, inner = locate(f"{folder}/{table}")
    if system.get_file_info(inner).type is arrow_fs.FileType.NotFound:
        rows = schema.empty_table()
    else:
        # The path may say the cluster as well: the column does.
        rows = pq.read_table(inner, filesystem=system, partitioning=None)
    frame: pd.DataFrame = rows.to_pandas()
    return frame
