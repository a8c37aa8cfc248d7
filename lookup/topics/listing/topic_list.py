"""Filter and hash lists of topics as Pulsar's `TopicList` does: patterns of names, lists with their hashes.

Patterns match in time linear in the name: RE2 stands in place of Java's engines, which some patterns keep busy for
years. RE2 and CRC32C come with the extra `[topics]` and are imported when they are first needed.

Source: `docs/pulsar/protocol.md`; Pulsar's `TopicList.filterTopics` and `TopicList.calculateHash`.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator, Sequence
from functools import cached_property, lru_cache
from importlib import import_module
from typing import Any, Protocol, overload

from lookup.errors import PatternError, SettingsError
from lookup.model.quoting import shown
from lookup.topics.catalog.naming import without_partition, without_scheme
from lookup.topics.listing.steps import ROWS_PER_STEP, Steps, finished, paced, sorting

__all__ = [
    "KeptText", "TopicList", "TopicsPattern", "bare_name", "compiled_set", "hashing", "hashing_each", "pattern_length",
    "topics_hash", "without_pattern_scheme",
]  # fmt: skip

_ALL = ".*"
#: The commonest pattern, a beginning of names: it needs no engine.
_BEGINNING = re.compile(r"([A-Za-z0-9_/-]+)\.\*")
_SEPARATOR = "://"
#: Longest first: the shorter one ends the longer one.
_DOMAINS = ("non-persistent", "persistent")
#: Bytes that one compiled pattern may take; fifty characters need a hundredth of it.
_MEMORY = 1 << 23
#: The same of patterns that are compiled together.
_SET_MEMORY = 1 << 26
#: The constructs of Java's engine that RE2 does not have, by their beginning, in words.
_CONSTRUCTS = {
    "(?=": "the lookahead",
    "(?!": "the negative lookahead",
    "(?<=": "the lookbehind",
    "(?<!": "the negative lookbehind",
    "(?>": "the atomic group",
    "(?(": "the condition",
}
#: Constructs that could be matched in linear time, but are written otherwise in RE2 or left out.
_ABSENT = {
    "(?P": "begins no group of RE2; (?P<name>...) does",
    "(?#": "begins a comment, which RE2 does not have",
    "(?x": "sets a flag that RE2 does not have; i, m, s and U are its flags",
}
_POSSESSIVE = re.compile(r"[*+?}]\+\Z")
_BACK_REFERENCE = re.compile(r"\\[1-9k]\Z")


@lru_cache
def _extra(package: str, purpose: str) -> Any:
    """Return a module of the extra `[topics]`; `purpose` begins the sentence if it is not installed."""
    try:
        return import_module(package)
    except ImportError:
        message = f"{purpose} needs {package}: install it with pip install 'pulsar-lookup[topics]'"
        raise SettingsError(message) from None


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
    return finished(hashing(sorted(topics), ROWS_PER_STEP))


def hashing(names: Sequence[str], rows: int) -> Steps[str]:
    """Hash sorted names as `topics_hash` does, in steps."""
    extend = _extra("google_crc32c", "the hash of a topic list").extend
    value, start, is_in_java_order = 0, 0, False
    while start < len(names):
        if start:
            yield
        joined = ",".join(names[start : start + rows])
        # Java sorts by UTF-16 code units. The two orders differ only if a name has a character beyond U+FFFF, so that
        # the slow key is needed almost never; `isascii` is a flag of the text, and `max` would read all of it.
        if not (is_in_java_order or joined.isascii()) and max(joined) > "\uffff":
            names, is_in_java_order = (yield from sorting(names, key=_utf_16, rows=rows)), True
            value = start = 0
            continue
        # Java writes half a surrogate pair as a question mark.
        value = extend(value, ("," if start else "").encode() + joined.encode("utf-8", "replace"))
        start += rows
    return int(value).to_bytes(4, "little").hex()


def _utf_16(name: str) -> bytes:
    return name.encode("utf-16-be", "surrogatepass")


class KeptText(Protocol):
    """The place of one list's text among the texts that are kept."""

    def get(self) -> str | None:
        """Return the text, None if it is not kept, or not any more."""

    def put(self, text: str) -> None:
        """Keep the text as long as there is room."""


class TopicList(Sequence[str]):
    """The sorted names of a list, each once, with the hash of all of them: made once, when it is first needed.

    It equals the tuple of its names, and is none: that would be a copy of them, and be walked over by each garbage
    collection.

    Args:
        names: kept as they are if they are a tuple.
    """

    def __init__(self, names: Iterable[str] = ()) -> None:
        self.names = tuple(names)
        #: keeps the JSON text, which takes several times the room of the list; None: it is made each time
        self.kept_text: KeptText | None = None

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
        """Return the hash of the list, as `topics_hash` does."""
        return finished(hashing(self.names, ROWS_PER_STEP))

    @property
    def json(self) -> str:
        """Return the names as a JSON list."""
        kept = None if self.kept_text is None else self.kept_text.get()
        if kept is not None:
            return kept
        # By parts, since Python cannot change threads within the encoding of one.
        parts = (self[start : start + ROWS_PER_STEP] for start in range(0, len(self), ROWS_PER_STEP))
        text = f"[{', '.join(json.dumps(part, ensure_ascii=False)[1:-1] for part in parts)}]"
        if self.kept_text is not None:
            self.kept_text.put(text)
        return text


def hashing_each(lists: Iterable[TopicList], *, rows: int = ROWS_PER_STEP) -> Steps[None]:
    """Hash lists, so that their hashes are known when they are needed."""
    n_rows = 0
    for topics, ends_step in paced(lists, rows):
        if ends_step or n_rows + min(len(topics), rows) > rows:
            yield
            n_rows = 0
        if "topics_hash" not in vars(topics):
            topics.topics_hash = yield from hashing(topics.names, rows)
        # The names of the last step of a long list.
        n_rows += len(topics) and (len(topics) - 1) % rows + 1


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
        #: without its scheme, as it is compiled
        self.bare = without_pattern_scheme(text)
        self._compiled = _compiled(self.bare)
        beginning = _BEGINNING.fullmatch(self.bare)
        self._beginning = None if beginning is None else beginning[1]

    def __repr__(self) -> str:
        return f"TopicsPattern({self.text!r})"

    def matches(self, topic: str) -> bool:
        """Return whether the part of a complete name after its scheme matches."""
        return self.fits(bare_name(topic))

    def filter(self, topics: Iterable[str]) -> list[str]:
        """Return the names that match, unchanged and in their order."""
        # Every name matches, and a million names would be a million calls of RE2.
        if self.bare == _ALL:
            return list(topics)
        return [topic for topic in topics if self.fits(bare_name(topic))]

    def fits(self, bare: str) -> bool:
        """Return whether a name matches that is without scheme and partition suffix already."""
        if self._beginning is not None:
            # The dot of RE2 is no line feed.
            return bare.startswith(self._beginning) and "\n" not in bare
        return self.bare == _ALL or self._compiled.fullmatch(bare) is not None


def bare_name(topic: str) -> str:
    """Return the part of a complete name that patterns match: without scheme and partition suffix."""
    return without_scheme(without_partition(topic))


def pattern_length(text: str) -> int:
    """Return the length of a pattern as its limit counts it, in UTF-16 code units as Java does."""
    return len(text.encode("utf-16-le", "surrogatepass")) // 2


def without_pattern_scheme(text: str) -> str:
    """Return a pattern without its scheme; the text before the scheme, like `^`, stays.

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


def compiled_set(bares: Iterable[str]) -> Any:
    """Return patterns that can be compiled one by one, compiled together, None if that takes too much memory.

    Its `Match` takes a bare name and returns the numbers of those that match the whole of it; after the last pattern
    stands one more that every name matches.
    """
    engine = _extra("re2", "a topics pattern")
    compiled = engine.Set.FullMatchSet(_options(engine, _SET_MEMORY))
    try:
        for bare in (*bares, "(?s:.*)"):
            # The set matches any name by `.*`, as `TopicsPattern` does.
            compiled.Add("(?s:.*)" if bare == _ALL else bare)
        compiled.Compile()
    except engine.error:
        return None
    return compiled


def _options(engine: Any, memory: int) -> Any:
    options = engine.Options()
    # RE2 would write errors to the standard error stream besides raising them.
    options.max_mem, options.log_errors = memory, False
    return options


@lru_cache(maxsize=1024)
def _compiled(bare: str) -> Any:
    engine = _extra("re2", "a topics pattern")
    try:
        return engine.compile(bare, _options(engine, _MEMORY))
    except UnicodeEncodeError:
        raise PatternError(f"pattern {shown(bare)} holds half a surrogate pair, which no name can match") from None
    except engine.error as error:
        raise PatternError(f"pattern {shown(bare)} cannot be used: {_reason(error)}") from None


def _reason(error: Exception) -> str:
    """Translate an error of RE2 into a clause that names the construct."""
    complaint = error.args[0] if error.args else b""
    text = complaint.decode("utf-8", "replace") if isinstance(complaint, bytes) else str(complaint)
    kind, _, construct = text.partition(": ")
    if construct in _ABSENT:
        return f"{construct!r} {_ABSENT[construct]}"
    if _POSSESSIVE.search(construct):
        name: str | None = "the possessive quantifier"
    elif _BACK_REFERENCE.match(construct):
        name = "the back reference"
    else:
        name = _CONSTRUCTS.get(construct)
    if name is None:
        return f"{kind} {construct!r}" if construct else kind
    return f"{name} {construct!r} cannot be matched in linear time, so RE2 does not have it"
