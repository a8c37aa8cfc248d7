"""Hold a list of topics as a server sent it, and apply the messages of a watch to it."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from lookup.topics.listing.topic_list import topics_hash
from lookup.topics.watching.messages import Resync, Snapshot, Update

__all__ = ["NO_CHANGE", "ListChange", "ListCopy"]


@dataclass(frozen=True, slots=True)
class ListChange:
    """The change a message made in the list: removed first, added then; in both: another topic of the same name."""

    removed: frozenset[str] = frozenset()
    added: frozenset[str] = frozenset()


NO_CHANGE = ListChange()


class ListCopy:
    """The topics of one list, as the client has them."""

    def __init__(self) -> None:
        self.topics: frozenset[str] = frozenset()

    @property
    def topics_hash(self) -> str:
        """Return the hash of the list; it reads every name."""
        return topics_hash(self.topics)

    def take(self, message: Snapshot | Update | Resync) -> ListChange:
        """Apply a message of the watch; return the change it made."""
        if isinstance(message, Update):
            return self.edit(message.removed, message.added)
        if isinstance(message, Snapshot) and not message.changed:
            return NO_CHANGE
        return self.replace(message.topics)

    def replace(self, topics: Iterable[str]) -> ListChange:
        """Make the list that of some topics."""
        wanted = frozenset(topics)
        return self.edit(self.topics - wanted, wanted - self.topics)

    def edit(self, removed: Iterable[str], added: Iterable[str]) -> ListChange:
        """Remove some topics first, and add some then."""
        before, removed, added = self.topics, frozenset(removed), frozenset(added)
        self.topics = (before - removed) | added
        # Repeated additions change nothing; a topic both removed and added is another one, so it counts as added.
        return ListChange(removed & before, frozenset(t for t in added if t not in before or t in removed))
