"""Patterns of topic names: what a subscription's regular expression matches, in time linear in the name.

Source: `docs/pulsar/protocol.md`; RE2 in the place of Java's engines, which some patterns keep busy for years.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from functools import lru_cache
from typing import Any

from lookup.errors import PatternError
from lookup.model.quoting import shown
from lookup.topics.extras import extra_module
from lookup.topics.naming import without_partition, without_scheme

__all__ = ["TopicsPattern", "pattern_length", "without_pattern_scheme"]

_ALL = ".*"
_SEPARATOR = "://"
#: Longest first: the shorter one ends the longer one.
_DOMAINS = ("non-persistent", "persistent")
#: Bytes that one compiled pattern may take; fifty characters need a hundredth of it.
_MEMORY = 1 << 23
#: What Java's engine understands and RE2 does not, by how it begins, in words.
_CONSTRUCTS = {
    "(?=": "the lookahead",
    "(?!": "the negative lookahead",
    "(?<=": "the lookbehind",
    "(?<!": "the negative lookbehind",
    "(?>": "the atomic group",
    "(?(": "the condition",
}
#: What costs nothing, and is written otherwise or left out in RE2.
_ABSENT = {
    "(?P": "begins no group of RE2; (?P<name>...) does",
    "(?#": "begins a comment, which RE2 does not have",
    "(?x": "sets a flag that RE2 does not have; i, m, s and U are its flags",
}
_POSSESSIVE = re.compile(r"[*+?}]\+\Z")
_BACK_REFERENCE = re.compile(r"\\[1-9k]\Z")


class TopicsPattern:
    """A compiled pattern; it is matched against whole names without scheme and partition suffix.

    Args:
        text: the pattern as a client sends it, with or without `persistent://` and `^` before it.

    Raises:
        PatternError: for another scheme, or naming the construct that cannot be compiled.
        SettingsError: where google-re2 is not installed.

    Example:
        >>> TopicsPattern("^persistent://public/default/o.*$").matches("persistent://public/default/o-partition-0")
        True
    """

    def __init__(self, text: str) -> None:
        self.text = text
        self._bare = without_pattern_scheme(text)
        self._compiled = _compiled(self._bare)

    def __repr__(self) -> str:
        return f"TopicsPattern({self.text!r})"

    def matches(self, topic: str) -> bool:
        """Tell whether a complete name matches; the part after the scheme is looked at."""
        return self._bare == _ALL or self._fits(without_scheme(without_partition(topic)))

    def filter(self, topics: Iterable[str]) -> list[str]:
        """Return the names that match, unchanged and in their order."""
        if self._bare == _ALL:
            return list(topics)
        return [topic for topic in topics if self._fits(without_scheme(without_partition(topic)))]

    def _fits(self, bare: str) -> bool:
        return self._compiled.fullmatch(bare) is not None


def pattern_length(text: str) -> int:
    """Return the length that limits count, Java's: UTF-16 code units; a watch leaves the scheme aside before."""
    return len(text.encode("utf-16-le", "surrogatepass")) // 2


def without_pattern_scheme(text: str) -> str:
    """Return a pattern without its scheme; what stands before the scheme, like `^`, stays.

    Raises:
        PatternError: for a scheme that topics do not have.
    """
    before, separator, rest = text.partition(_SEPARATOR)
    if not separator:
        return text
    for domain in _DOMAINS:
        if before.endswith(domain):
            return before.removesuffix(domain) + rest
    raise PatternError(
        f"pattern {shown(text)}: {shown(before + separator)} is no scheme of topics; "
        "persistent:// and non-persistent:// are, or none"
    )


@lru_cache(maxsize=1024)
def _compiled(bare: str) -> Any:
    engine = extra_module("re2", "a topics pattern")
    try:
        return engine.compile(bare, _options(engine))
    except UnicodeEncodeError:
        raise PatternError(f"pattern {shown(bare)} holds half a surrogate pair, which no name can match") from None
    except engine.error as error:
        raise PatternError(f"pattern {shown(bare)} cannot be used: {_reason(error)}") from None


def _options(engine: Any) -> Any:
    options = engine.Options()
    options.max_mem, options.log_errors = _MEMORY, False
    return options


def _reason(error: Exception) -> str:
    """Put RE2's complaint into words that name the construct."""
    said = error.args[0] if error.args else b""
    kind, _, construct = (said.decode("utf-8", "replace") if isinstance(said, bytes) else str(said)).partition(": ")
    known = _construct(construct)
    if construct in _ABSENT:
        return f"{construct!r} {_ABSENT[construct]}"
    if known is None:
        return f"{kind} {construct!r}" if construct else kind
    return f"{known} {construct!r} cannot be matched in linear time, so RE2 does not have it"


def _construct(construct: str) -> str | None:
    if _POSSESSIVE.search(construct):
        return "the possessive quantifier"
    if _BACK_REFERENCE.match(construct):
        return "the back reference"
    return _CONSTRUCTS.get(construct)
