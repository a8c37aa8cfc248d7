"""Carry out the listings that a service wants: from the catalog, or through a lister; at once or in steps.

Queries that are looked up as one share the look-up and one pass over its names, however many patterns there are. While
steps are under way the service may be handed events, requests and other listings: each listing is of the revision at
which its look-up began, and the service applies the events after it.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence

from lookup.errors import NotFoundError, PulsarLookupError
from lookup.model.catalog import CatalogView, Listing
from lookup.topics.listing.steps import ROWS_PER_STEP, Budget, Steps, finished, queries_per_step
from lookup.topics.listing.topic_list import TopicList, hashing_each
from lookup.topics.listing.topic_lister import TopicLister
from lookup.topics.listing.topic_query import TopicQuery, look_up, narrowed
from lookup.topics.watching.service import TopicListService

__all__ = ["carry_out", "carrying_out"]


def carry_out(service: TopicListService, catalog: CatalogView, lister: TopicLister | None = None) -> tuple[str, ...]:
    """Carry out the listings that a service wants, from a catalog in memory; return why some failed.

    Clients that wait get the refusal of the catalog or the lister, word by word. The others keep their lists, and only
    the caller learns of the refusal. If the catalog has no such namespace any more, their lists are empty.

    Args:
        lister: one that decides on the topics; or, for a service without interests, one that lists every topic, so that
            watches share with requests for listings what is kept of lists. None: every topic, and nothing is kept.
    """
    return finished(carrying_out(service, catalog, lister))


def carrying_out(
    service: TopicListService, catalog: CatalogView, lister: TopicLister | None = None, *, rows: int = ROWS_PER_STEP
) -> Steps[tuple[str, ...]]:
    """Carry out listings as `carry_out` does, in steps; those that are wanted meanwhile wait for the next call.

    Args:
        rows: names that one step looks at or hands over.
    """
    #: tickets of listings under way
    begun: set[int] = set()
    #: what is looked up -> the queries to narrow by, each with the ticket that it is for
    groups: dict[TopicQuery, dict[TopicQuery, int]] = {}
    sentences: list[str | None] = []
    try:
        # All that are wanted now, so that they share look-ups and passes, but no more than a step's worth at once.
        at_once = queries_per_step(rows)
        while True:
            wanted_now = service.wanted(at_once)
            for wanted in wanted_now:
                begun.add(wanted.ticket)
                groups.setdefault(wanted.query.looked_up(), {})[wanted.query.plain()] = wanted.ticket
            if len(wanted_now) < at_once:
                break
            yield
        for lookup, group in groups.items():
            # A look-up, which asks lister and catalog, begins in a step of its own.
            if sentences:
                yield
            sentences.append((yield from _carrying_out(service, catalog, lister, lookup, group, rows)))
            begun.difference_update(group.values())
    finally:
        # Whatever is raised, no listing stays under way.
        for ticket in begun:
            service.failed(ticket)
    return tuple(sentence for sentence in sentences if sentence is not None)


def _carrying_out(
    service: TopicListService,
    catalog: CatalogView,
    lister: TopicLister | None,
    lookup: TopicQuery,
    group: Mapping[TopicQuery, int],
    rows: int,
) -> Steps[str | None]:
    """Carry out the listings of one look-up, each query with its ticket; return why they failed, if they did."""
    # Taken before the listing: an event that comes while it is made must not count as seen by it. Nor must one that
    # another thread has not handed in yet: of a topic made again, the list alone does not show that.
    revision = min(catalog.revision, service.revision)
    lists: Mapping[TopicQuery, TopicList] = {}
    failure: str | None = None
    is_gone = False
    try:
        lists = yield from _lists(catalog, lister, lookup, group, rows)
    except PulsarLookupError as error:
        failure = str(error)
        # Any other error, as of a lister whose own source is away, makes no list an empty one.
        is_gone = isinstance(error, NotFoundError) and not _has_namespace(catalog, lookup.namespace)
    # One for all queries: each takes of it what it takes to hand its list over to its watchers.
    budget = Budget(rows)
    for query, ticket in group.items():
        if failure is None:
            yield from service.taking(ticket, Listing(lists[query]), revision=revision, budget=budget)
        elif is_gone:
            yield from service.vanishing(ticket, failure, revision=revision, budget=budget)
        else:
            yield from service.failing(ticket, failure, budget=budget)
    return failure


def _has_namespace(catalog: CatalogView, namespace: str) -> bool:
    try:
        catalog.topics(namespace)
    except NotFoundError:
        return False
    return True


def _lists(
    catalog: CatalogView, lister: TopicLister | None, lookup: TopicQuery, queries: Collection[TopicQuery], rows: int
) -> Steps[Mapping[TopicQuery, TopicList]]:
    if lister is not None:
        names: Sequence[str] = yield from lister.fetching(lookup, rows=rows)
        # A lister cannot widen a client's query: what it shows is narrowed as in any listing.
        return (yield from lister.narrowed(lookup, queries, names, rows=rows))
    lists = yield from narrowed(queries, look_up(catalog, lookup), rows=rows)
    yield from hashing_each(lists.values(), rows=rows)
    return lists
