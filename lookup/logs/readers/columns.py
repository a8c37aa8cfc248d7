"""Canonical columns written as text: what JSON Lines and CSV have to turn into a row's values."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from typing import Any

from lookup.logs.readers.records import number_of
from lookup.model.documents import NestingError, json_value
from lookup.model.quoting import shown, suggestion
from lookup.model.time import parse_iso

__all__ = ["COLUMNS", "canonical_values", "require_table"]

#: Columns of the canonical tables; equal to `replay.schema`'s, which needs Arrow (a test compares them).
COLUMNS: Mapping[str, tuple[str, ...]] = {
    "lookups": (
        "ts",
        "seq",
        "cluster",
        "topic",
        "client",
        "properties",
        "asked_broker",
        "broker",
        "result",
        "read_only",
        "authoritative",
        "listener",
        "weight",
        "propensity",
        "latency_ms",
    ),
    "brokers": ("ts", "cluster", "broker", "event", "lookup_data"),
    "loads": ("ts", "cluster", "broker", "load"),
    "bundles": ("ts", "cluster", "bundle", "stats"),
    "ownership": ("ts", "cluster", "bundle", "event", "broker", "by", "boundaries"),
}


def require_table(table: str) -> None:
    """Refuse the name of a table that there is not; ValueError names the closest."""
    if table not in COLUMNS:
        raise ValueError(f"there is no table {shown(table)}; {suggestion(table, COLUMNS)}")


def canonical_values(table: str, given: Mapping[str, Any], ignored: tuple[str, ...]) -> dict[str, Any]:
    """Turn texts into what the columns hold; null and empty values are left out.

    Raises:
        ValueError: naming the column and what it should have been.
    """
    values: dict[str, Any] = {}
    for name, value in given.items():
        if name in ignored:
            continue
        if name not in COLUMNS[table]:
            raise ValueError(
                f"table {table!r} has no column {shown(name)}; {suggestion(name, COLUMNS[table])}, or `ignore` it"
            )
        if value is not None and value != "":
            convert = _CONVERSIONS.get(name)
            values[name] = value if convert is None else convert(value, name)
    return values


def _time(value: Any, name: str) -> Any:
    """Read an ISO time, UTC where it has no offset, or a count of µs as a number or text."""
    if not isinstance(value, str):
        return value
    text = value.strip()
    return int(text) if text.isdecimal() and len(text) < 20 else parse_iso(text)


def _integer(value: Any, name: str) -> Any:
    if not isinstance(value, str):
        return value
    if not value.strip().isdecimal() or len(value) > 20:
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
    """Read JSON where the column's value is text."""
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


_CONVERSIONS: Mapping[str, Callable[[Any, str], Any]] = {
    "ts": _time,
    "seq": _integer,
    "properties": _parsed,
    "boundaries": _parsed,
    "lookup_data": _json_text,
    "load": _json_text,
    "stats": _json_text,
    "read_only": _flag,
    "authoritative": _flag,
    "weight": _number,
    "propensity": _number,
    "latency_ms": _number,
}
