"""One cluster's log from beginning to end: pieces are drawn, answered and handed to the writer one after the other."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from lookup.logs.columns import RESULTS
from lookup.logs.generator.loads import LoadReports
from lookup.logs.generator.owners import Owners
from lookup.logs.generator.settings import GenerateSettings
from lookup.logs.generator.timeline import Event, Piece, broker_rows, make_events, make_pieces
from lookup.logs.generator.traffic import TABLE_BITS, Draw, Traffic, log_normal_table
from lookup.logs.generator.world import make_brokers, make_clients, make_topics

__all__ = ["ClusterLog", "LookupColumns"]

#: Columns of LOOKUPS as arrays of one length: codes for dictionary columns (-1 is null), values for the others.
LookupColumns = Mapping[str, NDArray[np.generic]]

#: Shares of the lookups, in 65,536ths.
_READ_ONLY = 655
_FAILING = 65
_REDIRECTED = 330
_EXTERNAL = 2_000
#: Latency of a lookup whose broker stands in the client's rack, and of the others, ms.
_NEAR_MS, _FAR_MS = 1.5, 4.0
_CONNECT, _REDIRECT, _FAILED, _UNKNOWN = (RESULTS.index(name) for name in ("connect", "redirect", "failed", "unknown"))


@dataclass(frozen=True, eq=False)
class _Dice:
    """Luck of each row, one column of 16 bits for each of seven questions, shape (n,)."""

    read_only: NDArray[np.uint16]
    failing: NDArray[np.uint16]
    redirect: NDArray[np.uint16]
    asked: NDArray[np.uint16]
    weight: NDArray[np.uint16]
    latency: NDArray[np.uint16]
    listener: NDArray[np.uint16]

    @classmethod
    def roll(cls, count: int, dice: np.random.Generator) -> _Dice:
        """Roll for every lookup, a number of 16 bits for each thing that is left to luck."""
        words = dice.integers(0, 2**64, (2, count), dtype=np.uint64)
        columns = [(word >> np.uint64(16 * place)).astype(np.uint16) for word in words for place in range(4)]
        return cls(*columns[:7])


class ClusterLog:
    """One cluster of a synthetic log.

    Args:
        place: of the cluster among all; it decides addresses and luck.
        lookups: rows of this cluster.
    """

    def __init__(self, settings: GenerateSettings, name: str, place: int, lookups: int) -> None:
        self._settings = settings
        self._name = name
        self._dice = np.random.default_rng([settings.seed, place])
        self._sites = make_brokers(settings, name)
        self._topics = make_topics(settings, self._sites, self._dice)
        self._clients = make_clients(settings, place, self._sites, self._dice)
        self._events = make_events(settings, self._dice)
        self._pieces = make_pieces(settings, self._events, lookups, self._dice)
        self._traffic = Traffic(self._topics, self._clients, lookups, settings.rack_affinity, self._dice)
        self._owners = Owners(
            self._topics,
            self._clients,
            self._sites,
            bundles_per_namespace=settings.bundles_per_namespace,
            policy=settings.logging_policy,
            dice=self._dice,
        )
        self._weights = log_normal_table(1.0, 1.0)
        self._latencies = np.concatenate([log_normal_table(_NEAR_MS, 0.5), log_normal_table(_FAR_MS, 0.5)])
        self._site_rack = np.array([site.rack for site in self._sites])
        span_s = (settings.end_us - settings.start_us) / 1_000_000
        # As if an operator had sized the cluster for twice its mean traffic.
        self._loads = LoadReports(tuple(site.id for site in self._sites), 2.0 * lookups / span_s / settings.brokers)
        self._last_report = settings.start_us
        self._load_rows: list[dict[str, object]] = []
        self._written = 0

    @property
    def dictionaries(self) -> dict[str, tuple[str, ...]]:
        """Return the values behind the codes of the dictionary columns."""
        brokers = tuple(site.id for site in self._sites)
        return {
            "topic": self._topics.names,
            "client": self._clients.ids,
            "properties": self._clients.property_sets,
            "asked_broker": brokers,
            "broker": brokers,
            "result": RESULTS,
            "listener": ("external",),
        }

    @property
    def reconnects(self) -> int:
        """Return how many lookups so far came from clients that had lost their broker."""
        return self._traffic.reconnects

    def broker_rows(self) -> Iterator[dict[str, object]]:
        """Yield this cluster's rows of BROKERS."""
        return self._named(broker_rows(self._events, self._sites))

    def ownership_rows(self) -> Iterator[dict[str, object]]:
        """Yield this cluster's rows of OWNERSHIP; complete once all pieces were drawn.

        A log that does not say who answered keeps only what an administrator did, without owners.
        """
        if self._settings.logging_policy != "none":
            return self._named(self._owners.rows)
        return self._named({**row, "broker": None} for row in self._owners.rows if row["by"] == "admin")

    def load_rows(self) -> Iterator[dict[str, object]]:
        """Yield this cluster's rows of LOADS; complete once all pieces were drawn."""
        return self._named(self._load_rows)

    def _named(self, rows: Iterator[dict[str, object]] | list[dict[str, object]]) -> Iterator[dict[str, object]]:
        return ({"cluster": self._name, **row} for row in rows)

    def pieces(self) -> Iterator[LookupColumns]:
        """Draw the log piece by piece and yield the columns of LOOKUPS."""
        before = [event for event in self._events if event.ts < self._settings.start_us]
        self._owners.set_up(self._events)
        for event in before:
            self._owners.apply(event)
        for piece in self._pieces:
            self._begin(piece)
            draw = self._traffic.draw(piece, last=piece is self._pieces[-1])
            yield self._columns(draw)

    def _begin(self, piece: Piece) -> None:
        if piece.report:
            self._report(piece.start)
        for event in piece.events:
            self._disturb(event)

    def _disturb(self, event: Event) -> None:
        homeless = self._owners.apply(event)
        if homeless.any():
            self._traffic.disturb(event.ts, homeless)

    def _report(self, ts: int) -> None:
        seconds = (ts - self._last_report) / 1_000_000
        self._load_rows += self._loads.report(
            ts,
            seconds,
            registered=self._owners.registered,
            bundles=self._owners.bundle_counts(),
            topics=self._owners.topic_counts(),
        )
        self._last_report = ts

    def _columns(self, draw: Draw) -> LookupColumns:
        """Roll the dice of every row, let the owners answer, and lay out the canonical columns."""
        dice = _Dice.roll(len(draw), self._dice)
        hop = dice.redirect < _REDIRECTED
        after_hop = _follow(draw, hop)
        columns = {
            "ts": draw.ts,
            "seq": np.arange(self._written, self._written + len(draw)),
            "topic": draw.topic,
            "client": draw.client,
            "properties": self._clients.properties[draw.client],
            "read_only": (dice.read_only < _READ_ONLY) & ~hop,
            "authoritative": after_hop,
            "listener": np.where(dice.listener < _EXTERNAL, 0, -1).astype(np.int8),
            "weight": self._weights[dice.weight >> (16 - TABLE_BITS)],
        }
        self._written += len(draw)
        answers = self._answers(draw, dice, columns, hop=hop)
        return {**columns, **(_untold(hop) if self._settings.logging_policy == "none" else answers)}

    def _answers(self, draw: Draw, dice: _Dice, columns: LookupColumns, *, hop: NDArray[np.bool_]) -> LookupColumns:
        """Return the columns that tell what the logging policy did, and count the load it placed."""
        failing = (dice.failing < _FAILING) & ~hop
        weight = columns["weight"].astype(np.float64, copy=False)
        assigning = ~(hop | failing | columns["read_only"].astype(bool, copy=False))
        answers = self._owners.answer(draw.ts, draw.topic, draw.client, assigning=assigning, weight=weight)
        broker = np.where(failing, -1, answers.broker).astype(np.int32)
        self._loads.add(np.where(hop, -1, broker), weight)
        return {
            "asked_broker": self._asked(dice.asked, np.where(columns["authoritative"], broker, -1)),
            "broker": broker,
            "result": np.where(hop, _REDIRECT, np.where(broker < 0, _FAILED, _CONNECT)).astype(np.int8),
            "propensity": np.where(hop | failing, np.nan, answers.propensity),
            "latency_ms": self._latency(dice.latency, draw.client, broker),
        }

    def _asked(self, luck: NDArray[np.uint16], redirected: NDArray[np.int32]) -> NDArray[np.int32]:
        """Return the broker that was asked: any registered one, after a hop the one that was pointed to."""
        registered = self._owners.registered.astype(np.int32)
        if not len(registered):
            return np.full(len(luck), -1, dtype=np.int32)
        anyone = registered[(luck.astype(np.int64) * len(registered)) >> 16]
        return np.where(redirected >= 0, redirected, anyone)

    def _latency(
        self, luck: NDArray[np.uint16], client: NDArray[np.int32], broker: NDArray[np.int32]
    ) -> NDArray[np.float64]:
        """Return latencies in ms, NaN for lookups nobody answered; another rack is farther."""
        far = self._clients.rack[client] != self._site_rack[np.maximum(broker, 0)]
        place = (luck >> (16 - TABLE_BITS)).astype(np.int32) + (far.astype(np.int32) << TABLE_BITS)
        return np.where(broker >= 0, self._latencies[place], np.nan)


def _untold(hop: NDArray[np.bool_]) -> LookupColumns:
    """Return the columns of a log that does not tell who answered."""
    nobody, unknown = np.full(len(hop), -1, np.int32), np.full(len(hop), np.nan)
    result = np.where(hop, _REDIRECT, _UNKNOWN).astype(np.int8)
    return {
        "asked_broker": nobody,
        "broker": nobody,
        "result": result,
        "propensity": unknown,
        "latency_ms": unknown,
    }


def _follow(draw: Draw, hop: NDArray[np.bool_]) -> NDArray[np.bool_]:
    """Make the row after each hop the same client's second attempt; return the mask of those rows.

    A hop right after a hop, and one in the last row, is none.
    """
    hop[1:] &= ~hop[:-1].copy()
    hop[-1:] = False
    places = np.flatnonzero(hop) + 1
    draw.topic[places] = draw.topic[places - 1]
    draw.client[places] = draw.client[places - 1]
    after = np.zeros(len(hop), dtype=bool)
    after[places] = True
    return after
