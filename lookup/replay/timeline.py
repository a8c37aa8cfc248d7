"""Cut the time of a cluster into ticks at external events, which are registry changes, splits and admin unloads.

A tick is [start, end), a cell of a regular grid, cut at every event. Everything at a tick's start happens before its
lookups, in the order registry (`unregistered`, `updated`, `registered`, ties by broker id), splits, unloads.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

from lookup.model import Broker, BrokerLookupData, BundleRange, Location, Roster
from lookup.model.topology import LEVELS
from lookup.settings.resolve import BrokerInterval

__all__ = [
    "ClusterEvents", "OwnershipEvent", "Registration", "Span", "TickEvents", "Timeline", "build_timeline",
    "children_of", "cut_points", "registrations_of", "times_registered",
]  # fmt: skip

#: In this order events of one instant take place.
_REGISTRY_ORDER = {"unregistered": 0, "updated": 1, "registered": 2}
#: Start and end of a time, µs.
Span = tuple[int, int]


@dataclass(frozen=True, slots=True)
class Registration:
    """One entry of the registry's timeline."""

    ts_us: int
    broker: str
    #: "registered", "updated" or "unregistered"
    event: str
    #: None if the log does not have it, and then the broker's known value stays
    lookup_data: BrokerLookupData | None = None
    #: the broker as settings describe it from now on
    described: Broker | None = None

    def applied_to(self, broker: Broker) -> Broker:
        """Change a broker by this entry. Its location follows its labels, unless settings give one."""
        if self.described is not None or self.lookup_data is None:
            return self.described or broker
        changed = replace(broker, lookup_data=self.lookup_data)
        has_own = broker.location and broker.location != _locate_by_labels(broker)
        return changed if has_own else replace(changed, location=_locate_by_labels(changed))


@dataclass(frozen=True, slots=True)
class OwnershipEvent:
    """One entry of the log of owners."""

    ts_us: int
    bundle: str
    #: "owned", "unloaded" or "split"
    event: str
    broker: str | None = None
    #: "policy" or "admin"
    by: str | None = None
    boundaries: tuple[int, ...] = ()


@dataclass(frozen=True)
class ClusterEvents:
    """All events of one cluster in logs and settings, before its time is cut into ticks."""

    registrations: Sequence[Registration] = ()
    #: splits, and unloads by an admin, in order of time
    splits: Sequence[OwnershipEvent] = ()
    unloads: Sequence[OwnershipEvent] = ()
    #: owners at the first lookup, by bundle
    owners: Mapping[str, str] = field(default_factory=dict)
    #: logged unloads by a policy, which a replay does not repeat
    ignored_unloads: int = 0
    #: brokers of the settings by id, with capacity, location and profile
    brokers: Mapping[str, Broker] = field(default_factory=dict)


@dataclass(frozen=True)
class TickEvents:
    """The events at the start of one tick."""

    #: roster and mask of a registry epoch that begins here
    registry: tuple[Roster, NDArray[np.bool_]] | None = None
    #: (parent, children)
    splits: tuple[tuple[str, tuple[str, ...]], ...] = ()
    unloads: tuple[str, ...] = ()


@dataclass(frozen=True)
class Timeline:
    """The ticks of one cluster."""

    #: starts and the end of the last tick, µs, shape (n_ticks + 1,)
    bounds: NDArray[np.int64]
    #: whether a tick begins at an instant of the grid, shape (n_ticks,)
    is_grid: NDArray[np.bool_]
    #: by number of the tick
    events: Mapping[int, TickEvents]
    #: the brokers of the whole run with the data of its first epoch
    roster: Roster
    #: (parent, children) of splits at or before the first lookup, in order
    initial_splits: tuple[tuple[str, tuple[str, ...]], ...]
    #: owners before the first lookup, by bundle, as of `restore_tick`
    owners: Mapping[str, str]
    restore_tick: int
    #: logged unloads by a policy, which a replay does not repeat
    ignored_unloads: int

    @cached_property
    def event_numbers(self) -> Mapping[tuple[int, str, str], int]:
        """The number of every event that may take bundles from their owners, by (tick, cause, name).

        The name is of the leaving broker, or unloaded or split bundle. Numbers are by time and equal for all policies.
        """
        keys: list[tuple[int, str, str]] = []
        registered = np.zeros(len(self.roster), dtype=bool)
        for tick, events in sorted(self.events.items()):
            if events.registry is not None:
                roster, present = events.registry
                gone = np.flatnonzero(registered & ~present)
                keys.extend((tick, "forced", roster[number].id) for number in gone.tolist())
                registered = present
            keys.extend((tick, "split", parent) for parent, _ in events.splits)
            keys.extend((tick, "admin", bundle) for bundle in events.unloads)
        return {key: number for number, key in enumerate(dict.fromkeys(keys))}

    @cached_property
    def brokers(self) -> tuple[Broker, ...]:
        """Every broker as it was last registered."""
        brokers = {broker.id: broker for broker in self.roster}
        for roster, registered in self.epochs:
            brokers |= {broker.id: broker for broker, present in zip(roster, registered, strict=True) if present}
        return tuple(brokers.values())

    @property
    def most_registered(self) -> int:
        """The largest number of brokers that are registered at a time."""
        return max((int(registered.sum()) for _, registered in self.epochs), default=0)

    @property
    def epochs(self) -> list[tuple[Roster, NDArray[np.bool_]]]:
        """Roster and mask of every registry epoch in order."""
        return [events.registry for _, events in sorted(self.events.items()) if events.registry is not None]

    @property
    def splits(self) -> Iterator[tuple[str, tuple[str, ...]]]:
        """Yield (parent, children) of every split, those before the first lookup too, in order of time."""
        yield from self.initial_splits
        for _, events in sorted(self.events.items()):
            yield from events.splits

    @property
    def unloads(self) -> Iterator[str]:
        """Yield the bundle of every unload by an admin, in order of time."""
        for _, events in sorted(self.events.items()):
            yield from events.unloads

    @property
    def event_causes(self) -> tuple[str, ...]:
        """The cause that each event has in the changes of owner it leads to, by its number."""
        return tuple(cause for _, cause, _ in self.event_numbers)

    @property
    def n_ticks(self) -> int:
        """The number of ticks."""
        return len(self.is_grid)


def registrations_of(intervals: Iterable[BrokerInterval]) -> list[Registration]:
    """Build the registry's timeline from broker profiles."""
    timeline: list[Registration] = []
    for interval in intervals:
        start = np.iinfo(np.int64).min if interval.from_us is None else interval.from_us
        timeline.append(Registration(int(start), interval.broker.id, "registered", described=interval.broker))
        if interval.until_us is not None:
            timeline.append(Registration(interval.until_us, interval.broker.id, "unregistered"))
    return timeline


def times_registered(registrations: Iterable[Registration]) -> tuple[Span, ...]:
    """List when any broker is registered, as [start, end) in order. Open ends are the greatest 64-bit integer."""
    times: list[Span] = []
    present, since = set[str](), 0
    for event in _sort_registrations(registrations):
        if event.event == "registered":
            since = since if present else event.ts_us
            present.add(event.broker)
        elif event.event == "unregistered" and present:
            present.discard(event.broker)
            times += [] if present else [(since, event.ts_us)]
    return (*times, (since, int(np.iinfo(np.int64).max))) if present else tuple(times)


def cut_points(event: OwnershipEvent) -> tuple[int, ...]:
    """List the hashes at which a split cuts its bundle, ascending. They are strictly inside the bundle."""
    ends = BundleRange.parse(event.bundle.rpartition("/")[2])
    return tuple(sorted({hashed for hashed in event.boundaries if ends.lower < hashed < ends.upper}))


def children_of(event: OwnershipEvent) -> tuple[str, ...]:
    """Name the bundles after a split."""
    namespace, _, bounds = event.bundle.rpartition("/")
    ends = BundleRange.parse(bounds)
    points = (ends.lower, *cut_points(event), ends.upper)
    return tuple(f"{namespace}/{BundleRange(low, high)}" for low, high in pairwise(points))


def build_timeline(events: ClusterEvents, *, first_us: int, last_us: int, tick_us: int) -> Timeline:
    """Cut a cluster's time into ticks.

    Args:
        first_us, last_us: first and last lookup.
        tick_us: cell of the grid, whole multiples since the Unix epoch.
    """
    start, end = first_us // tick_us * tick_us, (last_us // tick_us + 1) * tick_us
    # A replay decides a policy's own unloads again, while splits and an admin's unloads happen to any policy.
    later: dict[int, TickEvents] = {}
    for event in (event for event in events.splits if first_us < event.ts_us < end):
        before = later.get(event.ts_us, TickEvents())
        later[event.ts_us] = replace(before, splits=(*before.splits, (event.bundle, children_of(event))))
    for event in (event for event in events.unloads if first_us < event.ts_us < end):
        before = later.get(event.ts_us, TickEvents())
        later[event.ts_us] = replace(before, unloads=(*before.unloads, event.bundle))
    registrations = _sort_registrations(event for event in events.registrations if event.ts_us < end)
    cuts = {*later, *(event.ts_us for event in registrations if event.ts_us >= start)}
    starts = np.array(sorted({*range(start, end, tick_us), *cuts}), dtype=np.int64)
    registry = _find_epochs(registrations, events.brokers, starts)
    # Tick 0 has the registry of the beginning, events or not.
    busy = sorted({0, *np.searchsorted(starts, sorted(cuts)).tolist()})
    return Timeline(
        bounds=np.append(starts, end),
        is_grid=starts % tick_us == 0,
        events={
            tick: replace(later.get(int(starts[tick]), TickEvents()), registry=registry.get(tick)) for tick in busy
        },
        roster=registry[0][0],
        initial_splits=tuple((event.bundle, children_of(event)) for event in events.splits if event.ts_us <= first_us),
        owners=events.owners,
        restore_tick=int(np.searchsorted(starts, first_us, side="right")) - 1,
        ignored_unloads=events.ignored_unloads,
    )


def _sort_registrations(registrations: Iterable[Registration]) -> list[Registration]:
    return sorted(registrations, key=lambda event: (event.ts_us, _REGISTRY_ORDER[event.event], event.broker))


def _find_epochs(
    registrations: Sequence[Registration], settings: Mapping[str, Broker], starts: NDArray[np.int64]
) -> dict[int, tuple[Roster, NDArray[np.bool_]]]:
    """Map the tick at which each registry epoch begins to roster and mask. The first epoch begins at tick 0."""
    brokers = {
        name: settings.get(name, Broker(name))
        for name in sorted({event.broker for event in registrations} | set(settings))
    }
    for event in reversed(registrations):
        # Columns need every broker from the start. A broker that comes later has the data of its first registration.
        if event.described is not None or event.lookup_data is not None:
            brokers[event.broker] = event.applied_to(settings.get(event.broker, Broker(event.broker)))
    epochs: dict[int, tuple[Roster, NDArray[np.bool_]]] = {}
    registered = dict.fromkeys(brokers, False)
    roster = Roster(tuple(brokers.values()))
    epochs[0] = roster, np.zeros(len(roster), dtype=bool)
    for event in registrations:
        tick = int(np.searchsorted(starts, event.ts_us))
        if event.event != "updated":
            registered[event.broker] = event.event == "registered"
        changed = event.applied_to(brokers[event.broker])
        if changed != brokers[event.broker]:
            brokers[event.broker] = changed
            roster = Roster(tuple(brokers.values()))
        epochs[tick] = roster, np.array([registered[broker.id] for broker in roster])
    return dict(sorted(epochs.items()))


def _locate_by_labels(broker: Broker) -> Location:
    return Location(*(broker.property_of(level) for level in LEVELS))
