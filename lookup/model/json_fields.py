"""Fields of JSON records, each checked for what it has to be; which fields a record has is said where the record is.

A reader takes a value and its key, nested ones with dots between (`cpu.usage`), and returns the value or raises an
`InputError` that names both and says what would be right.
"""

from __future__ import annotations

import sys
from typing import Any, NoReturn

from lookup.errors import InputError
from lookup.model.documents import NestingError, json_value
from lookup.model.quoting import shown

__all__ = ["flag", "mapping", "number", "parsed_object", "text", "texts", "whole_number"]

#: A `long` of Java, and a column of 64-bit integers, end here.
_LARGEST_WHOLE = 2**63 - 1


def parsed_object(source: str, what: str) -> dict[str, Any]:
    """Read a JSON object.

    Args:
        what: the record's name in sentences.
    """
    try:
        record = json_value(source)
    except NestingError as error:
        raise InputError(f"{what} {error}") from None
    except ValueError as error:
        raise InputError(f"{what} is no JSON: {error}") from None
    if not isinstance(record, dict):
        raise InputError(f"{what} is no JSON object but {type(record).__name__}")
    return record


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
    """Return an integer of 64 bits, also where it is written with a fraction of zero."""
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
