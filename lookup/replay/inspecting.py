"""Look at a log before it is replayed: its demand, its labels, how much load it makes, and what settings miss in it."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np

from lookup.engine.ledger import MICRO
from lookup.engine.policy import Policy
from lookup.logs.jobs import InProcess
from lookup.model.bundles import NamespacePolicies
from lookup.replay.clusters import plan_clusters
from lookup.replay.coding import EXTRA_FIELDS, CodingPlan
from lookup.replay.demand import ClusterDemand, read_demand
from lookup.replay.facts import quiet_share
from lookup.replay.findings import Finding
from lookup.replay.labels import published_labels
from lookup.replay.lint import lint
from lookup.replay.plan import ClusterPlan, RunPlan
from lookup.replay.proportions import mean_load_of, suggested_session
from lookup.replay.reports import read_tables
from lookup.replay.run import run_plan
from lookup.replay.work import WorkDir
from lookup.settings.evaluation import EvaluationFile, EvaluationSection
from lookup.settings.resolve import client_rules

__all__ = ["ClusterInspection", "Inspection", "SessionAdvice", "inspect_log"]

#: Entries of a breakdown that are kept; the rest is added up.
_MOST = 20


@dataclass(frozen=True)
class SessionAdvice:
    """How long a lookup should count as load, and what load that makes."""

    #: what the settings say, or the default, s
    session_s: int
    #: lookups that a broker serves on average in that time
    expected: float
    #: suggestion, s, and the lookups of a broker in that time
    suggested_s: int
    suggested_expected: float
    #: median time after which a client asks for a bundle again, s; None if the log does not show one
    return_s: float | None


@dataclass(frozen=True)
class ClusterInspection:
    """What the log says about one cluster; counts are of lookups that ask for a broker."""

    cluster: str
    lookups: int
    first_us: int
    last_us: int
    #: lookups per minute: mean, median, 95th percentile and maximum over the time between first and last
    per_minute: Mapping[str, float]
    #: brokers that are registered or, without settings, named in the log
    brokers: int
    topics: int
    #: bundles that have lookups, and all there are
    busy_bundles: int
    bundles: int
    #: lookups by tenant, namespace and bundle, the most first; the rest under ""
    tenants: Mapping[str, int]
    namespaces: Mapping[str, int]
    top_bundles: Mapping[str, int]
    #: lookups by client, the most first; empty if the log names none
    clients: Mapping[str, int]
    #: by property that clients send: lookups by value, those without it under ""
    labels: Mapping[str, Mapping[str, int]]
    #: of these the lookups with values that no broker has, by property; empty without settings
    unmatched: Mapping[str, Mapping[str, int]]
    #: None if no broker is known
    session: SessionAdvice | None
    #: mean load of a broker, weight/s; None if no broker is known
    broker_load: float | None
    #: rows beside the lookups that are no demand: redirects, and lookups of topics that brokers use themselves
    redirects: int
    internal: int


@dataclass(frozen=True)
class Inspection:
    """What a log holds, and what settings miss in it."""

    rows: int
    #: rows that a replay would refuse, by reason
    quarantined: Mapping[str, int]
    clusters: tuple[ClusterInspection, ...]
    #: empty without settings
    findings: tuple[Finding, ...]

    def document(self) -> dict[str, Any]:
        """Return all of it for JSON."""
        return asdict(self)


def inspect_log(
    path: str,
    folder: str,
    *,
    settings: EvaluationFile | None = None,
    policies: Sequence[Policy] = (),
    progress: Callable[[str], None] = lambda message: None,
) -> Inspection:
    """Look at a log.

    Args:
        path: file or folder of LOOKUPS.
        folder: empty local folder for files on the way; the caller removes it.
        settings: an evaluation, whose brokers, rules and policies are held against the log.
        policies: those of the settings.
        progress: called with a short sentence at each step.

    Raises:
        InputError: if a table cannot be used, or a cluster of the log has no broker in the settings.
    """
    work = WorkDir(folder)
    if settings is None:
        section = EvaluationSection(incumbent="none")
        coding = CodingPlan(frozenset({"client"}), (), NamespacePolicies(), {}, section.tick_s * MICRO)
        demand = read_demand(path, coding, work, progress=progress)
        clusters = [_inspected(each, section, None) for each in demand.clusters]
        return Inspection(demand.rows, demand.quarantined, tuple(clusters), ())
    run, workers = run_plan(settings), InProcess()
    tables = read_tables(workers, settings, tick_us=run.tick_us, work=work, quarantine=f"{folder}/quarantine")
    reads = frozenset[str]().union(*(policy.reads for policy in policies))
    coding = CodingPlan(
        extras=reads & frozenset(EXTRA_FIELDS) | {"client"},
        client_rules=client_rules(settings),
        policies=run.namespaces,
        cuts=tables.cuts(),
        tick_us=run.tick_us,
    )
    demand = read_demand(path, coding, work, progress=progress)
    plans = plan_clusters(workers, demand.shares, tables=tables, run=run, work=work)
    progress("asking the policies")
    quiet = {plan.name: _quiet(each, plan, run) for each, plan in zip(demand.clusters, plans, strict=True)}
    findings = lint(settings, policies, plans, run, quiet)
    clusters = [_inspected(each, settings.evaluation, plan) for each, plan in zip(demand.clusters, plans, strict=True)]
    return Inspection(demand.rows, demand.quarantined, tuple(clusters), tuple(findings))


def _quiet(demand: ClusterDemand, plan: ClusterPlan, run: RunPlan) -> float:
    starts, lookups = demand.ticks
    return quiet_share(starts, lookups, np.full(len(starts), plan.timeline.most_registered), run=run)


def _inspected(demand: ClusterDemand, section: EvaluationSection, plan: ClusterPlan | None) -> ClusterInspection:
    words, atoms = demand.words, demand.words.atoms
    brokers = len(words.by_broker) if plan is None else plan.timeline.most_registered
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
        per_minute=_per_minute(demand, section.tick_s),
        brokers=brokers,
        topics=int(words.topics.sum()),
        busy_bundles=sum(count > 0 for count in bundles.values()),
        bundles=len(bundles),
        tenants=_most(tenants),
        namespaces=_most(namespaces),
        top_bundles=_most(bundles),
        clients=_most(Counter(demand.by_client)),
        labels={key: _most(labels[key]) for key in sorted(labels)},
        unmatched={key: _most(values) for key, values in sorted(unmatched.items()) if values},
        session=_advice(demand, section, brokers),
        broker_load=mean_load_of(words.counts["micro"], _seconds(demand, section), brokers),
        redirects=words.counts["redirects"],
        internal=words.counts["internal"],
    )


def _per_minute(demand: ClusterDemand, tick_s: int) -> dict[str, float]:
    """Return figures of the demand per minute; ticks without lookups count as well."""
    starts, counts = demand.ticks
    ticks = int((starts[-1] - starts[0]) // (tick_s * MICRO)) + 1
    rates = np.sort(counts) * (60.0 / tick_s)
    empty = ticks - len(counts)

    def at(share: float) -> float:
        """Return a quantile over all ticks, of which the empty ones are the smallest."""
        place = math.ceil(share * ticks) - 1 - empty
        return float(rates[place]) if place >= 0 else 0.0

    return {"mean": demand.lookups * 60.0 / (ticks * tick_s), "median": at(0.5), "p95": at(0.95), "max": at(1.0)}


def _most(counts: Counter[str]) -> dict[str, int]:
    """Return the greatest counts, equal ones by name; what is left out under the name ""."""
    named = sorted(((name, count) for name, count in counts.items() if name and count), key=lambda e: (-e[1], e[0]))
    rest = counts.get("", 0) + sum(count for _, count in named[_MOST:])
    return {**dict(named[:_MOST]), **({"": rest} if rest else {})}


def _seconds(demand: ClusterDemand, section: EvaluationSection) -> float:
    # One lookup lies at an instant; a log of one has no rate, and any session is as good.
    return max(demand.seconds, float(section.tick_s))


def _advice(demand: ClusterDemand, section: EvaluationSection, brokers: int) -> SessionAdvice | None:
    if not brokers:
        return None
    rate = demand.lookups / _seconds(demand, section) / brokers
    return_s = None if demand.return_us is None else demand.return_us / MICRO
    suggested = suggested_session(rate, section.tick_s)
    return SessionAdvice(
        session_s=section.session_s,
        expected=rate * section.session_s,
        suggested_s=suggested,
        suggested_expected=rate * suggested,
        return_s=return_s,
    )
