"""The topics of one namespace in memory."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lookup.model.catalog import Equals, Selector, TopicEntry
from lookup.topics.catalog import namespace
from lookup.topics.catalog.namespace import NamespaceTopics
from tests.topics.catalogs import topic

_PAIRS = st.dictionaries(st.sampled_from("ab"), st.sampled_from("xy"), max_size=2)
_NAMES = st.builds(topic, st.sampled_from(["q", "r", "p-partition-0", "p-partition-1"]), st.just("persistent"))
_ENTRIES = st.builds(TopicEntry, _NAMES, _PAIRS, _PAIRS)
_MANY = st.lists(_ENTRIES, max_size=4, unique_by=lambda entry: entry.name)


def _seen(topics: NamespaceTopics) -> tuple[object, ...]:
    found = topics.selected((Equals("a", "x"),)), topics.with_properties("all", {"a": "x"})
    return topics.names("all"), list(topics.entries()), topics.labels(), found, topics.a_partition(topic("p"))


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


def _of_envs(n_topics: int) -> NamespaceTopics:
    """Return a namespace of topics in production, one of which is a test as well."""
    topics = NamespaceTopics()
    topics.extend([TopicEntry(topic(f"q-{number}"), {"env": "prod"}, {"env": "prod"}) for number in range(n_topics)])
    topics.put(TopicEntry(topic("t"), {"env": "test"}, {"env": "test"}))
    return topics


_PROD: Selector = (Equals("env", "prod"),)
_TEST: Selector = (Equals("env", "test"),)


def test_an_answer_longer_than_the_room_is_kept_while_it_is_the_latest(monkeypatch: pytest.MonkeyPatch) -> None:
    """Of labels and of properties; another question takes its place, and may have it taken again."""
    monkeypatch.setattr(namespace, "_KEPT_NAMES", 3)
    monkeypatch.setattr(namespace, "_KEPT_TIMES", 0)
    topics = _of_envs(5)
    answer, described = topics.selected(_PROD), topics.with_properties("all", {"env": "prod"})

    assert len(answer) == len(described) == 5
    assert topics.selected(_PROD) is answer
    assert topics.with_properties("all", {"env": "prod"}) is described
    short = topics.selected(_TEST)
    assert topics.selected(_TEST) is short
    again = topics.selected(_PROD)
    assert again == answer
    assert again is not answer
    assert topics.selected(_PROD) is again


def test_the_answer_that_was_not_asked_for_longest_goes_first(monkeypatch: pytest.MonkeyPatch) -> None:
    """Not the first that was made; each takes room by its names, and by one for the question."""
    monkeypatch.setattr(namespace, "_KEPT_NAMES", 8)
    monkeypatch.setattr(namespace, "_KEPT_TIMES", 0)
    topics = _of_envs(5)
    production, tests = topics.selected(_PROD), topics.selected(_TEST)
    # Both fit, and are asked for in turns.
    assert [topics.selected(selector) for selector in (_PROD, _TEST)] == [production, tests]
    assert topics.selected(_TEST) is tests
    assert topics.selected(_PROD) is production
    topics.selected((Equals("env", "none"),))

    assert topics.selected(_PROD) is production
    assert topics.selected(_TEST) is not tests


def test_the_room_for_answers_grows_with_the_namespace(monkeypatch: pytest.MonkeyPatch) -> None:
    """Two lists of nearly all topics are asked for in turns, and neither is made anew."""
    monkeypatch.setattr(namespace, "_KEPT_NAMES", 0)
    topics = _of_envs(20)
    answers = [topics.selected(selector) for selector in (_PROD, (Equals("env", "prod"), Equals("env", "prod")))]

    assert topics.selected(_PROD) is answers[0]
    assert topics.selected((Equals("env", "prod"), Equals("env", "prod"))) is answers[1]
