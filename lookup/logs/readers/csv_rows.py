"""Read CSV: one canonical row per line, under a header with the table's column names."""

from __future__ import annotations

import csv
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import ClassVar

from lookup.logs.readers.values import canonical_values, other_delimiter, require_table, unreadable
from lookup.model.documents import Row, TableName, Unreadable
from lookup.model.quoting import shown

__all__ = ["CsvReader"]


@dataclass(frozen=True)
class CsvReader:
    """Reads one table from CSV; times are ISO (UTC without offset) or integers of µs; a record is one line."""

    name: ClassVar[str] = "csv"
    expects: ClassVar[str] = "a header with the columns of a canonical table and one record per line"

    #: the canonical table the records belong to
    table: TableName = "lookups"
    #: one character between values
    delimiter: str = ","
    #: columns to leave out
    ignore: tuple[str, ...] = ()

    #: the first line names the columns, and is no record
    has_header: ClassVar[bool] = True

    def __post_init__(self) -> None:
        """Refuse parameters that cannot work."""
        require_table(self.table)
        if len(self.delimiter) != 1:
            raise ValueError(f"`delimiter` must be one character, it is {shown(self.delimiter)}")

    def parse(self, lines: Iterator[tuple[int, str]], source: str) -> Iterator[Row | Unreadable]:
        """Yield a row per line below the header."""
        names: Sequence[str] = ()
        for number, line in lines:
            if not line.strip():
                continue
            try:
                # Line by line and strictly: a stray quote must spoil its own record, not swallow those that follow.
                values = next(csv.reader([line], delimiter=self.delimiter, strict=True))
                if not names:
                    names = [name.strip() for name in values]
                    question = other_delimiter(names)
                    if question:
                        yield unreadable(number, f"the header is one column, {shown(names[0])}{question}", line)
                    continue
                if len(values) != len(names):
                    yield unreadable(number, f"{len(values)} values where the header names {len(names)} columns", line)
                    continue
                record = dict(zip(names, values, strict=True))
                yield Row(self.table, number, canonical_values(self.table, record, self.ignore))
            except csv.Error as error:
                yield unreadable(number, f"the quotes do not fit: {error}", line)
            except ValueError as error:
                yield unreadable(number, str(error), line)
