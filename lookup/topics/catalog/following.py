"""Follow another catalog's events, so that every broker ends with the same index.

A state machine without I/O: its caller carries events from there to here and hands them in, in any number and even
twice; a gap is noticed, never passed over.

    state        input                            does                                     next
    ---------    -----------------------------    -------------------------------------    ---------
    unplaced     hear                             keeps nothing, answers False             unplaced
    any          catch_up                         events since the position, or, if        placed
                                                  they are not kept, the snapshot
    placed       hear, the next revision          makes the change                         placed
    placed       hear, a revision from before     nothing                                  placed
    placed       hear, a later revision           keeps nothing, answers False             placed

The position is the source's revision that the target is at: it moves with a change that is safe, whatever a listener
of the target does then, and stays if a change was not kept. One thread at a time uses a follower.

Source: PIP-451 (consistency across brokers), `docs/pulsar/protocol.md` (register before listing, never assume
delivery).
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from typing import Protocol

from lookup.errors import StateError
from lookup.model.catalog import TopicEvent
from lookup.topics.catalog.catalog import Catalog, CatalogSnapshot
from lookup.topics.catalog.state import advanced

__all__ = ["Follower", "Source"]


class Source(Protocol):
    """The catalog that is followed, as its follower reads it; `Catalog` satisfies it."""

    def snapshot(self) -> CatalogSnapshot:
        """Return everything at one revision."""

    def events_since(self, revision: int) -> Sequence[TopicEvent]:
        """Return the events after a revision; `StateError` if some are no longer kept."""


class Follower:
    """Keeps a catalog equal to another: the same topics, labels, properties and index, under revisions of its own.

    What is loaded is not taken over: it describes the broker of the source, which may be gone when that is read again.

    Args:
        target: the catalog that follows; the follower alone writes to it.
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
        """Take in one event; return False if events before it are missing, so that `catch_up` is due.

        Raises:
            Exception: as a listener of the target raised it, after the change was made.
        """
        if self._position is None or event.revision > self._position + 1:
            return False
        if event.revision == self._position + 1:
            with self._moving_to(event.revision):
                self._follow(event)
        return True

    def catch_up(self, source: Source) -> None:
        """Take in the missed events if the source still has them, else everything.

        Raises:
            Exception: as a listener of the target raised it, after everything was taken in.
        """
        missed = None
        if self._position is not None:
            # More was missed than the source keeps events: a snapshot has it all.
            with suppress(StateError):
                missed = source.events_since(self._position)
        if missed is None:
            self._copy(source.snapshot())
            return
        with self._moving_to(missed[-1].revision if missed else self._position):
            for event in missed:
                self._follow(event)

    def _follow(self, event: TopicEvent) -> None:
        if event.kind == "namespace-created":
            self._target.create_namespace(event.topic)
        elif event.kind == "namespace-deleted":
            self._target.delete_namespace(event.topic)
        else:
            self._target.mirror(event.topic, advanced(self._target.entry(event.topic), event))

    @contextmanager
    def _moving_to(self, position: int | None) -> Iterator[None]:
        """Make one transaction of the block and be at a position once it is safe, already when listeners hear of it."""
        before, revision = self._position, self._target.revision
        try:
            with self._target.together():
                yield
                self._position = position
        except BaseException:
            # A listener that raised heard of a change that is safe; if the revision did not move, nothing was kept.
            if self._target.revision == revision:
                self._position = before
            raise

    def _copy(self, snapshot: CatalogSnapshot) -> None:
        """Make the target equal to a snapshot, by the changes that are needed and no others."""
        wanted = {entry.name: entry for entry in snapshot.entries}
        with self._moving_to(snapshot.revision):
            for namespace in snapshot.namespaces:
                self._target.create_namespace(namespace)
            # Removals first, so that a plain topic and the partitions that took its name never exist together.
            gone = {entry.name: None for entry in self._target.snapshot().entries if entry.name not in wanted}
            for name, entry in {**gone, **wanted}.items():
                self._target.mirror(name, entry)
            for namespace in set(self._target.namespaces()).difference(snapshot.namespaces):
                self._target.delete_namespace(namespace)
