"""Real catalogs for the tests of watches, in memory and in a file that outlives its processes; answers by the rule."""

from __future__ import annotations

import re
import shutil
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import ClassVar, Protocol

from lookup.hooks import Lister
from lookup.model.catalog import CatalogView, EventKind, Listing, Mode, TopicEntry
from lookup.topics.catalog import Catalog, SqliteStorage
from lookup.topics.watching import WatchQuery

__all__ = [
    "Everything",
    "InFile",
    "InMemory",
    "Place",
    "Undescribed",
    "by_rule",
    "describe",
    "relabel",
    "shelf",
    "topic",
]

_NAMESPACES = ("t/m", "t/n")


def topic(local: str, namespace: str = "t/n", domain: str = "persistent") -> str:
    """Return a complete name."""
    return f"{domain}://{namespace}/{local}"


def shelf(*names: str) -> Catalog:
    """Return a catalog in memory with two namespaces, and topics of the second."""
    catalog = Catalog()
    _add_namespaces(catalog)
    for name in names:
        catalog.create(topic(name))
    return catalog


def _add_namespaces(catalog: Catalog) -> None:
    for namespace in _NAMESPACES:
        catalog.create_namespace(namespace)


def relabel(catalog: Catalog, name: str, labels: Mapping[str, str]) -> None:
    """Give a topic these labels in place of its own, in one transaction with an event for each step."""
    with catalog.together():
        catalog.remove_labels(name, everything=True)
        catalog.set_labels(name, labels)


def describe(catalog: Catalog, name: str, properties: Mapping[str, str]) -> None:
    """Give a topic these properties in place of its own, in the same way."""
    with catalog.together():
        catalog.remove_properties(name, everything=True)
        catalog.set_properties(name, properties)


class Place(Protocol):
    """The place of a catalog, and the process that writes to it."""

    #: the server's
    catalog: Catalog

    def writer(self, choice: int) -> Catalog:
        """Return a catalog to write to, which has seen everything."""

    def crash(self) -> None:
        """End the server's process."""

    def close(self) -> None:
        """Let go of everything."""


class InMemory:
    """A catalog of one process, which outlives the server that watches it."""

    def __init__(self) -> None:
        self.catalog = shelf()

    def writer(self, choice: int) -> Catalog:
        """Return the only one there is."""
        return self.catalog

    def crash(self) -> None:
        """Keep it: what watched it is gone."""

    def close(self) -> None:
        """Do nothing."""


class InFile:
    """A catalog in a file that two processes have open, the server's and one that only writes; it outlives both."""

    def __init__(self) -> None:
        self._folder = TemporaryDirectory(prefix="shelf-")
        self._crashes = 0
        self._open()
        _add_namespaces(self.catalog)

    def _open(self) -> None:
        path = Path(self._folder.name) / f"{self._crashes}.db"
        self._path, self._storages = path, (SqliteStorage(path), SqliteStorage(path))
        self.catalog, self._other = map(Catalog, self._storages)

    def writer(self, choice: int) -> Catalog:
        """Return one of the two."""
        chosen = (self._other, self.catalog)[choice % 2]
        chosen.refresh()
        return chosen

    def crash(self) -> None:
        """Kill both processes while one of them writes, and open the file: what was acknowledged is there, no more."""
        self._other.refresh()
        acknowledged = self._other.snapshot()
        with suppress(_KilledError), self._other.together():
            self._other.create(topic("unfinished"), labels={"env": "prod"})
            self._crashes += 1
            self._keep_as_it_lies()
            raise _KilledError
        self._let_go()
        self._open()
        assert self.catalog.snapshot() == acknowledged

    def _keep_as_it_lies(self) -> None:
        """Copy the file and its log as a killed process leaves them: not closed, not tidied."""
        for ending in ("", "-wal"):
            lying = Path(f"{self._path}{ending}")
            if lying.exists():
                shutil.copy(lying, f"{self._folder.name}/{self._crashes}.db{ending}")

    def _let_go(self) -> None:
        for storage in self._storages:
            storage.close()

    def close(self) -> None:
        """Close the file and remove it."""
        self._let_go()
        self._folder.cleanup()


class _KilledError(Exception):
    pass


def by_rule(catalog: Catalog, query: WatchQuery, *, undescribed: bool = False) -> set[str]:
    """Return what a query means, topic by topic, by nothing but the rule.

    Args:
        undescribed: whether `Undescribed` lists.
    """
    entries = catalog.snapshot().entries
    return {entry.name for entry in entries if _fits(entry, query) and not (undescribed and entry.properties)}


def _fits(entry: TopicEntry, query: WatchQuery) -> bool:
    domain, _, path = entry.name.partition("://")
    path = re.sub(r"-partition-\d+\Z", "", path)
    if not path.startswith(f"{query.namespace}/") or query.mode not in (domain, "all") or "/__" in path:
        return False
    if query.selector:
        return all(term.matches(entry.labels) for term in query.selector)
    pattern = query.pattern or ""
    return re.fullmatch(pattern.partition("://")[2] or pattern, path) is not None


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
