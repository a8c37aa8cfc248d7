"""A lister that does as a test says, misbehaviour included."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, ClassVar

from lookup.hooks import Lister
from lookup.model.catalog import CatalogView, EventKind, Listing, Mode

__all__ = ["Broken", "Listed", "Scripted"]


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


@dataclass(frozen=True)
class Listed(Scripted):
    """Name the interests in a list, as a careless lister may."""

    name: ClassVar[str] = "listed"
    interests: ClassVar[Any] = ["created", "labels"]


@dataclass(frozen=True)
class Broken(Scripted):
    """Fail to begin, or to end."""

    name: ClassVar[str] = "broken"

    begins: bool = True
    ends: bool = True
    error: BaseException = field(default_factory=lambda: ConnectionError("nobody answers"))

    def initialize(self, catalog: CatalogView) -> None:
        """Fail if it shall not begin."""
        if not self.begins:
            raise self.error

    def close(self) -> None:
        """Fail if it shall not end."""
        if not self.ends:
            raise self.error
