"""Listings of watches in steps: no step looks at more names or queries than it may."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from lookup.model.catalog import Equals, Listing
from lookup.topics.catalog import Catalog
from lookup.topics.listing import TopicLister
from lookup.topics.listing.steps import queries_per_step
from lookup.topics.rules import WatchRules
from lookup.topics.watching import (
    Refused,
    Resync,
    Snapshot,
    TopicListService,
    Update,
    WatchQuery,
    WatchRequest,
    carrying_out,
)
from lookup.topics.watching.query_topics import PendingChanges, QueryTopics
from tests.topics.listers import Scripted
from tests.topics.looked_at import LookedAt, most_in_a_step
from tests.topics.shelf import shelf, topic

#: Names of a list, and those that a step may look at.
_MANY, _FEW = 1_000, 25
_ALL = WatchQuery("t/n", pattern=".*")


def _listing(*, of: range = range(_MANY)) -> Listing:
    return Listing(tuple(LookedAt(topic(f"orders-{number:05d}")) for number in of))


def _watched(answers: list[Listing], queue_max: int) -> tuple[Catalog, TopicLister, TopicListService]:
    catalog = shelf()
    lister = TopicLister(Scripted(lambda _: answers.pop(0)), catalog)
    service = TopicListService(WatchRules(queue_max=queue_max), interests=lister.interests, revision=catalog.revision)
    catalog.subscribe(service.heard)
    service.open("c", WatchRequest(1, 1, _ALL))
    return catalog, lister, service


@pytest.mark.parametrize(("queue_max", "message"), [(10_000, Update), (100, Resync)])
def test_no_step_of_a_watch_looks_at_more_names_than_it_may(queue_max: int, message: type) -> None:
    """At first, and when a long list is listed again; a difference that no watcher takes is not walked over."""
    first, second = _listing(), _listing(of=range(_MANY // 2, 2 * _MANY))
    catalog, lister, service = _watched([first, second], queue_max)
    most = most_in_a_step(carrying_out(service, catalog, lister, rows=_FEW))
    assert 0 < most <= 3 * _FEW
    LookedAt.looked.clear()
    (snapshot,) = service.take("c")
    assert isinstance(snapshot, Snapshot)
    assert not LookedAt.looked

    catalog.create(topic("any"))
    most = most_in_a_step(carrying_out(service, catalog, lister, rows=_FEW))

    # What is noted for each watcher is bounded by the queue.
    assert 0 < most <= (3 * _FEW if message is Resync else _MANY + _MANY)
    assert [type(message) for message in service.take("c")] == [message]


_QUERIES: dict[str, Callable[[int], WatchQuery]] = {
    "patterns": lambda number: WatchQuery("t/n", pattern=f"t/n/orders-{number:05d}.*"),
    "selectors": lambda number: WatchQuery("t/n", selector=(Equals("team", str(number)),)),
    "a namespace that does not exist": lambda number: WatchQuery("t/none", pattern=f"t/none/orders-{number:05d}.*"),
    "namespaces that do not exist": lambda number: WatchQuery(f"t/none-{number}", pattern=".*"),
}


@pytest.mark.parametrize("kind", _QUERIES)
def test_no_step_hands_over_more_lists_than_it_may(kind: str) -> None:
    """Nor refuses more requests."""
    catalog = shelf("orders-00017-a")
    service = TopicListService(revision=catalog.revision)
    for number in range(_MANY):
        service.open(number, WatchRequest(1, 1, _QUERIES[kind](number)))
    answered = 0
    for _ in carrying_out(service, catalog, rows=100):
        assert len(service.due()) <= answered + queries_per_step(100)
        answered = len(service.due())
    kinds = {type(message) for number in service.due() for message in service.take(number)}

    assert answered >= _MANY - queries_per_step(100)
    assert kinds == {Refused if "not exist" in kind else Snapshot}


def test_no_step_looks_at_more_queries_than_it_may() -> None:
    """Each is hashed several times on its way, a few in each step."""
    catalog = shelf("orders-00017-a")
    service = TopicListService(revision=catalog.revision)
    for number in range(_MANY):
        service.open(number, WatchRequest(1, 1, WatchQuery("t/n", pattern=LookedAt(f"t/n/orders-{number:05d}.*"))))

    assert 0 < most_in_a_step(carrying_out(service, catalog, rows=100)) <= 3 * queries_per_step(100)


@pytest.mark.parametrize("n_changes", [0, 1_000])
def test_no_step_notes_more_changes_than_it_may(monkeypatch: pytest.MonkeyPatch, n_changes: int) -> None:
    """However many watchers one query has: they are handed the list, and its changes, one after the other."""
    n_noted = 0
    original = PendingChanges.enter

    def enter(pending: PendingChanges, topic: str) -> None:
        nonlocal n_noted
        n_noted += 1
        original(pending, topic)

    monkeypatch.setattr(PendingChanges, "enter", enter)
    answers = [_listing(of=range(10)), _listing(of=range(10 + n_changes))]
    catalog, lister, service = _watched(answers, 10_000)
    for number in range(_FEW * 8):
        service.open(number, WatchRequest(1, 1, _ALL))
    for kinds in ({Snapshot}, {Update} if n_changes else set()):
        steps, n_due, is_over = carrying_out(service, catalog, lister, rows=100), 0, False
        while not is_over:
            n_noted = 0
            is_over = next(steps, "over") == "over"
            assert n_noted <= n_changes
            assert len(service.due()) <= n_due + queries_per_step(100)
            n_due = len(service.due())
        assert n_due == (_FEW * 8 + 1 if kinds else 0)
        assert {type(message) for connection in service.due() for message in service.take(connection)} == kinds
        catalog.create(topic(f"any-{len(kinds)}-{len(answers)}"))


@pytest.mark.parametrize("n_steps", range(1, 12))
def test_a_listing_that_is_left_in_the_middle_is_handed_to_all(n_steps: int) -> None:
    """Its caller stops between two steps; what the watchers have agrees with each other at once."""
    catalog, service = shelf("a"), TopicListService()
    service.missed(catalog.revision)
    for number in range(10):
        service.open(number, WatchRequest(1, 1, _ALL))
    steps = carrying_out(service, catalog, rows=20)
    for _ in range(n_steps):
        next(steps, None)
    steps.close()

    assert [len(service.take(number)) for number in range(10)] == [1] * 10


class _Hashed(PendingChanges):
    """Changes that count how often they are looked up."""

    __slots__ = ()
    n_hashed = 0

    def __hash__(self) -> int:
        _Hashed.n_hashed += 1
        return object.__hash__(self)


def test_what_it_takes_to_part_does_not_grow_with_the_watchers() -> None:
    """Each of the watchers of one query is looked up when it joins and when it parts, and at no other time."""
    topics = QueryTopics(_ALL, _ALL.matcher())
    watchers = [_Hashed() for _ in range(_MANY)]
    for watcher in watchers:
        topics.join(watcher)
    for watcher in watchers:
        topics.part(watcher)

    assert _Hashed.n_hashed == 2 * _MANY
