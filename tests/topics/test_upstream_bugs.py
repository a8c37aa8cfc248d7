"""The bugs that Pulsar's topic list watchers had, one test each, named after the issue.

Left out are those of answers to polls and of ids of watchers, which a watch over HTTP does not have; of connections
that are lost: `tests/serve/test_watching.py`.

Source: `docs/pulsar/protocol.md`.
"""

from __future__ import annotations

import pytest

from lookup.settings import ListingSection
from lookup.topics.catalog import Catalog
from lookup.topics.client import ServerLists
from lookup.topics.listing import TopicLister, TopicQuery
from lookup.topics.watching import Update, Watch, WatchedTopics
from lookup_policies.listers import Default
from tests.topics.catalogs import heard
from tests.topics.filled import HERE, catalog_of, name_of


def _watched(catalog: Catalog, pattern: str = f"{HERE}/a.*", **limits: int) -> WatchedTopics:
    lister = TopicLister(Default(), catalog, ListingSection(**limits))  # type: ignore[arg-type]  # they are whole
    return WatchedTopics(Watch((TopicQuery(HERE, pattern=pattern),)), catalog, lister, is_driven=False)


def _lists() -> ServerLists:
    return ServerLists(Watch((TopicQuery(HERE, pattern=f"{HERE}/a.*"),)), ["one"])


@pytest.mark.parametrize("pattern", [f"{HERE}/a.*", f"persistent://{HERE}/a.*", f"^persistent://{HERE}/a.*$"])
def test_20714_a_watch_is_of_a_pattern_with_or_without_scheme(pattern: str) -> None:
    """The namespace is that of the request, and never read out of the pattern."""
    catalog = catalog_of(name_of("a"), name_of("b"))
    topics, events = _watched(catalog, pattern), heard(catalog)
    catalog.create(name_of("a2"))
    catalog.create(name_of("b2"))

    assert topics.changes(events, "m") == Update("m", [], [name_of("a2")])


@pytest.mark.parametrize("issue", [21852, 21853, 25020, 25191])
def test_what_happens_between_a_list_and_its_changes_is_not_lost(issue: int) -> None:
    """The list has a mark, and all changes since are found by it."""
    catalog = catalog_of(name_of("a"), name_of("a1"))
    topics = _watched(catalog)
    listed = topics.listed()
    catalog.delete(name_of("a1"))
    catalog.create(name_of(f"a{issue}"))
    update = topics.since(listed.mark)

    assert update == Update(topics.listed().mark, [name_of("a1")], [name_of(f"a{issue}")])
    assert topics.since(update.mark) == Update(update.mark, [], [])


@pytest.mark.parametrize("issue", [22854, 23750, 24104])
def test_a_pattern_that_a_server_does_not_evaluate_is_the_client_s(issue: int) -> None:
    """Too long, or any if patterns are off: every topic is sent, which is said, and the client filters."""
    limits = {"pattern_max_length": 3} if issue == 23750 else {"pattern_filtering": False}
    topics, lists = _watched(catalog_of(name_of("a"), name_of("b")), **limits), _lists()
    listed = topics.listed()
    lists.take("one", listed)

    assert (listed.topics, listed.filtered) == ((name_of("a"), name_of("b")), False)
    assert lists.topics == {name_of("a")}


def test_25192_system_topics_are_not_watched() -> None:
    """So no client subscribes to Pulsar's own topics."""
    catalog = catalog_of(name_of("a"), name_of("__change_events"), name_of("x__transaction_pending_ack"))
    topics, events = _watched(catalog, ".*"), heard(catalog)
    catalog.create(name_of("__transaction_buffer_snapshot-partition-0"))

    assert topics.listed().topics == (name_of("a"),)
    assert topics.changes(events, "m") == Update("m", [], [])


def test_24833_and_25070_a_slow_client_is_sent_the_list_in_place_of_too_many_changes() -> None:
    """Above `queue_max` they are not known any more; by default these are 10,000, as Pulsar bounds them."""
    catalog = catalog_of(name_of("a"))
    topics = _watched(catalog, queue_max=3)
    mark = topics.listed().mark
    for number in range(4):
        catalog.create(name_of(f"a{number}"))

    assert topics.since(mark) is None
    assert ListingSection().queue_max == 10_000


def test_a_topic_that_is_deleted_and_created_again_left_and_came() -> None:
    """Both lists of the update name it, the removed one first: the old subscription went with the old topic."""
    catalog = catalog_of(name_of("a"))
    topics, events, lists = _watched(catalog), heard(catalog), _lists()
    lists.take("one", topics.listed())
    catalog.delete(name_of("a"))
    catalog.create(name_of("a"))
    update = topics.changes(events, "m")

    assert update == Update("m", [name_of("a")], [name_of("a")])
    assert lists.take("one", update) == ({name_of("a")}, {name_of("a")})
