"""Keep the list of a watch by the messages of its server.

Source: PIP-145, first draft of PIP-451; `docs/pulsar/protocol.md` (clients that delete subscriptions).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from lookup.topics.listing import TopicQuery
from lookup.topics.watching import Message, Snapshot, Update

__all__ = ["WatchedList"]


class WatchedList:
    """The topics of one watch, as its server has sent them.

    Raises:
        PatternError: if the pattern cannot be used.
    """

    def __init__(self, query: TopicQuery) -> None:
        self.topics: frozenset[str] = frozenset()
        #: as a server is trusted to answer it: its engine may read a pattern in another way
        self._trusted = replace(query, pattern=None)
        # Compiled for its errors alone, before anything is asked.
        query.matcher()

    def take(self, message: Message) -> tuple[frozenset[str], frozenset[str]]:
        """Take in a message; return what left the list, and what came: in both is another topic of the same name."""
        before, again = self.topics, frozenset[str]()
        match message:
            case Snapshot(topics=topics, is_absent=False):
                self.topics = self._among(topics)
            case Update(removed=removed, added=names):
                added = self._among(names)
                self.topics, again = (before - frozenset(removed)) | added, added.intersection(removed)
            # In trouble, and if a server that was made anew does not know the namespace yet, the list stays: clients
            # that lose a topic from it give a subscription up, with everything that was not read.
        return before - self.topics | again & before, self.topics - before | again

    def _among(self, topics: Sequence[str]) -> frozenset[str]:
        # A faulty server names topics of other namespaces.
        return frozenset(self._trusted.among(topics))
