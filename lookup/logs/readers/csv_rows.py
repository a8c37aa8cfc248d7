"""CSV: one canonical row per line, under a header with the table's column names."""

from __future__ import annotations

import csv
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import ClassVar

from lookup.logs.readers.columns import canonical_values, require_table
from lookup.logs.readers.records import unreadable
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
                values = _cut(line, self.delimiter)
                if not names:
                    names = [name.strip() for name in values]
                    continue
                yield Row(self.table, number, canonical_values(self.table, _named(names, values), self.ignore))
            except ValueError as error:
                yield unreadable(number, str(error), line)


def _cut(line: str, delimiter: str) -> Sequence[str]:
    # Line by line and strictly: a stray quote must spoil its own record, not swallow those that follow.
    try:
        return next(csv.reader([line], delimiter=delimiter, strict=True))
    except csv.Error as error:
        raise ValueError(f"the quotes do not fit: {error}") from None


def _named(names: Sequence[str], values: Sequence[str]) -> dict[str, str]:
    if len(values) != len(names):
        raise ValueError(f"{len(values)} values where the header names {len(names)} columns")
    return dict(zip(names, values, strict=True))
