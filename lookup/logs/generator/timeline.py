"""What happens when in one cluster: brokers that register, vanish and return, unloads, splits, and the pieces between.

A piece is a stretch in which no broker comes or goes and nothing is unloaded or split on purpose; load reports are due
only where a piece begins.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from datetime import UTC, datetime

import numpy as np

from lookup.logs.generator.settings import GenerateSettings
from lookup.logs.generator.world import BrokerSite

__all__ = ["Event", "Piece", "broker_rows", "make_events", "make_pieces"]

_S = 1_000_000
_DAY = 86_400 * _S
#: Rows of a piece stay below this, so that memory does not depend on the length of the log.
_MAX_PIECE_ROWS = 500_000
#: A piece lasts an hour at most: the rate is constant within a piece.
_MAX_PIECE_S = 3_600
#: Hour of the day, UTC, at which traffic is highest, and how far the night falls below it.
_PEAK_HOUR = 14.0
_SWING = 0.45
#: The part of the log that events fall into: there is something before the first and after the last.
_EVENTFUL = (0.08, 0.92)
#: How long a lost broker stays away, share of the log.
_ABSENCE = 0.1


@dataclass(frozen=True, slots=True)
class Event:
    """One event: kind is registered, updated, lost, left, unload, shed or split; the last three name no broker."""

    ts: int
    kind: str
    broker: int | None = None


@dataclass(frozen=True, slots=True)
class Piece:
    """A stretch [start, end) of a cluster's log, the events at its start, and its share of the cluster's lookups."""

    start: int
    end: int
    events: tuple[Event, ...]
    #: whether brokers report their load at its start
    report: bool
    share: float


def make_events(settings: GenerateSettings, dice: np.random.Generator) -> tuple[Event, ...]:
    """Lay the events of a cluster over its time, in order of time; the first ones set up the registry."""
    span = settings.end_us - settings.start_us
    kinds = _kinds(settings, dice)
    places = (np.arange(len(kinds)) + dice.random(len(kinds))) / max(1, len(kinds))
    low, high = _EVENTFUL
    moments = [settings.start_us + int((low + (high - low) * place) * span) for place in places.tolist()]
    events = [replace(event, ts=moment) for event, moment in zip(kinds, moments, strict=True)]
    return tuple(sorted([*_setup(settings, events), *events, *_returns(settings, events)], key=_order))


def _order(event: Event) -> tuple[int, str, int]:
    return event.ts, event.kind, -1 if event.broker is None else event.broker


def _kinds(settings: GenerateSettings, dice: np.random.Generator) -> list[Event]:
    """Choose what happens and to whom, in random order; no broker meets with two of them."""
    befallen = ["lost"] * settings.losses + ["registered"] * settings.joins + ["left"] * settings.leaves
    befallen += ["updated"] * settings.updates
    brokers = dice.permutation(settings.brokers).tolist()
    kinds = [Event(0, kind, broker) for kind, broker in zip(befallen, brokers, strict=False)]
    kinds += [Event(0, "unload")] * settings.unloads + [Event(0, "shed")] * settings.sheds
    kinds += [Event(0, "split")] * settings.splits
    return [kinds[place] for place in dice.permutation(len(kinds)).tolist()]


def _setup(settings: GenerateSettings, events: Iterable[Event]) -> Iterator[Event]:
    """Register, a second apart and before the log begins, every broker that does not join later."""
    late = {event.broker for event in events if event.kind == "registered"}
    for number in range(settings.brokers):
        if number not in late:
            yield Event(settings.start_us - (600 + settings.brokers - number) * _S, "registered", number)


def _returns(settings: GenerateSettings, events: Iterable[Event]) -> Iterator[Event]:
    """Bring back every lost broker but the last one lost."""
    lost = sorted((event for event in events if event.kind == "lost"), key=_order)
    away = int(_ABSENCE * (settings.end_us - settings.start_us))
    for event in lost[:-1]:
        if event.ts + away < settings.end_us:
            yield Event(event.ts + away, "registered", event.broker)


def broker_rows(events: Iterable[Event], brokers: tuple[BrokerSite, ...]) -> Iterator[dict[str, object]]:
    """Yield the registry's rows: BROKERS without the cluster.

    A broker that is updated has no rack at first: somebody forgot the label and adds it while the broker runs.
    """
    events = tuple(events)
    mislabelled = {event.broker for event in events if event.kind == "updated"}
    for event in events:
        if event.broker is None:
            continue
        site = brokers[event.broker]
        if event.kind in ("lost", "left"):
            yield {"ts": event.ts, "broker": site.id, "event": "unregistered", "lookup_data": None}
            continue
        data = replace(site.data, start_timestamp=min(event.ts // 1000, site.data.start_timestamp))
        if event.kind == "registered" and event.broker in mislabelled:
            data = replace(data, properties={"lookup.zone": data.properties["lookup.zone"]})
        yield {"ts": event.ts, "broker": site.id, "event": event.kind, "lookup_data": data.to_json()}


def make_pieces(
    settings: GenerateSettings, events: Iterable[Event], lookups: int, dice: np.random.Generator
) -> tuple[Piece, ...]:
    """Cut the log at events, load reports and midnights, finely enough for the number of lookups."""
    later = [event for event in events if event.ts >= settings.start_us]
    grid = set(_grid(settings, lookups))
    reports = set(_reports(settings))
    cuts = sorted(grid | reports | {event.ts for event in later} | {settings.start_us})
    ends = [*cuts[1:], settings.end_us]
    rates = [_rate(start) * dice.gamma(60.0, 1.0 / 60.0) * (end - start) for start, end in zip(cuts, ends, strict=True)]
    total = math.fsum(rates)
    return tuple(
        Piece(start, end, tuple(event for event in later if event.ts == start), start in reports, rate / total)
        for start, end, rate in zip(cuts, ends, rates, strict=True)
    )


def _grid(settings: GenerateSettings, lookups: int) -> Iterator[int]:
    """Yield instants so close that no piece outlasts the hour or outgrows memory, and every midnight."""
    per_s = lookups / ((settings.end_us - settings.start_us) / _S) * (1.0 + _SWING) * 1.5
    step = max(1, min(_MAX_PIECE_S, int(_MAX_PIECE_ROWS / per_s))) * _S
    yield from range(settings.start_us, settings.end_us, step)
    yield from range(settings.start_us - settings.start_us % _DAY + _DAY, settings.end_us, _DAY)


def _reports(settings: GenerateSettings) -> range:
    step = settings.load_report_s * _S
    return range(settings.start_us + step, settings.end_us, step) if step else range(0)


def _rate(ts: int) -> float:
    """Return the relative rate of lookups at an instant: a day's wave."""
    moment = datetime.fromtimestamp(ts / _S, tz=UTC)
    hour = moment.hour + moment.minute / 60
    return 1.0 + _SWING * math.cos((hour - _PEAK_HOUR) / 24 * 2 * math.pi)
