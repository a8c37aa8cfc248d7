"""Carry out the listings that a service wants: from the catalog, or through a lister; at once or in steps.

Queries that are looked up as one share the look-up and one pass over its names, however many patterns there are. While
steps are under way the service may be handed events, requests and other listings: each listing is of the revision at
which its look-up began, and the service applies the events after it.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence

from lookup.errors import PulsarLookupError
from lookup.model.catalog import CatalogView, Listing
from lookup.topics.listing.topic_list import TopicList
from lookup.topics.listing.topic_lister import TopicLister
from lookup.topics.listing.topic_query import ROWS_PER_STEP, Steps, TopicQuery, finished, look_up, narrowed
from lookup.topics.watching.service import TopicListService, WantedListing

__all__ = ["carry_out", "carrying_out"]

#: Handing a list to its watchers takes as long as looking at so many names.
_ROWS_OF_A_LIST = 20


def carry_out(service: TopicListService, catalog: CatalogView, lister: TopicLister | None = None) -> tuple[str, ...]:
    """Carry out the listings that a service wants, from a catalog in memory; return why some failed.

    Clients that wait get the refusal of the catalog or the lister, word by word. The others keep their lists, and only
    the caller learns of the refusal.

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
    begun: list[WantedListing] = []
    #: what is looked up -> the listings it is for, each with the query to narrow by
    groups: dict[TopicQuery, list[tuple[WantedListing, TopicQuery]]] = {}
    sentences = []
    try:
        # All that are wanted now, so that they share look-ups and passes, but no more than a step's worth at once.
        at_once = max(1, rows // _ROWS_OF_A_LIST)
        while True:
            wanted_now = service.wanted(at_once)
            begun += wanted_now
            for wanted in wanted_now:
                groups.setdefault(wanted.query.looked_up(), []).append((wanted, wanted.query.plain()))
            if len(wanted_now) < at_once:
                break
            yield
        for lookup, group in groups.items():
            # Taken before the listing: an event that comes while it is made must not count as seen by it.
            revision = catalog.revision
            try:
                lists = yield from _lists(catalog, lister, lookup, {query for _, query in group}, rows)
            except PulsarLookupError as error:
                for wanted, _ in group:
                    service.failed(wanted.ticket, str(error))
                sentences.append(str(error))
                continue
            handed = 0
            for wanted, query in group:
                if handed >= rows:
                    yield
                    handed = 0
                service.listed(wanted.ticket, Listing(lists[query]), revision=revision)
                handed += len(lists[query]) + _ROWS_OF_A_LIST
    finally:
        # Whatever is raised, no listing stays under way: one that has come to its end is not ended twice.
        for wanted in begun:
            service.failed(wanted.ticket)
    return tuple(sentences)


def _lists(
    catalog: CatalogView, lister: TopicLister | None, lookup: TopicQuery, queries: Collection[TopicQuery], rows: int
) -> Steps[Mapping[TopicQuery, TopicList]]:
    if lister is None:
        return (yield from narrowed(queries, look_up(catalog, lookup), rows=rows))
    names: Sequence[str] = yield from lister.fetching(lookup, rows=rows)
    # A lister cannot widen a client's query: what it shows is narrowed as in any listing.
    return (yield from lister.narrowed(lookup, queries, names, rows=rows))
