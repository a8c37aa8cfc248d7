"""What other programs read of a table's folder, each called as its own documentation begins, without an option."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING

import pandas as pd
import pyarrow as pa
import pyarrow.dataset as ds
import pyarrow.parquet as pq
import pytest

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

__all__ = ["PROGRAMS", "Elsewhere", "texts", "written"]

#: Reads a folder whose files have a schema; returns rows as texts, sorted.
Elsewhere = Callable[[Path, pa.Schema], list[str]]


def _pandas(folder: str, schema: pa.Schema) -> pa.Table:
    frame = pd.read_parquet(folder)
    assert [*frame.columns] == schema.names
    return pa.Table.from_pandas(frame, schema, preserve_index=False)


def _polars(folder: str) -> pa.Table:
    return pytest.importorskip("polars").read_parquet(folder).to_arrow()


def _polars_scan(folder: str) -> pa.Table:
    return pytest.importorskip("polars").scan_parquet(folder).collect().to_arrow()


def _duckdb(folder: str) -> pa.Table:
    return pytest.importorskip("duckdb").sql(f"SELECT * FROM read_parquet('{folder}/**/*.parquet')").to_arrow_table()


def _duckdb_hive(folder: str) -> pa.Table:
    query = f"SELECT * FROM read_parquet('{folder}/**/*.parquet', hive_partitioning = true)"
    return pytest.importorskip("duckdb").sql(query).to_arrow_table()


#: Programs by name; Spark is the one that needs a session.
PROGRAMS: Mapping[str, Callable[[str, pa.Schema, Callable[[], SparkSession]], pa.Table]] = {
    "pandas": lambda folder, schema, _: _pandas(folder, schema),
    "pyarrow": lambda folder, *_: pq.read_table(folder),
    "pyarrow-dataset": lambda folder, *_: ds.dataset(folder, partitioning="hive").to_table(),
    "polars": lambda folder, *_: _polars(folder),
    "polars-scan": lambda folder, *_: _polars_scan(folder),
    "duckdb": lambda folder, *_: _duckdb(folder),
    "duckdb-hive": lambda folder, *_: _duckdb_hive(folder),
    "spark": lambda folder, _, session: session().read.parquet(folder).toArrow(),
}


def written(folder: Path, schema: pa.Schema) -> list[str]:
    """Return the rows that the files of a folder hold, as texts, sorted."""
    return texts(pa.concat_tables(pq.ParquetFile(file).read() for file in folder.rglob("*.parquet")), schema)


def texts(table: pa.Table, schema: pa.Schema) -> list[str]:
    """Return rows as texts, sorted, whatever types a program has for texts and times; columns must be the schema's."""
    return sorted(map(str, table.cast(schema).to_pylist()))
