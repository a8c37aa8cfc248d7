"""Evaluate watch queries: the topics that belong to one, and the queries that an event concerns.

`matcher_of` and `list_from` agree on every topic, so topics may be listed once and followed by events. `Routes` finds
the queries that an event may concern without asking each: a query with a selector is filed under one of its conditions,
since an event of a topic that neither had nor has a fitting label cannot change it. Deletions, and events that only
listers react to, go to every query of the namespace.

Source: `docs/pulsar/protocol.md`; watched topics exclude system topics since Pulsar's #25188.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from lookup.model.catalog import CatalogView, Equals, Exists, In, Listing, Selector, TopicEvent, selects
from lookup.topics.catalog.naming import is_system_topic, namespace_of, schemes_of
from lookup.topics.listing.topic_list import TopicsPattern
from lookup.topics.listing.topic_lister import Query, TopicLister
from lookup.topics.watching.messages import WatchQuery
from lookup.topics.watching.query_topics import Matches, QueryTopics

__all__ = ["Routes", "list_from", "list_through", "matcher_of"]


#: (label key, value), with None for any value.
_Address = tuple[str, str | None]


class Routes:
    """The watched sets by namespace and by the label that an event must have to concern them."""

    def __init__(self) -> None:
        #: namespace -> its sets; dicts because they keep the order of registration
        self._all: dict[str, dict[QueryTopics, None]] = {}
        #: namespace -> its sets that no label finds
        self._plain: dict[str, dict[QueryTopics, None]] = {}
        self._labelled: dict[tuple[str, _Address], dict[QueryTopics, None]] = {}

    def __iter__(self) -> Iterator[QueryTopics]:
        return (found for sets in self._all.values() for found in sets)

    def add(self, found: QueryTopics, *, by_label: bool) -> None:
        """File a set, by its selector if that decides alone."""
        for sets in self._places(found, by_label=by_label):
            sets[found] = None

    def remove(self, found: QueryTopics, *, by_label: bool) -> None:
        """Take a set out again."""
        for sets in self._places(found, by_label=by_label):
            sets.pop(found, None)
        namespace = found.query.namespace
        for by_namespace in (self._all, self._plain):
            if not by_namespace.get(namespace):
                by_namespace.pop(namespace, None)
        for address in _addresses(found.query.selector or ()):
            if not self._labelled.get((namespace, address)):
                self._labelled.pop((namespace, address), None)

    def _places(self, found: QueryTopics, *, by_label: bool) -> list[dict[QueryTopics, None]]:
        namespace = found.query.namespace
        addresses = _addresses(found.query.selector or ()) if by_label else []
        places = [self._labelled.setdefault((namespace, address), {}) for address in addresses]
        return [self._all.setdefault(namespace, {}), *(places or [self._plain.setdefault(namespace, {})])]

    def concerned(self, event: TopicEvent) -> Iterable[QueryTopics]:
        """Return the sets of the topic's namespace that the event may concern, each once."""
        namespace = namespace_of(event.topic)
        if event.kind not in ("created", "labels"):
            return tuple(self._all.get(namespace, ()))
        concerned = dict(self._plain.get(namespace, ()))
        for labels in (event.old, event.new):
            for key, value in labels.items():
                concerned |= self._labelled.get((namespace, (key, value)), {})
                concerned |= self._labelled.get((namespace, (key, None)), {})
        return tuple(concerned)


def _addresses(selector: Selector) -> list[_Address]:
    """Return under which labels to file a selector: those of the requirement with the fewest."""
    offers = [_labels_of(requirement) for requirement in selector]
    return min(offers, key=lambda offer: (any(value is None for _, value in offer), len(offer)), default=[])


def _labels_of(requirement: Equals | In | Exists) -> list[_Address]:
    match requirement:
        case Equals(key, value):
            return [(key, value)]
        case In(key, values):
            return [(key, value) for value in values]
        case Exists(key):
            return [(key, None)]


def matcher_of(query: WatchQuery) -> Matches:
    """Return what says of one topic, by its name and labels, whether the query means it.

    Raises:
        PatternError: where the pattern cannot be used.
    """
    schemes = schemes_of(query.mode)
    if query.pattern is not None:
        pattern = TopicsPattern(query.pattern)
        return lambda topic, _: topic.startswith(schemes) and pattern.matches(topic) and not is_system_topic(topic)
    selector = query.selector or ()
    return lambda topic, labels: selects(selector, labels) and topic.startswith(schemes) and not is_system_topic(topic)


def list_from(catalog: CatalogView, query: WatchQuery) -> Listing:
    """List what the query means, as the default lister does: properties change nothing.

    Raises:
        PatternError: where the pattern cannot be used.
        PulsarLookupError: whatever the catalog says of the namespace.
    """
    if query.selector:
        return Listing(_narrow(query, catalog.selected(query.namespace, query.selector), catalog))
    return Listing(_narrow(query, catalog.topics(query.namespace, query.mode), catalog))


def list_through(lister: TopicLister, catalog: CatalogView, query: WatchQuery) -> Listing:
    """List what a custom lister shows of what the query means; it cannot widen what a client asked for.

    Raises:
        PulsarLookupError: as `TopicLister.fetch` does, for a partial list too; and as `list_from` does.
    """
    topics = lister.fetch(Query(query.namespace, query.mode, query.properties))
    return Listing(_narrow(query, topics, catalog))


def _narrow(query: WatchQuery, topics: Iterable[str], catalog: CatalogView) -> tuple[str, ...]:
    """Keep of a list what the query means."""
    kept = [topic for topic in topics if topic.startswith(schemes_of(query.mode)) and not is_system_topic(topic)]
    if query.selector:
        selected = set(catalog.selected(query.namespace, query.selector))
        return tuple(topic for topic in kept if topic in selected)
    return tuple(TopicsPattern(query.pattern or "").filter(kept))
