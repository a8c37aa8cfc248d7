"""Put the lists of several servers together, as watches send them: a topic is listed as long as one server has it.

A list that came back short is not believed while a server that may have the topic is away: clients that do give a
subscription up, and with it everything that was not read.

Source: PIP-145, both drafts of PIP-451; `docs/pulsar/protocol.md` (clients that delete subscriptions).
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace

from lookup.topics.listing import TopicQuery
from lookup.topics.watching import Message, Snapshot, Trouble

__all__ = ["ServerLists"]


class ServerLists:
    """The topics of one watch as each of some servers has sent them; together they are the list.

    Args:
        servers: names of the servers, each once.

    Raises:
        PatternError: if the pattern cannot be used.
    """

    def __init__(self, query: TopicQuery, servers: Iterable[str]) -> None:
        self._topics: dict[str, frozenset[str]] = dict.fromkeys(servers, frozenset())
        #: servers whose list is known, and is kept up to date
        self._known: set[str] = set()
        #: as a server is trusted to answer it: its engine may read a pattern in another way
        self._trusted = replace(query, pattern=None)
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
            # Of a namespace that does not exist a server that was made anew knows nothing yet.
            after = mine if message.is_absent else self._narrowed(message.topics)
            again = frozenset[str]()
        else:
            added = self._narrowed(message.added)
            after = (mine - frozenset(message.removed)) | added
            again = added.intersection(message.removed)
        self._topics[server] = after
        now = self.topics
        return before - now | again & before, now - before | again

    def _narrowed(self, topics: Sequence[str]) -> frozenset[str]:
        # A faulty server names topics of other namespaces.
        return frozenset(self._trusted.among(topics))
