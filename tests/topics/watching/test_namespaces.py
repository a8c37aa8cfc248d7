"""Namespaces that are deleted and created again: their watchers hear of every topic once, and go on."""

from __future__ import annotations

from typing import TypeAlias

import pytest

from lookup.errors import NotFoundError, StateError
from lookup.model.catalog import Equals, EventKind, Exists, Listing
from lookup.topics.catalog import Catalog
from lookup.topics.listing import TopicLister
from lookup.topics.rules import WatchRules
from lookup.topics.watching import (
    Message,
    Refused,
    Resync,
    Snapshot,
    TopicListService,
    Update,
    WatchQuery,
    WatchRequest,
    carry_out,
    carrying_out,
)
from lookup_policies.listers import Default
from tests.topics.listers import Scripted
from tests.topics.shelf import topic

_QUERIES = (
    WatchQuery("t/n", pattern=".*"),
    WatchQuery("t/n", "all", "t/n/a.*"),
    WatchQuery("t/n", selector=(Equals("env", "prod"),)),
    WatchQuery("t/n", selector=(Exists("env"),)),
    WatchQuery("t/m", pattern=".*"),
    WatchQuery("t/m", selector=(Equals("env", "prod"),)),
)
_LABELS = {"env": "prod"}
Interests: TypeAlias = frozenset[EventKind] | None
#: None: events decide; else a lister, which is asked again on these.
_INTERESTS: tuple[Interests, ...] = (None, frozenset({"created", "deleted"}), frozenset({"created"}))


class _Watched:
    """A catalog of two namespaces, and a watcher of each query by number, which were sent their lists."""

    def __init__(self, interests: Interests, *, queue_max: int = 100) -> None:
        self.catalog = Catalog()
        for namespace in ("t/n", "t/m"):
            self.fill(namespace)
        self.lister = TopicLister(Default(), self.catalog)
        rules = WatchRules(queue_max=queue_max)
        self.service = TopicListService(rules, interests=interests, revision=self.catalog.revision)
        self.leave = self.catalog.subscribe(self.service.heard)
        for number, query in enumerate(_QUERIES):
            self.service.open("c", WatchRequest(number, number, query))
        self.messages()

    def fill(self, namespace: str) -> None:
        self.catalog.create_namespace(namespace)
        for local in ("a", "b"):
            self.catalog.create(topic(local, namespace), labels=_LABELS)
        self.catalog.create(topic("ab", namespace, "non-persistent"))

    def messages(self) -> dict[int, list[Message]]:
        """Carry out what is wanted, and return the messages of each watcher."""
        carry_out(self.service, self.catalog, self.lister)
        by_watcher: dict[int, list[Message]] = {}
        for message in self.service.take("c"):
            by_watcher.setdefault(message.watcher_id, []).append(message)
        return by_watcher


@pytest.mark.parametrize("interests", _INTERESTS)
def test_watchers_hear_of_everything_in_a_namespace_that_is_deleted(interests: Interests) -> None:
    """Each topic once, whether events or a lister decide; watchers of another namespace hear nothing."""
    watched = _Watched(interests)
    watched.catalog.delete_namespace("t/n", force=True)
    messages = watched.messages()

    both = (topic("a"), topic("b"))
    removed = {0: both, 1: (topic("ab", domain="non-persistent"), topic("a")), 2: both, 3: both}
    assert sorted(messages) == [0, 1, 2, 3]
    for number, (message,) in messages.items():
        assert isinstance(message, Update)
        assert (message.removed, message.added) == (removed[number], ())
        assert message.topics_hash == "00000000"
    assert watched.messages() == {}


@pytest.mark.parametrize("interests", _INTERESTS)
def test_watchers_go_on_if_their_namespace_is_created_again(interests: Interests) -> None:
    """Its topics are added; if both came to pass between two messages, they are other topics of the same names."""
    watched = _Watched(interests)
    watched.catalog.delete_namespace("t/n", force=True)
    watched.messages()
    watched.fill("t/n")
    added = watched.messages()
    watched.catalog.delete_namespace("t/n", force=True)
    watched.fill("t/n")
    both = watched.messages()

    assert sorted(added) == sorted(both) == [0, 1, 2, 3]
    for number, (update,) in added.items():
        (again,) = both[number]
        assert isinstance(update, Update)
        assert isinstance(again, Update)
        assert update.added
        assert (update.removed, again.removed, again.added) == ((), update.added, update.added)
        assert again.topics_hash == update.topics_hash


@pytest.mark.parametrize("interests", _INTERESTS)
def test_a_deletion_of_which_no_event_was_heard_is_found_out(interests: Interests) -> None:
    """As after a lost session: every query is listed again, and the catalog has no such namespace."""
    watched = _Watched(interests)
    watched.leave()
    watched.catalog.delete_namespace("t/n", force=True)
    watched.service.missed(watched.catalog.revision)
    messages = watched.messages()

    assert [len(message.removed) for (message,) in messages.values() if isinstance(message, Update)] == [2, 2, 2, 2]


@pytest.mark.parametrize("interests", _INTERESTS)
@pytest.mark.parametrize("n_steps", range(1, 30, 2))
def test_a_namespace_may_be_deleted_while_it_is_listed(n_steps: int, interests: Interests) -> None:
    """Whatever step it happens in, the watchers that have lists are left none."""
    watched = _Watched(interests)
    for number, query in enumerate(_QUERIES):
        watched.service.open("c", WatchRequest(number, number, query))
    steps = carrying_out(watched.service, watched.catalog, watched.lister, rows=1)
    for _ in range(n_steps):
        next(steps, None)
    watched.catalog.delete_namespace("t/n", force=True)
    for _ in steps:
        pass
    watched.service.retry()
    watched.service.open("d", WatchRequest(1, 1, _QUERIES[0]))
    watched.messages()
    (answer,) = watched.service.take("d")

    assert isinstance(answer, Refused) or (isinstance(answer, Snapshot) and answer.topics == ())
    for number in range(4):
        watched.service.open("c", WatchRequest(number, number, _QUERIES[number]))
    answers = [message for (*_, message) in watched.messages().values()]
    assert [message.topics for message in answers if isinstance(message, Snapshot)] == [()] * 4


def test_a_large_namespace_is_sent_as_an_empty_list() -> None:
    """To a watcher that can have fewer changes waiting."""
    for interests in _INTERESTS:
        watched = _Watched(interests, queue_max=1)
        watched.catalog.delete_namespace("t/n", force=True)
        (message,) = watched.messages()[0]

        assert isinstance(message, Resync)
        assert (message.topics, message.topics_hash) == ((), "00000000")


def test_a_namespace_that_never_was_is_refused() -> None:
    """For now: it may be created."""
    catalog = Catalog()
    service = TopicListService(revision=catalog.revision)
    service.open("c", WatchRequest(1, 1, _QUERIES[0]))
    carry_out(service, catalog)
    (refused,) = service.take("c")

    assert isinstance(refused, Refused)
    assert refused.is_temporary


@pytest.mark.parametrize(
    ("error", "is_deleted", "n_removed"),
    [
        (StateError("not now"), True, 0),
        (NotFoundError("no such namespace"), False, 0),
        (NotFoundError("no such namespace"), True, 2),
    ],
)
def test_a_lister_that_fails_empties_no_list(error: Exception, is_deleted: bool, n_removed: int) -> None:
    """Unless it says that there is no such namespace, and the catalog has none either."""
    answers = [Listing((topic("a"), topic("b")))]

    def answer(_: str) -> Listing:
        if not answers:
            raise error
        return answers.pop()

    catalog = Catalog()
    catalog.create_namespace("t/n")
    lister = TopicLister(Scripted(answer), catalog)
    service = TopicListService(interests=lister.interests, revision=catalog.revision)
    catalog.subscribe(service.heard)
    service.open("c", WatchRequest(1, 1, _QUERIES[0]))
    carry_out(service, catalog, lister)
    service.take("c")
    if is_deleted:
        catalog.delete_namespace("t/n", force=True)
    else:
        catalog.create(topic("c"))
    carry_out(service, catalog, lister)

    assert [len(m.removed) for m in service.take("c") if isinstance(m, Update)] == ([n_removed] if n_removed else [])
