"""A subscription client and a server joined in memory, old or new, with everything delivered at once."""

from __future__ import annotations

from lookup.hooks import Lister
from lookup.topics.catalog import Catalog
from lookup.topics.catalog.naming import without_system_topics
from lookup.topics.client import Listed, Poll, ServerFeatures, Subscribe, Subscriber, Unsubscribe, Unwatch
from lookup.topics.client.actions import Action
from lookup.topics.listing import TopicLister
from lookup.topics.rules import WatchRules
from lookup.topics.watching import Message, TopicListService, WatchRequest, carry_out
from tests.topics.shelf import Everything

__all__ = ["SECOND", "Exchange", "Server"]

SECOND = 1_000_000


class Server:
    """A server over a catalog.

    Args:
        is_old: it knows nothing of patterns, hashes and watches, as before PIP-145.
        lister: a custom lister; it drives watches too.
    """

    def __init__(
        self,
        catalog: Catalog,
        *,
        rules: WatchRules | None = None,
        is_old: bool = False,
        reconcile: bool = True,
        selectors: bool = True,
        lister: Lister | None = None,
    ) -> None:
        rules = rules or WatchRules()
        self.catalog, self.is_old = catalog, is_old
        self.features = ServerFeatures(
            watchers=rules.topic_list_watcher and not is_old, reconcile=reconcile, selectors=selectors and not is_old
        )
        self.lister = TopicLister(lister or Everything(), catalog, rules)
        self.custom = self.lister if lister else None
        interests = lister.interests if lister else None
        self.watches = TopicListService(rules, interests=interests, revision=catalog.revision)
        #: what ends the server's hearing of changes
        self.leave = catalog.subscribe(self.watches.heard)

    def watch(self, action: WatchRequest | Unwatch) -> None:
        """Take a request about a watcher."""
        if isinstance(action, WatchRequest):
            self.watches.open("c", action)
        else:
            self.watches.close("c", action.request_id, action.watcher_id)

    def messages(self) -> list[Message]:
        """List what is wanted, and return what there is to say."""
        carry_out(self.watches, self.catalog, self.custom)
        return list(self.watches.take("c"))

    def poll(self, poll: Poll) -> Listed:
        """Answer a request for a list."""
        if self.is_old:
            return Listed(poll.request_id, without_system_topics(self.catalog.topics(poll.namespace, poll.mode)))
        said = self.lister.answer(poll)
        return Listed(poll.request_id, said.topics, said.topics_hash, said.filtered, said.changed)


class Exchange:
    """A client and its server, at a time that the test moves."""

    def __init__(self, client: Subscriber, server: Server) -> None:
        self.client, self.server, self.now_us = client, server, 0
        #: everything the client wanted done, in order
        self.done: list[Action] = []
        #: answers and messages, in order
        self.said: list[Message | Listed] = []
        self.subscribed: set[str] = set()
        client.connected(server.features, 0)
        self.settle()

    def settle(self) -> None:
        """Deliver until nothing is left to deliver."""
        while True:
            actions = self.client.take()
            for action in actions:
                self._do(action)
            messages = self.server.messages()
            for message in messages:
                self.said.append(message)
                self.client.received(message, self.now_us)
            if not actions and not messages:
                return

    def _do(self, action: Action) -> None:
        self.done.append(action)
        match action:
            case Subscribe(name, again):
                assert again or name not in self.subscribed
                self.subscribed.add(name)
            case Unsubscribe(name):
                self.subscribed.remove(name)
            case Poll():
                self.said.append(answer := self.server.poll(action))
                self.client.answered(answer, self.now_us)
            case WatchRequest() | Unwatch():
                self.server.watch(action)

    def wait(self, seconds: float) -> None:
        """Let time pass, second by second."""
        end = self.now_us + int(seconds * SECOND)
        while self.now_us < end:
            self.now_us = min(end, self.now_us + SECOND)
            self.client.tick(self.now_us)
            self.settle()

    def lose_connection(self) -> None:
        """Cut both from each other."""
        self.client.disconnected()
        self.server.watches.disconnected("c")

    def connect(self, server: Server | None = None) -> None:
        """Connect again, perhaps to another server."""
        self.server = server or self.server
        self.client.connected(self.server.features, self.now_us)
        self.settle()

    def count(self, kind: type) -> int:
        """Return how many actions of a kind were wanted so far."""
        return sum(isinstance(action, kind) for action in self.done)
