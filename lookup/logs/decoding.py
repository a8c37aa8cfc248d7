"""Decode bytes of logs: what is no UTF-8 is Latin-1, so that names which differ stay apart."""

from __future__ import annotations

import codecs
from urllib.parse import unquote

__all__ = ["LATIN_1", "unquoted"]

#: How bytes that are no UTF-8 are read, as `errors` of a decoder.
LATIN_1 = "lookup-latin-1"


def _as_latin_1(error: UnicodeError) -> tuple[str, int]:
    if not isinstance(error, UnicodeDecodeError):
        raise error
    return error.object[error.start : error.end].decode("latin-1"), error.end


codecs.register_error(LATIN_1, _as_latin_1)


def unquoted(text: str) -> str:
    """Return a text without its percent-encoding.

    Example:
        >>> unquoted("K%C3%B6ln"), unquoted("K%F6ln")
        ('Köln', 'Köln')
    """
    return unquote(text, errors=LATIN_1)
