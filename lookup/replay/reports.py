"""Read LOADS, BUNDLES and OWNERSHIP in tasks.

Each task writes the rows of its share as numbers, one part for each day.

The driver keeps the data that does not grow with the rows. This is the names of brokers and bundles, the keys that any
row gives, and splits, which cut bundles for a whole run. The keys show before a run which figures of load the tables
give. A warning names each figure that a part of a policy reads and no table gives. A replay never makes figures up.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from typing import Literal, TypeAlias

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
from numpy.typing import NDArray

from lookup.engine.answers import checked_reads
from lookup.engine.ledger import MICRO
from lookup.engine.policy import Policy
from lookup.engine.units import Rates, policies_named, rates_without
from lookup.logs.columns import MAX_WEIGHT
from lookup.logs.jobs import InProcess, Workers, parallelism, run_tasks
from lookup.logs.rows import Quarantined
from lookup.logs.schema import CANONICAL
from lookup.logs.sources import FileSplit, LogFile, list_log, open_parquet, share_out, statistics_of, table_span
from lookup.model.quoting import quantity
from lookup.replay.days import CodedPart, Codes, PartWriter, WrittenPart
from lookup.replay.plan import RunPlan
from lookup.replay.shares import short_codes
from lookup.replay.tables import (
    DETAILS,
    THROUGHPUT,
    PlainBundles,
    ReadRow,
    Registrations,
    load_figures,
    micro_figures,
    plain_bundles,
    read_rows,
    registrations,
)
from lookup.replay.timeline import OwnershipEvent, Registration, cut_points, registrations_of
from lookup.replay.work import WorkDir, write_quarantine
from lookup.settings.evaluation import EvaluationFile
from lookup.settings.resolve import broker_intervals

__all__ = [
    "CAUSES", "EVENTS", "ReportTable", "TableShare", "Tables", "known_figures", "known_rates", "mean_load",
    "parts_by_day", "read_tables", "report_paths", "unknown_figures",
]  # fmt: skip

#: The tables with a row for every report or change of owner.
ReportTable: TypeAlias = Literal["loads", "bundles", "ownership"]
#: Texts of OWNERSHIP by their code. An unknown cause has code -1.
EVENTS, CAUSES = ("owned", "unloaded", "split"), ("policy", "admin")

#: A task reads at most about this many rows.
_ROWS_PER_TASK = 2_000_000
#: This process reads up to so many rows faster than Spark starts a worker. So all workers start at once, for LOOKUPS.
_FEW_ROWS = 20_000
#: Rows that are read at a time. Their texts take some hundred bytes each.
_ROWS_PER_BATCH = 50_000
#: Columns of names, which have few distinct values, for `names` of `TableShare`.
_NAMES: Mapping[ReportTable, tuple[str, ...]] = {
    "loads": ("broker",),
    "bundles": ("bundle",),
    "ownership": ("bundle", "broker"),
}


@dataclass
class TableShare:
    """The rows of one table and cluster that one task has read."""

    table: ReportTable
    cluster: str
    #: texts by column and code
    names: dict[str, list[str | None]] = field(default_factory=dict)
    #: in order of the files
    parts: list[WrittenPart] = field(default_factory=list)
    #: keys of LOADS and BUNDLES that any row gives
    given: frozenset[str] = frozenset()
    #: keys that the rows of each broker give, of LOADS
    given_by: dict[str | None, frozenset[str]] = field(default_factory=dict)
    #: splits of OWNERSHIP, in order of the files
    splits: list[OwnershipEvent] = field(default_factory=list)


@dataclass(frozen=True)
class _ReadShare:
    shares: list[TableShare]
    quarantined: int


@dataclass(frozen=True)
class Tables:
    """The tables of a run without LOOKUPS. BROKERS is complete, the others have only data for planning."""

    settings: EvaluationFile
    brokers: Registrations
    #: in order of the files
    shares: Sequence[TableShare]
    #: rows that cannot be used, BROKERS included
    quarantined: int

    def registrations(self, cluster: str) -> list[Registration]:
        """Build a cluster's registry, from BROKERS if that table is given, otherwise from broker profiles."""
        if self.settings.inputs.brokers is not None:
            return self.brokers.of(cluster)
        return registrations_of(broker_intervals(self.settings, cluster))

    def of(self, table: ReportTable, cluster: str) -> list[TableShare]:
        """List the shares of a table and cluster."""
        return [share for share in self.shares if (share.table, share.cluster) == (table, cluster)]

    def gives(self, table: ReportTable, keys: Collection[str]) -> bool:
        """Check whether any row of LOADS or BUNDLES gives at least one of some keys."""
        return any(share.table == table and not share.given.isdisjoint(keys) for share in self.shares)

    def splits(self, cluster: str) -> list[OwnershipEvent]:
        """Sort the splits of a cluster's bundles by time, ties in order of the files."""
        splits = [split for share in self.of("ownership", cluster) for split in share.splits]
        return sorted(splits, key=lambda split: split.ts_us)

    def cuts(self) -> dict[str, dict[str, tuple[int, ...]]]:
        """Collect the hashes at which bundles are split, by cluster and namespace."""
        cuts: dict[str, dict[str, tuple[int, ...]]] = {}
        for cluster in sorted({share.cluster for share in self.shares if share.table == "ownership"}):
            by_namespace = cuts.setdefault(cluster, {})
            for split in self.splits(cluster):
                namespace = split.bundle.rpartition("/")[0]
                by_namespace[namespace] = tuple(sorted({*by_namespace.get(namespace, ()), *cut_points(split)}))
        return cuts


def report_paths(settings: EvaluationFile) -> dict[ReportTable, str]:
    """List the path of each table that tasks read, without LOOKUPS."""
    paths = settings.inputs
    by_table: dict[ReportTable, str | None] = {
        "ownership": paths.ownership,
        "loads": paths.loads if settings.evaluation.load == "reported" else None,
        "bundles": paths.bundles,
    }
    return {table: path for table, path in by_table.items() if path is not None}


def read_tables(
    workers: Workers,
    settings: EvaluationFile,
    *,
    tick_us: int,
    work: WorkDir,
    quarantine: str,
    progress: Callable[[str], None] = lambda message: None,
) -> Tables:
    """Read those of BROKERS, OWNERSHIP, LOADS and BUNDLES that are given.

    Args:
        quarantine: folder for rows that cannot be used.

    Raises:
        InputError: if a path holds no such table.
    """
    brokers = registrations(settings.inputs.brokers)
    write_quarantine(brokers.quarantined, "brokers", quarantine, "brokers.parquet")
    files = {table: list_log(path, table) for table, path in report_paths(settings).items()}
    rows = {table: sum(file.rows for file in files[table]) for table in files}
    cores = parallelism(workers)
    items = [
        (table, number, splits)
        for table in files
        for number, splits in enumerate(share_out(files[table], cores * -(-rows[table] // (cores * _ROWS_PER_TASK))))
    ]
    total = sum(rows.values())
    if items:
        names = " and ".join(table.upper() for table in files)
        progress(f"reading {quantity(total, 'row')} of {names} in {quantity(len(items), 'task')}")

    def read(item: tuple[ReportTable, int, Sequence[FileSplit]], tick_us: int) -> _ReadShare:
        return _read_share(*item, tick_us=tick_us, work=work, quarantine=quarantine)

    answers = run_tasks(workers if total > _FEW_ROWS else InProcess(), items, tick_us, read, rows=total)
    shares = [share for answer in answers for share in answer.shares]
    quarantined = len(brokers.quarantined) + sum(answer.quarantined for answer in answers)
    return Tables(settings, brokers, shares, quarantined)


def parts_by_day(
    shares: Sequence[TableShare], codes: Callable[[str, Sequence[str | None]], Codes]
) -> dict[int, list[CodedPart]]:
    """Collect the parts of each day, with the maps from their codes to the cluster's.

    Args:
        codes: returns the cluster's codes of a column's texts.
    """
    days: dict[int, list[CodedPart]] = {}
    for share in shares:
        maps = {column: codes(column, texts) for column, texts in share.names.items()}
        for part in share.parts:
            days.setdefault(part.day, []).append(CodedPart(part, maps))
    return dict(sorted(days.items()))


@dataclass(frozen=True)
class _Rows:
    cluster: str
    #: by column the texts, and the code of each row
    names: Mapping[str, tuple[Sequence[str | None], Codes]]
    #: `ts`, and the numbers of the table
    columns: Mapping[str, NDArray[np.generic]]
    given: frozenset[str] = frozenset()
    #: by the log's name of a broker, for LOADS
    given_by: Mapping[str | None, frozenset[str]] = field(default_factory=dict)
    splits: Sequence[OwnershipEvent] = ()


class _ShareWriter:
    def __init__(self, share: TableShare, writer: PartWriter) -> None:
        self._share, self._writer = share, writer
        self._codes: dict[str, dict[str | None, int]] = {column: {} for column in _NAMES[share.table]}

    def add(self, rows: _Rows) -> None:
        """Add rows, in order of their file."""
        columns = dict(rows.columns)
        for column, (texts, codes) in rows.names.items():
            code_of = self._codes[column]
            columns[column] = short_codes(code_of.setdefault(text, len(code_of)) for text in texts)[codes]
        # Rows of one instant stay in order of their files.
        columns["seq"] = np.zeros(len(columns["ts"]), dtype=np.int64)
        self._writer.add(columns)
        self._share.given |= rows.given
        for broker, keys in rows.given_by.items():
            self._share.given_by[broker] = self._share.given_by.get(broker, frozenset()) | keys
        self._share.splits.extend(rows.splits)

    def finish(self) -> TableShare:
        self._writer.flush()
        self._share.names = {column: list(code_of) for column, code_of in self._codes.items()}
        self._share.parts = self._writer.parts
        return self._share


def _read_share(
    table: ReportTable, task: int, splits: Sequence[FileSplit], *, tick_us: int, work: WorkDir, quarantine: str
) -> _ReadShare:
    writers: dict[str, _ShareWriter] = {}
    refused: list[Quarantined] = []
    for rows in _read_usable_rows(table, splits):
        if isinstance(rows, Quarantined):
            refused.append(rows)
            continue
        if rows.cluster not in writers:
            part_writer = PartWriter(work, table, rows.cluster, task, tick_us=tick_us)
            writers[rows.cluster] = _ShareWriter(TableShare(table, rows.cluster), part_writer)
        writers[rows.cluster].add(rows)
    write_quarantine(refused, table, quarantine, f"{table}-{task:05d}.parquet")
    return _ReadShare([writer.finish() for _, writer in sorted(writers.items())], len(refused))


def _read_usable_rows(table: ReportTable, splits: Sequence[FileSplit]) -> Iterator[_Rows | Quarantined]:
    """Yield the usable rows and the quarantined rows of some row groups in order."""
    for split in splits:
        file, row = split.file, split.first_row
        names = [name for name in CANONICAL[table].names if name in file.columns]
        with open_parquet(file.path, dictionaries=[name for name in ("cluster", "bundle") if name in names]) as parquet:
            groups = range(split.first_group, split.first_group + split.groups)
            # No threads: Spark runs a task on every core as it is.
            for rows in parquet.iter_batches(_ROWS_PER_BATCH, groups, names, use_threads=False):
                plain = plain_bundles(rows, file.cluster) if table == "bundles" else None
                if plain is None:
                    yield from _read_single_rows(table, rows, file, row)
                else:
                    yield from _iter_stretches(plain, rows, file, row)
                row += rows.num_rows


def _iter_stretches(
    plain: PlainBundles, rows: pa.RecordBatch, file: LogFile, first_row: int
) -> Iterator[_Rows | Quarantined]:
    """Yield stretches of plain rows of one cluster as a whole, and the other rows one by one."""
    kinds = np.where(plain.is_plain, plain.clusters[1], -1)
    borders = [0, *(np.flatnonzero(np.diff(kinds)) + 1).tolist(), len(kinds)]
    for start, stop in pairwise(borders):
        cluster = None if kinds[start] < 0 else plain.clusters[0][kinds[start]]
        if cluster is None:
            yield from _read_single_rows("bundles", rows.slice(start, stop - start), file, first_row + start)
            continue
        here = slice(start, stop)
        columns = {"ts": plain.ts[here], **{name: values[here] for name, values in plain.figures.items()}}
        keys = frozenset(key for key, rows_with in plain.gives.items() if rows_with[here].any())
        yield _Rows(cluster, {"bundle": (plain.bundles[0], plain.bundles[1][here])}, columns, keys)


def _read_single_rows(
    table: ReportTable, rows: pa.RecordBatch, file: LogFile, first_row: int
) -> Iterator[_Rows | Quarantined]:
    usable: dict[str, list[ReadRow]] = {}
    for row in read_rows(table, rows, file, first_row):
        if isinstance(row, Quarantined):
            yield row
        else:
            usable.setdefault(row.cluster, []).append(row)
    for cluster, of_cluster in usable.items():
        names = {
            column: ([row.columns.get(column) for row in of_cluster], np.arange(len(of_cluster)))
            for column in _NAMES[table]
        }
        ts = np.array([row.ts_us for row in of_cluster], dtype=np.int64)
        values = [row.value for row in of_cluster]
        if table == "ownership":
            splits = [event for event in values if event.event == "split"]
            events = np.array([EVENTS.index(event.event) for event in values], dtype=np.int64)
            causes = np.array([-1 if event.by is None else CAUSES.index(event.by) for event in values], dtype=np.int64)
            yield _Rows(cluster, names, {"ts": ts, "event": events, "by": causes}, splits=splits)
        else:
            figures = load_figures(values) if table == "loads" else micro_figures(values)
            given_by: dict[str | None, frozenset[str]] = {}
            for row in of_cluster if table == "loads" else ():
                broker = row.columns.get("broker")
                given_by[broker] = given_by.get(broker, frozenset()) | row.value.given
            yield _Rows(
                cluster,
                names,
                {"ts": ts, **figures},
                frozenset[str]().union(*(value.given for value in values)),
                given_by,
            )


#: Figures that a part may read and a run may lack, in the words of a warning.
_GAPS = {
    "view.load.rates": (
        "message rates, which need msgRateIn or msgRateOut in BUNDLES, and in LOADS with reported load. Load or its "
        "own default is used instead"
    ),
    "view.load.resources": "single resources, which LOADS lacks. Total usage is used instead",
}


def known_figures(run: RunPlan, tables: Tables) -> frozenset[str]:
    """List the details of load that policies will see, as named in `reads`."""
    reported = {name for name, keys in DETAILS.items() if tables.gives("loads", keys)}
    figures = {
        "view.load.rates": tables.gives("bundles", DETAILS["rates"]) and (not run.is_reported or "rates" in reported),
        # Simulated load has one usage by definition.
        "view.load.resources": not run.is_reported or "resources" in reported,
    }
    return frozenset(name for name, is_known in figures.items() if is_known)


def known_rates(run: RunPlan, tables: Tables) -> Rates:
    """Find which rates the tables of a run give, and, without BUNDLES, whether `bytes_per_weight` is set."""
    without = rates_without(tables.settings)
    if without is not None:
        return without
    kinds: tuple[ReportTable, ...] = ("bundles", "loads") if run.is_reported else ("bundles",)
    silent = [table.upper() for table in kinds if not tables.gives(table, THROUGHPUT)]
    return Rates(
        has_bytes=not silent,
        has_messages="view.load.rates" in known_figures(run, tables),
        why=f"no row of {' and of '.join(silent)} gives msgThroughputIn or msgThroughputOut",
        remedy="give these, or leave inputs.bundles out and state evaluation.bytes_per_weight",
    )


def unknown_figures(policies: Sequence[Policy], known: Collection[str]) -> list[str]:
    """Build a warning for each figure that a part of a policy reads and the run does not know."""
    reading: dict[tuple[str, str], list[str]] = {}
    for policy in policies:
        reads = [(part.name, reads) for part, reads in zip(policy.parts, policy.part_reads, strict=True)]
        if policy.shedder is not None:
            reads.append((policy.shedder.name, checked_reads(policy.shedder)))
        for name, details in reads:
            for detail in sorted(details & _GAPS.keys() - frozenset(known)):
                names = reading.setdefault((name, detail), [])
                names += [policy.name] if policy.name not in names else []
    return [f"{policies_named(names)}: {name!r} needs {_GAPS[detail]}" for (name, detail), names in reading.items()]


def mean_load(settings: EvaluationFile) -> float | None:
    """Estimate the weight per second that a broker serves on average over a log, None if it cannot be computed.

    The estimate is cheap, since it reads footers and one column of the log. Redirects count, and so do rows that are
    quarantined for anything but their weight. A broker counts for the whole time of the log.

    Raises:
        InputError: if a table cannot be read.
    """
    if settings.inputs.lookups is None:
        return None
    weight, clusters, files = 0.0, set[str](), list_log(settings.inputs.lookups)
    for file in files:
        with open_parquet(file.path) as parquet:
            weight += _sum_weight(parquet)
            for _, statistics in statistics_of(parquet.metadata, ("cluster",)):
                clusters |= {str(statistics.min), str(statistics.max)}
        clusters |= {file.cluster} if file.cluster is not None else set()
    first, last = table_span(files) or (0, 0)
    seconds = (last - first) / MICRO
    # A BROKERS table has all brokers, for any clusters of the log.
    if settings.inputs.brokers is not None:
        rows = registrations(settings.inputs.brokers).rows
        brokers = len({(cluster, entry.broker) for cluster, entries in rows.items() for entry in entries})
    else:
        brokers = sum(len({interval.broker.id for interval in broker_intervals(settings, name)}) for name in clusters)
    return weight / seconds / brokers if seconds and brokers and weight else None


def _sum_weight(parquet: pq.ParquetFile) -> float:
    """Sum the weight of all rows of a file. A row without a weight weighs 1.0."""
    if "weight" not in parquet.schema_arrow.names:
        return float(parquet.metadata.num_rows)
    weight = 0.0
    for batch in parquet.iter_batches(columns=["weight"], use_threads=False):
        values = pc.fill_null(batch.column(0).cast(pa.float64()), 1.0).to_numpy(zero_copy_only=False)
        weight += float(values[(values >= 0.0) & (values <= MAX_WEIGHT)].sum())
    return weight
