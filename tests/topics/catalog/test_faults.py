"""A write that fails at any step leaves a catalog as it was, or as it is afterwards, and the next write works."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from linecache import getline
from pathlib import Path
from types import FrameType
from typing import Any

import pytest

import lookup.topics.catalog
from lookup.model.catalog import Equals, Exists
from lookup.topics.catalog import Catalog, SqliteStorage, sqlite
from tests.topics.catalogs import NAMESPACE, everything, filled, heard, index, rebuilt, topic

_ROOM = str(Path(lookup.topics.catalog.__file__).parent)

#: A transaction with a write of each kind, on topics that are there, that come, and that go.
_WRITES: dict[str, Callable[[Catalog], None]] = {
    "create": lambda catalog: catalog.create(topic("z"), partitions=2, labels={"env": "prod", "new": "1"}),
    "delete": lambda catalog: catalog.delete(topic("q")),
    "labels": lambda catalog: catalog.set_pairs("labels", topic("p"), {"env": "test", "team": "a"}),
    "properties": lambda catalog: catalog.remove_pairs("properties", topic("q"), everything=True),
    "namespace": lambda catalog: catalog.delete_namespace(NAMESPACE),
}


class _Fault:
    """Raises at the n-th line of the room that a thread comes to; counts them."""

    def __init__(self, at: int | None, error: type[BaseException]) -> None:
        self.n_lines = 0
        self._at, self._error = at, error

    def trace(self, frame: FrameType, what: str, _: Any) -> Any:
        """Trace the functions of the room, line by line."""
        if not frame.f_code.co_filename.startswith(_ROOM):
            return None
        # At the end of a `with` block Python names its first line again, before it leaves the block, and at `try` no
        # handler covers the line: no memory is needed there, and an error from here would keep a lock or a flag.
        line = getline(frame.f_code.co_filename, frame.f_lineno).lstrip()
        if what == "line" and not line.startswith(("with ", "try:")):
            self.n_lines += 1
            if self.n_lines == self._at:
                raise self._error
        return self.trace


@contextmanager
def _failing(at: int | None, error: type[BaseException] = MemoryError) -> Iterator[_Fault]:
    fault, before = _Fault(at, error), sys.gettrace()
    sys.settrace(fault.trace)
    try:
        yield fault
    finally:
        sys.settrace(before)


def _everything(catalog: Catalog) -> tuple[object, object]:
    questions = [
        (
            catalog.topics(name, "all"),
            *(catalog.select(name, (term,)) for term in (Equals("env", "prod"), Exists("tier"))),
        )
        for name in catalog.namespaces()
    ]
    return everything(catalog), questions


@pytest.mark.parametrize("write", _WRITES.values(), ids=_WRITES)
def test_a_fault_at_any_step_is_as_if_it_had_come_before_or_after(write: Callable[[Catalog], None]) -> None:
    """Line by line of the room: topics, index, revision, storage and events agree, and the next write works."""
    whole = filled()
    before = _everything(whole)
    heard(whole)
    with _failing(None) as counted:
        write(whole)
    after = _everything(whole)
    whole.close()
    for at in range(1, counted.n_lines + 1):
        _check_fault(write, filled(), at, (before, after))


def _check_fault(write: Callable[[Catalog], None], catalog: Catalog, at: int, states: tuple[object, object]) -> None:
    # Asked before, so that index, sorted names and answers are there to be kept right.
    _everything(catalog)
    start, events = catalog.revision, heard(catalog)
    with suppress(MemoryError), _failing(at):
        write(catalog)

    state = _everything(catalog)
    assert state in states, f"line {at}"
    if NAMESPACE in catalog.namespaces():
        assert index(catalog) == rebuilt(catalog)
    if state == states[0]:
        assert events == []
        write(catalog)
    assert _everything(catalog) == states[1], f"line {at}"
    assert [event.revision for event in catalog.events_since(0)] == list(range(1, catalog.revision + 1))
    catalog.create_namespace("t/more")
    # Listeners hear each once and in order; those that were interrupted while they were called notice a gap.
    revisions = [event.revision for event in events]
    assert revisions == sorted(set(revisions))
    assert revisions[-1] == catalog.revision
    assert revisions[0] > start
    catalog.close()


@pytest.mark.parametrize("n_events", [1, 1_000], ids=["snapshot", "events"])
def test_writes_of_others_are_taken_in_as_a_whole(
    n_events: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A fault in the middle leaves none of them or all, and the next look takes in all."""
    monkeypatch.setattr(sqlite, "_SYNCHRONOUS", "OFF")
    n_lines = _check_taken_in(tmp_path / "counted", n_events, None)
    for at in range(1, n_lines + 1):
        _check_taken_in(tmp_path / str(at), n_events, at)


def _check_taken_in(folder: Path, n_events: int, at: int | None) -> int:
    """Let the n-th line fail, None: no line; return how many there were."""
    folder.mkdir()
    one, two = (Catalog(SqliteStorage(folder / "topics.db", n_events=n_events)) for _ in range(2))
    _fill(one)
    two.refresh()
    before = everything(two)
    one.create(topic("b"), partitions=2, labels={"env": "test"})
    one.delete(topic("a"))
    with suppress(MemoryError), _failing(at) as counted:
        two.refresh()
    assert everything(two) in (before, everything(one))
    two.refresh()
    assert everything(two) == everything(one)
    assert index(two) == rebuilt(two)
    one.close()
    two.close()
    return counted.n_lines


def _fill(catalog: Catalog) -> None:
    catalog.create_namespace(NAMESPACE)
    catalog.create(topic("a"), labels={"env": "prod"})
