"""Asking owners: whom, how many at a time, what is missing, and what is never claimed."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lookup.errors import ArgumentError, StateError
from lookup.model.bundles import bundle_of, equal_boundaries
from lookup.model.catalog import Equals
from lookup.topics.client import Listed, Poll, ServerFeatures, Subscribe, Subscriber, TopicSet, Unsubscribe
from lookup.topics.listing.scatter import Gathering, OwnerAnswer, ScatterQuery, loaded_topics
from lookup.topics.rules import Pace, ScatterLimits
from tests.topics.shelf import shelf, topic

_QUERY = ScatterQuery("t/n", selector=(Equals("env", "prod"),))
_LEFT, _RIGHT = "0x00000000_0x80000000", "0x80000000_0xffffffff"
_OWNERS = {_LEFT: "b1", _RIGHT: "b2"}


def _answer(bundle: str, *names: str) -> OwnerAnswer:
    return OwnerAnswer([topic(name) for name in names], [bundle])


def _started(owners: dict[str, str | None] = _OWNERS, **limits: int) -> Gathering:  # type: ignore[assignment]
    gathering = Gathering(_QUERY, owners, local="b1", limits=ScatterLimits(**limits))
    gathering.start()
    return gathering


def test_every_owner_is_asked_once_the_local_one_first() -> None:
    """Each for what it has itself."""
    asks = Gathering(_QUERY, {**_OWNERS, "0x1_0x2": "a0", "0x2_0x3": "b2"}, local="b1").start()

    assert [ask.broker for ask in asks] == ["b1", "a0", "b2"]
    assert all(ask.query.only_local for ask in asks)


def test_answers_are_merged() -> None:
    """Sorted, each topic once, complete, and of loaded topics only."""
    gathering = _started()
    gathering.answered("b1", _answer(_LEFT, "c", "a"))
    gathering.answered("b2", _answer(_RIGHT, "a", "b"))
    result = gathering.result()

    assert result.topics == (topic("a"), topic("b"), topic("c"))
    assert (result.is_partial_result, result.active_only) == (False, True)


def test_who_fails_or_is_late_is_named() -> None:
    """The result is partial, and says which owner is missing and why."""
    gathering = _started()
    gathering.failed("b1")
    gathering.timed_out("b2")

    assert gathering.result().missing == {"b1": "failed", "b2": "timed out"}
    assert gathering.result().is_partial_result


def test_an_answer_that_comes_too_late_changes_nothing() -> None:
    """Nor does one of a broker that was not asked, nor a second one."""
    gathering = _started()
    gathering.timed_out("b2")
    gathering.answered("b2", _answer(_RIGHT, "b"))
    gathering.answered("b9", _answer(_RIGHT, "b"))
    gathering.answered("b1", _answer(_LEFT, "a"))

    assert gathering.result().topics == (topic("a"),)
    assert gathering.result().missing == {"b2": "timed out"}


def test_a_bundle_that_moved_meanwhile_makes_the_result_partial() -> None:
    """Its old owner does not have it any more, and its new one was asked before it had it."""
    gathering = _started()
    gathering.answered("b2", _answer(_RIGHT))
    gathering.answered("b1", OwnerAnswer([], []))

    assert gathering.result().missing == {"b1": "moved"}


def test_a_bundle_that_its_new_owner_answers_for_is_covered() -> None:
    """Whoever answered with it had its topics."""
    gathering = _started()
    gathering.answered("b1", OwnerAnswer([], []))
    gathering.answered("b2", OwnerAnswer([topic("a")], [_LEFT, _RIGHT]))

    assert not gathering.result().is_partial_result


def test_bundles_without_owner_are_missing() -> None:
    """Between two owners no broker can be asked for their topics, which exist all the same."""
    gathering = _started({_LEFT: None, _RIGHT: "b2"})
    gathering.answered("b2", _answer(_RIGHT, "b"))

    assert (gathering.result().topics, gathering.result().missing) == ((topic("b"),), {_LEFT: "unowned"})
    assert _started({_LEFT: None}).result().is_partial_result


def test_a_namespace_without_bundles_is_refused() -> None:
    """Every namespace has some: an answer without asking anybody would be empty and look complete."""
    with pytest.raises(ArgumentError, match="no bundles of 't/n' are given"):
        Gathering(_QUERY, {}, local="b1")


def test_an_answer_is_of_all_topics_only_where_every_owner_looked_at_all() -> None:
    """Nobody who failed has looked at topics that are not loaded."""
    gathering = _started()
    gathering.answered("b1", OwnerAnswer([], [_LEFT], active_only=False))
    gathering.failed("b2")
    complete = _started({_LEFT: "b1"})
    complete.answered("b1", OwnerAnswer([], [_LEFT], active_only=False))

    assert (gathering.result().active_only, complete.result().active_only) == (True, False)


def test_topics_of_another_namespace_are_no_answer() -> None:
    """The owner counts as failed."""
    gathering = _started()
    gathering.answered("b1", OwnerAnswer([topic("a", "t/other")], [_LEFT]))
    gathering.answered("b2", _answer(_RIGHT, "b"))

    assert (gathering.result().topics, gathering.result().missing) == ((topic("b"),), {"b1": "failed"})


def test_only_local_asks_nobody_else() -> None:
    """Whatever the others own."""
    query = ScatterQuery("t/n", properties=(("k", "v"),), only_local=True)
    gathering = Gathering(query, _OWNERS, local="b7")

    assert [ask.broker for ask in gathering.start()] == ["b7"]
    gathering.answered("b7", OwnerAnswer([], [_LEFT]))
    assert not gathering.result().is_partial_result


@given(brokers=st.integers(1, 30), at_once=st.integers(1, 5), most=st.integers(1, 30))
def test_fan_out_stays_within_its_limits(brokers: int, at_once: int, most: int) -> None:
    """Never more at once, never more in all; owners that were not asked are named."""
    owners = {f"bundle{number}": f"b{number}" for number in range(brokers)}
    gathering = Gathering(_QUERY, owners, local="b0", limits=ScatterLimits(at_once, most))
    asked = list(gathering.start())
    for ask in asked:
        assert len(gathering.pending) <= at_once
        asked += gathering.answered(ask.broker, OwnerAnswer([], [f"bundle{ask.broker[1:]}"]))

    assert len(asked) == min(brokers, most)
    assert len(gathering.result().missing) == brokers - len(asked)
    assert set(gathering.result().missing.values()) <= {"not asked"}


def test_misuse_is_a_sentence() -> None:
    """A result before its time, a second start, an answer before the first, no filter, no room."""
    gathering = Gathering(_QUERY, _OWNERS, local="b1")
    with pytest.raises(StateError, match="the owners of 't/n' were not asked yet"):
        gathering.failed("b1")
    gathering.start()
    with pytest.raises(StateError, match="are being asked already"):
        gathering.start()
    with pytest.raises(StateError, match="have not all answered: b1, b2"):
        gathering.result()
    with pytest.raises(ArgumentError, match="a query of 't/n' needs properties or a selector"):
        ScatterQuery("t/n")
    with pytest.raises(ArgumentError, match="at_once is 0, and must be 1 or more"):
        ScatterLimits(at_once=0)


def test_an_owner_answers_with_its_loaded_topics() -> None:
    """Those that are loaded, in its bundles and asked for; and it says so."""
    catalog, boundaries = shelf(), equal_boundaries(2)
    for name in ("a", "b", "c", "d", "e"):
        catalog.create(topic(name), labels={"env": "test" if name == "c" else "prod"})
        if name != "d":
            catalog.load(topic(name))
    mine = str(bundle_of(topic("a"), boundaries))
    answer = loaded_topics(catalog, _QUERY, boundaries=boundaries, owned=[mine])

    wanted = [name for name in ("a", "b", "e") if str(bundle_of(topic(name), boundaries)) == mine]
    assert list(answer.topics) == [topic(name) for name in wanted]
    assert (list(answer.bundles), answer.active_only) == ([mine], True)


def test_a_partial_result_never_removes_a_subscription() -> None:
    """It adds what it has; the next complete one takes away what is gone."""
    client = Subscriber(TopicSet(selector=_QUERY.selector), own_namespace="t/n", pace=Pace(poll_us=10, grace_us=0))
    client.connected(ServerFeatures(selectors=True), 0)
    said: list[object] = []
    for now_us, (names, partial) in enumerate([(["a", "b"], False), (["c"], True), (["a"], False)]):
        client.tick(now_us * 10)
        (poll,) = [action for action in client.take() if isinstance(action, Poll)]
        names_found = [topic(name) for name in names]
        client.answered(Listed(poll.request_id, names_found, filtered=True, partial=partial), now_us * 10)
        said.append([action for action in client.take() if not isinstance(action, Poll)])

    assert said == [
        [Subscribe(topic("a")), Subscribe(topic("b"))],
        [Subscribe(topic("c"))],
        [Unsubscribe(topic("b")), Unsubscribe(topic("c"))],
    ]


def test_what_loaded_topics_lack_is_not_given_up() -> None:
    """A complete answer of loaded topics adds and removes nothing; one of all topics removes."""
    client = Subscriber(TopicSet(selector=_QUERY.selector), own_namespace="t/n", pace=Pace(poll_us=10, grace_us=0))
    client.connected(ServerFeatures(selectors=True), 0)
    held = []
    for now_us, (name, active_only) in enumerate([("a", False), ("b", True), ("b", False)]):
        client.tick(now_us * 10)
        (poll,) = [action for action in client.take() if isinstance(action, Poll)]
        answer = Listed(poll.request_id, [topic(name)], filtered=True, active_only=active_only)
        client.answered(answer, now_us * 10)
        held.append(client.topics)

    assert held == [{topic("a")}, {topic("a"), topic("b")}, {topic("b")}]


def test_an_owner_keeps_pulsar_s_own_topics_to_itself() -> None:
    """As every listing does, whatever is written on them."""
    catalog = shelf()
    for name in ("a", "__change_events"):
        catalog.create(topic(name), labels={"env": "prod"})
        catalog.load(topic(name))
    answer = loaded_topics(catalog, _QUERY, boundaries=equal_boundaries(1), owned=["0x00000000_0xffffffff"])

    assert list(answer.topics) == [topic("a")]


def test_an_owner_answers_with_topics_that_have_all_properties() -> None:
    """Beside the labels, and only those that are loaded."""
    catalog = shelf()
    for name, env, team in (("a", "prod", "x"), ("b", "prod", "y"), ("c", "test", "x"), ("d", "prod", "x")):
        catalog.create(topic(name), labels={"env": env}, properties={"team": team, "stage": "raw"})
    for name in "abc":
        catalog.load(topic(name))
    query = ScatterQuery("t/n", selector=_QUERY.selector, properties={"team": "x", "stage": "raw"})
    answer = loaded_topics(catalog, query, boundaries=equal_boundaries(1), owned=["0x00000000_0xffffffff"])

    assert list(answer.topics) == [topic("a")]


def test_an_owner_that_answers_too_much_is_narrowed() -> None:
    """To the mode and pattern of the query, and to users' topics: it may be of a release that does not know them."""
    query = ScatterQuery("t/n", "persistent", ".*a.*", _QUERY.selector)
    gathering = Gathering(query, {_LEFT: "b1"}, local="b1")
    gathering.start()
    names = [*map(topic, ("a", "b", "__change_events")), topic("a", domain="non-persistent")]
    gathering.answered("b1", OwnerAnswer(names, [_LEFT]))

    assert gathering.result().topics == (topic("a"),)
