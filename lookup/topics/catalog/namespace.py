"""Hold the topics of one namespace in memory, with the indexes of their labels and properties.

`catalog.py` checks names, `state.py` hands events in. A topic takes about 350 bytes with three labels: names and
pairs stand in columns by number, texts that repeat are kept once.

Rule for changes to this file: `put` and `remove` may be interrupted between any two steps, and the next `put` or
`remove` of the same topic must then do all that is left. What follows from the columns, as the indexes and the sorted
names do, is brought up to date when it is asked for, and made anew if that fails.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterator, Mapping, Sequence

from lookup.model.catalog import Equals, Mode, Selector, TopicEntry
from lookup.topics.catalog.index import InvertedIndex
from lookup.topics.catalog.naming import partitions_among, schemes_of
from lookup.topics.sized_cache import SizedCache

__all__ = ["NamespaceTopics"]

#: Above this many changed names, all are sorted again, which takes one pass; below, each is inserted at its place.
_INSERTED = 64
#: Names in the answers that a namespace keeps for the next time they are asked for, eight bytes each: so many, and in a
#: large namespace so many times its topics.
_KEPT_NAMES = 100_000
_KEPT_TIMES = 4


class NamespaceTopics:
    """The entries of one namespace by name, by label and by property."""

    def __init__(self) -> None:
        self._numbers: dict[str, int] = {}
        # Columns by number; the rows of numbers in `_free` are empty.
        self._names: list[str] = []
        self._labels = InvertedIndex()
        self._properties = InvertedIndex()
        self._free: list[int] = []
        # All names sorted; None until the first question, so that filling a namespace does not sort it per topic.
        self._sorted: list[str] | None = None
        #: names that came or went since they were sorted
        self._unsorted: set[str] = set()
        #: the names of each mode that was asked for, until a name comes or goes
        self._by_mode: dict[Mode, tuple[str, ...]] = {}
        self._selected: SizedCache[tuple[str, ...]] = SizedCache()
        self._described: SizedCache[tuple[str, ...]] = SizedCache()

    def __len__(self) -> int:
        return len(self._numbers)

    def __contains__(self, topic: object) -> bool:
        return topic in self._numbers

    def entry(self, topic: str) -> TopicEntry | None:
        """Return a topic, None if there is none of that name."""
        number = self._numbers.get(topic)
        return None if number is None else self._entry_at(topic, number)

    def a_partition(self, whole: str) -> TopicEntry | None:
        """Return one of the partitions of a topic, None if it is not partitioned."""
        partition = next(partitions_among(self._in_order(), whole), None)
        return None if partition is None else self.entry(partition)

    def entries(self) -> Iterator[TopicEntry]:
        """Yield every topic, in no order."""
        return (self._entry_at(name, number) for name, number in self._numbers.items())

    def put(self, entry: TopicEntry) -> None:
        """Add a topic, or replace the one of its name."""
        number = self._numbers.get(entry.name)
        if number is None:
            self._note_name(entry.name)
            number = self._empty_row()
            self._numbers[entry.name] = number
        self._names[number] = entry.name
        if self._free and self._free[-1] == number:
            self._free.pop()
        self._labels.put(number, entry.labels)
        self._properties.put(number, entry.properties)

    def remove(self, topic: str) -> None:
        """Remove a topic, if it is there."""
        number = self._numbers.get(topic)
        if number is None:
            return
        self._note_name(topic)
        self._labels.put(number, {})
        self._properties.put(number, {})
        if self._free[-1:] != [number]:
            self._free.append(number)
        self._names[number] = ""
        del self._numbers[topic]

    def extend(self, entries: Sequence[TopicEntry]) -> None:
        """Add new topics, many at once; for a catalog that opens, before any topic is removed."""
        names = [entry.name for entry in entries]
        numbers = range(len(self._names), len(self._names) + len(names))
        self._names += names
        self._sorted = None
        self._by_mode.clear()
        self._numbers.update(zip(names, numbers, strict=True))
        self._labels.extend(entry.labels for entry in entries)
        self._properties.extend(entry.properties for entry in entries)
        self.keep_up()

    def keep_up(self) -> None:
        """Bring the indexes up to date if many changes wait, so that the next question does not pay for them."""
        self._labels.keep_up()
        self._properties.keep_up()

    def names(self, mode: Mode) -> tuple[str, ...]:
        """Return the names of a mode, sorted: the same tuple until a topic comes or goes."""
        kept = self._by_mode.get(mode)
        if kept is not None:
            return kept
        # Sorted, all names of one domain stand together, and their scheme ends before the character after "/".
        schemes = schemes_of(mode)
        first, last = min(schemes), max(schemes)[:-1] + "0"
        names = self._in_order()
        kept = self._by_mode[mode] = tuple(names[bisect_left(names, first) : bisect_left(names, last)])
        return kept

    def selected(self, selector: Selector) -> tuple[str, ...]:
        """Return the names that a selector selects, sorted: mostly the same tuple until labels change."""
        return self._answer(self._selected, self._labels, selector)

    def with_properties(self, mode: Mode, properties: Mapping[str, str]) -> tuple[str, ...]:
        """Return the names of a mode that have all of these properties, sorted: mostly the same tuple likewise."""
        schemes = schemes_of(mode)
        terms = tuple(Equals(key, value) for key, value in sorted(properties.items()))
        return self._answer(self._described, self._properties, terms, schemes)

    def labels(self) -> Mapping[str, Sequence[str]]:
        """Return every key of a label with its values, sorted."""
        return self._labels.values()

    def _empty_row(self) -> int:
        """Return the number of an empty row; those of removed topics are used again, so that numbers stay small."""
        if not self._free:
            self._free.append(len(self._names))
        number = self._free[-1]
        self._labels.reserve(number)
        self._properties.reserve(number)
        if len(self._names) == number:
            self._names.append("")
        return number

    def _note_name(self, name: str) -> None:
        self._by_mode.clear()
        if self._sorted is not None:
            self._unsorted.add(name)
            # More would take more room than it spares time.
            if len(self._unsorted) > max(_INSERTED, len(self._sorted)):
                self._sorted = None

    def _in_order(self) -> list[str]:
        names, changed = self._sorted, self._unsorted
        # Sorted anew next time if anything below fails.
        self._sorted = None
        self._unsorted = set()
        if names is None:
            names = sorted(self._numbers)
        elif len(changed) > _INSERTED:
            names = [name for name in names if name not in changed] + [name for name in changed if name in self]
            names.sort()
        else:
            for name in changed:
                place = bisect_left(names, name)
                is_listed = place < len(names) and names[place] == name
                if name in self and not is_listed:
                    names.insert(place, name)
                elif is_listed and name not in self:
                    del names[place]
        self._sorted = names
        return names

    def _entry_at(self, name: str, number: int) -> TopicEntry:
        return TopicEntry(name, self._properties.pairs(number), self._labels.pairs(number))

    def _answer(
        self,
        kept: SizedCache[tuple[str, ...]],
        index: InvertedIndex,
        selector: Selector,
        schemes: tuple[str, ...] = ("",),
    ) -> tuple[str, ...]:
        """Return the names of some schemes that an index selects, sorted, and keep them for the next time."""
        # Of one version of the index; the answers to older ones go with time.
        question = (index.version, selector, schemes)
        names = kept.get(question)
        if names is None:
            found = (self._names[number] for number in index.find(selector).tolist())
            names = tuple(sorted(name for name in found if name.startswith(schemes)))
            # One for the question: many empty answers take room as well.
            kept.put(question, names, len(names) + 1, room=max(_KEPT_NAMES, _KEPT_TIMES * len(self)))
        return names
