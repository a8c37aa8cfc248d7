"""The simplest way to carry out what watches want: on the spot, from a catalog at hand.

For commands, tests and servers whose catalog is in memory; a server that lists elsewhere hands the ends in by itself.
"""

from __future__ import annotations

from lookup.errors import PulsarLookupError
from lookup.model.catalog import CatalogView, Listing
from lookup.topics.listing import TopicLister
from lookup.topics.matching import list_from, list_through
from lookup.topics.messages import WatchQuery
from lookup.topics.watching import Watches

__all__ = ["carry_out"]


def carry_out(watches: Watches, catalog: CatalogView, lister: TopicLister | None = None) -> None:
    """Carry out the listings that watches want.

    What a catalog or a lister refuses is told to the clients that wait, in its own words.

    Args:
        lister: None: the default listing.
    """
    for wanted in watches.wanted():
        revision = catalog.revision
        try:
            listing = _listing(catalog, lister, wanted.query)
        except PulsarLookupError as error:
            watches.failed(wanted.ticket, str(error))
        else:
            watches.listed(wanted.ticket, listing, revision=revision)


def _listing(catalog: CatalogView, lister: TopicLister | None, query: WatchQuery) -> Listing:
    return list_from(catalog, query) if lister is None else list_through(lister, catalog, query)
