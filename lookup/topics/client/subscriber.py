"""Keep a consumer's subscriptions equal to a set of topics over several namespaces, whatever its server can do.

`Subscriber` is a state machine without I/O and without a clock: its caller hands in connections, answers and the time,
and fetches the actions. `feed.py` follows each namespace. No subscription is given up because a list came back short:
not on a partial answer or one about loaded topics alone, not while disconnected, and otherwise only after a time of
grace, since giving a subscription up deletes it with everything that was not read.

Source: PIP-145, both drafts of PIP-451, PIP-452; `docs/pulsar/protocol.md` (clients that delete subscriptions).
"""

from __future__ import annotations

from itertools import chain, count

from lookup.errors import NotSupportedError
from lookup.topics.catalog.naming import checked_namespace
from lookup.topics.client.actions import Action, Listed, ServerFeatures, Subscribe, TopicSet, Unsubscribe
from lookup.topics.client.feed import Feed
from lookup.topics.client.list_copy import ListChange
from lookup.topics.rules import Pace
from lookup.topics.watching.messages import Closed, Message

__all__ = ["Subscriber"]


class Subscriber:
    """The subscriptions of one consumer to a set of topics.

    Args:
        wanted: the topics.
        own_namespace: the namespace to look in if the set names none.
        pace: the times to wait.

    Raises:
        PatternError: if the pattern cannot be used.
        InvalidNameError: if its own namespace is not of the form tenant/namespace.
    """

    def __init__(self, wanted: TopicSet, *, own_namespace: str, pace: Pace | None = None) -> None:
        self._pace = pace or Pace()
        ids = count(1)
        namespaces = dict.fromkeys(wanted.namespaces or (checked_namespace(own_namespace),))
        self._feeds = tuple(Feed(wanted, namespace, self._pace, ids) for namespace in namespaces)
        #: topic -> the feed it came from
        self._subscribed: dict[str, Feed] = {}
        #: topic -> when its grace ends
        self._leaving: dict[str, int] = {}
        #: topic whose subscription failed -> when to try again
        self._retries: dict[str, int] = {}
        self._actions: list[Action] = []

    @property
    def topics(self) -> frozenset[str]:
        """The topics that are subscribed to, those in their time of grace included."""
        return frozenset(self._subscribed)

    @property
    def listed(self) -> frozenset[str]:
        """The topics that the server listed last; after the time of grace these are `topics`."""
        return frozenset(chain.from_iterable(feed.topics for feed in self._feeds))

    @property
    def next_us(self) -> int | None:
        """The time in µs at which `tick` has an action next; None: not before the next answer or connection."""
        looks = (feed.due_us for feed in self._feeds if feed.due_us is not None)
        ends = (end for topic, end in self._leaving.items() if self._subscribed[topic].is_confirmed)
        return min(chain(looks, ends, self._retries.values()), default=None)

    def connected(self, server: ServerFeatures, now_us: int) -> None:
        """Begin to ask a server; the lists learnt before are kept, and sent as hashes.

        Raises:
            NotSupportedError: if the set is a selector and the server cannot evaluate it; nothing is asked then.
        """
        for feed in self._feeds:
            feed.connected(server, now_us)
        self.tick(now_us)

    def disconnected(self) -> None:
        """Keep all subscriptions, and give up none until a server has answered again."""
        for feed in self._feeds:
            feed.disconnected()

    def received(self, message: Message, now_us: int) -> None:
        """Take in a message about a watcher; one that belongs to no request of this connection is ignored."""
        if isinstance(message, Closed):
            return
        for feed in self._feeds:
            if feed.owns(message):
                self._follow(feed, feed.received(message, now_us), now_us)
        self.tick(now_us)

    def answered(self, answer: Listed, now_us: int) -> None:
        """Take in the answer to a poll; one that comes too late is ignored.

        Raises:
            NotSupportedError: if the answer to a selector was not filtered; nothing is subscribed to, and the server
                is not asked again.
        """
        for feed in self._feeds:
            if feed.awaits(answer.request_id):
                try:
                    change = feed.listed(answer, now_us)
                except NotSupportedError:
                    # Offline, or this server would be asked again at the next tick.
                    self.disconnected()
                    raise
                self._follow(feed, change, now_us)
        self.tick(now_us)

    def failed(self, request_id: int, now_us: int) -> None:
        """Note that a poll failed; it is tried again soon."""
        for feed in self._feeds:
            if feed.awaits(request_id):
                feed.failed(now_us)

    def subscribe_failed(self, topic: str, now_us: int) -> None:
        """Note that a subscription could not be made; it is tried again soon, as long as the topic is listed."""
        if topic in self._subscribed:
            self._retries[topic] = now_us + self._pace.retry_us

    def tick(self, now_us: int) -> None:
        """Collect the actions that are due: look again, end times of grace, try failed subscriptions again."""
        for feed in self._feeds:
            self._actions += feed.ask(now_us)
        for topic in _due(self._leaving, now_us):
            # Not before the server of this connection has answered, however long the old one was away.
            if self._subscribed[topic].is_confirmed:
                del self._leaving[topic], self._subscribed[topic]
                self._retries.pop(topic, None)
                self._actions.append(Unsubscribe(topic))
        for topic in _due(self._retries, now_us):
            del self._retries[topic]
            self._actions.append(Subscribe(topic))

    def take(self) -> tuple[Action, ...]:
        """Return the actions, in order; each is returned once."""
        taken, self._actions = tuple(self._actions), []
        return taken

    def _follow(self, feed: Feed, change: ListChange, now_us: int) -> None:
        # Sorted, so that equal answers lead to equal actions.
        for topic in sorted(change.removed - change.added):
            self._leaving.setdefault(topic, now_us + self._pace.grace_us)
        for topic in sorted(change.added):
            self._leaving.pop(topic, None)
            is_new = topic not in self._subscribed
            self._subscribed[topic] = feed
            # A topic that came back in its time of grace is still subscribed to, unless it is another one by now.
            if is_new or topic in change.removed:
                self._retries.pop(topic, None)
                self._actions.append(Subscribe(topic, again=not is_new))


def _due(times: dict[str, int], now_us: int) -> list[str]:
    return [topic for topic, at in times.items() if at <= now_us]
