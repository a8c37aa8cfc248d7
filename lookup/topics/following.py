"""A catalog that follows another one's events, so that every broker ends with the same index.

A state machine without I/O: whoever carries events from there to here hands them in, in any number and even twice; a
gap is noticed, never passed over.

    state        input                            does                                     next
    ---------    -----------------------------    -------------------------------------    ---------
    unplaced     hear                             keeps nothing, answers False             unplaced
    any          catch_up                         events since the position, or, where     placed
                                                  they are not kept, the snapshot
    placed       hear, the next revision          makes the change                         placed
    placed       hear, a revision from before     nothing                                  placed
    placed       hear, a later revision           keeps nothing, answers False             placed

Source: PIP-451 (consistency across brokers), `facts/protocol.md` 6.3 (register before listing, never assume delivery).
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

from lookup.errors import StateError
from lookup.model.catalog import TopicEvent
from lookup.topics.catalog import Catalog, Snapshot
from lookup.topics.changes import advanced

__all__ = ["Follower", "Source"]


class Source(Protocol):
    """What a follower asks of the catalog it follows; `Catalog` answers it."""

    def snapshot(self) -> Snapshot:
        """Return everything at one revision."""

    def events_since(self, revision: int) -> Sequence[TopicEvent]:
        """Return the events after a revision; `StateError` where some are no longer kept."""


class Follower:
    """Keeps a catalog equal to another: the same topics, labels, properties and index, under revisions of its own.

    Args:
        target: what follows; nobody else writes to it.
        position: the revision of the source that the target is at; None: not known, so it begins with a snapshot.
    """

    def __init__(self, target: Catalog, *, position: int | None = None) -> None:
        self._target = target
        self._position = position

    @property
    def position(self) -> int | None:
        """Return the revision of the source that the target is at, None before the first snapshot."""
        return self._position

    def hear(self, event: TopicEvent) -> bool:
        """Take in one event; return False where events before it are missing, so that `catch_up` is due."""
        if self._position is None or event.revision > self._position + 1:
            return False
        if event.revision == self._position + 1:
            self._target.mirror(event.topic, advanced(self._target.entry(event.topic), event))
            self._position = event.revision
        return True

    def catch_up(self, source: Source) -> None:
        """Take in what was missed: the events where the source still has them, else everything."""
        missed = self._missed(source)
        if missed is None:
            self._copy(source.snapshot())
            return
        before = self._position
        try:
            with self._target.together():
                for event in missed:
                    self.hear(event)
        except BaseException:
            self._position = before
            raise

    def _missed(self, source: Source) -> Sequence[TopicEvent] | None:
        if self._position is None:
            return None
        try:
            return source.events_since(self._position)
        except StateError:
            return None

    def _copy(self, snapshot: Snapshot) -> None:
        """Make of the target what the snapshot shows, by the changes that are needed and no others."""
        wanted = {entry.name: entry for entry in snapshot.entries}
        with self._target.together():
            for namespace in snapshot.namespaces:
                self._target.create_namespace(namespace)
            gone = {entry.name: None for entry in self._target.snapshot().entries if entry.name not in wanted}
            for name, entry in {**gone, **wanted}.items():
                self._target.mirror(name, entry)
        self._position = snapshot.revision
