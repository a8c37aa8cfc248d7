"""The lister `indexed`: the topics that have every property the client sent, from the catalog's index."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import ClassVar

from lookup.hooks import Lister
from lookup.model import CatalogView, EventKind, Listing, Mode

__all__ = ["Indexed"]


@dataclass(frozen=True)
class Indexed(Lister):
    """List the topics that have every property the client sent, without looking at the others.

    The filter is handed down to the catalog, whose index knows the topics of each value.

    Match -> Result -> Reason:
        * no properties were sent -> every topic of the namespace and mode is listed
        * the index has the topic under every property and value that was sent -> listed
        * it does not -> not listed

    Source: PIP-452 names a data source with an index as its reason; the answer is that of `property-filter`.
    """

    name: ClassVar[str] = "indexed"
    interests: ClassVar[frozenset[EventKind]] = frozenset({"created", "deleted", "properties"})

    def list_topics(self, namespace: str, mode: Mode, properties: Mapping[str, str], catalog: CatalogView) -> Listing:
        """Ask the catalog's index."""
        return Listing(catalog.with_properties(namespace, mode, properties))
