"""Read and write the catalog: topics with properties and labels by namespace, with revisions and ordered events.

Checks of names, labels and properties are here; `state.py` makes writes safe and announces them. No clock and no
threads: a caller that shares a catalog between threads holds a lock around it.

Source: PIP-145, PIP-451 (properties and labels of a partitioned topic are propagated on write),
`docs/pulsar/protocol.md`.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass, replace

from lookup.errors import ArgumentError, StateError
from lookup.model.catalog import Mode, Selector, TopicEntry, TopicEvent
from lookup.model.names import TopicName
from lookup.topics.catalog.naming import (
    checked_name,
    checked_namespace,
    checked_new_name,
    names_of,
    namespace_of,
    partition_number,
    without_partition,
)
from lookup.topics.catalog.pairs import (
    Pairs,
    checked_keys,
    checked_pairs,
    merged_pairs,
    pairs_without,
    refuse_other_keys,
)
from lookup.topics.catalog.state import CatalogState, Listener
from lookup.topics.catalog.storage import MemoryStorage, Storage

__all__ = ["Catalog", "CatalogSnapshot"]


@dataclass(frozen=True, slots=True)
class CatalogSnapshot:
    """Everything in a catalog at one revision."""

    revision: int
    namespaces: Sequence[str]
    #: in the order of names
    entries: Sequence[TopicEntry]


class Catalog:
    """Topics by namespace over a storage; satisfies `CatalogView`.

    A partitioned topic is its partitions: each is an entry of its own, and the plain name stands for all of them in
    every write. Labels and properties hold for the whole topic: set on one partition, they are set on all.

    Args:
        storage: keeps the changes; absent: in memory.
        allowed_label_keys: keys that labels may have; None: any.

    Raises:
        InputError: if the storage cannot be read.
    """

    def __init__(self, storage: Storage | None = None, *, allowed_label_keys: Collection[str] | None = None) -> None:
        self._storage = MemoryStorage() if storage is None else storage
        self._state = CatalogState(self._storage)
        self._allowed = None if allowed_label_keys is None else frozenset(allowed_label_keys)

    @property
    def revision(self) -> int:
        """Return the revision of the last event, which is the number of events so far."""
        return self._state.revision

    def namespaces(self) -> Sequence[str]:
        """Return the names of all namespaces, sorted."""
        return sorted(self._state.namespaces)

    def topics(self, namespace: str, mode: Mode = "persistent") -> Sequence[str]:
        """Return every topic of a namespace, sorted: system topics too, partitions one by one.

        Raises:
            NotFoundError: if there is no such namespace; the same of every question about one.
        """
        return self._state.topics_of(namespace).names(mode)

    def loaded(self, namespace: str, mode: Mode = "persistent") -> Sequence[str]:
        """Return the topics of a namespace that a broker serves now, sorted."""
        return self._state.topics_of(namespace).loaded(mode)

    def entry(self, topic: str) -> TopicEntry | None:
        """Return one topic, None if there is none; a partitioned topic has entries for its partitions only."""
        return self._state.entry(topic)

    def entries(self, namespace: str) -> Iterator[TopicEntry]:
        """Yield every topic of a namespace, in no order; the catalog must not change meanwhile."""
        return self._state.topics_of(namespace).entries()

    def parts(self, topic: str) -> Sequence[str]:
        """Return the names of the entries that a name stands for: itself, or all its partitions; none: unknown."""
        topics = self._state.namespaces.get(namespace_of(topic))
        return () if topics is None else topics.parts(topic)

    def meant_by(self, topic: str) -> Sequence[TopicEntry]:
        """Return the entries a name stands for, itself or all of its partitions, at least one.

        Raises:
            InvalidNameError: if it is no complete name of a topic.
            NotFoundError: if there is no such topic, with the one that was probably meant.
        """
        checked_name(topic)
        return self._state.meant_by(topic)

    def with_properties(self, namespace: str, mode: Mode, properties: Mapping[str, str]) -> Sequence[str]:
        """Return the topics that have all of these properties, sorted, from an index; all topics for none."""
        topics = self._state.topics_of(namespace)
        return topics.with_properties(mode, properties) if properties else topics.names(mode)

    def selected(self, namespace: str, selector: Selector) -> Sequence[str]:
        """Return the topics that a selector selects, persistent and non-persistent, sorted, from the index of labels.

        Raises:
            ArgumentError: for a selector without conditions: it is no way to say "every topic".
        """
        if not selector:
            raise ArgumentError("the selector has no condition; it needs at least one, such as env=prod")
        return self._state.topics_of(namespace).selected(selector)

    def labels_in(self, namespace: str) -> Mapping[str, Sequence[str]]:
        """Return every key of a label in a namespace with its values, both sorted."""
        return self._state.topics_of(namespace).labels()

    def index(self, namespace: str) -> Mapping[str, Mapping[str, Collection[str]]]:
        """Return the whole index of labels of a namespace, key -> value -> set of topics, as a copy."""
        return self._state.topics_of(namespace).index()

    def snapshot(self) -> CatalogSnapshot:
        """Return everything at this revision."""
        entries = (entry for topics in self._state.namespaces.values() for entry in topics.entries())
        return CatalogSnapshot(self.revision, self.namespaces(), sorted(entries, key=lambda entry: entry.name))

    def create_namespace(self, namespace: str) -> None:
        """Add a namespace, unless there is one of that name.

        Raises:
            InvalidNameError: if it is not of the form tenant/namespace.
            ArgumentError: for its length.
        """
        name = checked_namespace(namespace)
        with self.together():
            self._state.add_namespace(name)

    def create(self, topic: str, *, partitions: int | None = None, properties: Pairs = (), labels: Pairs = ()) -> None:
        """Add a topic, not loaded yet, with labels and properties for each of its partitions.

        A partition that is created by its own name beside others has their labels and properties.

        Args:
            partitions: how many; None: not partitioned, or one partition.

        Raises:
            InvalidNameError, NotFoundError: for its name, and for a namespace that does not exist.
            StateError: if there is a topic of that name, partitioned or not.
            ArgumentError: for invisible characters in its name, for labels or properties over their limits, and for a
                wrong number of partitions.
        """
        checked_new_name(topic)
        names = names_of(topic, partitions)
        wanted = TopicEntry(topic, checked_pairs(properties, "property"), self._checked(labels), is_loaded=False)
        whole = without_partition(topic)
        with self.together():
            # Inside the transaction: it began with the writes of other processes, which may have created the topic.
            if self._state.topics_of(namespace_of(topic)).parts(topic):
                raise StateError(f"topic {topic!r} exists already")
            if whole != topic and self.entry(whole) is not None:
                raise StateError(f"topic {whole!r} exists and is not partitioned")
            siblings = self._partitions(whole)
            if siblings:
                shared = siblings[0]
                # Labels and properties left out are those of the topic; a partition cannot have others.
                completed = (wanted.labels or shared.labels, wanted.properties or shared.properties)
                if completed != (shared.labels, shared.properties):
                    raise ArgumentError(
                        f"{topic} has the labels and properties of its topic; it cannot be given others"
                    )
                wanted = replace(shared, name=topic)
            self._add(names, wanted)

    def add_partitions(self, topic: str, partitions: int) -> None:
        """Give a partitioned topic those partitions it lacks, with the labels and properties of the others.

        Args:
            partitions: how many there shall be in all.

        Raises:
            NotFoundError: if there is no such topic.
            StateError: if it is not partitioned, or has as many already, also if some of them are missing.
        """
        names = names_of(topic, partitions)
        with self.together():
            existing = self.meant_by(topic)
            missing = [name for name in names if self.entry(name) is None]
            # The number of the last one and not a count: some in between may have been deleted by their own names.
            last = partition_number(existing[-1].name)
            if existing[0].name == topic or last is None:
                raise StateError(f"{topic} has no partitions, it cannot be given {partitions}")
            if partitions <= last or not missing:
                raise StateError(f"{topic} has {last + 1} partitions, it cannot be given {partitions}")
            self._add(missing, existing[0])

    def delete(self, topic: str) -> None:
        """Remove a topic with all of its partitions, or one partition.

        Raises:
            InvalidNameError, NotFoundError: for its name, or if there is no such topic.
        """
        with self.together():
            for entry in self.meant_by(topic):
                self._state.make(entry.name, None)

    def set_labels(self, topic: str, labels: Pairs) -> None:
        """Add labels to those a topic has; of a key that is there the value is replaced.

        Raises:
            InvalidNameError, NotFoundError: for its name, or if there is no such topic.
            ArgumentError: for labels over their limits, and for keys that are not allowed.
        """
        added = self._checked(labels)
        self._amend(topic, lambda entry: replace(entry, labels=merged_pairs(entry.labels, added, "label")))

    def remove_labels(self, topic: str, keys: Iterable[str] = (), *, everything: bool = False) -> None:
        """Remove the labels of some keys, or all; keys that a topic does not have are passed over.

        Raises:
            InvalidNameError, NotFoundError: for its name, or if there is no such topic.
            ArgumentError: if neither keys nor everything is named, or both.
        """
        removed = checked_keys(keys, everything=everything, what="labels")
        self._amend(topic, lambda entry: replace(entry, labels=pairs_without(entry.labels, removed)))

    def set_properties(self, topic: str, properties: Pairs) -> None:
        """Add properties to those a topic has; of a key that is there the value is replaced.

        Raises:
            InvalidNameError, NotFoundError: for its name, or if there is no such topic.
            ArgumentError: for properties over their limits.
        """
        added = checked_pairs(properties, "property")
        self._amend(topic, lambda entry: replace(entry, properties=merged_pairs(entry.properties, added, "property")))

    def remove_properties(self, topic: str, keys: Iterable[str] = (), *, everything: bool = False) -> None:
        """Remove the properties of some keys, or all; keys that a topic does not have are passed over.

        Raises:
            InvalidNameError, NotFoundError: for its name, or if there is no such topic.
            ArgumentError: if neither keys nor everything is named, or both.
        """
        removed = checked_keys(keys, everything=everything, what="properties")
        self._amend(topic, lambda entry: replace(entry, properties=pairs_without(entry.properties, removed)))

    def load(self, topic: str) -> None:
        """Note that a broker serves a topic, or one partition, from now on.

        Raises:
            InvalidNameError, NotFoundError: for its name, or if there is no such topic.
        """
        self._set_loaded(topic, is_loaded=True)

    def unload(self, topic: str) -> None:
        """Note that no broker serves a topic, or one partition, from now on.

        Raises:
            InvalidNameError, NotFoundError: for its name, or if there is no such topic.
        """
        self._set_loaded(topic, is_loaded=False)

    def mirror(self, topic: str, entry: TopicEntry | None) -> None:
        """Copy one entry from another catalog, None: gone; its namespace is added if it is missing.

        Nothing is propagated to other partitions and no limit is checked: the other catalog has done that.
        """
        with self.together():
            self._state.add_namespace(str(TopicName.parse(topic).namespace))
            self._state.make(topic, entry)

    def together(self) -> AbstractContextManager[None]:
        """Make one transaction of the writes in a block: all are kept, or none if it raises.

        Listeners are called when it ends; reading inside it shows the writes so far.
        """
        return self._state.together()

    def subscribe(self, listener: Listener) -> Callable[[], None]:
        """Call a listener with every event after this revision, once each, in order; return a function that ends it.

        Events come once they are safe. A listener may write: its events come after those under way. If a listener
        raises, all listeners hear all events nevertheless, then the writer gets the error.
        """
        return self._state.subscribe(listener)

    def events_since(self, revision: int) -> Sequence[TopicEvent]:
        """Return the events after a revision up to this catalog's own, in order.

        Raises:
            StateError: if some of them are no longer kept (take a snapshot), or the revision is ahead.
        """
        # The storage may have events of other processes that this catalog has not taken in yet.
        return tuple(event for event in self._storage.events_since(revision) if event.revision <= self.revision)

    def refresh(self) -> None:
        """Take in the writes of other processes to the storage, and call the listeners; every write does it too.

        Raises:
            StateError: if more was written than the storage keeps events; open the catalog anew.
        """
        self._state.refresh()

    def close(self) -> None:
        """Close the storage."""
        self._storage.close()

    def _amend(self, topic: str, amended: Callable[[TopicEntry], TopicEntry]) -> None:
        """Change the labels or properties of a topic, which are those of each of its partitions."""
        with self.together():
            # Asked first, so that an unknown partition of a known topic is refused.
            meant = self.meant_by(topic)
            for entry in self._partitions(without_partition(topic)) or meant:
                self._state.make(entry.name, amended(entry))

    def _partitions(self, whole: str) -> Sequence[TopicEntry]:
        names = self._state.topics_of(namespace_of(whole)).partitions(whole)
        return [entry for name in names if (entry := self.entry(name)) is not None]

    def _add(self, names: Iterable[str], like: TopicEntry) -> None:
        for name in names:
            self._state.make(name, replace(like, name=name, is_loaded=False))

    def _set_loaded(self, topic: str, *, is_loaded: bool) -> None:
        with self.together():
            for entry in self.meant_by(topic):
                self._state.make(entry.name, replace(entry, is_loaded=is_loaded))

    def _checked(self, labels: Pairs) -> Mapping[str, str]:
        checked = checked_pairs(labels, "label")
        refuse_other_keys(checked, self._allowed)
        return checked
