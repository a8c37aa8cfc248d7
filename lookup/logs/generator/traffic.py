"""Schedule events over the time of one cluster, cut it in pieces, and draw the time, topic and client of lookups.

A piece is a stretch in which no broker comes or goes and no bundle is unloaded or split on purpose. Load reports are
due only at the beginning of a piece. The answers to lookups come from `owners.py`.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from statistics import NormalDist

import numpy as np
from numpy.typing import NDArray

from lookup.logs.generator.settings import GenerateSettings
from lookup.logs.generator.world import POPULARITY_BITS, BrokerSite, Clients, Topics
from lookup.model.broker import BrokerLookupData

__all__ = [
    "RECONNECT_S", "TABLE_BITS", "Draw", "Event", "Piece", "SyntheticTraffic", "broker_rows", "log_normal_table",
    "make_events", "make_pieces", "rate_at", "registered_data",
]  # fmt: skip

#: Clients of a bundle that lost its owner come back after a delay of this mean, seconds, and within `RECONNECT_S`.
_RECONNECT_MEAN_S = 3.0
RECONNECT_S = 30
#: Sessions opened in the last seconds before a loss reconnect.
_SESSION_S = 300
#: Weights and latencies come from tables of 2**12 quantiles, since few distinct values compress and still look smooth.
TABLE_BITS = 12
_S = 1_000_000
_DAY = 86_400 * _S
#: Rows of a piece stay below this, so that memory does not depend on the length of the log.
_MAX_PIECE_ROWS = 500_000
#: A piece lasts an hour at most, since the rate is constant within a piece.
_MAX_PIECE_S = 3_600
#: Hour of the day, UTC, at which traffic is highest, and how far the night falls below it.
_PEAK_HOUR = 14.0
_SWING = 0.45
#: The part of the log with events. There are lookups before the first event and after the last.
_EVENTFUL = (0.08, 0.92)
#: How long a lost broker stays away, share of the log.
_ABSENCE = 0.1


@dataclass(frozen=True, slots=True)
class Event:
    """One event. Its kind is registered, updated, lost, left, unload or split. The last two do not name a broker."""

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
    """Schedule the events of a cluster, in order of time. The first events set up the registry."""
    span = settings.end_us - settings.start_us
    # The permutation has each broker once, so each has at most one event. The zip is not strict, as most have none.
    kinds = ["lost"] * settings.losses + ["registered"] * settings.joins + ["left"] * settings.leaves
    kinds += ["updated"] * settings.updates
    brokers = dice.permutation(settings.brokers).tolist()
    undated = [Event(0, kind, broker) for kind, broker in zip(kinds, brokers, strict=False)]
    undated += [Event(0, "unload")] * settings.unloads
    undated += [Event(0, "split")] * settings.splits
    order = dice.permutation(len(undated)).tolist()
    # There is one event in each of as many equal parts, so events are spread but not regular.
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
    """Yield the registry's rows: BROKERS without the cluster."""
    events = tuple(events)
    mislabelled = {event.broker for event in events if event.kind == "updated"}
    for event in events:
        if event.broker is None:
            continue
        site = brokers[event.broker]
        if event.kind in ("lost", "left"):
            yield {"ts": event.ts, "broker": site.id, "event": "unregistered", "lookup_data": None}
            continue
        data = registered_data(event, site, is_mislabelled=event.broker in mislabelled)
        yield {"ts": event.ts, "broker": site.id, "event": event.kind, "lookup_data": data.to_json()}


def registered_data(event: Event, site: BrokerSite, *, is_mislabelled: bool) -> BrokerLookupData:
    """Build the data that a broker registers by an event.

    Args:
        is_mislabelled: the broker will be updated, and has no rack until an operator adds the label while it runs.
    """
    # No broker registers before it has started.
    data = replace(site.data, start_timestamp=min(event.ts // 1000, site.data.start_timestamp))
    if event.kind == "registered" and is_mislabelled:
        return replace(data, properties={"lookup.zone": data.properties["lookup.zone"]})
    return data


def make_pieces(
    settings: GenerateSettings, events: Iterable[Event], lookups: int, dice: np.random.Generator
) -> tuple[Piece, ...]:
    """Cut the log at events, load reports and midnights, finely enough for the number of lookups."""
    later = [event for event in events if event.ts >= settings.start_us]
    # Pieces are at most an hour and fit in memory. The factor leaves room for the peak and for its noise.
    per_s = lookups / ((settings.end_us - settings.start_us) / _S) * (1.0 + _SWING) * 1.5
    step = max(1, min(_MAX_PIECE_S, int(_MAX_PIECE_ROWS / per_s))) * _S
    grid = range(settings.start_us, settings.end_us, step)
    # A file of LOOKUPS holds rows of one day.
    midnights = range(settings.start_us - settings.start_us % _DAY + _DAY, settings.end_us, _DAY)
    interval = settings.load_report_s * _S
    reports = range(settings.start_us, settings.end_us, interval) if interval else range(0)
    cuts = sorted({*grid, *midnights, *reports, *(event.ts for event in later), settings.start_us})
    ends = [*cuts[1:], settings.end_us]
    rates = [
        rate_at(start) * dice.gamma(60.0, 1.0 / 60.0) * (end - start) for start, end in zip(cuts, ends, strict=True)
    ]
    total = math.fsum(rates)
    return tuple(
        Piece(start, end, tuple(event for event in later if event.ts == start), start in reports, rate / total)
        for start, end, rate in zip(cuts, ends, rates, strict=True)
    )


def rate_at(ts: int) -> float:
    """Compute the relative rate of lookups at an instant, which follows a day's wave."""
    moment = datetime.fromtimestamp(ts / _S, tz=UTC)
    hour = moment.hour + moment.minute / 60
    return 1.0 + _SWING * math.cos((hour - _PEAK_HOUR) / 24 * 2 * math.pi)


@dataclass(frozen=True, eq=False)
class Draw:
    """Lookups in order of time, without their answers, in columns of shape (n,)."""

    #: µs since the Unix epoch
    ts: NDArray[np.int64]
    topic: NDArray[np.int32]
    client: NDArray[np.int32]

    def __len__(self) -> int:
        return len(self.ts)

    def at(self, rows: NDArray[np.intp] | NDArray[np.bool_] | slice) -> Draw:
        """Select some of the rows."""
        return Draw(self.ts[rows], self.topic[rows], self.client[rows])


def _merge_draws(*draws: Draw) -> Draw:
    """Merge rows in order of time. Of equal times the earlier argument comes first."""
    ts = np.concatenate([draw.ts for draw in draws])
    order = np.argsort(ts, kind="stable")
    topic = np.concatenate([draw.topic for draw in draws])
    client = np.concatenate([draw.client for draw in draws])
    return Draw(ts[order], topic[order], client[order])


_NOTHING = Draw(np.empty(0, np.int64), np.empty(0, np.int32), np.empty(0, np.int32))


def log_normal_table(mean: float, sigma: float) -> NDArray[np.float64]:
    """Compute the 2**12 quantiles of a log-normal distribution, rounded to whole millionths, shape (4096,).

    Args:
        mean: of the distribution, in the unit of the result.
        sigma: standard deviation of the logarithm.
    """
    # Shifted by half the variance, so that the mean of the distribution and not its median is `mean`.
    normal = NormalDist(-sigma * sigma / 2, sigma)
    size = 1 << TABLE_BITS
    quantiles = [normal.inv_cdf((rank + 0.5) / size) for rank in range(size)]
    table: NDArray[np.float64] = np.round(mean * np.exp(quantiles), 6)
    return table


class SyntheticTraffic:
    """The stream of one cluster's lookups, piece by piece, with the clients that come back after a loss."""

    def __init__(
        self, topics: Topics, clients: Clients, lookups: int, rack_affinity: float, dice: np.random.Generator
    ) -> None:
        self._topics = topics
        self._clients = clients
        self._left = lookups
        self._share_left = 1.0
        self._affinity = round(rack_affinity * 65_536)
        self._dice = dice
        self._recent = _NOTHING
        self._returning = _NOTHING
        #: lookups of clients that came back so far
        self.reconnects = 0

    def disturb(self, ts: int, topics: NDArray[np.bool_]) -> None:
        """Make the clients of some topics reconnect after an instant, if they opened a session shortly before.

        Args:
            ts: time at which they lost their broker, µs.
            topics: mask over the topics, shape (n_topics,).
        """
        hit = self._recent.at(topics[self._recent.topic] & (self._recent.ts >= ts - _SESSION_S * _S))
        # A heartbeat's client is the broker itself, which is lost.
        hit = hit.at(hit.topic < self._topics.ordinary)
        delay = self._dice.exponential(_RECONNECT_MEAN_S * _S, len(hit)).astype(np.int64)
        back = Draw(ts + 1 + np.minimum(delay, RECONNECT_S * _S - 1), hit.topic, hit.client)
        self._returning = _merge_draws(self._returning, back)

    def draw(self, piece: Piece, *, last: bool) -> Draw:
        """Draw the lookups of a piece. The last piece takes all remaining ones."""
        is_due = self._returning.ts < piece.end
        back = self._returning.at(is_due).at(slice(0, self._left))
        self._returning = self._returning.at(~is_due)
        self.reconnects += len(back)
        remaining = self._left - len(back)
        # A share of the remaining lookups, not of all. Reconnecting clients took some, and rounding must not add up.
        regular = remaining if last else min(remaining, round(remaining * piece.share / self._share_left))
        self._left = remaining - regular
        self._share_left = max(self._share_left - piece.share, 1e-12)
        rows = self._draw_regular(piece, regular)
        if len(back):
            rows = _merge_draws(rows, back)
        # Only the last minutes are kept, which are the sessions that a loss in the next piece may hit.
        since = piece.end - _SESSION_S * _S
        recent = self._recent.at(slice(int(np.searchsorted(self._recent.ts, since)), None))
        fresh = rows.at(slice(int(np.searchsorted(rows.ts, since)), None))
        self._recent = _merge_draws(recent, fresh) if len(recent) else fresh
        return rows

    def _draw_regular(self, piece: Piece, count: int) -> Draw:
        """Draw lookups by popularity of topics. Clients are in the topic's home rack, or in any."""
        ts = self._dice.integers(piece.start, piece.end, count)
        ts.sort()
        # Of a row's random word 20 bits choose the topic, 16 whether the client is at home, the upper 28 the client.
        words = self._dice.integers(0, 2**64, count, dtype=np.uint64)
        slots = (words & np.uint64((1 << POPULARITY_BITS) - 1)).astype(np.int32)
        topic = self._topics.popularity[slots]
        at_home = ((words >> np.uint64(POPULARITY_BITS)) & np.uint64(0xFFFF)).astype(np.int32) < self._affinity
        fraction = (words >> np.uint64(36)).astype(np.int64)
        clients, home = self._clients, self._topics.home[topic]
        size = np.where(at_home, clients.count[home], clients.ordinary)
        first = np.where(at_home, clients.first[home], 0)
        picked = first + ((fraction * size) >> 28)
        # Brokers look up their own heartbeat topics, whatever was drawn.
        beat = topic >= self._topics.ordinary
        picked[beat] = clients.ordinary + topic[beat] - self._topics.ordinary
        return Draw(ts, topic, np.asarray(picked, dtype=np.int32))
