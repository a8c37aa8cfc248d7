"""The subscription client under every order of events, at servers of every kind, between which it moves.

A machine of Hypothesis decides what happens next, delivers late, cuts connections and lets time pass. At every step no
topic is given up that was in the set all the time, and in the end the subscriptions are the set. The catalog is the
real one, in memory or in a file that another process writes to.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from random import Random

from hypothesis import Phase, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, rule

from lookup.model.catalog import Equals
from lookup.topics.client import Listed, Poll, Subscribe, Subscriber, TopicSet, Unsubscribe, Unwatch
from lookup.topics.rules import Pace, WatchRules
from lookup.topics.watching import Message, WatchQuery, WatchRequest
from tests.topics.exchange import SECOND, Server
from tests.topics.shelf import InFile, InMemory, Place, by_rule, relabel, topic

_PERSISTENT = tuple(
    topic(name, namespace) for namespace in ("t/n", "t/m") for name in ("a", "ab", "b", "__change_events")
)
_NAMES = (*_PERSISTENT, topic("a", domain="non-persistent"))
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

    make_place: Callable[[], Place] = InMemory

    @initialize(wanted=st.sampled_from(_SETS))
    def begin(self, wanted: TopicSet) -> None:
        """Start without a connection."""
        self.place, self.wanted = type(self).make_place(), wanted
        self.client = Subscriber(wanted, own_namespace="t/n", pace=_PACE)
        self.now_us = 0
        self.requests: deque[Poll | WatchRequest | Unwatch] = deque()
        self.replies: deque[Message | Listed] = deque()
        self.subscribed: set[str] = set()
        #: topics that were out of the set at some time since they were subscribed to
        self.were_out: set[str] = set()
        self.server: Server | None = None

    def _truth(self) -> set[str]:
        spaces = self.wanted.namespaces or ("t/n",)
        queries = [
            WatchQuery(name, self.wanted.mode, self.wanted.pattern, self.wanted.selector or ()) for name in spaces
        ]
        catalog = self.place.writer(0)
        return {name for query in queries for name in by_rule(catalog, query)}

    def _act(self) -> None:
        for action in self.client.take():
            match action:
                case Subscribe(name, again):
                    assert again == (name in self.subscribed)
                    self.subscribed.add(name)
                    self.were_out |= self.subscribed - self._truth()
                case Unsubscribe(name):
                    self.subscribed.remove(name)
                    assert name in self.were_out
                    self.were_out.discard(name)
                    assert self.server is not None
                case _:
                    self.requests.append(action)

    @rule(name=_name, env=_env, choice=st.integers(0, 3))
    def change(self, name: str, env: str, choice: int) -> None:
        """Create a topic or label it, or delete it; the server's process or another one does it."""
        self._change(name, env, choice)

    def _change(self, name: str, env: str, choice: int) -> None:
        writer = self.place.writer(choice)
        if writer.entry(name) is None:
            writer.create(name, labels={"env": env})
        elif choice // 2:
            writer.delete(name)
        else:
            relabel(writer, name, {"env": env})
        self.were_out |= self.subscribed - self._truth()

    @rule(
        rules=st.none() | st.sampled_from(_RULES),
        is_old=st.booleans(),
        reconcile=st.booleans(),
        chance=st.integers(0, 3),
    )
    def connect(self, rules: WatchRules | None, chance: int, *, is_old: bool, reconcile: bool) -> None:
        """Cut the connection and connect to a new server, or to none; all know labels if these are asked for."""
        if self.server is not None and chance:
            return
        self._leave()
        if rules is not None:
            is_old = is_old and not self.wanted.selector
            self.server = Server(self.place.catalog, rules=rules, is_old=is_old, reconcile=reconcile)
            self.client.connected(self.server.features, self.now_us)
            self._act()

    @rule(chance=st.integers(0, 3))
    def crash(self, chance: int) -> None:
        """End the server's process, and those of all who write to a file."""
        if not chance:
            self._leave()
            self.place.crash()

    def _leave(self) -> None:
        if self.server is not None:
            self.server.leave()
        self.server = None
        self.requests.clear()
        self.replies.clear()
        self.client.disconnected()

    @rule(seed=st.integers(0, 1 << 32), steps=st.integers(5, 60))
    def go_on(self, seed: int, steps: int) -> None:
        """Let requests and replies move on while topics come and go; some polls fail, some are answered in part."""
        # Drawn from a seed: Hypothesis draws far too few steps of its own for three of them to meet.
        dice = Random(seed)
        for _ in range(steps):
            match dice.choice(("serve", "serve", "say", "say", "read", "read", "fail", "shorten", "change", "wait")):
                case "say":
                    self._say()
                case "read":
                    self._read()
                case "change":
                    self._change(dice.choice(_NAMES), dice.choice(("prod", "test")), dice.randrange(4))
                case "wait":
                    self._wait(dice.choice((1, 1, 3, 20)))
                case how:
                    self._serve(how)

    def _serve(self, how: str) -> None:
        if not self.requests or self.server is None:
            return
        request = self.requests.popleft()
        if not isinstance(request, Poll):
            self.server.watch(request)
        elif how == "fail":
            self.client.failed(request.request_id, self.now_us)
        else:
            self.replies.append(self._poll(self.server, request, is_partial=how == "shorten"))

    def _poll(self, server: Server, poll: Poll, *, is_partial: bool) -> Listed:
        said = server.poll(poll)
        if not is_partial:
            return said
        return Listed(said.request_id, said.topics[1:], filtered=said.filtered, partial=True)

    def _say(self) -> None:
        if self.server is not None:
            self.server.catalog.refresh()
            self.replies += self.server.messages()

    def _read(self) -> None:
        if self.replies:
            reply = self.replies.popleft()
            take = self.client.answered if isinstance(reply, Listed) else self.client.received
            take(reply, self.now_us)  # type: ignore[arg-type]  # the two kinds go to the two methods
            self._act()

    @rule(seconds=st.integers(1, 25))
    def wait(self, seconds: int) -> None:
        """Let time pass; while disconnected nothing is given up."""
        self._wait(seconds)

    def _wait(self, seconds: int) -> None:
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
        self.were_out |= self.subscribed - self._truth()
        self.requests += [action for action in actions if not isinstance(action, Subscribe | Unsubscribe)]

    def teardown(self) -> None:
        """Let everything arrive, for two periods: the subscriptions are exactly the set."""
        if hasattr(self, "client"):
            try:
                self._settle()
            finally:
                self.place.close()

    def _settle(self) -> None:
        if self.server is None:
            self.connect(_RULES[0], 0, is_old=False, reconcile=True)
        for _ in range(60):
            self._wait(1)
            while self.requests or self.replies or (self.server and self.server.watches.due()):
                self._serve("serve")
                self._say()
                self._read()
            self._say()

        assert self.subscribed == self.client.topics == self.client.listed == self._truth()


class _InFile(_Subscriptions):
    """The same over a file, which another process writes to and which outlives a crash of both."""

    make_place = InFile


# Without shrinking, which takes minutes here and leaves as many steps as it found.
_SETTINGS = settings(max_examples=200, stateful_step_count=30, deadline=None, phases=[Phase.explicit, Phase.generate])
TestSubscriptions = _Subscriptions.TestCase
TestSubscriptions.settings = _SETTINGS
TestInFile = _InFile.TestCase
# A file is opened and written to for each example.
TestInFile.settings = settings(_SETTINGS, max_examples=60)
