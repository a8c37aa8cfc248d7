"""What a query means: whether one topic belongs to it, and which topics of a catalog do.

Both say the same of every topic, so a set may be listed once and followed by events.

Source: `docs/pulsar/protocol.md`; watched sets are without system topics since Pulsar's #25188.
"""

from __future__ import annotations

from collections.abc import Iterable

from lookup.model.catalog import CatalogView, Listing, selects
from lookup.topics.listing import Query, TopicLister
from lookup.topics.messages import WatchQuery
from lookup.topics.naming import is_system_topic, schemes_of
from lookup.topics.patterns import TopicsPattern
from lookup.topics.watched import Matches

__all__ = ["list_from", "list_through", "matcher_of"]


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
