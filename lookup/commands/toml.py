"""Writes settings as TOML that reads back to the same settings, each line with a comment if there is one."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator, Mapping
from datetime import datetime
from typing import Any

from lookup.model.quoting import one_line

__all__ = ["Comment", "to_toml"]

#: Returns what to say behind a key, by its place; empty for nothing.
Comment = Callable[[tuple[str | int, ...]], str]

_BARE = re.compile(r"[A-Za-z0-9_-]+\Z")


def to_toml(values: Mapping[str, Any], comment: Comment = lambda loc: "") -> str:
    """Write tables of settings: plain values first, then `[table]` and `[[tables]]`; what is None is left out.

    Example:
        >>> print(to_toml({"run": {"seeds": [1, 2], "note": None}, "brokers": [{"id": "b:1"}]}))
        [run]
        seeds = [1, 2]
        <BLANKLINE>
        [[brokers]]
        id = "b:1"
        <BLANKLINE>
    """
    plain = {key: value for key, value in values.items() if not _is_table(value) and not _is_tables(value)}
    blocks = ["\n".join(_lines(plain, (), comment))] if plain else []
    for key, value in values.items():
        if _is_table(value):
            blocks.append("\n".join([f"[{_key(key)}]", *_lines(value, (key,), comment)]))
        elif _is_tables(value):
            tables = (_lines(entry, (key, place), comment) for place, entry in enumerate(value))
            blocks += ["\n".join([f"[[{_key(key)}]]", *lines]) for lines in tables]
    return "\n\n".join(blocks) + "\n"


def _lines(table: Mapping[str, Any], above: tuple[str | int, ...], comment: Comment) -> Iterator[str]:
    for key, value in table.items():
        if value is not None:
            said = comment((*above, key))
            yield f"{_key(key)} = {_value(value)}" + (f"  # {one_line(said)}" if said else "")


def _is_table(value: object) -> bool:
    return isinstance(value, Mapping)


def _is_tables(value: object) -> bool:
    return isinstance(value, list | tuple) and bool(value) and all(isinstance(entry, Mapping) for entry in value)


def _key(key: str) -> str:
    return key if _BARE.match(key) else _text(key)


def _value(value: Any) -> str:
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, str):
        return _text(value)
    if isinstance(value, datetime):
        return value.isoformat().replace("+00:00", "Z")
    if isinstance(value, Mapping):
        inside = ", ".join(f"{_key(key)} = {_value(entry)}" for key, entry in value.items() if entry is not None)
        return f"{{ {inside} }}" if inside else "{}"
    if isinstance(value, list | tuple):
        return f"[{', '.join(map(_value, value))}]"
    return repr(value)


def _text(text: str) -> str:
    # TOML's basic strings are JSON's, but for DEL and for characters beyond 16 bits, of which JSON may make two.
    return json.dumps(text, ensure_ascii=False).replace("\x7f", "\\u007f")
