"""Inspect a log before it is replayed, for its demand, its labels, its load, and gaps in the settings.

The log is coded as a replay codes it, so names, bundles, labels of clients and refused rows are the same.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from itertools import chain
from typing import Any

import numpy as np
from numpy.typing import NDArray

from lookup.engine.ledger import MICRO
from lookup.engine.policy import Policy
from lookup.errors import InputError
from lookup.logs.jobs import InProcess, usable_cores
from lookup.logs.sources import list_log, share_out
from lookup.model import Broker
from lookup.model.bundles import NamespacePolicies
from lookup.model.quoting import quantity
from lookup.replay.clusters import plan_clusters
from lookup.replay.coding import EXTRA_FIELDS, CodingPlan, Share
from lookup.replay.days import CodedPart, SliceRows, rows_of, slices_of_day
from lookup.replay.findings import find
from lookup.replay.outcome import Finding
from lookup.replay.plan import ClusterPlan
from lookup.replay.proportions import mean_load_of, published_labels, suggested_session
from lookup.replay.reports import read_tables
from lookup.replay.run import run_plan
from lookup.replay.shares import ClusterWords, Coded, code_files, days_with_codes, group_demand, merge_words
from lookup.replay.work import WorkDir
from lookup.settings.evaluation import SLICE_ROWS, EvaluationFile, EvaluationSection
from lookup.settings.resolve import client_rules

__all__ = ["ClusterInspection", "Inspection", "SessionAdvice", "inspect_log"]

Ints = NDArray[np.int64]
#: Rows for which another process is worth its start.
_ROWS_PER_PROCESS = 2_000_000
#: Entries of a breakdown that are kept. The others are added up.
_MOST = 20


@dataclass(frozen=True)
class SessionAdvice:
    """The time that a lookup should count as load, and the load of that time."""

    #: value of the settings or the default, s
    session_s: int
    #: lookups that a broker serves on average in that time
    expected: float
    #: suggestion, s, and the lookups of a broker in that time
    suggested_s: int
    suggested_expected: float


@dataclass(frozen=True)
class ClusterInspection:
    """The facts about one cluster of a log. All counts are of lookups that need an answer."""

    cluster: str
    lookups: int
    first_us: int
    last_us: int
    #: mean, median, 95th percentile and maximum of the lookups per minute between first and last
    per_minute: Mapping[str, float]
    #: brokers that are registered or, without settings, named in the log
    brokers: int
    topics: int
    #: bundles that have lookups, and all there are
    busy_bundles: int
    bundles: int
    #: lookups by tenant, namespace and bundle, in descending order, the rest under ""
    tenants: Mapping[str, int]
    namespaces: Mapping[str, int]
    top_bundles: Mapping[str, int]
    #: lookups by client, in descending order, empty if the log does not name clients
    clients: Mapping[str, int]
    #: lookups by client property and value, those without the property under ""
    labels: Mapping[str, Mapping[str, int]]
    #: those of these lookups with values that no broker has, by property, empty without settings
    unmatched: Mapping[str, Mapping[str, int]]
    #: None if no broker is known
    session: SessionAdvice | None
    #: mean load of a broker, weight/s, None if no broker is known
    broker_load: float | None
    #: additional rows that are not demand, which are redirects, and lookups of topics that brokers use themselves
    redirects: int
    internal: int
    #: answered lookups of namespaces with isolation policies, and those by a broker that these do not name
    isolated: int = 0
    outside: int = 0
    #: bundles with such lookups
    outside_bundles: int = 0


@dataclass(frozen=True)
class Inspection:
    """The contents of a log, and the gaps in the settings for it."""

    rows: int
    #: rows that a replay would refuse, by reason
    quarantined: Mapping[str, int]
    clusters: tuple[ClusterInspection, ...]
    #: empty without settings
    findings: tuple[Finding, ...]

    def document(self) -> dict[str, Any]:
        """Convert the inspection to JSON."""
        return asdict(self)


@dataclass(frozen=True)
class _CountedDemand:
    words: ClusterWords
    #: starts of the ticks that have lookups, µs, ascending, and the lookups of each, shape (n_ticks,)
    ticks: tuple[Ints, Ints]
    #: lookups of each atom, shape (n_atoms,)
    by_atom: Ints
    #: lookups by client, empty if the log does not name clients or they are not needed
    by_client: Mapping[str, int]
    #: answered lookups by bundle with isolation policies, and their lookups answered by brokers that these do not name
    isolated: Sequence[tuple[int, int]]

    @property
    def lookups(self) -> int:
        return int(self.by_atom.sum())


def inspect_log(
    path: str,
    folder: str,
    *,
    settings: EvaluationFile | None = None,
    policies: Sequence[Policy] = (),
    progress: Callable[[str], None] = lambda message: None,
) -> Inspection:
    """Inspect a log.

    Args:
        path: file or folder of LOOKUPS.
        folder: empty local folder for temporary files, which the caller removes.
        settings: an evaluation, whose brokers, rules and policies are compared with the log.
        policies: those of the settings.
        progress: called with a short sentence at each step.

    Raises:
        InputError: if a table is unusable, the log has no lookup for a broker, or the settings no broker for a cluster.
    """
    work, workers = WorkDir(folder), InProcess()
    if settings is None:
        section = EvaluationSection(incumbent="none")
        coding = CodingPlan(frozenset({"client"}), (), NamespacePolicies(), {}, section.tick_s * MICRO)
        coded, shares = _code_log(path, coding, work, progress)
        clusters = [_inspect_cluster(demand, section, None) for demand in _count_demands(shares, coding, work)]
        return Inspection(*_count_refused(coded), tuple(clusters), ())
    run = run_plan(settings)
    tables = read_tables(workers, settings, tick_us=run.tick_us, work=work, quarantine=f"{folder}/quarantine")
    reads = frozenset[str]().union(*(policy.reads for policy in policies))
    coding = CodingPlan(
        extras=reads & frozenset(EXTRA_FIELDS) | {"client"},
        client_rules=client_rules(settings),
        policies=run.namespaces,
        cuts=tables.cuts(),
        tick_us=run.tick_us,
        bundle_counts=run.bundle_counts,
    )
    coded, shares = _code_log(path, coding, work, progress)
    demands = _count_demands(shares, coding, work)
    plans = plan_clusters(workers, shares, tables=tables, run=run, work=work)
    findings = find(settings, policies, plans, run)
    clusters = [
        _inspect_cluster(demand, settings.evaluation, plan) for demand, plan in zip(demands, plans, strict=True)
    ]
    return Inspection(*_count_refused(coded), tuple(clusters), tuple(findings))


def _code_log(
    path: str, plan: CodingPlan, work: WorkDir, progress: Callable[[str], None]
) -> tuple[list[Coded], dict[str, list[Share]]]:
    """Code a log as a replay does, and return all coded shares and those of each cluster with demand."""
    files = list_log(path)
    rows = sum(file.rows for file in files)
    workers = InProcess(min(usable_cores(), -(-rows // _ROWS_PER_PROCESS)))
    progress(f"reading {quantity(rows, 'row')} of {quantity(len(files), 'file')}")
    quarantine = f"{work.root}/quarantine"
    coded = code_files(workers, share_out(files, workers.cores), plan, work=work, quarantine=quarantine)
    shares = group_demand(coded)
    if not shares:
        _, reasons = _count_refused(coded)
        why = f"; most often: {next(iter(reasons))}" if reasons else ""
        raise InputError(f"{path}: none of the {rows:,} rows is a lookup that asks for a broker{why}")
    return coded, shares


def _count_refused(coded: Sequence[Coded]) -> tuple[int, dict[str, int]]:
    reasons: Counter[str] = Counter()
    for task in coded:
        reasons.update(task.quarantined)
    return sum(task.rows for task in coded), dict(reasons.most_common())


def _count_demands(shares: Mapping[str, Sequence[Share]], plan: CodingPlan, work: WorkDir) -> list[_CountedDemand]:
    """Count the lookups of each cluster, in order of their names."""
    return [
        _count_demand(merge_words(name, plan.rule(name), of_cluster), of_cluster, plan, work)
        for name, of_cluster in sorted(shares.items())
    ]


def _count_demand(words: ClusterWords, shares: Sequence[Share], plan: CodingPlan, work: WorkDir) -> _CountedDemand:
    brokers = [*words.by_broker] if plan.policies.isolation else []
    days = days_with_codes(words, shares, {name: number for number, name in enumerate(brokers)})
    ticks: list[tuple[Ints, Ints]] = []
    by_atom = np.zeros(words.atoms.count, dtype=np.int64)
    by_broker = np.zeros((len(by_atom), len(brokers)), dtype=np.int64)
    clients = words.extras.get("client", ())
    by_client = np.zeros(len(clients), dtype=np.int64)
    for rows in chain.from_iterable(_iter_slices(parts, plan, work) for _, parts in sorted(days.items())):
        everything = slice(0, len(rows))
        atoms = rows.column("atom", everything).astype(np.int64)
        ticks.append(np.unique(rows.ts // plan.tick_us * plan.tick_us, return_counts=True))
        by_atom += np.bincount(atoms, minlength=len(by_atom))
        if brokers:
            answers = rows.column("broker", everything).astype(np.int64)
            np.add.at(by_broker, (atoms[answers >= 0], answers[answers >= 0]), 1)
        if clients:
            by_client += np.bincount(rows.column("client", everything).astype(np.int64), minlength=len(clients))
    return _CountedDemand(
        words,
        (np.concatenate([starts for starts, _ in ticks]), np.concatenate([counts for _, counts in ticks])),
        by_atom,
        {name: int(count) for name, count in zip(clients, by_client.tolist(), strict=True) if name is not None},
        [*_find_isolated(words, by_broker, plan.policies)] if brokers else [],
    )


def _find_isolated(words: ClusterWords, by_broker: Ints, rules: NamespacePolicies) -> Iterator[tuple[int, int]]:
    hosts = [Broker(name).host for name in words.by_broker]
    for bundle, span in words.atoms.bundles:
        permits = [rules.permits(bundle.rpartition("/")[0], host) for host in hosts]
        if None not in permits:
            counts = by_broker[span].sum(axis=0)
            yield int(counts.sum()), int(counts[~np.array(permits, dtype=np.bool_)].sum())


def _iter_slices(parts: Sequence[CodedPart], plan: CodingPlan, work: WorkDir) -> Iterator[SliceRows]:
    """Yield the rows of one day in slices of the default size."""
    first, last = min(part.written.first for part in parts)[0], max(part.written.last for part in parts)[0]
    grid = np.arange(first // plan.tick_us * plan.tick_us, last + 1, plan.tick_us)
    for piece in slices_of_day(work, [parts], grid, most_rows=SLICE_ROWS):
        yield rows_of(work, piece.tables[0])


def _inspect_cluster(demand: _CountedDemand, section: EvaluationSection, plan: ClusterPlan | None) -> ClusterInspection:
    words, atoms = demand.words, demand.words.atoms
    # A file of several clusters names the brokers of all of them.
    named = sum(count > 0 for count in words.by_broker.values())
    brokers = named if plan is None else plan.timeline.most_registered
    published = {} if plan is None else published_labels([plan])
    tenants: Counter[str] = Counter()
    namespaces: Counter[str] = Counter()
    bundles: Counter[str] = Counter()
    for bundle, span in atoms.bundles:
        namespace = bundle.rpartition("/")[0]
        lookups = int(demand.by_atom[span].sum())
        bundles[bundle] += lookups
        namespaces[namespace] += lookups
        tenants[namespace.partition("/")[0]] += lookups
    labels: dict[str, Counter[str]] = {key: Counter() for sent in words.properties for key in sent}
    for sent, count in zip(words.properties, words.by_properties.tolist(), strict=True):
        for key, values in labels.items():
            values[sent.get(key, "")] += count
    unmatched = {
        key: Counter({value: count for value, count in values.items() if value and value not in published[key]})
        for key, values in labels.items()
        if key in published
    }
    return ClusterInspection(
        cluster=words.cluster,
        lookups=demand.lookups,
        first_us=words.first_us,
        last_us=words.last_us,
        per_minute=_compute_rates(demand, section.tick_s),
        brokers=brokers,
        topics=int(words.topics.sum()),
        busy_bundles=sum(count > 0 for count in bundles.values()),
        bundles=len(bundles),
        tenants=_select_greatest(tenants),
        namespaces=_select_greatest(namespaces),
        top_bundles=_select_greatest(bundles),
        clients=_select_greatest(Counter(demand.by_client)),
        labels={key: _select_greatest(labels[key]) for key in sorted(labels)},
        unmatched={key: _select_greatest(values) for key, values in sorted(unmatched.items()) if values},
        session=_suggest_session(demand, section, brokers),
        broker_load=mean_load_of(words.counts["micro"], _measure_seconds(demand, section), brokers),
        redirects=words.counts["redirects"],
        internal=words.counts["internal"],
        isolated=sum(answered for answered, _ in demand.isolated),
        outside=sum(outside for _, outside in demand.isolated),
        outside_bundles=sum(outside > 0 for _, outside in demand.isolated),
    )


def _compute_rates(demand: _CountedDemand, tick_s: int) -> dict[str, float]:
    """Compute statistics of the demand per minute. Ticks without lookups count as well."""
    starts, counts = demand.ticks
    ticks = int((starts[-1] - starts[0]) // (tick_s * MICRO)) + 1
    rates = np.sort(counts) * (60.0 / tick_s)
    empty = ticks - len(counts)

    def at(share: float) -> float:
        """Compute a quantile over all ticks, of which the empty ones are the smallest."""
        place = math.ceil(share * ticks) - 1 - empty
        return float(rates[place]) if place >= 0 else 0.0

    return {"mean": demand.lookups * 60.0 / (ticks * tick_s), "median": at(0.5), "p95": at(0.95), "max": at(1.0)}


def _select_greatest(counts: Counter[str]) -> dict[str, int]:
    """Select the greatest counts, equal ones by name, and add the others up under the name ""."""
    named = sorted(((name, count) for name, count in counts.items() if name and count), key=lambda e: (-e[1], e[0]))
    rest = counts.get("", 0) + sum(count for _, count in named[_MOST:])
    return {**dict(named[:_MOST]), **({"": rest} if rest else {})}


def _measure_seconds(demand: _CountedDemand, section: EvaluationSection) -> float:
    # A single lookup lies at an instant, so a log of one lookup does not have a rate, and any session is equally good.
    return max((demand.words.last_us - demand.words.first_us) / MICRO, float(section.tick_s))


def _suggest_session(demand: _CountedDemand, section: EvaluationSection, brokers: int) -> SessionAdvice | None:
    if not brokers:
        return None
    rate = demand.lookups / _measure_seconds(demand, section) / brokers
    suggested = suggested_session(rate, section.tick_s)
    return SessionAdvice(
        session_s=section.session_s,
        expected=rate * section.session_s,
        suggested_s=suggested,
        suggested_expected=rate * suggested,
    )
