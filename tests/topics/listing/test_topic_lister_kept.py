"""What a lister's framework keeps between requests: nothing that another answer would contradict."""

from __future__ import annotations

from random import Random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from lookup.hooks import Lister
from lookup.model.catalog import Equals
from lookup.topics.listing import ListRequest, TopicList, TopicLister, topic_list, topic_lister, topics_hash
from lookup_policies.listers import Default, Indexed
from tests.topics.filled import HERE, catalog_of, name_of

_REQUESTS = [
    ListRequest(HERE, mode, pattern, selector, properties, include_system=is_open)
    for mode in ("persistent", "all")
    for pattern in (None, ".*a", f"{HERE}/b.*")
    for selector in ((), (Equals("env", "prod"),))
    for properties in ({}, {"team": "x"})
    for is_open in (False, True)
]


@settings(deadline=None, max_examples=50)
@given(st.integers(0, 1 << 32), st.sampled_from([Default(), Indexed()]), st.sampled_from([1, 300]))
def test_every_answer_is_that_of_a_lister_that_was_asked_nothing_before(seed: int, lister: Lister, room: int) -> None:
    """Whatever was asked before, whatever changed since, and however little is kept."""
    dice, catalog = Random(seed), catalog_of(name_of("a"), name_of("b"), name_of("__change_events"))
    at_work = TopicLister(lister, catalog)
    for _ in range(30):
        name = name_of(dice.choice(("a", "aa", "b", "ba", "c")), dice.choice(("persistent", "non-persistent")))
        if catalog.entry(name) is None:
            catalog.create(name, labels={"env": dice.choice(("prod", "test"))}, properties={"team": "x"})
        elif dice.random() < 0.5:
            catalog.delete(name)
        else:
            catalog.set_labels(name, {"env": dice.choice(("prod", "test"))})
        for request in dice.sample(_REQUESTS, 4):
            with pytest.MonkeyPatch.context() as patch:
                patch.setattr(topic_lister, "_KEPT_NAMES", room)
                assert at_work.answer(request) == TopicLister(lister, catalog).answer(request)


@pytest.mark.parametrize("lister", [Default(), Indexed()])
@pytest.mark.parametrize("request_", [_REQUESTS[0], _REQUESTS[2], _REQUESTS[8], _REQUESTS[-1]])
def test_an_unchanged_list_is_hashed_once(
    monkeypatch: pytest.MonkeyPatch, lister: Lister, request_: ListRequest
) -> None:
    """The list, its hash and its JSON text are those of the answer before, as long as the names are the same."""
    catalog = catalog_of(name_of("a"), x={"team": "x"})
    with TopicLister(lister, catalog) as at_work:
        first = at_work.answer(request_)
        text = first.topics.json
        monkeypatch.setattr(topic_list, "topics_hash", lambda *_: pytest.fail("hashed again"))
        catalog.set_properties(name_of("a"), {"other": "x"})
        second = at_work.answer(request_)
        assert second.topics is first.topics
        assert second.topics.json is text

        monkeypatch.undo()
        catalog.create(name_of("ba"), properties={"team": "x"}, labels={"env": "prod"})
        assert at_work.answer(request_).topics != first.topics


def test_what_is_kept_is_bounded_by_names(monkeypatch: pytest.MonkeyPatch) -> None:
    """The lists that were not asked for longest are made anew, and only those."""
    monkeypatch.setattr(topic_lister, "_KEPT_NAMES", 3 * topic_lister._NAMES_OF_A_QUERY + 3)
    with TopicLister(Default(), catalog_of(name_of("a"))) as at_work:
        requests = [ListRequest(HERE, pattern=f".*a{'|x' * number}") for number in range(4)]
        first, second, third = (at_work.answer(request).topics for request in requests[:3])
        assert at_work.answer(requests[0]).topics is first
        at_work.answer(requests[3])

        assert at_work.answer(requests[0]).topics is first
        assert at_work.answer(requests[2]).topics is third
        assert at_work.answer(requests[1]).topics is not second


def test_a_list_of_topics_is_the_tuple_of_its_names() -> None:
    """With hash and JSON text beside it."""
    names = (name_of("a"), name_of("é"))
    topics = TopicList(names)

    assert topics == names
    assert topics.topics_hash == topics_hash(names)
    assert topics.json == f'["{names[0]}", "{names[1]}"]'
