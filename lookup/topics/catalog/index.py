"""Keep the pairs of topics, labels or properties, and index them: key -> value -> numbers of topics.

Topics are small numbers here, assigned by `namespace.py`, so a posting is a sorted array of four bytes per topic.

The rows of pairs are the truth. The index follows them when it is asked, or once `_LAG` changes wait for it, and one
that failed to follow its rows is built anew from all of them.

Source: PIP-451, first draft (`labelTopicInvertedIndex`); the reason for arrays: `docs/decisions/labels-by-number.md`.
"""

from __future__ import annotations

import sys
from array import array
from bisect import bisect_left
from collections.abc import Iterable, Mapping, Sequence
from itertools import chain

import numpy as np
from numpy.typing import NDArray

from lookup.model.catalog import Equals, In, Selector, Term

__all__ = ["InvertedIndex", "Numbers"]

#: Numbers of topics, shape (n_topics,), ascending, without duplicates.
Numbers = NDArray[np.uint32]

#: Above this many times the candidates, a posting is searched; below, it is spread out as a mask. Either way is right.
_SEARCH_RATIO = 16
#: Changed rows that may wait for the index, so that a question after a large write does not pay for all of it.
_LAG = 1_000
_NONE: Numbers = np.empty(0, dtype=np.uint32)

#: Keys and values in turn, by key.
_Packed = tuple[str, ...]


class _Key:
    """One key: the topics that have it, and those of each value."""

    __slots__ = ("topics", "values")

    def __init__(self) -> None:
        self.topics = array("I")
        self.values: dict[str, array[int]] = {}

    def posting(self, value: str) -> array[int]:
        posting = self.values.get(value)
        if posting is None:
            posting = self.values[value] = array("I")
        return posting


class _Postings:
    """The topics by key, and by key and value, as the rows were when it was last brought up to date."""

    __slots__ = ("changed", "keys", "n_rows")

    def __init__(self) -> None:
        self.keys: dict[str, _Key] = {}
        #: rows below this number are in the postings
        self.n_rows = 0
        #: number -> the row that the postings have, of rows that changed since
        self.changed: dict[int, _Packed] = {}

    def follow(self, rows: Sequence[_Packed]) -> None:
        for number, before in self.changed.items():
            self._replace(number, _unpacked(before), _unpacked(rows[number]))
        self.changed.clear()
        for number in range(self.n_rows, len(rows)):
            for key, value in _unpacked(rows[number]).items():
                entry = self.keys.get(key) or self.keys.setdefault(key, _Key())
                # Appended and not inserted: the numbers rise, so every posting stays sorted.
                entry.topics.append(number)
                entry.posting(value).append(number)
        self.n_rows = len(rows)

    def _replace(self, number: int, old: Mapping[str, str], new: Mapping[str, str]) -> None:
        """Take in that a topic's pairs have changed; no empty posting is kept."""
        for key, value in old.items():
            if new.get(key) == value:
                continue
            entry = self.keys[key]
            posting = entry.values[value]
            _remove(posting, number)
            if not posting:
                del entry.values[value]
            if key not in new:
                _remove(entry.topics, number)
            # A key that stays gets its new value below, even if this was its last one.
            if not entry.topics:
                del self.keys[key]
        for key, value in new.items():
            if old.get(key) == value:
                continue
            entry = self.keys.get(key) or self.keys.setdefault(key, _Key())
            _insert(entry.posting(value), number)
            if key not in old:
                _insert(entry.topics, number)


class InvertedIndex:
    """Rows of pairs by number, with the topics by key, and by key and value."""

    __slots__ = ("_postings", "_rows", "version")

    def __init__(self) -> None:
        self._rows: list[_Packed] = []
        #: None: to be built from all rows, because following them failed
        self._postings: _Postings | None = _Postings()
        #: counts the changes of rows: what was found at one version holds as long as it is this one
        self.version = 0

    def reserve(self, number: int) -> None:
        """Make an empty row of the next number, unless there is one."""
        if len(self._rows) == number:
            self._rows.append(())

    def pairs(self, number: int) -> dict[str, str]:
        """Return the pairs of a row."""
        return _unpacked(self._rows[number])

    def put(self, number: int, pairs: Mapping[str, str]) -> None:
        """Give a row other pairs."""
        before, after = self._rows[number], _packed(pairs)
        if before == after:
            return
        self.version += 1
        postings = self._postings
        if postings is not None and number < postings.n_rows:
            # Before the row: a row that is noted and then does not change costs nothing, the reverse would be wrong.
            postings.changed.setdefault(number, before)
        self._rows[number] = after

    def extend(self, rows: Iterable[Mapping[str, str]]) -> None:
        """Add rows at the end."""
        self.version += 1
        self._rows += map(_packed, rows)

    def keep_up(self) -> None:
        """Follow the rows if many changes wait."""
        postings = self._postings
        if postings is not None and len(self._rows) - postings.n_rows + len(postings.changed) >= _LAG:
            self._followed()

    def find(self, selector: Selector) -> Numbers:
        """Return the topics that meet all conditions; without conditions none."""
        keys = self._followed().keys
        # The condition that the fewest topics meet comes first: each further one only narrows its topics.
        by_term = sorted((_found(keys, term) for term in selector), key=lambda postings: sum(map(len, postings)))
        if not by_term or not by_term[0]:
            return _NONE
        # A copy: an array cannot grow while a buffer of it is in use. A topic has one value, so none is there twice.
        first = by_term[0]
        numbers = first[0].copy() if len(first) == 1 else np.sort(np.concatenate(first))
        for postings in by_term[1:]:
            is_met = np.zeros(len(numbers), dtype=np.bool_)
            for posting in postings:
                is_met |= _is_in(numbers, posting, len(self._rows))
            numbers = numbers[is_met]
        return numbers

    def values(self) -> dict[str, list[str]]:
        """Return each key with its values, both sorted."""
        keys = self._followed().keys
        return {key: sorted(keys[key].values) for key in sorted(keys)}

    def _followed(self) -> _Postings:
        """Return the postings of all rows as they are."""
        postings = self._postings or _Postings()
        # Out of the way until they are right: postings that fail half-way are forgotten, with all arrays in use.
        self._postings = None
        try:
            postings.follow(self._rows)
        except BufferError:
            # An array cannot grow while something looks at its buffer, such as the frame of a question that failed.
            postings = _Postings()
            postings.follow(self._rows)
        self._postings = postings
        return postings


def _found(keys: Mapping[str, _Key], term: Term) -> list[Numbers]:
    entry = keys.get(term.key)
    if entry is None:
        return []
    if isinstance(term, Equals):
        postings = [entry.values.get(term.value)]
    elif isinstance(term, In):
        # A value that is given twice must not count its topics twice.
        postings = [entry.values.get(value) for value in dict.fromkeys(term.values)]
    else:
        postings = [entry.topics]
    return [np.frombuffer(posting, dtype=np.uint32) for posting in postings if posting is not None]


def _insert(posting: array[int], number: int) -> None:
    if not posting or posting[-1] < number:
        posting.append(number)
    else:
        posting.insert(bisect_left(posting, number), number)


def _remove(posting: array[int], number: int) -> None:
    del posting[bisect_left(posting, number)]


def _is_in(numbers: Numbers, posting: Numbers, n_numbers: int) -> NDArray[np.bool_]:
    if len(numbers) * _SEARCH_RATIO < len(posting):
        positions = np.searchsorted(posting, numbers)
        # A number above all of the posting is found behind its end.
        return np.equal(posting[np.minimum(positions, len(posting) - 1)], numbers)
    mask = np.zeros(n_numbers, dtype=np.bool_)
    mask[posting] = True
    return mask[numbers]


def _packed(pairs: Mapping[str, str]) -> _Packed:
    # Interned: a million topics share a few thousand keys and values.
    return tuple(map(sys.intern, chain.from_iterable(sorted(pairs.items())))) if pairs else ()


def _unpacked(packed: _Packed) -> dict[str, str]:
    return dict(zip(packed[::2], packed[1::2], strict=True))
