"""The inverted index of pairs: key -> value -> numbers of topics, kept in step with every change.

Topics are small numbers here, which `namespace.py` hands out, so a posting is a sorted array of four bytes per topic.
An index that was changed step by step equals one that is built afresh: no empty posting is kept.

Source: PIP-451, first draft (`labelTopicInvertedIndex`); why arrays and not sets: `docs/benchmarks.md`.
"""

from __future__ import annotations

from array import array
from bisect import bisect_left
from collections.abc import Iterable, Iterator, Mapping

import numpy as np
from numpy.typing import NDArray

from lookup.model.catalog import Equals, In, Selector, Term

__all__ = ["InvertedIndex", "Numbers"]

#: Numbers of topics, shape (n_found,), ascending, without duplicates.
Numbers = NDArray[np.uint32]

#: Above this many times the candidates, a posting is searched; below, it is spread out as a mask. Either way is right.
_SEARCH_RATIO = 16
_NONE: Numbers = np.empty(0, dtype=np.uint32)


class _Key:
    """One key: every topic that has it, and those of each value."""

    __slots__ = ("everyone", "values")

    def __init__(self) -> None:
        self.everyone = _posting()
        self.values: dict[str, array[int]] = {}

    def add(self, value: str, number: int) -> None:
        _insert(self.posting(value), number)

    def posting(self, value: str) -> array[int]:
        found = self.values.get(value)
        if found is None:
            found = self.values[value] = _posting()
        return found

    def drop(self, value: str, number: int) -> None:
        posting = self.values[value]
        _remove(posting, number)
        if not posting:
            del self.values[value]


class InvertedIndex:
    """Which topics have a key, and which have a value under it."""

    __slots__ = ("_keys",)

    def __init__(self) -> None:
        self._keys: dict[str, _Key] = {}

    def replace(self, number: int, old: Mapping[str, str], new: Mapping[str, str]) -> None:
        """Take in that a topic's pairs have changed; only what differs is touched."""
        for key, value in old.items():
            if new.get(key) != value:
                self._drop(number, key, value, keep_key=key in new)
        for key, value in new.items():
            if old.get(key) != value:
                self._add(number, key, value, had_key=key in old)

    def extend(self, numbered: Iterable[tuple[int, Mapping[str, str]]]) -> None:
        """Take in many topics at once; their numbers rise, and are larger than any in the index."""
        for number, pairs in numbered:
            for key, value in pairs.items():
                entry = self._keys.get(key) or self._keys.setdefault(key, _Key())
                entry.everyone.append(number)
                entry.posting(value).append(number)

    def find(self, selector: Selector, n_numbers: int) -> Numbers:
        """Return the topics that meet all conditions; no condition finds nothing.

        Args:
            n_numbers: one more than the largest number handed out.
        """
        postings = sorted((self._postings(term) for term in selector), key=_total)
        if not postings:
            return _NONE
        found = _merged(postings[0])
        for others in postings[1:]:
            found = found[_is_in_any(found, others, n_numbers)]
        return found

    def values(self) -> dict[str, list[str]]:
        """Return each key with its values, both sorted."""
        return {key: sorted(self._keys[key].values) for key in sorted(self._keys)}

    def items(self) -> Iterator[tuple[str, str, list[int]]]:
        """Yield each key and value with the numbers of its topics, ascending."""
        for key, entry in self._keys.items():
            yield from ((key, value, posting.tolist()) for value, posting in entry.values.items())

    def _add(self, number: int, key: str, value: str, *, had_key: bool) -> None:
        entry = self._keys.get(key) or self._keys.setdefault(key, _Key())
        entry.add(value, number)
        if not had_key:
            _insert(entry.everyone, number)

    def _drop(self, number: int, key: str, value: str, *, keep_key: bool) -> None:
        entry = self._keys[key]
        entry.drop(value, number)
        if not keep_key:
            _remove(entry.everyone, number)
        # A key that stays gets its new value in a moment, even if this was its last one.
        if not entry.everyone:
            del self._keys[key]

    def _postings(self, term: Term) -> list[Numbers]:
        entry = self._keys.get(term.key)
        if entry is None:
            return []
        if isinstance(term, Equals):
            found = [entry.values.get(term.value)]
        elif isinstance(term, In):
            found = [entry.values.get(value) for value in dict.fromkeys(term.values)]
        else:
            found = [entry.everyone]
        return [np.frombuffer(posting, dtype=np.uint32) for posting in found if posting is not None]


def _posting() -> array[int]:
    return array("I")


def _insert(posting: array[int], number: int) -> None:
    if not posting or posting[-1] < number:
        posting.append(number)
    else:
        posting.insert(bisect_left(posting, number), number)


def _remove(posting: array[int], number: int) -> None:
    del posting[bisect_left(posting, number)]


def _total(postings: list[Numbers]) -> int:
    return sum(map(len, postings))


def _merged(postings: list[Numbers]) -> Numbers:
    """Return a copy: a posting cannot grow while somebody looks into it. A topic has one value, so none is twice."""
    if not postings:
        return _NONE
    return postings[0].copy() if len(postings) == 1 else np.sort(np.concatenate(postings))


def _is_in_any(numbers: Numbers, postings: list[Numbers], n_numbers: int) -> NDArray[np.bool_]:
    found = np.zeros(len(numbers), dtype=np.bool_)
    for posting in postings:
        found |= _is_in(numbers, posting, n_numbers)
    return found


def _is_in(numbers: Numbers, posting: Numbers, n_numbers: int) -> NDArray[np.bool_]:
    if len(numbers) * _SEARCH_RATIO < len(posting):
        places = np.searchsorted(posting, numbers)
        return np.equal(posting[np.minimum(places, len(posting) - 1)], numbers)
    mask = np.zeros(n_numbers, dtype=np.bool_)
    mask[posting] = True
    return mask[numbers]
