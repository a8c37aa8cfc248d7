"""What a catalog asks of the place where its changes are kept, and what all such places have in common.

The places are in `memory.py` and `sqlite.py`.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from contextlib import AbstractContextManager
from typing import Protocol

from lookup.errors import ArgumentError, StateError
from lookup.model.catalog import TopicEntry, TopicEvent

__all__ = ["Storage", "check_kept", "check_revision"]


class Storage(Protocol):
    """Where namespaces, topics and the last events are kept.

    What is written inside `writing()` is kept as a whole when the block ends, and not at all where it raises. One
    catalog writes at a time; what others have written meanwhile is found by `revision`.
    """

    @property
    def revision(self) -> int:
        """Return the revision of the last event that is kept, 0 before the first."""

    def namespaces(self) -> Iterable[str]:
        """Return the namespaces, in any order."""

    def entries(self) -> Iterable[TopicEntry]:
        """Return the topics, in any order."""

    def events_since(self, revision: int) -> Sequence[TopicEvent]:
        """Return the events after a revision, in order.

        Raises:
            StateError: where some of them are no longer kept, or the revision is ahead.
        """

    def add_namespace(self, namespace: str) -> None:
        """Keep a namespace; only inside `writing()`."""

    def save(self, event: TopicEvent, entry: TopicEntry | None) -> None:
        """Keep an event, and its topic as it is afterwards (None: deleted); only inside `writing()`."""

    def reading(self) -> AbstractContextManager[None]:
        """Return a block in which every answer is of one revision."""

    def writing(self) -> AbstractContextManager[None]:
        """Return a block that nobody else writes in; when it ends without an error, its changes are safe."""

    def close(self) -> None:
        """Let go of files; nothing else may be called afterwards."""


def check_revision(asked: int, current: int) -> None:
    """Refuse a question for events after a revision that was never reached."""
    if not 0 <= asked <= current:
        raise StateError(f"there is no revision {asked}: the catalog is at {current}")


def check_kept(n_events: int) -> int:
    """Return how many events a storage shall keep, at least one."""
    if n_events < 1:
        raise ArgumentError(f"n_events is {n_events}, at least the last event must be kept")
    return n_events
