"""Find how long a log is without reading it: from the footers of a table, or the first and last lines of text files."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from itertools import islice
from typing import Any

import numpy as np
import pyarrow.parquet as pq

from lookup.engine.plugins import Registry
from lookup.logs.columns import check_row
from lookup.logs.ingest import reader_of
from lookup.logs.sources import LogFile, last_lines, list_files, list_log, open_lines, open_parquet
from lookup.model.documents import Row, toml_table

__all__ = ["span_of", "statistics_of", "table_span"]

#: Lines at the beginning of a file that are read: lookups may be rare among the lines of a broker's log.
_HEAD = 5_000
#: With more files than this, looking at each is no longer cheap.
_MOST_FILES = 200

Span = tuple[int, int]


def span_of(source: str, mapping: str, registry: Registry) -> Span | None:
    """Return the times of the first and the last lookup of a log, µs; None if they are not cheap to know.

    Files that are packed, in UTF-16 or in a store cannot be read from their ends.

    Args:
        source: a file, folder, glob or URI.
        mapping: text of the mapping that reads it, empty for a table LOOKUPS.
        registry: of all plug-ins.

    Raises:
        InputError: if the source does not exist.
    """
    if not mapping:
        return table_span(list_log(source))
    paths = list_files([source])
    instants: list[int] = []
    for path in paths if len(paths) <= _MOST_FILES else ():
        tail = last_lines(path)
        if tail is None:
            return None
        instants += _instants(path, tail, mapping, registry)
    return (min(instants), max(instants)) if instants else None


def _instants(path: str, tail: Sequence[str], mapping: str, registry: Registry) -> list[int]:
    """Return the times of the lookups among the first and the last lines of a file, µs."""
    try:
        head = list(islice(open_lines(path), _HEAD))
        # A short file is its own beginning and end: its lines occur twice, which changes neither of the two times.
        numbered = [*head, *enumerate(tail, start=len(head) + 1)]
        entries = reader_of(registry, toml_table(mapping), "mapping").parse(iter(numbered), path)
        lookups = [entry for entry in entries if isinstance(entry, Row) and entry.table == "lookups"]
        rows = [check_row("lookups", entry.values, cluster="any") for entry in lookups]
    except Exception:  # noqa: BLE001  a plug-in's reader may raise anything, and the times are only for a proposal
        return []
    return [row["ts"] for row in rows if not isinstance(row, str)]


def table_span(files: Iterable[LogFile]) -> Span | None:
    """Return the first and the last time that the footers of a table name, µs; None if they have no statistics."""
    instants = []
    for file in files:
        with open_parquet(file.path) as parquet:
            for _, statistics in statistics_of(parquet, ("ts",)):
                instants += [_micros(statistics.min), _micros(statistics.max)]
    return (min(instants), max(instants)) if instants else None


def _micros(instant: Any) -> int:
    if isinstance(instant, int):
        return instant
    return int(np.datetime64(instant.replace(tzinfo=None), "us").astype(np.int64))


def statistics_of(parquet: pq.ParquetFile, names: Sequence[str]) -> Iterator[tuple[str, pq.Statistics]]:
    """Yield the statistics of some columns in each row group, as far as there are any."""
    for group in range(parquet.metadata.num_row_groups):
        rows = parquet.metadata.row_group(group)
        for column in map(rows.column, range(rows.num_columns)):
            if column.path_in_schema in names and column.statistics is not None and column.statistics.has_min_max:
                yield column.path_in_schema, column.statistics
