"""Convert users' frames to canonical tables, with JSON for mappings, times for texts, and `main` for one cluster."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import pandas as pd
import pyarrow as pa

from lookup.errors import InputError
from lookup.logs.columns import REQUIRED, TABLES, Column, canonical_json
from lookup.model.documents import TableName
from lookup.model.quoting import join_names, shown
from lookup.model.time import FIRST_US, moment_at, parse_iso

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

__all__ = ["fit_frame", "fit_spark"]

#: Cluster of a table without such a column, as `lookup ingest` names it.
_MAIN = "main"
#: Kinds of columns that people hold in more ways than tables do.
_COUNTS = ("time", "number", "integer")
_FITTED = (*_COUNTS, "json", "properties")
_RIGHT = "a path, or a table of pandas, Arrow, Polars, DuckDB or Spark, would be right"
#: A time in Spark's SQL: without an offset it is in UTC, whatever zone the session has.
_TIME = r"try_cast(if(ts rlike '[T ].*(Z|[+-][0-9]{2}:?[0-9]{2})$', ts, concat(ts, 'Z')) as timestamp)"


def fit_frame(
    frame: Any, table: TableName
) -> pd.DataFrame | pa.Table | pa.RecordBatchReader | list[Mapping[str, object]]:
    """Convert a frame to the columns of a table, or brokers without times to a list of mappings.

    Raises:
        InputError: if it is not a table, or cannot be read, with the missing column, or the first invalid value.
    """
    columns = {column.name: column for column in TABLES[table]}
    frame = _convert_rows(frame, columns, table)
    if not isinstance(frame, pd.DataFrame):
        return frame
    names = [*map(str, frame.columns)]
    if table == "brokers" and {"ts", "event", "lookup_data"}.isdisjoint(names):
        return [_to_plain(row) for row in frame.astype(object).where(frame.notna(), None).to_dict("records")]
    always: dict[str, object] = {"cluster": _MAIN}
    if table == "brokers" and {"ts", "event"}.isdisjoint(names):
        always |= {"ts": moment_at(FIRST_US), "event": "registered"}
    always = {name: value for name, value in always.items() if name not in names}
    needed = [name for name in REQUIRED[table] if name not in always]
    missing = [name for name in needed if name not in names]
    if missing:
        subject = f"column {missing[0]} is" if len(missing) == 1 else f"columns {' and '.join(missing)} are"
        raise InputError(
            f"{table}: {subject} missing; it needs {join_names(needed)}, and has {join_names(names) or 'no column'}"
        )
    for column in columns.values():
        # Objects and texts. A duplicate column is rejected by its writer.
        is_once = column.kind in _FITTED and names.count(column.name) == 1
        if is_once and frame[column.name].dtype.kind in "OU":
            frame = frame.assign(**{column.name: _fit_column(frame[column.name], column, table)})
    return frame.assign(**always)


def _convert_rows(
    frame: Any, columns: Mapping[str, Column], table: TableName
) -> pd.DataFrame | pa.Table | pa.RecordBatchReader:
    if isinstance(frame, Sequence):
        wrong = next((number for number, row in enumerate(frame) if not isinstance(row, Mapping)), None)
        if wrong is not None:
            raise InputError(f"{table}: row {wrong} is {shown(frame[wrong])}, which is not a mapping")
        # Whole numbers that some rows lack stay such.
        return pd.DataFrame([*frame], dtype=object)
    if isinstance(frame, pd.DataFrame):
        levels = [name for name in frame.index.names if name in columns and name not in frame.columns]
        return frame.reset_index(levels) if levels else frame
    try:
        # Spark's stream, which 4.3 has as well, fails if a column holds times.
        stream = frame.toArrow() if hasattr(frame, "toArrow") else pa.RecordBatchReader.from_stream(frame)
    except (TypeError, pa.ArrowInvalid):  # a column of Polars has a stream as well, but none of rows
        raise InputError(f"{table}: is of type {type(frame).__name__}, which is not a table; {_RIGHT}") from None
    except Exception as error:
        # Of any library, as of a query that is run only now.
        raise InputError(f"{table}: cannot be read: {str(error).partition(chr(10))[0]}") from error
    kinds = [(columns[field.name].kind, field.type) for field in stream.schema if field.name in columns]
    odd = [kind for kind, arrow in kinds if pa.types.is_nested(arrow) or ("string" in str(arrow) and kind in _COUNTS)]
    if {*REQUIRED[table]} <= {*stream.schema.names} and not {*odd} & {*_FITTED}:
        return stream
    stream = stream if isinstance(stream, pa.Table) else stream.read_all()
    # Categories of Polars count in unsigned numbers, which older Arrow cannot turn into pandas.
    signed = [
        item.with_type(pa.dictionary(pa.int64(), item.type.value_type)) if pa.types.is_dictionary(item.type) else item
        for item in stream.schema
    ]
    stream = stream.cast(pa.schema(signed, stream.schema.metadata))
    return stream.to_pandas(integer_object_nulls=True, maps_as_pydicts="lossy")


def fit_spark(frame: DataFrame) -> DataFrame:
    """Convert a log to the columns of LOOKUPS. Unreadable times become null, and go to quarantine."""
    kinds = dict(frame.dtypes)
    fits = {} if "cluster" in kinds else {"cluster": f"'{_MAIN}'"}
    fits |= {"ts": _TIME} if kinds.get("ts") == "string" else {}
    fits |= {"properties": "to_json(properties)"} if kinds.get("properties", "string") != "string" else {}
    if not fits:
        return frame
    columns = [f"`{name}`" for name in frame.columns if name not in fits]
    return frame.selectExpr(*columns, *(f"{fit} as {name}" for name, fit in fits.items()))


def _fit_column(values: pd.Series[Any], column: Column, table: TableName) -> pd.Series[Any]:
    try:
        pairs = zip(values, values.isna(), strict=True)
        # As objects, since pandas would convert integers with gaps to floats.
        return pd.Series(
            [None if gap else _fit_value(value, column) for value, gap in pairs], values.index, dtype=object
        )
    except (TypeError, ValueError) as error:
        raise InputError(f"{table}: column {column.name!r}: {error}") from None


def _fit_value(value: Any, column: Column) -> object:
    if column.kind in ("json", "properties"):
        is_text = isinstance(value, str)
        return value if is_text else (canonical_json if column.kind == "json" else column.check)(_to_plain(value))
    if not isinstance(value, str):
        return value
    if column.kind == "time":
        return moment_at(parse_iso(value))
    raise ValueError(f"{shown(value)} is a text; a number would be right")


def _to_plain(value: Any) -> Any:
    """Convert nested values to JSON's types. Keys of other rows are null in Arrow, and were not given."""
    if isinstance(value, Mapping):
        return {key: _to_plain(inner) for key, inner in value.items() if inner is not None}
    # Lists inside are arrays of numpy.
    value = value.tolist() if hasattr(value, "tolist") else value
    return [*map(_to_plain, value)] if isinstance(value, list) else value
