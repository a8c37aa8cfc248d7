"""Messages between a client and a server about watches: plain values, one class per command of the protocol.

No bytes are written here and nothing is decided. Names follow `CommandWatchTopicList` and its kin; each field that the
wire does not have (a selector, properties), and the message that it does not have (a resync), is marked.

Source: PIP-145, first draft of PIP-451, `docs/pulsar/protocol.md`.
"""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from dataclasses import dataclass
from typing import Literal, TypeAlias

from lookup.errors import ArgumentError
from lookup.topics.listing.topic_query import TopicQuery

__all__ = [
    "Closed", "Connection", "Message", "Refused", "Resync", "ServerError", "Snapshot", "Update", "WatchQuery",
    "WatchRequest",
]  # fmt: skip

#: The server's name for a connection.
Connection: TypeAlias = Hashable

#: Names of Pulsar's ServerError that a watch may be refused with; MetadataError alone means: try again.
ServerError: TypeAlias = Literal["MetadataError", "TooManyRequests", "InvalidTopicName", "NotAllowedError"]


@dataclass(frozen=True, slots=True)
class WatchQuery(TopicQuery):
    """The watched topics of a namespace: those of a pattern, or those of a selector.

    The wire has no field for a selector yet (PIP-451), nor for properties, which PIP-452 leaves out of watches.
    Two watchers with equal queries share one list of topics and one hash.

    Raises:
        ArgumentError: if there is neither pattern nor selector, or both.
    """

    def __post_init__(self) -> None:
        # Not `super()`: with slots the class is made a second time, and is another one here.
        TopicQuery.__post_init__(self)
        if (self.pattern is None) == (not self.selector):
            raise ArgumentError(f"a watch of {self.namespace!r} needs a pattern or a selector, and only one of them")


@dataclass(frozen=True, slots=True)
class WatchRequest:
    """A client wants a watcher, or refreshes the one it has under this id.

    Args:
        topics_hash: hash of the list the client holds; None or empty: it holds none.
    """

    request_id: int
    watcher_id: int
    query: WatchQuery
    topics_hash: str | None = None


@dataclass(frozen=True, slots=True)
class Snapshot:
    """The answer to a request: the whole list, or a note that the client's list is unchanged.

    On the wire an unchanged one is an empty list whose hash is the one the client sent.
    """

    request_id: int
    watcher_id: int
    topics: Sequence[str]
    topics_hash: str
    changed: bool = True


@dataclass(frozen=True, slots=True)
class Update:
    """The changes since the last message; a client removes first and adds then.

    A topic in both lists was deleted and created again: its old subscriptions are gone.
    """

    watcher_id: int
    removed: tuple[str, ...]
    added: tuple[str, ...]
    #: hash of the whole list after the change
    topics_hash: str


@dataclass(frozen=True, slots=True)
class Resync:
    """The whole list, unasked, in place of more changes than a slow client may have waiting.

    A wire without such a message closes the watcher instead: its client opens it again with the hash it has.
    """

    watcher_id: int
    topics: Sequence[str]
    topics_hash: str


@dataclass(frozen=True, slots=True)
class Closed:
    """A watcher is gone because its client asked for it."""

    request_id: int
    watcher_id: int


@dataclass(frozen=True, slots=True)
class Refused:
    """A request that is not served, and why; a watcher that was there before stays."""

    request_id: int
    watcher_id: int
    error: ServerError
    message: str

    @property
    def is_temporary(self) -> bool:
        """Return whether a later try may succeed; after any other refusal the client polls."""
        return self.error in ("MetadataError", "TooManyRequests")


Message: TypeAlias = Snapshot | Update | Resync | Closed | Refused
