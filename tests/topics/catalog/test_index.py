"""The index of labels: step by step it equals one that is built afresh, and it answers what the rule says."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import suppress

from hypothesis import given
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, rule

from lookup.model.catalog import Equals, Exists, In, Selector, TopicEntry, selects
from lookup.topics.catalog import Catalog
from lookup.topics.catalog.namespace import NamespaceTopics
from tests.topics.catalogs import NAMESPACE, entries, index, parts, rebuilt, topic

_KEYS, _VALUES = st.sampled_from("abc"), st.sampled_from("xyz")
_LABELS = st.dictionaries(_KEYS, _VALUES)
_TERMS = st.one_of(
    st.builds(Equals, _KEYS, _VALUES), st.builds(In, _KEYS, st.lists(_VALUES).map(tuple)), st.builds(Exists, _KEYS)
)
_SELECTORS = st.lists(_TERMS, min_size=1, max_size=3).map(tuple)


def _filled(topics: Sequence[Mapping[str, str]]) -> NamespaceTopics:
    found = NamespaceTopics()
    for number, labels in enumerate(topics):
        found.put(TopicEntry(topic(f"{number:02}"), {}, labels))
    return found


@given(st.lists(_LABELS, max_size=60), _SELECTORS)
def test_a_query_finds_what_the_rule_says(topics: list[dict[str, str]], selector: Selector) -> None:
    """Whatever the order of conditions and the number of topics of each, as if each topic had been looked at."""
    found = _filled(topics).select(selector)

    assert list(found) == [topic(f"{number:02}") for number, labels in enumerate(topics) if selects(selector, labels)]


class _Changes(RuleBasedStateMachine):
    """Topics come, go and change their labels in any order, some of it in blocks that fail."""

    def __init__(self) -> None:
        super().__init__()
        self.catalog = Catalog()
        self.catalog.create_namespace(NAMESPACE)

    @rule(name=st.sampled_from("pqrs"), partitions=st.sampled_from([None, 1, 2]), labels=_LABELS)
    def create(self, name: str, partitions: int | None, labels: dict[str, str]) -> None:
        """Add a topic that is not there."""
        if not parts(self.catalog, topic(name)):
            self.catalog.create(topic(name), partitions=partitions, labels=labels)

    @rule(name=st.sampled_from("pqrs"), labels=_LABELS)
    def set(self, name: str, labels: dict[str, str]) -> None:
        """Merge labels into those of a topic."""
        if parts(self.catalog, topic(name)):
            self.catalog.set_pairs("labels", topic(name), labels)

    @rule(name=st.sampled_from("pqrs"), keys=st.sets(_KEYS, min_size=1))
    def remove(self, name: str, keys: set[str]) -> None:
        """Remove some labels of a topic."""
        if parts(self.catalog, topic(name)):
            self.catalog.remove_pairs("labels", topic(name), keys)

    @rule(name=st.sampled_from("pqrs"))
    def delete(self, name: str) -> None:
        """Remove a topic."""
        if parts(self.catalog, topic(name)):
            self.catalog.delete(topic(name))

    @rule(name=st.sampled_from("pqrs"), labels=_LABELS)
    def fail(self, name: str, labels: dict[str, str]) -> None:
        """Write in a block that raises in the end."""
        with suppress(ZeroDivisionError), self.catalog.together():
            self.create(name, None, labels)
            self.catalog.set_pairs("labels", topic(name), labels)
            self.catalog.delete(topic(name))
            _ = 1 / 0

    @invariant()
    def index_equals_a_rebuild(self) -> None:
        """No topic is missing from a posting, and none is left behind."""
        assert index(self.catalog) == rebuilt(self.catalog)

    @invariant()
    def answers_follow_the_rule(self) -> None:
        """Queries find what a look at each topic finds, sorted."""
        selector = (Exists("a"), In("b", ("x", "y")))

        expected = sorted(entry.name for entry in entries(self.catalog) if selects(selector, entry.labels))
        assert list(self.catalog.select(NAMESPACE, selector)) == expected


TestChanges = _Changes.TestCase
