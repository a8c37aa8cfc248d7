"""The simplest way to carry out what watches want: on the spot, from a catalog at hand.

For commands, tests and servers whose catalog is in memory; a server that lists elsewhere hands the ends in by itself.
"""

from __future__ import annotations

from lookup.errors import PulsarLookupError
from lookup.model.catalog import CatalogView, Listing
from lookup.topics.listing import TopicLister
from lookup.topics.matching import list_from, list_through
from lookup.topics.messages import WatchQuery
from lookup.topics.watching import Wanted, Watches

__all__ = ["carry_out"]


def carry_out(watches: Watches, catalog: CatalogView, lister: TopicLister | None = None) -> tuple[str, ...]:
    """Carry out the listings that watches want; return why some came to nothing.

    What a catalog or a lister refuses is told to the clients that wait, in its own words. Those that do not wait keep
    what they have, and only the caller hears of it.

    Args:
        lister: None: the default listing.
    """
    begun = watches.wanted()
    try:
        ends = [_carry_out(wanted, watches, catalog, lister) for wanted in begun]
    finally:
        # Whatever is raised, no listing stays under way: one that has come to its end is not ended twice.
        for wanted in begun:
            watches.failed(wanted.ticket)
    return tuple(sentence for sentence in ends if sentence is not None)


def _carry_out(wanted: Wanted, watches: Watches, catalog: CatalogView, lister: TopicLister | None) -> str | None:
    revision = catalog.revision
    try:
        listing = _listing(catalog, lister, wanted.query)
    except PulsarLookupError as error:
        watches.failed(wanted.ticket, str(error))
        return str(error)
    watches.listed(wanted.ticket, listing, revision=revision)
    return None


def _listing(catalog: CatalogView, lister: TopicLister | None, query: WatchQuery) -> Listing:
    return list_from(catalog, query) if lister is None else list_through(lister, catalog, query)
