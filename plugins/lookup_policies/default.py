"""The lister `default`: every topic of the namespace, whatever the client sent."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import ClassVar

from lookup.hooks import Lister
from lookup.model import CatalogView, EventKind, Listing, Mode

__all__ = ["Default"]


@dataclass(frozen=True)
class Default(Lister):
    """List every topic of the namespace; the client's properties change nothing.

    Match -> Result -> Reason:
        * any topic of the namespace and mode -> listed

    Source: PIP-452, `DefaultPulsarResourcesExtended`.
    """

    name: ClassVar[str] = "default"
    interests: ClassVar[frozenset[EventKind]] = frozenset({"created", "deleted"})

    def list_topics(self, namespace: str, mode: Mode, properties: Mapping[str, str], catalog: CatalogView) -> Listing:
        """Return what the catalog holds."""
        return Listing(catalog.topics(namespace, mode))
