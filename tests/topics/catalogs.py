"""Catalogs over each storage, and what the tests of this room put into them."""

from __future__ import annotations

import sqlite3
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from pathlib import Path

from lookup.model.catalog import Equals, Exists, TopicEntry, TopicEvent
from lookup.topics.catalog import Catalog, SqliteStorage
from lookup.topics.catalog.naming import without_partition

__all__ = [
    "NAMESPACE", "STORAGES", "MakeStorage", "entries", "everything", "filled", "heard", "in_file", "index",
    "locked", "parts", "rebuilt", "temporary", "topic",
]  # fmt: skip

NAMESPACE = "t/ns"
#: Keys that labels have, or have had, in these tests.
_KEYS = ("a", "b", "c", "env", "more", "new", "number", "team", "tier")

#: Makes a storage from a folder and the number of events it keeps.
MakeStorage = Callable[[Path, int], SqliteStorage]


def topic(local: str, domain: str = "persistent") -> str:
    """Return the complete name of a topic of the namespace."""
    return f"{domain}://{NAMESPACE}/{local}"


def temporary(_: Path, n_events: int = 1_000) -> SqliteStorage:
    """Return a storage in a temporary file."""
    return SqliteStorage(n_events=n_events)


def in_file(folder: Path, n_events: int = 1_000) -> SqliteStorage:
    """Return a storage in a file of a folder."""
    return SqliteStorage(folder / "topics.db", n_events=n_events)


#: Every storage there is; the conformance tests run over each.
STORAGES: dict[str, MakeStorage] = {"temporary": temporary, "file": in_file}


@contextmanager
def locked(path: Path) -> Iterator[None]:
    """Write to a catalog's file as another process does, and do not end while the block lasts."""
    with closing(sqlite3.connect(path, isolation_level=None)) as other:
        other.execute("BEGIN IMMEDIATE")
        yield


def filled(storage: SqliteStorage | None = None) -> Catalog:
    """Return a catalog with a partitioned topic, a plain one, a non-persistent one and a system topic."""
    catalog = Catalog(storage)
    catalog.create_namespace(NAMESPACE)
    catalog.create(topic("p"), partitions=2, labels={"env": "prod", "tier": "a"}, properties={"owner": "x"})
    catalog.create(topic("q"), labels={"env": "test"}, properties={"owner": "x", "size": "big"})
    catalog.create(topic("n", "non-persistent"), labels={"env": "prod"})
    catalog.create(topic("__change_events"))
    return catalog


def heard(catalog: Catalog) -> list[TopicEvent]:
    """Subscribe a list to a catalog; it grows with every event."""
    events: list[TopicEvent] = []
    catalog.subscribe(events.append)
    return events


def entries(catalog: Catalog, namespace: str = NAMESPACE) -> list[TopicEntry]:
    """Return every topic of a namespace, in the order of names."""
    found = (catalog.entry(name) for name in catalog.topics(namespace, "all"))
    return sorted((entry for entry in found if entry is not None), key=lambda entry: entry.name)


def everything(catalog: Catalog) -> tuple[int, list[str], list[TopicEntry]]:
    """Return revision, namespaces and topics at one revision."""
    with catalog.reading():
        namespaces = [*catalog.namespaces()]
        return catalog.revision, namespaces, [entry for name in namespaces for entry in entries(catalog, name)]


def parts(catalog: Catalog, name: str) -> list[str]:
    """Return the names of the entries that a name stands for: itself, or its partitions."""
    return [entry.name for entry in entries(catalog) if name in (entry.name, without_partition(entry.name))]


def index(catalog: Catalog) -> dict[str, dict[str, set[str]]]:
    """Return the index of labels as questions show it; topics of a value that no entry has stand under an empty one."""
    index: dict[str, dict[str, set[str]]] = {}
    entered = rebuilt(catalog)
    for key in {*_KEYS, *entered}:
        values = {value: set(catalog.select(NAMESPACE, (Equals(key, value),))) for value in entered.get(key, {})}
        left = set(catalog.select(NAMESPACE, (Exists(key),))).difference(*values.values())
        index |= {key: values | ({"": left} if left else {})} if values or left else {}
    return index


def rebuilt(catalog: Catalog) -> dict[str, dict[str, set[str]]]:
    """Return the index of labels as it follows from the entries, one by one."""
    index: dict[str, dict[str, set[str]]] = {}
    for entry in entries(catalog):
        for key, value in entry.labels.items():
            index.setdefault(key, {}).setdefault(value, set()).add(entry.name)
    return index
