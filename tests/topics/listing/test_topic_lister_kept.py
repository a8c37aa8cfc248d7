"""What a lister's framework keeps between requests: nothing that another answer would contradict."""

from __future__ import annotations

from random import Random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from lookup.hooks import Lister
from lookup.model.catalog import Equals
from lookup.topics.listing import TopicLister, TopicQuery, topic_lister
from lookup_policies.listers import Default, Indexed
from tests.topics.filled import HERE, catalog_of, name_of

_REQUESTS = [
    TopicQuery(HERE, mode, pattern, selector, properties, include_system=is_open)
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
            catalog.set_pairs("labels", name, {"env": dice.choice(("prod", "test"))})
        for request in dice.sample(_REQUESTS, 4):
            with pytest.MonkeyPatch.context() as patch:
                patch.setattr(topic_lister, "_KEPT_NAMES", room)
                assert at_work.answer(request) == TopicLister(lister, catalog).answer(request)
