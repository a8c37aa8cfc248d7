"""Extract texts from the lines of a log, and report records that cannot be used.

A nested key of a line of JSON is named by dots, `client.ip`. Every value is a text, as in a delimited file, so that
templates and rules work on both alike. A null and an absent key are empty texts, a list is the text of its JSON. Bytes
that are not UTF-8 are read as Latin-1, so that different names stay different.
"""

from __future__ import annotations

import codecs
import csv
import json
from collections.abc import Mapping
from typing import Any
from urllib.parse import unquote

from lookup.errors import InputError
from lookup.model.documents import Unreadable, parsed_object
from lookup.model.quoting import shown

__all__ = ["LATIN_1", "cut_quoted", "decode_percent", "flatten", "number_of", "object_of", "unreadable", "value_at"]

#: A longer beginning of a record is cut here, as `Unreadable` promises.
_TEXT_LENGTH = 200
#: How bytes that are no UTF-8 are read, as `errors` of a decoder.
LATIN_1 = "lookup-latin-1"


def _as_latin_1(error: UnicodeError) -> tuple[str, int]:
    if not isinstance(error, UnicodeDecodeError):
        raise error
    return error.object[error.start : error.end].decode("latin-1"), error.end


codecs.register_error(LATIN_1, _as_latin_1)


def decode_percent(text: str) -> str:
    """Decode the percent-encoding of a text.

    Example:
        >>> decode_percent("K%C3%B6ln"), decode_percent("K%F6ln")
        ('Köln', 'Köln')
    """
    return unquote(text, errors=LATIN_1)


def unreadable(line: int, reason: str, text: str) -> Unreadable:
    """Report a record of the reader's own that it cannot use."""
    return Unreadable(line, reason, text[:_TEXT_LENGTH])


def number_of(text: str, what: str) -> float:
    """Read a number. Raise ValueError with the expected kind."""
    try:
        return float(text)
    except ValueError:
        raise ValueError(f"{what} {shown(text)} is not a number") from None


def cut_quoted(line: str, delimiter: str, quote: str) -> list[str]:
    """Cut a line into the values between delimiters, unquoted. Raise ValueError if the quotes do not match."""
    # Each line is read strictly and by itself, since a stray quote must spoil its own record, not the following ones.
    try:
        return next(csv.reader([line], delimiter=delimiter, quotechar=quote, strict=True))
    except csv.Error as error:
        raise ValueError(f"the quotes do not fit: {error}") from None


def object_of(line: str) -> dict[str, Any]:
    """Read the JSON object of a line, or raise ValueError with a clause about the actual content."""
    try:
        return parsed_object(line, "the line")
    except InputError as error:
        raise ValueError(str(error)) from None


def value_at(record: Mapping[str, Any], name: str) -> str:
    """Look up the text of a key, first literally, else nested by dots, an empty text if it is null or absent."""
    if name in record:
        return _text(record[name])
    place = name.find(".")
    while place >= 0:
        inner = record.get(name[:place])
        value = value_at(inner, name[place + 1 :]) if isinstance(inner, dict) else ""
        if value:
            return value
        place = name.find(".", place + 1)
    return ""


def flatten(record: Mapping[str, Any], before: str = "") -> dict[str, str]:
    """Collect the texts of all values of an object, nested ones under their keys with dots between them."""
    texts: dict[str, str] = {}
    for key, value in record.items():
        name = before + key
        texts |= flatten(value, f"{name}.") if isinstance(value, dict) else {name: _text(value)}
    return texts


def _text(value: object) -> str:
    if isinstance(value, str):
        return value
    # True and lists are written as in JSON, a number with the digits that it has as a float.
    return "" if value is None else json.dumps(value, ensure_ascii=False, separators=(",", ":"))
