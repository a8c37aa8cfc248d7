"""Write frames of any library as canonical tables, reject values that do not fit, and read tables as frames.

Every column is written with the type that `ingest` gives it, so replays read frames like files. Categories become
texts, and numbers of any width doubles. Times of any unit and zone become µs in UTC. Times without a zone are in UTC.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

import pyarrow as pa
import pyarrow.parquet as pq
from pyarrow import fs as arrow_fs

from lookup.errors import InputError
from lookup.logs.schema import CANONICAL, ROWS_PER_FILE
from lookup.logs.sources import NAME_KEY, check_types, locate
from lookup.model.documents import TableName

if TYPE_CHECKING:
    import pandas as pd

__all__ = ["read_frame", "write_frame"]


def write_frame(frame: pd.DataFrame | pa.Table | pa.RecordBatchReader, table: TableName, path: str) -> None:
    """Write a converted frame as a canonical table. Columns that the table does not have are left out.

    Args:
        table: determines the columns, and the argument's name in messages.
        path: path of the file.

    Raises:
        InputError: with the column that is duplicate, or of a type that the table cannot hold.
    """
    reader = frame
    if not isinstance(frame, pa.RecordBatchReader):
        reader = (frame if isinstance(frame, pa.Table) else _convert_pandas(frame, table)).to_reader()
    check_types(table, reader.schema, table)
    names = [name for name in CANONICAL[table].names if name in reader.schema.names]
    schema = pa.schema([CANONICAL[table].field(name) for name in names])
    with pq.ParquetWriter(path, schema, compression="zstd") as writer:
        for rows in _iter_pieces(reader, names, table):
            columns = [_cast_column(rows.column(field.name), field, table) for field in schema]
            writer.write_table(pa.Table.from_arrays(columns, schema=schema))
        writer.add_key_value_metadata({NAME_KEY: table})


def _convert_pandas(frame: pd.DataFrame, table: TableName) -> pa.Table:
    present = [name for name in frame.columns if name in CANONICAL[table].names]
    # pandas permits columns of one name, and Arrow does not report which they are.
    check_types(table, pa.schema([(name, pa.null()) for name in present]), table)
    columns = {}
    for name in present:
        try:
            columns[name] = pa.Array.from_pandas(frame[name])
        except (pa.ArrowException, TypeError, ValueError) as error:
            raise InputError(f"{table}: column {name!r} holds values of several types: {error}") from None
    return pa.table(columns)


def _iter_pieces(reader: pa.RecordBatchReader, names: list[str], table: TableName) -> Iterator[pa.Table]:
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


def _cast_column(column: pa.ChunkedArray, field: pa.Field, table: TableName) -> pa.ChunkedArray:
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
    """Read a table below a folder of results. A table without rows was not written, and is empty."""
    system, inner = locate(f"{folder}/{table}")
    if system.get_file_info(inner).type is arrow_fs.FileType.NotFound:
        rows = schema.empty_table()
    else:
        # The path may contain the cluster as well, but the column decides.
        rows = pq.read_table(inner, filesystem=system, partitioning=None)
    frame: pd.DataFrame = rows.to_pandas()
    return frame
