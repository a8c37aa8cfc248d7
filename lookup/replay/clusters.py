"""Plan each cluster of a run from settings, tables and the tasks' vocabularies.

A plan needs three things of a log of owners, the owners at the first lookup, an admin's unloads, and lost owners. A
task extracts them and reads the log day by day, so its length takes no memory, there or on the driver.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from heapq import merge

import numpy as np
from numpy.typing import NDArray

from lookup.engine.ledger import MICRO
from lookup.errors import InputError
from lookup.logs.jobs import Workers, run_tasks
from lookup.model import Roster
from lookup.model.quoting import join_names, quantity
from lookup.model.time import FIRST_US, mistaken_unit, time_text
from lookup.replay.atoms import AtomRule, Atoms
from lookup.replay.coding import Share
from lookup.replay.days import CodedPart, Codes, day_rows
from lookup.replay.plan import BrokerReports, BundleReports, ClusterPlan, RunPlan
from lookup.replay.reports import CAUSES, EVENTS, Tables, parts_by_day
from lookup.replay.shares import ClusterWords, days_with_codes, merge_words, short_codes
from lookup.replay.tables import DETAILS, given_figures
from lookup.replay.timeline import (
    ClusterEvents,
    OwnershipEvent,
    Registration,
    Timeline,
    build_timeline,
    children_of,
    times_registered,
)
from lookup.replay.work import WorkDir
from lookup.settings.resolve import broker_intervals

__all__ = [
    "FirstOwners", "InducedMarks", "OwnerLog", "broker_names", "induced_marks", "marks_of", "owners_of",
    "plan_clusters", "require_scored",
]  # fmt: skip

Ints = NDArray[np.int64]
#: Quiet times have ticks too, so a replay would walk for years to one timestamp that is wrong by millennia.
_MOST_TICKS = 5_000_000


@dataclass(frozen=True)
class _OwnersTask:
    log: OwnerLog
    atoms: Atoms
    registrations: Sequence[Registration]
    first_us: int
    end_us: int
    #: name of the work file it writes
    marks: str


def plan_clusters(
    workers: Workers, shares: Mapping[str, Sequence[Share]], *, tables: Tables, run: RunPlan, work: WorkDir
) -> list[ClusterPlan]:
    """Build the plan of each cluster, which has everything but its rows, in order of their names.

    Args:
        shares: of the log's demand, by cluster.

    Raises:
        InputError: if a cluster has no broker in tables or settings, names differ from the log, or ticks are too many.
    """
    cuts = tables.cuts()
    words = [
        merge_words(name, AtomRule(run.namespaces, cuts.get(name, {}), run.bundle_counts), of_cluster)
        for name, of_cluster in sorted(shares.items())
    ]
    for of_cluster in words:
        _require_plausible(of_cluster, tables, run)
    _require_same_names(shares, tables)
    tasks = {
        place: _OwnersTask(
            log,
            of_cluster.atoms,
            tables.registrations(of_cluster.cluster),
            of_cluster.first_us,
            (of_cluster.last_us // run.tick_us + 1) * run.tick_us,
            f"marks/{place}.arrow",
        )
        for place, of_cluster in enumerate(words)
        if (log := _build_owner_log(tables, of_cluster.cluster)) is not None
    }

    def take_owners(task: _OwnersTask, work: WorkDir) -> FirstOwners:
        marks = induced_marks(task.atoms, task.log.events(work), task.registrations)
        work.write(task.marks, {"ts": marks.ts, "first": marks.first, "stop": marks.stop})
        return owners_of(task.log.events(work), first_us=task.first_us, end_us=task.end_us)

    rows = sum(part.rows for share in tables.shares if share.table == "ownership" for part in share.parts)
    answers = run_tasks(workers, list(tasks.values()), work, take_owners, rows=rows)
    owners = dict(zip(tasks, answers, strict=True))
    return [
        _plan_cluster(place, of_cluster, shares[of_cluster.cluster], tables, run, owners.get(place))
        for place, of_cluster in enumerate(words)
    ]


def marks_of(cluster: ClusterPlan, work: WorkDir) -> InducedMarks:
    """Read which bundles of a cluster lost their owner in the log."""
    if cluster.marks is None:
        return InducedMarks(*np.empty((3, 0), dtype=np.int64))
    return InducedMarks(**work.read(cluster.marks)[0])


def _build_owner_log(tables: Tables, cluster: str) -> OwnerLog | None:
    shares = tables.of("ownership", cluster)
    if not shares:
        return None
    texts: dict[str, dict[str, int]] = {"bundle": {}, "broker": {}}

    def codes(column: str, of_share: Sequence[str | None]) -> Codes:
        """Code texts in order of their first occurrence, -1 for None."""
        code_of = texts[column]
        # Code -1, no broker, is an index as well. It selects the last entry.
        return short_codes([*(-1 if text is None else code_of.setdefault(text, len(code_of)) for text in of_share), -1])

    days = parts_by_day(shares, codes)
    return OwnerLog(days, tuple(texts["bundle"]), tuple(texts["broker"]), tables.splits(cluster))


def _plan_broker_reports(tables: Tables, cluster: str, roster: Roster) -> BrokerReports:
    shares = tables.of("loads", cluster)

    def numbers(column: str, names: Sequence[str | None]) -> Codes:  # noqa: ARG001  of all functions of its kind
        """Look up roster numbers, -1 for a broker that was never registered."""
        codes = (None if name is None else roster.number(name) for name in names)
        return short_codes(-1 if number is None else number for number in codes)

    # Reports of unknown brokers do not show which figures the cluster's brokers report.
    key_sets = [keys for share in shares for name, keys in share.given_by.items() if numbers("broker", [name])[0] >= 0]
    fields = frozenset[str]().union(*key_sets)
    return BrokerReports(parts_by_day(shares, numbers), given_figures(fields))


def _plan_bundle_reports(tables: Tables, cluster: str, atoms: Atoms) -> BundleReports:
    shares = tables.of("bundles", cluster)
    spans: dict[str, tuple[int, int]] = {}
    unknown = []
    for name in sorted({name for share in shares for name in share.names["bundle"] if name is not None}):
        span = atoms.slice_of(name)
        if span is not None:
            spans[name] = span.start, span.stop
        elif name.rpartition("/")[0] in atoms.base:
            unknown.append(name)
    code_of = {name: code for code, name in enumerate(spans)}

    def codes(column: str, names: Sequence[str | None]) -> Codes:  # noqa: ARG001  of all functions of its kind
        """Code bundles, -1 for a bundle that does not consist of whole atoms."""
        return short_codes(-1 if name is None else code_of.get(name, -1) for name in names)

    keys = frozenset[str]().union(*(share.given for share in shares))
    return BundleReports(
        parts_by_day(shares, codes),
        np.array(list(spans.values()), dtype=np.int64).reshape(-1, 2),
        has_rates=not keys.isdisjoint(DETAILS["rates"]),
        unknown=unknown,
    )


def _require_plausible(words: ClusterWords, tables: Tables, run: RunPlan) -> None:
    """Refuse a cluster without brokers, or with more ticks than a replay can walk."""
    if not tables.registrations(words.cluster):
        raise InputError(f"cluster {words.cluster!r} of the log has no broker: {_explain_no_broker(tables)}")
    # The footers of most files show this before any row is read.
    mistake = mistaken_unit(words.first_us, words.last_us)
    if mistake is not None:
        raise InputError(f"cluster {words.cluster!r} of the log: {mistake}")
    ticks = (words.last_us - words.first_us) // run.tick_us
    if ticks > _MOST_TICKS:
        first, last = (
            str(np.datetime64(ts_us, "us").astype("datetime64[D]")) for ts_us in (words.first_us, words.last_us)
        )
        raise InputError(
            f"cluster {words.cluster!r} of the log has lookups from {first} to {last}, "
            f"{ticks:,} ticks of {run.tick_us // MICRO} s: more than {_MOST_TICKS:,}; is a timestamp wrong?"
        )


def _require_same_names(clusters: Collection[str], tables: Tables) -> None:
    """Refuse a table with another name for a cluster of the log, since its rows would be ignored silently.

    A table may lack a cluster, and may have more than the log, but not both.
    """
    for table in dict.fromkeys(share.table for share in tables.shares):
        named = {share.cluster for share in tables.shares if share.table == table}
        missing, other = sorted(set(clusters) - named), sorted(named - set(clusters))
        if missing and other:
            raise InputError(
                f"cluster {missing[0]!r} of the log has no row in the table {table.upper()}, which has rows of "
                f"{join_names(other)}; give both the same names"
            )


def _plan_cluster(
    place: int, words: ClusterWords, shares: Sequence[Share], tables: Tables, run: RunPlan, owners: FirstOwners | None
) -> ClusterPlan:
    cluster, inputs = words.cluster, tables.settings.inputs
    events = ClusterEvents(
        registrations=tables.registrations(cluster),
        splits=tables.splits(cluster),
        unloads=() if owners is None else owners.unloads,
        owners={} if owners is None else owners.first,
        ignored_unloads=0 if owners is None else owners.ignored_unloads,
        brokers={interval.broker.id: interval.broker for interval in broker_intervals(tables.settings, cluster)},
    )
    timeline = build_timeline(events, first_us=words.first_us, last_us=words.last_us, tick_us=run.tick_us)
    brokers = broker_names(timeline)
    return ClusterPlan(
        place=place,
        words=words,
        timeline=timeline,
        days=days_with_codes(words, shares, brokers),
        assumed_capacity=_assume_capacity(timeline, words.counts["micro"]),
        registered=times_registered(events.registrations),
        logged=sum(words.by_broker.get(name, 0) for name in brokers),
        loads=_plan_broker_reports(tables, cluster, timeline.roster) if run.is_reported else None,
        bundle_loads=None if inputs.bundles is None else _plan_bundle_reports(tables, cluster, words.atoms),
        marks=None if owners is None else f"marks/{place}.arrow",
    )


def require_scored(clusters: Sequence[ClusterPlan], run: RunPlan) -> None:
    """Refuse a warm-up, or a first instant to score, that leaves no lookup of any cluster to score."""
    last = []
    for cluster in clusters:
        bounds = cluster.timeline.bounds
        tick = int(np.searchsorted(bounds, cluster.words.last_us, side="right")) - 1
        if bounds[tick] >= run.first_scored(int(bounds[0])):
            return
        last.append(int(bounds[tick] - bounds[0]))
    if run.scored_from_us > FIRST_US:
        raise InputError(
            f"evaluation.scored_from: no lookup of the log is scored from {time_text(run.scored_from_us)} on; the last "
            f"one comes at {time_text(max(cluster.words.last_us for cluster in clusters))}"
        )
    raise InputError(
        f"warmup_s = {run.warmup_us // MICRO} leaves nothing to score: the last lookup of the log comes in the tick "
        f"that begins {max(last) // MICRO} s after the first one; a shorter warm-up or a longer log would do"
    )


def broker_names(timeline: Timeline) -> dict[str, int]:
    """Map every name that a log may have for a broker, its id and all its addresses, to its roster number."""
    names = {broker.id: number for number, broker in enumerate(timeline.roster)}
    for roster, _ in timeline.epochs:
        for number, broker in enumerate(roster):
            data = broker.lookup_data
            web = data.web_service_url, data.web_service_url_tls
            for url in (data.pulsar_service_url, data.pulsar_service_url_tls, *web):
                # The first broker keeps an address that a later one takes over.
                if url is not None:
                    names.setdefault(url, number)
    return names


def _explain_no_broker(tables: Tables) -> str:
    if tables.settings.inputs.brokers is None:
        return "no [[brokers]] entry is for it"
    unusable = tables.brokers.quarantined
    if not unusable:
        return "the BROKERS table has no row of it"
    # The quarantine table goes with the output of a run that fails, so the sentence has the first row.
    first = unusable[0]
    count = quantity(len(unusable), "row that cannot be used", "rows that cannot be used")
    where = f"{first.source}, row {first.line}"
    return f"the BROKERS table has no usable row of it and {count}, first {where}: {first.reason}"


def _assume_capacity(timeline: Timeline, micro: int) -> float | None:
    """Compute the capacity that makes mean usage over the run 0.5, None if brokers have capacities of their own."""
    if any(broker.capacity is not None for roster, _ in timeline.epochs for broker in roster):
        return None
    broker_us, registered = 0, np.zeros(len(timeline.roster), dtype=bool)
    for tick in range(timeline.n_ticks):
        events = timeline.events.get(tick)
        if events is not None and events.registry is not None:
            registered = events.registry[1]
        broker_us += int(registered.sum()) * int(timeline.bounds[tick + 1] - timeline.bounds[tick])
    return 2 * micro / broker_us if micro and broker_us else 1.0


@dataclass(frozen=True)
class OwnerLog:
    """The OWNERSHIP rows of one cluster in parts by day, the texts of their codes, and the splits in full."""

    days: Mapping[int, Sequence[CodedPart]]
    bundles: Sequence[str]
    brokers: Sequence[str]
    #: in order of time
    splits: Sequence[OwnershipEvent]

    def events(self, work: WorkDir) -> Iterator[OwnershipEvent]:
        """Yield all events in order of time, ties in order of the files. Only one day's rows are held at a time."""
        splits = iter(self.splits)
        for _, parts in sorted(self.days.items()):
            rows = day_rows(work, parts)
            everything = slice(0, len(rows))
            columns = [rows.column(name, everything).tolist() for name in ("bundle", "event", "broker", "by")]
            for ts, bundle, event, broker, by in zip(rows.ts.tolist(), *columns, strict=True):
                if EVENTS[event] == "split":
                    yield next(splits)
                else:
                    owner = None if broker < 0 else self.brokers[broker]
                    yield OwnershipEvent(ts, self.bundles[bundle], EVENTS[event], owner, None if by < 0 else CAUSES[by])


@dataclass(frozen=True)
class FirstOwners:
    """The facts that a timeline takes from a log of owners."""

    #: by bundle, as of the first lookup
    first: Mapping[str, str]
    #: unloads by an admin between the first lookup and the end of the last one's tick
    unloads: tuple[OwnershipEvent, ...]
    #: unloads by a policy, which a replay does not repeat
    ignored_unloads: int


def owners_of(events: Iterable[OwnershipEvent], *, first_us: int, end_us: int) -> FirstOwners:
    """Collect the owners at the first lookup and the later unloads from events in order of time."""
    owners: dict[str, str] = {}
    unloads, ignored = [], 0
    for event in events:
        is_unload = event.event == "unloaded"
        ignored += is_unload and event.by != "admin"
        if is_unload and event.by == "admin" and first_us < event.ts_us < end_us:
            unloads.append(event)
        if event.ts_us <= first_us:
            _apply(event, owners)
    return FirstOwners(owners, tuple(unloads), ignored)


def _apply(event: OwnershipEvent, owners: dict[str, str]) -> None:
    """Change the owners by bundle to those after an event."""
    owner = owners.pop(event.bundle, None)
    if event.event == "owned" and event.broker is not None:
        owners[event.bundle] = event.broker
    elif event.event == "split" and owner is not None:
        owners.update(dict.fromkeys(children_of(event), owner))


@dataclass(frozen=True, slots=True)
class InducedMarks:
    """Times at which bundles lost their owner in the log, and their atoms, in columns of shape (n_marks,)."""

    ts: Ints
    first: Ints
    stop: Ints


def induced_marks(
    atoms: Atoms, ownership: Iterable[OwnershipEvent], registrations: Iterable[Registration]
) -> InducedMarks:
    """List when each bundle lost its owner in the log, by an unload or with its broker, in order of time."""
    losses = sorted((entry for entry in registrations if entry.event == "unregistered"), key=lambda entry: entry.ts_us)
    owners: dict[str, str] = {}
    marks: list[tuple[int, int, int]] = []

    def mark(ts_us: int, bundle: str) -> None:
        span = atoms.slice_of(bundle)
        if span is not None:
            marks.append((ts_us, span.start, span.stop))

    # At one instant the log of owners comes before the registry.
    history: Iterator[OwnershipEvent | Registration] = merge(ownership, losses, key=lambda event: event.ts_us)
    for event in history:
        if isinstance(event, Registration):
            orphans = sorted(bundle for bundle, owner in owners.items() if owner == event.broker)
            for bundle in orphans:
                mark(event.ts_us, bundle)
                del owners[bundle]
        else:
            _apply(event, owners)
            if event.event == "unloaded":
                mark(event.ts_us, event.bundle)
    return InducedMarks(*np.array(marks, dtype=np.int64).reshape(-1, 3).T)
