"""Watches carried out on the spot: whatever a lister answers or raises is told, and nothing stays under way."""

from __future__ import annotations

from typing import Any

import pytest

from lookup.model.catalog import Listing
from lookup.topics.listing import TopicLister
from lookup.topics.messages import Refused, Snapshot, WatchQuery, WatchRequest
from lookup.topics.serving import carry_out
from lookup.topics.watching import Watches
from tests.topics.listers import Scripted
from tests.topics.shelf import shelf, topic

_ALL, _A = WatchQuery("t/n", ".*"), WatchQuery("t/n", ".*/a")


def _listing(topics: Any) -> Listing:
    return Listing(topics)


def _watches(*queries: WatchQuery) -> Watches:
    watches = Watches(interests=Scripted.interests)
    for number, query in enumerate(queries):
        watches.open("c", WatchRequest(number, number, query))
    return watches


@pytest.mark.parametrize(
    "answer",
    [None, _listing(None), _listing(7), _listing([7]), _listing([topic("a", "t/m")])],
    ids=["nothing", "no list", "a number", "no names", "another namespace"],
)
def test_a_lister_that_answers_no_topics_is_named_to_those_who_wait(answer: Any) -> None:
    """They are refused for now, and the next request is listed for again."""
    catalog = shelf()
    watches = _watches(_ALL)
    (sentence,) = carry_out(watches, catalog, TopicLister(Scripted(lambda _: answer), catalog))

    assert "lister 'scripted' answered" in sentence
    assert watches.take("c") == (Refused(0, 0, "MetadataError", sentence),)
    watches.open("c", WatchRequest(9, 9, _ALL))
    assert len(watches.wanted()) == 1


def test_names_that_are_made_as_they_are_read_are_told() -> None:
    """An empty set in their place would end subscriptions."""
    catalog = shelf()
    watches = _watches(_ALL)
    carry_out(watches, catalog, TopicLister(Scripted(lambda _: _listing(topic(name) for name in "ab")), catalog))
    (told,) = watches.take("c")

    assert isinstance(told, Snapshot)
    assert told.topics == (topic("a"), topic("b"))


def test_an_interruption_ends_all_listings() -> None:
    """The one at work and those after it: everybody who waits is refused for now."""

    def interrupt(_: str) -> Listing:
        raise KeyboardInterrupt

    catalog = shelf()
    watches = _watches(_ALL, _A)
    with pytest.raises(KeyboardInterrupt):
        carry_out(watches, catalog, TopicLister(Scripted(interrupt), catalog))

    assert [type(said) for said in watches.take("c")] == [Refused, Refused]
    assert watches.due() == ()
