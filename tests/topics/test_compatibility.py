"""PIP-145's compatibility matrix: clients old or new, servers old or new, filtering on or off.

Every cell ends with the same subscriptions; they differ in how many names travel and in who compares them.
"""

from __future__ import annotations

import pytest

from lookup.topics.catalog import Catalog
from lookup.topics.client import Listed, Poll, Subscriber, TopicSet
from lookup.topics.listing import ListRequest, TopicsPattern
from lookup.topics.rules import Pace, WatchRules
from lookup.topics.watching import Snapshot, WatchRequest
from tests.topics.exchange import Exchange, Server
from tests.topics.shelf import shelf, topic

_PATTERN = "t/n/a.*"
_ON, _OFF = WatchRules(), WatchRules(pattern_filtering=False)
_POLLED_ON = WatchRules(topic_list_watcher=False)
_POLLED_OFF = WatchRules(topic_list_watcher=False, pattern_filtering=False)


def _catalog() -> Catalog:
    return shelf("a1", "a2", "b1", "b2", "b3", "__change_events")


def _new_client() -> Subscriber:
    return Subscriber(TopicSet(pattern=_PATTERN), own_namespace="t/n", pace=Pace(grace_us=0))


def _old_client(server: Server) -> set[str]:
    """Ask without the new fields, ignore them in the answer, and filter."""
    answer = server.poll(Poll("t/n", request_id=1))
    assert answer.changed
    return set(TopicsPattern(_PATTERN).filter(answer.topics))


def _names_sent(exchange: Exchange) -> int:
    return sum(len(said.topics) for said in exchange.said if isinstance(said, Listed | Snapshot))


@pytest.mark.parametrize("is_old", [True, False], ids=["old server", "new server"])
@pytest.mark.parametrize("rules", [_ON, _OFF], ids=["filtering on", "filtering off"])
def test_an_old_client_filters_by_itself(rules: WatchRules, *, is_old: bool) -> None:
    """It sends no pattern, is sent every topic, and finds its own."""
    server = Server(_catalog(), rules=rules, is_old=is_old)

    assert _old_client(server) == {topic("a1"), topic("a2")}


def test_a_new_server_tells_an_old_client_everything() -> None:
    """No pattern in the request: nothing is filtered, and nothing is called unchanged."""
    server = Server(_catalog())
    answer = server.lister.answer(ListRequest("t/n"))

    assert (len(answer.topics), answer.filtered, answer.changed) == (5, False, True)


@pytest.mark.parametrize(
    ("is_old", "rules", "names_sent", "watches"),
    [
        pytest.param(True, _ON, 5, 0, id="old server, filtering on"),
        pytest.param(True, _OFF, 5, 0, id="old server, filtering off"),
        pytest.param(False, _ON, 2, 1, id="new server, filtering on"),
        pytest.param(False, _OFF, 5, 1, id="new server, filtering off"),
        pytest.param(False, _POLLED_ON, 2, 0, id="new server without watchers, filtering on"),
        pytest.param(False, _POLLED_OFF, 5, 0, id="new server without watchers, filtering off"),
    ],
)
def test_a_new_client_ends_with_its_topics_at_every_server(
    rules: WatchRules, names_sent: int, watches: int, *, is_old: bool
) -> None:
    """It watches if it can, else polls, and filters what comes unfiltered; only a server that filters sends less."""
    exchange = Exchange(_new_client(), Server(_catalog(), rules=rules, is_old=is_old))

    assert exchange.subscribed == {topic("a1"), topic("a2")}
    assert (_names_sent(exchange), exchange.count(WatchRequest)) == (names_sent, watches)


@pytest.mark.parametrize("rules", [_ON, _OFF, _POLLED_ON, _POLLED_OFF])
@pytest.mark.parametrize("is_old", [True, False], ids=["old server", "new server"])
def test_changes_reach_a_new_client_at_every_server(rules: WatchRules, *, is_old: bool) -> None:
    """One that comes and one that goes, within a period of polling."""
    server = Server(_catalog(), rules=rules, is_old=is_old)
    exchange = Exchange(_new_client(), server)
    server.catalog.create(topic("a3"))
    server.catalog.delete(topic("a1"))
    exchange.wait(60)

    assert exchange.subscribed == {topic("a2"), topic("a3")}


@pytest.mark.parametrize(("is_old", "names"), [(True, 5), (False, 0)], ids=["old server", "new server"])
def test_an_unchanged_list_is_not_sent_again_by_a_new_server(names: int, *, is_old: bool) -> None:
    """The client sends the hash of the last answer, if there was one."""
    exchange = Exchange(_new_client(), Server(_catalog(), rules=_POLLED_ON, is_old=is_old))
    before = _names_sent(exchange)
    exchange.wait(60)

    assert exchange.count(Poll) == 2
    assert _names_sent(exchange) - before == names
