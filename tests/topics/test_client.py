"""A client's lists of several servers, and the subscriptions that follow them."""

from __future__ import annotations

import pytest

from lookup.errors import ArgumentError, InvalidNameError, PatternError
from lookup.model.catalog import Equals
from lookup.topics.client import Pace, ServerLists, Subscribe, Subscriber, TopicSet, Unsubscribe
from lookup.topics.watching import Snapshot, Trouble, Update
from tests.topics.filled import HERE, name_of

_A, _B, _C = (name_of(local) for local in "abc")
_NONE: frozenset[str] = frozenset()
_LOST = Trouble("away", is_lost=True)


def _client(*servers: str, grace_us: int = 10) -> Subscriber:
    wanted = TopicSet(selector=(Equals("env", "prod"),), namespaces=[HERE])
    return Subscriber(wanted, servers=servers or ("",), pace=Pace(retry_us=5, grace_us=grace_us))


def _lists(*servers: str, pattern: str | None = ".*") -> ServerLists:
    return ServerLists(TopicSet(pattern=pattern).watch(HERE), servers)


def test_a_list_is_all_that_any_server_has() -> None:
    """A topic leaves it once the last server has lost it; before all have answered it is a part."""
    lists = _lists("one", "two")

    assert lists.take("one", Snapshot("1-1", [_A, _B])) == (_NONE, {_A, _B})
    assert lists.is_partial
    assert lists.take("two", Snapshot("1-1", [_B, _C])) == (_NONE, {_C})
    assert not lists.is_partial
    assert lists.take("one", Update("2-2", [_B], [])) == (_NONE, _NONE)
    assert lists.take("two", Update("2-2", [_B], [])) == ({_B}, _NONE)
    assert lists.topics == {_A, _C}


def test_a_server_that_is_lost_keeps_its_topics() -> None:
    """The list is a part until it is back, with the changes since or with all of its topics."""
    for message in (Update("2-2", [], []), Snapshot("2-2", [_A])):
        lists = _lists("one")
        lists.take("one", Snapshot("1-1", [_A]))
        lists.take("one", Trouble("its own lister fails"))
        assert not lists.is_partial
        assert lists.take("one", _LOST) == (_NONE, _NONE)
        assert (lists.topics, lists.is_partial) == ({_A}, True)
        lists.take("one", message)
        assert (lists.topics, lists.is_partial) == ({_A}, False)


def test_topics_of_a_namespace_that_a_server_does_not_know_stay() -> None:
    """As at a server that was made anew, and has not looked at the cluster."""
    lists = _lists("one")
    lists.take("one", Snapshot("1-1", [_A]))

    assert lists.take("one", Snapshot("0-0", [], absent=[HERE])) == (_NONE, _NONE)
    assert lists.topics == {_A}


def test_only_topics_that_are_watched_are_taken() -> None:
    """A faulty server names others, and Pulsar's own."""
    lists = _lists("one")
    lists.take("one", Snapshot("1-1", [_A, "persistent://t/n/a", name_of("__change_events")]))
    lists.take("one", Update("2-2", [], ["persistent://t/n/b"]))

    assert lists.topics == {_A}


def test_a_pattern_that_cannot_be_used_is_refused_at_once() -> None:
    """Before anything is asked."""
    with pytest.raises(PatternError, match="lookahead"):
        _lists("one", pattern="(?=a)")


def test_subscriptions_follow_the_list() -> None:
    """What came is subscribed to, what went is given up after its grace, what came back within it is kept."""
    client = _client()
    client.received(Snapshot("1-1", [_A, _B]), 0)
    assert client.take() == (Subscribe(_A), Subscribe(_B))
    client.received(Update("2-2", [_A, _B], [_C]), 1)
    client.received(Update("3-3", [], [_A]), 5)
    assert client.take() == (Subscribe(_C),)
    client.tick(11)

    assert client.take() == (Unsubscribe(_B),)
    assert client.topics == {_A, _C}


def test_nothing_is_given_up_while_a_server_is_away() -> None:
    """However long that is; the grace goes on when it has answered."""
    client = _client("one", "two")
    client.received(Snapshot("1-1", [_A, _B]), 0, "one")
    client.received(Snapshot("1-1", []), 0, "two")
    client.received(Update("2-2", [_B], []), 0, "one")
    client.received(_LOST, 1, "two")
    client.tick(1_000)
    assert client.topics == {_A, _B}
    client.received(Update("3-3", [], [_B]), 1_001, "two")
    client.tick(2_000)

    assert client.topics == {_A, _B}
    client.received(Update("4-4", [_B], []), 2_000, "two")
    client.tick(2_010)
    assert client.topics == {_A}


def test_nothing_is_given_up_before_every_server_has_answered() -> None:
    """One that comes later may have the topic."""
    client = _client("one", "two", grace_us=0)
    client.received(Snapshot("1-1", [_A]), 0, "one")
    client.received(Update("2-2", [_A], []), 1, "one")
    client.tick(100)

    assert client.topics == {_A}
    client.received(Snapshot("1-1", []), 101, "two")
    assert client.topics == frozenset()


def test_a_subscription_that_failed_is_tried_again_while_its_topic_is_listed() -> None:
    """Until it is made, and not for a topic that was given up."""
    client = _client(grace_us=0)
    client.received(Snapshot("1-1", [_A, _B]), 0)
    client.take()
    client.subscribe_failed(_A, 0)
    client.subscribe_failed(_B, 0)
    client.subscribe_failed(_C, 0)
    client.received(Update("2-2", [_B], []), 1)
    client.tick(5)

    assert client.take() == (Unsubscribe(_B), Subscribe(_A))
    client.tick(100)
    assert client.take() == ()


@pytest.mark.parametrize(
    ("wanted", "error", "said"),
    [
        ({}, ArgumentError, "a pattern or by a selector"),
        ({"pattern": "a", "selector": (Equals("a", "b"),)}, ArgumentError, "and only one of them"),
        ({"pattern": "a", "namespaces": "t/n"}, ArgumentError, "no list of namespaces"),
        ({"pattern": "a", "namespaces": ["t"]}, InvalidNameError, "tenant/namespace"),
    ],
)
def test_a_set_that_is_none_is_refused(wanted: dict[str, object], error: type[Exception], said: str) -> None:
    """An empty selector does not mean everything."""
    with pytest.raises(error, match=said):
        TopicSet(**wanted)  # type: ignore[arg-type]  # which is the point


def test_a_pace_without_pauses_is_refused() -> None:
    """A client would ask all the time."""
    with pytest.raises(ArgumentError, match="retry_us is 0"):
        Pace(retry_us=0)
