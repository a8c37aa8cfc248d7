"""Turn the texts of records into what canonical columns hold, and report records that cannot be used."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from lookup.logs.columns import TABLES, Kind
from lookup.model.documents import NestingError, Unreadable, json_value
from lookup.model.quoting import shown, suggestion
from lookup.model.time import parse_iso

__all__ = ["canonical_values", "number_of", "other_delimiter", "require_table", "unreadable"]

#: A longer beginning of a record is cut here, as `Unreadable` promises.
_TEXT_LENGTH = 200
_KINDS = {table: {column.name: column.kind for column in columns} for table, columns in TABLES.items()}


def unreadable(line: int, reason: str, text: str) -> Unreadable:
    """Report a record of the reader's own that it cannot use."""
    return Unreadable(line, reason, text[:_TEXT_LENGTH])


def number_of(text: str, what: str) -> float:
    """Read a number; ValueError names what it should have been."""
    try:
        return float(text)
    except ValueError:
        raise ValueError(f"{what} {shown(text)} is not a number") from None


def other_delimiter(names: Sequence[str]) -> str:
    """Return the question whether a header that is one column should be cut by another delimiter; empty if not."""
    marks = [mark for mark in ("\t", ",", ";", "|") if mark in names[0]] if len(names) == 1 else []
    return f"; should `delimiter` be {max(marks, key=names[0].count)!r}?" if marks else ""


def require_table(table: str) -> None:
    """Refuse the name of a table that does not exist; ValueError names the closest."""
    if table not in TABLES:
        raise ValueError(f"there is no table {shown(table)}; {suggestion(table, TABLES)}")


def canonical_values(table: str, given: Mapping[str, Any], ignored: tuple[str, ...]) -> dict[str, Any]:
    """Turn texts into what the columns hold; null and empty values are left out.

    Raises:
        ValueError: naming the column and what it should have been.
    """
    kinds = _KINDS[table]
    values: dict[str, Any] = {}
    for name, value in given.items():
        if name in ignored:
            continue
        if name not in kinds:
            raise ValueError(f"table {table!r} has no column {shown(name)}; {suggestion(name, kinds)}, or `ignore` it")
        # CSV has no null: an empty field is a column that is absent.
        if value is None or value == "":
            continue
        if isinstance(value, str):
            # A text in a column of JSON is taken to be JSON.
            convert = _CONVERSIONS.get(kinds[name])
            values[name] = value if convert is None else convert(value, name)
        else:
            values[name] = json.dumps(value, separators=(",", ":")) if kinds[name] == "json" else value
    return values


def _time(text: str, name: str) -> int:
    """Read an ISO time, UTC if it has no offset, or a count of µs."""
    text = text.strip()
    # Twenty digits are more than any int64 of µs holds.
    return int(text) if text.isdecimal() and len(text) < 20 else parse_iso(text)


def _integer(text: str, name: str) -> int:
    # Checked beforehand: `int` takes underscores too, and its cost grows with the square of the digits.
    if not text.strip().removeprefix("-").isdecimal() or len(text) > 20:
        raise ValueError(f"{name} {shown(text)} is no integer")
    return int(text)


def _flag(text: str, name: str) -> bool:
    if text.strip().lower() not in ("true", "false"):
        raise ValueError(f"{name} {shown(text)} is neither true nor false")
    return text.strip().lower() == "true"


def _parsed(text: str, name: str) -> Any:
    """Read JSON; ValueError names the column."""
    try:
        return json_value(text)
    except NestingError as error:
        raise ValueError(f"{name} {error}") from None
    except ValueError:
        raise ValueError(f"{name} {shown(text)} is no JSON") from None


#: By kind of column, what turns a text into its value; texts of other kinds stay as they are.
_CONVERSIONS: Mapping[Kind, Callable[[str, str], Any]] = {
    "time": _time,
    "integer": _integer,
    "number": number_of,
    "flag": _flag,
    "properties": _parsed,
    "texts": _parsed,
}
