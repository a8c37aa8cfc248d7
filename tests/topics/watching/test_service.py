"""The topic list service over the real catalog: messages, refusals, and the queues of slow clients.

Listings are carried out on the spot by `carry_out`: what a lister answers or raises is sent, and none stays under way.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

import pytest

from lookup.errors import ArgumentError
from lookup.model.catalog import Equals, EventKind, Listing, TopicEvent
from lookup.topics.catalog import Catalog
from lookup.topics.listing import TopicLister, topics_hash
from lookup.topics.listing.steps import finished
from lookup.topics.rules import WatchRules
from lookup.topics.watching import TopicListService, WatchQuery, WatchRequest, carry_out, messages
from lookup.topics.watching.query_topics import PendingChanges, QueryTopics
from tests.topics.listers import Scripted
from tests.topics.shelf import Undescribed, shelf, topic

_ALL = WatchQuery("t/n", pattern=".*")
_PROD = WatchQuery("t/n", selector=(Equals("env", "prod"),))


def _catalog() -> Catalog:
    catalog = Catalog()
    catalog.create_namespace("t/n")
    return catalog


def _opened(
    catalog: Catalog, query: WatchQuery, rules: WatchRules | None = None
) -> tuple[TopicListService, messages.Message]:
    watches = TopicListService(rules, revision=catalog.revision)
    catalog.subscribe(watches.heard)
    watches.open("c", WatchRequest(1, 7, query))
    carry_out(watches, catalog)
    (message,) = watches.take("c")
    return watches, message


def test_partitions_are_watched_by_name() -> None:
    """One update, coalesced, with the hash of the whole set."""
    catalog = _catalog()
    watches, _ = _opened(catalog, WatchQuery("t/n", pattern="t/n/orders"))
    catalog.create(topic("orders"), partitions=2)
    names = (topic("orders-partition-0"), topic("orders-partition-1"))

    assert watches.take("c") == (messages.Update(7, (), names, topics_hash(names)),)


@pytest.mark.parametrize("has", ["", "3", "37e5c73", "37e5c737 ", "37E5C737", "7e5c737"])
def test_a_watch_is_unchanged_only_for_the_exact_hash(has: str) -> None:
    """A part of the hash is another hash, and gets the whole list."""
    catalog = shelf("a")
    watches = TopicListService(revision=catalog.revision)
    watches.open("c", WatchRequest(1, 7, _ALL, has))
    watches.open("c", WatchRequest(2, 8, _ALL, topics_hash([topic("a")])))
    carry_out(watches, catalog)

    assert watches.take("c") == (
        messages.Snapshot(1, 7, (topic("a"),), "37e5c737"),
        messages.Snapshot(2, 8, (), "37e5c737", changed=False),
    )


def test_a_selector_is_watched_by_labels() -> None:
    """A topic joins with its label, leaves without it, and is sent once per round."""
    catalog = _catalog()
    catalog.create(topic("a"))
    watches, first = _opened(catalog, _PROD)
    catalog.set_labels(topic("a"), {"env": "prod"})
    joined = watches.take("c")
    catalog.remove_labels(topic("a"), ["env"])
    left = watches.take("c")

    assert first == messages.Snapshot(1, 7, (), "00000000")
    assert joined == (messages.Update(7, (), (topic("a"),), topics_hash([topic("a")])),)
    assert left == (messages.Update(7, (topic("a"),), (), "00000000"),)


def test_what_comes_and_goes_between_two_rounds_is_not_told() -> None:
    """Coalesced to nothing."""
    catalog = _catalog()
    watches, _ = _opened(catalog, _ALL)
    catalog.create(topic("a"))
    catalog.delete(topic("a"))

    assert watches.take("c") == ()


def test_a_lister_drives_a_watch_by_its_interests() -> None:
    """It is asked again when properties change, and what it hides is taken away."""
    catalog = _catalog()
    catalog.create(topic("a"))
    lister = TopicLister(Undescribed(), catalog)
    watches = TopicListService(interests=Undescribed.interests, revision=catalog.revision)
    catalog.subscribe(watches.heard)
    watches.open("c", WatchRequest(1, 7, _ALL))
    carry_out(watches, catalog, lister)
    watches.take("c")
    catalog.set_properties(topic("a"), {"k": "v"})
    carry_out(watches, catalog, lister)

    assert watches.take("c") == (messages.Update(7, (topic("a"),), (), "00000000"),)


@pytest.mark.parametrize("interests", [Undescribed.interests, frozenset({"labels"}), None])
def test_a_deleted_namespace_empties_every_list(interests: frozenset[EventKind] | None) -> None:
    """Whatever a lister is interested in; topics of a namespace made again are others."""
    catalog = _catalog()
    catalog.create(topic("a"))
    lister = None if interests is None else TopicLister(Undescribed(), catalog)
    watches = TopicListService(interests=interests, revision=catalog.revision)
    catalog.subscribe(watches.heard)
    watches.open("c", WatchRequest(1, 7, _ALL))
    carry_out(watches, catalog, lister)
    watches.take("c")
    catalog.delete_namespace("t/n", force=True)
    carry_out(watches, catalog, lister)

    assert watches.take("c") == (messages.Update(7, (topic("a"),), (), "00000000"),)
    catalog.create_namespace("t/n")
    catalog.create(topic("a"))
    catalog.set_labels(topic("a"), {"env": "prod"})
    carry_out(watches, catalog, lister)
    assert watches.take("c") == (messages.Update(7, (), (topic("a"),), topics_hash([topic("a")])),)


@pytest.mark.parametrize("interests", [Undescribed.interests, frozenset({"labels"}), None])
@pytest.mark.parametrize("is_again", [False, True])
def test_a_listing_does_not_bring_a_deleted_namespace_back(
    interests: frozenset[EventKind] | None, *, is_again: bool
) -> None:
    """One that began before; topics of a namespace made again are not taken for the old ones, and are not lost."""
    catalog = _catalog()
    catalog.create(topic("a"))
    lister = None if interests is None else TopicLister(Undescribed(), catalog)
    watches = TopicListService(interests=interests, revision=catalog.revision)
    catalog.subscribe(watches.heard)
    watches.open("c", WatchRequest(1, 7, _ALL))
    (wanted,) = watches.wanted()
    revision = catalog.revision
    catalog.delete_namespace("t/n", force=True)
    if is_again:
        catalog.create_namespace("t/n")
        catalog.create(topic("b"))
    watches.listed(wanted.ticket, Listing([topic("a")]), revision=revision)
    carry_out(watches, catalog, lister)
    (message,) = watches.take("c")

    assert isinstance(message, messages.Snapshot)
    assert message.topics == ((topic("b"),) if is_again else ())


def test_closing_is_confirmed_and_ends_the_updates() -> None:
    """A watcher that is not there is confirmed as well."""
    catalog = _catalog()
    watches, _ = _opened(catalog, _ALL)
    catalog.create(topic("a"))
    watches.close("c", 2, 7)
    watches.close("c", 3, 8)
    catalog.create(topic("b"))

    assert watches.take("c") == (messages.Closed(2, 7), messages.Closed(3, 8))


def test_a_disconnected_client_leaves_nothing_behind() -> None:
    """No set, no listing, nothing due."""
    catalog = _catalog()
    watches, _ = _opened(catalog, _ALL)
    watches.disconnected("c")
    catalog.create(topic("a"))
    watches.missed(catalog.revision + 1)

    assert (watches.due(), watches.wanted(), watches.take("c")) == ((), (), ())


@pytest.mark.parametrize(
    ("rules", "query", "error", "message"),
    [
        (WatchRules(topic_list_watcher=False), _ALL, "NotAllowedError", "topic_list_watcher is off"),
        (WatchRules(pattern_filtering=False), _ALL, "NotAllowedError", "pattern_filtering is off"),
        (WatchRules(), WatchQuery("t/n", pattern="(?=a)"), "InvalidTopicName", "the lookahead"),
        (WatchRules(), WatchQuery("t/n", pattern="a" * 51), "NotAllowedError", "more than pattern_max_length, 50"),
        (WatchRules(), WatchQuery("t/none", pattern=".*"), "MetadataError", "t/none"),
    ],
)
def test_what_cannot_be_watched_is_refused_with_a_sentence(
    rules: WatchRules, query: WatchQuery, error: str, message: str
) -> None:
    """It says what is in the way, and no watcher is left behind."""
    watches, refused = _opened(_catalog(), query, rules)

    assert isinstance(refused, messages.Refused)
    assert (refused.error, message in refused.message) == (error, True)
    assert watches.wanted() == ()


@pytest.mark.parametrize(
    ("properties", "message"),
    [
        ({"k\x00": "v"}, "property 'k\\x00': the key"),
        ({"k": "v" * 10}, "the value has 10 characters; 9 are permitted"),
        ({str(number): "v" for number in range(3)}, "3 properties were sent; one request may have 2"),
    ],
)
def test_properties_are_checked_before_a_lister_sees_them(properties: dict[str, str], message: str) -> None:
    """As those of a listing are; the request is refused for good, and nothing is listed for it."""
    watches = TopicListService(WatchRules(max_properties=2, max_property_length=9), interests=("created",))
    watches.open("c", WatchRequest(1, 7, WatchQuery("t/n", pattern=".*", properties=properties)))
    (refused,) = watches.take("c")

    assert isinstance(refused, messages.Refused)
    assert (refused.error, message in refused.message, watches.wanted()) == ("NotAllowedError", True, ())


def test_a_pattern_is_measured_without_its_scheme() -> None:
    """As Pulsar's watchers measure it (`docs/pulsar/protocol.md`)."""
    fits, too_long = (WatchQuery("t/n", pattern=f"persistent://t/n/{'a' * length}") for length in (46, 47))

    assert isinstance(_opened(_catalog(), fits)[1], messages.Snapshot)
    assert isinstance(_opened(_catalog(), too_long)[1], messages.Refused)


@pytest.mark.parametrize("collect", [tuple, list, iter])
def test_interests_may_come_in_any_collection(collect: Callable[[Iterable[EventKind]], Iterable[EventKind]]) -> None:
    """Beside the events that labels need by themselves."""
    watches = TopicListService(interests=collect(["properties"]))
    watches.open("c", WatchRequest(1, 7, _PROD))
    (wanted,) = watches.wanted()
    watches.listed(wanted.ticket, Listing(()), revision=0)
    watches.heard(TopicEvent(1, "properties", topic("a")))

    assert len(watches.wanted()) == 1


def test_a_listing_older_than_the_request_is_not_told() -> None:
    """The listing read a copy that lags behind: events between the two are kept nowhere."""
    watches = TopicListService(revision=10)
    watches.open("c", WatchRequest(1, 7, _ALL))
    (wanted,) = watches.wanted()
    watches.listed(wanted.ticket, Listing(()), revision=9)

    assert [type(said) for said in watches.take("c")] == [messages.Refused]


def test_a_listing_older_than_what_was_heard_before_it_began_is_not_told() -> None:
    """Events are kept for the listing under way, so one that begins later must have seen them."""
    watches = TopicListService()
    watches.open("c", WatchRequest(1, 7, _ALL))
    (first,) = watches.wanted()
    watches.listed(first.ticket, Listing(()), revision=0)
    watches.open("c", WatchRequest(2, 7, _ALL))
    (second,) = watches.wanted()
    watches.heard(TopicEvent(1, "created", topic("a")))
    watches.failed(second.ticket)
    watches.retry()
    (third,) = watches.wanted()
    watches.listed(third.ticket, Listing(()), revision=0)
    said = watches.take("c")

    assert topics_hash([topic("a")]) in [
        message.topics_hash for message in said if isinstance(message, messages.Snapshot)
    ]


def test_one_id_is_one_query() -> None:
    """Another query under the id of an open watcher is refused, and so is one watcher too many."""
    watches, _ = _opened(_catalog(), _ALL, WatchRules(watchers_max=1))
    watches.open("c", WatchRequest(2, 7, _PROD))
    watches.open("c", WatchRequest(3, 8, _PROD))

    refused = [said for said in watches.take("c") if isinstance(said, messages.Refused)]

    assert [said.error for said in refused] == ["NotAllowedError", "TooManyRequests"]
    assert refused[0].message == "watcher 7 watches '.*' already; close it first, or take another id"


def test_what_a_client_asks_without_reading_is_answered_once() -> None:
    """With the newest request: whatever it sends, no more waits than one answer of each kind for each watcher."""
    catalog = _catalog()
    watches, _ = _opened(catalog, _ALL)
    for request in range(2, 100):
        watches.open("c", WatchRequest(request, 7, _ALL))
        carry_out(watches, catalog)
        watches.open("c", WatchRequest(request + 1_000, 7, _PROD))
        watches.close("c", request, 8)

    assert [
        (type(said), said.request_id)
        for said in watches.take("c")
        if not isinstance(said, messages.Update | messages.Resync)
    ] == [
        (messages.Snapshot, 99),
        (messages.Refused, 1_099),
        (messages.Closed, 99),
    ]


def test_requests_of_one_watcher_wait_for_a_listing_together() -> None:
    """The newest is answered or refused, those before it with it."""
    catalog = _catalog()
    watches = TopicListService(revision=catalog.revision)
    for request in (1, 2, 3):
        watches.open("c", WatchRequest(request, 7, _ALL))
    (wanted,) = watches.wanted()
    watches.failed(wanted.ticket, "not now")

    assert watches.take("c") == (messages.Refused(3, 7, "MetadataError", "not now"),)


def test_answers_that_nobody_reads_are_bounded() -> None:
    """However many ids a client thinks of, no more than `queue_max` refusals wait, the newest ones."""
    watches = TopicListService(WatchRules(topic_list_watcher=False, queue_max=3))
    for number in range(10):
        watches.open("c", WatchRequest(number, number, _ALL))

    assert [said.watcher_id for said in watches.take("c")] == [7, 8, 9]
    assert watches.due() == ()


def test_a_query_is_one_of_two_kinds() -> None:
    """Neither, both and an empty selector are refused."""
    for wrong in ({}, {"pattern": ".*", "selector": _PROD.selector}, {"selector": ()}):
        with pytest.raises(ArgumentError, match="a watch of 't/n' needs a pattern or a selector"):
            WatchQuery("t/n", **wrong)  # type: ignore[arg-type]


def test_pending_changes_beyond_the_bound_are_given_up_all_together() -> None:
    """And nothing is noted until the whole list was sent."""
    pending = PendingChanges(limit=2)
    for name in "abc":
        pending.enter(name)
    pending.leave("d")

    assert (pending.is_overflown, pending.changes()) == (True, ((), ()))
    pending.clear()
    assert not pending


def test_a_watcher_that_parts_notes_nothing_more() -> None:
    """The others of its query go on, also one whose changes are equal."""
    topics, parted, staying = QueryTopics(_ALL, _ALL.matcher()), PendingChanges(), PendingChanges()
    topics.begin_listing(1)
    topics.listed(finished(topics.compared(Listing(()), rows=1)), revision=0)
    topics.join(parted)
    topics.join(staying)
    topics.part(parted)
    topics.heard(TopicEvent(1, "created", topic("a")))

    assert (bool(parted), staying.changes()) == (False, ((), (topic("a"),)))


_ALL, _A = WatchQuery("t/n", pattern=".*"), WatchQuery("t/n", pattern=".*/a")


def _listing(topics: Any) -> Listing:
    return Listing(topics)


def _watches(*queries: WatchQuery) -> TopicListService:
    watches = TopicListService(interests=Scripted.interests)
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
    assert watches.take("c") == (messages.Refused(0, 0, "MetadataError", sentence),)
    watches.open("c", WatchRequest(9, 9, _ALL))
    assert len(watches.wanted()) == 1


def test_names_that_are_made_as_they_are_read_are_told() -> None:
    """An empty set in their place would end subscriptions."""
    catalog = shelf()
    watches = _watches(_ALL)
    carry_out(watches, catalog, TopicLister(Scripted(lambda _: _listing(topic(name) for name in "ab")), catalog))
    (snapshot,) = watches.take("c")

    assert isinstance(snapshot, messages.Snapshot)
    assert snapshot.topics == (topic("a"), topic("b"))


def test_an_interruption_ends_all_listings() -> None:
    """The one at work and those after it: everybody who waits is refused for now."""

    def interrupt(_: str) -> Listing:
        raise KeyboardInterrupt

    catalog = shelf()
    watches = _watches(_ALL, _A)
    with pytest.raises(KeyboardInterrupt):
        carry_out(watches, catalog, TopicLister(Scripted(interrupt), catalog))

    assert [type(said) for said in watches.take("c")] == [messages.Refused, messages.Refused]
    assert watches.due() == ()
