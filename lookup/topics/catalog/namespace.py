"""Hold the topics of one namespace in memory, with the indexes of their labels and properties.

`catalog.py` checks names, `state.py` keeps events. A topic takes about 350 bytes with three labels: names,
pairs and flags stand in columns by number, texts that repeat are kept once.
"""

from __future__ import annotations

import sys
from bisect import bisect_left, insort
from collections.abc import Iterator, Mapping, Sequence
from itertools import chain

from lookup.model.catalog import Equals, Mode, Selector, TopicEntry
from lookup.topics.catalog.index import InvertedIndex, Numbers
from lookup.topics.catalog.naming import partition_names, partition_number, schemes_of, without_partition

__all__ = ["NamespaceTopics"]

#: Keys and values in turn, by key.
_Packed = tuple[str, ...]


class NamespaceTopics:
    """The entries of one namespace by name, by label and by property."""

    def __init__(self) -> None:
        self._numbers: dict[str, int] = {}
        # Columns by number; the rows of numbers in `_free` are empty.
        self._names: list[str] = []
        self._labels: list[_Packed] = []
        self._properties: list[_Packed] = []
        self._is_loaded = bytearray()
        self._free: list[int] = []
        self._by_label = InvertedIndex()
        self._by_property = InvertedIndex()
        #: partitioned topic -> the numbers of its partitions, ascending
        self._partitions: dict[str, list[int]] = {}
        # All names sorted; None until the first question, so that filling a namespace does not sort it per topic.
        self._sorted: list[str] | None = None
        #: the names of a mode as they are handed out: one object until a name is added or removed
        self._handed: dict[Mode, tuple[str, ...]] = {}

    def __len__(self) -> int:
        return len(self._numbers)

    def __contains__(self, topic: object) -> bool:
        return topic in self._numbers

    def entry(self, topic: str) -> TopicEntry | None:
        """Return a topic, None if there is none of that name."""
        number = self._numbers.get(topic)
        return None if number is None else self._entry_at(number)

    def partitions(self, whole: str) -> Sequence[str]:
        """Return the names of a topic's partitions by number; none if it is not partitioned."""
        return partition_names(whole, self._partitions.get(whole, ()))

    def parts(self, topic: str) -> Sequence[str]:
        """Return the names of the entries a name stands for: itself, or its partitions."""
        return (topic,) if topic in self._numbers else self.partitions(topic)

    def entries(self) -> Iterator[TopicEntry]:
        """Yield every topic, in no order."""
        return map(self._entry_at, self._numbers.values())

    def put(self, entry: TopicEntry) -> None:
        """Add a topic, or replace the one of its name."""
        number = self._numbers.get(entry.name)
        if number is None:
            number = self._add_row(entry.name)
        # The index before the row: it needs the old pairs, which the row still has.
        self._by_label.replace(number, _unpacked(self._labels[number]), entry.labels)
        self._by_property.replace(number, _unpacked(self._properties[number]), entry.properties)
        self._labels[number] = _packed(entry.labels)
        self._properties[number] = _packed(entry.properties)
        self._is_loaded[number] = entry.is_loaded

    def extend(self, entries: Sequence[TopicEntry]) -> None:
        """Add new topics, many at once; for a catalog that opens, before any topic is removed."""
        numbers = range(len(self._names), len(self._names) + len(entries))
        names = [entry.name for entry in entries]
        self._names += names
        self._sorted = None
        self._handed.clear()
        self._numbers.update(zip(names, numbers, strict=True))
        self._labels += [_packed(entry.labels) for entry in entries]
        self._properties += [_packed(entry.properties) for entry in entries]
        self._is_loaded += bytes(entry.is_loaded for entry in entries)
        self._by_label.extend(zip(numbers, (entry.labels for entry in entries), strict=True))
        self._by_property.extend(zip(numbers, (entry.properties for entry in entries), strict=True))
        for name in names:
            self._note_partition(name)

    def remove(self, topic: str) -> None:
        """Remove a topic that is there."""
        # Without pairs first: this takes it out of both indexes, and empties its row for the next topic.
        self.put(TopicEntry(topic, {}, {}, is_loaded=False))
        number = self._numbers.pop(topic)
        self._names[number] = ""
        self._free.append(number)
        partition = partition_number(topic)
        if partition is not None:
            others = self._partitions[without_partition(topic)]
            others.remove(partition)
            if not others:
                del self._partitions[without_partition(topic)]
        self._handed.clear()
        if self._sorted is not None:
            del self._sorted[bisect_left(self._sorted, topic)]

    def names(self, mode: Mode) -> Sequence[str]:
        """Return the names of a mode, sorted; the same object as last time if no name was added or removed since."""
        if mode in self._handed:
            return self._handed[mode]
        names = self._sorted
        if names is None:
            names = self._sorted = sorted(self._numbers)
        # Sorted, all names of one domain stand together, and their scheme ends before the character after "/".
        schemes = schemes_of(mode)
        first, last = min(schemes), max(schemes)[:-1] + "0"
        handed = self._handed[mode] = tuple(names[bisect_left(names, first) : bisect_left(names, last)])
        return handed

    def loaded(self, mode: Mode) -> Sequence[str]:
        """Return the names of a mode whose topics are loaded, sorted."""
        return tuple(name for name in self.names(mode) if self._is_loaded[self._numbers[name]])

    def selected(self, selector: Selector) -> Sequence[str]:
        """Return the names that a selector selects, sorted."""
        return self._named(self._by_label.find(selector, len(self._names)))

    def with_properties(self, mode: Mode, properties: Mapping[str, str]) -> Sequence[str]:
        """Return the names of a mode that have all of these properties, sorted."""
        schemes = schemes_of(mode)
        terms = tuple(Equals(key, value) for key, value in properties.items())
        names = self._named(self._by_property.find(terms, len(self._names)))
        return tuple(name for name in names if name.startswith(schemes))

    def labels(self) -> Mapping[str, Sequence[str]]:
        """Return every key of a label with its values, sorted."""
        return self._by_label.values()

    def index(self) -> dict[str, dict[str, set[str]]]:
        """Return the index of labels with names for numbers: key -> value -> names."""
        index: dict[str, dict[str, set[str]]] = {}
        for key, value, numbers in self._by_label.items():
            index.setdefault(key, {})[value] = {self._names[number] for number in numbers}
        return index

    def _add_row(self, name: str) -> int:
        """Return the number of a new, empty row; those of removed topics are used again, so that numbers stay small."""
        self._handed.clear()
        if self._sorted is not None:
            insort(self._sorted, name)
        if self._free:
            number = self._free.pop()
            self._names[number] = name
        else:
            number = len(self._names)
            self._names.append(name)
            self._labels.append(())
            self._properties.append(())
            self._is_loaded.append(False)
        self._numbers[name] = number
        self._note_partition(name)
        return number

    def _note_partition(self, name: str) -> None:
        partition = partition_number(name)
        if partition is not None:
            insort(self._partitions.setdefault(without_partition(name), []), partition)

    def _entry_at(self, number: int) -> TopicEntry:
        return TopicEntry(
            name=self._names[number],
            properties=_unpacked(self._properties[number]),
            labels=_unpacked(self._labels[number]),
            is_loaded=bool(self._is_loaded[number]),
        )

    def _named(self, numbers: Numbers) -> Sequence[str]:
        return tuple(sorted(self._names[number] for number in numbers.tolist()))


def _packed(pairs: Mapping[str, str]) -> _Packed:
    # Interned: a million topics share a few thousand keys and values.
    return tuple(map(sys.intern, chain.from_iterable(sorted(pairs.items()))))


def _unpacked(packed: _Packed) -> dict[str, str]:
    return dict(zip(packed[::2], packed[1::2], strict=True))
