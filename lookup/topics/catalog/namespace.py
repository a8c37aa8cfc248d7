"""Hold the topics of one namespace in memory, with the indexes of their labels and properties.

`catalog.py` checks names, `state.py` keeps events. A topic takes about 350 bytes with three labels: names,
pairs and flags stand in columns by number, texts that repeat are kept once.

Rule for changes to this file: `put` and `remove` may be interrupted between any two steps, and the next `put` or
`remove` of the same topic must then do all that is left. What follows from the columns, as the indexes and the sorted
names do, is brought up to date when it is asked for, and made anew if that fails.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Callable, Hashable, Iterator, Mapping, Sequence

from lookup.model.catalog import Equals, Mode, Selector, TopicEntry
from lookup.topics.catalog.index import InvertedIndex, Numbers
from lookup.topics.catalog.naming import partition_names, partition_number, schemes_of, without_partition

__all__ = ["NamespaceTopics"]

#: Above this many changed names, all are sorted again, which takes one pass; below, each is inserted at its place.
_INSERTED = 64
#: Names in the answers that an index keeps for the next time they are asked for, eight bytes each: so many, and in a
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
        self._is_loaded = bytearray()
        self._free: list[int] = []
        #: partitioned topic -> the numbers of its partitions
        self._partitions: dict[str, set[int]] = {}
        # All names sorted; None until the first question, so that filling a namespace does not sort it per topic.
        self._sorted: list[str] | None = None
        #: names that came or went since they were sorted
        self._unsorted: set[str] = set()
        #: the names of each mode that was asked for, until a name comes or goes
        self._by_mode: dict[Mode, tuple[str, ...]] = {}
        self._selected = _Answers()
        self._described = _Answers()

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
        return partition_names(whole, sorted(self._partitions.get(whole, ())))

    def a_partition(self, whole: str) -> TopicEntry | None:
        """Return one of the partitions of a topic, None if it is not partitioned."""
        number = next(iter(self._partitions.get(whole, ())), None)
        return None if number is None else self.entry(partition_names(whole, (number,))[0])

    def parts(self, topic: str) -> Sequence[str]:
        """Return the names of the entries a name stands for: itself, or its partitions."""
        return (topic,) if topic in self._numbers else self.partitions(topic)

    def siblings(self, topic: str) -> Sequence[str]:
        """Return the names of the entries that have one set of labels and properties with a name's.

        All partitions of its topic; itself if there is a topic of the name without the suffix, which has no partitions.
        """
        whole = without_partition(topic)
        if whole not in self._numbers:
            return self.partitions(whole)
        return (topic,) if topic in self._numbers else ()

    def entries(self) -> Iterator[TopicEntry]:
        """Yield every topic, in no order."""
        return map(self._entry_at, self._numbers.values())

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
        self._note_partition(entry.name)
        self._labels.put(number, entry.labels)
        self._properties.put(number, entry.properties)
        self._is_loaded[number] = entry.is_loaded

    def remove(self, topic: str) -> None:
        """Remove a topic, if it is there."""
        number = self._numbers.get(topic)
        if number is None:
            return
        self._note_name(topic)
        self._labels.put(number, {})
        self._properties.put(number, {})
        self._is_loaded[number] = False
        self._forget_partition(topic)
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
        self._is_loaded += bytes(entry.is_loaded for entry in entries)
        for name in names:
            self._note_partition(name)
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

    def loaded(self, mode: Mode) -> tuple[str, ...]:
        """Return the names of a mode whose topics are loaded, sorted."""
        return tuple(name for name in self.names(mode) if self._is_loaded[self._numbers[name]])

    def selected(self, selector: Selector) -> tuple[str, ...]:
        """Return the names that a selector selects, sorted."""

        def find() -> tuple[str, ...]:
            return self._named(self._labels.find(selector))

        return self._selected.get(selector, find, version=self._labels.version, room=self._room())

    def with_properties(self, mode: Mode, properties: Mapping[str, str]) -> tuple[str, ...]:
        """Return the names of a mode that have all of these properties, sorted."""
        schemes = schemes_of(mode)
        terms = tuple(Equals(key, value) for key, value in sorted(properties.items()))

        def find() -> tuple[str, ...]:
            return tuple(name for name in self._named(self._properties.find(terms)) if name.startswith(schemes))

        return self._described.get((mode, terms), find, version=self._properties.version, room=self._room())

    def labels(self) -> Mapping[str, Sequence[str]]:
        """Return every key of a label with its values, sorted."""
        return self._labels.values()

    def index(self) -> dict[str, dict[str, set[str]]]:
        """Return the index of labels with names for numbers: key -> value -> names."""
        index: dict[str, dict[str, set[str]]] = {}
        for key, value, numbers in self._labels.items():
            index.setdefault(key, {})[value] = {self._names[number] for number in numbers}
        return index

    def _empty_row(self) -> int:
        """Return the number of an empty row; those of removed topics are used again, so that numbers stay small."""
        if not self._free:
            self._free.append(len(self._names))
        number = self._free[-1]
        self._labels.reserve(number)
        self._properties.reserve(number)
        if len(self._is_loaded) == number:
            self._is_loaded.append(False)
        if len(self._names) == number:
            self._names.append("")
        return number

    def _note_partition(self, name: str) -> None:
        partition = partition_number(name)
        if partition is not None:
            self._partitions.setdefault(without_partition(name), set()).add(partition)

    def _forget_partition(self, name: str) -> None:
        partition = partition_number(name)
        if partition is not None:
            whole = without_partition(name)
            others = self._partitions.get(whole, set())
            others.discard(partition)
            if not others:
                self._partitions.pop(whole, None)

    def _note_name(self, name: str) -> None:
        """Remember that a name comes or goes."""
        self._by_mode.clear()
        if self._sorted is not None:
            self._unsorted.add(name)
            # More would take more room than it spares time.
            if len(self._unsorted) > max(_INSERTED, len(self._sorted)):
                self._sorted = None

    def _in_order(self) -> list[str]:
        """Return all names, sorted."""
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

    def _room(self) -> int:
        """Return how many names there may be in the answers of one index."""
        return max(_KEPT_NAMES, _KEPT_TIMES * len(self))

    def _entry_at(self, number: int) -> TopicEntry:
        return TopicEntry(
            name=self._names[number],
            properties=self._properties.pairs(number),
            labels=self._labels.pairs(number),
            is_loaded=bool(self._is_loaded[number]),
        )

    def _named(self, numbers: Numbers) -> tuple[str, ...]:
        return tuple(sorted(self._names[number] for number in numbers.tolist()))


class _Answers:
    """The answers to the latest questions about one version of an index, those of the largest namespaces as well."""

    __slots__ = ("_by_question", "_n_names", "_version")

    def __init__(self) -> None:
        #: the question asked last is the last one
        self._by_question: dict[Hashable, tuple[str, ...]] = {}
        #: never fewer than there are, also if a question is interrupted
        self._n_names = 0
        self._version = 0

    def get(
        self, question: Hashable, find: Callable[[], tuple[str, ...]], *, version: int, room: int
    ) -> tuple[str, ...]:
        """Return the answer to a question: the same tuple as long as the index is at one version.

        Args:
            find: makes the answer.
            room: how many names to keep; the questions that were not asked for longest go first, and never this one,
                whose next answer would otherwise have to be found, sorted and compared anew.
        """
        if version != self._version:
            self._by_question, self._n_names, self._version = {}, 0, version
        names = self._by_question.pop(question, None)
        if names is None:
            names = find()
            # One for the question: many empty answers take room as well.
            self._n_names += len(names) + 1
        self._by_question[question] = names
        while self._n_names > room and len(self._by_question) > 1:
            self._n_names -= len(self._by_question.pop(next(iter(self._by_question)))) + 1
        return names
