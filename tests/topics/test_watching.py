"""What is said of a watch: its list, and the changes that events make, compared with lists made anew."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, rule

from lookup.errors import NotFoundError, PatternError
from lookup.model.catalog import Equals
from lookup.topics.catalog import Catalog, SqliteStorage
from lookup.topics.listing import TopicLister, TopicQuery
from lookup.topics.watching import (
    Message,
    Snapshot,
    Trouble,
    Update,
    WatchedList,
    WatchedTopics,
    changes_between,
    message_in,
    message_text,
)
from lookup_policies.listers import Default, Indexed
from tests.topics.filled import HERE, catalog_of, name_of

_WATCHES = [
    TopicQuery(HERE, "all", f"{HERE}/a.*"),
    TopicQuery(HERE, "all", selector=(Equals("env", "prod"),)),
    TopicQuery(HERE, "all"),
]


def _watched(watch: TopicQuery, catalog: Catalog, *, is_driven: bool = False) -> WatchedTopics:
    return WatchedTopics(watch, catalog, TopicLister(Default(), catalog), is_driven=is_driven)


class _Followed(RuleBasedStateMachine):
    """A catalog that changes, and clients that take in every update, or some together, or look again by a mark."""

    def __init__(self) -> None:
        super().__init__()
        self.catalog = catalog_of()
        self.catalog.create_namespace("t/n")
        self.topics = [_watched(watch, self.catalog) for watch in _WATCHES]
        self.events: list[Any] = []
        self.catalog.subscribe(self.events.append)
        first = [topics.take_snapshot() for topics in self.topics]
        self.lists, self.marks = [set(snapshot.topics) for snapshot in first], [snapshot.mark for snapshot in first]
        self.begun = [set(names) for names in self.lists]
        #: topics -> how often each was made
        self.made: dict[str, int] = {}

    @rule(
        name=st.sampled_from([name_of("a"), name_of("b"), name_of("a", "non-persistent"), "persistent://t/n/a"]),
        env=st.sampled_from(["prod", "test"]),
        is_labelled=st.booleans(),
    )
    def change(self, name: str, env: str, *, is_labelled: bool) -> None:
        """Create, label or delete a topic."""
        if self.catalog.entry(name) is None:
            self.catalog.create(name, labels={"env": env})
        elif is_labelled:
            self.catalog.set_pairs("labels", name, {"env": env})
        else:
            self.catalog.delete(name)

    @rule()
    def take_in(self) -> None:
        """Take in the events since the last time."""
        for names, topics in zip(self.lists, self.topics, strict=True):
            update = topics.changes(self.events, "m")
            assert names.issuperset(update.removed)
            names.difference_update(update.removed)
            assert names.isdisjoint(update.added)
            names.update(update.added)
        self.events.clear()

    @invariant()
    def lists_are_those_made_anew(self) -> None:
        """Once everything was taken in, or by a mark from the very beginning."""
        for names, begun, mark, topics in zip(self.lists, self.begun, self.marks, self.topics, strict=True):
            now = set(topics.take_snapshot().topics)
            assert self.events or names == now
            update = topics.since(mark)
            assert update is not None
            assert (begun - {*update.removed}) | {*update.added} == now


TestFollowed = settings(max_examples=40, deadline=None)(_Followed).TestCase  # type: ignore[attr-defined]


def test_a_topic_made_again_is_told_as_another_one() -> None:
    """In both lists, whatever its labels were in between; one that came and went is not told."""
    catalog = catalog_of()
    catalog.create(name_of("a"), labels={"env": "prod"})
    topics, events = _watched(_WATCHES[1], catalog), list[Any]()
    catalog.subscribe(events.append)
    catalog.set_pairs("labels", name_of("a"), {"env": "test"})
    catalog.delete(name_of("a"))
    catalog.create(name_of("a"), labels={"env": "prod"})
    catalog.create(name_of("b"), labels={"env": "prod"})
    catalog.delete(name_of("b"))

    assert topics.changes(events, "m") == Update("m", [name_of("a")], [name_of("a")])
    before, after = Snapshot("1-1", [name_of("a")]), Snapshot("2-2", [name_of("a"), name_of("c")])
    assert changes_between(before, after, {name_of("a"), name_of("b")}) == Update(
        "2-2", [name_of("a")], [name_of("a"), name_of("c")]
    )


def test_a_mark_is_of_one_catalog() -> None:
    """That of another one, of a revision that is not reached, or of what is not kept any more, is not believed."""
    catalog, other = Catalog(SqliteStorage(n_events=3)), catalog_of(*map(name_of, "vwxyz"))
    catalog.create_namespace(HERE)
    topics = _watched(_WATCHES[0], catalog)
    first = topics.take_snapshot().mark
    for local in "abcdefg":
        catalog.create(name_of(local))
    mark = _watched(_WATCHES[0], other).take_snapshot().mark

    assert topics.since(first) is None
    assert topics.since(mark) is None
    assert topics.since("99-1") is None
    assert topics.since("") is topics.since("x-y") is None
    assert topics.since(topics.take_snapshot().mark) == Update(topics.take_snapshot().mark, [], [])
    assert _watched(_WATCHES[0], catalog, is_driven=True).since(topics.take_snapshot().mark) is None


def test_the_first_mark_is_that_of_an_empty_catalog() -> None:
    """Everything since is told."""
    catalog = Catalog()
    topics = _watched(_WATCHES[0], catalog)
    catalog.create_namespace(HERE)
    catalog.create(name_of("a"))

    assert topics.since(topics.mark_of(None)) == Update(topics.take_snapshot().mark, [], [name_of("a")])


def test_a_mark_is_of_one_catalog_and_one_form_of_its_lists() -> None:
    """Not of a catalog that was made anew with the same last event, or of a lister's list."""
    catalog, anew = catalog_of(), catalog_of()
    mark = _watched(_WATCHES[0], catalog).take_snapshot().mark

    assert anew.revision == catalog.revision
    assert _watched(_WATCHES[0], catalog).since(mark) == Update(mark, [], [])
    assert _watched(_WATCHES[0], anew).since(mark) is None
    assert _watched(_WATCHES[0], catalog, is_driven=True).take_snapshot().mark != mark
    assert _watched(_WATCHES[0], catalog).since("9" * 5_000 + "-1") is None


def test_a_namespace_that_does_not_exist_is_said_to_be_absent() -> None:
    """It goes on being watched; at its beginning the watch is refused."""
    catalog = catalog_of(name_of("a"))
    assert not _watched(_WATCHES[2], catalog).take_snapshot().is_absent
    catalog.delete_namespace(HERE)
    for watch in _WATCHES:
        with pytest.raises(NotFoundError, match="there is no"):
            _watched(watch, catalog).take_snapshot()
        later = _watched(watch, catalog).take_snapshot(is_first=False)
        assert (later.topics, later.is_absent) == ((), True)


def test_a_lister_is_asked_again_on_the_events_it_names() -> None:
    """And on those that change a selector's list, or of which a topic made again is known."""
    catalog = catalog_of(name_of("a"))
    topics = WatchedTopics(_WATCHES[0], catalog, TopicLister(Indexed(), catalog), is_driven=True)
    events: list[Any] = []
    catalog.subscribe(events.append)
    catalog.create_namespace("t/n")
    catalog.create("persistent://t/n/x")

    assert not topics.concerns(events)
    catalog.set_pairs("properties", name_of("a"), {"team": "x"})
    assert topics.concerns(events[-1:])
    catalog.delete_namespace(HERE)
    assert [topics.concerns([event]) for event in events[-2:]] == [True, True]


@pytest.mark.parametrize(
    "message",
    [
        Snapshot("3-a", [name_of("a"), name_of("é")], is_absent=True, reads_properties=False),
        Snapshot("0-0", []),
        Update("4-b", [name_of("a")], [name_of("a\u2028")]),
        Trouble("a sentence\nin two lines"),
    ],
)
def test_a_message_is_read_as_it_was_written(message: Message) -> None:
    """As one event, each field on a line of its own."""
    *lines, end, last = message_text(message).split("\n")
    fields = dict(line.split(": ", 1) for line in lines)

    assert (end, last) == ("", "")
    assert message_in(fields["event"], fields.get("id", ""), fields["data"]) == message


@pytest.mark.parametrize(
    ("kind", "data"),
    [
        ("update", "[]"),
        ("update", "{"),
        ("update", "{}"),
        ("update", '{"removed": [1], "added": []}'),
        ("update", '{"removed": {}, "added": []}'),
        ("snapshot", '{"names": []}'),
        ("trouble", '{"sentence": "a", "more": "b"}'),
    ],
)
def test_what_is_no_message_is_refused(kind: str, data: str) -> None:
    """By errors that a client takes for those of a stranger."""
    with pytest.raises((ValueError, KeyError, TypeError, AttributeError)):
        message_in(kind, "1-1", data)


# A client's list

_A, _B, _C = (name_of(local) for local in "abc")
_NONE: frozenset[str] = frozenset()


def _list(*messages: Message, pattern: str = ".*") -> WatchedList:
    watched = WatchedList(TopicQuery(HERE, pattern=pattern))
    for message in messages:
        watched.take(message)
    return watched


def test_a_list_follows_its_messages() -> None:
    """A topic that was deleted and created again left, and came."""
    watched = _list()

    assert watched.take(Snapshot("1-1", [_A, _B])) == (_NONE, {_A, _B})
    assert watched.take(Update("2-2", [_B], [_C])) == ({_B}, {_C})
    assert watched.take(Update("3-3", [_A], [_A])) == ({_A}, {_A})
    assert watched.take(Snapshot("4-4", [_A])) == ({_C}, _NONE)
    assert watched.topics == {_A}


@pytest.mark.parametrize("message", [Trouble("away"), Snapshot("0-0", [], is_absent=True)], ids=["away", "absent"])
def test_a_list_stays_while_its_server_knows_nothing(message: Message) -> None:
    """As at a server that is away, or was made anew and has not looked at the cluster."""
    watched = _list(Snapshot("1-1", [_A]))

    assert watched.take(message) == (_NONE, _NONE)
    assert watched.topics == {_A}


def test_only_topics_that_are_watched_are_taken() -> None:
    """A faulty server names others, and Pulsar's own."""
    first = Snapshot("1-1", [_A, "persistent://t/n/a", name_of("__change_events")])

    assert _list(first, Update("2-2", [], ["persistent://t/n/b"])).topics == {_A}


def test_a_pattern_that_cannot_be_used_is_refused_at_once() -> None:
    """Before anything is asked."""
    with pytest.raises(PatternError, match="lookaround"):
        _list(pattern="(?=a)")
