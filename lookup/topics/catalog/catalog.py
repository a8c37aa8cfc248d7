"""Read and write the catalog: topics with properties and labels by namespace, with revisions and ordered events.

Checks of names, labels and properties are here; `state.py` makes writes safe and announces them.

Threads: a catalog may be used by any number of threads at the same time, over each storage.

    question      is of one revision, and sees no unfinished transaction of another thread: it waits for that to end,
                  the write to the disk included, but never for another process
    `reading`     makes one revision of several questions; writes of other threads wait for the end of its block
    write         waits for the write before it, and for another process that writes to the file; `together` makes one
                  of several
    listener      is called by one thread at a time, in the order of revisions, without a lock: it may ask and write. A
                  write does not wait for listeners that another thread is calling
    `close`       is called once no other thread uses the catalog

In a block of `reading` or `together` a thread must not wait for another one that uses the catalog.

Why: `docs/decisions/catalog-threads.md`.

Source: PIP-145, PIP-451 (properties and labels of a partitioned topic are propagated on write),
`docs/pulsar/protocol.md`.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass, replace

from lookup.errors import ArgumentError, ConflictError, StateError
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
    without_system_topics,
)
from lookup.topics.catalog.pairs import (
    LABEL_RULES,
    PROPERTY_RULES,
    PairRules,
    Pairs,
    checked_keys,
    checked_pairs,
    merged_pairs,
    pairs_without,
)
from lookup.topics.catalog.state import CatalogState, Listener
from lookup.topics.catalog.storage import MemoryStorage, Storage

__all__ = ["Catalog", "CatalogSnapshot"]


@dataclass(frozen=True, slots=True)
class CatalogSnapshot:
    """Everything that catalogs share, at one revision: not what is loaded, which each knows of its own process."""

    revision: int
    namespaces: Sequence[str]
    #: in the order of names, none of them loaded
    entries: Sequence[TopicEntry]


class Catalog:
    """Topics by namespace over a storage; satisfies `CatalogView`.

    A partitioned topic is its partitions: each is an entry of its own, and the plain name stands for all of them in
    every write. Labels and properties hold for the whole topic: set on one partition, they are set on all. A topic that
    only has a partition's name, beside one without the suffix that another catalog has as well, is a topic of its own.

    Args:
        storage: keeps the changes; absent: in memory.
        allowed_label_keys: keys that labels may have; None: any.

    Raises:
        InputError: if the storage cannot be read.
    """

    def __init__(self, storage: Storage | None = None, *, allowed_label_keys: Collection[str] | None = None) -> None:
        self._storage = MemoryStorage() if storage is None else storage
        self._state = CatalogState(self._storage)
        allowed = None if allowed_label_keys is None else frozenset(allowed_label_keys)
        self._label_rules = replace(LABEL_RULES, allowed=allowed)

    @property
    def revision(self) -> int:
        """Return the revision of the last event, which is the number of events so far."""
        with self._state.asking():
            return self._state.revision

    def reading(self) -> AbstractContextManager[None]:
        """Answer every question of a block from one revision; writes of other threads wait for its end.

        Raises:
            StateError: for a write or `refresh` in the block, unless the block is inside one of `together`.
        """
        return self._state.reading()

    def namespaces(self) -> Sequence[str]:
        """Return the names of all namespaces, sorted."""
        with self._state.asking():
            return sorted(self._state.namespaces)

    def topics(self, namespace: str, mode: Mode = "persistent") -> Sequence[str]:
        """Return every topic of a namespace, sorted: system topics too, partitions one by one.

        The answer is the same object until a topic of the namespace is created or deleted, so what a caller derives
        from it, such as a hash, holds as long as that.

        Raises:
            NotFoundError: if there is no such namespace; the same of every question about one.
        """
        with self._state.asking():
            return self._state.topics_of(namespace).names(mode)

    def loaded(self, namespace: str, mode: Mode = "persistent") -> Sequence[str]:
        """Return the topics of a namespace that a broker serves now, sorted.

        Those of `load`, called on this catalog: no storage keeps it and no follower or other process takes it over,
        because the broker may be gone.
        """
        with self._state.asking():
            return self._state.topics_of(namespace).loaded(mode)

    def entry(self, topic: str) -> TopicEntry | None:
        """Return one topic, None if there is none; a partitioned topic has entries for its partitions only."""
        with self._state.asking():
            return self._state.entry(topic)

    def entries(self, namespace: str) -> Sequence[TopicEntry]:
        """Return every topic of a namespace, in no order."""
        with self._state.asking():
            return tuple(self._state.topics_of(namespace).entries())

    def parts(self, topic: str) -> Sequence[str]:
        """Return the names of the entries that a name stands for: itself, or all its partitions; none: unknown."""
        with self._state.asking():
            topics = self._state.namespaces.get(namespace_of(topic))
            return () if topics is None else topics.parts(topic)

    def siblings(self, topic: str) -> Sequence[str]:
        """Return the names of the entries that share labels and properties with a topic; none: there are none.

        They are the partitions of its topic, whether it is one of them, their topic, or not there yet. A topic beside
        one that has its name without the suffix, `o-partition-0` beside `o`, is no partition, and shares with none.
        """
        with self._state.asking():
            topics = self._state.namespaces.get(namespace_of(topic))
            return () if topics is None else topics.siblings(topic)

    def meant_by(self, topic: str) -> Sequence[TopicEntry]:
        """Return the entries a name stands for, itself or all of its partitions, at least one.

        Raises:
            InvalidNameError: if it is no complete name of a topic.
            NotFoundError: if there is no such topic, with the one that was probably meant.
        """
        with self._state.asking():
            # A name that is here may be one that no new topic can have: a cluster permits more.
            if not self.parts(topic):
                checked_name(topic)
            return self._state.meant_by(topic)

    def with_properties(self, namespace: str, mode: Mode, properties: Mapping[str, str]) -> Sequence[str]:
        """Return the topics that have all of these properties, sorted, from an index; all topics for none.

        As of `topics`, the answer is mostly the same object until properties change.
        """
        with self._state.asking():
            topics = self._state.topics_of(namespace)
            return topics.with_properties(mode, properties) if properties else topics.names(mode)

    def selected(self, namespace: str, selector: Selector) -> Sequence[str]:
        """Return the topics that a selector selects, persistent and non-persistent, sorted, from the index of labels.

        As of `topics`, the answer is mostly the same object until labels change.

        Raises:
            ArgumentError: for a selector without conditions: it is no way to say "every topic".
        """
        if not selector:
            raise ArgumentError("the selector has no condition; it needs at least one, such as env=prod")
        with self._state.asking():
            return self._state.topics_of(namespace).selected(selector)

    def labels_in(self, namespace: str) -> Mapping[str, Sequence[str]]:
        """Return every key of a label in a namespace with its values, both sorted."""
        with self._state.asking():
            return self._state.topics_of(namespace).labels()

    def index(self, namespace: str) -> Mapping[str, Mapping[str, Collection[str]]]:
        """Return the whole index of labels of a namespace, key -> value -> set of topics, as a copy."""
        with self._state.asking():
            return self._state.topics_of(namespace).index()

    def snapshot(self) -> CatalogSnapshot:
        """Return everything at this revision, but for what is loaded."""
        with self._state.asking():
            entries = (
                replace(entry, is_loaded=False) if entry.is_loaded else entry
                for topics in self._state.namespaces.values()
                for entry in topics.entries()
            )
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

    def delete_namespace(self, namespace: str, *, force: bool = False) -> None:
        """Remove a namespace with what is in it: an event for each topic, then one for the namespace.

        Args:
            force: whether users' topics are removed as well.

        Raises:
            NotFoundError: if there is no such namespace.
            ConflictError: if it has users' topics, unless they are to be removed.
        """
        with self.together():
            topics = self._state.topics_of(namespace).names("all")
            n_users = 0 if force else len(without_system_topics(topics))
            if n_users:
                raise ConflictError(
                    f"namespace {namespace} is not empty (users' topics: {n_users:,}); delete these first, or use force"
                )
            for topic in topics:
                self._state.make(topic, None)
            self._state.remove_namespace(namespace)

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
        wanted = TopicEntry(
            topic, checked_pairs(properties, PROPERTY_RULES), checked_pairs(labels, self._label_rules), is_loaded=False
        )
        whole = without_partition(topic)
        with self.together():
            # Inside the transaction: it began with the writes of other processes, which may have created the topic.
            topics = self._state.topics_of(namespace_of(topic))
            if topics.parts(topic):
                raise StateError(f"topic {topic!r} exists already")
            if whole != topic and self.entry(whole) is not None:
                raise StateError(f"topic {whole!r} exists and is not partitioned")
            shared = topics.a_partition(whole)
            if shared is not None:
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
        self._set(topic, labels, self._label_rules)

    def remove_labels(self, topic: str, keys: Iterable[str] = (), *, everything: bool = False) -> None:
        """Remove the labels of some keys, or all; keys that a topic does not have are passed over.

        Raises:
            InvalidNameError, NotFoundError: for its name, or if there is no such topic.
            ArgumentError: if neither keys nor everything is named, or both.
        """
        self._remove(topic, checked_keys(keys, self._label_rules, everything=everything), self._label_rules)

    def set_properties(self, topic: str, properties: Pairs) -> None:
        """Add properties to those a topic has; of a key that is there the value is replaced.

        Raises:
            InvalidNameError, NotFoundError: for its name, or if there is no such topic.
            ArgumentError: for properties over their limits.
        """
        self._set(topic, properties, PROPERTY_RULES)

    def remove_properties(self, topic: str, keys: Iterable[str] = (), *, everything: bool = False) -> None:
        """Remove the properties of some keys, or all; keys that a topic does not have are passed over.

        Raises:
            InvalidNameError, NotFoundError: for its name, or if there is no such topic.
            ArgumentError: if neither keys nor everything is named, or both.
        """
        self._remove(topic, checked_keys(keys, PROPERTY_RULES, everything=everything), PROPERTY_RULES)

    def load(self, topic: str) -> None:
        """Note that a broker serves a topic, or one partition, from now on; only in this catalog.

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

        Nothing is propagated to other partitions and no limit is checked: the other catalog has done that. A topic that
        is loaded here stays so, and none becomes it.
        """
        with self.together():
            self._state.add_namespace(str(TopicName.parse(topic).namespace))
            now = self._state.entry(topic)
            is_loaded = now is not None and now.is_loaded
            self._state.make(topic, None if entry is None else replace(entry, is_loaded=is_loaded))

    def together(self) -> AbstractContextManager[None]:
        """Make one transaction of the writes in a block: all are kept, or none if it raises.

        Listeners are called when it ends. Reading inside it shows the writes so far; other threads wait for its end
        when they ask.

        Raises:
            InputError: if another process writes to the file for too long.
        """
        return self._state.together()

    def subscribe(self, listener: Listener) -> Callable[[], None]:
        """Call a listener with every event after this revision, once each, in order; return a function that ends it.

        Events come once they are safe, those of other processes too: "loaded" means that some process loaded the topic,
        and `loaded` those of this catalog. A listener may write: its events come after those under way. If a listener
        raises, all listeners hear all events nevertheless, then the writer that called them gets the error.

        Raises:
            StateError: inside a transaction, which may still be undone.
        """
        return self._state.subscribe(listener)

    def events_since(self, revision: int) -> Sequence[TopicEvent]:
        """Return the events after a revision up to this catalog's own, in order.

        Raises:
            StateError: if some of them are no longer kept (take a snapshot), or the revision is ahead.
        """
        with self._state.asking():
            events = self._storage.events_since(revision)
            # The storage may have events of other processes that this catalog has not taken in yet.
            return tuple(event for event in events if event.revision <= self._state.revision)

    def refresh(self) -> None:
        """Take in the writes of other processes to the storage, and call the listeners; every write does it too.

        If more was written than the storage keeps events, the topics are read anew. Listeners then get an event for
        each difference, the last with the storage's revision; the events before the first one count as missed.
        """
        self._state.refresh()

    def close(self) -> None:
        """Close the storage."""
        self._storage.close()

    def _set(self, topic: str, pairs: Pairs, rules: PairRules) -> None:
        added = checked_pairs(pairs, rules)
        self._amend(topic, lambda before: merged_pairs(before, added, rules), rules)

    def _remove(self, topic: str, keys: Collection[str] | None, rules: PairRules) -> None:
        self._amend(topic, lambda before: pairs_without(before, keys), rules)

    def _amend(self, topic: str, amended: Callable[[Mapping[str, str]], Mapping[str, str]], rules: PairRules) -> None:
        """Change the labels or properties of a topic, which are those of each of its partitions."""
        with self.together():
            # Asked first, so that an unknown partition of a known topic is refused.
            self.meant_by(topic)
            for name in self.siblings(topic):
                entry = self.entry(name)
                if entry is not None:
                    self._state.make(name, rules.given(entry, amended(rules.of(entry))))

    def _add(self, names: Iterable[str], like: TopicEntry) -> None:
        for name in names:
            self._state.make(name, replace(like, name=name, is_loaded=False))

    def _set_loaded(self, topic: str, *, is_loaded: bool) -> None:
        with self.together():
            for entry in self.meant_by(topic):
                self._state.make(entry.name, replace(entry, is_loaded=is_loaded))
