"""Write synthetic but realistic logs: the same content from the same seed, without Spark.

The canonical tables LOOKUPS, BROKERS, LOADS and OWNERSHIP are written, LOOKUPS in files of at most a million rows of
one cluster and day, the others in one file each. A cluster's log is drawn, answered and laid out piece by piece; load
reports follow the traffic: they say what each broker served since the last one, as Pulsar's `BrokerLoadData`.
"""

from __future__ import annotations

import json
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass
from itertools import count
from operator import itemgetter
from pathlib import Path

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from lookup.logs.columns import RESULTS
from lookup.logs.generator.owners import SyntheticOwners
from lookup.logs.generator.settings import GenerateSettings
from lookup.logs.generator.traffic import (
    TABLE_BITS,
    Draw,
    SyntheticTraffic,
    broker_rows,
    log_normal_table,
    make_events,
    make_pieces,
)
from lookup.logs.generator.world import cluster_names, make_brokers, make_clients, make_topics
from lookup.logs.outputs import draft
from lookup.logs.schema import CANONICAL, ROWS_PER_FILE, write_parquet
from lookup.model.time import moment_at

__all__ = ["ClusterLog", "GenerateReport", "GenerateSettings", "generate"]

_TABLES = ("lookups", "brokers", "loads", "ownership")
#: Files of one cluster that are written at the same time.
_WRITING = 2

#: Columns of LOOKUPS as arrays of one length: codes for dictionary columns (-1 is null), values for the others.
_Columns = Mapping[str, NDArray[np.generic]]

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
#: What is drawn for each row: a column of 16 bits, shape (n,), for each of these.
_DRAWS = ("read_only", "failing", "redirect", "asked", "weight", "latency", "listener")


@dataclass(frozen=True)
class GenerateReport:
    """Summary of a written log."""

    #: path or URI
    output: str
    #: rows by table
    rows: Mapping[str, int]
    #: lookups of clients that came back after a loss or an unload
    reconnects: int
    clusters: tuple[str, ...]


def generate(
    settings: GenerateSettings, output: Path | str, *, force: bool = False, manifest: Callable[[], bytes] | None = None
) -> GenerateReport:
    """Write a synthetic log: the canonical tables, each a directory of Parquet files under `output`.

    The same settings give the same rows. Tables appear in `output` when all of them are complete, or not at all.

    Args:
        manifest: returns the content of `manifest.json`, which appears with the tables.
        force: replace these tables if `output` already has them; anything else there stays.

    Raises:
        InputError: if `output` is a file, or not empty without `force`.
    """
    names = cluster_names(settings.clusters)
    # Clusters divide the lookups like 1, 1/1.25, 1/1.5, ...; none is empty, and the first takes the rounding.
    weights = 1.0 / (1.0 + 0.25 * np.arange(settings.clusters))
    shares = np.maximum(1, np.floor(weights / weights.sum() * settings.lookups)).astype(int)
    shares[0] += settings.lookups - shares.sum()
    with draft(str(output), (*_TABLES, "manifest.json"), force=force) as target:
        logs = [
            ClusterLog(settings, name, number, share)
            for number, (name, share) in enumerate(zip(names, shares.tolist(), strict=True))
        ]
        numbers = count()
        for name, log in zip(names, logs, strict=True):
            # One cluster after the other: load and ownership rows are complete once its pieces are drawn.
            _write_lookups(log, name, f"{target.path}/lookups", numbers)
        rows = {"lookups": settings.lookups}
        for name in _TABLES[1:]:
            # Small tables: one file of rows in order of time.
            ordered = sorted((row for log in logs for row in log.rows(name)), key=itemgetter("ts", "cluster"))
            table = pa.Table.from_pylist(ordered, schema=CANONICAL[name])
            write_parquet(table, f"{target.path}/{name}/part-00000.parquet")
            rows[name] = len(ordered)
        if manifest is not None:
            target.write("manifest.json", manifest())
    return GenerateReport(str(output), rows, sum(log.reconnects for log in logs), names)


def _write_lookups(log: ClusterLog, name: str, directory: str, numbers: Iterator[int]) -> None:
    """Write the rows of one cluster, files of at most a million rows of one day, numbered through all clusters.

    Encoding runs beside the generator, at most two files at a time: memory does not grow with the log.
    """
    dictionaries = {
        column: pa.array(list(entries), pa.string())
        for column, entries in {"cluster": (name,), **log.dictionaries}.items()
    }
    writing: deque[Future[None]] = deque()
    with ThreadPoolExecutor(_WRITING, thread_name_prefix="generate-parquet") as pool:
        for date, pieces in _files(log.pieces()):
            # The generator waits here if it is faster than the disk.
            if len(writing) == _WRITING:
                writing.popleft().result()
            path = f"{directory}/part-{next(numbers):05}-{date}.parquet"
            writing.append(pool.submit(_write_pieces, path, pieces, dictionaries))
        for written in writing:
            written.result()


def _files(pieces: Iterable[_Columns]) -> Iterator[tuple[str, list[_Columns]]]:
    date, rows, waiting = "", 0, list[_Columns]()
    for columns in pieces:
        count = len(columns["ts"])
        if not count:
            continue
        day = moment_at(int(columns["ts"][0])).date().isoformat()
        if waiting and (day != date or rows + count > ROWS_PER_FILE):
            yield date, waiting
            rows, waiting = 0, []
        date, rows = day, rows + count
        waiting.append(columns)
    if waiting:
        yield date, waiting


def _write_pieces(path: str, pieces: Sequence[_Columns], dictionaries: Mapping[str, pa.Array]) -> None:
    """Write a file of LOOKUPS; `dictionaries` has the values behind the codes, by column."""
    arrays = []
    for field in CANONICAL["lookups"]:
        # Codes of the one cluster: the column is not among those that are drawn.
        if field.name == "cluster":
            values = np.zeros(sum(len(piece["ts"]) for piece in pieces), dtype=np.int8)
        else:
            values = np.concatenate([piece[field.name] for piece in pieces])
        if field.name in dictionaries:
            codes = pa.array(values, mask=values < 0)
            arrays.append(pa.DictionaryArray.from_arrays(codes, dictionaries[field.name]))
        elif values.dtype.kind == "f":
            arrays.append(pa.array(values, mask=np.isnan(values)))
        else:
            arrays.append(pa.array(values).cast(field.type))
    write_parquet(pa.Table.from_arrays(arrays, names=CANONICAL["lookups"].names), path)


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
        self._traffic = SyntheticTraffic(self._topics, self._clients, lookups, settings.rack_affinity, self._dice)
        self._owners = SyntheticOwners(settings, self._topics, self._clients, self._sites, self._events, self._dice)
        self._weights = log_normal_table(1.0, 1.0)
        self._latencies = np.concatenate([log_normal_table(_NEAR_MS, 0.5), log_normal_table(_FAR_MS, 0.5)])
        self._site_rack = np.array([site.rack for site in self._sites])
        span_s = (settings.end_us - settings.start_us) / 1_000_000
        # As if an operator had sized the cluster for twice its mean traffic.
        self._loads = _LoadReports(tuple(site.id for site in self._sites), 2.0 * lookups / span_s / settings.brokers)
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
        rows: Iterable[dict[str, object]] = self._owners.rows
        if table == "brokers":
            rows = broker_rows(self._events, self._sites)
        elif table == "loads":
            rows = self._load_rows
        elif self._settings.logging_policy == "none":
            rows = ({**row, "broker": None} for row in rows if row["by"] == "admin")
        return ({"cluster": self._name, **row} for row in rows)

    def pieces(self) -> Iterator[_Columns]:
        """Draw the log piece by piece and yield the columns of LOOKUPS."""
        for event in self._events:
            if event.ts < self._settings.start_us:
                self._owners.apply(event)
        for piece in self._pieces:
            if piece.report:
                # A report is of the time before it, so it comes before the events of the same instant.
                self._load_rows += self._loads.report(piece.start, piece.start - self._last_report, self._owners)
                self._last_report = piece.start
            for event in piece.events:
                homeless = self._owners.apply(event)
                if homeless.any():
                    self._traffic.disturb(event.ts, homeless)
            draw = self._traffic.draw(piece, last=piece is self._pieces[-1])
            yield self._columns(draw)

    def _columns(self, draw: Draw) -> _Columns:
        """Roll the dice of every row, let the owners answer, and lay out the canonical columns."""
        # Two words of 64 bits hold eight numbers, in one draw instead of seven.
        words = self._dice.integers(0, 2**64, (2, len(draw)), dtype=np.uint64)
        columns = ((word >> np.uint64(16 * part)).astype(np.uint16) for word in words for part in range(4))
        dice = dict(zip(_DRAWS, columns, strict=False))
        hop = dice["redirect"] < _REDIRECTED
        after_hop = _follow(draw, hop)
        drawn = {
            "ts": draw.ts,
            "seq": np.arange(self._written, self._written + len(draw)),
            "topic": draw.topic,
            "client": draw.client,
            "properties": self._clients.properties[draw.client],
            "read_only": (dice["read_only"] < _READ_ONLY) & ~hop,
            "authoritative": after_hop,
            "listener": np.where(dice["listener"] < _EXTERNAL, 0, -1).astype(np.int8),
            "weight": self._weights[dice["weight"] >> (16 - TABLE_BITS)],
        }
        self._written += len(draw)
        # The owners answer in any case: their state and the load reports depend on it.
        answers = self._answers(draw, dice, drawn, hop=hop)
        if self._settings.logging_policy == "none":
            no_broker, no_number = np.full(len(draw), -1, np.int32), np.full(len(draw), np.nan)
            answers = {
                "asked_broker": no_broker,
                "broker": no_broker,
                "result": np.where(hop, _REDIRECT, _UNKNOWN).astype(np.int8),
                "propensity": no_number,
                "latency_ms": no_number,
            }
        return {**drawn, **answers}

    def _answers(
        self, draw: Draw, dice: Mapping[str, NDArray[np.uint16]], drawn: _Columns, *, hop: NDArray[np.bool_]
    ) -> _Columns:
        """Return the columns that record the logging policy's answers, and count the load it placed."""
        failing = (dice["failing"] < _FAILING) & ~hop
        weight = drawn["weight"].astype(np.float64, copy=False)
        # As in Pulsar, a redirect, a failure and a read-only lookup give no bundle an owner.
        assigning = ~(hop | failing | drawn["read_only"].astype(bool, copy=False))
        owner, propensity = self._owners.answer(draw, assigning=assigning, weight=weight)
        broker = np.where(failing, -1, owner).astype(np.int32)
        # A hop is answered by the row behind it, which counts.
        self._loads.add(np.where(hop, -1, broker), weight)
        # Clients ask any registered broker, and after a hop the one that they were pointed to.
        registered = self._owners.registered.astype(np.int32)
        asked = np.full(len(draw), -1, dtype=np.int32)
        if len(registered):
            pointed_to = np.where(drawn["authoritative"], broker, -1)
            anyone = registered[(dice["asked"].astype(np.int64) * len(registered)) >> 16]
            asked = np.where(pointed_to >= 0, pointed_to, anyone)
        # Another rack is farther: its latencies are the second half of the table.
        is_far = self._clients.rack[draw.client] != self._site_rack[np.maximum(broker, 0)]
        quantile = (dice["latency"] >> (16 - TABLE_BITS)).astype(np.int32) + (is_far.astype(np.int32) << TABLE_BITS)
        return {
            "asked_broker": asked,
            "broker": broker,
            "result": np.where(hop, _REDIRECT, np.where(broker < 0, _FAILED, _CONNECT)).astype(np.int8),
            "propensity": np.where(hop | failing, np.nan, propensity),
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


class _LoadReports:
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

    def report(self, ts: int, span_us: int, owners: SyntheticOwners) -> Iterator[dict[str, object]]:
        """Yield LOADS rows, without the cluster, of the registered brokers and begin to count anew.

        Args:
            ts: the instant, µs.
            span_us: time since the last report, µs.
        """
        registered, bundles, topics = owners.registered, owners.bundle_counts(), owners.topic_counts()
        rate = self._served / (span_us / 1_000_000)
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
    return np.where(np.isnan(average), value, average * _HISTORY + value * (1.0 - _HISTORY))


def _resource(usage: float, limit: float) -> dict[str, float]:
    return {"usage": round(usage, 3), "limit": limit}
