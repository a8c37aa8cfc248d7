"""Read the tables of a run's folder into sums that are small enough to be drawn.

Charts over time show one replicate, since no broker ever had the mean load of several. Totals are means over all.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from lookup.engine.ownership import CAUSE_WORDS
from lookup.errors import InputError
from lookup.logs.schema import CELLS, DECISIONS, FLOWS, OWNERS
from lookup.logs.sources import list_files
from lookup.model.broker import Location
from lookup.report.figures import open_result

__all__ = ["ClusterHistory", "Flows", "History", "read_flows", "read_history", "read_rejections"]

_PLACES = ("region", "zone", "rack")
_SCHEMAS = {"cells": CELLS, "owners": OWNERS, "flows": FLOWS}


@dataclass(frozen=True, eq=False)
class ClusterHistory:
    """One cluster over time under every policy, in columns of equal width that hold one or more balance cells."""

    #: start of each column, µs, shape (n_columns,)
    starts: NDArray[np.int64]
    #: width of a column, µs
    width_us: int
    brokers: tuple[str, ...]
    #: by policy, weight served / mean of the registered brokers, NaN if not registered, shape (n_brokers, n_columns)
    load: Mapping[str, NDArray[np.float64]]
    #: by policy, bundles that lost their owner in a column, by cause of `CAUSE_WORDS`, shape (n_causes, n_columns)
    lost: Mapping[str, NDArray[np.int64]]
    #: numbers of brokers and instants, µs, at which they were lost while they owned something under any policy
    losses: tuple[tuple[int, int], ...]


@dataclass(frozen=True)
class History:
    """All clusters over time in one replicate."""

    seed: int
    clusters: Mapping[str, ClusterHistory]


def read_history(folder: str, *, policies: Sequence[str], seed: int, cell_us: int, most: int) -> History | None:
    """Read CELLS and OWNERS of one replicate, None if the run did not write CELLS.

    Args:
        cell_us: width of a balance cell.
        most: greatest number of values in all matrices of load together. Columns are widened to keep to it.
    """
    cells, owners = (_read_by_cluster(folder, name, seed) for name in ("cells", "owners"))
    if not cells:
        return None
    rows = len(policies) * sum(
        len(pc.unique(pa.concat_tables(of_policy.values())["broker"])) for of_policy in cells.values()
    )
    clusters = {}
    for cluster, of_policy in sorted(cells.items()):
        every = pa.concat_tables(of_policy.values())
        starts, brokers = _read_us(every["ts"]), tuple(sorted(pc.unique(every["broker"]).to_pylist()))
        first, last = int(starts.min()), int(starts.max()) + cell_us
        n_cells = (last - first) // cell_us
        width = cell_us * max(1, -(-n_cells // max(1, most // rows)))
        columns = np.arange(first, last, width, dtype=np.int64)
        numbers = {broker: number for number, broker in enumerate(brokers)}
        of_owners = {policy: owners[cluster][policy] for policy in of_policy if policy in owners[cluster]}
        losses = set[tuple[int, int]]()
        for table in of_owners.values():
            forced = table.filter(pc.equal(table["ended_by"], "forced")).filter(pc.field("broker").isin(list(brokers)))
            losses.update(
                zip(_number_names(forced["broker"], numbers).tolist(), _read_us(forced["to"]).tolist(), strict=True)
            )
        clusters[cluster] = ClusterHistory(
            columns,
            width,
            brokers,
            {policy: _sum_load(table, numbers, columns, width) for policy, table in of_policy.items()},
            {policy: _count_lost(table, columns, width) for policy, table in of_owners.items()},
            tuple(sorted((broker, instant) for broker, instant in losses if first <= instant < last)),
        )
    return History(seed, clusters)


def _sum_load(
    table: pa.Table, numbers: Mapping[str, int], columns: NDArray[np.int64], width: int
) -> NDArray[np.float64]:
    broker, column = _number_names(table["broker"], numbers), (_read_us(table["ts"]) - columns[0]) // width
    served = np.zeros((len(numbers), len(columns)))
    np.add.at(served, (broker, column), table["weight"].to_numpy())
    # Broker-cells, since a broker that came within a column has less of it.
    present = np.zeros_like(served)
    np.add.at(present, (broker, column), 1.0)
    with np.errstate(invalid="ignore", divide="ignore"):
        even = served.sum(axis=0) / present.sum(axis=0) * present
        ratio: NDArray[np.float64] = np.where(present > 0, np.where(even > 0, served / even, 0.0), np.nan)
    return ratio


def _count_lost(table: pa.Table, columns: NDArray[np.int64], width: int) -> NDArray[np.int64]:
    lost = np.zeros((len(CAUSE_WORDS), len(columns)), dtype=np.int64)
    for number, cause in enumerate(CAUSE_WORDS):
        ended = _read_us(table.filter(pc.equal(table["ended_by"], cause))["to"])
        column = (ended - columns[0]) // width
        lost[number] = np.bincount(column[(column >= 0) & (column < len(columns))], minlength=len(columns))
    return lost


@dataclass(frozen=True, eq=False)
class Flows:
    """Lookups of a mean replicate between places of one cluster."""

    #: most lookups first. None means all others
    clients: tuple[Location | None, ...]
    #: None for unanswered lookups
    brokers: tuple[Location | None, ...]
    #: by policy, shape (n_clients, n_brokers)
    lookups: Mapping[str, NDArray[np.float64]]


def read_flows(folder: str, *, seeds: int, most: int) -> dict[str, Flows]:
    """Read FLOWS by cluster, the mean over replicates, empty if the run did not write any.

    Args:
        seeds: number of replicates.
        most: number of distinguished places of clients.
    """
    sums: dict[str, dict[str, Counter[tuple[Location, Location | None]]]] = defaultdict(lambda: defaultdict(Counter))
    for table in _iter_tables(folder, "flows"):
        for row in table.to_pylist():
            client = Location(*(row[f"client_{level}"] for level in _PLACES))
            broker = Location(*(row[f"broker_{level}"] for level in _PLACES)) if row["answered"] else None
            sums[row["cluster"]][row["policy"]][client, broker] += row["lookups"]
    flows = {}
    for cluster, of_policy in sorted(sums.items()):
        every: Counter[Location] = Counter()
        for (client, _), lookups in (entry for counts in of_policy.values() for entry in counts.items()):
            every[client] += lookups
        ranked = sorted(every, key=lambda place: (-every[place], str(place)))
        clients = (*ranked[:most], *([None] if len(ranked) > most else []))
        answering = {broker for counts in of_policy.values() for _, broker in counts}
        places = sorted((place for place in answering if place is not None), key=str)
        brokers = (*places, *([None] if None in answering else []))
        row_of = {client: min(number, len(clients) - 1) for number, client in enumerate(ranked)}
        column_of = {broker: number for number, broker in enumerate(brokers)}
        lookups_of = {}
        for policy, counts in of_policy.items():
            matrix = np.zeros((len(clients), len(brokers)))
            for (client, broker), lookups in counts.items():
                matrix[row_of[client], column_of[broker]] += lookups / seeds
            lookups_of[policy] = matrix
        flows[cluster] = Flows(clients, brokers, lookups_of)
    return flows


def read_rejections(folder: str, *, seeds: int) -> dict[str, dict[str, float]]:
    """Compute by policy and reason the number of brokers that filters rejected, the mean over replicates."""
    sums: dict[str, Counter[str]] = defaultdict(Counter)
    for file in _find_files(folder, "decisions"):
        with open_result(file, DECISIONS) as parquet:
            for batch in parquet.iter_batches(columns=["policy", "rejected"]):
                if not batch.num_rows:
                    continue
                rejected = batch.column("rejected").drop_null()
                keys, items = rejected.keys, rejected.items
                counted = pa.table({"reason": keys, "count": items}).group_by("reason").aggregate([("count", "sum")])
                policy = sums[batch.column("policy")[0].as_py()]
                for row in counted.to_pylist():
                    policy[row["reason"]] += row["count_sum"]
    return {policy: {reason: count / seeds for reason, count in counts.items()} for policy, counts in sums.items()}


def _find_files(folder: str, name: str) -> list[str]:
    try:
        return list_files([f"{folder.rstrip('/')}/{name}"])
    except InputError:
        # An older run has no such table.
        return []


def _iter_tables(folder: str, name: str, seed: int | None = None) -> Iterator[pa.Table]:
    for file in _find_files(folder, name):
        # The seed is at the end of each file's name, so nine of ten replicates need not be opened.
        if seed is None or file.endswith(f"-{seed}.parquet"):
            with open_result(file, _SCHEMAS[name]) as parquet:
                yield parquet.read()


def _read_by_cluster(folder: str, name: str, seed: int) -> dict[str, dict[str, pa.Table]]:
    tables: dict[str, dict[str, pa.Table]] = defaultdict(dict)
    for table in _iter_tables(folder, name, seed):
        if table.num_rows:
            tables[table["cluster"][0].as_py()][table["policy"][0].as_py()] = table
    return tables


def _number_names(column: pa.ChunkedArray, numbers: Mapping[str, int]) -> NDArray[np.int64]:
    places = pc.index_in(column, value_set=pa.array(list(numbers), pa.string()))
    return np.asarray(places.to_numpy(), dtype=np.int64)


def _read_us(column: pa.ChunkedArray, absent: int = 0) -> NDArray[np.int64]:
    return np.asarray(pc.fill_null(column.cast(pa.int64()), absent).to_numpy(), dtype=np.int64)
