"""The lister `property-filter`: the topics that have every property the client sent, found by looking at each."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import ClassVar

from lookup.hooks import Lister
from lookup.model import CatalogView, EventKind, Listing, Mode

__all__ = ["PropertyFilter"]


@dataclass(frozen=True)
class PropertyFilter(Lister):
    """List the topics that have every property the client sent, with exactly that value.

    Every topic of the namespace is looked at; `indexed` gives the same answer from the catalog's index.

    Match -> Result -> Reason:
        * no properties were sent -> every topic of the namespace and mode is listed
        * the topic has every property with the value that was sent -> listed
        * it lacks one, or has another value -> not listed

    Source: PIP-452: a null or empty map asks for no filtering.
    """

    name: ClassVar[str] = "property-filter"
    interests: ClassVar[frozenset[EventKind]] = frozenset({"created", "deleted", "properties"})

    def list_topics(self, namespace: str, mode: Mode, properties: Mapping[str, str], catalog: CatalogView) -> Listing:
        """Compare the properties of every topic."""
        names = catalog.topics(namespace, mode)
        if not properties:
            return Listing(names)
        return Listing([name for name in names if _has(catalog, name, properties)])


def _has(catalog: CatalogView, name: str, wanted: Mapping[str, str]) -> bool:
    entry = catalog.entry(name)
    return entry is not None and wanted.items() <= entry.properties.items()
