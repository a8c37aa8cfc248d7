"""Read the small tables of a run, on the driver: BROKERS and OWNERSHIP as events, LOADS and BUNDLES as numbers."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from lookup.engine.ledger import MICRO
from lookup.errors import InputError, InvalidNameError
from lookup.logs.columns import MAX_WEIGHT, check_row
from lookup.logs.rows import Quarantined
from lookup.logs.schema import CANONICAL
from lookup.logs.sources import list_log, open_parquet
from lookup.model import RESOURCES, BrokerLoadData, BrokerLookupData, Roster
from lookup.model.documents import TableName
from lookup.model.load_data import broker_load_from_json, bundle_stats_from_json
from lookup.replay.atoms import Atoms
from lookup.replay.timeline import OwnershipEvent, Registration

__all__ = [
    "DETAILS", "THROUGHPUT", "Reported", "SmallTable", "broker_numbers", "bundle_numbers", "bundle_rows", "load_rows",
    "ownership_events", "registrations", "reported_load",
]  # fmt: skip


@dataclass
class SmallTable:
    """Rows of one table by cluster, and what could not be used."""

    rows: dict[str, list[dict[str, Any]]] = field(default_factory=dict)
    quarantined: list[Quarantined] = field(default_factory=list)

    def of(self, cluster: str) -> list[dict[str, Any]]:
        """Return the rows of one cluster in order of time, ties in order of the files."""
        return sorted(self.rows.get(cluster, []), key=lambda row: int(row["ts"]))


def _read_small(path: str | None, table: TableName, convert: Callable[[dict[str, Any]], Any]) -> SmallTable:
    """Read a table whole; rows that cannot be used go to quarantine.

    Args:
        convert: turns a row into what `value` of the kept row will hold, or raises.

    Raises:
        InputError: if the path holds no such table.
    """
    small = SmallTable()
    for file in list_log(path, table) if path is not None else ():
        names = [name for name in CANONICAL[table].names if name in file.columns]
        with open_parquet(file.path) as parquet:
            read = parquet.read(columns=names, use_threads=False)
        ts = read.column("ts")
        # Nanoseconds are cut off: a replay counts in µs.
        if pa.types.is_timestamp(ts.type):
            ts = ts.cast(pa.timestamp("us", ts.type.tz), safe=False)
        try:
            rows: list[dict[str, Any]] = read.set_column(
                read.column_names.index("ts"), "ts", ts.cast(pa.int64())
            ).to_pylist()
        except UnicodeDecodeError as error:
            raise InputError(f"{file.path}: holds bytes that are no text in UTF-8: {error}") from None
        for line, row in enumerate(rows, start=1):
            row["cluster"] = row.get("cluster") if file.cluster is None else file.cluster
            # JSON is parsed by `convert`, which knows its keys as well.
            checked = check_row(table, row, reads_json=False)
            if isinstance(checked, str):
                reason = checked
            else:
                try:
                    checked["value"] = convert(checked)
                except (InputError, InvalidNameError) as error:
                    reason = str(error)
                else:
                    small.rows.setdefault(checked["cluster"], []).append(checked)
                    continue
            small.quarantined.append(Quarantined(file.path, line, reason, str(row)[:200]))
    return small


def registrations(path: str | None) -> SmallTable:
    """Read BROKERS; each row's `value` is a `Registration`."""

    def convert(row: dict[str, Any]) -> Registration:
        """Return what a row says of a broker's registration."""
        text = row.get("lookup_data")
        data = None if text is None else BrokerLookupData.from_json(text)
        return Registration(row["ts"], row["broker"], row["event"], data)

    return _read_small(path, "brokers", convert)


def ownership_events(path: str | None) -> SmallTable:
    """Read OWNERSHIP; each row's `value` is an `OwnershipEvent`."""

    def convert(row: dict[str, Any]) -> OwnershipEvent:
        """Return what a row says happened to a bundle."""
        boundaries = tuple(int(text, 16) for text in row.get("boundaries", ()))
        return OwnershipEvent(row["ts"], row["bundle"], row["event"], row.get("broker"), row.get("by"), boundaries)

    return _read_small(path, "ownership", convert)


@dataclass(frozen=True, slots=True)
class Reported:
    """A row of LOADS or BUNDLES as Pulsar's record, and which of its keys it gives: absent ones read as defaults."""

    record: Any
    given: frozenset[str]

    def gives(self, keys: Iterable[str]) -> bool:
        """Return whether the row gives any of some keys."""
        return not self.given.isdisjoint(keys)


#: Keys of throughput, bytes per second.
THROUGHPUT = ("msgThroughputIn", "msgThroughputOut")
#: Keys that LOADS and BUNDLES may leave out, by the figure of `view.load` that they give.
DETAILS: Mapping[str, tuple[str, ...]] = {
    "rates": ("msgRateIn", "msgRateOut"),
    "resources": ("cpu", "memory", "directMemory", "bandwidthIn", "bandwidthOut"),
    "topics": ("topics",),
}


def load_rows(path: str | None) -> SmallTable:
    """Read LOADS; each row's `value` is a `Reported` with a `BrokerLoadData`."""
    return _read_small(path, "loads", lambda row: reported_load(row["load"]))


def reported_load(text: str) -> Reported:
    """Read Pulsar's `BrokerLoadData`, and note which of its keys are given.

    Raises:
        InputError: if the text is no JSON object or a figure is no finite number.
    """
    return Reported(broker_load_from_json(text), _given_in(text))


def bundle_rows(path: str | None) -> SmallTable:
    """Read BUNDLES; each row's `value` is a `Reported` with a `NamespaceBundleStats`."""

    def convert(row: dict[str, Any]) -> Reported:
        stats = bundle_stats_from_json(row["stats"])
        if stats.msg_throughput_in + stats.msg_throughput_out > MAX_WEIGHT:
            raise InputError(f"msgThroughputIn + msgThroughputOut is above {MAX_WEIGHT:g} bytes per second")
        if stats.msg_rate_in + stats.msg_rate_out > MAX_WEIGHT:
            raise InputError(f"msgRateIn + msgRateOut is above {MAX_WEIGHT:g} messages per second")
        return Reported(stats, _given_in(row["stats"]))

    return _read_small(path, "bundles", convert)


def broker_numbers(rows: Iterable[dict[str, Any]], roster: Roster) -> Mapping[str, NDArray[Any]]:
    """Return LOADS in columns: ts, broker (number), usage, load (bytes per second), and what else any row gives.

    That may be max_usage, smoothed_throughput, rate (messages per second), topics and, by their names, percentages of
    resources; NaN in rows that do not give it.
    """
    numbered = [(row["ts"], roster.number(row["broker"]), row["value"]) for row in rows]
    kept = [(ts, number, reported) for ts, number, reported in numbered if number is not None]
    reports = [reported for _, _, reported in kept]
    columns: dict[str, NDArray[Any]] = {
        "ts": np.array([ts for ts, _, _ in kept], dtype=np.int64),
        "broker": np.array([number for _, number, _ in kept], dtype=np.int64),
        "usage": np.array([reported.record.weighted_max_ema for reported in reports], dtype=np.float64),
        "load": np.array([reported.record.msg_throughput for reported in reports], dtype=np.float64),
    }
    for name, (keys, figure) in _FIGURES.items():
        if any(reported.gives(keys) for reported in reports):
            values = [figure(reported.record) if reported.gives(keys) else np.nan for reported in reports]
            columns[name] = np.array(values, dtype=np.float64)
    return columns


def _percent(resource: str) -> Callable[[BrokerLoadData], float]:
    return lambda load: float(getattr(load, resource).percent_usage)


#: Figures that a row of LOADS may give besides, with their keys. If one resource is given all count as given.
_FIGURES: Mapping[str, tuple[Iterable[str], Callable[[BrokerLoadData], float]]] = {
    "max_usage": (("maxResourceUsage",), lambda load: load.max_resource_usage),
    "smoothed_throughput": (("msgThroughputEMA",), lambda load: load.msg_throughput_ema),
    "rate": (DETAILS["rates"], lambda load: load.msg_rate),
    "topics": (DETAILS["topics"], lambda load: load.topics),
    **{name: (DETAILS["resources"], _percent(name)) for name in RESOURCES},
}


def bundle_numbers(rows: Iterable[dict[str, Any]], atoms: Atoms) -> Mapping[str, NDArray[Any]]:
    """Return BUNDLES in columns: ts, first and stop (atoms), micro (micro-units of load per second).

    If any row gives rates of messages there is also `rate`, in millionths per second; 0 in rows that do not.
    """
    sliced = [(row["ts"], atoms.slice_of(row["bundle"]), row["value"]) for row in rows]
    kept = [(ts, span, reported) for ts, span, reported in sliced if span is not None]
    stats = [reported.record for _, _, reported in kept]
    columns: dict[str, NDArray[Any]] = {
        "ts": np.array([ts for ts, _, _ in kept], dtype=np.int64),
        "first": np.array([span.start for _, span, _ in kept], dtype=np.int64),
        "stop": np.array([span.stop for _, span, _ in kept], dtype=np.int64),
        "micro": _micro(each.msg_throughput_in + each.msg_throughput_out for each in stats),
    }
    if any(reported.gives(DETAILS["rates"]) for _, _, reported in kept):
        columns["rate"] = _micro(each.msg_rate_in + each.msg_rate_out for each in stats)
    return columns


def _micro(figures: Iterable[float]) -> NDArray[np.int64]:
    return np.array([round(figure * MICRO) for figure in figures], dtype=np.int64)


def _given_in(text: str) -> frozenset[str]:
    """Return the keys that a JSON object gives a value."""
    return frozenset(key for key, value in json.loads(text).items() if value is not None)
