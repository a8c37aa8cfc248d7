"""Read users' files, such as TOML, JSON and YAML texts of bounded depth, JSON records and rows of log readers.

No other module parses such a text. Recursive functions can walk, copy, pickle and write the values, so
`MAX_DEPTH` is far below the depth of Python's stack. The caller names the file.

A reader of fields takes a value and its key, with dots between nested keys (`cpu.usage`). It returns the
value or raises an `InputError` that names both and states the expected value.
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

#: Greatest depth of nested tables and lists.
MAX_DEPTH = 64
#: A `long` of Java, and a column of 64-bit integers, end here.
_LARGEST_WHOLE = 2**63 - 1
#: Python does not read integers with more digits than this. For dates that do not exist, TOML has its own sentence.
_LONG_NUMBER = f"it has a whole number of more than {sys.get_int_max_str_digits():,} digits"
#: A token of any kind is shorter, B.
_MOST_SECRET = 64 * 1024
#: Open files of a process. Under the same name, another process has other files or none.
_STREAM = re.compile(r"/dev/(?:stdin|stdout|stderr|fd/.+)|/proc/(?:self|thread-self|\d+)/fd/.+")
_KINDS = {stat.S_IFCHR: "a device", stat.S_IFBLK: "a device", stat.S_IFIFO: "a pipe", stat.S_IFSOCK: "a socket"}

#: The canonical tables, `docs/getting-lookups.md`.
TableName = Literal["lookups", "brokers", "loads", "bundles", "ownership"]


class NestingError(ValueError):
    """Error for a text that is nested deeper than `MAX_DEPTH`, with a clause about it."""

    def __init__(self) -> None:
        super().__init__(f"is nested too deep: at most {MAX_DEPTH} tables or lists may stand inside one another")


class _LongNumberError(tomllib.TOMLDecodeError):
    """Error for a number with more digits than Python reads, with a clause about it."""

    def __init__(self) -> None:
        # Python 3.14 wants a position of its own error.
        ValueError.__init__(self, _LONG_NUMBER)


@dataclass(frozen=True, slots=True)
class Row:
    """One canonical row from a log reader.

    `values` has the table's column names. Timestamps are integers in µs since the Unix epoch (UTC), `properties` is a
    mapping, and `lookup_data`, `load` and `stats` are Pulsar's JSON as text. Absent columns get the table's defaults.
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
    """A record of the reader's own kind that cannot be used. Other lines are not reported."""

    line: int
    #: the mistake and the right form, in one clause
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
    # Logs have millions of records, and a record with few brackets need not be walked.
    if text.count("[") + text.count("{") > MAX_DEPTH:
        _require_shallow((value,))
    return value


class _YamlTexts(yaml.SafeLoader):
    """Keep scalars other than null as written, since YAML 1.1 reads `on` as true and 010 as 8, and ignore tags."""

    yaml_implicit_resolvers = {  # noqa: RUF012  as the library has it
        first: [pair for pair in pairs if pair[0].endswith((":merge", ":null"))]
        for first, pairs in yaml.SafeLoader.yaml_implicit_resolvers.items()
    }
    yaml_constructors = {  # noqa: RUF012  the same; other tags go by the kind of their node
        f"tag:yaml.org,2002:{kind}": yaml.SafeLoader.yaml_constructors[f"tag:yaml.org,2002:{kind}"]
        for kind in ("map", "null", "seq")
    }


def yaml_documents(text: str) -> list[Any]:
    """Read the documents of a YAML text as tables, lists, texts and None.

    The value of an anchor may occur in many places.

    Raises:
        ValueError: for a text that is not YAML, with the first mistake. `NestingError` if it is nested too deep.
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
    # Level by level, since a recursive walk would fail at the very depth that it must reject. Both parsers return only
    # these types, and a check for an abstract class would take most of the time.
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


#: Reader of a field by its type as written in the class, since annotations are not evaluated.
Readers: TypeAlias = Mapping[str, Callable[[object, str], Any]]
_Record = TypeVar("_Record")


def record_in(kind: type[_Record], values: Mapping[str, Any], readers: Readers, prefix: str = "") -> _Record:
    """Read a dataclass from an object of Pulsar's JSON.

    Null and absent mean the default. Unknown keys are ignored.

    Args:
        prefix: text before the keys in messages.
    """
    named = json_fields(kind)  # type: ignore[arg-type]  # a class is hashable
    present = ((name, key, of) for name, key, of in named if values.get(key) is not None)
    return kind(**{name: readers[of](values[key], prefix + key) for name, key, of in present})


@cache
def json_fields(kind: type[Any]) -> tuple[tuple[str, str, str], ...]:
    """List name, key in Pulsar's JSON (`msgRateIn` for `msg_rate_in`) and type of each field of a dataclass."""
    return tuple((entry.name, _to_camel_case(entry.name), str(entry.type)) for entry in fields(kind))


def _to_camel_case(name: str) -> str:
    first, *rest = name.split("_")
    return first + "".join("EMA" if part == "ema" else part.capitalize() for part in rest)


def text(value: object, key: str) -> str:
    """Check that a value is a text, and return it."""
    return value if isinstance(value, str) else _refuse(value, key, "a text")


def flag(value: object, key: str) -> bool:
    """Check that a value is a bool, and return it."""
    return value if isinstance(value, bool) else _refuse(value, key, "true or false")


def number(value: object, key: str) -> float:
    """Check that a value is a finite number, and return it. Python also reads NaN, Infinity and 1e999 from JSON."""
    if not _is_finite(value):
        _refuse(value, key, "a number" if not isinstance(value, float) else "a finite number")
    return value  # type: ignore[return-value]  # just checked


def whole_number(value: object, key: str) -> int:
    """Read an integer of 64 bits, also if it is written with a fraction of zero."""
    if not _is_finite(value) or value != int(value) or abs(value) > _LARGEST_WHOLE:  # type: ignore[call-overload,arg-type]  # finite
        _refuse(value, key, "a whole number of at most 64 bits")
    return int(value)  # type: ignore[call-overload,no-any-return]  # just checked


def mapping(value: object, key: str) -> dict[str, Any]:
    """Check that a value is a JSON object, and return it."""
    return value if isinstance(value, dict) else _refuse(value, key, "an object")


def texts(value: object, key: str) -> dict[str, str]:
    """Check that a value is an object whose values are texts, and return it."""
    return {name: text(entry, f"{key}.{name}") for name, entry in mapping(value, key).items()}


def _is_finite(value: object) -> bool:
    # Comparing is exact between int and float, and false for NaN. math.isfinite fails for integers beyond all floats.
    return isinstance(value, int | float) and not isinstance(value, bool) and abs(value) <= sys.float_info.max


def _refuse(value: object, key: str, right: str) -> NoReturn:
    raise InputError(f"{key} is {shown(value)}, not {right}")


def special_kind(path: str) -> str | None:
    """Find the kind of a path that can be read only once or without end, such as a device or a pipe, else None."""
    # By name first, since `/dev/stdin` is a link to any file that the shell has put there, even a plain one.
    if _STREAM.fullmatch(os.path.abspath(path)):
        return "a stream of this process"
    return _find_kind(Path(path))


def secret_in(path: str) -> str:
    """Read a file with a token, without blanks around the text.

    Raises:
        OSError: if it cannot be read.
        ValueError: if it is not a plain text file of a reasonable size. The clause does not contain the path.
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
    """Check whether a path names a device, which may be endless."""
    return _find_kind(path) == "a device"


def _find_kind(path: Path) -> str | None:
    try:
        return _KINDS.get(stat.S_IFMT(path.stat().st_mode))
    except (OSError, ValueError):  # ValueError for a path with a NUL in it
        return None
