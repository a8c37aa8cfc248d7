"""Requests for topic lists that wait at the same time: identical ones are answered by one look-up."""

from __future__ import annotations

from collections.abc import Sequence

import pytest

from lookup.errors import ArgumentError, NotFoundError, PatternError
from lookup.model.catalog import CatalogView
from lookup.topics.listing import ListRequest, TopicLister, TopicQuery, topic_list
from lookup.topics.listing.steps import Steps
from lookup.topics.listing.topic_list import hashing
from lookup_policies.listers import Default, Indexed
from tests.topics.filled import HERE, catalog_of, name_of


def _catalog() -> CatalogView:
    """Return four topics of users and one of the system."""
    return catalog_of(*map(name_of, ("orders-eu", "orders-us", "orders-asia", "bills", "__change_events")))


def test_identical_requests_are_looked_up_once() -> None:
    """They share namespace, mode and properties; each keeps its own pattern and hash."""
    lister = TopicLister(Default(), _catalog())
    plain, matched = (
        ListRequest(HERE, properties={"a": "1", "b": "2"}),
        ListRequest(HERE, pattern=".*bills", properties={"b": "2", "a": "1"}),
    )

    query = lister.ask("first", plain)
    assert query == TopicQuery(HERE, properties={"b": "2", "a": "1"}, include_system=True)
    assert lister.ask("second", matched) is None
    answers = dict(lister.listed(query, lister.fetch(query)))

    assert {ticket: len(answer.topics) for ticket, answer in answers.items()} == {"first": 4, "second": 1}
    assert (answers["first"].filtered, answers["second"].filtered) == (False, True)


def test_identical_requests_share_one_hash(monkeypatch: pytest.MonkeyPatch) -> None:
    """A list is filtered and hashed once for each pattern and choice of system topics, not once for each request."""
    hashed: list[Sequence[str]] = []

    def noted(names: Sequence[str], rows: int) -> Steps[str]:
        hashed.append(names)
        return hashing(names, rows)

    monkeypatch.setattr(topic_list, "hashing", noted)
    lister = TopicLister(Default(), _catalog())
    requests = [ListRequest(HERE), ListRequest(HERE, pattern=".*s"), ListRequest(HERE, include_system=True)] * 9
    query, *_ = [lister.ask(ticket, request) for ticket, request in enumerate(requests)]
    assert query is not None

    answers = lister.listed(query, lister.fetch(query))

    assert len(hashed) == 3
    assert answers == [(ticket, lister.answer(request)) for ticket, request in enumerate(requests)]


def test_who_asks_for_system_topics_alone_gets_them() -> None:
    """Two that wait for one query see what each asked for."""
    lister = TopicLister(Default(), _catalog())
    query = lister.ask("users", ListRequest(HERE))
    assert query is not None
    assert lister.ask("system", ListRequest(HERE, include_system=True)) is None

    answers = dict(lister.listed(query, lister.fetch(query)))

    assert len(answers["system"].topics) == len(answers["users"].topics) + 1


@pytest.mark.parametrize(
    "other", [ListRequest("a/b"), ListRequest(HERE, "all"), ListRequest(HERE, properties={"k": "v"})]
)
def test_other_requests_are_looked_up_for_themselves(other: ListRequest) -> None:
    """Another namespace, mode or property asks for another list."""
    lister = TopicLister(Indexed(), _catalog())

    assert lister.ask(1, ListRequest(HERE)) is not None
    assert lister.ask(2, other) is not None


def test_after_an_answer_the_next_request_looks_again() -> None:
    """Nothing is remembered beyond the requests that waited."""
    lister = TopicLister(Default(), _catalog())
    query = lister.ask(1, ListRequest(HERE))
    assert query is not None
    lister.listed(query, ())

    assert lister.ask(1, ListRequest(HERE)) == query
    assert lister.failed(query) == [1]
    with pytest.raises(NotFoundError, match="no request waits for"):
        lister.listed(query, ())


def test_who_has_gone_gets_no_answer() -> None:
    """A request that joins later still shares the look-up that is under way."""
    lister = TopicLister(Default(), _catalog())
    query = lister.ask("gone", ListRequest(HERE))
    assert query is not None

    lister.cancel("gone")
    lister.cancel("never there")

    assert lister.ask("late", ListRequest(HERE)) is None
    assert [ticket for ticket, _ in lister.listed(query, ())] == ["late"]


def test_a_ticket_waits_once() -> None:
    """An answer must reach the request it belongs to."""
    lister = TopicLister(Default(), _catalog())
    lister.ask(7, ListRequest(HERE))

    with pytest.raises(ArgumentError, match="request 7 is still waiting for its answer"):
        lister.ask(7, ListRequest(HERE, "all"))


def test_a_refused_request_leaves_nothing_behind() -> None:
    """The next one with its ticket is taken, and looks for itself."""
    lister = TopicLister(Default(), _catalog())
    with pytest.raises(PatternError):
        lister.ask(1, ListRequest(HERE, pattern="("))

    assert lister.ask(1, ListRequest(HERE)) is not None
