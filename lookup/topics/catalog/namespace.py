"""Hold the topics of one namespace in memory, with indexes of their labels and properties, key -> value -> names.

`catalog.py` checks names, `state.py` passes events in. A topic takes about 410 bytes with three labels.

Rule for changes to this file: `put` and `remove` may be interrupted between any two steps, and the next `put` or
`remove` of the same topic must then complete them. Values derived from the entries, such as the sorted names, are
updated when they are read, and computed again if that fails.

Source: PIP-451, first draft (`labelTopicInvertedIndex`), `docs/decisions/catalog-threads.md`.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Callable, Collection, Hashable, Iterator, Mapping, Sequence
from functools import lru_cache

from lookup.model.catalog import Equals, Exists, Mode, Selector, Term, TopicEntry
from lookup.model.recent import Recent
from lookup.topics.catalog.naming import partitions_among, schemes_of

__all__ = ["NamespaceTopics"]

#: Above this many changed names, all are sorted again, which takes one pass. Below, each is inserted at its place.
_INSERTED = 64
#: Number of cached results of an index, since clients repeat their queries.
_KEPT = 64


class _Index:
    def __init__(self) -> None:
        self.names: dict[str, dict[str, set[str]]] = {}
        #: answers until a pair changes
        self.kept: Recent[Hashable, tuple[str, ...]] = Recent(_KEPT)

    def change(self, name: str, old: Mapping[str, str], new: Mapping[str, str]) -> None:
        """Update the index after a topic's pairs have changed. No empty set is kept."""
        if old == new:
            return
        self.kept.clear()
        for key, value in old.items():
            names = self.names.get(key, {}).get(value)
            if names is not None and new.get(key) != value:
                names.discard(name)
                if not names:
                    del self.names[key][value]
                if not self.names[key]:
                    del self.names[key]
        for key, value in new.items():
            self.names.setdefault(key, {}).setdefault(value, set()).add(name)

    def met(self, term: Term) -> Collection[set[str]]:
        values = self.names.get(term.key, {})
        if isinstance(term, Exists):
            return values.values()
        texts = (term.value,) if isinstance(term, Equals) else term.values
        return [values[value] for value in texts if value in values]


_NOTHING = TopicEntry("", {}, {})


class NamespaceTopics:
    """The entries of one namespace by name, by label and by property."""

    def __init__(self) -> None:
        self._entries: dict[str, TopicEntry] = {}
        self._labels, self._properties = _Index(), _Index()
        # All names sorted, None until the first read, so that filling a namespace does not sort it per topic.
        self._sorted: list[str] | None = None
        #: names that came or went since they were sorted
        self._unsorted: set[str] = set()
        #: the names of each mode that was read, until a name is added or removed
        self._by_mode: dict[Mode, tuple[str, ...]] = {}

    def __len__(self) -> int:
        return len(self._entries)

    def __contains__(self, topic: object) -> bool:
        return topic in self._entries

    def entry(self, topic: str) -> TopicEntry | None:
        """Look up a topic, None if there is none of that name."""
        return self._entries.get(topic)

    def a_partition(self, whole: str) -> TopicEntry | None:
        """Look up one of the partitions of a topic, None if it is not partitioned."""
        partition = next(partitions_among(self._sort_names(), whole), None)
        return None if partition is None else self.entry(partition)

    def entries(self) -> Iterator[TopicEntry]:
        """Yield every topic, in no order."""
        return iter(self._entries.values())

    def put(self, entry: TopicEntry) -> None:
        """Add a topic, or replace the one of its name."""
        before = self._entries.get(entry.name)
        if before is None:
            self._note_name(entry.name)
        self._change_entry(entry.name, before or _NOTHING, entry)
        # This is the last step, and until then all of them are repeated. Most topics share their pairs with others.
        self._entries[entry.name] = TopicEntry(entry.name, _share_pairs(entry.properties), _share_pairs(entry.labels))

    def remove(self, topic: str) -> None:
        """Remove a topic, if it is there."""
        before = self._entries.get(topic)
        if before is not None:
            self._note_name(topic)
            self._change_entry(topic, before, _NOTHING)
            del self._entries[topic]

    def extend(self, entries: Sequence[TopicEntry]) -> None:
        """Add many new topics at once, for a catalog that opens, before any topic is removed."""
        self._sorted = None
        for entry in entries:
            self.put(entry)

    def names(self, mode: Mode) -> tuple[str, ...]:
        """List the names of a mode, sorted, as the same tuple until a topic is created or deleted."""
        listing = self._by_mode.get(mode)
        if listing is not None:
            return listing
        # In sorted order, all names of one domain are neighbours, and their scheme ends before the character after "/".
        schemes = schemes_of(mode)
        first, last = min(schemes), max(schemes)[:-1] + "0"
        names = self._sort_names()
        listing = self._by_mode[mode] = tuple(names[bisect_left(names, first) : bisect_left(names, last)])
        return listing

    def select(self, selector: Selector) -> tuple[str, ...]:
        """List the names that a selector selects, sorted, mostly as the same tuple until a topic changes."""
        return self._find_names(selector, self._labels, lambda entry: entry.labels)

    def with_properties(self, mode: Mode, properties: Mapping[str, str]) -> tuple[str, ...]:
        """List the names of a mode with all of these properties, sorted, mostly as the same tuple as before."""
        terms = tuple(Equals(key, value) for key, value in sorted(properties.items()))
        return self._find_names(terms, self._properties, lambda entry: entry.properties, schemes_of(mode))

    def _note_name(self, name: str) -> None:
        self._by_mode.clear()
        if self._sorted is not None:
            self._unsorted.add(name)
            # More would take more room than it spares time.
            if len(self._unsorted) > max(_INSERTED, len(self._sorted)):
                self._sorted = None

    def _sort_names(self) -> list[str]:
        names, changed = self._sorted, self._unsorted
        # They are sorted again next time if anything below fails.
        self._sorted = None
        self._unsorted = set()
        if names is None:
            names = sorted(self._entries)
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

    def _change_entry(self, name: str, before: TopicEntry, after: TopicEntry) -> None:
        self._labels.change(name, before.labels, after.labels)
        self._properties.change(name, before.properties, after.properties)

    def _find_names(
        self,
        selector: Selector,
        index: _Index,
        of: Callable[[TopicEntry], Mapping[str, str]],
        schemes: tuple[str, ...] = (),
    ) -> tuple[str, ...]:
        """List the names of some schemes that satisfy all conditions, sorted, and cache them."""
        question = selector, schemes
        answer = index.kept.get(question)
        if answer is None:
            # The condition with the fewest topics comes first, since each further one only narrows its topics.
            by_term = [(index.met(term), term) for term in selector]
            by_term.sort(key=lambda met: sum(map(len, met[0])))
            names = set[str]().union(*by_term[0][0]) if by_term else set[str]()
            for sets, term in by_term[1:]:
                if isinstance(term, Exists):
                    names = {name for name in names if term.key in of(self._entries[name])}
                else:
                    names = set().union(*(names & some for some in sets))
            answer = tuple(sorted(name for name in names if not schemes or name.startswith(schemes)))
            index.kept.put(question, answer)
        return answer


def _share_pairs(pairs: Mapping[str, str]) -> Mapping[str, str]:
    return _build_pairs(tuple(sorted(pairs.items())))


@lru_cache(maxsize=1 << 16)
def _build_pairs(items: tuple[tuple[str, str], ...]) -> Mapping[str, str]:
    return dict(items)
