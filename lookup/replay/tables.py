"""The small tables of a run, read on the driver: BROKERS and OWNERSHIP as events, LOADS and BUNDLES as numbers.

Source: `design/architecture.md` section 6.1.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from lookup.engine.ledger import MICRO
from lookup.errors import InputError, InvalidNameError
from lookup.model.broker import BrokerLookupData, Roster
from lookup.model.bundles import NamespaceBundle
from lookup.model.load import NamespaceBundleStats, broker_load_from_json, bundle_stats_from_json
from lookup.model.records import TableName
from lookup.replay.atoms import Atoms
from lookup.replay.parquet import list_log, open_parquet
from lookup.replay.rows import Quarantined
from lookup.replay.schema import CANONICAL, MAX_WEIGHT, REQUIRED
from lookup.replay.timeline import OwnershipEvent, Registration, cut_points

__all__ = [
    "SmallTable",
    "broker_numbers",
    "bundle_numbers",
    "bundle_rows",
    "load_rows",
    "ownership_events",
    "registrations",
]

_EVENTS = ("registered", "updated", "unregistered")
_OWNERSHIP_EVENTS = ("owned", "unloaded", "split")
_CAUSES = (None, "policy", "admin")


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
        InputError: where the path holds no such table.
    """
    found = SmallTable()
    for file in list_log(path, table) if path is not None else ():
        names = [name for name in CANONICAL[table].names if name in file.columns]
        with open_parquet(file.path) as parquet:
            rows = _records(file.path, parquet.read(columns=names, use_threads=False))
        for line, row in enumerate(rows, start=1):
            row["cluster"] = row.get("cluster") if file.cluster is None else file.cluster
            try:
                row["value"] = convert(_complete(row, table))
            except (InputError, InvalidNameError) as error:
                found.quarantined.append(Quarantined(file.path, line, str(error), str(row)[:200]))
            else:
                found.rows.setdefault(row["cluster"], []).append(row)
    return found


def registrations(path: str | None) -> SmallTable:
    """Read BROKERS; each row's `value` is a `Registration`."""

    def convert(row: dict[str, Any]) -> Registration:
        """Return what a row says of a broker's registration."""
        if row["event"] not in _EVENTS:
            raise InputError(f"event {row['event']!r} is none of {', '.join(_EVENTS)}")
        text = row.get("lookup_data")
        data = None if text is None else BrokerLookupData.from_json(text)
        return Registration(row["ts"], row["broker"], row["event"], data)

    return _read_small(path, "brokers", convert)


def ownership_events(path: str | None) -> SmallTable:
    """Read OWNERSHIP; each row's `value` is an `OwnershipEvent`."""

    def convert(row: dict[str, Any]) -> OwnershipEvent:
        """Return what a row says happened to a bundle."""
        if row["event"] not in _OWNERSHIP_EVENTS:
            raise InputError(f"event {row['event']!r} is none of {', '.join(_OWNERSHIP_EVENTS)}")
        bundle = str(NamespaceBundle.parse(row["bundle"]))
        boundaries = tuple(_hash(text) for text in row.get("boundaries") or ())
        event = OwnershipEvent(row["ts"], bundle, row["event"], row.get("broker"), row.get("by"), boundaries)
        if event.by not in _CAUSES:
            raise InputError(f"by {event.by!r} is none of policy, admin")
        if event.event == "owned" and event.broker is None:
            raise InputError("an `owned` row names no broker")
        if event.event == "split" and not cut_points(event):
            raise InputError(f"a `split` row needs boundaries inside its bundle {bundle}")
        return event

    return _read_small(path, "ownership", convert)


def load_rows(path: str | None) -> SmallTable:
    """Read LOADS; each row's `value` is a `BrokerLoadData`."""
    return _read_small(path, "loads", lambda row: broker_load_from_json(row["load"]))


def bundle_rows(path: str | None) -> SmallTable:
    """Read BUNDLES; each row's `value` is a `NamespaceBundleStats`."""

    def convert(row: dict[str, Any]) -> NamespaceBundleStats:
        stats = bundle_stats_from_json(row["stats"])
        if stats.msg_throughput_in + stats.msg_throughput_out > MAX_WEIGHT:
            raise InputError(f"msgThroughputIn + msgThroughputOut is above {MAX_WEIGHT:g} bytes per second")
        return stats

    return _read_small(path, "bundles", convert)


def broker_numbers(rows: Iterable[dict[str, Any]], roster: Roster) -> Mapping[str, NDArray[Any]]:
    """Return LOADS in columns: ts, broker (number), usage, load (weight per second), topics."""
    known = [(row["ts"], roster.number(row["broker"]), row["value"]) for row in rows]
    kept = [(ts, number, load) for ts, number, load in known if number is not None]
    return {
        "ts": np.array([ts for ts, _, _ in kept], dtype=np.int64),
        "broker": np.array([number for _, number, _ in kept], dtype=np.int64),
        "usage": np.array([load.weighted_max_ema for _, _, load in kept], dtype=np.float64),
        "load": np.array([load.msg_throughput_in + load.msg_throughput_out for _, _, load in kept], dtype=np.float64),
        "topics": np.array([load.topics for _, _, load in kept], dtype=np.int64),
    }


def bundle_numbers(rows: Iterable[dict[str, Any]], atoms: Atoms) -> Mapping[str, NDArray[Any]]:
    """Return BUNDLES in columns: ts, first and stop (atoms), micro (micro-units of weight per second)."""
    known = [(row["ts"], atoms.slice_of(row["bundle"]), row["value"]) for row in rows]
    kept = [(ts, place, stats) for ts, place, stats in known if place is not None]
    micro = [round((stats.msg_throughput_in + stats.msg_throughput_out) * MICRO) for _, _, stats in kept]
    return {
        "ts": np.array([ts for ts, _, _ in kept], dtype=np.int64),
        "first": np.array([place.start for _, place, _ in kept], dtype=np.int64),
        "stop": np.array([place.stop for _, place, _ in kept], dtype=np.int64),
        "micro": np.array(micro, dtype=np.int64),
    }


def _complete(row: dict[str, Any], table: TableName) -> dict[str, Any]:
    missing = [name for name in REQUIRED[table] if row.get(name) is None]
    if missing:
        raise InputError(f"{missing[0]} is missing")
    return row


def _records(path: str, rows: pa.Table) -> list[dict[str, Any]]:
    try:
        records: list[dict[str, Any]] = _with_integer_ts(rows).to_pylist()
    except UnicodeDecodeError as error:
        raise InputError(f"{path}: holds bytes that are no text in UTF-8: {error}") from None
    return records


def _with_integer_ts(table: pa.Table) -> pa.Table:
    place = table.column_names.index("ts")
    column = table.column("ts")
    if pa.types.is_timestamp(column.type):
        column = column.cast(pa.timestamp("us", column.type.tz), safe=False)
    return table.set_column(place, "ts", column.cast(pa.int64()))


def _hash(text: str | None) -> int:
    try:
        return int(text or "", 16)
    except ValueError:
        raise InputError(f"boundary {text!r} is no hexadecimal hash like 0x40000000") from None
