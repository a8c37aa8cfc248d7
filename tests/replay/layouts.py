"""How rows lie in files: canonical tables and LOOKUPS, written as a layout says."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from lookup.logs.schema import CANONICAL

__all__ = ["Layout", "write_lookups", "write_rows"]


@dataclass(frozen=True)
class Layout:
    """How rows lie in files."""

    with_seq: bool = False
    #: whether folders name the cluster, as in tables of Hive, else a column does
    is_hive: bool = False
    #: rows of a file, rows of a row group
    file_rows: int = 7
    group_rows: int = 3
    #: whether topics are written with one dictionary for the whole file
    is_encoded: bool = False


def write_rows(rows: Sequence[dict[str, Any]], table: str, path: Path, *, group_rows: int = 100) -> None:
    """Write rows of a canonical table; absent values are null."""
    schema = CANONICAL[table]
    path.parent.mkdir(parents=True, exist_ok=True)
    columns = [pa.array([row.get(name) for row in rows], schema.field(name).type) for name in schema.names]
    pq.write_table(pa.table(columns, schema=schema), path, row_group_size=group_rows)


def write_lookups(rows: Sequence[dict[str, Any]], folder: Path, layout: Layout) -> None:
    """Write LOOKUPS as a layout says; columns that hold nothing are left out now and then."""
    for number, first in enumerate(range(0, len(rows), layout.file_rows)):
        part = rows[first : first + layout.file_rows]
        if layout.is_hive:
            for cluster in sorted({row["cluster"] for row in part}):
                file = folder / f"cluster={cluster}" / f"date={number}" / "part.parquet"
                _write_part([row for row in part if row["cluster"] == cluster], file, layout, leave={"cluster"})
        else:
            _write_part(part, folder / f"part-{number:03d}.parquet", layout, leave=set())


def _write_part(rows: Sequence[dict[str, Any]], file: Path, layout: Layout, leave: set[str]) -> None:
    schema = CANONICAL["lookups"]
    leave = leave | (set() if layout.with_seq else {"seq"})
    names = [name for name in schema.names if name not in leave and name in rows[0]]
    table = pa.table({name: pa.array([row[name] for row in rows], schema.field(name).type) for name in names})
    if layout.is_encoded:
        place = names.index("topic")
        table = table.set_column(place, "topic", table.column("topic").combine_chunks().dictionary_encode())
    file.parent.mkdir(parents=True, exist_ok=True)
    pq.write_table(table, file, row_group_size=layout.group_rows)
