"""The bugs that Pulsar's topic list watchers had, one test each, named after the issue.

#23434 asked for more logging, which is no behaviour of a state machine.

Source: `docs/pulsar/protocol.md`.
"""

from __future__ import annotations

from collections.abc import Callable

import pytest

from lookup.errors import ArgumentError
from lookup.model.catalog import Listing
from lookup.topics.catalog import Catalog
from lookup.topics.client import Poll, Subscribe, Subscriber, TopicSet, Unsubscribe
from lookup.topics.listing import topics_hash
from lookup.topics.rules import QUEUE_MAX, Pace, WatchRules
from lookup.topics.watching import TopicListService, WatchQuery, WatchRequest, carry_out, messages
from tests.topics.exchange import SECOND, Exchange, Server
from tests.topics.shelf import shelf, topic

_QUERY = WatchQuery("t/n", pattern="persistent://t/n/a.*")


def _watching(catalog: Catalog, rules: WatchRules | None = None) -> tuple[TopicListService, Callable[[], None]]:
    """Return watches that hear of every change, and what ends that."""
    watches = TopicListService(rules, revision=catalog.revision)
    return watches, catalog.subscribe(watches.heard)


def _client(pattern: str = "t/n/a.*", **pace: int) -> Subscriber:
    return Subscriber(TopicSet(pattern=pattern), own_namespace="t/n", pace=Pace(**pace))


@pytest.mark.parametrize("pattern", ["t/n/a.*", "persistent://t/n/a.*", "^persistent://t/n/a.*$"])
def test_20714_a_watcher_is_created_for_a_pattern_with_or_without_scheme(pattern: str) -> None:
    """The namespace is that of the request, and never read out of the pattern."""
    exchange = Exchange(_client(pattern), Server(shelf("a", "b")))

    assert exchange.subscribed == {topic("a")}
    assert not any(isinstance(said, messages.Refused) for said in exchange.said)


def test_20779_a_watching_client_still_looks_by_itself() -> None:
    """A change that the server never heard of is found at the next period."""
    server = Server(shelf("a"))
    exchange = Exchange(_client(), server)
    server.leave()
    server.catalog.create(topic("a2"))
    exchange.wait(59)
    assert exchange.subscribed == {topic("a")}
    exchange.wait(1)

    assert exchange.subscribed == {topic("a"), topic("a2")}


@pytest.mark.parametrize("looks_first", [True, False])
def test_21852_a_topic_created_while_the_watcher_connects_is_not_lost(*, looks_first: bool) -> None:
    """Before the listing looks it is listed, after it has looked the event is kept for it."""
    catalog = shelf("a")
    watches, _ = _watching(catalog)
    watches.open("c", WatchRequest(1, 1, _QUERY))
    (wanted,) = watches.wanted()
    seen = (catalog.topics("t/n"), catalog.revision) if looks_first else None
    catalog.create(topic("a2"))
    names, revision = seen or (catalog.topics("t/n"), catalog.revision)
    watches.listed(wanted.ticket, Listing(names), revision=revision)
    (snapshot,) = watches.take("c")

    assert snapshot == messages.Snapshot(1, 1, (topic("a"), topic("a2")), topics_hash([topic("a"), topic("a2")]))


def test_21853_a_topic_created_while_the_client_reconnects_is_not_lost() -> None:
    """The hash it sends is not the set's any more, so it is sent the whole of it."""
    server = Server(shelf("a"))
    exchange = Exchange(_client(), server)
    exchange.lose_connection()
    server.catalog.create(topic("a2"))
    exchange.connect()

    assert exchange.subscribed == {topic("a"), topic("a2")}


def test_21853_a_reconnecting_client_with_the_right_hash_is_sent_nothing() -> None:
    """The last hash is sent along, and answered with an empty list."""
    exchange = Exchange(_client(), Server(shelf("a")))
    exchange.lose_connection()
    exchange.connect()

    assert exchange.said[-1] == messages.Snapshot(
        exchange.said[-1].request_id, 1, (), topics_hash([topic("a")]), changed=False
    )
    assert exchange.count(Unsubscribe) == 0


@pytest.mark.parametrize("issue", [22854, 24104])
def test_22854_and_24104_topics_are_discovered_where_the_server_evaluates_no_patterns(issue: int) -> None:
    """The watch is refused for good, and the client polls and filters by itself."""
    server = Server(shelf("a", "b"), rules=WatchRules(pattern_filtering=False))
    exchange = Exchange(_client(), server)
    server.catalog.create(topic(f"a{issue}"))
    exchange.wait(60)

    assert exchange.subscribed == {topic("a"), topic(f"a{issue}")}
    assert (exchange.count(WatchRequest), exchange.count(Poll)) == (1, 2)


def test_23750_a_pattern_that_is_too_long_is_refused_once_and_polled_from_then_on() -> None:
    """The refusal names both lengths; no request follows and nothing is retried."""
    pattern = "t/n/a.*" + "|t/n/b" * 10
    exchange = Exchange(_client(pattern), Server(shelf("a", "b", "c")))
    exchange.wait(180)
    (refused,) = [said for said in exchange.said if isinstance(said, messages.Refused)]

    assert refused.error == "NotAllowedError"
    assert refused.message == f"pattern {pattern!r} has 67 characters, more than pattern_max_length, 50"
    assert exchange.subscribed == {topic("a"), topic("b")}
    assert exchange.count(Poll) == 4


@pytest.mark.parametrize("issue", [25020, 25191])
def test_25020_and_25191_events_lost_with_a_session_are_made_up_for(issue: int) -> None:
    """The next event shows the gap, or a look at the revision does; one update has all differences."""
    catalog = shelf("a", "a1")
    watches, leave = _watching(catalog)
    watches.open("c", WatchRequest(1, 1, _QUERY))
    carry_out(watches, catalog)
    watches.take("c")
    leave()
    catalog.delete(topic("a1"))
    catalog.create(topic(f"a{issue}"))
    if issue == 25020:
        catalog.subscribe(watches.heard)
        catalog.create(topic("other"))
    else:
        watches.missed(catalog.revision)
    carry_out(watches, catalog)
    (update,) = watches.take("c")

    after = topics_hash([topic("a"), topic(f"a{issue}")])
    assert update == messages.Update(1, (topic("a1"),), (topic(f"a{issue}"),), after)


def test_25192_system_topics_are_neither_watched_nor_hashed() -> None:
    """So the hashes of client and server agree, and no client subscribes to Pulsar's own topics."""
    server = Server(shelf("a", "__change_events", "x__transaction_pending_ack"))
    exchange = Exchange(_client(".*"), server)
    server.catalog.create(topic("__transaction_buffer_snapshot-partition-0"))
    exchange.wait(120)

    assert exchange.subscribed == {topic("a")}
    assert [said.topics for said in exchange.said] == [(topic("a"),), (), ()]


def test_25188_a_refresh_is_answered_from_a_new_listing() -> None:
    """The same watcher id asked for again is no error: the list is made anew, and sent if the hash differs."""
    catalog = shelf("a")
    watches, leave = _watching(catalog)
    watches.open("c", WatchRequest(1, 1, _QUERY))
    carry_out(watches, catalog)
    watches.take("c")
    leave()
    catalog.create(topic("a2"))
    watches.open("c", WatchRequest(2, 1, _QUERY, topics_hash([topic("a")])))
    carry_out(watches, catalog)
    said = watches.take("c")

    assert said[-1] == messages.Snapshot(2, 1, (topic("a"), topic("a2")), topics_hash([topic("a"), topic("a2")]))


def test_24833_a_slow_client_costs_no_more_than_its_queue() -> None:
    """Beyond it nothing is kept, and the whole set is sent in its place when it reads again."""
    catalog = shelf("a")
    watches, _ = _watching(catalog, WatchRules(queue_max=3))
    watches.open("c", WatchRequest(1, 1, _QUERY))
    carry_out(watches, catalog)
    watches.take("c")
    for number in range(10):
        catalog.create(topic(f"a{number}"))
    said = watches.take("c")

    assert said == (messages.Resync(1, tuple(catalog.topics("t/n")), topics_hash(catalog.topics("t/n"))),)


def test_25070_the_queue_of_a_watcher_is_bounded_by_default() -> None:
    """As Pulsar bounds it; a bound of nothing is refused."""
    assert WatchRules().queue_max == QUEUE_MAX == 10_000
    with pytest.raises(ArgumentError, match="queue_max is 0, and must be 1 or more"):
        WatchRules(queue_max=0)


def test_a_topic_that_is_deleted_and_created_again_is_subscribed_to_again() -> None:
    """Both lists of the update name it, the removed one first: the old subscription went with the old topic."""
    server = Server(shelf("a"))
    exchange = Exchange(_client(), server)
    server.catalog.delete(topic("a"))
    server.catalog.create(topic("a"))
    exchange.settle()

    assert exchange.said[-1] == messages.Update(1, (topic("a"),), (topic("a"),), topics_hash([topic("a")]))
    assert exchange.done[-1] == Subscribe(topic("a"), again=True)


def test_a_topic_that_is_gone_is_given_up_after_its_grace() -> None:
    """Not at once: clients that unsubscribe delete their subscription."""
    server = Server(shelf("a", "a2"))
    exchange = Exchange(_client(grace_us=30 * SECOND), server)
    server.catalog.delete(topic("a2"))
    exchange.wait(29)
    assert exchange.subscribed == {topic("a"), topic("a2")}
    exchange.wait(2)

    assert exchange.subscribed == {topic("a")}
