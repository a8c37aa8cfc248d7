"""Many watchers of one query: a listing reaches them one after the other, and each has one list at any time."""

from __future__ import annotations

from random import Random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from lookup.model.catalog import EventKind
from lookup.topics.catalog import Catalog
from lookup.topics.client.list_copy import ListCopy
from lookup.topics.listing import TopicLister, topics_hash
from lookup.topics.rules import WatchRules
from lookup.topics.watching import (
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
from tests.topics.shelf import shelf, topic

_QUERY = WatchQuery("t/n", pattern=".*")
_CLIENTS, _LOCALS = 6, "abcdef"
_INTERESTS: list[frozenset[EventKind] | None] = [None, frozenset({"created", "deleted"})]


class _Clients:
    """Watchers of one query, and the list of each as its messages make it."""

    def __init__(self, catalog: Catalog, interests: frozenset[EventKind] | None, queue_max: int) -> None:
        self.catalog = catalog
        self.lister = TopicLister(Default(), catalog)
        self.service = TopicListService(WatchRules(queue_max=queue_max), interests=interests, revision=catalog.revision)
        catalog.subscribe(self.service.heard)
        self.copies: dict[int, ListCopy] = {}
        #: the latest request of each
        self.requests = [0] * _CLIENTS

    def open(self, client: int) -> None:
        """Open a watcher, or refresh it."""
        self.requests[client] += 1
        self.service.open(client, WatchRequest(self.requests[client], 1, _QUERY))

    def close(self, client: int) -> None:
        """Close a watcher."""
        self.service.disconnected(client)
        self.copies.pop(client, None)

    def take(self, client: int, limit: int | None = None) -> None:
        """Take messages; after each of them the list has the hash that it says."""
        for message in self.service.take(client, limit):
            if isinstance(message, Snapshot):
                self.copies[client] = ListCopy()
            if isinstance(message, Snapshot | Update | Resync):
                self.copies[client].take(message)
                assert topics_hash(self.copies[client].topics) == message.topics_hash

    def act(self, dice: Random) -> None:
        """Let something happen, or nothing."""
        client = dice.randrange(_CLIENTS)
        match dice.randrange(9):
            case 0:
                self.open(client)
            case 1:
                self.change(dice)
            case 2:
                self.take(client, dice.choice([1, None]))
            case 3 if dice.random() < 0.3:
                self.close(client)
            case 4 if dice.random() < 0.3:
                # An event that is not heard.
                self.service.missed(self.catalog.revision + 1)
                self.catalog.create_namespace(f"t/other-{self.catalog.revision}")

    def change(self, dice: Random) -> None:
        """Create or delete a topic."""
        name = topic(dice.choice(_LOCALS))
        if self.catalog.entry(name) is None:
            self.catalog.create(name)
        else:
            self.catalog.delete(name)


@pytest.mark.parametrize("interests", _INTERESTS)
@settings(deadline=None, max_examples=150)
@given(st.integers(0, 1 << 32), st.sampled_from([2, 100]), st.sampled_from([1, 45]))
def test_each_watcher_has_one_list_at_any_time(
    interests: frozenset[EventKind] | None, seed: int, queue_max: int, rows: int
) -> None:
    """Whatever clients do, and however the list changes, between two steps of any number of listings."""
    dice = Random(seed)
    clients = _Clients(shelf("a", "b"), interests, queue_max)
    service = clients.service
    under_way = [carrying_out(service, clients.catalog, clients.lister, rows=rows) for _ in range(2)]
    for _ in range(120):
        clients.act(dice)
        number = dice.randrange(2)
        if next(under_way[number], _END) is _END:
            under_way[number] = carrying_out(service, clients.catalog, clients.lister, rows=rows)
    for steps in under_way:
        steps.close()
    for _ in range(2):
        service.retry()
        carry_out(service, clients.catalog, clients.lister)
    for client in range(_CLIENTS):
        clients.take(client)

    assert not service.due()
    for copy in clients.copies.values():
        assert sorted(copy.topics) == list(clients.catalog.topics("t/n"))


_END = object()
