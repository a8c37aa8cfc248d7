"""The subscription client: what it refuses, forwards, retries and never believes."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import pytest

from lookup.errors import ArgumentError, InvalidNameError, NotSupportedError, PatternError
from lookup.model.catalog import Equals
from lookup.topics.client import Listed, Poll, ServerFeatures, Subscribe, Subscriber, TopicSet, Unsubscribe
from lookup.topics.listing import topics_hash
from lookup.topics.rules import Pace
from lookup.topics.watching import Snapshot, Update, WatchRequest
from tests.topics.shelf import topic

_PROD = (Equals("env", "prod"),)
_HASH = "e4a876e3"


def _client(wanted: TopicSet, server: ServerFeatures | None = None, **pace: int) -> Subscriber:
    client = Subscriber(wanted, own_namespace="t/n", pace=Pace(**pace))
    client.connected(server or ServerFeatures(), 0)
    return client


def test_a_selector_is_refused_where_the_server_cannot_evaluate_it() -> None:
    """It is never widened to everything; nothing is asked."""
    client = Subscriber(TopicSet(selector=_PROD), own_namespace="t/n")
    with pytest.raises(NotSupportedError, match="the server cannot select topics of 't/n' by labels"):
        client.connected(ServerFeatures(watchers=True), 0)

    assert (client.take(), client.next_us) == ((), None)


@pytest.mark.parametrize("is_partial", [False, True])
def test_an_unfiltered_answer_to_a_selector_is_refused(*, is_partial: bool) -> None:
    """A server that lies about its features is found out, and not asked again; a part of everything is no answer."""
    client = _client(TopicSet(selector=_PROD), ServerFeatures(selectors=True))
    (poll,) = client.take()
    assert isinstance(poll, Poll)
    with pytest.raises(NotSupportedError, match="the server did not select topics of 't/n' by labels"):
        client.answered(Listed(poll.request_id, [topic("a")], partial=is_partial), 0)

    assert (client.take(), client.topics, client.next_us) == ((), frozenset(), None)


def test_properties_are_forwarded_and_polled_with() -> None:
    """A watch has no field for them, so even a server with watchers is polled."""
    client = _client(TopicSet(pattern=".*", properties={"k": "v"}), ServerFeatures(watchers=True))
    (poll,) = client.take()

    assert poll == Poll("t/n", pattern=".*", properties={"k": "v"}, request_id=2)


def test_every_namespace_is_asked_and_none_means_its_own() -> None:
    """One watcher each."""
    client = _client(TopicSet(pattern=".*", namespaces=("t/a", "t/b")), ServerFeatures(watchers=True))
    own = _client(TopicSet(pattern=".*"), ServerFeatures(watchers=True))

    assert [a.query.namespace for a in client.take() if isinstance(a, WatchRequest)] == ["t/a", "t/b"]
    assert [a.query.namespace for a in own.take() if isinstance(a, WatchRequest)] == ["t/n"]


def test_unchanged_is_not_believed_where_no_hash_was_sent() -> None:
    """The list is kept, and asked for again with no hash."""
    client = _client(TopicSet(pattern=".*"))
    (poll,) = client.take()
    assert isinstance(poll, Poll)
    client.answered(Listed(poll.request_id, [], _HASH, filtered=True, changed=False), 0)
    client.tick(1_000_000)
    (again,) = client.take()

    assert isinstance(again, Poll)
    assert again.topics_hash is None


@pytest.mark.parametrize("names", [(), ("a",), ("a", "b")])
def test_an_update_removes_first_and_adds_then(names: tuple[str, ...]) -> None:
    """A topic in both lists is in the list afterwards, so that the client's hash is the one of the update."""
    client = _client(TopicSet(pattern=".*"), ServerFeatures(watchers=True))
    (request,) = client.take()
    assert isinstance(request, WatchRequest)
    before, after = tuple(map(topic, names)), tuple(map(topic, ("a", "b")))
    client.received(Snapshot(request.request_id, request.watcher_id, before, topics_hash(before)), 0)
    client.take()
    client.received(Update(request.watcher_id, after, after, topics_hash(after)), 0)

    assert client.listed == client.topics == set(after)
    assert [action.topic for action in client.take() if isinstance(action, Subscribe)] == list(after)


def test_topics_of_other_namespaces_and_of_pulsar_are_never_subscribed_to() -> None:
    """A faulty server may name them in any message; the list is asked for again, since its hash cannot be right."""
    client = _client(TopicSet(pattern=".*"), ServerFeatures(watchers=True, reconcile=True), retry_us=1)
    (request,) = client.take()
    assert isinstance(request, WatchRequest)
    wrong = (topic("a", "t/m"), topic("__change_events"), topic("a"))
    client.received(Snapshot(request.request_id, request.watcher_id, wrong, topics_hash(wrong)), 0)
    wrong = (topic("b", "t/m"), topic("b", domain="non-persistent"), topic("b"))
    client.received(Update(request.watcher_id, (), wrong, topics_hash(wrong)), 0)

    assert [action.topic for action in client.take() if isinstance(action, Subscribe)] == [topic("a"), topic("b")]
    assert client.next_us == 1


def test_a_prefix_of_the_hash_does_not_mean_unchanged() -> None:
    """The answer to a poll counts as unchanged for the hash that was sent, whole; else the list is asked for anew."""
    client = _client(TopicSet(pattern=".*"), poll_us=10, retry_us=1)
    (poll,) = client.take()
    assert isinstance(poll, Poll)
    client.answered(Listed(poll.request_id, [topic("a")], topics_hash([topic("a")]), filtered=True), 0)
    client.tick(10)
    again = client.take()[-1]
    assert isinstance(again, Poll)
    assert again.topics_hash == topics_hash([topic("a")])
    client.answered(Listed(again.request_id, [], again.topics_hash[:-1], filtered=True, changed=False), 10)
    client.tick(11)
    (anew,) = client.take()

    assert isinstance(anew, Poll)
    assert anew.topics_hash is None


@pytest.mark.parametrize("latency_us", [101, 450, 5_000])
@pytest.mark.parametrize(
    "server", [ServerFeatures(), ServerFeatures(watchers=True), ServerFeatures(watchers=True, reconcile=True)]
)
def test_a_server_slower_than_the_period_is_heard(server: ServerFeatures, latency_us: int) -> None:
    """Nothing else is asked while an answer is awaited, so no answer comes too late for ever."""
    client = _client(TopicSet(pattern=".*"), server, poll_us=100)
    asked = []
    for now_us in range(20_000):
        client.tick(now_us)
        asked += [(now_us + latency_us, a) for a in client.take() if isinstance(a, Poll | WatchRequest)]
        while asked and asked[0][0] <= now_us:
            _answer(client, asked.pop(0)[1], now_us)

    assert client.topics == {topic("a")}


def _answer(client: Subscriber, asked: Poll | WatchRequest, now_us: int) -> None:
    names = (topic("a"),)
    if isinstance(asked, Poll):
        client.answered(Listed(asked.request_id, names, topics_hash(names), filtered=True), now_us)
    else:
        client.received(Snapshot(asked.request_id, asked.watcher_id, names, topics_hash(names)), now_us)


def test_a_request_that_nobody_answers_is_asked_again() -> None:
    """After some periods, and then after twice as many each time; an answer brings the period back."""
    client = _client(TopicSet(pattern=".*"), poll_us=10)
    assert _asked_at(client, range(290)) == [0, 40, 120, 280]
    client.answered(Listed(5, [], topics_hash([])), 285)

    assert client.next_us == 290


def test_a_server_that_loses_answers_is_not_given_up() -> None:
    """However long it has lost them, it is asked again after ten minutes, or after four periods that are longer."""
    minute = 60_000_000
    often, seldom = (_client(TopicSet(pattern=".*"), poll_us=poll_us) for poll_us in (minute, 5 * minute))

    assert _asked_at(often, range(0, 60 * minute, minute)) == [n * minute for n in (0, 4, 12, 22, 32, 42, 52)]
    assert _asked_at(seldom, range(0, 60 * minute, minute)) == [n * minute for n in (0, 20, 40)]


def _asked_at(client: Subscriber, times: Iterable[int]) -> list[int]:
    """Let time pass, and return when something was asked."""
    asked = []
    for now_us in times:
        client.tick(now_us)
        asked += [now_us for _ in client.take()]
    return asked


def test_a_failed_subscription_is_tried_again() -> None:
    """After a pause, as long as the topic is listed."""
    client = _client(TopicSet(pattern=".*"), retry_us=5)
    (poll,) = client.take()
    assert isinstance(poll, Poll)
    client.answered(Listed(poll.request_id, [topic("a")]), 0)
    client.take()
    client.subscribe_failed(topic("a"), 10)
    client.tick(14)
    assert client.take() == ()
    client.tick(15)

    assert client.take() == (Subscribe(topic("a")),)


@pytest.mark.parametrize("is_filtered", [True, False])
def test_a_polled_list_that_contradicts_its_hash_gives_nothing_up(*, is_filtered: bool) -> None:
    """It is asked for again without a hash, once soon and then at each period; what it has more is subscribed to."""
    client = _client(TopicSet(pattern=".*"), poll_us=100, retry_us=5, grace_us=50)
    both, other = [topic("a"), topic("b")], [topic("a"), topic("c")]

    def answer(names: Sequence[str], hashed: str, now_us: int) -> str | None:
        (poll,) = (action for action in client.take() if isinstance(action, Poll))
        client.answered(Listed(poll.request_id, names, hashed, is_filtered), now_us)
        return poll.topics_hash

    answer(both, topics_hash(both), 0)
    client.tick(100)
    assert answer(other, topics_hash(both), 100) == topics_hash(both)
    assert client.take() == (Subscribe(topic("c")),)
    client.tick(104)
    assert client.take() == ()
    client.tick(105)
    assert answer(other, topics_hash(both), 105) is None
    client.tick(200)
    assert client.take() == ()
    client.tick(205)
    assert answer(both, topics_hash(both), 205) is None
    assert client.topics == {*both, topic("c")}
    client.tick(255)

    assert client.take() == (Unsubscribe(topic("c")),)


def test_namespaces_are_checked() -> None:
    """A text is no list of them, whose letters would be asked for; and each has a tenant."""
    with pytest.raises(ArgumentError, match="namespaces is 't/n', which is one text and no list of namespaces"):
        TopicSet(pattern=".*", namespaces="t/n")
    with pytest.raises(InvalidNameError, match="namespace 'nope' is not of the form tenant/namespace"):
        TopicSet(pattern=".*", namespaces=("t/n", "nope"))
    with pytest.raises(InvalidNameError, match="namespace '' is not of the form tenant/namespace"):
        Subscriber(TopicSet(pattern=".*"), own_namespace="")


@pytest.mark.parametrize("lacks", [{"partial": True}, {"active_only": True}])
def test_unchanged_confirms_nothing_where_topics_may_be_missing(lacks: dict[str, bool]) -> None:
    """A new server that looked at some topics only does not end the grace of one that the old server missed."""
    client = _client(TopicSet(pattern=".*"), poll_us=100, grace_us=50)
    (first,) = client.take()
    assert isinstance(first, Poll)
    both, one = [topic("a"), topic("b")], [topic("a")]
    client.answered(Listed(first.request_id, both, topics_hash(both), filtered=True), 0)
    client.tick(100)
    second = client.take()[-1]
    assert isinstance(second, Poll)
    client.answered(Listed(second.request_id, one, topics_hash(one), filtered=True), 100)
    client.disconnected()
    client.connected(ServerFeatures(), 110)
    (third,) = client.take()
    assert isinstance(third, Poll)
    client.answered(Listed(third.request_id, (), third.topics_hash, filtered=True, changed=False, **lacks), 120)
    client.tick(190)

    assert client.topics == set(both)


def test_namespaces_of_a_set_have_two_parts_and_are_read_once() -> None:
    """A third part is refused as the catalog does; names that are made as they are read are not lost to the check."""
    with pytest.raises(InvalidNameError, match="'a/b/c' is not of the form tenant/namespace: it has more than two"):
        TopicSet(pattern=".*", namespaces=("a/b/c",))
    with pytest.raises(InvalidNameError, match="'a/b/c' is not of the form tenant/namespace: it has more than two"):
        Subscriber(TopicSet(pattern=".*"), own_namespace="a/b/c")

    made = TopicSet(pattern=".*", namespaces=(name for name in ("t/a", "t/b")))  # type: ignore[arg-type]

    assert made.namespaces == ("t/a", "t/b")


def test_a_set_that_is_no_set_is_refused() -> None:
    """Nothing, both, an empty selector, a pattern that cannot be compiled, a period of nothing."""
    for wrong in ({}, {"pattern": ".*", "selector": _PROD}, {"selector": ()}):
        with pytest.raises(ArgumentError, match="a pattern or by a selector, and only one of them"):
            TopicSet(**wrong)  # type: ignore[arg-type]
    with pytest.raises(PatternError, match="lookahead"):
        Subscriber(TopicSet(pattern="(?=a)"), own_namespace="t/n")
    with pytest.raises(ArgumentError, match="poll_us is 0, and must be 1 or more"):
        Pace(poll_us=0)
