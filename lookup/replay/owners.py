"""Take from a log of owners what a replay goes by: owners at the first lookup, an admin's unloads, lost owners.

A task reads the log day by day, so its length takes no memory, neither there nor on the driver.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from heapq import merge

import numpy as np
from numpy.typing import NDArray

from lookup.replay.atoms import Atoms
from lookup.replay.days import Part, day_rows
from lookup.replay.reports import CAUSES, EVENTS
from lookup.replay.timeline import OwnershipEvent, Registration, children_of
from lookup.replay.work import WorkDir

__all__ = ["InducedMarks", "OwnerLog", "Owners", "induced_marks", "owners_of"]

Ints = NDArray[np.int64]


@dataclass(frozen=True)
class OwnerLog:
    """OWNERSHIP of one cluster: its parts by day, the texts of its codes, and its splits, which say more."""

    days: Mapping[int, Sequence[Part]]
    bundles: Sequence[str]
    brokers: Sequence[str]
    #: in order of time
    splits: Sequence[OwnershipEvent]

    def events(self, work: WorkDir) -> Iterator[OwnershipEvent]:
        """Yield all events in order of time, ties in order of the files; one day's rows are held at a time."""
        splits = iter(self.splits)
        for _, parts in sorted(self.days.items()):
            rows = day_rows(work, parts)
            everything = slice(0, len(rows))
            columns = [rows.column(name, everything).tolist() for name in ("bundle", "event", "broker", "by")]
            for ts, bundle, event, broker, by in zip(rows.ts.tolist(), *columns, strict=True):
                if EVENTS[event] == "split":
                    yield next(splits)
                else:
                    owner = None if broker < 0 else self.brokers[broker]
                    yield OwnershipEvent(ts, self.bundles[bundle], EVENTS[event], owner, None if by < 0 else CAUSES[by])


@dataclass(frozen=True)
class Owners:
    """What a timeline goes by of a log of owners."""

    #: by bundle, as of the first lookup
    first: Mapping[str, str]
    #: unloads by an admin between the first lookup and the end of the last one's tick
    unloads: tuple[OwnershipEvent, ...]
    #: unloads by a policy, which a replay does not repeat
    ignored_unloads: int


def owners_of(events: Iterable[OwnershipEvent], *, first_us: int, end_us: int) -> Owners:
    """Take the owners at an instant out of events in order of time, and what is left of those after it."""
    owners: dict[str, str] = {}
    unloads, ignored = [], 0
    for event in events:
        is_unload = event.event == "unloaded"
        ignored += is_unload and event.by != "admin"
        if is_unload and event.by == "admin" and first_us < event.ts_us < end_us:
            unloads.append(event)
        if event.ts_us <= first_us:
            _apply(event, owners)
    return Owners(owners, tuple(unloads), ignored)


def _apply(event: OwnershipEvent, owners: dict[str, str]) -> None:
    """Change owners by bundle as an event says."""
    owner = owners.pop(event.bundle, None)
    if event.event == "owned" and event.broker is not None:
        owners[event.bundle] = event.broker
    elif event.event == "split" and owner is not None:
        owners.update(dict.fromkeys(children_of(event), owner))


@dataclass(frozen=True, slots=True)
class InducedMarks:
    """Bundles that lost their owner in the log: when, and which atoms; columns of shape (n_marks,)."""

    ts: Ints
    first: Ints
    stop: Ints


def induced_marks(
    atoms: Atoms, ownership: Iterable[OwnershipEvent], registrations: Iterable[Registration]
) -> InducedMarks:
    """Return when which bundle lost its owner in the log: unloads, and what a broker owned that left.

    Args:
        ownership: in order of time.
    """
    losses = sorted((entry for entry in registrations if entry.event == "unregistered"), key=lambda entry: entry.ts_us)
    owners: dict[str, str] = {}
    marks: list[tuple[int, int, int]] = []

    def mark(ts_us: int, bundle: str) -> None:
        """Note a bundle whose atoms are known."""
        span = atoms.slice_of(bundle)
        if span is not None:
            marks.append((ts_us, span.start, span.stop))

    # At one instant the log of owners comes before the registry.
    history: Iterator[OwnershipEvent | Registration] = merge(ownership, losses, key=lambda event: event.ts_us)
    for event in history:
        if isinstance(event, Registration):
            orphans = sorted(bundle for bundle, owner in owners.items() if owner == event.broker)
            for bundle in orphans:
                mark(event.ts_us, bundle)
                del owners[bundle]
        else:
            _apply(event, owners)
            if event.event == "unloaded":
                mark(event.ts_us, event.bundle)
    return InducedMarks(*np.array(marks, dtype=np.int64).reshape(-1, 3).T)
