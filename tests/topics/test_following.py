"""A catalog that follows another ends equal to it, whatever is lost or repeated on the way."""

from __future__ import annotations

from contextlib import suppress

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lookup.errors import PulsarLookupError, StateError
from lookup.model.catalog import TopicEvent
from lookup.topics.catalog import Catalog
from lookup.topics.following import Follower
from lookup.topics.storage import MemoryStorage
from tests.topics.catalogs import NAMESPACE, filled, heard, rebuilt, topic

_STEPS = st.lists(
    st.tuples(
        st.sampled_from(["create", "delete", "set", "remove", "load", "unload", "properties"]),
        st.sampled_from(["p", "q", "r", "p-partition-0", "r-partition-1"]),
        st.sampled_from("xyz"),
        st.sampled_from(["deliver", "lose", "repeat"]),
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


def _assert_equal(source: Catalog, target: Catalog) -> None:
    assert target.snapshot().entries == source.snapshot().entries
    assert target.index(NAMESPACE) == source.index(NAMESPACE) == rebuilt(target)


@given(_STEPS, st.sampled_from([1, 3, 1_000]))
def test_a_follower_ends_with_an_equal_index(steps: list[tuple[str, str, str, str]], n_events: int) -> None:
    """Events may be lost or come twice, the source may keep only a few: after a catch-up both are equal."""
    source, target = filled(MemoryStorage(n_events)), Catalog()
    follower, events = Follower(target), heard(source)
    follower.catch_up(source)
    for what, name, value, way in steps:
        _do(source, what, name, value)
        for event in events * (2 if way == "repeat" else 1):
            if way != "lose" and not follower.hear(event):
                follower.catch_up(source)
        events.clear()
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
    source.load(topic("q"))
    source.delete(topic("n", "non-persistent"))
    follower.catch_up(source)

    assert [(event.kind, event.topic) for event in events] == [
        ("deleted", topic("n", "non-persistent")),
        ("loaded", topic("q")),
    ]


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
