"""Turn the texts of records into what canonical columns hold, and report records that cannot be used."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from typing import Any

from lookup.logs.columns import TABLES, Kind
from lookup.model.documents import NestingError, Unreadable, json_value
from lookup.model.quoting import shown, suggestion
from lookup.model.time import parse_iso

__all__ = ["canonical_values", "number_of", "require_table", "unreadable"]

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
        if value is not None and value != "":
            convert = _CONVERSIONS.get(kinds[name])
            values[name] = value if convert is None else convert(value, name)
    return values


def _time(value: Any, name: str) -> Any:
    """Read an ISO time, UTC if it has no offset, or a count of µs as a number or text."""
    if not isinstance(value, str):
        return value
    text = value.strip()
    # Twenty digits are more than any int64 of µs holds.
    return int(text) if text.isdecimal() and len(text) < 20 else parse_iso(text)


def _integer(value: Any, name: str) -> Any:
    if not isinstance(value, str):
        return value
    if not value.strip().removeprefix("-").isdecimal() or len(value) > 20:
        raise ValueError(f"{name} {shown(value)} is no integer")
    return int(value)


def _number(value: Any, name: str) -> Any:
    return number_of(value, name) if isinstance(value, str) else value


def _flag(value: Any, name: str) -> Any:
    if not isinstance(value, str):
        return value
    if value.strip().lower() not in ("true", "false"):
        raise ValueError(f"{name} {shown(value)} is neither true nor false")
    return value.strip().lower() == "true"


def _parsed(value: Any, name: str) -> Any:
    """Read JSON if the column's value is text."""
    if not isinstance(value, str):
        return value
    try:
        return json_value(value)
    except NestingError as error:
        raise ValueError(f"{name} {error}") from None
    except ValueError:
        raise ValueError(f"{name} {shown(value)} is no JSON") from None


def _json_text(value: Any, name: str) -> Any:
    """Write an object as JSON; a text is taken to be JSON."""
    return value if isinstance(value, str) else json.dumps(value, separators=(",", ":"))


_CONVERSIONS: Mapping[Kind, Callable[[Any, str], Any]] = {
    "time": _time,
    "integer": _integer,
    "number": _number,
    "flag": _flag,
    "json": _json_text,
    "properties": _parsed,
    "texts": _parsed,
}
