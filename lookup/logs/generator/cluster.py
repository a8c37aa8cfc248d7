"""Draw one cluster's log from beginning to end: pieces are drawn, answered and laid out one after the other.

Load reports follow the traffic: they say what each broker served since the last one, as Pulsar's `BrokerLoadData`.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from lookup.logs.columns import RESULTS
from lookup.logs.generator.owners import Owners
from lookup.logs.generator.settings import GenerateSettings
from lookup.logs.generator.timeline import broker_rows, make_events, make_pieces
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
#: How a broker's usage remembers (Pulsar: loadBalancerHistoryResourcePercentage).
_HISTORY = 0.9
#: One unit of weight stands for this many messages a second in, and this many bytes of each.
_MESSAGES = 50.0
_BYTES = 1_024.0
#: Every message goes out to this many consumers.
_FAN_OUT = 2.0
_CORES = 8
_HEAP_MIB = 4_096.0
_NETWORK_KBIT = 10_000_000.0


@dataclass(frozen=True, eq=False)
class _Dice:
    """Random numbers of each row: one column of 16 bits for each of seven draws, shape (n,)."""

    read_only: NDArray[np.uint16]
    failing: NDArray[np.uint16]
    redirect: NDArray[np.uint16]
    asked: NDArray[np.uint16]
    weight: NDArray[np.uint16]
    latency: NDArray[np.uint16]
    listener: NDArray[np.uint16]

    @classmethod
    def roll(cls, count: int, dice: np.random.Generator) -> _Dice:
        """Draw the random numbers of some lookups."""
        # Two words of 64 bits hold eight numbers, in one draw instead of seven.
        words = dice.integers(0, 2**64, (2, count), dtype=np.uint64)
        columns = [(word >> np.uint64(16 * part)).astype(np.uint16) for word in words for part in range(4)]
        return cls(*columns[:7])


class ClusterLog:
    """One cluster of a synthetic log.

    Args:
        number: of the cluster among all; it decides addresses and luck.
        lookups: rows of this cluster.
    """

    def __init__(self, settings: GenerateSettings, name: str, number: int, lookups: int) -> None:
        self._settings = settings
        self._name = name
        # One stream of luck in a fixed order: moving a draw below changes every log.
        self._dice = np.random.default_rng([settings.seed, number])
        self._sites = make_brokers(settings, name)
        self._topics = make_topics(settings, self._sites, self._dice)
        self._clients = make_clients(settings, number, self._sites, self._dice)
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

    def rows(self, table: str) -> Iterator[dict[str, object]]:
        """Yield this cluster's rows of `brokers`, `loads` or `ownership`; complete once all pieces were drawn.

        A log that does not say who answered keeps of OWNERSHIP only what an administrator did, without owners.
        """
        rows: Iterable[dict[str, object]] = self._load_rows
        if table == "brokers":
            rows = broker_rows(self._events, self._sites)
        elif table == "ownership" and self._settings.logging_policy == "none":
            rows = ({**row, "broker": None} for row in self._owners.rows if row["by"] == "admin")
        elif table == "ownership":
            rows = self._owners.rows
        return ({"cluster": self._name, **row} for row in rows)

    def pieces(self) -> Iterator[LookupColumns]:
        """Draw the log piece by piece and yield the columns of LOOKUPS."""
        self._owners.set_up(self._events)
        for event in self._events:
            if event.ts < self._settings.start_us:
                self._owners.apply(event)
        for piece in self._pieces:
            if piece.report:
                # A report is of the time before it, so it comes before the events of the same instant.
                self._load_rows += self._loads.report(
                    piece.start,
                    (piece.start - self._last_report) / 1_000_000,
                    registered=self._owners.registered,
                    bundles=self._owners.bundle_counts(),
                    topics=self._owners.topic_counts(),
                )
                self._last_report = piece.start
            for event in piece.events:
                homeless = self._owners.apply(event)
                if homeless.any():
                    self._traffic.disturb(event.ts, homeless)
            draw = self._traffic.draw(piece, last=piece is self._pieces[-1])
            yield self._columns(draw)

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
        # The owners answer in any case: their state and the load reports depend on it.
        answers = self._answers(draw, dice, columns, hop=hop)
        if self._settings.logging_policy == "none":
            no_broker, no_number = np.full(len(draw), -1, np.int32), np.full(len(draw), np.nan)
            answers = {
                "asked_broker": no_broker,
                "broker": no_broker,
                "result": np.where(hop, _REDIRECT, _UNKNOWN).astype(np.int8),
                "propensity": no_number,
                "latency_ms": no_number,
            }
        return {**columns, **answers}

    def _answers(self, draw: Draw, dice: _Dice, columns: LookupColumns, *, hop: NDArray[np.bool_]) -> LookupColumns:
        """Return the columns that record the logging policy's answers, and count the load it placed."""
        failing = (dice.failing < _FAILING) & ~hop
        weight = columns["weight"].astype(np.float64, copy=False)
        # As in Pulsar, a redirect, a failure and a read-only lookup give no bundle an owner.
        assigning = ~(hop | failing | columns["read_only"].astype(bool, copy=False))
        answers = self._owners.answer(draw.ts, draw.topic, draw.client, assigning=assigning, weight=weight)
        broker = np.where(failing, -1, answers.broker).astype(np.int32)
        # A hop is answered by the row behind it, which counts.
        self._loads.add(np.where(hop, -1, broker), weight)
        # Clients ask any registered broker, and after a hop the one that they were pointed to.
        registered = self._owners.registered.astype(np.int32)
        asked = np.full(len(draw), -1, dtype=np.int32)
        if len(registered):
            pointed_to = np.where(columns["authoritative"], broker, -1)
            anyone = registered[(dice.asked.astype(np.int64) * len(registered)) >> 16]
            asked = np.where(pointed_to >= 0, pointed_to, anyone)
        # Another rack is farther: its latencies are the second half of the table.
        is_far = self._clients.rack[draw.client] != self._site_rack[np.maximum(broker, 0)]
        quantile = (dice.latency >> (16 - TABLE_BITS)).astype(np.int32) + (is_far.astype(np.int32) << TABLE_BITS)
        return {
            "asked_broker": asked,
            "broker": broker,
            "result": np.where(hop, _REDIRECT, np.where(broker < 0, _FAILED, _CONNECT)).astype(np.int8),
            "propensity": np.where(hop | failing, np.nan, answers.propensity),
            "latency_ms": np.where(broker >= 0, self._latencies[quantile], np.nan),
        }


def _follow(draw: Draw, hop: NDArray[np.bool_]) -> NDArray[np.bool_]:
    """Make the row after each hop the same client's second attempt; return the mask of those rows.

    A hop right after another, and one in the last row, is taken back.
    """
    hop[1:] &= ~hop[:-1]
    hop[-1:] = False
    rows = np.flatnonzero(hop) + 1
    draw.topic[rows] = draw.topic[rows - 1]
    draw.client[rows] = draw.client[rows - 1]
    after = np.zeros(len(hop), dtype=bool)
    after[rows] = True
    return after


class LoadReports:
    """Load reports of one cluster's brokers, from sums since the last report and the averages Pulsar keeps.

    Args:
        capacity: weight per second at which a broker is full.
    """

    def __init__(self, brokers: tuple[str, ...], capacity: float) -> None:
        self._brokers = brokers
        self._capacity = capacity
        self._served = np.zeros(len(brokers))
        self._usage_average = np.full(len(brokers), np.nan)
        self._throughput_average = np.full(len(brokers), np.nan)

    def add(self, broker: NDArray[np.int32], weight: NDArray[np.float64]) -> None:
        """Count lookups served: brokers by number, -1 for none."""
        answered = broker >= 0
        self._served += np.bincount(broker[answered], weights=weight[answered], minlength=len(self._brokers))

    def report(
        self,
        ts: int,
        seconds: float,
        *,
        registered: NDArray[np.intp],
        bundles: NDArray[np.int64],
        topics: NDArray[np.int64],
    ) -> Iterator[dict[str, object]]:
        """Yield LOADS rows, without the cluster, of the registered brokers and begin to count anew.

        Args:
            ts: the instant, µs.
            seconds: since the last report.
            bundles: owned by each broker, shape (n_brokers,).
            topics: served by each broker, shape (n_brokers,).
        """
        rate = self._served / seconds
        usage = np.minimum(1.0, rate / self._capacity)
        throughput = rate * _MESSAGES * _BYTES
        self._usage_average = _moved(self._usage_average, usage)
        self._throughput_average = _moved(self._throughput_average, throughput * (1.0 + _FAN_OUT))
        for number in registered.tolist():
            used, messages = float(usage[number]), float(rate[number]) * _MESSAGES
            kbit_in = messages * _BYTES * 8 / 1000
            # Names, order and units as `BrokerLoadData` is printed: cpu in percent of a core, bandwidth in kbit/s.
            load = {
                "cpu": _resource(used * _CORES * 100, _CORES * 100),
                "memory": _resource((0.3 + 0.4 * used) * _HEAP_MIB, _HEAP_MIB),
                "directMemory": _resource(0.5 * used * _HEAP_MIB, _HEAP_MIB),
                "bandwidthIn": _resource(min(kbit_in, _NETWORK_KBIT), _NETWORK_KBIT),
                "bandwidthOut": _resource(min(kbit_in * _FAN_OUT, _NETWORK_KBIT), _NETWORK_KBIT),
                "msgThroughputIn": round(messages * _BYTES, 3),
                "msgThroughputOut": round(messages * _BYTES * _FAN_OUT, 3),
                "msgRateIn": round(messages, 3),
                "msgRateOut": round(messages * _FAN_OUT, 3),
                "maxResourceUsage": round(used, 6),
                "weightedMaxEMA": round(float(self._usage_average[number]), 6),
                "msgThroughputEMA": round(float(self._throughput_average[number]), 3),
                "bundleCount": int(bundles[number]),
                "topics": int(topics[number]),
                "updatedAt": ts // 1000,
                "reportedAt": ts // 1000,
            }
            yield {"ts": ts, "broker": self._brokers[number], "load": json.dumps(load)}
        # A broker that is away forgets its averages, as a restarted process does.
        gone = np.setdiff1d(np.arange(len(self._brokers)), registered)
        self._usage_average[gone] = self._throughput_average[gone] = np.nan
        self._served[:] = 0.0


def _moved(average: NDArray[np.float64], value: NDArray[np.float64]) -> NDArray[np.float64]:
    """Move averages towards new values; an average that has not begun takes the value."""
    return np.where(np.isnan(average), value, average * _HISTORY + value * (1.0 - _HISTORY))


def _resource(usage: float, limit: float) -> dict[str, float]:
    return {"usage": round(usage, 3), "limit": limit}
