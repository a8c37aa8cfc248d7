"""Read and write the catalog of topics with properties and labels, with revisions and ordered events.

Names, labels and properties are checked here. `state.py` makes writes safe and announces them.

Threads: a catalog may be used by any number of threads at the same time, over each storage.

    query         reads one revision, without unfinished transactions, and does not wait for them or for another process
    `reading`     gives several queries one revision. Writes of other threads wait for the end of its block
    write         waits for the write before it, and for another process that writes to the file. `together` joins
                  several into one
    listener      is called by one thread at a time, in the order of revisions, without a lock. It may read and write. A
                  write does not wait for listeners that another thread is calling
    `close`       is called once no other thread uses the catalog

In a block of `reading` or `together` a thread must not wait for another thread that uses the catalog.

Why: `docs/decisions/catalog-threads.md`.

Source: PIP-145, PIP-451 (writes propagate a partitioned topic's properties and labels), `docs/pulsar/protocol.md`.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import replace

from lookup.errors import ArgumentError, NotFoundError, StateError
from lookup.model.catalog import Mode, Selector, TopicEntry, TopicEvent
from lookup.model.names import TopicName
from lookup.model.quoting import closest, shown
from lookup.topics.catalog.naming import (
    checked_name,
    checked_namespace,
    checked_new_name,
    names_of,
    namespace_of,
    without_partition,
)
from lookup.topics.catalog.pairs import (
    LABEL_RULES,
    PROPERTY_RULES,
    PairKind,
    PairRules,
    Pairs,
    checked_keys,
    checked_pairs,
    merged_pairs,
    pairs_without,
)
from lookup.topics.catalog.sqlite import SqliteStorage
from lookup.topics.catalog.state import CatalogState, Listener

__all__ = ["Catalog"]

#: Above this many topics no similar name is searched, since it would take minutes in the largest namespaces.
_SEARCHED = 2_000


class Catalog:
    """Topics by namespace, kept in a file. It satisfies `CatalogView`.

    A partitioned topic consists of its partitions. Each is an entry, and the plain name means all of them in every
    write. Labels and properties belong to the whole topic. If set on one partition, they are set on all. A topic that
    only looks like a partition, beside a topic without the suffix that another catalog has as well, is its own topic.

    Args:
        storage: keeps the changes. If it is absent, a temporary file is used, which is deleted with the catalog.
        allowed_label_keys: keys that labels may have, None for any.

    Raises:
        InputError: if the storage cannot be read.
    """

    def __init__(
        self, storage: SqliteStorage | None = None, *, allowed_label_keys: Collection[str] | None = None
    ) -> None:
        self._storage = storage or SqliteStorage()
        self._state = CatalogState(self._storage)
        allowed = None if allowed_label_keys is None else frozenset(allowed_label_keys)
        self._rules: Mapping[PairKind, PairRules] = {
            "labels": replace(LABEL_RULES, allowed=allowed), "properties": PROPERTY_RULES,
        }  # fmt: skip

    @property
    def revision(self) -> int:
        """The revision of the last event, which is the number of events so far."""
        with self._state.asking():
            return self._state.revision

    @property
    def identity(self) -> str:
        """An id that differs from that of a new catalog in its place, empty if its file is older."""
        return self._storage.identity

    def reading(self) -> AbstractContextManager[None]:
        """Answer every query of a block from one revision. Writes of other threads wait for its end.

        Raises:
            StateError: for a write or `refresh` in the block, unless the block is inside one of `together`.
        """
        return self._state.reading()

    def namespaces(self) -> Sequence[str]:
        """List the names of all namespaces, sorted."""
        with self._state.asking():
            return sorted(self._state.namespaces)

    def topics(self, namespace: str, mode: Mode = "persistent") -> Sequence[str]:
        """List every topic of a namespace, sorted, including system topics, and partitions one by one.

        The result is the same object until a topic of the namespace is created or deleted. So values that a caller
        derives from it, such as a hash, are valid as long.

        Raises:
            NotFoundError: if there is no such namespace, as for every query of a namespace.
        """
        with self._state.asking():
            return self._state.topics_of(namespace).names(mode)

    def entry(self, topic: str) -> TopicEntry | None:
        """Look up one topic, None if there is none. A partitioned topic has entries for its partitions only."""
        with self._state.asking():
            return self._state.entry(topic)

    def describe(self, topic: str) -> TopicEntry:
        """Look up a topic, or one of its partitions, which all have its labels and properties.

        Raises:
            InvalidNameError: if it is no complete name of a topic.
            NotFoundError: if there is no such topic, with the most similar name.
        """
        with self._state.asking():
            topics = self._state.namespaces.get(namespace_of(topic))
            entry = None if topics is None else topics.entry(topic) or topics.a_partition(topic)
            if entry is None:
                raise self._build_unknown_error(topic)
            return entry

    def with_properties(self, namespace: str, mode: Mode, properties: Mapping[str, str]) -> Sequence[str]:
        """Find the topics that have all of these properties, sorted, from an index, or all topics for none.

        As for `topics`, the result is mostly the same object until properties change.
        """
        with self._state.asking():
            topics = self._state.topics_of(namespace)
            return topics.with_properties(mode, properties) if properties else topics.names(mode)

    def select(self, namespace: str, selector: Selector) -> Sequence[str]:
        """Find the topics that a selector selects, of both persistences, sorted, from the index of labels.

        As for `topics`, the result is mostly the same object until labels change.

        Raises:
            ArgumentError: for a selector without conditions, which does not mean every topic.
        """
        if not selector:
            raise ArgumentError("the selector has no condition; it needs at least one, such as env=prod")
        with self._state.asking():
            return self._state.topics_of(namespace).select(selector)

    def create_namespace(self, namespace: str) -> None:
        """Add a namespace, unless there is one of that name.

        Raises:
            InvalidNameError: if it is not of the form tenant/namespace.
            ArgumentError: for its length.
        """
        name = checked_namespace(namespace)
        with self.together():
            self._add_namespace(name)

    def delete_namespace(self, namespace: str) -> None:
        """Remove a namespace and its topics, with an event for each topic, then one for the namespace.

        Raises:
            NotFoundError: if there is no such namespace.
        """
        with self.together():
            self._require_namespace(namespace)
            for topic in self._storage.names(namespace):
                self._state.make(topic, None)
            self._state.save(TopicEvent(0, "namespace-deleted", namespace))

    def create(self, topic: str, *, partitions: int | None = None, properties: Pairs = (), labels: Pairs = ()) -> None:
        """Add a topic, not loaded yet, with labels and properties for each of its partitions.

        A partition that is created by its own name beside others has their labels and properties.

        Args:
            partitions: number of partitions, None if it is not partitioned, or is one partition.

        Raises:
            InvalidNameError, NotFoundError: for its name, and for a namespace that does not exist.
            StateError: if there is a topic of that name, partitioned or not.
            ArgumentError: for invisible characters in its name, labels or properties over limits, or bad `partitions`.
        """
        checked_new_name(topic)
        names = names_of(topic, partitions)
        target = TopicEntry(
            topic, checked_pairs(properties, PROPERTY_RULES), checked_pairs(labels, self._rules["labels"])
        )
        whole = without_partition(topic)
        with self.together():
            # This is inside the transaction, after the writes of other processes, which may have created the topic.
            self._require_namespace(namespace_of(topic))
            if self._list_parts(topic):
                raise StateError(f"topic {topic!r} exists already")
            if whole != topic and self._storage.entry(whole) is not None:
                raise StateError(f"topic {whole!r} exists and is not partitioned")
            partitions_there = self._storage.partitions(whole)
            shared = self._storage.entry(partitions_there[0]) if partitions_there else None
            if shared is not None:
                # Missing labels and properties are those of the topic, since a partition cannot have others.
                completed = (target.labels or shared.labels, target.properties or shared.properties)
                if completed != (shared.labels, shared.properties):
                    raise ArgumentError(
                        f"{topic} has the labels and properties of its topic; it cannot be given others"
                    )
                target = replace(shared, name=topic)
            for name in names:
                self._state.make(name, replace(target, name=name))

    def delete(self, topic: str) -> None:
        """Remove a topic with all of its partitions, or one partition.

        Raises:
            InvalidNameError, NotFoundError: for its name, or if there is no such topic.
        """
        with self.together():
            for name in self._require_parts(topic):
                self._state.make(name, None)

    def set_pairs(self, kind: PairKind, topic: str, pairs: Pairs) -> None:
        """Add labels or properties to those of a topic. The values of existing keys are replaced.

        Raises:
            InvalidNameError, NotFoundError: for its name, or if there is no such topic.
            ArgumentError: for pairs over their limits, and for keys that are not allowed.
        """
        rules = self._rules[kind]
        added = checked_pairs(pairs, rules)
        self._amend(topic, lambda before: merged_pairs(before, added, rules), rules)

    def remove_pairs(self, kind: PairKind, topic: str, keys: Iterable[str] = (), *, everything: bool = False) -> None:
        """Remove the labels or properties of some keys, or all. Keys that a topic does not have are ignored.

        Raises:
            InvalidNameError, NotFoundError: for its name, or if there is no such topic.
            ArgumentError: if neither keys nor everything is given, or both.
        """
        rules = self._rules[kind]
        removed = checked_keys(keys, rules, everything=everything)
        self._amend(topic, lambda before: pairs_without(before, removed), rules)

    def mirror(self, topic: str, entry: TopicEntry | None) -> None:
        """Copy one entry from another catalog, None if it was deleted. A missing namespace is added.

        Nothing is propagated to other partitions and no limit is checked, since the other catalog has done that.
        """
        with self.together():
            self._add_namespace(str(TopicName.parse(topic).namespace))
            self._state.make(topic, entry)

    def together(self) -> AbstractContextManager[None]:
        """Join the writes in a block into one transaction. All are kept, or none if it raises.

        Until the end no query sees its changes, even in the block, and listeners wait. Writes build on each other.

        Raises:
            InputError: if another process writes to the file for too long.
        """
        return self._state.together()

    def subscribe(self, listener: Listener) -> Callable[[], None]:
        """Call a listener with every event after this revision, once, in order. The result is a function to stop.

        Events are announced once they are safe, including those of other processes. A listener must not raise.
        """
        return self._state.subscribe(listener)

    def events_since(self, revision: int) -> Sequence[TopicEvent]:
        """List the events after a revision up to this catalog's own, in order.

        Raises:
            StateError: if some of them are no longer kept (take a snapshot), or the revision is ahead.
        """
        with self._state.asking():
            events = self._storage.events_since(revision)
            # The storage may have events of other processes that this catalog has not applied yet.
            return tuple(event for event in events if event.revision <= self._state.revision)

    def refresh(self) -> None:
        """Read the writes of other processes to the storage, and call the listeners. Every write does it too.

        If more was written than the storage keeps events, the topics are read again. Listeners then get an event for
        each difference, the last with the storage's revision. The events before the first one count as missed.
        """
        self._state.refresh()

    def close(self) -> None:
        """Close the storage."""
        self._storage.close()

    def _amend(self, topic: str, amended: Callable[[Mapping[str, str]], Mapping[str, str]], rules: PairRules) -> None:
        with self.together():
            # This is looked up first, so that an unknown partition of a known topic is refused.
            self._require_parts(topic)
            whole = without_partition(topic)
            # A topic beside another of its name without the suffix, `o-partition-0` beside `o`, is no partition.
            names = self._storage.partitions(whole) if self._storage.entry(whole) is None else (topic,)
            for name in names:
                entry = self._storage.entry(name)
                if entry is not None:
                    self._state.make(name, rules.with_pairs(entry, amended(rules.of(entry))))

    # Questions of a transaction, which see its own writes

    def _require_namespace(self, namespace: str) -> None:
        if not self._storage.has_namespace(namespace):
            # There is none in memory either, since memory follows the committed changes.
            with self._state.asking():
                self._state.topics_of(namespace)

    def _add_namespace(self, namespace: str) -> None:
        if not self._storage.has_namespace(namespace):
            self._state.save(TopicEvent(0, "namespace-created", namespace))

    def _list_parts(self, topic: str) -> Sequence[str]:
        """List the names of a topic's entries, which are itself, or all its partitions, empty if it is unknown."""
        return self._storage.partitions(topic) if self._storage.entry(topic) is None else (topic,)

    def _require_parts(self, topic: str) -> Sequence[str]:
        parts = self._list_parts(topic)
        if not parts:
            raise self._build_unknown_error(topic)
        return parts

    def _build_unknown_error(self, topic: str) -> NotFoundError:
        # Not checked earlier, since an existing name may not be valid for a new topic. Clusters permit more names.
        checked_name(topic)
        # A write comes here without the lock of memory, and sorting the names changes memory.
        with self._state.asking():
            names = self._state.topics_of(namespace_of(topic)).names("all")
        near = closest(topic, names) if len(names) <= _SEARCHED else None
        hint = f"; did you mean {near!r}?" if near is not None else ""
        return NotFoundError(f"there is no topic {shown(topic)}{hint}")
