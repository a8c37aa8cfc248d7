"""Templates such as `persistent://nasa/http/{url}`, filled with the columns of a record.

In the name of a topic every value is encoded for the place it stands in, so that different values never make the same
name and no value adds a slash of its own.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import lru_cache
from urllib.parse import quote

from lookup.model.quoting import shown

__all__ = ["Template", "topic_template", "value_template"]

_FIELD = re.compile(r"\{([^{}]+)\}")
# What may stand in a local name as it is; no metacharacter of regular expressions, see `looks_like_pattern`.
_LOCAL_SAFE = "-_.~=:,@"
# Pulsar allows [-=:.\w] in tenants and namespaces; "=" introduces an encoded byte, so that it is encoded itself.
_NAMESPACE_UNSAFE = re.compile(r"[^-:.\w]", re.ASCII)

_Encoder = Callable[[str], str]


@dataclass(frozen=True, slots=True)
class Template:
    """Literal texts and columns in turn; `encoders` has one function per column."""

    literals: tuple[str, ...]
    columns: tuple[str, ...]
    encoders: tuple[_Encoder, ...]

    def fill(self, record: Mapping[str, str]) -> str:
        """Put the record's values in; KeyError where the record lacks a column."""
        if len(self.columns) == 1:
            # Nearly every template is one column; this is the path of every value of every line.
            return self.literals[0] + self.encoders[0](record[self.columns[0]]) + self.literals[1]
        parts = [self.literals[0]]
        for column, encode, literal in zip(self.columns, self.encoders, self.literals[1:], strict=True):
            parts += (encode(record[column]), literal)
        return "".join(parts)


def value_template(text: str) -> Template:
    """Read a template of free text; a text without braces is the name of a column."""
    return _parsed(text if "{" in text else f"{{{text}}}", lambda before: str)


def topic_template(text: str) -> Template:
    """Read the template of a topic's name.

    Raises:
        ValueError: where it cannot make a topic.
    """
    if not re.match(r"(?:(?:non-)?persistent|\{[^{}/]+\})://[^/]+/[^/]+/.", text):
        raise ValueError(
            f"topic template {shown(text)} is not of the form persistent://tenant/namespace/topic, with {{column}}s"
        )
    return _parsed(text, _encoder_behind)


def _encoder_behind(before: str) -> _Encoder:
    """Return the encoder of the place behind a part of a topic's template: domain, namespace or local name."""
    slashes = before.count("/")
    if slashes == 0:
        return str
    return _encode_namespace if slashes < 4 else _encode_local


def _parsed(text: str, encoder: Callable[[str], _Encoder]) -> Template:
    pieces = _FIELD.split(text)
    columns = pieces[1::2]
    if any(brace in literal for literal in pieces[0::2] for brace in "{}"):
        raise ValueError(f"template {shown(text)} has a brace that belongs to no {{column}}")
    starts = [match.start() for match in _FIELD.finditer(text)]
    return Template(tuple(pieces[0::2]), tuple(columns), tuple(encoder(text[:start]) for start in starts))


@lru_cache(maxsize=1 << 16)
def _encode_local(value: str) -> str:
    return quote(value, safe=_LOCAL_SAFE)


@lru_cache(maxsize=1 << 12)
def _encode_namespace(value: str) -> str:
    return _NAMESPACE_UNSAFE.sub(lambda found: "".join(f"={byte:02X}" for byte in found[0].encode()), value)
