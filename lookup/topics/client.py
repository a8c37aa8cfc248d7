"""Keep a consumer's subscriptions equal to a set of topics over several namespaces, as one server or several list them.

`Subscriber` is a state machine without I/O and without a clock: its caller hands in the messages of a watch and the
time, and fetches the actions. No subscription is given up because a list came back short: not while a server that may
have the topic is away, and otherwise only after a time of grace, since giving a subscription up deletes it with
everything that was not read.

Source: PIP-145, both drafts of PIP-451, PIP-452; `docs/pulsar/protocol.md` (clients that delete subscriptions).
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import chain
from typing import TypeAlias

from lookup.errors import ArgumentError
from lookup.model.catalog import Mode, Selector
from lookup.model.quoting import shown
from lookup.topics.catalog.naming import checked_namespace, namespace_of
from lookup.topics.listing import TopicQuery
from lookup.topics.watching import Message, Snapshot, Trouble, Watch

__all__ = ["Pace", "ServerLists", "Subscribe", "Subscriber", "TopicSet", "Unsubscribe"]


@dataclass(frozen=True, slots=True)
class Pace:
    """The waiting times of a client, in µs."""

    #: before it tries again what failed
    retry_us: int = 1_000_000
    #: before it gives up the subscription of a topic that is no longer listed
    grace_us: int = 60_000_000

    def __post_init__(self) -> None:
        for name, least in (("retry_us", 1), ("grace_us", 0)):
            if getattr(self, name) < least:
                raise ArgumentError(f"{name} is {getattr(self, name)}, and must be {least} or more")


@dataclass(frozen=True, slots=True)
class TopicSet:
    """The topics that a consumer subscribes to: those of a pattern, or those of a selector.

    Raises:
        ArgumentError: if there is neither pattern nor selector, or both: an empty selector does not mean everything;
            and for one text in place of a list of namespaces.
        InvalidNameError: for a namespace that is not of the form tenant/namespace.
    """

    pattern: str | None = None
    #: labels that a topic must have
    selector: Selector | None = None
    #: the consumer's properties, forwarded to the server's lister (PIP-452)
    properties: Mapping[str, str] = field(default_factory=dict)
    #: namespaces to look in; empty: the client's own
    namespaces: Sequence[str] = ()
    mode: Mode = "persistent"

    def __post_init__(self) -> None:
        if (self.pattern is None) == (not self.selector):
            raise ArgumentError("a set of topics is given by a pattern or by a selector, and only one of them")
        if isinstance(self.namespaces, str):
            raise ArgumentError(f"namespaces is {shown(self.namespaces)}, which is one text and no list of namespaces")
        object.__setattr__(self, "namespaces", tuple(map(checked_namespace, self.namespaces)))

    def watch(self, own_namespace: str) -> Watch:
        """Return what the set asks of a server."""
        namespaces = dict.fromkeys(self.namespaces or (checked_namespace(own_namespace),))
        selector = self.selector or ()
        return Watch(tuple(TopicQuery(name, self.mode, self.pattern, selector, self.properties) for name in namespaces))


@dataclass(frozen=True, slots=True)
class Subscribe:
    """Subscribe to a topic; `again`: the topic was deleted and created, and the old subscription went with it."""

    topic: str
    again: bool = False


@dataclass(frozen=True, slots=True)
class Unsubscribe:
    """Give up the subscription of a topic."""

    topic: str


Action: TypeAlias = Subscribe | Unsubscribe


class ServerLists:
    """The topics of one watch as each of some servers has sent them; together they are the list.

    Args:
        servers: names of the servers, each once.

    Raises:
        PatternError: if the pattern cannot be used.
    """

    def __init__(self, watch: Watch, servers: Iterable[str]) -> None:
        self._topics: dict[str, frozenset[str]] = dict.fromkeys(servers, frozenset())
        #: servers whose list is known, and is kept up to date
        self._known: set[str] = set()
        #: by namespace the query as a server is trusted to answer it: whether a pattern fits is left to it
        self._trusted = {query.namespace: replace(query, pattern=None) for query in watch.queries}
        self._queries = {query.namespace: query for query in watch.queries}
        # Servers that leave the pattern to their clients.
        self._unfiltered: set[str] = set()
        for query in watch.queries:
            # Compiled for its errors alone, before anything is asked.
            query.matcher()

    @property
    def topics(self) -> frozenset[str]:
        """The topics that any server has."""
        return frozenset().union(*self._topics.values())

    @property
    def is_partial(self) -> bool:
        """Return whether topics may be missing, since a server is away (PIP-451: is_partial_result)."""
        return len(self._known) < len(self._topics)

    def take(self, server: str, message: Message) -> tuple[frozenset[str], frozenset[str]]:
        """Take in a message; return what left the list, and what came: in both is another topic of the same name."""
        if isinstance(message, Trouble):
            if message.is_lost:
                self._known.discard(server)
            return frozenset(), frozenset()
        # Also after a loss: with what was missed the list is whole again.
        self._known.add(server)
        before, mine = self.topics, self._topics[server]
        if isinstance(message, Snapshot):
            (self._unfiltered.discard if message.filtered else self._unfiltered.add)(server)
            # Of a namespace that does not exist a server that was made anew knows nothing yet.
            kept = frozenset(topic for topic in mine if namespace_of(topic) in message.absent)
            after, again = self._narrowed(server, message.topics) | kept, frozenset[str]()
        else:
            added = self._narrowed(server, message.added)
            after = (mine - frozenset(message.removed)) | added
            again = added.intersection(message.removed)
        self._topics[server] = after
        now = self.topics
        return before - now | again & before, now - before | again

    def _narrowed(self, server: str, topics: Sequence[str]) -> frozenset[str]:
        """Leave the topics that the watch is about: a faulty server names topics of other namespaces."""
        # The pattern of a server that filters is not applied again: its engine may read it in another way.
        queries = self._queries if server in self._unfiltered else self._trusted
        return frozenset(chain.from_iterable(query.among(topics) for query in queries.values()))


class Subscriber:
    """The subscriptions of one consumer to a set of topics.

    Args:
        wanted: the topics.
        own_namespace: the namespace to look in if the set names none.
        servers: names of the servers that are asked.
        pace: the times to wait.

    Raises:
        PatternError: if the pattern cannot be used.
        InvalidNameError: if its own namespace is not of the form tenant/namespace.
    """

    def __init__(
        self,
        wanted: TopicSet,
        *,
        own_namespace: str = "public/default",
        servers: Iterable[str] = ("",),
        pace: Pace | None = None,
    ) -> None:
        self._pace = pace or Pace()
        self.watch = wanted.watch(own_namespace)
        self._lists = ServerLists(self.watch, servers)
        self._subscribed: set[str] = set()
        #: topic -> when its grace ends
        self._leaving: dict[str, int] = {}
        #: topic whose subscription failed -> when to try again
        self._retries: dict[str, int] = {}
        self._actions: list[Action] = []

    @property
    def topics(self) -> frozenset[str]:
        """The topics that are subscribed to, those in their time of grace included."""
        return frozenset(self._subscribed)

    def received(self, message: Message, now_us: int, server: str = "") -> None:
        """Take in a message of a server's watch; the lists that were learnt before are kept while it is away."""
        removed, added = self._lists.take(server, message)
        # Sorted, so that equal answers lead to equal actions.
        for topic in sorted(removed - added):
            self._leaving.setdefault(topic, now_us + self._pace.grace_us)
        for topic in sorted(added):
            self._leaving.pop(topic, None)
            is_new = topic not in self._subscribed
            self._subscribed.add(topic)
            # A topic that came back in its time of grace is still subscribed to, unless it is another one by now.
            if is_new or topic in removed:
                self._retries.pop(topic, None)
                self._actions.append(Subscribe(topic, again=not is_new))
        self.tick(now_us)

    def subscribe_failed(self, topic: str, now_us: int) -> None:
        """Note that a subscription could not be made; it is tried again soon, as long as the topic is listed."""
        if topic in self._subscribed:
            self._retries[topic] = now_us + self._pace.retry_us

    def tick(self, now_us: int) -> None:
        """Collect the actions that are due: end times of grace, try failed subscriptions again."""
        # Not before each server has answered that may have it, however long it was away.
        for topic in _due(self._leaving, now_us) if not self._lists.is_partial else ():
            del self._leaving[topic]
            self._subscribed.remove(topic)
            self._retries.pop(topic, None)
            self._actions.append(Unsubscribe(topic))
        for topic in _due(self._retries, now_us):
            del self._retries[topic]
            self._actions.append(Subscribe(topic))

    def take(self) -> tuple[Action, ...]:
        """Return the actions, in order; each is returned once."""
        taken, self._actions = tuple(self._actions), []
        return taken


def _due(times: Mapping[str, int], now_us: int) -> list[str]:
    return [topic for topic, at in times.items() if at <= now_us]
