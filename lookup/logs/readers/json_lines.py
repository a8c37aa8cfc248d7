"""Read JSON Lines: one canonical row per line, an object with the table's column names."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import ClassVar

from lookup.logs.readers.objects import object_of
from lookup.logs.readers.values import canonical_values, require_table, unreadable
from lookup.model.documents import Row, TableName, Unreadable

__all__ = ["JsonLinesReader"]


@dataclass(frozen=True)
class JsonLinesReader:
    """Reads one table from JSON Lines; times are ISO (UTC without offset) or integers of µs; a record is one line."""

    name: ClassVar[str] = "jsonl"
    expects: ClassVar[str] = "one JSON object per line with the columns of a canonical table"

    #: the canonical table the lines belong to
    table: TableName = "lookups"
    #: keys to leave out
    ignore: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        """Refuse a table that does not exist."""
        require_table(self.table)

    def parse(self, lines: Iterator[tuple[int, str]], source: str) -> Iterator[Row | Unreadable]:
        """Yield a row per line that is not empty."""
        for number, line in lines:
            if not line.strip():
                continue
            try:
                yield Row(self.table, number, canonical_values(self.table, object_of(line), self.ignore))
            except ValueError as error:
                yield unreadable(number, str(error), line)
