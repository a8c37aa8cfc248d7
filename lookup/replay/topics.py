"""Topics as they occur in one task's share of the log: each is parsed and hashed once, and gets its atom's code."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable
from functools import lru_cache
from typing import NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from lookup.errors import InvalidNameError
from lookup.logs.rows import texts_of
from lookup.model.bundles import topic_hash
from lookup.model.names import NamespaceName, TopicName, is_internal_topic, looks_like_pattern
from lookup.replay.atoms import AtomRule

__all__ = ["TopicCodes"]

_DOMAINS = ("persistent://", "non-persistent://")
#: Topics a process remembers from one task to the next, some 60 MB at most.
_MOST_TOPICS = 1 << 17


class TopicCodes:
    """Atom codes of topics as they occur: the task's own numbering, by namespace in order of first occurrence."""

    #: code of a text that is no topic, and of a topic of the load manager's own
    BAD = -1
    INTERNAL = -2

    def __init__(self, rule: AtomRule) -> None:
        #: first code of each namespace
        self.bases: dict[str, int] = {}
        #: why a text is no topic
        self.reasons: dict[str | None, str] = {None: "the topic is missing"}
        self._rule = rule
        self._boundaries: dict[str, tuple[int, ...]] = {}
        self._codes: dict[str | None, int] = {None: self.BAD}
        self._next = 0
        #: topics of demand, and by place in the dictionary of the last rows whether they are
        self._met: set[str] = set()
        self._last: tuple[pa.Array, NDArray[np.bool_]] = pa.array([], pa.string()), np.zeros(1, dtype=bool)

    def code(self, topic: str | None) -> int:
        """Return the code of a topic's atom, BAD or INTERNAL where it has none."""
        known = self._codes.get(topic)
        if known is None:
            known = self._codes[topic] = self._learnt(str(topic))
        return known

    def note(self, topics: pa.DictionaryArray | None, usable: NDArray[np.bool_]) -> None:
        """Note the topics of rows that are demand: a dictionary also holds those of other rows."""
        if topics is None:
            return
        if not self._last[0].equals(topics.dictionary):
            self._fold()
            self._last = topics.dictionary, np.zeros(len(topics.dictionary) + 1, dtype=bool)
        places = pc.fill_null(topics.indices, len(topics.dictionary)).to_numpy(zero_copy_only=False)
        self._last[1][places if usable.all() else places[usable]] = True

    def digests(self) -> NDArray[np.int64]:
        """Return (digest, code) of every topic of demand, shape (n_topics, 2)."""
        self._fold()
        met = {topic: read.digest for topic in self._met if (read := _read(topic)) is not None}
        return np.column_stack([_integers(met.values()), _integers(map(self._codes.__getitem__, met))])

    def _fold(self) -> None:
        dictionary, noted = self._last
        self._met.update(filter(None, texts_of(dictionary.filter(pa.array(noted[:-1])))))

    def _learnt(self, topic: str) -> int:
        try:
            read = _read(topic)
        except InvalidNameError as error:
            self.reasons[topic] = str(error)
            return self.BAD
        if read is None:
            return self.INTERNAL
        if read.namespace not in self.bases:
            boundaries = self._boundaries[read.namespace] = self._rule.boundaries(read.namespace)
            self.bases[read.namespace] = self._next
            self._next += len(boundaries) - 1
        return self.bases[read.namespace] + self._rule.place(read.hashed, self._boundaries[read.namespace])


class _Topic(NamedTuple):
    """What coding wants to know of a topic's name."""

    namespace: str
    hashed: int
    #: 64 bits that tell it from all others
    digest: int


@lru_cache(maxsize=_MOST_TOPICS)
def _read(topic: str) -> _Topic | None:
    """Take a topic's name apart, once per process; None for a topic of the load manager's own.

    Raises:
        InvalidNameError: where it is no topic.
    """
    if looks_like_pattern(topic):
        raise InvalidNameError("the topic is a regular expression, which topic list watchers look up")
    parts = topic.partition("://")[2].split("/", 2)
    if not topic.startswith(_DOMAINS) or len(parts) != 3 or not parts[2]:
        TopicName.parse(topic)
    namespace = _namespace(f"{parts[0]}/{parts[1]}")
    if is_internal_topic(topic):
        return None
    digest = hashlib.blake2b(topic.encode(), digest_size=8).digest()
    return _Topic(namespace, topic_hash(topic), int.from_bytes(digest, "big", signed=True))


def _integers(values: Iterable[int]) -> NDArray[np.int64]:
    return np.fromiter(values, dtype=np.int64)


@lru_cache(maxsize=1 << 14)
def _namespace(text: str) -> str:
    return str(NamespaceName.parse(text))
