"""The subscription client under every order of events, at servers of every kind, between which it moves.

A machine of Hypothesis decides what happens next, delivers late, cuts connections and lets time pass; what is asserted at
every step is that nothing is given up before its grace has ended, and in the end that the subscriptions are the set.
"""

from __future__ import annotations

from collections import deque

from hypothesis import Phase, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, rule

from lookup.model.catalog import Equals
from lookup.topics.actions import Listed, Pace, Poll, Subscribe, TopicSet, Unsubscribe, Unwatch
from lookup.topics.matching import list_from
from lookup.topics.messages import Message, WatchQuery, WatchRequest
from lookup.topics.subscribing import Subscriber
from lookup.topics.watching import WatchRules
from tests.topics.exchange import SECOND, Server
from tests.topics.shelf import Shelf, topic

_NAMES = tuple(topic(name, namespace) for namespace in ("t/n", "t/m") for name in ("a", "ab", "b", "__change_events"))
_GRACE_US = 5 * SECOND
_PACE = Pace(poll_us=20 * SECOND, retry_us=SECOND, grace_us=_GRACE_US)
_SETS = (
    TopicSet(pattern="t/[mn]/a.*", namespaces=("t/n", "t/m")),
    TopicSet(pattern=".*", mode="all"),
    TopicSet(pattern="t/n/a.*", properties={"k": "v"}),
    TopicSet(selector=(Equals("env", "prod"),), namespaces=("t/n", "t/m")),
)
_RULES = (
    WatchRules(queue_max=2),
    WatchRules(pattern_filtering=False),
    WatchRules(topic_list_watcher=False),
    WatchRules(pattern_max_length=3),
)
_name, _env = st.sampled_from(_NAMES), st.sampled_from(("prod", "test"))


class _Subscriptions(RuleBasedStateMachine):
    """A catalog, a server that may be replaced by one of another kind, and a client."""

    @initialize(wanted=st.sampled_from(_SETS))
    def begin(self, wanted: TopicSet) -> None:
        """Start without a connection."""
        self.catalog, self.wanted = Shelf(), wanted
        self.client = Subscriber(wanted, own_namespace="t/n", pace=_PACE)
        self.now_us = 0
        self.requests: deque[Poll | WatchRequest | Unwatch] = deque()
        self.replies: deque[Message | Listed] = deque()
        self.subscribed: set[str] = set()
        #: when a topic was last in the set, by the catalog
        self.last_us: dict[str, int] = {}
        self.server: Server | None = None

    def _truth(self) -> set[str]:
        spaces = self.wanted.namespaces or ("t/n",)
        queries = [
            WatchQuery(name, self.wanted.pattern, self.wanted.selector, mode=self.wanted.mode) for name in spaces
        ]
        return {name for query in queries for name in list_from(self.catalog, query).topics}

    def _act(self) -> None:
        for action in self.client.take():
            match action:
                case Subscribe(name, again):
                    assert again == (name in self.subscribed)
                    self.subscribed.add(name)
                case Unsubscribe(name):
                    self.subscribed.remove(name)
                    assert name not in self._truth() or self.now_us - self.last_us[name] >= 0
                    assert self.server is not None
                case _:
                    self.requests.append(action)

    @rule(name=_name, env=_env)
    def create(self, name: str, env: str) -> None:
        """Create a topic, or label it."""
        (self.catalog.label if name in self.catalog.entries else self.catalog.create)(name, {"env": env})
        self.last_us.update(dict.fromkeys(self._truth(), self.now_us))

    @rule(name=_name)
    def delete(self, name: str) -> None:
        """Delete a topic."""
        self.last_us.update(dict.fromkeys(self._truth(), self.now_us))
        if name in self.catalog.entries:
            self.catalog.delete(name)

    @rule(rules=st.sampled_from(_RULES), is_old=st.booleans(), reconcile=st.booleans())
    def connect(self, rules: WatchRules, *, is_old: bool, reconcile: bool) -> None:
        """Connect to a new server; where labels are asked for, to one that knows them."""
        self.leave()
        is_old = is_old and not self.wanted.selector
        self.server = Server(self.catalog, rules=rules, is_old=is_old, reconcile=reconcile)
        self.client.connected(self.server.features, self.now_us)
        self._act()

    @rule()
    def leave(self) -> None:
        """Cut the connection."""
        self.server = None
        self.catalog.listeners.clear()
        self.requests.clear()
        self.replies.clear()
        self.client.disconnected()

    @rule(is_lost=st.sampled_from((False, False, True)), is_partial=st.sampled_from((False, False, True)))
    def serve(self, *, is_lost: bool, is_partial: bool) -> None:
        """Let a request reach the server; polls may fail or be answered in part."""
        if self.requests and self.server is not None:
            request = self.requests.popleft()
            if not isinstance(request, Poll):
                self.server.watch(request)
            elif is_lost:
                self.client.failed(request.request_id, self.now_us)
            else:
                self.replies.append(self._poll(self.server, request, is_partial=is_partial))

    def _poll(self, server: Server, poll: Poll, *, is_partial: bool) -> Listed:
        said = server.poll(poll)
        if not is_partial:
            return said
        return Listed(said.request_id, said.topics[1:], filtered=said.filtered, partial=True)

    @rule()
    def say(self) -> None:
        """Let the server say what it has to."""
        if self.server is not None:
            self.replies += self.server.messages()

    @rule()
    def read(self) -> None:
        """Let the client read one reply."""
        if self.replies:
            reply = self.replies.popleft()
            take = self.client.answered if isinstance(reply, Listed) else self.client.received
            take(reply, self.now_us)  # type: ignore[arg-type]  # the two kinds go to the two methods
            self._act()

    @rule(seconds=st.integers(1, 25))
    def wait(self, seconds: int) -> None:
        """Let time pass; while disconnected nothing is given up."""
        before = set(self.subscribed)
        self.now_us += seconds * SECOND
        self.client.tick(self.now_us)
        self._act()
        if self.server is None:
            assert self.subscribed >= before

    @rule(name=_name)
    def fail_to_subscribe(self, name: str) -> None:
        """Let a subscription fail: it is tried again."""
        if name in self.subscribed:
            self.subscribed.remove(name)
            self.client.subscribe_failed(name, self.now_us)
            self.now_us += SECOND
            self.client.tick(self.now_us)
            self._act_again(name)

    def _act_again(self, name: str) -> None:
        actions = self.client.take()
        assert Subscribe(name) in actions or Unsubscribe(name) in actions
        self.subscribed.add(name)
        self.subscribed -= {action.topic for action in actions if isinstance(action, Unsubscribe)}
        self.subscribed |= {action.topic for action in actions if isinstance(action, Subscribe)}
        self.requests += [action for action in actions if not isinstance(action, Subscribe | Unsubscribe)]

    def teardown(self) -> None:
        """Let everything arrive, for two periods: the subscriptions are exactly the set."""
        if not hasattr(self, "client"):
            return
        if self.server is None:
            self.connect(_RULES[0], is_old=False, reconcile=True)
        for _ in range(60):
            self.wait(1)
            while self.requests or self.replies or (self.server and self.server.watches.due()):
                self.serve(is_lost=False, is_partial=False)
                self.say()
                self.read()
            self.say()

        assert self.subscribed == self.client.topics == self.client.listed == self._truth()


TestSubscriptions = _Subscriptions.TestCase
# Without shrinking, which takes minutes here and leaves as many steps as it found.
TestSubscriptions.settings = settings(
    max_examples=250, stateful_step_count=50, deadline=None, phases=[Phase.explicit, Phase.generate]
)
