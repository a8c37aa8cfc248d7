"""Index topics by their pairs: key -> value -> numbers of topics, kept in step with every change.

Topics are small numbers here, assigned by `namespace.py`, so a posting is a sorted array of four bytes per topic.
An index that was changed step by step equals one that is built afresh: no empty posting is kept.

Source: PIP-451, first draft (`labelTopicInvertedIndex`); the reason for arrays: `docs/decisions/labels-by-number.md`.
"""

from __future__ import annotations

from array import array
from bisect import bisect_left
from collections.abc import Iterable, Iterator, Mapping

import numpy as np
from numpy.typing import NDArray

from lookup.model.catalog import Equals, In, Selector, Term

__all__ = ["InvertedIndex", "Numbers"]

#: Numbers of topics, shape (n_topics,), ascending, without duplicates.
Numbers = NDArray[np.uint32]

#: Above this many times the candidates, a posting is searched; below, it is spread out as a mask. Either way is right.
_SEARCH_RATIO = 16
_NONE: Numbers = np.empty(0, dtype=np.uint32)


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


class InvertedIndex:
    """The topics by key, and by key and value."""

    __slots__ = ("_keys",)

    def __init__(self) -> None:
        self._keys: dict[str, _Key] = {}

    def replace(self, number: int, old: Mapping[str, str], new: Mapping[str, str]) -> None:
        """Take in that a topic's pairs have changed; only pairs that differ are touched."""
        for key, value in old.items():
            if new.get(key) == value:
                continue
            entry = self._keys[key]
            posting = entry.values[value]
            _remove(posting, number)
            if not posting:
                del entry.values[value]
            if key not in new:
                _remove(entry.topics, number)
            # A key that stays gets its new value below, even if this was its last one.
            if not entry.topics:
                del self._keys[key]
        for key, value in new.items():
            if old.get(key) == value:
                continue
            entry = self._keys.get(key) or self._keys.setdefault(key, _Key())
            _insert(entry.posting(value), number)
            if key not in old:
                _insert(entry.topics, number)

    def extend(self, numbered: Iterable[tuple[int, Mapping[str, str]]]) -> None:
        """Take in many topics at once; their numbers rise, and are larger than any in the index."""
        for number, pairs in numbered:
            for key, value in pairs.items():
                entry = self._keys.get(key) or self._keys.setdefault(key, _Key())
                # Appended and not inserted: the numbers rise, so every posting stays sorted.
                entry.topics.append(number)
                entry.posting(value).append(number)

    def find(self, selector: Selector, n_numbers: int) -> Numbers:
        """Return the topics that meet all conditions; without conditions none.

        Args:
            n_numbers: one more than the largest number in use.
        """
        # The condition that the fewest topics meet comes first: each further one only narrows its topics.
        by_term = sorted((self._postings(term) for term in selector), key=lambda postings: sum(map(len, postings)))
        if not by_term or not by_term[0]:
            return _NONE
        # A copy: an array cannot grow while a buffer of it is in use. A topic has one value, so none is there twice.
        first = by_term[0]
        numbers = first[0].copy() if len(first) == 1 else np.sort(np.concatenate(first))
        for postings in by_term[1:]:
            is_met = np.zeros(len(numbers), dtype=np.bool_)
            for posting in postings:
                is_met |= _is_in(numbers, posting, n_numbers)
            numbers = numbers[is_met]
        return numbers

    def values(self) -> dict[str, list[str]]:
        """Return each key with its values, both sorted."""
        return {key: sorted(self._keys[key].values) for key in sorted(self._keys)}

    def items(self) -> Iterator[tuple[str, str, list[int]]]:
        """Yield each key and value with the numbers of its topics, ascending."""
        for key, entry in self._keys.items():
            yield from ((key, value, posting.tolist()) for value, posting in entry.values.items())

    def _postings(self, term: Term) -> list[Numbers]:
        entry = self._keys.get(term.key)
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
