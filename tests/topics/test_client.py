"""A client's list of a watch."""

from __future__ import annotations

import pytest

from lookup.errors import PatternError
from lookup.topics.client import WatchedList
from lookup.topics.listing import TopicQuery
from lookup.topics.watching import Message, Snapshot, Trouble, Update
from tests.topics.filled import HERE, name_of

_A, _B, _C = (name_of(local) for local in "abc")
_NONE: frozenset[str] = frozenset()


def _list(*messages: Message, pattern: str = ".*") -> WatchedList:
    watched = WatchedList(TopicQuery(HERE, pattern=pattern))
    for message in messages:
        watched.take(message)
    return watched


def test_a_list_follows_its_messages() -> None:
    """A topic that was deleted and created again left, and came."""
    watched = _list()

    assert watched.take(Snapshot("1-1", [_A, _B])) == (_NONE, {_A, _B})
    assert watched.take(Update("2-2", [_B], [_C])) == ({_B}, {_C})
    assert watched.take(Update("3-3", [_A], [_A])) == ({_A}, {_A})
    assert watched.take(Snapshot("4-4", [_A])) == ({_C}, _NONE)
    assert watched.topics == {_A}


@pytest.mark.parametrize("message", [Trouble("away"), Snapshot("0-0", [], is_absent=True)], ids=["away", "absent"])
def test_a_list_stays_while_its_server_knows_nothing(message: Message) -> None:
    """As at a server that is away, or was made anew and has not looked at the cluster."""
    watched = _list(Snapshot("1-1", [_A]))

    assert watched.take(message) == (_NONE, _NONE)
    assert watched.topics == {_A}


def test_only_topics_that_are_watched_are_taken() -> None:
    """A faulty server names others, and Pulsar's own."""
    first = Snapshot("1-1", [_A, "persistent://t/n/a", name_of("__change_events")])

    assert _list(first, Update("2-2", [], ["persistent://t/n/b"])).topics == {_A}


def test_a_pattern_that_cannot_be_used_is_refused_at_once() -> None:
    """Before anything is asked."""
    with pytest.raises(PatternError, match="lookaround"):
        _list(pattern="(?=a)")
