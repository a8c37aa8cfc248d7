"""Writes touch their namespace only; listeners hear every event once and in order, whatever they do."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import NoReturn

import pytest

from lookup.model.catalog import TopicEvent
from lookup.topics.catalog import Catalog, SqliteStorage
from lookup.topics.catalog.namespace import NamespaceTopics
from tests.topics.catalogs import STORAGES, MakeStorage, filled, heard, topic


def test_what_a_listener_writes_comes_after_what_is_being_told() -> None:
    """Every listener hears the same order, also the one that comes after the writer."""
    catalog = filled()
    catalog.subscribe(lambda event: catalog.set_labels(event.topic, {"seen": "1"}) if event.kind == "created" else None)
    events = heard(catalog)
    catalog.create(topic("z"), partitions=2)

    assert [event.kind for event in events] == ["created", "created", "labels", "labels"]
    assert [event.revision for event in events] == sorted(event.revision for event in events)


def test_a_listener_hears_nothing_from_before_it_came() -> None:
    """One that is added while an event is announced hears the next one first."""
    catalog, late = filled(), list[TopicEvent]()
    leave: list[Callable[[], None]] = []

    def add(_: TopicEvent) -> None:
        if not leave:
            leave.append(catalog.subscribe(late.append))

    catalog.subscribe(add)
    catalog.set_properties(topic("q"), {"seen": "1"})
    catalog.set_properties(topic("q"), {"seen": "2"})

    assert [event.new["seen"] for event in late] == ["2"]


_CHANGES: dict[str, Callable[[Catalog], None]] = {
    "create": lambda catalog: catalog.create(topic("z"), partitions=2),
    "set_labels": lambda catalog: catalog.set_labels(topic("q"), {"env": "prod"}),
    "set_properties": lambda catalog: catalog.set_properties(topic("q"), {"owner": "y"}),
    "delete": lambda catalog: catalog.delete(topic("q")),
    "create_namespace": lambda catalog: catalog.create_namespace("t/new"),
    "delete_namespace": lambda catalog: catalog.delete_namespace("t/other"),
    "refresh": Catalog.refresh,
}


class _ByName(dict[str, NamespaceTopics]):
    """Namespaces that are looked up by their names, and never one after the other."""

    def __iter__(self) -> NoReturn:
        raise AssertionError("all namespaces were walked over")

    keys = values = items = __iter__  # type: ignore[assignment]  # each of them would walk


def _touching_one_namespace(catalog: Catalog, monkeypatch: pytest.MonkeyPatch) -> Catalog:
    """Return a catalog that is open and fails as soon as all namespaces or topics are asked for."""

    def refuse() -> Iterator[str]:
        raise AssertionError("the storage was read anew")

    for question in ("namespaces", "entries"):
        monkeypatch.setattr(catalog._storage, question, refuse)
    catalog._state.namespaces = _ByName(catalog._state.namespaces)
    return catalog


@pytest.mark.parametrize("make", STORAGES.values(), ids=STORAGES)
@pytest.mark.parametrize("change", _CHANGES.values(), ids=_CHANGES)
def test_a_write_touches_its_namespace_only(
    change: Callable[[Catalog], None], make: MakeStorage, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Neither other namespaces nor other topics are read, from the storage or in memory."""
    catalog = filled(make(tmp_path, 1_000))
    catalog.create_namespace("t/other")
    change(_touching_one_namespace(catalog, monkeypatch))
    catalog.close()


@pytest.mark.parametrize("change", _CHANGES.values(), ids=_CHANGES)
def test_a_refresh_touches_what_another_process_wrote(
    change: Callable[[Catalog], None], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The catalog that takes the write in, by itself or before a write of its own, reads nothing else."""
    path = tmp_path / "topics.db"
    writer = filled(SqliteStorage(path))
    writer.create_namespace("t/other")
    reader = Catalog(SqliteStorage(path))
    untouched = _touching_one_namespace(reader, monkeypatch)
    change(writer)
    untouched.refresh()
    assert untouched.revision == writer.revision
    writer.create(topic("later"))
    untouched.create(topic("last"))

    writer.refresh()
    assert untouched.topics("t/ns", "all") == writer.topics("t/ns", "all")
    writer.close()
    reader.close()
