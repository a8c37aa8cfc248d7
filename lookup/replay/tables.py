"""Read the rows of BROKERS, LOADS, BUNDLES and OWNERSHIP, each as a record or as a row that cannot be used.

BROKERS is read on the driver to plan a run, the others, with a row for each report or change, in tasks (`reports.py`).

A large cluster's day has ten million rows of BUNDLES. They are read in batches, whose JSON Arrow parses. Rows that it
cannot parse, and unusual ones, are read one by one. Only this refuses a row.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.json as pj
from numpy.typing import NDArray

from lookup.engine.ledger import MICRO
from lookup.errors import InputError, InvalidNameError
from lookup.logs.columns import MAX_WEIGHT, TABLES, check_row
from lookup.logs.rows import Quarantined
from lookup.logs.schema import CANONICAL
from lookup.logs.sources import LogFile, list_log, open_parquet
from lookup.model import RESOURCES, BrokerLoadData, BrokerLookupData, Roster
from lookup.model.documents import TableName
from lookup.model.load_data import broker_load_from_json, bundle_stats_from_json
from lookup.model.time import FIRST_US, LAST_US
from lookup.replay.days import Codes
from lookup.replay.timeline import OwnershipEvent, Registration

__all__ = [
    "CONVERTERS", "DETAILS", "FIGURES", "THROUGHPUT", "PlainBundles", "ReadRow", "Registrations", "Reported",
    "broker_numbers", "given_figures", "load_figures", "micro_figures", "plain_bundles", "read_rows", "registrations",
    "reported_load",
]  # fmt: skip

Ints = NDArray[np.int64]


@dataclass(frozen=True, slots=True)
class ReadRow:
    """A row of a table, with its columns and, in `value`, its record."""

    cluster: str
    ts_us: int
    columns: Mapping[str, Any]
    value: Any


def read_rows(
    table: TableName, rows: pa.RecordBatch | pa.Table, file: LogFile, first_row: int = 0
) -> Iterator[ReadRow | Quarantined]:
    """Yield each row of a table, or the reason why it cannot be used.

    Args:
        rows: columns of the table that the file has.
        first_row: number of rows of the file before these.

    Raises:
        InputError: if a column has bytes that are no text.
    """
    ts = rows.column("ts")
    if isinstance(ts, pa.ChunkedArray):
        ts = ts.combine_chunks()
    if pa.types.is_timestamp(ts.type):
        # Nanoseconds are cut off, since a replay counts in µs.
        ts = (ts if ts.type.unit == "us" else ts.cast(pa.timestamp("us", ts.type.tz), safe=False)).view(pa.int64())
    elif ts.type != pa.int64():
        ts = ts.cast(pa.int64())
    try:
        plain: list[dict[str, Any]] = rows.set_column(rows.schema.get_field_index("ts"), "ts", ts).to_pylist()
    except UnicodeDecodeError as error:
        raise InputError(f"{file.name}: holds bytes that are no text in UTF-8: {error}") from None
    for line, row in enumerate(plain, start=first_row + 1):
        row["cluster"] = row.get("cluster") if file.cluster is None else file.cluster
        # JSON is parsed by the converter, which knows its keys as well.
        checked = check_row(table, row, reads_json=False)
        if not isinstance(checked, str):
            try:
                yield ReadRow(checked["cluster"], checked["ts"], checked, CONVERTERS[table](checked))
            except (InputError, InvalidNameError) as error:
                checked = str(error)
        if isinstance(checked, str):
            yield Quarantined(file.name, line, checked, str(row)[:200])


@dataclass
class Registrations:
    """The rows of BROKERS by cluster, and the rows that could not be used."""

    rows: dict[str, list[Registration]] = field(default_factory=dict)
    quarantined: list[Quarantined] = field(default_factory=list)

    def of(self, cluster: str) -> list[Registration]:
        """Look up the rows of one cluster, in order of time, ties in order of the files."""
        return sorted(self.rows.get(cluster, []), key=lambda row: row.ts_us)


def registrations(path: str | None) -> Registrations:
    """Read BROKERS, or raise InputError if the path holds no such table."""
    read = Registrations()
    for file in list_log(path, "brokers") if path is not None else ():
        is_list = "ts" not in file.columns
        names = [name for name in (*CANONICAL["brokers"].names, "id") if name in file.columns]
        with open_parquet(file.path) as parquet:
            rows = parquet.read(columns=names, use_threads=False)
        if is_list:
            rows = rows.rename_columns(["broker" if name == "id" and "broker" not in names else name for name in names])
            always = pa.nulls(len(rows), pa.int64()).fill_null(FIRST_US), pa.nulls(len(rows), pa.string())
            rows = rows.append_column("ts", always[0]).append_column("event", always[1].fill_null("registered"))
        rows = rows.select([name for name in rows.column_names if name in CANONICAL["brokers"].names])
        for row in read_rows("brokers", rows, file):
            if isinstance(row, Quarantined):
                read.quarantined.append(row)
            else:
                read.rows.setdefault(row.cluster, []).append(row.value)
    return read


@dataclass(frozen=True, slots=True)
class Reported:
    """A row of LOADS or BUNDLES as Pulsar's record, and the keys that it gives. Absent keys have their defaults."""

    record: Any
    given: frozenset[str]

    def gives(self, keys: Iterable[str]) -> bool:
        """Check whether the row gives any of some keys."""
        return not self.given.isdisjoint(keys)


#: Keys of throughput, bytes per second.
THROUGHPUT = ("msgThroughputIn", "msgThroughputOut")
#: Keys that LOADS and BUNDLES may leave out, by the figure of `view.load` that they give.
DETAILS: Mapping[str, tuple[str, ...]] = {
    "rates": ("msgRateIn", "msgRateOut"),
    "resources": ("cpu", "memory", "directMemory", "bandwidthIn", "bandwidthOut"),
    "topics": ("topics",),
}


def _registration(row: Mapping[str, Any]) -> Registration:
    text = row.get("lookup_data")
    data = None if text is None else BrokerLookupData.from_json(text)
    return Registration(row["ts"], row["broker"], row["event"], data)


def _ownership_event(row: Mapping[str, Any]) -> OwnershipEvent:
    boundaries = tuple(int(text, 16) for text in row.get("boundaries", ()))
    return OwnershipEvent(row["ts"], row["bundle"], row["event"], row.get("broker"), row.get("by"), boundaries)


def reported_load(text: str) -> Reported:
    """Read Pulsar's `BrokerLoadData`, and note which of its keys are given.

    Raises:
        InputError: if the text is no JSON object or a figure is no finite number.
    """
    return Reported(broker_load_from_json(text), _list_given_keys(text))


def _reported_bundle(row: Mapping[str, Any]) -> Reported:
    stats = bundle_stats_from_json(row["stats"])
    if stats.msg_throughput_in + stats.msg_throughput_out > MAX_WEIGHT:
        raise InputError(f"msgThroughputIn + msgThroughputOut is above {MAX_WEIGHT:g} bytes per second")
    if stats.msg_rate_in + stats.msg_rate_out > MAX_WEIGHT:
        raise InputError(f"msgRateIn + msgRateOut is above {MAX_WEIGHT:g} messages per second")
    return Reported(stats, _list_given_keys(row["stats"]))


#: By table, a function that converts the columns of a row to its record, or raises.
CONVERTERS: Mapping[str, Callable[[Mapping[str, Any]], Any]] = {
    "brokers": _registration,
    "ownership": _ownership_event,
    "loads": lambda row: reported_load(row["load"]),
    "bundles": _reported_bundle,
}


def _list_given_keys(text: str) -> frozenset[str]:
    return frozenset(key for key, value in json.loads(text).items() if value is not None)


def _read_percentage(resource: str) -> Callable[[BrokerLoadData], float]:
    return lambda load: float(getattr(load, resource).percent_usage)


#: Figures that a row of LOADS may give besides usage and load, with keys. If one resource is given, all count as given.
FIGURES: Mapping[str, tuple[Iterable[str], Callable[[BrokerLoadData], float]]] = {
    "max_usage": (("maxResourceUsage",), lambda load: load.max_resource_usage),
    "smoothed_throughput": (("msgThroughputEMA",), lambda load: load.msg_throughput_ema),
    "rate": (DETAILS["rates"], lambda load: load.msg_rate),
    "topics": (DETAILS["topics"], lambda load: float(load.topics)),
    **{name: (DETAILS["resources"], _read_percentage(name)) for name in RESOURCES},
}


def load_figures(reports: Iterable[Reported]) -> dict[str, NDArray[np.float64]]:
    """Convert LOADS to columns of usage, load (bytes per second), and each of FIGURES, NaN where a row lacks it.

    They are max_usage, smoothed_throughput, rate (messages per second), topics and, by name, resource percentages.
    """
    reports = list(reports)
    columns = {
        "usage": [reported.record.weighted_max_ema for reported in reports],
        "load": [reported.record.msg_throughput for reported in reports],
    }
    for name, (keys, figure) in FIGURES.items():
        columns[name] = [figure(reported.record) if reported.gives(keys) else np.nan for reported in reports]
    return {name: np.array(values, dtype=np.float64) for name, values in columns.items()}


def micro_figures(reports: Sequence[Reported]) -> dict[str, NDArray[np.int64]]:
    """Convert BUNDLES to columns of `micro`, bytes per second, and `rate`, messages per second, in millionths."""
    stats = [report.record for report in reports]
    return {
        "micro": _convert_to_micro(each.msg_throughput_in + each.msg_throughput_out for each in stats),
        "rate": _convert_to_micro(each.msg_rate_in + each.msg_rate_out for each in stats),
    }


def _convert_to_micro(figures: Iterable[float]) -> NDArray[np.int64]:
    return np.array([round(figure * MICRO) for figure in figures], dtype=np.int64)


def broker_numbers(rows: Iterable[tuple[int, str, Reported]], roster: Roster) -> Mapping[str, NDArray[Any]]:
    """Convert reports to columns of ts, broker (number), and the columns of `load_figures` that any report gives.

    Args:
        rows: time (µs), broker and report of each. Brokers outside the roster are left out.
    """
    entries = [(ts, number, report) for ts, name, report in rows if (number := roster.number(name)) is not None]
    reports = [report for _, _, report in entries]
    figures, keys = load_figures(reports), frozenset[str]().union(*(report.given for report in reports))
    return {
        "ts": np.array([ts for ts, _, _ in entries], dtype=np.int64),
        "broker": np.array([number for _, number, _ in entries], dtype=np.int64),
        **{name: figures[name] for name in given_figures(keys)},
    }


def given_figures(given: Collection[str]) -> tuple[str, ...]:
    """List the names of the figures of LOADS that reports with some keys give."""
    return ("usage", "load", *(name for name, (keys, _) in FIGURES.items() if not set(keys).isdisjoint(given)))


#: The figures that a replay reads, by the parts of their sums.
_SUMS = {"micro": THROUGHPUT, "rate": DETAILS["rates"]}
#: Keys of `NamespaceBundleStats` with whole numbers, which are read to be checked.
_COUNTS = ("consumerCount", "producerCount", "topics", "cacheSize")
_PARSING = pj.ParseOptions(
    explicit_schema=pa.schema(
        [(key, pa.float64()) for keys in _SUMS.values() for key in keys] + [(key, pa.int64()) for key in _COUNTS]
    ),
    unexpected_field_behavior="ignore",
)


@dataclass(frozen=True)
class PlainBundles:
    """A batch of BUNDLES in columns of shape (n_rows,). They are valid only where `is_plain`."""

    is_plain: NDArray[np.bool_]
    ts: Ints
    #: texts, and the code of each row
    clusters: tuple[list[str | None], Codes]
    bundles: tuple[list[str | None], Codes]
    #: `micro` and `rate`, micro-units per second
    figures: dict[str, Ints]
    #: by key of throughput and rates, which rows give it
    gives: dict[str, NDArray[np.bool_]]


def plain_bundles(rows: pa.RecordBatch, cluster: str | None) -> PlainBundles | None:
    """Convert a batch to columns, None if its JSON cannot be parsed as a whole.

    Args:
        cluster: of all rows, if the file's path names it.
    """
    parsed = _parse_objects(rows.column("stats"))
    if parsed is None:
        return None
    column = rows.column("ts")
    if pa.types.is_timestamp(column.type):
        column = column.cast(pa.timestamp("us", column.type.tz), safe=False)
    ts: Ints = column.cast(pa.int64()).fill_null(FIRST_US - 1).to_numpy(zero_copy_only=False)
    clusters = (
        _code_texts(rows, "cluster") if cluster is None else _check_texts("cluster", [cluster], np.zeros(len(ts), int))
    )
    bundles = _code_texts(rows, "bundle")
    is_plain = (ts >= FIRST_US) & (ts <= LAST_US) & (clusters[1] >= 0) & (bundles[1] >= 0)
    is_plain &= rows.column("stats").is_valid().to_numpy(zero_copy_only=False)
    figures, gives = {}, {}
    for name, keys in _SUMS.items():
        total = np.zeros(len(ts))
        for key in keys:
            values = parsed.column(key)
            gives[key] = values.is_valid().to_numpy()
            if values.null_count < len(ts):
                total += values.fill_null(0.0).to_numpy()
        is_sound = np.isfinite(total) & (total <= MAX_WEIGHT)
        is_plain &= is_sound
        figures[name] = np.rint(np.where(is_sound, total, 0.0) * MICRO).astype(np.int64)
    return PlainBundles(is_plain, ts, clusters, bundles, figures, gives)


def _parse_objects(texts: pa.Array) -> pa.Table | None:
    """Parse JSON objects to columns by key, None if a text is not a plain object."""
    try:
        plain = texts.fill_null("{}").to_pylist()
        if not all(text.startswith("{") and text.endswith("}") for text in plain):
            return None
        joined = "\n".join(plain).encode()
        reading = pj.ReadOptions(use_threads=False, block_size=len(joined) + 1)
        table = pj.read_json(pa.BufferReader(joined), reading, _PARSING)
    except (UnicodeError, pa.ArrowInvalid):
        return None
    # A text that holds two objects makes a row more.
    return table if table.num_rows == len(plain) else None


def _code_texts(rows: pa.RecordBatch, name: str) -> tuple[list[str | None], Codes]:
    """List the distinct texts of a column and the code of each row, -1 if its text is not usable."""
    column = rows.column(name)
    column = column if pa.types.is_dictionary(column.type) else column.dictionary_encode()
    codes: Ints = column.indices.cast(pa.int64()).fill_null(-1).to_numpy(zero_copy_only=False)
    try:
        texts = column.dictionary.to_pylist()
    except UnicodeDecodeError:
        # The reading of single rows names the file in its error.
        return [None], np.full(len(codes), -1)
    return _check_texts(name, texts, codes)


def _check_texts(name: str, texts: list[str | None], codes: Ints) -> tuple[list[str | None], Codes]:
    check = _CHECKS[name]
    sound: list[str | None] = []
    for text in texts:
        try:
            sound.append(check(text))
        except (ValueError, InvalidNameError):
            sound.append(None)
    usable = np.array([text is not None for text in sound] + [False])
    return sound, np.where(usable[codes], codes, -1)


_CHECKS: dict[str, Callable[[Any], Any]] = {column.name: column.check for column in TABLES["bundles"]}
