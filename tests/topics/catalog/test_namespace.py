"""The topics of one namespace in memory."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from lookup.model.catalog import Equals, Exists, TopicEntry
from lookup.topics.catalog.namespace import NamespaceTopics
from tests.topics.catalogs import topic

_PAIRS = st.dictionaries(st.sampled_from("ab"), st.sampled_from("xy"), max_size=2)
_NAMES = st.builds(topic, st.sampled_from(["q", "r", "p-partition-0", "p-partition-1"]), st.just("persistent"))
_ENTRIES = st.builds(TopicEntry, _NAMES, _PAIRS, _PAIRS)
_MANY = st.lists(_ENTRIES, max_size=4, unique_by=lambda entry: entry.name)


def _seen(topics: NamespaceTopics) -> tuple[object, ...]:
    found = (
        topics.select((Exists("a"),)),
        topics.select((Equals("a", "x"),)),
        topics.with_properties("all", {"a": "x"}),
    )
    return topics.names("all"), list(topics.entries()), found, topics.a_partition(topic("p"))


@given(_MANY, st.integers(0, 4))
def test_many_topics_at_once_are_those_one_by_one(entries: list[TopicEntry], first: int) -> None:
    """In as many batches as there are, whatever is asked between them and changed afterwards."""
    at_once, one_by_one = NamespaceTopics(), NamespaceTopics()
    at_once.extend(entries[:first])
    # Answers are kept, and must not be given again.
    _seen(at_once)
    at_once.extend(entries[first:])
    for entry in entries:
        one_by_one.put(entry)

    assert _seen(at_once) == _seen(one_by_one)
    for entry in entries[::2]:
        at_once.remove(entry.name)
        one_by_one.remove(entry.name)
        assert _seen(at_once) == _seen(one_by_one)
