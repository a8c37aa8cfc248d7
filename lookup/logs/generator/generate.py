"""Write synthetic but realistic logs without Spark. The same seed gives the same content.

All canonical tables are written, LOOKUPS in files of at most a million rows of one cluster and day, the others in one
file each. A cluster's log is drawn, answered and written piece by piece. A policy places bundles and moves them.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from itertools import count
from operator import itemgetter
from pathlib import Path

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from lookup.engine.build import build_policies
from lookup.engine.plugins import load_plugins
from lookup.engine.policy import Policy
from lookup.errors import Argument, Sentence, SettingsError
from lookup.logs.columns import RESULTS
from lookup.logs.generator.loads import BundleFigures, BundleTraffic, LoadsWriter
from lookup.logs.generator.owners import SyntheticOwners
from lookup.logs.generator.settings import GenerateSettings
from lookup.logs.generator.traffic import (
    TABLE_BITS,
    Draw,
    Piece,
    SyntheticTraffic,
    broker_rows,
    log_normal_table,
    make_events,
    make_pieces,
)
from lookup.logs.generator.world import Software, cluster_names, make_world
from lookup.logs.outputs import draft
from lookup.logs.schema import CANONICAL, ROWS_PER_FILE, write_parquet
from lookup.model.broker import EXTENSIBLE_MANAGER
from lookup.model.quoting import shown, suggestion
from lookup.model.time import moment_at
from lookup.settings.files import load_policies
from lookup.settings.shipped import shipped_files

__all__ = ["ClusterLog", "GenerateReport", "GenerateSettings", "generate"]

#: Version of brokers by release.
_VERSIONS = {"4.0": "4.0.8", "4.2": "4.2.4", "5.0": "5.0.1"}
_TABLES = ("lookups", "brokers", "loads", "bundles", "ownership")

#: Columns of LOOKUPS as arrays of one length, with codes for dictionary columns (-1 is null), and values for others.
_Columns = Mapping[str, NDArray[np.generic]]

#: Shares of the lookups, in 65,536ths.
_READ_ONLY = 655
_FAILING = 65
_REDIRECTED = 330
_EXTERNAL = 2_000
#: Latency of a lookup whose broker is in the client's rack, and of the others, ms.
_NEAR_MS, _FAR_MS = 1.5, 4.0
_CONNECT, _REDIRECT, _FAILED = (RESULTS.index(name) for name in ("connect", "redirect", "failed"))
#: Bundles are reported with each of so many reports of brokers, and after a split.
_BUNDLE_REPORTS = 5
#: Names of the random columns, each of 16 bits, shape (n,).
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
    """Write the canonical tables of a synthetic log, each a directory of Parquet files under `output`.

    The same settings give the same rows. Tables appear in `output` when all of them are complete, or not at all.

    Args:
        manifest: returns the content of `manifest.json`, which appears with the tables.
        force: replace these tables if `output` already has them. All other files there stay.

    Raises:
        InputError: if `output` is a file, or not empty without `force`.
    """
    names = cluster_names(settings.clusters)
    # Clusters divide the lookups like 1, 1/1.25, 1/1.5, ... None is empty, and the first gets the rounding.
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
            # Clusters are written in turn. Load and ownership rows are complete once a cluster's pieces are drawn.
            _write_lookups(log, name, f"{target.path}/lookups", numbers)
        rows = {"lookups": settings.lookups}
        for name in _TABLES[1:]:
            # Small tables have one file of rows in order of time.
            ordered = sorted((row for log in logs for row in log.rows(name)), key=itemgetter("ts", "cluster"))
            table = pa.Table.from_pylist(ordered, schema=CANONICAL[name])
            write_parquet(table, f"{target.path}/{name}/part-00000.parquet")
            rows[name] = len(ordered)
        if manifest is not None:
            target.write("manifest.json", manifest())
    return GenerateReport(str(output), rows, sum(log.reconnects for log in logs), names)


def _write_lookups(log: ClusterLog, name: str, directory: str, numbers: Iterator[int]) -> None:
    dictionaries = {
        column: pa.array(list(entries), pa.string())
        for column, entries in {"cluster": (name,), **log.dictionaries}.items()
    }
    for date, pieces in _group_into_files(log.pieces()):
        _write_pieces(f"{directory}/part-{next(numbers):05}-{date}.parquet", pieces, dictionaries)


def _group_into_files(pieces: Iterable[_Columns]) -> Iterator[tuple[str, list[_Columns]]]:
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
    """Write a file of LOOKUPS. `dictionaries` has the values of the codes by column."""
    arrays = []
    for field in CANONICAL["lookups"]:
        # Codes of the only cluster, since the column is not drawn.
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
        number: number of the cluster among all, which determines addresses and random draws.
        lookups: rows of this cluster.
    """

    def __init__(self, settings: GenerateSettings, name: str, number: int, lookups: int) -> None:
        self._settings = settings
        self._name = name
        # All draws are from one random stream in a fixed order, so moving a draw below changes every log.
        self._dice = np.random.default_rng([settings.seed, number])
        policy, software = _read_policy(settings.policy)
        world = make_world(settings, name, number, software, self._dice)
        self._sites, self._topics, self._clients = world.brokers, world.topics, world.clients
        self._events = make_events(settings, self._dice)
        self._pieces = make_pieces(settings, self._events, lookups, self._dice)
        self._traffic = SyntheticTraffic(self._topics, self._clients, lookups, settings.rack_affinity, self._dice)
        self._owners = SyntheticOwners(settings, policy, world, self._events, self._dice)
        self._weights = log_normal_table(1.0, 1.0)
        self._latencies = np.concatenate([log_normal_table(_NEAR_MS, 0.5), log_normal_table(_FAR_MS, 0.5)])
        self._site_rack = np.array([site.rack for site in self._sites])
        self._bundle_traffic = BundleTraffic(settings, number, self._topics)
        #: of the last report, None before the first
        self._figures: BundleFigures | None = None
        self._broker_reports = LoadsWriter([site.id for site in self._sites])
        self._reports = 0
        self._load_rows: list[dict[str, object]] = []
        self._bundle_rows: list[dict[str, object]] = []
        self._written = 0

    @property
    def dictionaries(self) -> dict[str, tuple[str, ...]]:
        """The values behind the codes of the dictionary columns."""
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
        """The number of lookups so far from clients that had lost their broker."""
        return self._traffic.reconnects

    def rows(self, table: str) -> Iterator[dict[str, object]]:
        """Yield this cluster's rows of a table other than `lookups`. They are complete once all pieces were drawn."""
        rows: Iterable[dict[str, object]] = self._owners.rows
        if table == "brokers":
            rows = broker_rows(self._events, self._sites)
        elif table == "loads":
            rows = self._load_rows
        elif table == "bundles":
            rows = self._bundle_rows
        return ({"cluster": self._name, **row} for row in rows)

    def pieces(self) -> Iterator[_Columns]:
        """Draw the log piece by piece and yield the columns of LOOKUPS."""
        for event in self._events:
            if event.ts < self._settings.start_us:
                self._owners.take(event.ts, [event], None)
        self._place_first()
        for piece in self._pieces:
            weight = None if self._figures is None else self._figures.messages
            homeless = self._owners.take(piece.start, piece.events, weight)
            if piece.report:
                homeless |= self._report_loads(piece)
            if homeless.any():
                self._traffic.disturb(piece.start, homeless)
            draw = self._traffic.draw(piece, last=piece is self._pieces[-1])
            yield self._columns(draw)

    def _place_first(self) -> None:
        """Place a bundle on each broker but two before the log begins. These bundles have the least traffic.

        Brokers without load tie, and a draw decides between them. If all tied, a replay, which has other draws, would
        place all bundles alike but under other brokers' names. If none did, all its replicates would be alike.
        """
        owners = self._owners
        usual = self._bundle_traffic.usual(owners.bundle, len(owners.names))
        quietest = np.argsort(np.where(usual > 0, usual, np.inf), kind="stable")
        owners.place(quietest[: max(0, int(owners.registered.sum()) - 2)].tolist())

    def _report_loads(self, piece: Piece) -> NDArray[np.bool_]:
        owners, ts = self._owners, piece.start
        if self._figures is None or not self._reports % _BUNDLE_REPORTS or self._figures.names is not owners.names:
            self._figures = self._bundle_traffic.draw(ts, owners.names, owners.bundle)
            self._bundle_rows += ({"ts": ts, "bundle": name, "stats": stats} for name, stats in self._figures.rows())
        self._reports += 1
        load = self._figures.load(owners.owner.copy(), owners.registered)
        self._load_rows += self._broker_reports.rows(ts, load, owners.counts)
        return owners.shed(load)

    def _columns(self, draw: Draw) -> _Columns:
        # Two words of 64 bits hold eight numbers, in one draw instead of seven.
        words = self._dice.integers(0, 2**64, (2, len(draw)), dtype=np.uint64)
        columns = ((word >> np.uint64(16 * part)).astype(np.uint16) for word in words for part in range(4))
        dice = dict(zip(_DRAWS, columns, strict=False))
        hop = dice["redirect"] < _REDIRECTED
        after_hop = _add_second_attempts(draw, hop)
        log_columns = {
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
        return {**log_columns, **self._draw_answers(draw, dice, log_columns, hop=hop)}

    def _draw_answers(
        self, draw: Draw, dice: Mapping[str, NDArray[np.uint16]], columns: _Columns, *, hop: NDArray[np.bool_]
    ) -> _Columns:
        failing = (dice["failing"] < _FAILING) & ~hop
        # As in Pulsar, a redirect and a read-only lookup give no bundle an owner. Of a failed one the answer is lost.
        assigning = ~(hop | columns["read_only"].astype(bool, copy=False))
        owner, propensity = self._owners.answer(draw, assigning=assigning)
        broker = np.where(failing, -1, owner).astype(np.int32)
        # Clients send a lookup to any registered broker, and after a hop to the broker of the redirect.
        registered = np.flatnonzero(self._owners.registered).astype(np.int32)
        target = np.full(len(draw), -1, dtype=np.int32)
        if len(registered):
            pointed_to = np.where(columns["authoritative"], broker, -1)
            anyone = registered[(dice["asked"].astype(np.int64) * len(registered)) >> 16]
            target = np.where(pointed_to >= 0, pointed_to, anyone)
        # Another rack is farther, so its latencies are the second half of the table.
        is_far = self._clients.rack[draw.client] != self._site_rack[np.maximum(broker, 0)]
        quantile = (dice["latency"] >> (16 - TABLE_BITS)).astype(np.int32) + (is_far.astype(np.int32) << TABLE_BITS)
        return {
            "asked_broker": target,
            "broker": broker,
            "result": np.where(hop, _REDIRECT, np.where(broker < 0, _FAILED, _CONNECT)).astype(np.int8),
            "propensity": np.where(hop | failing, np.nan, propensity),
            "latency_ms": np.where(broker >= 0, self._latencies[quantile], np.nan),
        }


def _add_second_attempts(draw: Draw, hop: NDArray[np.bool_]) -> NDArray[np.bool_]:
    """Make the row after each hop the same client's second attempt, and return the mask of these rows.

    A hop right after another hop, and a hop in the last row, is removed.
    """
    hop[1:] &= ~hop[:-1]
    hop[-1:] = False
    rows = np.flatnonzero(hop) + 1
    draw.topic[rows] = draw.topic[rows - 1]
    draw.client[rows] = draw.client[rows - 1]
    after = np.zeros(len(hop), dtype=bool)
    after[rows] = True
    return after


@lru_cache
def _read_policy(name: str) -> tuple[Policy, Software]:
    """Read a shipped policy by its name, or a TOML file with one policy.

    Raises:
        SettingsError: if there is none, or it is wrong.
    """
    paths = {each.name: each.path for each in shipped_files().values() if each.kind == "policy"}
    path = paths.get(name, Path(name))
    if path.suffix != ".toml" or not path.is_file():
        hint = suggestion(name, paths)
        raise _build_policy_error(f" is {shown(name)}, neither a policy that ships nor a TOML file; {hint}")
    specs = load_policies(path)
    if len(specs) != 1:
        raise _build_policy_error(f" is {shown(name)}, which has {len(specs)} policies, not one")
    (spec,), (policy,) = specs, build_policies(load_plugins(), specs)
    # A policy that names no manager may run in either.
    manager = spec.value_at("loadManagerClassName") or EXTENSIBLE_MANAGER
    return policy, Software(str(manager), _VERSIONS[spec.release])


def _build_policy_error(sentence: str) -> SettingsError:
    return SettingsError([Sentence(Argument("policy"), sentence)])
