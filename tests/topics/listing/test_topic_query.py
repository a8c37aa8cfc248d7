"""One way to ask: a query narrows names as it says of each topic by itself."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from lookup.topics.listing import TopicQuery, topics_hash


def topic(local: str, namespace: str = "t/n", domain: str = "persistent") -> str:
    """Return a complete name."""
    return f"{domain}://{namespace}/{local}"


_LOCALS = ("a", "ab", "b-1", "ab-partition-0", "ab-partition-1", "__change_events", "x__transaction_pending_ack")
_NAMES = sorted(
    topic(local, namespace, domain)
    for local in _LOCALS
    for namespace in ("t/n", "t/m")
    for domain in ("persistent", "non-persistent")
)
_QUERIES = st.builds(
    TopicQuery,
    st.just("t/n"),
    pattern=st.sampled_from([None, "", ".*", "t/n/a.*", "t/n/ab", ".*b.*", "persistent://t/n/[ab]", "(?i)T/N/A"]),
    include_system=st.booleans(),
)


@settings(deadline=None)
@given(_QUERIES, st.sampled_from(["persistent", "non-persistent", "all"]), st.sets(st.sampled_from(_NAMES)))
def test_a_query_is_left_the_names_that_belong_to_it(query: TopicQuery, mode: Any, names: set[str]) -> None:
    """As one topic after the other."""
    asked = replace(query, mode=mode)
    topics, belongs = asked.narrow(sorted(names)), asked.matcher()

    assert list(topics) == [name for name in sorted(names) if belongs(name, {})]
    assert topics.topics_hash == topics_hash(topics)


@given(_QUERIES, st.permutations(_NAMES))
def test_names_in_any_order_stay_in_it(query: TopicQuery, names: list[str]) -> None:
    """As a list that another server sent; it becomes no `TopicList`, whose hash would be that of a sorted one."""
    kept, belongs = query.among(names), query.matcher()

    assert kept == [name for name in names if belongs(name, {})]


def test_queries_that_ask_the_same_are_equal() -> None:
    """Whatever the order of properties; the list that a client has does not count."""
    first = TopicQuery("t/n", properties={"a": "1", "b": "2"})
    second = TopicQuery("t/n", properties={"b": "2", "a": "1"}, topics_hash="x")

    assert (first, hash(first)) == (second, hash(second))
    assert first.looked_up() == replace(first, pattern=".*").looked_up()
    assert first != TopicQuery("t/n", properties={"a": "1"})
    assert first != second.looked_up() == first.looked_up()


def test_a_query_keeps_the_properties_it_was_made_with() -> None:
    """Those who made it cannot change it afterwards: watches are found by their queries."""
    properties = {"a": "1"}
    query = TopicQuery("t/n", properties=properties)
    properties["a"] = "2"

    assert query.properties == {"a": "1"}
    with pytest.raises(TypeError):
        query.properties["a"] = "3"  # type: ignore[index]  # which is the point
