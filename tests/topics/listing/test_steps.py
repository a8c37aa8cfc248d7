"""Work in steps: as right as work at once, and no step looks at more names than it may."""

from __future__ import annotations

import json
from random import Random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lookup.errors import ContractError
from lookup.model.catalog import Equals, Listing, Selector
from lookup.topics.listing import ListRequest, TopicList, TopicLister, topic_list, topics_hash
from lookup.topics.listing.steps import are_equal, differences, finished, is_among, queries_per_step, sorting
from lookup.topics.listing.topic_list import hashing, hashing_each
from lookup.topics.listing.topic_query import common_names
from tests.topics.filled import HERE, catalog_of, name_of
from tests.topics.listers import Scripted
from tests.topics.looked_at import LookedAt, most_in_a_step

_TEXTS = st.lists(st.text("ab", max_size=3))
_ROWS = st.integers(1, 6)
#: Names of a list, and those that a step may look at.
_MANY, _FEW = 1_000, 25


def _names(*, of: range = range(_MANY)) -> list[str]:
    return [LookedAt(name_of(f"orders-{number:05d}")) for number in of]


@given(_TEXTS, _ROWS)
def test_names_are_sorted_and_left_once(names: list[str], rows: int) -> None:
    """As `sorted` sorts them, by a key or by themselves."""
    assert finished(sorting(names, rows=rows)) == tuple(sorted(set(names)))
    assert finished(sorting(names, key=_backwards, rows=rows)) == tuple(sorted(set(names), key=_backwards))


def _backwards(name: str) -> bytes:
    return name.encode()[::-1]


@given(_TEXTS, _TEXTS, _ROWS)
def test_differences_are_those_of_sets(before: list[str], after: list[str], rows: int) -> None:
    """In order."""
    old, new = sorted(set(before)), sorted(set(after))

    assert finished(differences(old, new, rows=rows)) == (sorted({*old} - {*new}), sorted({*new} - {*old}))


@given(_TEXTS, _TEXTS, _ROWS)
def test_lists_are_compared_as_a_whole(names: list[str], others: list[str], rows: int) -> None:
    """Equal ones are equal, be they the same object or another."""
    assert finished(are_equal(names, others, rows=rows)) == (names == others)
    assert finished(are_equal(names, [*names], rows=rows))


@given(_TEXTS, st.text("ab", max_size=3))
def test_a_sorted_list_is_searched(names: list[str], name: str) -> None:
    """For any name, also behind its end."""
    assert is_among(name, sorted(names)) == (name in names)


@given(st.sets(st.text("a\uffee\U00010400", max_size=3)), _ROWS)
def test_a_hash_in_steps_is_the_hash_at_once(names: set[str], rows: int) -> None:
    """Also if Java's order is another one from some part on."""
    assert finished(hashing(sorted(names), rows)) == topics_hash(names)


def test_a_json_text_in_parts_is_the_text_at_once() -> None:
    """The parts are joined as the names are."""
    names = TopicList(f"{number:04d}é" for number in range(5_000))

    assert names.json == json.dumps([*names], ensure_ascii=False)


@pytest.mark.parametrize("selector", [(), (Equals("env", "prod"),)])
@pytest.mark.parametrize("is_sorted", [True, False])
def test_no_step_of_a_listing_looks_at_more_names_than_it_may(is_sorted: bool, selector: Selector) -> None:
    """Whether the lister answers in order or not, at first and when it answers with an equal list."""
    names = _names()
    if not is_sorted:
        Random(1).shuffle(names)
    answers = [Listing(tuple(names)), Listing(tuple(LookedAt(name) for name in names))]
    catalog = catalog_of()
    if selector:
        for name in names:
            catalog.create(str(name), labels={"env": "prod"})
    with TopicLister(Scripted(lambda _: answers.pop(0)), catalog) as lister:
        for pattern in (".*-.*", None):
            request = ListRequest(HERE, pattern=pattern, selector=selector)
            steps = lister.answering(request, rows=_FEW)
            most = most_in_a_step(steps)

            # The look-up ends, and the list begins, in one step.
            assert 0 < most <= 3 * _FEW, most


@given(st.permutations(range(9)), _ROWS, st.integers(0, 9))
def test_every_name_is_checked_and_put_in_order(order: list[int], rows: int, wrong: int) -> None:
    """Whatever step it is in, and between two of them."""
    names = [name_of(str(number)) for number in order]
    with TopicLister(Scripted(lambda _: Listing(names)), catalog_of()) as lister:
        assert finished(lister.answering(ListRequest(HERE), rows=rows)).topics == tuple(sorted(names))
        names.insert(wrong, "persistent://public/other/a")
        with pytest.raises(ContractError, match="public/other/a"):
            finished(lister.answering(ListRequest(HERE), rows=rows))


def test_no_step_looks_at_more_queries_than_it_may() -> None:
    """Patterns are hashed where queries are looked up, and compiled; each counts as so many names."""
    queries = [ListRequest(HERE, pattern=LookedAt(f"{HERE}/orders-{number:05d}.*")) for number in range(_MANY)]
    with TopicLister(Scripted(lambda _: Listing((name_of("orders-00017-a"),))), catalog_of()) as lister:
        lookup = queries[0].looked_up()
        plain = [query.plain() for query in queries]
        for _ in range(2):
            names = lister.fetch(lookup)
            most = most_in_a_step(lister.narrowed(lookup, plain, names, rows=100))
            assert 0 < most <= 3 * queries_per_step(100), most


def test_no_step_hashes_more_names_than_it_may(monkeypatch: pytest.MonkeyPatch) -> None:
    """Long lists take several steps, and several short ones take one."""
    hashed: list[int] = []

    class Extra:
        @staticmethod
        def extend(value: int, text: bytes) -> int:
            hashed.append(len(text.strip(b",").split(b",")))
            return value

    monkeypatch.setattr(topic_list, "_extra", lambda *_: Extra)
    lists = [TopicList(map(str, range(size))) for size in (1_000, 3, 30, 1, 4, 0, 70)]
    in_steps = []
    for _ in hashing_each(lists, rows=50):
        in_steps.append(sum(hashed))
        hashed.clear()

    assert sum(in_steps) + sum(hashed) == 1_108
    assert max(in_steps) <= 50
    assert len(in_steps) < 1_108 / 50 + len(lists)


def test_an_empty_list_takes_no_step_of_its_own() -> None:
    """Many patterns match nothing."""
    lists = [TopicList(map(str, range(number % 2))) for number in range(100)]

    assert len([*hashing_each(lists)]) == 0


def test_no_step_looks_at_more_selected_names_than_it_may() -> None:
    """Each is searched in the list."""
    names = [str(name) for name in _names()]

    assert most_in_a_step(common_names(names, _names(), rows=_FEW)) == _FEW


def test_no_step_compares_more_names_than_it_may() -> None:
    """Those of both lists counted, wherever they differ."""
    before, after = _names(), _names(of=range(_MANY // 2, 2 * _MANY, 3))

    assert most_in_a_step(differences(before, after, rows=_FEW)) <= 2 * _FEW
    # A merge looks at the first name of every part as well.
    assert most_in_a_step(sorting(before[::-1], rows=_FEW)) <= _FEW + _MANY // _FEW
