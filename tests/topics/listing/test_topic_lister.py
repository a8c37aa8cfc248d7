"""Requests for topic lists: filters, hashes, refusals."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from itertools import repeat
from typing import Any, ClassVar

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lookup.errors import ArgumentError, ContractError, PatternError, PolicyError, PulsarLookupError, StateError
from lookup.model.catalog import CatalogView, Listing, TopicEntry
from lookup.settings import ListingSection
from lookup.topics.listing import ListAnswer, TopicList, TopicLister, TopicQuery, topics_hash
from lookup_policies.listers import Default, Indexed
from tests.topics.filled import HERE, catalog_of, name_of
from tests.topics.listers import Broken, Listed, Scripted

_NAMES = ("orders-eu", "orders-us", "bills", "__change_events")
_PARTITIONED = "orders-asia"


def _catalog() -> CatalogView:
    catalog = catalog_of(*map(name_of, _NAMES), name_of("fast", "non-persistent"))
    catalog.create(name_of(_PARTITIONED), partitions=1)
    return catalog


def _answer(request: TopicQuery, limits: ListingSection | None = None) -> ListAnswer:
    return TopicLister(Default(), _catalog(), limits).answer(request)


_PERSISTENT = ["bills", "orders-asia-partition-0", "orders-eu", "orders-us"]


@pytest.mark.parametrize(
    ("asked", "wanted"),
    [
        # The plain request gets every persistent topic of users, in the order of names.
        ({}, _PERSISTENT),
        ({"include_system": True}, ["__change_events", *_PERSISTENT]),
        ({"mode": "non-persistent"}, ["fast"]),
        ({"mode": "all"}, ["fast", *_PERSISTENT]),
        # A lister need not know the pattern, and cannot get round it; only a request without one asks for everything.
        ({"pattern": "persistent://public/default/orders-.*a"}, ["orders-asia-partition-0"]),
        ({"pattern": ""}, []),
        ({"pattern": "." * 1000}, []),
    ],
)
def test_a_list_has_what_was_asked_for(asked: dict[str, Any], wanted: list[str]) -> None:
    """By mode and pattern, and without system topics."""
    answer = _answer(TopicQuery(HERE, **asked), ListingSection())

    assert [name.rpartition("/")[2] for name in answer.topics] == wanted
    assert answer.changed


def _scripted(answer: Callable[[str], Any]) -> TopicLister:
    return TopicLister(Scripted(answer), _catalog())


@dataclass(frozen=True)
class Misspelt(Scripted):
    """Wait for an event that never comes."""

    name: ClassVar[str] = "misspelt"
    interests: ClassVar[Any] = frozenset({"createt"})


# One request


@pytest.mark.parametrize("has", [None, "", "00000000", "E4A876E3", " ", "e", "e4a876e", "e4a876e3 ", "4a876e3"])
def test_only_the_exact_hash_means_unchanged(has: str | None) -> None:
    """No hash, that of another list, a different spelling and a part of the hash get the whole list."""
    lister = TopicLister(Default(), catalog_of(name_of("a")))
    answer = lister.answer(TopicQuery(HERE, topics_hash=has))

    assert answer == ListAnswer(TopicList([name_of("a")]), "e4a876e3", changed=True)


@given(st.lists(st.sampled_from(_NAMES[:3])), st.sampled_from([".*", ".*orders.*", "nothing"]))
def test_the_hash_is_that_of_the_list_returned(found: list[str], pattern: str) -> None:
    """Whatever a lister answers and a pattern leaves, names come once, sorted, and are hashed so."""
    answer = _scripted(lambda _: Listing([name_of(local) for local in found])).answer(TopicQuery(HERE, pattern=pattern))

    assert list(answer.topics) == sorted(set(answer.topics))
    assert answer.topics_hash == topics_hash(answer.topics)


# Refusals


@pytest.mark.parametrize(
    ("answer", "said"),
    [
        (None, "answered None, .* Listing"),
        ([], r"answered \[\], which is not a Listing"),
        (["a"] * 1_000, r"'a', \.\.\.\], .* Listing"),
        (Listing(("persistent://other/ns/a",)), "answered 'persistent://other/ns/a', no persistent topic"),
        (Listing((name_of("a", "non-persistent"),)), "no persistent topic of public/default"),
        (Listing((7,)), "answered 7, no persistent topic"),  # type: ignore[arg-type]  # a careless lister
        (Listing("abc"), "answered 'a', no persistent topic"),
        (Listing(7), "answered 7, .* list of topics"),  # type: ignore[arg-type]  # the same
        (Listing(None), "answered None"),  # type: ignore[arg-type]  # the same
        (Listing((name_of(""),)), "answered 'persistent://public/default/', no persistent topic"),
        (Listing((name_of("a\n"),)), r"the character '\\n'"),
        (Listing((name_of("\x1b[31m"),)), r"the character '\\x1b'"),
        (Listing((name_of("\ud801"),)), r"the character '\\ud801'"),
        (Listing((name_of("a" * 5_000),)), r"a\.\.\.', .* 5,028 characters, .* 4,096"),
    ],
)
def test_an_answer_that_is_none_is_refused(answer: object, said: str) -> None:
    """A lister answers a Listing of topics of the namespace and mode it was asked for."""
    with pytest.raises(ContractError, match=said):
        _scripted(lambda _: answer).answer(TopicQuery(HERE))


@pytest.mark.parametrize("local", ["a\nb", "a\x1b[31m", "a\u2028b", "a" * 5_000])
def test_a_name_that_a_catalog_has_is_listed_whatever_it_is(local: str) -> None:
    """Pulsar permits it; a list that lacks it would end its subscriptions, and one that is refused those of all."""
    catalog, odd = catalog_of(name_of("a")), name_of(local)
    catalog.mirror(odd, TopicEntry(odd, {}, {}))
    with TopicLister(Indexed(), catalog) as lister:
        answer = lister.answer(TopicQuery(HERE))

    assert answer.topics == catalog.topics(HERE)
    assert odd in json.loads(answer.topics.json)


def _fail(_: str) -> Listing:
    raise RuntimeError("the database is gone")


@pytest.mark.parametrize("error", [SystemExit(0), GeneratorExit(), BaseException("odd"), ConnectionError("gone")])
def test_a_lister_that_raises_is_named(error: BaseException) -> None:
    """At its beginning, at its end, when it is asked, and while names it makes one by one are read."""

    def raising(_: str) -> Listing:
        raise error

    def half(_: str) -> Any:
        def names() -> Iterator[str]:
            yield name_of("a")
            raise error

        return Listing(names())  # type: ignore[arg-type]  # a careless lister

    with (
        pytest.raises(PolicyError, match="'broken' could not be prepared"),
        TopicLister(Broken(begins=False, error=error), _catalog()),
    ):
        pass
    with (
        pytest.raises(PolicyError, match="'broken' could not be closed"),
        TopicLister(Broken(ends=False, error=error), _catalog()),
    ):
        pass
    for answer in (raising, half):
        with pytest.raises(PolicyError, match=f"lister 'scripted' failed on {HERE}: {type(error).__name__}"):
            _scripted(answer).answer(TopicQuery(HERE))


def test_a_list_without_end_is_a_failure() -> None:
    """Ten million names are more than a namespace has."""
    lister = _scripted(lambda _: Listing(repeat(name_of("a"))))  # type: ignore[arg-type]  # a careless lister

    with pytest.raises(PolicyError, match=f"failed on {HERE}: OverflowError: has more than 10,000,000 answers"):
        lister.answer(TopicQuery(HERE))


def test_an_interruption_is_not_the_lister_s() -> None:
    """Ctrl-C ends the command."""

    def interrupted(_: str) -> Listing:
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        _scripted(interrupted).answer(TopicQuery(HERE))


def test_a_lister_s_interests_are_looked_at_when_it_is_put_to_work() -> None:
    """Not when an event comes that it would have missed."""
    assert TopicLister(Listed(), _catalog()).interests == {"created", "labels"}
    with pytest.raises(ContractError, match="'misspelt' has 'createt'"):
        TopicLister(Misspelt(), _catalog())


def test_what_fails_first_is_told() -> None:
    """A lister that cannot be closed does not hide why its last request was refused."""
    lister = Broken(lambda _: Listing((), partial=True), ends=False)

    with pytest.raises(StateError, match="has only a part") as refused, TopicLister(lister, _catalog()) as at_work:
        at_work.answer(TopicQuery(HERE))

    (note,) = refused.value.__notes__
    assert "'broken' could not be closed" in note


@pytest.mark.parametrize(
    ("properties", "said"),
    [
        ({f"k{number}": "v" for number in range(65)}, "65 properties were sent"),
        ({"k": "v" * 257}, "property 'k': .* 257 characters"),
        ({"k" * 257: "v"}, "the key has 257 characters"),
        ({"k": "a\nb"}, r"property 'k': .* character '\\n'"),
        ({"k\x00": "v"}, r"the key holds the character '\\x00'"),
        ({"k": "\x85"}, r"the value holds the character '\\x85'"),
        ({"k": "a\u2028b"}, r"the value holds the character '\\u2028'"),
        ({"k\ud800": "v"}, r"the key .* '\\ud800'"),
        ({"k": 7}, "property 'k': .* not text"),
        ({"": "v"}, "no key; its value is 'v'"),
    ],
)
def test_properties_out_of_bounds_are_refused(properties: dict[str, str], said: str) -> None:
    """Their number, their length and their characters are looked at before any lister is asked."""
    with pytest.raises(ArgumentError, match=said):
        _scripted(_fail).answer(TopicQuery(HERE, properties=properties))


@pytest.mark.parametrize(
    ("asked", "error", "said"),
    [
        ({"pattern": "(?=a)"}, PatternError, "no lookaround"),
        ({"namespace": "public/defualt"}, PulsarLookupError, "public/defualt"),
        ({"mode": "some"}, ArgumentError, "there is no mode 'some'"),
    ],
)
def test_a_request_that_is_none_is_refused(asked: dict[str, Any], error: type[Exception], said: str) -> None:
    """By the sentence of what was asked for."""
    with pytest.raises(error, match=said):
        _scripted(_fail).answer(TopicQuery(**{"namespace": HERE, **asked}))


def test_a_listing_may_be_made_as_it_is_read() -> None:
    """Names that can be read once only are all there: none is lost to the check, which would end subscriptions."""
    lister = Scripted(answer=lambda _: Listing(iter([name_of("a"), name_of("b")])))  # type: ignore[arg-type]
    with TopicLister(lister, catalog_of()) as at_work:
        answer = at_work.answer(TopicQuery(HERE))

    assert answer.topics == (name_of("a"), name_of("b"))
