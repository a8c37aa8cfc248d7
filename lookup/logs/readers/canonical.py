"""Read the rows of canonical tables from text: JSON Lines, or CSV under a header with the names of its columns."""

from __future__ import annotations

import json
from collections.abc import Callable, Container, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, Literal

from lookup.logs.columns import TABLES, Kind
from lookup.logs.readers.values import cut_quoted, number_of, object_of, unreadable
from lookup.model.documents import NestingError, Row, TableName, Unreadable, json_value
from lookup.model.quoting import shown, suggestion
from lookup.model.time import parse_iso

__all__ = ["CsvReader", "JsonLinesReader"]

_KINDS = {table: {column.name: column.kind for column in columns} for table, columns in TABLES.items()}


@dataclass(frozen=True)
class _CanonicalReader:
    """The common part of both readers, which is the table, and columns to leave out."""

    #: the canonical table of the records. By default each record belongs to the table that has its columns
    table: TableName | Literal[""] = ""
    #: columns, or keys, to leave out
    ignore: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        """Refuse parameters that cannot work. Raise ValueError with their names."""
        if self.table and self.table not in TABLES:
            raise ValueError(f"there is no table {shown(self.table)}; {suggestion(self.table, TABLES)}")

    def _row(self, number: int, record: Mapping[str, Any]) -> Row:
        table = self.table or _table_with(record)
        return Row(table, number, _canonical_values(table, record, self.ignore))


@dataclass(frozen=True)
class JsonLinesReader(_CanonicalReader):
    """A reader of canonical tables in JSON Lines. Times are ISO (UTC without offset) or integers of µs."""

    name: ClassVar[str] = "jsonl"
    expects: ClassVar[str] = "one JSON object per line with the columns of a canonical table"
    #: lines are objects of JSON
    reads_objects: ClassVar[bool] = True

    def parse(self, lines: Iterator[tuple[int, str]], source: str) -> Iterator[Row | Unreadable]:
        """Yield a row per line that is not empty."""
        for number, line in lines:
            try:
                if line.strip():
                    yield self._row(number, object_of(line))
            except ValueError as error:
                yield unreadable(number, str(error), line)


@dataclass(frozen=True)
class CsvReader(_CanonicalReader):
    """A reader of a canonical table in CSV, a record a line. Times are ISO (UTC without offset) or integers of µs."""

    name: ClassVar[str] = "csv"
    expects: ClassVar[str] = "a header with the columns of a canonical table and one record per line"
    #: the first line names the columns, and is no record
    has_header: ClassVar[bool] = True

    #: one character between values
    delimiter: str = ","

    def __post_init__(self) -> None:
        """Refuse parameters that cannot work. Raise ValueError with their names."""
        super().__post_init__()
        if len(self.delimiter) != 1:
            raise ValueError(f"`delimiter` must be one character, it is {shown(self.delimiter)}")

    def parse(self, lines: Iterator[tuple[int, str]], source: str) -> Iterator[Row | Unreadable]:
        """Yield a row per line below the header."""
        names: Sequence[str] = ()
        for number, line in lines:
            if not line.strip():
                continue
            try:
                values = cut_quoted(line, self.delimiter, '"')
                if not names:
                    names = [name.strip() for name in values]
                elif len(values) != len(names):
                    yield unreadable(number, f"{len(values)} values where the header names {len(names)} columns", line)
                else:
                    yield self._row(number, dict(zip(names, values, strict=True)))
            except ValueError as error:
                yield unreadable(number, str(error), line)


def _table_with(names: Container[str]) -> TableName:
    telling: Mapping[str, TableName] = {
        "topic": "lookups", "load": "loads", "stats": "bundles", "bundle": "ownership", "event": "brokers",
    }  # fmt: skip
    return next((table for name, table in telling.items() if name in names), "lookups")


def _canonical_values(table: str, mapping: Mapping[str, Any], ignored: tuple[str, ...]) -> dict[str, Any]:
    """Convert texts to values of the columns, without null and empty values. Raise ValueError with the column."""
    kinds = _KINDS[table]
    values: dict[str, Any] = {}
    for name, value in mapping.items():
        if name in ignored:
            continue
        if name not in kinds:
            raise ValueError(f"table {table!r} has no column {shown(name)}; {suggestion(name, kinds)}, or `ignore` it")
        # CSV does not have null, so an empty field is an absent column.
        if value is None or value == "":
            continue
        if isinstance(value, str):
            # A text in a column of JSON is taken to be JSON.
            convert = _CONVERSIONS.get(kinds[name])
            values[name] = value if convert is None else convert(value, name)
        else:
            values[name] = json.dumps(value, separators=(",", ":")) if kinds[name] == "json" else value
    return values


def _time(text: str, name: str) -> int:  # noqa: ARG001  of all functions of its kind
    text = text.strip()
    # Twenty digits are more than any int64 of µs holds.
    return int(text) if text.isdecimal() and len(text) < 20 else parse_iso(text)


def _integer(text: str, name: str) -> int:
    # The text is checked first, since `int` accepts underscores too, and its cost grows with the square of the digits.
    if not text.strip().removeprefix("-").isdecimal() or len(text) > 20:
        raise ValueError(f"{name} {shown(text)} is not an integer")
    return int(text)


def _flag(text: str, name: str) -> bool:
    if text.strip().lower() not in ("true", "false"):
        raise ValueError(f"{name} {shown(text)} is neither true nor false")
    return text.strip().lower() == "true"


def _parse_json(text: str, name: str) -> Any:
    try:
        return json_value(text)
    except NestingError as error:
        raise ValueError(f"{name} {error}") from None
    except ValueError:
        raise ValueError(f"{name} {shown(text)} is not JSON") from None


#: Functions that convert a text to its value, by kind of column. Texts of other kinds stay as they are.
_CONVERSIONS: Mapping[Kind, Callable[[str, str], Any]] = {
    "time": _time,
    "integer": _integer,
    "number": number_of,
    "flag": _flag,
    "properties": _parse_json,
    "texts": _parse_json,
}
