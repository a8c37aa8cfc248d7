"""Lay events over the time of one cluster: brokers that register, vanish and return, unloads, splits; cut it in pieces.

A piece is a stretch in which no broker comes or goes and nothing is unloaded or split on purpose; load reports are due
only at the beginning of a piece.
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
    # A broker has one of these events at most: the permutation names each once. Not strict: most brokers have none.
    kinds = ["lost"] * settings.losses + ["registered"] * settings.joins + ["left"] * settings.leaves
    kinds += ["updated"] * settings.updates
    brokers = dice.permutation(settings.brokers).tolist()
    undated = [Event(0, kind, broker) for kind, broker in zip(kinds, brokers, strict=False)]
    undated += [Event(0, "unload")] * settings.unloads + [Event(0, "shed")] * settings.sheds
    undated += [Event(0, "split")] * settings.splits
    order = dice.permutation(len(undated)).tolist()
    # One event in each of as many equal parts: events are spread and still not regular.
    shares = (np.arange(len(undated)) + dice.random(len(undated))) / max(1, len(undated))
    low, high = _EVENTFUL
    moments = [settings.start_us + int((low + (high - low) * share) * span) for share in shares.tolist()]
    events = [
        replace(event, ts=moment) for event, moment in zip((undated[index] for index in order), moments, strict=True)
    ]
    # Every broker that does not join later registers before the log begins, a second apart from the others.
    late = {event.broker for event in events if event.kind == "registered"}
    setup = [
        Event(settings.start_us - (600 + settings.brokers - number) * _S, "registered", number)
        for number in range(settings.brokers)
        if number not in late
    ]
    # Every lost broker but the last one lost comes back, unless the log ends before.
    lost = sorted((event for event in events if event.kind == "lost"), key=_order)
    away = int(_ABSENCE * span)
    returns = [
        Event(event.ts + away, "registered", event.broker) for event in lost[:-1] if event.ts + away < settings.end_us
    ]
    return tuple(sorted([*setup, *events, *returns], key=_order))


def _order(event: Event) -> tuple[int, str, int]:
    return event.ts, event.kind, -1 if event.broker is None else event.broker


def broker_rows(events: Iterable[Event], brokers: tuple[BrokerSite, ...]) -> Iterator[dict[str, object]]:
    """Yield the registry's rows: BROKERS without the cluster.

    A broker that is updated has no rack at first: an operator forgot the label and adds it while the broker runs.
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
        # No broker registers before it has started.
        data = replace(site.data, start_timestamp=min(event.ts // 1000, site.data.start_timestamp))
        if event.kind == "registered" and event.broker in mislabelled:
            data = replace(data, properties={"lookup.zone": data.properties["lookup.zone"]})
        yield {"ts": event.ts, "broker": site.id, "event": event.kind, "lookup_data": data.to_json()}


def make_pieces(
    settings: GenerateSettings, events: Iterable[Event], lookups: int, dice: np.random.Generator
) -> tuple[Piece, ...]:
    """Cut the log at events, load reports and midnights, finely enough for the number of lookups."""
    later = [event for event in events if event.ts >= settings.start_us]
    # Pieces that neither outlast the hour nor outgrow memory: the factor leaves room for the peak and for its noise.
    per_s = lookups / ((settings.end_us - settings.start_us) / _S) * (1.0 + _SWING) * 1.5
    step = max(1, min(_MAX_PIECE_S, int(_MAX_PIECE_ROWS / per_s))) * _S
    grid = range(settings.start_us, settings.end_us, step)
    # A file of LOOKUPS holds rows of one day.
    midnights = range(settings.start_us - settings.start_us % _DAY + _DAY, settings.end_us, _DAY)
    interval = settings.load_report_s * _S
    reports = range(settings.start_us + interval, settings.end_us, interval) if interval else range(0)
    cuts = sorted({*grid, *midnights, *reports, *(event.ts for event in later), settings.start_us})
    ends = [*cuts[1:], settings.end_us]
    rates = [_rate(start) * dice.gamma(60.0, 1.0 / 60.0) * (end - start) for start, end in zip(cuts, ends, strict=True)]
    total = math.fsum(rates)
    return tuple(
        Piece(start, end, tuple(event for event in later if event.ts == start), start in reports, rate / total)
        for start, end, rate in zip(cuts, ends, rates, strict=True)
    )


def _rate(ts: int) -> float:
    """Return the relative rate of lookups at an instant: a day's wave."""
    moment = datetime.fromtimestamp(ts / _S, tz=UTC)
    hour = moment.hour + moment.minute / 60
    return 1.0 + _SWING * math.cos((hour - _PEAK_HOUR) / 24 * 2 * math.pi)
