"""Listings in steps, and the events that reach a query: what is shared, what is left out, what comes between."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from itertools import count
from random import Random
from typing import ClassVar

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from lookup.hooks import Lister
from lookup.model.catalog import CatalogView, Equals, EventKind, Exists, In, Listing, Mode, TopicEvent
from lookup.topics.catalog import Catalog
from lookup.topics.client import ListCopy
from lookup.topics.listing import ListRequest, TopicLister, TopicsPattern
from lookup.topics.listing.steps import finished
from lookup.topics.rules import WatchRules
from lookup.topics.watching import TopicListService, WatchQuery, WatchRequest, carry_out, carrying_out, messages
from lookup.topics.watching.query_topics import QueryTopics
from tests.topics.shelf import by_rule, relabel, shelf, topic

_LOCALS = ("a", "b", "ab", "abc-partition-0", "abc-partition-1", "__change_events")
_QUERIES = (
    *(WatchQuery("t/n", pattern=pattern) for pattern in (".*", "t/n/a.*", ".*b", "t/n/[ab]", "t/n/abc", "t/n/a")),
    WatchQuery("t/n", "all", "t/n/a.*"),
    WatchQuery("t/n", selector=(Equals("env", "prod"),)),
    WatchQuery("t/n", selector=(In("env", ("prod", "test")), Exists("team"))),
)


@dataclass(frozen=True)
class Counted(Lister):
    """Show every topic, and note how often it was asked."""

    name: ClassVar[str] = "counted"
    interests: ClassVar[frozenset[EventKind]] = frozenset({"created", "deleted"})

    asked: list[str] = field(default_factory=list)

    def list_topics(self, namespace: str, mode: Mode, properties: Mapping[str, str], catalog: CatalogView) -> Listing:
        """Ask the catalog."""
        self.asked.append(namespace)
        return Listing(catalog.topics(namespace, mode))


def _opened(service: TopicListService, *queries: WatchQuery) -> None:
    for number, query in enumerate(queries):
        service.open("c", WatchRequest(number, number, query))


@settings(deadline=None, max_examples=300)
@given(st.integers(0, 1 << 32), st.integers(1, 25), st.booleans(), st.sampled_from([1, 100]))
def test_lists_are_right_whatever_happens_between_two_steps(
    seed: int, rows: int, by_lister: bool, queue_max: int
) -> None:
    """Topics and namespaces come and go, watchers are opened and answered while listings are under way."""
    dice, catalog = Random(seed), shelf("a", "b")
    lister = TopicLister(Counted(), catalog)
    interests = Counted.interests if by_lister else None
    service = TopicListService(WatchRules(queue_max=queue_max), interests=interests, revision=catalog.revision)
    catalog.subscribe(service.heard)
    copies = {number: ListCopy() for number in range(len(_QUERIES))}
    requests = count()
    for _ in range(4):
        for number in dice.sample(range(len(_QUERIES)), 4):
            service.open("c", WatchRequest(next(requests), number, _QUERIES[number], copies[number].topics_hash))
        steps = carrying_out(service, catalog, lister if by_lister else None, rows=rows)
        for _ in steps:
            _change(catalog, dice)
            if dice.random() < 0.3:
                _take(service, copies)
    for _ in range(3):
        service.retry()
        carry_out(service, catalog, lister if by_lister else None)
        _take(service, copies)
    watched = {number for number in copies if copies[number].topics}

    for number in watched:
        assert copies[number].topics == by_rule(catalog, _QUERIES[number])


def _change(catalog: Catalog, dice: Random) -> None:
    name = topic(dice.choice(_LOCALS))
    if "t/n" not in catalog.namespaces():
        catalog.create_namespace("t/n")
    elif dice.random() < 0.05:
        catalog.delete_namespace("t/n", force=True)
    elif catalog.entry(name) is None:
        catalog.create(name)
    elif dice.random() < 0.5:
        catalog.delete(name)
    else:
        relabel(catalog, name, {"env": dice.choice(("prod", "test")), "team": "x"})


def _take(service: TopicListService, copies: Mapping[int, ListCopy]) -> None:
    for message in service.take("c"):
        if isinstance(message, messages.Snapshot | messages.Update | messages.Resync):
            copies[message.watcher_id].take(message)
            assert copies[message.watcher_id].topics_hash == message.topics_hash


def test_watchers_of_many_patterns_share_one_look_up_with_each_other() -> None:
    """One question for each mode, selector and set of properties, however many patterns there are."""
    catalog, counted = shelf("a", "b"), Counted()
    service = TopicListService(interests=Counted.interests, revision=catalog.revision)
    _opened(service, *_QUERIES[:6], WatchQuery("t/n", pattern=".*a", properties={"k": "v"}), _QUERIES[7])
    carry_out(service, catalog, TopicLister(counted, catalog))

    assert counted.asked == ["t/n"] * 3
    assert all(isinstance(message, messages.Snapshot) for message in service.take("c"))


def test_a_watch_and_a_listing_share_a_look_up_that_is_under_way() -> None:
    """As long as the catalog has not changed since it began; after that the lister is asked again."""
    catalog, counted = shelf("a", "b", "c"), Counted()
    lister = TopicLister(counted, catalog)
    service = TopicListService(interests=Counted.interests, revision=catalog.revision)
    _opened(service, _QUERIES[0])
    watch, listing = carrying_out(service, catalog, lister, rows=1), lister.answering(ListRequest("t/n"), rows=1)
    # The first step of a watch gathers what is wanted.
    for steps in (watch, watch, listing):
        next(steps)
    answer, _ = finished(listing), finished(watch)

    assert counted.asked == ["t/n"]
    assert [message.topics for message in service.take("c") if isinstance(message, messages.Snapshot)] == [
        answer.topics
    ]

    first = lister.answering(ListRequest("t/n", "all"), rows=1)
    next(first)
    catalog.create(topic("d"))
    assert topic("d") in lister.answer(ListRequest("t/n", "all")).topics
    assert topic("d") not in finished(first).topics
    assert counted.asked == ["t/n"] * 3


def test_a_refresh_of_an_unchanged_list_is_not_filtered_again(monkeypatch: pytest.MonkeyPatch) -> None:
    """Listings and watches share the list with all that is made of it, as long as its names are the same."""
    catalog = shelf("a", "b")
    lister = TopicLister(Counted(), catalog)
    service = TopicListService(revision=catalog.revision)
    catalog.subscribe(service.heard)
    _opened(service, _QUERIES[1])
    carry_out(service, catalog, lister)
    (first,) = service.take("c")
    assert isinstance(first, messages.Snapshot)
    assert lister.answer(ListRequest("t/n", pattern="t/n/a.*")).topics is first.topics
    monkeypatch.setattr(TopicsPattern, "filter", lambda *_: pytest.fail("filtered again"))
    service.open("c", WatchRequest(2, 0, _QUERIES[1]))
    carry_out(service, catalog, lister)
    (second,) = service.take("c")
    assert isinstance(second, messages.Snapshot)
    assert second.topics is first.topics

    monkeypatch.undo()
    catalog.create(topic("ab"))
    service.open("c", WatchRequest(3, 0, _QUERIES[1]))
    carry_out(service, catalog, lister)

    assert [type(message) for message in service.take("c")] == [messages.Update, messages.Snapshot]


@pytest.mark.parametrize("n_steps", [1, 5, 10, 12, 15])
def test_listings_that_are_given_up_halfway_are_refused(n_steps: int) -> None:
    """A client never waits for a list that no longer comes, and the next request is listed for."""
    catalog = shelf("a", "b", "c")
    service = TopicListService(revision=catalog.revision)
    _opened(service, *_QUERIES)
    steps = carrying_out(service, catalog, rows=1)
    for _ in range(n_steps):
        next(steps)
    steps.close()
    begun = len(service.take("c"))
    assert begun == min(n_steps, len(_QUERIES))

    _opened(service, *_QUERIES)
    carry_out(service, catalog)
    assert [type(message) for message in service.take("c")] == [messages.Snapshot] * len(_QUERIES)


def _reached(monkeypatch: pytest.MonkeyPatch, service: TopicListService, event: TopicEvent) -> list[WatchQuery]:
    reached = []

    def noted(topics: QueryTopics, event: TopicEvent) -> bool:
        reached.append(topics.query)
        return False

    with monkeypatch.context() as patch:
        patch.setattr(QueryTopics, "heard", noted)
        service.heard(event)
    return reached


@pytest.mark.parametrize(
    ("kind", "name", "labels", "reached"),
    [
        ("created", "ab", {}, [0, 1, 2, 6]),
        ("deleted", "b", {}, [0, 2, 3]),
        ("created", "abc-partition-7", {"env": "prod"}, [0, 1, 4, 6, 7, 8]),
        ("labels", "ab", {"env": "test"}, [8]),
        ("labels", "ab", {"team": "x"}, []),
        ("properties", "a", {}, []),
        ("loaded", "a", {}, []),
        ("unloaded", "a", {}, []),
    ],
)
def test_an_event_reaches_the_queries_whose_lists_it_may_change(
    monkeypatch: pytest.MonkeyPatch, kind: EventKind, name: str, labels: dict[str, str], reached: list[int]
) -> None:
    """By the name for patterns, by the labels for selectors; none hears of loads and properties."""
    service = TopicListService()
    _opened(service, *_QUERIES)

    heard = _reached(monkeypatch, service, TopicEvent(1, kind, topic(name), new=labels))

    assert sorted(map(_QUERIES.index, heard)) == reached
    assert _reached(monkeypatch, service, TopicEvent(2, kind, topic(name, "t/m"), new=labels)) == []


@pytest.mark.parametrize("kind", ["loaded", "unloaded", "properties"])
def test_events_that_change_no_list_fill_no_queue(kind: EventKind) -> None:
    """However many come while a listing is under way, it is still good."""
    service = TopicListService(WatchRules(queue_max=2))
    _opened(service, *_QUERIES[:2])
    wanted = service.wanted()
    for revision in range(1, 50):
        service.heard(TopicEvent(revision, kind, topic("a")))
    for listing in wanted:
        service.listed(listing.ticket, Listing([topic("a")]), revision=0)

    assert [type(message) for message in service.take("c")] == [messages.Snapshot, messages.Snapshot]


@pytest.mark.parametrize("kind", ["created", "deleted", "labels", "properties", "loaded", "unloaded"])
def test_a_lister_hears_of_its_interests_and_of_deletions(monkeypatch: pytest.MonkeyPatch, kind: EventKind) -> None:
    """And with a selector of labels; it may show another topic than the one an event is about, so all are asked."""
    service = TopicListService(interests={"loaded"})
    _opened(service, *_QUERIES)
    reached = _reached(monkeypatch, service, TopicEvent(1, kind, topic("z")))

    expected = {"created": 2, "labels": 2, "deleted": len(_QUERIES), "loaded": len(_QUERIES)}
    assert len(reached) == expected.get(kind, 0)


def test_a_topic_that_left_for_its_labels_and_was_deleted_is_another_one_when_it_returns() -> None:
    """Its deletion has no fitting label, and is heard of all the same until the watcher was sent the removal."""
    catalog = shelf()
    catalog.create(topic("a"), labels={"env": "prod"})
    service = TopicListService(revision=catalog.revision)
    catalog.subscribe(service.heard)
    _opened(service, _QUERIES[7])
    carry_out(service, catalog)
    service.take("c")
    catalog.remove_labels(topic("a"), everything=True)
    catalog.delete(topic("a"))
    catalog.create(topic("a"))
    catalog.set_labels(topic("a"), {"env": "prod"})
    (update,) = service.take("c")

    assert isinstance(update, messages.Update)
    assert (update.removed, update.added) == ((topic("a"),), (topic("a"),))


def test_a_query_that_nobody_watches_any_more_is_reached_by_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    """The others of the same pattern or label still are."""
    service = TopicListService()
    for connection in ("c", "d"):
        for number, query in enumerate(_QUERIES):
            service.open(connection, WatchRequest(number, number, query))
    event = TopicEvent(1, "created", topic("ab"), new={"env": "prod", "team": "x"})
    service.disconnected("c")
    assert len(_reached(monkeypatch, service, event)) == 6
    service.disconnected("d")

    assert _reached(monkeypatch, service, TopicEvent(2, "created", topic("ab"), new={"env": "prod"})) == []


def test_queries_of_one_pattern_are_forgotten_one_by_one(monkeypatch: pytest.MonkeyPatch) -> None:
    """Two that differ by their modes share the pattern, and the last of them takes it with it."""
    service = TopicListService()
    for connection, query in (("c", _QUERIES[1]), ("d", _QUERIES[6])):
        service.open(connection, WatchRequest(1, 1, query))
    service.disconnected("c")
    event = TopicEvent(1, "created", topic("ab"))

    assert _reached(monkeypatch, service, event) == [_QUERIES[6]]
    service.disconnected("d")
    service.open("e", WatchRequest(1, 1, _QUERIES[2]))
    assert _reached(monkeypatch, service, TopicEvent(2, "created", topic("ab"))) == [_QUERIES[2]]


def test_a_lister_s_topic_that_was_created_again_is_another_one_in_an_equal_list() -> None:
    """The list is the kept one, and its watcher is sent the topic as removed and added."""
    catalog = shelf("a", "b")
    lister = TopicLister(Counted(), catalog)
    service = TopicListService(interests=Counted.interests, revision=catalog.revision)
    catalog.subscribe(service.heard)
    _opened(service, _QUERIES[1])
    carry_out(service, catalog, lister)
    service.take("c")
    catalog.delete(topic("a"))
    catalog.create(topic("a"))
    carry_out(service, catalog, lister)
    (update,) = service.take("c")

    assert isinstance(update, messages.Update)
    assert (update.removed, update.added) == ((topic("a"),), (topic("a"),))
