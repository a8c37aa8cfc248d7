"""TOML and JSON texts of users, read up to the depth that `MAX_DEPTH` permits; nothing else reads such a text.

What comes back can be walked, copied, pickled and written again by functions that call themselves: that is why the
limit is far below what Python's stack would bear. Who reads a file says which one it was.
"""

from __future__ import annotations

import json
import tomllib
from collections.abc import Iterable, Mapping
from typing import Any

__all__ = ["MAX_DEPTH", "NestingError", "json_value", "toml_table"]

#: Tables and lists that may stand inside one another.
MAX_DEPTH = 64


class NestingError(ValueError):
    """A text is nested deeper than `MAX_DEPTH`; says so in a clause."""

    def __init__(self) -> None:
        super().__init__(f"is nested too deep: at most {MAX_DEPTH} tables or lists may stand inside one another")


def toml_table(text: str) -> dict[str, Any]:
    """Read a TOML text.

    Raises:
        tomllib.TOMLDecodeError: where it is none.
        NestingError: where it is nested too deep.
    """
    try:
        table = tomllib.loads(text)
    except RecursionError:
        raise NestingError from None
    # A key with dots nests tables without a bracket. The document itself is no table inside another.
    _require_shallow(table.values())
    return table


def json_value(text: str) -> Any:
    """Read a JSON text.

    Raises:
        ValueError: where it is none.
        NestingError: where it is nested too deep.
    """
    try:
        value = json.loads(text)
    except RecursionError:
        raise NestingError from None
    # Logs have millions of records: one with few brackets need not be walked.
    if text.count("[") + text.count("{") > MAX_DEPTH:
        _require_shallow((value,))
    return value


def _require_shallow(values: Iterable[Any]) -> None:
    level = [value for value in values if isinstance(value, Mapping | list)]
    for _ in range(MAX_DEPTH):
        if not level:
            return
        level = [inner for value in level for inner in _inside(value) if isinstance(inner, Mapping | list)]
    if level:
        raise NestingError


def _inside(value: Any) -> Iterable[Any]:
    return value.values() if isinstance(value, Mapping) else value
