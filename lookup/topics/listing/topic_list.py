"""Filter and hash lists of topics like Pulsar's `TopicList`, with patterns of names, and lists with their hashes.

Patterns match in time linear in the name, since RE2 replaces Java's engines, which some patterns keep busy for years.
RE2 and CRC32C come with the extra `[topics]` and are imported when they are first needed.

Source: `docs/pulsar/protocol.md`, Pulsar's `TopicList.filterTopics` and `TopicList.calculateHash`.
"""

from __future__ import annotations

import json
from bisect import bisect_left, bisect_right
from collections.abc import Iterable, Iterator, Sequence
from functools import cached_property, lru_cache
from importlib import import_module
from typing import Any, overload

from lookup.errors import PatternError, SettingsError
from lookup.model.quoting import shown
from lookup.topics.catalog.naming import without_partition

__all__ = [
    "TopicList", "TopicsPattern", "differences", "is_among", "topics_hash", "without_pattern_scheme",
]  # fmt: skip

_ALL = ".*"
_SEPARATOR = "://"
#: The longest comes first, since the shorter one ends the longer one.
_DOMAINS = ("non-persistent", "persistent")
#: Bytes that one compiled pattern may take. Fifty characters need a hundredth of it.
_MEMORY = 1 << 23
#: Characters of a pattern. Pulsar's brokers apply patterns of at most 50, and clients longer ones.
_MOST_CHARACTERS = 1_000
#: Names of a long list that are worked on at a time.
_PART = 2_000
#: Constructs of Java that a match in linear time does not support.
_ABSENT = "RE2, which matches in linear time, has no lookaround, back references and possessive quantifiers"


@lru_cache
def _import_extra(package: str, purpose: str) -> Any:
    """Import a module of the extra `[topics]`. `purpose` begins the error message if it is not installed."""
    try:
        return import_module(package)
    except ImportError:
        message = f"{purpose} needs {package}: install it with pip install 'pulsar-lookup[topics]'"
        raise SettingsError(message) from None


def topics_hash(topics: Iterable[str]) -> str:
    """Hash complete names, including partition suffixes, in any order, to eight hexadecimal digits.

    The hash is CRC32C over the UTF-8 text of the sorted names joined by commas, with the lowest byte first.

    Raises:
        SettingsError: if google-crc32c is not installed.

    Example:
        >>> topics_hash([])
        '00000000'
        >>> topics_hash(["persistent://public/default/b", "persistent://public/default/a"])
        'c7559e98'
    """
    names = sorted(topics)
    parts = [",".join(names[start : start + _PART]) for start in range(0, len(names), _PART)]
    # Java sorts by UTF-16 code units. The two orders differ only if a name has a character beyond U+FFFF, so the slow
    # key is almost never needed. `isascii` is a flag of the text, and `max` would read all of it.
    if any(not part.isascii() and max(part) > "\uffff" for part in parts):
        names.sort(key=lambda name: name.encode("utf-16-be", "surrogatepass"))
        parts = [",".join(names)]
    extend, value = _import_extra("google_crc32c", "the hash of a topic list").extend, 0
    for number, part in enumerate(parts):
        # Java writes half a surrogate pair as a question mark.
        value = extend(value, ("," if number else "").encode() + part.encode("utf-8", "replace"))
    return int(value).to_bytes(4, "little").hex()


class TopicList(Sequence[str]):
    """The sorted names of a list, each once, with the hash of all, which is computed at the first read.

    It equals the tuple of its names but is none, since each garbage collection would walk over that copy.

    Args:
        names: kept as they are if they are a tuple.
    """

    def __init__(self, names: Iterable[str] = ()) -> None:
        self.names = tuple(names)

    def __repr__(self) -> str:
        return f"TopicList({self.names!r})"

    def __len__(self) -> int:
        return len(self.names)

    def __iter__(self) -> Iterator[str]:
        return iter(self.names)

    @overload
    def __getitem__(self, place: int) -> str: ...
    @overload
    def __getitem__(self, place: slice) -> tuple[str, ...]: ...
    def __getitem__(self, place: int | slice) -> str | tuple[str, ...]:
        return self.names[place]

    def __eq__(self, other: object) -> bool:
        if isinstance(other, TopicList):
            return self.names == other.names
        return self.names == other if isinstance(other, tuple) else NotImplemented

    def __hash__(self) -> int:
        return hash(self.names)

    @cached_property
    def topics_hash(self) -> str:
        """The hash of the list, as `topics_hash` does."""
        return topics_hash(self.names)

    @cached_property
    def json(self) -> str:
        """The names as a JSON list, built once, which takes several times the memory of the list."""
        # By parts, since Python cannot change threads within the encoding of one.
        parts = (self[start : start + _PART] for start in range(0, len(self), _PART))
        return f"[{', '.join(json.dumps(part, ensure_ascii=False)[1:-1] for part in parts)}]"


def is_among(name: str, names: Sequence[str]) -> bool:
    """Check whether a sorted list has a name."""
    place = bisect_left(names, name)
    return place < len(names) and names[place] == name


def differences(before: Sequence[str], after: Sequence[str]) -> tuple[list[str], list[str]]:
    """List the names that only the first of two sorted lists has, and the names that only the second has."""
    gone: list[str] = []
    come: list[str] = []
    n_before = n_after = 0
    # This works in parts as well, since the sets of a million names would hold up all threads.
    while before is not after and (n_before < len(before) or n_after < len(after)):
        old, new = before[n_before : n_before + _PART], after[n_after : n_after + _PART]
        if old and new:
            # Only the range that both parts cover is compared, since later names may be in the other list's next part.
            last = min(old[-1], new[-1])
            old, new = old[: bisect_right(old, last)], new[: bisect_right(new, last)]
        if old != new:
            gone += sorted(set(old).difference(new))
            come += sorted(set(new).difference(old))
        n_before, n_after = n_before + len(old), n_after + len(new)
    return gone, come


class TopicsPattern:
    """A compiled pattern, which is matched against whole names without scheme and partition suffix.

    Args:
        text: the pattern as a client sends it, with or without `persistent://` and `^` before it.

    Raises:
        PatternError: for another scheme, for its length, or with the construct that cannot be compiled.
        SettingsError: if google-re2 is not installed.

    Example:
        >>> TopicsPattern("^persistent://public/default/o.*$").matches("persistent://public/default/o-partition-0")
        True
    """

    __slots__ = ("_compiled", "bare", "text")

    def __init__(self, text: str) -> None:
        if len(text) > _MOST_CHARACTERS:
            raise PatternError(f"a pattern has {len(text):,} characters, at most {_MOST_CHARACTERS:,} are permitted")
        self.text = text
        #: without its scheme, as it is compiled
        self.bare = without_pattern_scheme(text)
        self._compiled = _compile(self.bare)

    def __repr__(self) -> str:
        return f"TopicsPattern({self.text!r})"

    def matches(self, topic: str) -> bool:
        """Check whether the part of a complete name after its scheme matches."""
        bare = without_partition(topic).split(_SEPARATOR, 1)[-1]
        return self.bare == _ALL or self._compiled.fullmatch(bare) is not None

    def filter(self, topics: Iterable[str]) -> list[str]:
        """Select the names that match, unchanged and in their order."""
        # Every name matches, and a million names would be a million calls of RE2.
        if self.bare == _ALL:
            return list(topics)
        return [topic for topic in topics if self.matches(topic)]


def without_pattern_scheme(text: str) -> str:
    """Remove the scheme of a pattern, or raise PatternError if there is no such scheme. A `^` before it stays."""
    before, separator, rest = text.partition(_SEPARATOR)
    if not separator:
        return text
    for domain in _DOMAINS:
        if before.endswith(domain):
            return before.removesuffix(domain) + rest
    raise PatternError(
        f"pattern {shown(text)}: {shown(before + separator)} is not a scheme of topics; "
        "persistent:// and non-persistent:// are, or none"
    )


@lru_cache(maxsize=128)
def _compile(bare: str) -> Any:
    engine = _import_extra("re2", "a topics pattern")
    options = engine.Options()
    # Without this RE2 would also write errors to the standard error stream.
    options.max_mem, options.log_errors = _MEMORY, False
    try:
        return engine.compile(bare, options)
    except UnicodeEncodeError:
        raise PatternError(f"pattern {shown(bare)} holds half a surrogate pair, which no name can match") from None
    except engine.error as error:
        complaint = error.args[0] if error.args else b""
        message = complaint.decode("utf-8", "replace") if isinstance(complaint, bytes) else str(complaint)
        raise PatternError(f"pattern {shown(bare)} cannot be used: {message}; {_ABSENT}") from None
