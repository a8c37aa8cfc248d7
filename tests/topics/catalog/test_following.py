"""A catalog that follows another ends equal to it, whatever is lost or repeated on the way."""

from __future__ import annotations

from contextlib import suppress

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lookup.errors import PulsarLookupError, StateError
from lookup.model.catalog import TopicEvent
from lookup.topics.catalog import Catalog, Follower, MemoryStorage
from tests.topics.catalogs import NAMESPACE, filled, heard, rebuilt, topic

_STEPS = st.lists(
    st.tuples(
        st.sampled_from(["create", "delete", "set", "remove", "load", "unload", "properties"]),
        st.sampled_from(["p", "q", "r", "p-partition-0", "r-partition-1"]),
        st.sampled_from("xyz"),
        st.sampled_from(["deliver", "lose", "repeat", "raise"]),
    ),
    max_size=40,
)


def _do(catalog: Catalog, what: str, name: str, value: str) -> None:
    """Do one step; what the catalog refuses changes nothing."""
    full = topic(name)
    steps = {
        "create": lambda: catalog.create(full, partitions=2 if value == "x" else None, labels={"env": value}),
        "delete": lambda: catalog.delete(full),
        "set": lambda: catalog.set_labels(full, {"env": value, value: "1"}),
        "remove": lambda: catalog.remove_labels(full, [value]),
        "load": lambda: catalog.load(full),
        "unload": lambda: catalog.unload(full),
        "properties": lambda: catalog.set_properties(full, {"owner": value}),
    }
    with suppress(PulsarLookupError):
        steps[what]()


class _Trouble:
    """A listener that raises while it is due to."""

    is_due = True

    def hear(self, _: TopicEvent) -> None:
        """Hear an event, and raise."""
        if self.is_due:
            raise ZeroDivisionError


def _carry(event: TopicEvent, follower: Follower, source: Catalog) -> None:
    """Carry one event over, and everything if it does not follow; errors of listeners are left aside."""
    with suppress(ZeroDivisionError):
        if not follower.hear(event):
            follower.catch_up(source)


def _assert_equal(source: Catalog, target: Catalog) -> None:
    assert target.snapshot().entries == source.snapshot().entries
    assert target.index(NAMESPACE) == source.index(NAMESPACE) == rebuilt(target)


@given(_STEPS, st.sampled_from([1, 3, 1_000]))
def test_a_follower_ends_with_an_equal_index(steps: list[tuple[str, str, str, str]], n_events: int) -> None:
    """Events may be lost or come twice, listeners raise, the source keep only a few: a catch-up makes both equal."""
    source, target, trouble = filled(MemoryStorage(n_events)), Catalog(), _Trouble()
    follower, events = Follower(target), heard(source)
    follower.catch_up(source)
    target.subscribe(trouble.hear)
    for what, name, value, way in steps:
        _do(source, what, name, value)
        trouble.is_due = way == "raise"
        for event in events * (2 if way == "repeat" else 1):
            if way != "lose":
                _carry(event, follower, source)
        events.clear()
    trouble.is_due = False
    follower.catch_up(source)

    _assert_equal(source, target)
    assert follower.position == source.revision


def test_a_follower_without_a_start_takes_a_snapshot() -> None:
    """Before the first snapshot no event is taken in: it says that something is missing."""
    source, target = filled(), Catalog()
    follower = Follower(target)
    heard_it = follower.hear(source.events_since(0)[0])
    follower.catch_up(source)

    assert not heard_it
    _assert_equal(source, target)


def test_a_gap_is_noticed() -> None:
    """An event after a missing one is refused and changes nothing."""
    source, target = filled(), Catalog()
    follower, events = Follower(target), heard(source)
    follower.catch_up(source)
    source.load(topic("q"))
    source.delete(topic("q"))

    assert not follower.hear(events[1])
    assert target.entry(topic("q")) is not None
    assert follower.hear(events[0])
    assert follower.hear(events[1])
    _assert_equal(source, target)


def test_a_catch_up_tells_only_what_is_different() -> None:
    """Listeners of the target hear the differences to the snapshot, not every topic anew."""
    source, target = filled(MemoryStorage(1)), Catalog()
    follower = Follower(target)
    follower.catch_up(source)
    events = heard(target)
    target.load(topic("q"))
    source.set_labels(topic("q"), {"env": "new"})
    source.delete(topic("n", "non-persistent"))
    follower.catch_up(source)

    assert [(event.kind, event.topic) for event in events] == [
        ("loaded", topic("q")),
        ("deleted", topic("n", "non-persistent")),
        ("labels", topic("q")),
    ]
    assert list(target.loaded(NAMESPACE)) == [topic("q")]


def test_a_follower_can_be_followed() -> None:
    """The target numbers its own events without gaps, so a third catalog may follow it."""
    first, second, third = filled(), Catalog(), Catalog()
    between, last = Follower(second), Follower(third)
    between.catch_up(first)
    last.catch_up(second)
    second.subscribe(lambda event: _must(last.hear(event)))
    first.subscribe(lambda event: _must(between.hear(event)))
    first.set_labels(topic("p"), {"env": "new"})
    first.delete(topic("q"))

    _assert_equal(first, third)


def test_a_catch_up_that_fails_starts_again_where_it_was() -> None:
    """The position counts what the target has, not what was tried."""
    source, target = filled(), Catalog()
    follower = Follower(target)
    follower.catch_up(source)
    source.load(topic("p"))
    source.load(topic("q"))
    before = follower.position
    target.mirror(topic("q"), None)

    with pytest.raises(StateError, match="which does not exist"):
        follower.catch_up(source)
    assert follower.position == before


def _must(condition: bool) -> None:
    assert condition


def test_events_of_the_source_say_all() -> None:
    """A follower that hears every event from the first needs no snapshot."""
    source, target = Catalog(), Catalog()
    follower, events = Follower(target, position=0), list[TopicEvent]()
    source.subscribe(events.append)
    source.create_namespace(NAMESPACE)
    source.create(topic("p"), partitions=2, labels={"env": "x"}, properties={"owner": "y"})
    source.load(topic("p-partition-1"))

    assert all(map(follower.hear, events))
    _assert_equal(source, target)


def test_a_listener_that_raises_does_not_hold_the_position_back() -> None:
    """The change is made, so its event is done with; the next one follows without a catch-up."""
    source, target, trouble = filled(), Catalog(), _Trouble()
    follower, events = Follower(target), heard(source)
    follower.catch_up(source)
    target.subscribe(trouble.hear)
    source.create(topic("a"))
    with pytest.raises(ZeroDivisionError):
        follower.hear(events[0])
    assert follower.position == source.revision
    trouble.is_due = False
    source.delete(topic("a"))

    assert all(map(follower.hear, events))
    _assert_equal(source, target)


@pytest.mark.parametrize("n_events", [1, 1_000], ids=["snapshot", "events"])
def test_a_listener_that_raises_does_not_undo_a_catch_up(n_events: int) -> None:
    """Everything was taken in and announced once; a second catch-up has nothing to do."""
    source, target, trouble = filled(MemoryStorage(n_events)), Catalog(), _Trouble()
    follower = Follower(target)
    follower.catch_up(source)
    target.subscribe(trouble.hear)
    events = heard(target)
    source.set_labels(topic("p"), {"env": "new"})
    with pytest.raises(ZeroDivisionError):
        follower.catch_up(source)
    assert (follower.position, len(events)) == (source.revision, 2)
    follower.catch_up(source)

    assert len(events) == 2
    _assert_equal(source, target)


@pytest.mark.parametrize("n_events", [1, 1_000], ids=["snapshot", "events"])
def test_what_the_target_could_not_keep_is_not_counted(n_events: int) -> None:
    """A full disk leaves target and position as they were, and the next try makes up for it."""
    disk = _Disk()
    source, target = filled(MemoryStorage(n_events)), Catalog(disk)
    follower, events = Follower(target), heard(source)
    follower.catch_up(source)
    before = follower.position
    source.set_labels(topic("p"), {"env": "new"})
    disk.is_full = True
    for fails in (lambda: follower.hear(events[0]), lambda: follower.catch_up(source)):
        with pytest.raises(OSError, match="full"):
            fails()
    assert follower.position == before
    disk.is_full = False
    follower.catch_up(source)

    _assert_equal(source, target)


class _Disk(MemoryStorage):
    """A storage that fails when a transaction ends, as a full disk does."""

    is_full = False

    def commit(self) -> None:
        """Keep what is saved, unless there is no room."""
        if self.is_full:
            raise OSError("the disk is full")
        super().commit()


def test_what_a_listener_of_the_target_carries_over_follows() -> None:
    """The position has moved when listeners hear of a change, so one that hands the next event in is not too early."""
    source, target = filled(), Catalog()
    follower, events = Follower(target), heard(source)
    follower.catch_up(source)
    target.subscribe(lambda event: _must(event.kind != "created" or follower.hear(events[1])))
    source.create(topic("a"))
    source.load(topic("a"))
    follower.hear(events[0])

    _assert_equal(source, target)


def test_namespaces_come_and_go_by_their_events() -> None:
    """With everything in them, which the source announces topic by topic."""
    source, target = filled(), Catalog()
    follower = Follower(target)
    follower.catch_up(source)
    source.subscribe(lambda event: _must(follower.hear(event)))
    source.create_namespace("t/new")
    source.create("persistent://t/new/a")

    assert list(target.topics("t/new")) == ["persistent://t/new/a"]
    source.delete_namespace("t/new", force=True)
    source.create_namespace("t/empty")
    assert target.namespaces() == source.namespaces() == ["t/empty", NAMESPACE]
    assert follower.position == source.revision


@pytest.mark.parametrize("n_events", [1, 1_000], ids=["snapshot", "events"])
def test_namespaces_come_and_go_with_a_catch_up(n_events: int) -> None:
    """By the events that are kept, or by a snapshot."""
    source, target = filled(MemoryStorage(n_events)), Catalog()
    follower = Follower(target)
    follower.catch_up(source)
    source.create_namespace("t/empty")
    source.delete_namespace(NAMESPACE, force=True)
    source.create_namespace("t/other")
    follower.catch_up(source)

    assert list(target.snapshot().entries) == []
    assert target.namespaces() == source.namespaces() == ["t/empty", "t/other"]
