"""Texts of keys and values, `k1=v1,k2=v2` or `k1:v1,k2:v2`, as PIP-451 and PIP-452 write them.

Of a key that is given twice the last value counts, as in a map that is filled. Which keys and values are permitted is
the catalog's business.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from urllib.parse import quote, unquote_plus

from lookup.errors import ArgumentError

__all__ = ["decoded", "encoded_pairs", "pairs_text", "parse_encoded_pairs", "parse_keys", "parse_pairs"]

_SEPARATOR = re.compile("[=:]")


def parse_pairs(text: str) -> dict[str, str]:
    """Read pairs separated by commas; the first `=` or `:` of each ends its key. An empty text holds none.

    Raises:
        ArgumentError: naming the first piece without key or separator.

    Example:
        >>> parse_pairs("env=prod,tier:a")
        {'env': 'prod', 'tier': 'a'}
    """
    return dict(map(_pair, text.split(","))) if text.strip() else {}


def pairs_text(pairs: Mapping[str, str]) -> str:
    """Write pairs as `k1=v1,k2=v2`, in the order of keys."""
    return ",".join(f"{key}={pairs[key]}" for key in sorted(pairs))


def parse_keys(text: str) -> tuple[str, ...]:
    """Read keys separated by commas.

    Raises:
        ArgumentError: where one is empty.
    """
    keys = tuple(key.strip() for key in text.split(","))
    if not all(keys):
        raise ArgumentError(f"{_short(text)} should be keys separated by commas, like key1,key2")
    return keys


def parse_encoded_pairs(text: str) -> dict[str, str]:
    """Read pairs as they stand in a query string: each key and value encoded by itself, or all of it at once.

    Raises:
        ArgumentError: naming a piece without key or separator, or bytes that are no UTF-8.

    Example:
        >>> parse_encoded_pairs("k1=a%2Cb,k2:c")
        {'k1': 'a,b', 'k2': 'c'}
        >>> parse_encoded_pairs("k1%3Dv1%2Ck2%3Dv2")
        {'k1': 'v1', 'k2': 'v2'}
    """
    if not text:
        return {}
    if not _SEPARATOR.search(text):
        return parse_pairs(decoded(text))
    return dict(_pair(piece, decoded) for piece in text.split(","))


def encoded_pairs(pairs: Mapping[str, str]) -> str:
    """Write pairs for a query string, each key and value encoded by itself."""
    return ",".join(f"{quote(key, safe='')}={quote(pairs[key], safe='')}" for key in sorted(pairs))


def decoded(text: str) -> str:
    """Return a piece of a query string as it was before it was encoded.

    Raises:
        ArgumentError: where the bytes are no UTF-8.
    """
    try:
        return unquote_plus(text, errors="strict")
    except UnicodeDecodeError:
        raise ArgumentError(f"{_short(text)} does not decode to UTF-8") from None


def _pair(piece: str, decode: Callable[[str], str] = str.strip) -> tuple[str, str]:
    found = _SEPARATOR.search(piece)
    key = decode(piece[: found.start()]) if found else ""
    if found is None or not key:
        raise ArgumentError(f"{_short(piece)} should be of the form key=value or key:value")
    return key, decode(piece[found.end() :])


def _short(text: str) -> str:
    return repr(text if len(text) <= 80 else f"{text[:77]}...")
