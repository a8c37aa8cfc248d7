"""Watches in threads: writers hand events in, servers open, list and take; every list ends right."""

from __future__ import annotations

import os
import time
from concurrent.futures import ThreadPoolExecutor

import pytest

from lookup.model.catalog import Equals
from lookup.topics.catalog import Catalog
from lookup.topics.client import ListCopy
from lookup.topics.listing import TopicLister
from lookup.topics.watching import (
    Resync,
    Snapshot,
    TopicListService,
    Update,
    WatchQuery,
    WatchRequest,
    carry_out,
)
from tests.topics.catalogs import heard
from tests.topics.shelf import Everything, by_rule, shelf, topic

#: For a longer run by hand, s.
_SECONDS = float(os.environ.get("CATALOG_THREADS_S", "1"))
_LATE = 30.0
_QUERIES = (
    WatchQuery("t/n", pattern=".*"),
    WatchQuery("t/n", pattern="t/n/a-1.*"),
    WatchQuery("t/n", selector=(Equals("env", "prod"),)),
)


@pytest.mark.usefixtures("many_switches")
@pytest.mark.parametrize("by_lister", [False, True])
def test_writers_and_servers_in_threads(*, by_lister: bool) -> None:
    """Each server has connections of its own, which come and go; what was sent last has the hash of the list."""
    catalog, ends = shelf(), time.monotonic() + _SECONDS
    lister = TopicLister(Everything(), catalog) if by_lister else None
    service = TopicListService(interests=Everything.interests if by_lister else None, revision=catalog.revision)
    catalog.subscribe(service.heard)

    def write(side: str) -> None:
        number = 0
        while time.monotonic() < ends:
            name = topic(f"{side}-{number % 30}")
            if catalog.entry(name) is None:
                catalog.create(name, labels={"env": "prod"} if number % 3 else {})
            else:
                catalog.delete(name)
            number += 7

    def serve(server: int) -> dict[int, ListCopy]:
        copies, round_ = dict[int, ListCopy](), 0
        while time.monotonic() < ends:
            if round_ % 20 == 0:
                service.disconnected(server)
                copies = _opened(service, server)
            _serve(service, catalog, lister, server, copies)
            round_ += 1
        return copies

    with ThreadPoolExecutor(5) as pool:
        writing = [pool.submit(write, side) for side in "ab"]
        serving = [pool.submit(serve, server) for server in range(3)]
        for written in writing:
            written.result(_LATE)
        lists = [served.result(_LATE) for served in serving]
    for server, copies in enumerate(lists):
        for _ in range(3):
            service.retry()
            _serve(service, catalog, lister, server, copies)
        assert [copies[number].topics for number in range(3)] == [by_rule(catalog, query) for query in _QUERIES]


def _opened(service: TopicListService, server: int) -> dict[int, ListCopy]:
    for number, query in enumerate(_QUERIES):
        service.open(server, WatchRequest(number, number, query))
    return {number: ListCopy() for number in range(len(_QUERIES))}


def _serve(
    service: TopicListService, catalog: Catalog, lister: TopicLister | None, server: int, copies: dict[int, ListCopy]
) -> None:
    carry_out(service, catalog, lister)
    service.due()
    for message in service.take(server):
        assert isinstance(message, Snapshot | Update | Resync)
        copies[message.watcher_id].take(message)
        assert copies[message.watcher_id].topics_hash == message.topics_hash


@pytest.mark.parametrize("by_lister", [False, True])
def test_a_listing_ahead_of_the_events_does_not_hide_that_a_topic_is_another_one(*, by_lister: bool) -> None:
    """Another thread may hand events in after the listing that has seen them."""
    catalog = shelf("a")
    lister = TopicLister(Everything(), catalog) if by_lister else None
    service = TopicListService(interests=Everything.interests if by_lister else None, revision=catalog.revision)
    events, copies = heard(catalog), _opened(service, 0)
    _serve(service, catalog, lister, 0, copies)
    catalog.delete(topic("a"))
    catalog.create(topic("a"))
    service.open(0, WatchRequest(9, 0, _QUERIES[0], copies[0].topics_hash))
    carry_out(service, catalog, lister)
    for event in events:
        service.heard(event)
    carry_out(service, catalog, lister)
    (update,) = (message for message in service.take(0) if isinstance(message, Update))

    assert (update.removed, update.added) == ((topic("a"),), (topic("a"),))
