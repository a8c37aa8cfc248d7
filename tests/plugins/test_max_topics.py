"""The filter `max-topics`."""

from __future__ import annotations

from lookup.testing import cluster, request
from lookup_policies.max_topics import MaxTopics
from tests.plugins.worlds import kept


def test_a_broker_at_the_limit_is_dropped() -> None:
    """Topics equal to the limit are too many; a broker without report has none."""
    view = cluster("b1", "b2", "b3", "b4", topics={"b1": 49_999, "b2": 50_000, "b3": 50_001})

    assert kept(MaxTopics(), request(), view) == {"b1", "b4"}


def test_the_limit_is_a_parameter() -> None:
    """A lower limit drops brokers earlier and is named in the explanation."""
    view = cluster("b1", "b2", topics={"b1": 2, "b2": 1})
    part = MaxTopics(max_topics=2)

    assert kept(part, request(), view) == {"b2"}
    assert part.detail(request(), view.brokers[0], view) == "serves 2 topics, at most 1 leave room for one more"
