"""A catalog in threads: every list is one that a model says, nothing raises, nothing waits for another process."""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import closing, contextmanager
from pathlib import Path

import pytest

from lookup.errors import InputError, NotFoundError, StateError
from lookup.model.catalog import Equals, Mode, TopicEvent
from lookup.topics.catalog import Catalog, SqliteStorage
from lookup.topics.catalog.namespace import NamespaceTopics
from tests.topics.catalogs import (
    NAMESPACE,
    STORAGES,
    MakeStorage,
    entries,
    everything,
    filled,
    heard,
    index,
    locked,
    topic,
)

#: For a longer run by hand, which `CONTRIBUTING.md` names, s.
_SECONDS = float(os.environ.get("CATALOG_THREADS_S", "1"))
_PROD = (Equals("env", "prod"),)
_LATE = 30.0


@contextmanager
def _threads(n: int) -> Iterator[ThreadPoolExecutor]:
    with ThreadPoolExecutor(n) as pool:
        yield pool


class _World:
    """A writer that moves topics between two sets in transactions, and what readers may find: all or nothing of each.

    Of each pair of topics `a-N` and `b-N` exactly one is there after every transaction, and of those only `a-N` is
    in production and has an owner.
    """

    N = 40

    def __init__(self, catalog: Catalog) -> None:
        self.catalog = catalog
        self.is_over = threading.Event()
        catalog.create_namespace(NAMESPACE)
        with catalog.together():
            for number in range(self.N):
                self._make("a", number)

    def _make(self, side: str, number: int) -> None:
        described: dict[str, str] = {"env": "prod"} if side == "a" else {}
        self.catalog.create(topic(f"{side}-{number}"), labels=described, properties=described)

    def write(self) -> int:
        """Move topics until the time is over; return how many transactions there were."""
        ends, n_writes, sides = time.monotonic() + _SECONDS, 0, dict.fromkeys(range(self.N), "a")
        while time.monotonic() < ends:
            number = n_writes % self.N
            with self.catalog.together():
                self.catalog.delete(topic(f"{sides[number]}-{number}"))
                sides[number] = "b" if sides[number] == "a" else "a"
                self._make(sides[number], number)
            n_writes += 1
        self.is_over.set()
        return n_writes

    def read(self) -> int:
        """Ask until the writer is done; return how often."""
        n_reads, previous = 0, 0
        while not self.is_over.is_set():
            names = self.catalog.topics(NAMESPACE)
            assert sorted(int(name.rsplit("-", 1)[1]) for name in names) == list(range(self.N))
            self._compare()
            revision = self.catalog.revision
            assert revision >= previous
            assert all(event.revision <= self.catalog.revision for event in self.catalog.events_since(revision))
            self.catalog.refresh()
            previous = revision
            n_reads += 1
        return n_reads

    def _compare(self) -> None:
        """Compare every list with what the names of the same revision say."""
        # Outside of a block every question takes the lock by itself.
        selected = self.catalog.select(NAMESPACE, _PROD)
        assert list(selected) == sorted({name for name in selected if "/a-" in name})
        with self.catalog.reading():
            names = self.catalog.topics(NAMESPACE)
            production = tuple(name for name in names if "/a-" in name)
            expected = {"env": {"prod": set(production)}} if production else {}
            assert self.catalog.select(NAMESPACE, _PROD) == production
            assert self.catalog.with_properties(NAMESPACE, "persistent", {"env": "prod"}) == production
            assert index(self.catalog) == expected
            found = entries(self.catalog)
        assert [entry.name for entry in found] == list(names)
        described = {entry.name for entry in found if entry.labels == entry.properties == {"env": "prod"}}
        assert described == set(production)
        assert all(not entry.labels and not entry.properties for entry in found if entry.name not in described)


@pytest.mark.parametrize("make", STORAGES.values(), ids=STORAGES)
def test_eight_readers_and_a_writer(make: MakeStorage, tmp_path: Path) -> None:
    """Every answer is of one revision between two transactions; listeners hear all events in order."""
    world = _World(Catalog(make(tmp_path, 1_000_000)))
    start, events = world.catalog.revision, heard(world.catalog)
    with _threads(9) as pool:
        readers = [pool.submit(world.read) for _ in range(8)]
        n_writes = pool.submit(world.write).result()
        n_reads = [reader.result() for reader in readers]

    assert n_writes > 1
    assert all(n_reads)
    world.catalog.refresh()
    assert [event.revision for event in events] == list(range(start + 1, start + 2 * n_writes + 1))
    world.catalog.close()


@pytest.mark.parametrize("make", STORAGES.values(), ids=STORAGES)
def test_many_writers_write_one_after_the_other(make: MakeStorage, tmp_path: Path) -> None:
    """No write is lost, no revision is taken twice, and each event is heard once."""
    catalog = filled(make(tmp_path, 1_000))
    start, events = catalog.revision, heard(catalog)
    with _threads(4) as pool:
        list(pool.map(lambda number: catalog.create(topic(f"new-{number}")), range(40)))

    assert {topic(f"new-{number}") for number in range(40)} <= set(catalog.topics(NAMESPACE))
    assert [event.revision for event in events] == list(range(start + 1, start + 41))
    catalog.close()


def test_a_block_reads_one_revision_while_a_writer_commits(tmp_path: Path) -> None:
    """What is in the file already is not yet what the block sees."""
    written, may_commit = threading.Event(), threading.Event()
    path = tmp_path / "topics.db"

    def write() -> None:
        with catalog.together():
            catalog.create(topic("new"))
            written.set()
            assert may_commit.wait(30)

    with closing(Catalog(SqliteStorage(path))) as catalog, closing(SqliteStorage(path)) as other:
        catalog.create_namespace(NAMESPACE)
        with _threads(1) as pool:
            writing = pool.submit(write)
            assert written.wait(30)
            with catalog.reading():
                before, revision = list(catalog.topics(NAMESPACE)), catalog.revision
                may_commit.set()
                while True:
                    with other.reading():
                        if other.revision > revision:
                            break
                assert (list(catalog.topics(NAMESPACE)), catalog.revision) == (before, revision)
            writing.result(30)
        assert list(catalog.topics(NAMESPACE)) == [topic("new")]


def test_a_catalog_outlives_the_thread_that_made_it(tmp_path: Path) -> None:
    """A file is opened in one thread, written in another, closed in a third."""
    made: list[Catalog] = []
    steps: list[Callable[[], object]] = [
        lambda: made.append(filled(SqliteStorage(tmp_path / "topics.db"))),
        lambda: made[0].set_pairs("properties", topic("q"), {"seen": "1"}),
        lambda: made[0].refresh(),  # noqa: PLW0108  it is made by the first step
        lambda: made[0].close(),  # noqa: PLW0108  as above
    ]
    for step in steps:
        with _threads(1) as pool:
            pool.submit(step).result()


def test_readers_do_not_wait_with_a_writer(tmp_path: Path) -> None:
    """While a write waits for another process, every question and a refresh are answered; then the write is done."""
    path = tmp_path / "topics.db"
    catalog = filled(SqliteStorage(path, lock_timeout_s=_LATE))
    with _threads(2) as pool:
        with locked(path):
            writing = pool.submit(catalog.delete, topic("q"))
            reading: Future[object] = pool.submit(_ask_everything, catalog)
            reading.result(_LATE / 2)
            assert not writing.done()
        writing.result(_LATE)

    assert catalog.entry(topic("q")) is None
    catalog.close()


def _ask_everything(catalog: Catalog) -> None:
    # Long enough for the writer to be waiting in all of them but the first.
    for _ in range(20):
        assert topic("q") in catalog.topics(NAMESPACE)
        assert catalog.select(NAMESPACE, _PROD)
        assert catalog.events_since(catalog.revision - 1)
        everything(catalog)
        catalog.refresh()
        time.sleep(0.01)


@pytest.mark.parametrize("hasty_s", [0.0, 0.2])
def test_each_catalog_waits_as_long_as_it_is_set_to(hasty_s: float, tmp_path: Path) -> None:
    """While one still waits for a lock, another has given up twice, as it was, and can be written to afterwards."""
    path = tmp_path / "topics.db"
    patient = filled(SqliteStorage(path, lock_timeout_s=_LATE))
    hasty = Catalog(SqliteStorage(path, lock_timeout_s=hasty_s))
    before = everything(hasty)
    with _threads(1) as pool:
        with locked(path):
            waiting = pool.submit(patient.delete, topic("q"))
            # Twice: if both waited equally long, the patient one would have given up by now.
            for _ in range(2):
                with pytest.raises(InputError, match="database is locked"):
                    hasty.delete(topic("p"))
            assert not waiting.done()
        waiting.result(_LATE)

    assert everything(hasty) == before
    hasty.delete(topic("p"))
    patient.refresh()
    assert everything(patient) == everything(hasty)
    assert topic("q") not in hasty.topics(NAMESPACE)
    patient.close()
    hasty.close()


def test_questions_of_a_block_are_of_one_revision() -> None:
    """A write of another thread waits for its end."""
    catalog, begun = filled(), threading.Event()

    def delete() -> None:
        begun.set()
        catalog.delete(topic("q"))

    with _threads(1) as pool:
        with catalog.reading():
            writing = pool.submit(delete)
            begun.wait(_LATE)
            for _ in range(20):
                assert topic("q") in catalog.topics(NAMESPACE)
                time.sleep(0.01)
            assert not writing.done()
        writing.result(_LATE)

    assert topic("q") not in catalog.topics(NAMESPACE)


@pytest.mark.parametrize(
    "change", [lambda catalog: catalog.delete(topic("q")), Catalog.refresh], ids=["write", "refresh"]
)
def test_a_block_that_reads_cannot_change_the_catalog(change: Callable[[Catalog], None]) -> None:
    """The thread would wait for a writer that waits for it; afterwards it can, and inside a transaction as well."""
    catalog = filled()
    with catalog.reading(), pytest.raises(StateError, match="neither write nor take in"):
        change(catalog)
    with catalog.together(), catalog.reading():
        change(catalog)
    catalog.create(topic("z"))


def test_no_question_comes_between_while_a_write_sorts_names(monkeypatch: pytest.MonkeyPatch) -> None:
    """To name the topic that was meant: names that two threads sort at the same time are lost."""
    catalog, names = filled(), NamespaceTopics.names

    with _threads(1) as pool:

        def sorted_beside(topics: NamespaceTopics, mode: Mode) -> tuple[str, ...]:
            if threading.current_thread() is threading.main_thread():
                with pytest.raises(TimeoutError):
                    pool.submit(catalog.topics, NAMESPACE, "all").result(0.3)
            return names(topics, mode)

        monkeypatch.setattr(NamespaceTopics, "names", sorted_beside)
        with pytest.raises(NotFoundError):
            catalog.set_pairs("labels", topic("nosuch"), {"env": "prod"})


def test_listeners_are_called_without_a_lock(tmp_path: Path) -> None:
    """One may wait for another thread that reads and writes; what that thread wrote is announced afterwards."""
    catalog, events = filled(STORAGES["file"](tmp_path, 1_000)), list[TopicEvent]()

    def listen(event: TopicEvent) -> None:
        events.append(event)
        if event.kind == "deleted":
            with _threads(1) as pool:
                pool.submit(catalog.create, topic("z")).result(_LATE)

    catalog.subscribe(listen)
    catalog.delete(topic("q"))

    assert [event.kind for event in events] == ["deleted", "created"]
    catalog.close()
