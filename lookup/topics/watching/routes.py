"""Find the watched queries whose topics an event may change, without asking each query.

| event                          | goes to the queries of its namespace                                               |
| ------------------------------ | ---------------------------------------------------------------------------------- |
| created, deleted               | with a pattern that the name matches; with a selector that the labels may fit       |
| labels                         | with a selector that the labels, as they were or are, may fit                       |
| properties, loaded, unloaded   | none                                                                               |
| namespace-deleted              | all that a lister drives; the others hear of its topics                            |
| of a lister's interests        | all that the lister drives; if they have a selector, of labels as well              |

A selector is filed under one of its conditions: a topic that neither had nor has a fitting label cannot change its
list. Only a topic that left such a list for its labels may be deleted without them, before its watchers heard of it;
until they have, deletions go to these queries too, since a topic created again is another one.

Source: `docs/pulsar/protocol.md`; the measurements in `docs/decisions/one-way-to-ask.md`.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import TypeAlias

from lookup.model.catalog import Equals, EventKind, Exists, In, Selector, TopicEvent
from lookup.topics.catalog.naming import namespace_of
from lookup.topics.listing.pattern_set import PatternSet
from lookup.topics.watching.query_topics import MEMBERSHIP_EVENTS, QueryTopics

__all__ = ["Routes"]

#: (label key, value), with None for any value.
_Address: TypeAlias = tuple[str, str | None]
#: A set that keeps the order of registration, in which events are handed on.
_Ordered: TypeAlias = dict[QueryTopics, None]


class Routes:
    """The watched queries of a server.

    Args:
        interests: kinds of events on which a lister is asked again; None: no lister, events alone decide.
    """

    def __init__(self, interests: frozenset[EventKind] | None) -> None:
        self._interests = interests
        self._by_namespace: dict[str, _Driven | _Followed] = {}

    def __iter__(self) -> Iterator[QueryTopics]:
        return (topics for routed in self._by_namespace.values() for topics in routed.all)

    def add(self, topics: QueryTopics) -> None:
        """File the topics of a query."""
        namespace = topics.query.namespace
        routed = self._by_namespace.get(namespace)
        if routed is None:
            routed = _Followed(namespace) if self._interests is None else _Driven(self._interests)
            self._by_namespace[namespace] = routed
        routed.all[topics] = None
        routed.add(topics)

    def remove(self, topics: QueryTopics) -> None:
        """Remove the topics of a query."""
        routed = self._by_namespace[topics.query.namespace]
        del routed.all[topics]
        routed.remove(topics)
        # Emptied entries go as well: a server sees namespaces and labels come and go for months.
        if not routed.all:
            del self._by_namespace[topics.query.namespace]

    def concerned(self, event: TopicEvent) -> tuple[QueryTopics, ...]:
        """Return the topics that an event may change, each once."""
        # An event may be about a namespace, and has its name then.
        routed = self._by_namespace.get(namespace_of(event.topic) or event.topic)
        return () if routed is None else tuple(routed.concerned(event))

    def changed(self, topics: QueryTopics) -> None:
        """Note that some topics changed, so that their watchers may have removals to hear of."""
        self._by_namespace[topics.query.namespace].changed(topics)


class _Driven:
    """The queries of a namespace whose topics a lister decides on."""

    def __init__(self, interests: frozenset[EventKind]) -> None:
        self.all: _Ordered = {}
        self._selecting: _Ordered = {}
        # Of a deletion is noted that the topic, if it is listed again, is another one.
        self._kinds = interests | {"deleted", "namespace-deleted"}

    def add(self, topics: QueryTopics) -> None:
        if topics.query.selector:
            self._selecting[topics] = None

    def remove(self, topics: QueryTopics) -> None:
        self._selecting.pop(topics, None)

    def concerned(self, event: TopicEvent) -> _Ordered:
        if event.kind in self._kinds:
            return self.all
        return self._selecting if event.kind in MEMBERSHIP_EVENTS else {}

    def changed(self, topics: QueryTopics) -> None:
        """Do nothing: a deletion goes to all of them."""


class _Followed:
    """The queries of a namespace whose topics events alone keep right."""

    def __init__(self, namespace: str) -> None:
        self.all: _Ordered = {}
        self._patterns = PatternSet(namespace)
        self._by_pattern: dict[str, _Ordered] = {}
        self._by_label: dict[_Address, _Ordered] = {}
        #: queries with a selector whose watchers may not have heard of every removal
        self._leaving: _Ordered = {}

    def add(self, topics: QueryTopics) -> None:
        pattern = topics.query.pattern
        if pattern is not None:
            self._patterns.add(pattern)
            self._by_pattern.setdefault(pattern, {})[topics] = None
        for address in _addresses(topics.query.selector):
            self._by_label.setdefault(address, {})[topics] = None

    def remove(self, topics: QueryTopics) -> None:
        pattern = topics.query.pattern
        if pattern is not None:
            del self._by_pattern[pattern][topics]
            if not self._by_pattern[pattern]:
                del self._by_pattern[pattern]
                self._patterns.remove(pattern)
        for address in _addresses(topics.query.selector):
            del self._by_label[address][topics]
            if not self._by_label[address]:
                del self._by_label[address]
        self._leaving.pop(topics, None)

    def concerned(self, event: TopicEvent) -> _Ordered:
        concerned: _Ordered = {}
        if event.kind not in MEMBERSHIP_EVENTS:
            return concerned
        # The labels of a topic change nothing for a pattern.
        for pattern in self._patterns.matching(event.topic) if event.kind != "labels" else ():
            concerned |= self._by_pattern[pattern]
        for labels in (event.old, event.new):
            concerned |= self._labelled(labels)
        if event.kind == "deleted" and self._leaving:
            self._leaving = {topics: None for topics in self._leaving if topics.has_unsent}
            concerned |= self._leaving
        return concerned

    def _labelled(self, labels: Mapping[str, str]) -> _Ordered:
        routed: _Ordered = {}
        for key, value in labels.items() if self._by_label else ():
            routed |= self._by_label.get((key, value), {})
            routed |= self._by_label.get((key, None), {})
        return routed

    def changed(self, topics: QueryTopics) -> None:
        if topics.query.selector:
            self._leaving[topics] = None


def _addresses(selector: Selector) -> list[_Address]:
    """Return the labels to file a selector under: those of the condition that the fewest events meet, by a guess."""
    addresses: list[list[_Address]] = []
    for condition in selector:
        match condition:
            case Equals(key, value):
                addresses.append([(key, value)])
            case In(key, values):
                # A value that is given twice is one address.
                addresses.append([(key, value) for value in dict.fromkeys(values)])
            case Exists(key):
                addresses.append([(key, None)])
    # A condition on a key alone is met most often; else the fewer values, the fewer events.
    return min(addresses, key=lambda pairs: (any(value is None for _, value in pairs), len(pairs)), default=[])
