"""JSON Lines: one canonical row per line, an object with the table's column names."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass
from typing import ClassVar

from lookup.model.records import Row, TableName, Unreadable
from lookup.replay.readers.columns import canonical_values, require_table
from lookup.replay.readers.records import unreadable

__all__ = ["JsonLinesReader"]


@dataclass(frozen=True)
class JsonLinesReader:
    """Reads one table from JSON Lines; times are ISO texts or integers of µs, properties an object or JSON text."""

    name: ClassVar[str] = "jsonl"
    expects: ClassVar[str] = "one JSON object per line with the columns of a canonical table"

    #: the canonical table the lines belong to
    table: TableName = "lookups"
    #: keys to leave out
    ignore: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        """Refuse a table that there is not."""
        require_table(self.table)

    def parse(self, lines: Iterator[tuple[int, str]], source: str) -> Iterator[Row | Unreadable]:
        """Yield a row per line that is not empty."""
        for number, line in lines:
            if not line.strip():
                continue
            try:
                record = json.loads(line)
                if not isinstance(record, dict):
                    raise ValueError(f"a {type(record).__name__} where an object was expected")
                yield Row(self.table, number, canonical_values(self.table, record, self.ignore))
            except json.JSONDecodeError as error:
                yield unreadable(number, f"the line is no JSON: {error.msg} at character {error.colno}", line)
            except (ValueError, RecursionError) as error:
                yield unreadable(number, str(error), line)
