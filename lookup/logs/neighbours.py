"""Read the tables beside a table LOOKUPS, for the load manager of its brokers, and their traffic."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from itertools import chain
from pathlib import Path
from typing import Any

from lookup.errors import InputError, InvalidNameError
from lookup.logs.columns import TABLES
from lookup.logs.sources import list_log, open_parquet
from lookup.model.broker import BrokerLookupData
from lookup.model.bundles import HASH_END, BundleRange
from lookup.model.documents import TableName
from lookup.model.load_data import broker_load_from_json

__all__ = ["Neighbours", "neighbours_of"]

#: Rows of a table that are read.
_ROWS = 1_000


@dataclass(frozen=True)
class Neighbours:
    """The tables beside LOOKUPS, and their facts about a cluster."""

    #: paths by name
    tables: Mapping[str, str] = field(default_factory=dict)
    #: ids of brokers by cluster, "" if BROKERS does not name clusters
    brokers: Mapping[str, Sequence[str]] = field(default_factory=dict)
    #: class of the load manager, and release, of most brokers, None if no record has both
    software: tuple[str, str] | None = None
    #: mean traffic of a broker in bytes per second, in and out together, 0 without LOADS
    carried: float = 0.0
    #: number of bundles of most namespaces, None if no table names bundles
    bundles: int | None = None


def neighbours_of(log: str) -> Neighbours:
    """Read the tables beside a folder `lookups` on a disk. Any other path does not have any."""
    folder = Path(log)
    if folder.name != "lookups" or not folder.is_dir():
        return Neighbours()
    tables = {name: str(folder.parent / name) for name in TABLES if name != "lookups"}
    tables = {name: path for name, path in tables.items() if Path(path).is_dir()}
    registered = [*_rows(tables, "brokers")]
    records = [BrokerLookupData.from_json(row["lookup_data"]) for row in registered if row.get("lookup_data")]
    software = Counter((each.load_manager_class_name or "", each.broker_version or "") for each in records)
    brokers: dict[str, list[str]] = {}
    for cluster, broker in sorted({(row.get("cluster") or "", row["broker"]) for row in registered}):
        brokers.setdefault(cluster, []).append(broker)
    pairs = [pair for pair, _ in software.most_common() if all(pair)]
    loads = [broker_load_from_json(row["load"]) for row in _rows(tables, "loads")]
    carried = sum(load.msg_throughput_in + load.msg_throughput_out for load in loads) / max(1, len(loads))
    if not carried:
        # Loads in bytes mean nothing without capacities in bytes.
        tables.pop("bundles", None)
    return Neighbours(tables, brokers, pairs[0] if pairs else None, carried, _count_bundles(tables))


def _count_bundles(tables: Mapping[str, str]) -> int | None:
    rows = chain(_rows(tables, "ownership"), _rows(tables, "bundles"))
    widths: Counter[int] = Counter()
    for name in {row["bundle"] for row in rows if row.get("bundle")}:
        with suppress(InvalidNameError):
            span = BundleRange.parse(name.rpartition("/")[2])
            widths[span.upper - span.lower] += 1
    # Most bundles are not split, so the most frequent width is that of a new namespace.
    return round(HASH_END / widths.most_common(1)[0][0]) if widths else None


def _rows(tables: Mapping[str, str], name: TableName) -> Iterator[dict[str, Any]]:
    # The code that needs the rows of an unreadable table refuses it.
    with suppress(InputError):
        for file in list_log(tables[name], name) if name in tables else ():
            with open_parquet(file.path) as parquet:
                batch = next(parquet.iter_batches(_ROWS), None)
                yield from () if batch is None else batch.to_pylist()
