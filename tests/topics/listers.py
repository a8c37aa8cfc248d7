"""Listers that misbehave, each in its own way; for the tests of this room."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, ClassVar

from lookup.hooks import Lister
from lookup.model.catalog import CatalogView, EventKind, Listing, Mode

__all__ = ["Scripted"]


@dataclass(frozen=True)
class Scripted(Lister):
    """Answer what a function of the namespace says."""

    name: ClassVar[str] = "scripted"
    interests: ClassVar[frozenset[EventKind]] = frozenset({"created"})

    answer: Callable[[str], Any] = lambda _: Listing(())

    def list_topics(self, namespace: str, mode: Mode, properties: Mapping[str, str], catalog: CatalogView) -> Listing:
        """Call the function."""
        found: Listing = self.answer(namespace)
        return found
