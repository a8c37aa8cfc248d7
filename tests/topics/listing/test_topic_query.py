"""One way to ask: a query narrows names, in any company and in steps, as it says of each topic by itself."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from lookup.errors import ArgumentError, NotFoundError, PatternError
from lookup.model.bundles import equal_boundaries
from lookup.model.catalog import Equals, Exists
from lookup.topics.catalog import Catalog
from lookup.topics.listing import ListRequest, TopicLister, TopicQuery, topics_hash
from lookup.topics.listing.pattern_set import PatternSet
from lookup.topics.listing.scatter import ScatterQuery, loaded_topics
from lookup.topics.listing.steps import finished
from lookup.topics.listing.topic_query import common_names, look_up, narrowed, topics_of
from lookup.topics.watching import WatchQuery
from lookup_policies.listers import Default, Indexed
from tests.topics.shelf import shelf, topic

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
@given(
    st.sets(_QUERIES, max_size=12),
    st.sampled_from(["persistent", "non-persistent", "all"]),
    st.sets(st.sampled_from(_NAMES)),
    st.integers(1, 9),
)
def test_a_query_is_left_the_names_that_belong_to_it(
    queries: set[TopicQuery], mode: Any, names: set[str], rows: int
) -> None:
    """In one pass with others, of any number of names at a time, as one topic after the other."""
    asked = [replace(query, mode=mode) for query in queries]
    lists = finished(narrowed(asked, sorted(names), rows=rows))

    assert lists.keys() == set(asked)
    for query, topics in lists.items():
        belongs = query.matcher()
        assert list(topics) == [name for name in sorted(names) if belongs(name, {})]
        assert topics.topics_hash == topics_hash(topics)


@given(_QUERIES, st.permutations(_NAMES))
def test_names_in_any_order_stay_in_it(query: TopicQuery, names: list[str]) -> None:
    """As a list that another server sent; it becomes no `TopicList`, whose hash would be that of a sorted one."""
    kept, belongs = query.among(names), query.matcher()

    assert kept == tuple(name for name in names if belongs(name, {}))


def test_a_step_looks_at_no_more_than_its_rows() -> None:
    """So a pass over a hundred names in steps of ten yields nine times between."""
    names = [topic(f"a{number:03d}") for number in range(100)]

    assert len(list(narrowed([TopicQuery("t/n", pattern=".*a.*")], names, rows=10))) == 9
    assert len(list(narrowed([TopicQuery("t/n")], names, rows=100))) == 0


def test_many_patterns_are_compiled_in_steps() -> None:
    """A pass for a thousand patterns does not begin with all of them."""
    queries = [TopicQuery("t/n", pattern=f"t/n/a{number}.*") for number in range(1_000)]

    assert len(list(narrowed(queries, [topic("a7")]))) >= 6


@pytest.mark.parametrize(
    "form", ["t/n/a.*{}.*{}.*{}", "t/n/(a|b){}{}{}.*", ".*{}{}.*{}.*"], ids=["sets of many states", "groups", "pieces"]
)
def test_a_step_asks_names_of_a_bounded_number_of_patterns(form: str) -> None:
    """Of whatever kind the patterns are; a step of fewer names than its rows ends where they were asked of too many."""
    queries = [TopicQuery("t/n", pattern=form.format(*f"{number:03d}")) for number in range(1_000)]
    names = [topic(f"a{number:06d}") for number in range(0, 1_000_000, 2_000)]
    patterns = PatternSet("t/n", [query.pattern or "" for query in queries])
    n_matches = sum(len(patterns.matching(name)) for name in names)
    n_steps, at_once = (sum(1 for _ in narrowed(queries, names, rows=rows)) for rows in (500, 1_000_000))
    n_compiling = sum(1 for _ in narrowed(queries, (), rows=500))

    # A step ends with the first name that is beyond its bound.
    n_asked, most = patterns.n_asked, 2 * 500 + max(1_000, patterns.n_asked // len(names))
    assert n_asked > 5 * most
    assert n_steps - n_compiling >= n_asked // most
    assert at_once == 0
    assert n_matches == sum(map(len, finished(narrowed(queries, names, rows=500)).values()))


def test_a_selector_is_of_the_labels_beside_the_name() -> None:
    """Pattern, mode and labels must all fit; without labels nothing is asked of them."""
    query = TopicQuery("t/n", "all", "t/n/a.*", (Equals("env", "prod"), Exists("team")))
    belongs = query.matcher()

    assert belongs(topic("a", domain="non-persistent"), {"env": "prod", "team": "x"})
    assert not belongs(topic("a"), {"env": "prod"})
    assert not belongs(topic("b"), {"env": "prod", "team": "x"})
    assert not belongs(topic("a", "t/m"), {"env": "prod", "team": "x"})


def test_queries_that_ask_the_same_are_equal() -> None:
    """Whatever the order of properties; what a message has beside its query does not count once it is plain."""
    first = TopicQuery("t/n", properties={"a": "1", "b": "2"})
    second = ListRequest("t/n", properties={"b": "2", "a": "1"}, topics_hash="x")

    assert (first, hash(first)) == (second.plain(), hash(second.plain()))
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


@pytest.mark.parametrize(
    ("wrong", "error", "said"),
    [
        ({"pattern": "(?=a)"}, PatternError, "lookahead"),
        ({"mode": "some"}, ArgumentError, "there is no mode 'some'"),
        ({"namespace": "t/none"}, NotFoundError, "t/none"),
    ],
)
def test_a_query_that_cannot_be_answered_is_refused(
    wrong: Mapping[str, Any], error: type[Exception], said: str
) -> None:
    """In words that name what is wrong with it."""
    with pytest.raises(error, match=said):
        topics_of(shelf("a"), TopicQuery(**{"namespace": "t/n", **wrong}))


@given(st.sets(st.sampled_from(_NAMES)), st.sets(st.sampled_from(_NAMES)))
def test_common_names_are_those_of_both_lists(names: set[str], selected: set[str]) -> None:
    """In order, each once."""
    assert list(finished(common_names(sorted(names), sorted(selected)))) == sorted(names & selected)


def _labelled() -> Catalog:
    catalog = shelf()
    for name, env in (("a", "prod"), ("ab", "prod"), ("b", "prod"), ("ac", "test"), ("__change_events", "prod")):
        catalog.create(topic(name), labels={"env": env}, properties={"team": name})
    catalog.create(topic("a", domain="non-persistent"), labels={"env": "prod"}, properties={"team": "a"})
    for entry in catalog.snapshot().entries:
        catalog.load(entry.name)
    return catalog


@pytest.mark.parametrize("mode", ["persistent", "non-persistent", "all"])
def test_everybody_narrows_in_the_same_way(mode: Any) -> None:
    """A listing, a look-up, an owner and a watcher are left the same topics by pattern, labels and mode."""
    catalog = _labelled()
    query = TopicQuery("t/n", mode, "t/n/a.*", (Equals("env", "prod"),))
    names = (topic("a", domain="non-persistent"), topic("a"), topic("ab"))
    wanted = [name for name in names if query.matcher()(name, {"env": "prod"})]
    assert wanted
    bundles = ["0x00000000_0xffffffff"]
    of_owner = ScatterQuery("t/n", mode, query.pattern, query.selector)
    by_labels = WatchQuery("t/n", mode, selector=query.selector)

    with TopicLister(Default(), catalog) as lister:
        assert list(lister.answer(query).topics) == wanted
    assert list(topics_of(catalog, query)) == wanted
    assert set(look_up(catalog, query)) >= set(wanted)
    assert list(loaded_topics(catalog, of_owner, boundaries=equal_boundaries(1), owned=bundles).topics) == wanted
    assert [name for name in topics_of(catalog, by_labels) if "/a" in name] == wanted


def test_a_poll_with_a_selector_is_answered_with_hash_and_mode() -> None:
    """By the library: filtered, hashed, and unchanged for who has the list; properties go to the lister beside it."""
    catalog = _labelled()
    request = ListRequest("t/n", "all", selector=(Equals("env", "prod"),), properties={"team": "a"})
    with TopicLister(Indexed(), catalog) as lister:
        answer = lister.answer(request)
        again = lister.answer(replace(request, topics_hash=answer.topics_hash))

    assert answer.topics == (topic("a", domain="non-persistent"), topic("a"))
    assert (answer.filtered, answer.changed, again.changed, again.topics) == (True, True, False, ())
