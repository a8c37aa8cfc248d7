"""Read JSON Lines: one canonical row per line, an object with the table's column names."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from json import JSONDecodeError
from typing import ClassVar

from lookup.logs.readers.values import canonical_values, require_table, unreadable
from lookup.model.documents import NestingError, Row, TableName, Unreadable, json_value

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
                record = json_value(line)
                if isinstance(record, dict):
                    yield Row(self.table, number, canonical_values(self.table, record, self.ignore))
                else:
                    reason = f"a JSON {type(record).__name__} stands where an object was expected"
                    yield unreadable(number, reason, line)
            # Two kinds of ValueError, each with words of its own.
            except NestingError as error:
                yield unreadable(number, f"the line {error}", line)
            except JSONDecodeError as error:
                yield unreadable(number, f"the line is no JSON: {error.msg} at character {error.colno}", line)
            except ValueError as error:
                yield unreadable(number, str(error), line)
