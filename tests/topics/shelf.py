"""A catalog in a dict, and the answers of a query by the rule itself, to compare watches with."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import ClassVar

from lookup.hooks import Lister
from lookup.model.catalog import CatalogView, EventKind, Listing, Mode, Selector, TopicEntry, TopicEvent
from lookup.topics.routing import namespace_of

__all__ = ["Everything", "Shelf", "Undescribed", "topic"]

_NOTHING: Mapping[str, str] = {}


def topic(local: str, namespace: str = "t/n", domain: str = "persistent") -> str:
    """Return a complete name."""
    return f"{domain}://{namespace}/{local}"


class Shelf:
    """Topics with labels and properties; every change is one event, told to the listeners at once."""

    def __init__(self) -> None:
        self.revision = 0
        self.entries: dict[str, TopicEntry] = {}
        self.listeners: list[Callable[[TopicEvent], None]] = []
        #: how often anything was listed
        self.listings = 0

    def create(self, name: str, labels: Mapping[str, str] = _NOTHING, properties: Mapping[str, str] = _NOTHING) -> None:
        """Add a topic that is not there."""
        self.entries[name] = TopicEntry(name, dict(properties), dict(labels), is_loaded=False)
        self._tell("created", name, _NOTHING, labels)

    def delete(self, name: str) -> None:
        """Take a topic away."""
        self._tell("deleted", name, self.entries.pop(name).labels, _NOTHING)

    def label(self, name: str, labels: Mapping[str, str]) -> None:
        """Give a topic these labels in place of its own."""
        old = self.entries[name]
        self.entries[name] = TopicEntry(name, old.properties, dict(labels), old.is_loaded)
        self._tell("labels", name, old.labels, labels)

    def describe(self, name: str, properties: Mapping[str, str]) -> None:
        """Give a topic these properties in place of its own."""
        old = self.entries[name]
        self.entries[name] = TopicEntry(name, dict(properties), old.labels, old.is_loaded)
        self._tell("properties", name, old.properties, properties)

    def load(self, name: str) -> None:
        """Load a topic."""
        old = self.entries[name]
        self.entries[name] = TopicEntry(name, old.properties, old.labels, is_loaded=True)
        self._tell("loaded", name, _NOTHING, _NOTHING)

    def _tell(self, kind: EventKind, name: str, old: Mapping[str, str], new: Mapping[str, str]) -> None:
        self.revision += 1
        event = TopicEvent(self.revision, kind, name, dict(old), dict(new))
        for listener in self.listeners:
            listener(event)

    def namespaces(self) -> Sequence[str]:
        """Return those that have topics."""
        return sorted({namespace_of(name) for name in self.entries})

    def topics(self, namespace: str, mode: Mode = "persistent") -> Sequence[str]:
        """Return all topics of a namespace, system topics too."""
        self.listings += 1
        domains = ("persistent", "non-persistent") if mode == "all" else (mode,)
        begins = tuple(f"{domain}://{namespace}/" for domain in domains)
        return sorted(name for name in self.entries if name.startswith(begins))

    def entry(self, name: str) -> TopicEntry | None:
        """Return one topic."""
        return self.entries.get(name)

    def with_properties(self, namespace: str, mode: Mode, properties: Mapping[str, str]) -> Sequence[str]:
        """Return the topics that have all properties."""
        wanted = properties.items()
        return [name for name in self.topics(namespace, mode) if wanted <= dict(self.entries[name].properties).items()]

    def selected(self, namespace: str, selector: Selector) -> Sequence[str]:
        """Return the topics whose labels a selector takes."""
        names = self.topics(namespace, "all")
        return [name for name in names if all(part.matches(self.entries[name].labels) for part in selector)]

    def labels_in(self, namespace: str) -> Mapping[str, Sequence[str]]:
        """Return the keys in use and their values."""
        found: dict[str, set[str]] = {}
        for name in self.topics(namespace, "all"):
            for key, value in self.entries[name].labels.items():
                found.setdefault(key, set()).add(value)
        return {key: sorted(values) for key, values in found.items()}


@dataclass(frozen=True)
class Undescribed(Lister):
    """Shows the topics without properties."""

    name: ClassVar[str] = "undescribed"
    interests: ClassVar[frozenset[EventKind]] = frozenset({"created", "deleted", "properties"})

    def list_topics(self, namespace: str, mode: Mode, properties: Mapping[str, str], catalog: CatalogView) -> Listing:
        """Ask each topic whether it has any."""
        found = (catalog.entry(name) for name in catalog.topics(namespace, mode))
        return Listing([entry.name for entry in found if entry is not None and not entry.properties])


@dataclass(frozen=True)
class Everything(Lister):
    """Shows every topic, whatever the properties."""

    name: ClassVar[str] = "everything"
    interests: ClassVar[frozenset[EventKind]] = frozenset({"created", "deleted"})

    def list_topics(self, namespace: str, mode: Mode, properties: Mapping[str, str], catalog: CatalogView) -> Listing:
        """Ask the catalog."""
        return Listing(catalog.topics(namespace, mode))
