"""Build the state of a cluster at an instant from rows of its tables, which is the view of a shedder."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from lookup.collect.observing import follow
from lookup.engine.ledger import MICRO
from lookup.engine.ownership import Ownership
from lookup.errors import InputError
from lookup.logs.rows import Quarantined
from lookup.model import Broker, ClusterView, Load, Roster
from lookup.model.documents import TableName
from lookup.model.load import BundleLoad, ascending
from lookup.model.quoting import join_names, quantity
from lookup.model.time import time_text
from lookup.moving.origins import near_loads, origins_of
from lookup.moving.reading import WINDOW_US, Rows
from lookup.replay.loads import ReportedLoads
from lookup.replay.tables import ReadRow, broker_numbers, plain_bundles, read_rows

__all__ = ["ClusterState", "Owned", "state_of"]

Bools = NDArray[np.bool_]
Floats = NDArray[np.float64]
Ints = NDArray[np.int64]

#: Packages of Pulsar's own load managers, and that of the extensible one, of which an operator's may be a subclass.
_MANAGERS, _EXTENSIBLE = "org.apache.pulsar.broker.loadbalance.", "org.apache.pulsar.broker.loadbalance.extensions."


@dataclass(frozen=True, slots=True)
class Owned:
    """The owner of a bundle, and since when, µs."""

    broker: str
    since_us: int


@dataclass(frozen=True, eq=False)
class ClusterState:
    """A cluster at an instant."""

    rows: Rows
    #: `view.load` has bytes per second, and `registered` has the brokers that can be steered
    view: ClusterView
    #: by bundle, of registered brokers
    owners: Mapping[str, Owned]
    #: bytes per second, and their report, of each bundle with an owner that is on a list of top bundles
    loads: Mapping[str, float]
    reports: Mapping[str, str]
    #: missing data, a sentence each
    missing: tuple[str, ...]

    def epoch_of(self, broker: str) -> int:
        """Look up the `startTimestamp` of a broker, ms, 0 if it is unknown."""
        number = self.view.brokers.number(broker)
        return 0 if number is None else self.view.brokers[number].lookup_data.start_timestamp

    def figures(self, moved: Mapping[str, int]) -> dict[tuple[str, str | None], float]:
        """Compute the figures of a placement of bundles, by metric and client property.

        `outside_isolation` is absent without isolation policies, `near` if lookups were not read.

        Args:
            moved: numbers of brokers by bundle, which replace the current owners.
        """
        figures: dict[tuple[str, str | None], float] = {}
        if self.rows.namespaces.isolation:
            figures["outside_isolation", None] = self._count_outside(moved)
        numbers = {bundle: self.view.brokers.number(owned.broker) for bundle, owned in self.owners.items()} | dict(
            moved
        )
        near = near_loads(self.view.load.origins, self.loads, numbers.get, self.view.brokers)
        return figures | {("near", key): share for key, share in near.items()}

    def _count_outside(self, moved: Mapping[str, int]) -> float:
        brokers, rules = self.view.brokers, self.rows.namespaces
        owners = {name: owned.broker for name, owned in self.owners.items()}
        owners |= {name: brokers.ids[number] for name, number in moved.items()}
        allowed = [rules.permits(name.rpartition("/")[0], Broker(owner).host) for name, owner in owners.items()]
        return float(allowed.count(False))

    def fresh_view(self) -> ClusterView:
        """Copy the view with owners of its own, which may be changed."""
        owners = Ownership(self.view.brokers.ids)
        for bundle, owned in self.owners.items():
            number = self.view.brokers.number(owned.broker)
            if number is not None:
                owners.give(bundle, number)
        return replace(self.view, ownership=owners)


def state_of(rows: Rows) -> ClusterState:
    """Build the state from the rows of a cluster.

    Raises:
        InputError: in one sentence, if there is no broker, no bundle has an owner, or no broker has reported its load.
    """
    where, left_out = f"{rows.source} at {time_text(rows.at_us)}", Counter[str]()
    brokers = _read_brokers(rows, left_out)
    if not brokers:
        raise InputError(f"{where}: no broker is registered; without brokers there is no plan")
    roster = Roster([*brokers.values()])
    every = _track_owners(rows, left_out)
    owners = {bundle: owned for bundle, owned in every.items() if owned.broker in brokers}
    if not owners:
        raise InputError(f"{where}: no bundle has an owner; without owners there is nothing to move")
    figures = _read_loads(rows, roster, left_out)
    silent = [broker for broker, load in zip(roster.ids, figures.throughput.tolist(), strict=True) if np.isnan(load)]
    if len(silent) == len(roster):
        raise InputError(f"{where}: no broker has reported its load within {WINDOW_US // 60_000_000} minutes")
    bundles = _find_bundle_loads(rows, owners, left_out)
    # A broker that does not report its load manager may be steered.
    classes = ((broker.id, broker.lookup_data.load_manager_class_name or "") for broker in roster)
    foreign = [broker for broker, name in classes if name.startswith(_MANAGERS) and not name.startswith(_EXTENSIBLE)]
    missing = [*rows.missing]
    if silent:
        missing.append(
            f"no load report of {join_names(silent)} is known; nothing is moved to these, and their load counts 0"
        )
    if foreign:
        missing.append(f"{join_names(foreign)} run no extensible load manager; nothing is moved to or from these")
    lost = len(every) - len(owners)
    if lost:
        missing.append(f"{quantity(lost, 'bundle')} of brokers that are not registered any more are left out")
    origins, unknown = origins_of(rows, owners)
    missing += unknown
    missing += [f"{reason} ({quantity(count, 'row')} left out)" for reason, count in left_out.items()]
    steered = np.array([broker not in foreign for broker in roster.ids])
    view = ClusterView(
        cluster=rows.cluster,
        brokers=roster,
        registered=steered,
        capacity=np.array([np.nan if broker.capacity is None else broker.capacity for broker in roster]),
        epoch_us=rows.at_us,
        now_us=rows.at_us,
        load=replace(_with_bundles(figures, roster, owners, bundles), origins=origins),
        ownership=Ownership(roster.ids),
        unloaded={},
        memory={},
        namespaces=rows.namespaces,
    )
    loads = {name: entry.load for name, (entry, _) in bundles.items()}
    reports = {name: text for name, (_, text) in bundles.items()}
    return ClusterState(rows, view, owners, loads, reports, tuple(missing))


def _read(rows: Rows, table: TableName, some: pa.Table, left_out: Counter[str]) -> Iterator[ReadRow]:
    for row in read_rows(table, some, rows.file(table)):
        if isinstance(row, Quarantined):
            left_out[f"{row.source}: {row.reason}"] += 1
        else:
            yield row


def _read_loads(rows: Rows, roster: Roster, left_out: Counter[str]) -> Load:
    """Read the last reports of brokers, as a replay reads LOADS."""
    table, figures = rows.tables["loads"], Load.unknown(len(roster))
    latest = table.take(_find_latest_rows(table, "broker"))
    reports = [(0, row.columns["broker"], row.value) for row in _read(rows, "loads", latest, left_out)]
    columns = broker_numbers(reports, roster)
    return ReportedLoads.of(columns, len(roster)).figures(0, figures) if len(columns["ts"]) else figures


def _read_brokers(rows: Rows, left_out: Counter[str]) -> dict[str, Broker]:
    brokers: dict[str, Broker] = {}
    for row in _read(rows, "brokers", rows.tables["brokers"], left_out):
        if row.value.event == "unregistered":
            brokers.pop(row.value.broker, None)
        else:
            broker = row.value.broker
            brokers[broker] = row.value.applied_to(brokers.get(broker) or Broker(broker))
    return brokers


def _track_owners(rows: Rows, left_out: Counter[str]) -> dict[str, Owned]:
    owners: dict[str, Owned] = {}
    names: dict[str, str] = {}
    for row in _read(rows, "ownership", rows.tables["ownership"], left_out):
        for bundle, broker in follow(names, row.columns).items():
            if broker is None:
                owners.pop(bundle, None)
            else:
                owners[bundle] = Owned(broker, row.ts_us)
    return owners


def _find_bundle_loads(
    rows: Rows, owners: Mapping[str, Owned], left_out: Counter[str]
) -> dict[str, tuple[BundleLoad, str]]:
    table = rows.tables["bundles"]
    latest = table.take(_find_latest_rows(table, "bundle"))
    names, texts = latest.column("bundle").to_pylist(), latest.column("stats").to_pylist()
    loads, rates, is_sound = _read_figures(latest)
    if not is_sound.all():
        left_out[f"{rows.file('bundles').name}: stats that Pulsar does not write"] += int((~is_sound).sum())
    entries = zip(names, loads.tolist(), rates.tolist(), texts, is_sound.tolist(), strict=True)
    return {
        name: (BundleLoad(name, load, rate), text) for name, load, rate, text, ok in entries if ok and name in owners
    }


def _read_figures(rows: pa.Table) -> tuple[Floats, Floats, Bools]:
    """Read bytes and messages per second from rows of BUNDLES, and find the rows that can be read."""
    batches = rows.combine_chunks().to_batches()
    plain = plain_bundles(batches[0], None) if batches else None
    if plain is None:
        return np.zeros(len(rows)), np.zeros(len(rows)), np.zeros(len(rows), dtype=np.bool_)
    loads, rates = (plain.figures[name] / MICRO for name in ("micro", "rate"))
    return loads, rates, plain.is_plain


def _with_bundles(
    figures: Load, roster: Roster, owners: Mapping[str, Owned], bundles: Mapping[str, tuple[BundleLoad, str]]
) -> Load:
    of_brokers: list[list[BundleLoad]] = [[] for _ in roster]
    for bundle, (entry, _) in bundles.items():
        number = roster.number(owners[bundle].broker)
        if number is not None:
            of_brokers[number].append(entry)
    # In a record the figures of bundles are as old as those of brokers, and both are bytes.
    top_bundles = [ascending(entries) for entries in of_brokers]
    return replace(figures, top_bundles=top_bundles, bundle_unit="bytes/s").read_only()


def _find_latest_rows(table: pa.Table, column: str) -> Ints:
    """Find the last row of each text of a column, in order of the texts. Rows are in order of time."""
    coded = table.column(column).combine_chunks().dictionary_encode()
    last = np.full(len(coded.dictionary), -1)
    # Of several values for one place numpy keeps the last.
    last[coded.indices.to_numpy().astype(np.int64)] = np.arange(len(table))
    return last
