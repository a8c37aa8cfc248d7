"""Read the current state of a cluster, or its state at an instant of its record, as the same rows of tables."""

from __future__ import annotations

import re
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from queue import Empty
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from lookup.collect.collector import READABLE, Endpoints, asked_name, reading
from lookup.collect.observing import COLLECTED, BrokerRegistry, BrokerReport, CaughtUp, Observer, TopBundles
from lookup.collect.sources import AdminRest, now_us, reason_of
from lookup.errors import Argument, InputError
from lookup.logs.schema import CANONICAL
from lookup.logs.sources import LogFile, list_log, locate, open_parquet, table_span
from lookup.model.bundles import IsolationPolicy, NamespacePolicies
from lookup.model.documents import TableName
from lookup.model.names import cluster_problem, is_system_namespace
from lookup.model.quoting import join_names, quantity
from lookup.model.time import FIRST_US, LAST_US, US_PER_S, time_text
from lookup.settings.files import namespaces_in
from lookup.settings.resolve import policies_of

__all__ = ["WINDOW_US", "Rows", "read_now", "read_record", "rows_between"]

#: Age of reports that count, one hour, µs. A broker whose load hardly changes reports every 15 minutes.
WINDOW_US = 3600 * US_PER_S
#: Tables of which only the window is read.
_REPORTS: tuple[TableName, ...] = ("loads", "bundles")
#: Rows of a file that are held at a time.
_ROWS = 100_000
#: Seconds after which a source that has not been read once is given up.
_PATIENCE_S = 15.0
_QUIET = "a broker whose load hardly changes reports every 15 minutes: wait longer, or plan from a record"
_UNKNOWN = "isolation policies and anti-affinity groups are not known, and no move was held against them"


@dataclass(frozen=True, eq=False)
class Rows:
    """A cluster's rows up to an instant, of load reports those of the last hour."""

    cluster: str
    at_us: int
    #: where the rows are from, for sentences
    source: str
    #: with the canonical columns
    tables: Mapping[TableName, pa.Table]
    namespaces: NamespacePolicies = field(default_factory=NamespacePolicies)
    #: data that could not be read, a sentence each
    missing: tuple[str, ...] = ()
    #: lookups of the day before, by `topic`, `properties` and `weight`, in order of the first two, None if not read
    lookups: pa.Table | None = None

    def file(self, table: TableName) -> LogFile:
        """Describe the source of a table's rows for messages."""
        return LogFile(f"{self.source}, {table.upper()}", (), tuple(self.tables[table].column_names))


# A record.


def read_record(
    folder: str, at_us: int | None = None, cluster: str | None = None, namespaces: str | None = None
) -> Rows:
    """Read the rows of a record up to an instant.

    Args:
        folder: a folder of `lookup collect`, or one with tables of these names, as a path or URI.
        at_us: µs, by default the end of the record.
        cluster: its name, if the tables have several.
        namespaces: TOML with `[[namespaces]]`, instead of the record's `namespaces.toml`, as the text of the file.

    Raises:
        InputError: if there is no record, it is one of another cluster, or ends before the instant or begins after it.
        SettingsError: for mistakes in the entries of namespaces.
    """
    folder = folder.rstrip("/") or "/"
    files: dict[TableName, Sequence[LogFile]] = {}
    for table in COLLECTED:
        try:
            files[table] = list_log(f"{folder}/{table}", table)
        except InputError as error:
            problem = f": {error}; name a folder that `lookup collect` writes"
            raise InputError(Argument("record"), problem) from None
    spans = [span for of_table in files.values() if (span := table_span(of_table)) is not None]
    if not spans:
        raise InputError(Argument("record"), f": {folder} has no rows yet; `lookup collect` writes them once a minute")
    first_us, last_us = min(first for first, _ in spans), max(last for _, last in spans)
    at_us = last_us if at_us is None else at_us
    if not first_us <= at_us <= last_us:
        reach = f"{folder}, which goes from {time_text(first_us)} to {time_text(last_us)}"
        raise InputError(Argument("at"), f": {time_text(at_us)} is outside the record {reach}")
    tables = {table: _read_rows_up_to(of_table, table, at_us) for table, of_table in files.items()}
    names = {name for rows in tables.values() for name in pc.unique(rows.column("cluster")).to_pylist()}
    name = _choose_cluster(names, cluster, folder)
    tables = {table: rows.filter(pc.equal(rows.column("cluster"), name)) for table, rows in tables.items()}
    policies, missing = _read_settings(folder, namespaces)
    return Rows(name, at_us, folder, tables, policies, missing)


def _choose_cluster(names: set[str], cluster: str | None, folder: str) -> str:
    argument = Argument("cluster")
    if cluster is not None and cluster not in names:
        raise InputError(argument, f": {folder} is a record of {join_names(sorted(names))}, not of {cluster!r}")
    if cluster is None and len(names) != 1:
        raise InputError(argument, f" must be given: {folder} has rows of {join_names(sorted(names))}")
    return cluster or next(iter(names))


def _read_rows_up_to(files: Iterable[LogFile], table: TableName, at_us: int) -> pa.Table:
    """Read the rows of a table that count at an instant, in order of time, then of the files."""
    from_us = at_us - WINDOW_US if table in _REPORTS else FIRST_US
    joined = pa.concat_tables([CANONICAL[table].empty_table(), *rows_between(files, table, from_us, at_us)])
    # The sort is stable, so for one instant the later row in the files counts.
    return joined.take(pc.sort_indices(joined.column("ts")))


def rows_between(
    files: Iterable[LogFile], table: TableName, from_us: int, at_us: int, columns: Sequence[str] | None = None
) -> Iterator[pa.Table]:
    """Yield the rows of a table after an instant and up to another, in batches, in the order of the files.

    Args:
        columns: columns to read, by default all. The others are null.
    """
    for file in files:
        first_us, last_us = table_span((file,)) or (FIRST_US, LAST_US)
        if first_us > at_us or last_us <= from_us:
            continue
        names = [name for name in file.columns if columns is None or name in columns]
        with open_parquet(file.path) as parquet:
            # Rows are read in batches, since a large cluster's day has millions, of which only an hour counts.
            for batch in parquet.iter_batches(_ROWS, columns=names, use_threads=False):
                rows = _convert_rows(pa.Table.from_batches([batch]), table, file.cluster)
                ts = rows.column("ts").cast(pa.int64())
                yield rows.filter(pc.and_(pc.less_equal(ts, at_us), pc.greater(ts, from_us)))


def _convert_rows(rows: pa.Table, table: TableName, cluster: str | None) -> pa.Table:
    columns = []
    for entry in CANONICAL[table]:
        if entry.name == "cluster" and cluster is not None:
            columns.append(pa.array([cluster] * len(rows), entry.type))
        elif entry.name in rows.column_names:
            # Nanoseconds are cut off.
            columns.append(rows.column(entry.name).cast(entry.type, safe=False))
        else:
            columns.append(pa.nulls(len(rows), entry.type))
    return pa.Table.from_arrays(columns, schema=CANONICAL[table])


def _read_settings(folder: str, content: str | None) -> tuple[NamespacePolicies, tuple[str, ...]]:
    """Read the settings of namespaces, and add a sentence if the operators' settings are unknown."""
    system, root = locate(folder)
    path, text = "namespaces", content
    if text is None:
        path = f"{folder}/namespaces.toml"
        with suppress(OSError), system.open_input_file(f"{root}/namespaces.toml") as stream:
            text = stream.read().decode(errors="replace")
    if text is None:
        return NamespacePolicies(), (f"{_UNKNOWN}: there is no {path}",)
    file = namespaces_in(text, path)
    policies = policies_of(file.namespaces, file.failure_domains)
    if content is not None or policies.isolation or policies.anti_affinity_group:
        return policies, ()
    return policies, (f"{_UNKNOWN}: {path} has none, which is fine if the cluster has none",)


# A cluster that is there.


def read_now(
    endpoints: Endpoints,
    wait_s: float = 60.0,
    namespaces: str | None = None,
    *,
    progress: Callable[[str], None] = lambda message: None,
) -> Rows:
    """Read the current state of a cluster, until all owners and all registered brokers' loads are known.

    Args:
        wait_s: seconds after which it continues with the data read so far.
        namespaces: as for `read_record`. By default isolation policies and groups are read from the admin REST.

    Raises:
        InputError: in one sentence with the reason, if the cluster's name, the brokers or the owners are not known.
    """
    if endpoints.service_url is None or (endpoints.zookeeper or endpoints.admin) is None:
        # The order matters, since the topics give two of the three.
        flag = "service_url" if endpoints.service_url is None else "zookeeper"
        lacks = "owners and loads are not known" if endpoints.service_url is None else "brokers are not known"
        raise InputError(Argument(flag), f" must be given: without it {lacks}")
    rest = None if endpoints.admin is None else AdminRest(endpoints.admin, endpoints.credentials)
    name = _confirm_name(endpoints, rest)
    observer, collection = Observer(name), _Seen()
    began = time.monotonic()
    progress(f"reading cluster {name}")
    with reading(endpoints, rest, name) as records:
        while not collection.is_complete(observer) and time.monotonic() < began + wait_s:
            with suppress(Empty):
                collection.take(observer, records.get(timeout=0.1))
            vain = collection.in_vain(observer)
            if vain is not None and time.monotonic() > began + min(wait_s, _PATIENCE_S):
                break
    collection.require(observer, wait_s)
    tables = {table: _table_of(observer, table) for table in COLLECTED}
    last = (pc.max(rows.column("ts")).cast(pa.int64()).as_py() for rows in tables.values() if len(rows))
    # Brokers' clocks may be ahead of this one.
    at_us = max(now_us(), *last)
    missing = [*collection.missing(observer, wait_s)]
    if namespaces is not None:
        policies, unknown = _read_settings("", namespaces)
    else:
        policies, unknown = _fetch_settings(rest, name, _namespaces_of(observer))
    return Rows(name, at_us, f"cluster {name}", tables, policies, (*missing, *unknown))


def _confirm_name(endpoints: Endpoints, rest: AdminRest | None) -> str:
    """Read the cluster's name, and call the REST even if it is given, to check that it answers."""
    name = endpoints.cluster or asked_name(rest)
    problem = cluster_problem(name)
    if problem is not None:
        raise InputError(Argument("cluster"), f": {problem}")
    if rest is not None:
        try:
            rest.brokers(name)
        except (OSError, ValueError) as error:
            sentence = f" cannot be asked for the brokers of cluster {name}: {reason_of(error)}"
            raise InputError(Argument("admin"), sentence) from None
    return name


@dataclass
class _Seen:
    has_registry: bool = False
    has_owners: bool = False
    #: brokers that have reported
    loads: set[str | None] = field(default_factory=set)
    bundles: set[str | None] = field(default_factory=set)

    def take(self, observer: Observer, record: Any) -> None:
        observer.take(record)
        match record:
            case BrokerRegistry():
                self.has_registry = True
            case CaughtUp():
                self.has_owners = True
            case BrokerReport(broker, text) if text:
                self.loads.add(broker)
            case TopBundles(text, _, broker) if text:
                self.bundles.add(broker)

    def is_complete(self, observer: Observer) -> bool:
        return self.has_registry and self.has_owners and not list(self._iter_late_brokers(observer))

    def _iter_late_brokers(self, observer: Observer) -> Iterator[str]:
        for broker in sorted(observer.registered):
            if broker not in self.loads or broker not in self.bundles:
                yield broker

    def in_vain(self, observer: Observer) -> str | None:
        """Explain why brokers or owners cannot be read, None while they may still come."""
        needed = [source for source, has in (("zookeeper", self.has_registry), ("state", self.has_owners)) if not has]
        # Without ZooKeeper brokers are those of the REST.
        sources = [*needed, *(("admin",) if not self.has_registry else ())]
        reasons = [
            f"{READABLE[source]}: {observer.troubles[source]}" for source in sources if source in observer.troubles
        ]
        return reasons[0] if reasons else None

    def require(self, observer: Observer, wait_s: float) -> None:
        """Refuse to go on without brokers, owners and loads."""
        why = self.in_vain(observer) or "it did not come in time; wait longer"
        if not self.has_registry:
            raise InputError(f"cluster {observer.cluster}: no broker is known: {why}")
        if not self.has_owners:
            raise InputError(f"cluster {observer.cluster}: no owner is known: {why}")
        if not self.loads:
            trouble = observer.troubles.get("loads")
            why = f"none was reported within {wait_s:g} s; {_QUIET}" if trouble is None else trouble
            raise InputError(f"cluster {observer.cluster}: no load of a broker is known: {why}")

    def missing(self, observer: Observer, wait_s: float) -> Iterator[str]:
        late = list(self._iter_late_brokers(observer))
        if late:
            yield f"{join_names(late)} did not report load and bundles within {wait_s:g} s; {_QUIET}"
        for source, reason in observer.troubles.items():
            yield f"{READABLE[source]} cannot be read: {reason}"
        for source, count in observer.refused.items():
            yield f"left out: {quantity(count, 'message')} of {source}, for instance: {observer.reasons[source]}"


def _table_of(observer: Observer, table: TableName) -> pa.Table:
    schema = CANONICAL[table]
    columns = zip(*observer.pending[table], strict=True) if observer.pending[table] else ((),) * len(schema)
    arrays = [pa.array(values, column.type) for values, column in zip(columns, schema, strict=True)]
    rows = pa.Table.from_arrays(arrays, schema=schema)
    return rows.take(pc.sort_indices(rows.column("ts")))


def _namespaces_of(observer: Observer) -> list[str]:
    bundle = [column.name for column in CANONICAL["ownership"]].index("bundle")
    names = {row[bundle].rpartition("/")[0] for row in observer.pending["ownership"]}
    return sorted(name for name in names if not is_system_namespace(name))


def _fetch_settings(
    rest: AdminRest | None, cluster: str, namespaces: Sequence[str]
) -> tuple[NamespacePolicies, tuple[str, ...]]:
    if rest is None:
        return NamespacePolicies(), (f"{_UNKNOWN}: the admin REST has them, or a file of namespaces",)
    missing, isolation, groups = [], dict[str, tuple[IsolationPolicy, ...]](), dict[str, str]()
    try:
        isolation = _isolation_of(rest.isolation(cluster), namespaces)
    except (OSError, ValueError, TypeError, AttributeError, re.error) as error:
        missing.append(f"isolation policies cannot be read, and no move was held against them: {reason_of(error)}")
    try:
        pairs = ((name, rest.anti_affinity_group(name)) for name in namespaces)
        groups = {name: group for name, group in pairs if group is not None}
    except (OSError, ValueError) as error:
        missing.append(f"anti-affinity groups cannot be read, and no move was held against them: {reason_of(error)}")
    return NamespacePolicies(isolation=isolation, anti_affinity_group=groups), tuple(missing)


def _isolation_of(policies: Mapping[str, Any], namespaces: Sequence[str]) -> dict[str, tuple[IsolationPolicy, ...]]:
    """Convert Pulsar's isolation policies to policies by namespace.

    Patterns of namespaces count as namespaces as well, so a policy also applies to namespaces without bundles now.
    """
    rules: dict[str, tuple[IsolationPolicy, ...]] = {}
    for policy in policies.values():
        limits = policy.get("auto_failover_policy", {}).get("parameters", {})
        primary, secondary = (tuple(policy.get(key) or ()) for key in ("primary", "secondary"))
        for pattern in (*primary, *secondary):
            re.compile(pattern)
        rule = IsolationPolicy(primary, secondary, int(limits.get("min_limit", 1)))
        for pattern in policy.get("namespaces") or ():
            for name in {pattern, *(name for name in namespaces if re.fullmatch(pattern, name))}:
                rules[name] = (*rules.get(name, ()), rule)
    return rules
