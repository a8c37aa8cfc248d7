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


def matcher_of(query: WatchQuery) -> Matches:
    """Return a function of a topic's name and labels that says whether the topic belongs to the query.

    Raises:
        PatternError: if the pattern cannot be used.
    """
    schemes = schemes_of(query.mode)
    # The cheapest test first: for most events of a busy namespace it is the only one.
    if query.pattern is not None:
        pattern = TopicsPattern(query.pattern)
        return lambda topic, _: topic.startswith(schemes) and pattern.matches(topic) and not is_system_topic(topic)
    selector = query.selector or ()
    return lambda topic, labels: selects(selector, labels) and topic.startswith(schemes) and not is_system_topic(topic)


def list_from(catalog: CatalogView, query: WatchQuery) -> Listing:
    """List the topics of a query as the default lister does: properties change nothing.

    Raises:
        PatternError: if the pattern cannot be used.
        PulsarLookupError: as the catalog raises it for the namespace.
    """
    if query.selector:
        return Listing(_narrow(query, catalog.selected(query.namespace, query.selector), catalog))
    return Listing(_narrow(query, catalog.topics(query.namespace, query.mode), catalog))


def list_through(lister: TopicLister, catalog: CatalogView, query: WatchQuery) -> Listing:
    """List those topics of a query that a custom lister shows; a lister cannot widen a client's query.

    Raises:
        PulsarLookupError: as `TopicLister.fetch` does, for a partial list too; and as `list_from` does.
    """
    topics = lister.fetch(Query(query.namespace, query.mode, query.properties))
    return Listing(_narrow(query, topics, catalog))


def _narrow(query: WatchQuery, topics: Iterable[str], catalog: CatalogView) -> tuple[str, ...]:
    """Keep those topics of a list that belong to the query."""
    kept = [topic for topic in topics if topic.startswith(schemes_of(query.mode)) and not is_system_topic(topic)]
    if query.selector:
        # A lister answers names without labels, so the selector is applied through the catalog's index.
        selected = set(catalog.selected(query.namespace, query.selector))
        return tuple(topic for topic in kept if topic in selected)
    return tuple(TopicsPattern(query.pattern or "").filter(kept))


class Routes:
    """The watched queries by namespace, and by the label that an event must have to concern them."""

    def __init__(self) -> None:
        #: namespace -> its queries' topics; dicts because they keep the order of registration
        self._all: dict[str, dict[QueryTopics, None]] = {}
        #: namespace -> those that no label finds
        self._plain: dict[str, dict[QueryTopics, None]] = {}
        self._labelled: dict[tuple[str, _Address], dict[QueryTopics, None]] = {}

    def __iter__(self) -> Iterator[QueryTopics]:
        return (topics for routed in self._all.values() for topics in routed)

    def add(self, topics: QueryTopics, *, by_label: bool) -> None:
        """File the topics of a query; `by_label`: under a label, because its selector alone decides."""
        for routed in self._routes_of(topics, by_label=by_label):
            routed[topics] = None

    def remove(self, topics: QueryTopics, *, by_label: bool) -> None:
        """Remove the topics of a query from the routes."""
        for routed in self._routes_of(topics, by_label=by_label):
            routed.pop(topics, None)
        # Emptied entries go as well: a server sees namespaces and labels come and go for months.
        namespace = topics.query.namespace
        for by_namespace in (self._all, self._plain):
            if not by_namespace.get(namespace):
                by_namespace.pop(namespace, None)
        for address in _addresses(topics.query.selector or ()):
            if not self._labelled.get((namespace, address)):
                self._labelled.pop((namespace, address), None)

    def _routes_of(self, topics: QueryTopics, *, by_label: bool) -> list[dict[QueryTopics, None]]:
        namespace = topics.query.namespace
        addresses = _addresses(topics.query.selector or ()) if by_label else []
        labelled = [self._labelled.setdefault((namespace, address), {}) for address in addresses]
        return [self._all.setdefault(namespace, {}), *(labelled or [self._plain.setdefault(namespace, {})])]

    def concerned(self, event: TopicEvent) -> Iterable[QueryTopics]:
        """Return the queries' topics of the event's namespace that it may concern, each once."""
        namespace = namespace_of(event.topic)
        # Events of other kinds have no labels, or interest only listers.
        if event.kind not in ("created", "labels"):
            return tuple(self._all.get(namespace, ()))
        concerned = dict(self._plain.get(namespace, ()))
        for labels in (event.old, event.new):
            for key, value in labels.items():
                concerned |= self._labelled.get((namespace, (key, value)), {})
                concerned |= self._labelled.get((namespace, (key, None)), {})
        return tuple(concerned)


def _addresses(selector: Selector) -> list[_Address]:
    """Return the labels to file a selector under: those of the condition that the fewest events meet, by a guess."""
    addresses: list[list[_Address]] = []
    for condition in selector:
        match condition:
            case Equals(key, value):
                addresses.append([(key, value)])
            case In(key, values):
                addresses.append([(key, value) for value in values])
            case Exists(key):
                addresses.append([(key, None)])
    # A condition on a key alone is met most often; else the fewer values, the fewer events.
    return min(addresses, key=lambda pairs: (any(value is None for _, value in pairs), len(pairs)), default=[])
