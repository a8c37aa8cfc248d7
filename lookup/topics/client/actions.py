"""Actions of a subscription client, answers to its polls, and features of its server: plain values.

Requests for watches and the messages that answer them are in `lookup.topics.watching`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import TypeAlias

from lookup.errors import ArgumentError
from lookup.model.catalog import Mode, Selector
from lookup.model.quoting import shown
from lookup.topics.catalog.naming import checked_namespace
from lookup.topics.listing.topic_lister import ListRequest
from lookup.topics.listing.topic_query import TopicQuery
from lookup.topics.watching.messages import WatchRequest

__all__ = ["Action", "Listed", "Poll", "ServerFeatures", "Subscribe", "TopicSet", "Unsubscribe", "Unwatch"]


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
    #: the consumer's properties, forwarded with every listing (PIP-452)
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

    def query(self, namespace: str) -> TopicQuery:
        """Return what the set asks of one namespace."""
        return TopicQuery(namespace, self.mode, self.pattern, self.selector or (), self.properties)


@dataclass(frozen=True, slots=True)
class ServerFeatures:
    """The features that a server announces (Pulsar: `FeatureFlags`); one it does not mention is false."""

    #: supports_topic_watchers
    watchers: bool = False
    #: supports_topic_watcher_reconcile: a watcher asked for twice is refreshed
    reconcile: bool = False
    #: evaluates selectors (PIP-451), in listings and, with `watchers`, in watches
    selectors: bool = False


@dataclass(frozen=True, slots=True)
class Poll(ListRequest):
    """Ask for the topics of a namespace, as GET_TOPICS_OF_NAMESPACE does, with the hash of the last answer."""

    request_id: int = field(kw_only=True)


@dataclass(frozen=True, slots=True)
class Listed:
    """The answer to a `Poll`, with the defaults of a server that knows none of the newer fields."""

    request_id: int
    topics: Sequence[str]
    topics_hash: str | None = None
    filtered: bool = False
    changed: bool = True
    #: some topics may be missing (PIP-451: is_partial_result)
    partial: bool = False
    #: only loaded topics were looked at (PIP-451: active_only); a topic that is not listed may exist all the same
    active_only: bool = False


@dataclass(frozen=True, slots=True)
class Unwatch:
    """Close a watcher."""

    request_id: int
    watcher_id: int


@dataclass(frozen=True, slots=True)
class Subscribe:
    """Subscribe to a topic; `again`: the topic was deleted and created, and the old subscription went with it."""

    topic: str
    again: bool = False


@dataclass(frozen=True, slots=True)
class Unsubscribe:
    """Give up the subscription of a topic."""

    topic: str


Action: TypeAlias = Poll | WatchRequest | Unwatch | Subscribe | Unsubscribe
