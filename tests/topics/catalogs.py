"""Catalogs over each storage, and what the tests of this room put into them."""

from __future__ import annotations

import sqlite3
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from pathlib import Path

from lookup.model.catalog import TopicEvent
from lookup.topics.catalog import Catalog, MemoryStorage, SqliteStorage, Storage

__all__ = [
    "NAMESPACE", "STORAGES", "MakeStorage", "filled", "heard", "in_memory", "in_sqlite", "lock_timeout_s", "locked",
    "rebuilt", "topic",
]  # fmt: skip

NAMESPACE = "t/ns"

#: Makes a storage from a folder and the number of events it keeps.
MakeStorage = Callable[[Path, int], Storage]


def topic(local: str, domain: str = "persistent") -> str:
    """Return the complete name of a topic of the namespace."""
    return f"{domain}://{NAMESPACE}/{local}"


def in_memory(_: Path, n_events: int = 1_000) -> Storage:
    """Return a storage in memory."""
    return MemoryStorage(n_events)


def in_sqlite(folder: Path, n_events: int = 1_000) -> Storage:
    """Return a storage in a file of a folder."""
    return SqliteStorage(folder / "topics.db", n_events=n_events)


#: Every storage there is; the conformance tests run over each.
STORAGES: dict[str, MakeStorage] = {"memory": in_memory, "sqlite": in_sqlite}


@contextmanager
def locked(path: Path) -> Iterator[None]:
    """Write to a catalog's file as another process does, and do not end while the block lasts."""
    with closing(sqlite3.connect(path, isolation_level=None)) as other:
        other.execute("BEGIN IMMEDIATE")
        yield


def lock_timeout_s(catalog: Catalog) -> float:
    """Return how long the writes of a catalog in a file wait for other processes, as SQLite has it."""
    assert isinstance(catalog._storage, SqliteStorage)
    milliseconds: int = catalog._storage._write("PRAGMA busy_timeout").fetchone()[0]
    return milliseconds / 1000


def filled(storage: Storage | None = None) -> Catalog:
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


def rebuilt(catalog: Catalog) -> dict[str, dict[str, set[str]]]:
    """Return the index of labels as it follows from the entries, one by one."""
    index: dict[str, dict[str, set[str]]] = {}
    for entry in catalog.entries(NAMESPACE):
        for key, value in entry.labels.items():
            index.setdefault(key, {}).setdefault(value, set()).add(entry.name)
    return index
