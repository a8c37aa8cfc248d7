"""Filter and hash lists of topics as Pulsar's `TopicList` does: patterns of names, and the hash of a list.

Patterns match in time linear in the name: RE2 stands in the place of Java's engines, which some patterns keep busy for
years. RE2 and CRC32C come with the extra `[topics]` and are imported when they are first needed.

Source: `docs/pulsar/protocol.md`; Pulsar's `TopicList.filterTopics` and `TopicList.calculateHash`.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from functools import lru_cache
from importlib import import_module
from typing import Any

from lookup.errors import PatternError, SettingsError
from lookup.model.quoting import shown
from lookup.topics.catalog.naming import without_partition, without_scheme

__all__ = ["TopicsPattern", "extra_module", "pattern_length", "topics_hash", "without_pattern_scheme"]


def topics_hash(topics: Iterable[str]) -> str:
    """Return the hash of complete names, partition suffixes included, in any order: eight hexadecimal digits.

    CRC32C over the UTF-8 text of the sorted names joined by commas, its bytes written from the lowest up.

    Raises:
        SettingsError: if google-crc32c is not installed.

    Example:
        >>> topics_hash([])
        '00000000'
        >>> topics_hash(["persistent://public/default/b", "persistent://public/default/a"])
        'c7559e98'
    """
    checksum = extra_module("google_crc32c", "the hash of a topic list")
    # Java writes half a surrogate pair as a question mark.
    value: int = checksum.value(_joined(list(topics)).encode("utf-8", "replace"))
    return value.to_bytes(4, "little").hex()


def _joined(topics: list[str]) -> str:
    """Join names in Java's order, which is that of UTF-16 code units."""
    topics.sort()
    joined = ",".join(topics)
    # The two orders differ only if a name has a character beyond U+FFFF.
    return joined if joined.isascii() or max(joined) <= "\uffff" else ",".join(sorted(topics, key=_code_units))


def _code_units(topic: str) -> bytes:
    return topic.encode("utf-16-be", "surrogatepass")


@lru_cache
def extra_module(package: str, purpose: str) -> Any:
    """Return a module of the extra.

    Args:
        purpose: what needs it, as the sentence begins.

    Raises:
        SettingsError: naming the package and what to install, if it is not there.
    """
    try:
        return import_module(package)
    except ImportError:
        message = f"{purpose} needs {package}: install it with pip install 'pulsar-lookup[topics]'"
        raise SettingsError(message) from None


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
        SettingsError: if google-re2 is not installed.

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
        """Return whether a complete name matches; the part after the scheme is looked at."""
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
