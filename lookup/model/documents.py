"""Read users' files: TOML, JSON and YAML texts of bounded depth, checked fields of JSON records, rows of log readers.

No other module parses such a text. Values that come back can be walked, copied, pickled and written again by recursive
functions, so `MAX_DEPTH` is far below the depth of Python's stack. The caller names the file.

A reader of fields takes a value and its key, nested ones with dots between (`cpu.usage`), and returns the value or
raises an `InputError` that names both and says what would be right.
"""

from __future__ import annotations

import json
import os
import re
import stat
import sys
import tomllib
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field, fields
from functools import cache
from pathlib import Path
from typing import Any, Literal, NoReturn, TypeAlias, TypeVar

import yaml

from lookup.errors import InputError
from lookup.model.quoting import shown

__all__ = [
    "MAX_DEPTH", "NestingError", "Readers", "Refuted", "Row", "TableName", "Unreadable", "flag", "is_device",
    "json_fields", "json_value", "mapping", "number", "parsed_object", "record_in", "secret_in", "special_kind", "text",
    "texts", "toml_table", "whole_number", "yaml_documents",
]  # fmt: skip

#: Tables and lists that may stand inside one another.
MAX_DEPTH = 64
#: A `long` of Java, and a column of 64-bit integers, end here.
_LARGEST_WHOLE = 2**63 - 1
#: Python reads no integer with more digits than this; of dates that do not exist TOML has a sentence of its own.
_LONG_NUMBER = f"it has a whole number of more than {sys.get_int_max_str_digits():,} digits"
#: A token of any kind is shorter, B.
_MOST_SECRET = 64 * 1024
#: Open files of a process: another process has others, or none, under the same name.
_STREAM = re.compile(r"/dev/(?:stdin|stdout|stderr|fd/.+)|/proc/(?:self|thread-self|\d+)/fd/.+")
_KINDS = {stat.S_IFCHR: "a device", stat.S_IFBLK: "a device", stat.S_IFIFO: "a pipe", stat.S_IFSOCK: "a socket"}

#: The canonical tables, `docs/getting-lookups.md`.
TableName = Literal["lookups", "brokers", "loads", "bundles", "ownership"]


class NestingError(ValueError):
    """A text is nested deeper than `MAX_DEPTH`; says so in a clause."""

    def __init__(self) -> None:
        super().__init__(f"is nested too deep: at most {MAX_DEPTH} tables or lists may stand inside one another")


class _LongNumberError(tomllib.TOMLDecodeError):
    """A number has more digits than Python reads; says so in a clause."""

    def __init__(self) -> None:
        # Python 3.14 wants a position of its own error.
        ValueError.__init__(self, _LONG_NUMBER)


@dataclass(frozen=True, slots=True)
class Row:
    """One canonical row, as a log reader yields it.

    `values` has the table's column names; timestamps are integers in µs since the Unix epoch (UTC), `properties` a
    mapping, `lookup_data`, `load` and `stats` Pulsar's JSON as text. Absent columns take the table's defaults.
    """

    table: TableName
    #: line or record number in the source, from 1
    line: int
    values: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Refuted:
    """Rows that are wrong, as a log reader learns from its own source, whichever source has them.

    All rows of `table` with these `values` and a time in [from_us, until_us), µs since the Unix epoch.
    """

    table: TableName
    #: line or record number in the source, from 1
    line: int
    from_us: int
    until_us: int
    values: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Unreadable:
    """A record that is one of the reader's own but cannot be used; other lines are not reported."""

    line: int
    #: what is wrong and what would be right, one clause
    reason: str
    #: the beginning of the record, at most 200 characters
    text: str


def toml_table(text: str) -> dict[str, Any]:
    """Read a TOML text, or raise tomllib.TOMLDecodeError if it is none, NestingError if it is nested too deep."""
    try:
        table = tomllib.loads(text)
    except RecursionError:
        raise NestingError from None
    except ValueError as error:
        if isinstance(error, tomllib.TOMLDecodeError):
            raise
        raise _LongNumberError from None
    # A key with dots nests tables without a bracket. The document itself is no table inside another.
    _require_shallow(table.values())
    return table


def json_value(text: str) -> Any:
    """Read a JSON text, or raise ValueError if it is none, NestingError if it is nested too deep."""
    try:
        value = json.loads(text)
    except RecursionError:
        raise NestingError from None
    except ValueError as error:
        if isinstance(error, json.JSONDecodeError):
            raise
        raise ValueError(_LONG_NUMBER) from None
    # Logs have millions of records: one with few brackets need not be walked.
    if text.count("[") + text.count("{") > MAX_DEPTH:
        _require_shallow((value,))
    return value


class _YamlTexts(yaml.SafeLoader):
    """Keep scalars as they are written, but for nothing: YAML 1.1 takes `on` for true, and 010 for 8; ignore tags."""

    yaml_implicit_resolvers = {  # noqa: RUF012  as the library has it
        first: [pair for pair in pairs if pair[0].endswith((":merge", ":null"))]
        for first, pairs in yaml.SafeLoader.yaml_implicit_resolvers.items()
    }
    yaml_constructors = {  # noqa: RUF012  the same; other tags go by the kind of their node
        f"tag:yaml.org,2002:{kind}": yaml.SafeLoader.yaml_constructors[f"tag:yaml.org,2002:{kind}"]
        for kind in ("map", "null", "seq")
    }


def yaml_documents(text: str) -> list[Any]:
    """Read the documents of a YAML text: tables, lists and texts, and None. An anchor's value may be in many places.

    Raises:
        ValueError: if it is none, with the first mistake; `NestingError` if it is nested too deep.
    """
    try:
        return list(yaml.load_all(text, Loader=_YamlTexts))
    except RecursionError:
        raise NestingError from None
    except yaml.MarkedYAMLError as error:
        where = "" if error.problem_mark is None else f" (line {error.problem_mark.line + 1})"
        raise ValueError(f"{error.problem}{where}") from None
    except yaml.YAMLError as error:  # of a character that YAML has not
        raise ValueError(str(error).partition("\n")[0]) from None


def _require_shallow(values: Iterable[Any]) -> None:
    # Level by level: a recursive walk would fail at the depth it is there to refuse.
    # Only these come out of both parsers, and an abstract class in their place would take most of the time.
    level = [value for value in values if isinstance(value, (dict, list))]
    for _ in range(MAX_DEPTH):
        if not level:
            return
        insides = (value.values() if isinstance(value, dict) else value for value in level)
        level = [inner for inside in insides for inner in inside if isinstance(inner, (dict, list))]
    if level:
        raise NestingError


def parsed_object(source: str, what: str) -> dict[str, Any]:
    """Read a JSON object."""
    try:
        record = json_value(source)
    except NestingError as error:
        raise InputError(f"{what} {error}") from None
    except ValueError as error:
        raise InputError(f"{what} is not JSON: {error}") from None
    if not isinstance(record, dict):
        raise InputError(f"{what} is not a JSON object but {type(record).__name__}")
    return record


#: Reader of a field by its type, as the class has it: annotations are not evaluated.
Readers: TypeAlias = Mapping[str, Callable[[object, str], Any]]
_Record = TypeVar("_Record")


def record_in(kind: type[_Record], values: Mapping[str, Any], readers: Readers, prefix: str = "") -> _Record:
    """Read a dataclass from an object of Pulsar's JSON; null and absent mean the default, unknown keys are ignored.

    Args:
        prefix: what stands before keys in sentences.
    """
    named = json_fields(kind)  # type: ignore[arg-type]  # a class is hashable
    present = ((name, key, of) for name, key, of in named if values.get(key) is not None)
    return kind(**{name: readers[of](values[key], prefix + key) for name, key, of in present})


@cache
def json_fields(kind: type[Any]) -> tuple[tuple[str, str, str], ...]:
    """Return name, key in Pulsar's JSON and type of each field of a dataclass: `msg_rate_in` is `msgRateIn` there."""
    return tuple((entry.name, _camel(entry.name), str(entry.type)) for entry in fields(kind))


def _camel(name: str) -> str:
    first, *rest = name.split("_")
    return first + "".join("EMA" if part == "ema" else part.capitalize() for part in rest)


def text(value: object, key: str) -> str:
    """Return a text."""
    return value if isinstance(value, str) else _refuse(value, key, "a text")


def flag(value: object, key: str) -> bool:
    """Return a truth value."""
    return value if isinstance(value, bool) else _refuse(value, key, "true or false")


def number(value: object, key: str) -> float:
    """Return a finite number; Python reads NaN, Infinity and 1e999 from JSON as well."""
    if not _is_finite(value):
        _refuse(value, key, "a number" if not isinstance(value, float) else "a finite number")
    return value  # type: ignore[return-value]  # just checked


def whole_number(value: object, key: str) -> int:
    """Return an integer of 64 bits, also if it is written with a fraction of zero."""
    if not _is_finite(value) or value != int(value) or abs(value) > _LARGEST_WHOLE:  # type: ignore[call-overload,arg-type]  # finite
        _refuse(value, key, "a whole number of at most 64 bits")
    return int(value)  # type: ignore[call-overload,no-any-return]  # just checked


def mapping(value: object, key: str) -> dict[str, Any]:
    """Return a JSON object."""
    return value if isinstance(value, dict) else _refuse(value, key, "an object")


def texts(value: object, key: str) -> dict[str, str]:
    """Return an object whose values are texts."""
    return {name: text(entry, f"{key}.{name}") for name, entry in mapping(value, key).items()}


def _is_finite(value: object) -> bool:
    # Comparing is exact between int and float, and false for NaN; math.isfinite fails at integers beyond all floats.
    return isinstance(value, int | float) and not isinstance(value, bool) and abs(value) <= sys.float_info.max


def _refuse(value: object, key: str, right: str) -> NoReturn:
    raise InputError(f"{key} is {shown(value)}, not {right}")


def special_kind(path: str) -> str | None:
    """Return the kind of a path that can be read once at most, or without end: a device, a pipe, ...; else None."""
    # By name first: `/dev/stdin` is a link to whatever the shell has put there, even a plain file.
    if _STREAM.fullmatch(os.path.abspath(path)):
        return "a stream of this process"
    return _kind(Path(path))


def secret_in(path: str) -> str:
    """Return the text of a file with a token, without blanks around it.

    Raises:
        OSError: if it cannot be read.
        ValueError: if it is no plain file of a reasonable size, or no text; a clause that does not name the path.
    """
    kind = special_kind(path)
    if kind is not None:
        raise ValueError(f"is {kind}; expected a plain file that holds the token")
    with Path(path).open("rb") as file:
        raw = file.read(_MOST_SECRET + 1)
    if len(raw) > _MOST_SECRET:
        raise ValueError(f"has more than {_MOST_SECRET:,} bytes; it should hold the token and nothing else")
    try:
        return raw.decode().strip()
    except UnicodeDecodeError:
        raise ValueError("is not UTF-8 text; it should hold the token") from None


def is_device(path: Path) -> bool:
    """Return whether a path names a device, which may have no end."""
    return _kind(path) == "a device"


def _kind(path: Path) -> str | None:
    try:
        return _KINDS.get(stat.S_IFMT(path.stat().st_mode))
    except (OSError, ValueError):  # ValueError: of a path with a NUL in it
        return None
