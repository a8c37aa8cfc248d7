"""Run one evaluation from end to end. Code the tables, put them in order, replay every policy, return the sums.

The work is done in jobs with files between them. Jobs code shares of the small tables and of the log, and take owners
out of each cluster's log of owners. Then every (cluster, policy, seed) is replayed from the codes, and facts about each
cluster are gathered at the same time. No job collects a table.
"""

from __future__ import annotations

import hashlib
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import partial
from itertools import count
from typing import TYPE_CHECKING
from uuid import uuid4

from lookup.engine.foreign import about_foreign, check_foreign, foreign_of
from lookup.engine.ledger import MICRO
from lookup.engine.policy import Policy
from lookup.engine.salting import probe_requests, unsalted_parts
from lookup.engine.units import act_warnings, cannot_act, idle_weights_of
from lookup.errors import Argument, InputError
from lookup.logs.jobs import Workers, parallelism, run_tasks
from lookup.logs.sources import list_log, share_out
from lookup.model.quoting import quantity
from lookup.model.time import FIRST_US, LAST_US, to_us
from lookup.replay.clusters import marks_of, plan_clusters, require_scored
from lookup.replay.coding import EXTRA_FIELDS, CodingPlan
from lookup.replay.counted import check_by
from lookup.replay.facts import ClusterFacts, FactsWalk
from lookup.replay.findings import about_evidence, find
from lookup.replay.outcome import AtBest, Finding, InputFacts, ReplayOutcome, cycles_by_policy
from lookup.replay.plan import ClusterPlan, RunPlan
from lookup.replay.presence import require_registered
from lookup.replay.reports import Tables, known_figures, known_rates, mean_load, read_tables, unknown_figures
from lookup.replay.senders import label_of_tenants
from lookup.replay.shares import Coded, code_files, code_frame, group_demand
from lookup.replay.tasks import (
    Costs,
    GatheredFacts,
    Output,
    PolicyRun,
    Recipe,
    Replayed,
    TaskRuns,
    build_on_driver,
    build_recipe,
    divide,
    replay_runs,
)
from lookup.replay.work import WorkDir
from lookup.settings.evaluation import EvaluationFile, EvaluationSection
from lookup.settings.resolve import bundle_counts, client_rules, namespace_policies, topology

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

__all__ = ["FIDELITY_RATIO", "prepare", "replay", "run_plan"]

#: Below this share of lookups with a known broker, the logged choice is not scored.
FIDELITY_RATIO = 0.95
#: A task codes at most about this many rows. Few tasks are better, since every task codes every topic.
_ROWS_PER_TASK = 10_000_000
#: Deciding who owns a bundle takes a run about as long as counting so many rows.
_ROWS_PER_BUNDLE = 5_000
#: Cost of a task before its first run, and of a run with a shedder, which is called in every tick and moves bundles, in
#: multiples of a run without shedder (measured: `benchmarks/`).
_PREPARING, _SHEDDING = 1.0, 3.0
#: The same of the facts about a cluster.
_GATHERING = 1.0


def replay(  # noqa: PLR0913  each is a choice of its own, and only the first three are needed
    workers: Workers,
    settings: EvaluationFile,
    output: str,
    *,
    by: Sequence[str] = (),
    progress: Callable[[str], None] = lambda message: None,
    warn: Callable[[str], None] = lambda message: None,
    partitions: int | None = None,
    lookups: DataFrame | None = None,
) -> ReplayOutcome:
    """Replay every policy of an evaluation over its log.

    Args:
        workers: run the tasks, which is a Spark session, or this process for a small log.
        output: folder for `decisions/`, `owners/`, `cycles/`, `cells/`, `flows/` and, for unusable rows, `quarantine/`.
        by: dimensions by which figures are also divided, which are tenant, namespace, rack and hour.
        progress: called with one short sentence at each step.
        warn: called with a sentence that a user should read before the run, but that does not stop it.
        partitions: number of tasks that read the log. The default depends on its size. No figure depends on it.
        lookups: the log, if it is not a Parquet table named by `inputs.lookups`, with the columns of LOOKUPS and `seq`.

    Raises:
        InputError: if a table cannot be used, or too much of the log is unusable.
        PolicyError: if a part of a policy fails and its policy's `on_error` is to stop.
        SettingsError: if policies or `by` are wrong.
    """
    # A worker keeps counts by the name of the file they are of, so no two runs may share one.
    work = WorkDir(f"{output}/.work/{uuid4().hex}")
    try:
        return _EvaluationRun(workers, settings, output, work, tuple(by), progress, warn, partitions, lookups).outcome()
    finally:
        WorkDir(f"{output}/.work").remove()


def prepare(
    workers: Workers,
    settings: EvaluationFile,
    work: WorkDir,
    *,
    extras: frozenset[str],
    progress: Callable[[str], None] = lambda message: None,
) -> tuple[RunPlan, list[ClusterPlan]]:
    """Code the log of an evaluation and plan its clusters, as a replay does before it calls a policy.

    Args:
        work: gets all files, also the rows that cannot be used.
        extras: fields of requests that are coded in addition to bundle and properties.

    Raises:
        InputError: if a table cannot be used, or too much of the log is unusable.
    """
    run = run_plan(settings)
    again = _EvaluationRun(workers, settings, work.root, work, (), progress, lambda message: None, None, None)
    return run, again.plan_clusters(again.tables(run), run, extras)[1]


def run_plan(settings: EvaluationFile, by: Sequence[str] = ()) -> RunPlan:
    """Build the settings that apply to every cluster, policy and seed."""
    section = settings.evaluation
    return RunPlan(
        tick_us=section.tick_s * MICRO,
        session_us=section.session_s * MICRO,
        balance_us=section.balance_s * MICRO,
        warmup_us=section.warmup_s * MICRO,
        owner_loss=section.owner_loss,
        is_reported=section.load == "reported",
        is_published=section.load_reports == "published",
        overload_threshold=section.overload_threshold,
        bytes_per_weight=section.bytes_per_weight,
        window_s=section.window_s,
        namespaces=namespace_policies(settings),
        topology=topology(settings),
        by=tuple(by),
        slice_rows=section.slice_rows,
        bundle_counts=bundle_counts(settings),
        scored_from_us=FIRST_US if section.scored_from is None else to_us(section.scored_from),
    )


@dataclass(frozen=True)
class _EvaluationRun:
    workers: Workers
    settings: EvaluationFile
    output: str
    work: WorkDir
    by: tuple[str, ...]
    progress: Callable[[str], None]
    warn: Callable[[str], None]
    partitions: int | None
    lookups: DataFrame | None

    def outcome(self) -> ReplayOutcome:
        run = run_plan(self.settings, self.by)
        check_by(self.by, run.balance_us)
        policies = build_on_driver(self.settings)
        unrepeatable = check_foreign(policies)
        foreign = about_foreign(policies, unrepeatable)
        for sentence in foreign:
            self.warn(sentence)
        recipe = build_recipe(self.settings)
        tables = self.tables(run)
        for sentence in unknown_figures(policies, known_figures(run, tables)):
            self.warn(sentence)
        for sentence in idle_weights_of(self.settings):
            self.warn(sentence)
        idle = cannot_act(policies, known_rates(run, tables), partial(mean_load, self.settings))
        for sentence in act_warnings(idle, self.settings.evaluation.incumbent):
            self.warn(sentence)
        reads = frozenset[str]().union(*(policy.reads for policy in policies))
        coded, clusters = self.plan_clusters(tables, run, reads & frozenset(EXTRA_FIELDS))
        require_scored(clusters, run)
        require_registered(clusters, run)
        seeds = seeds_for(self.settings.evaluation, clusters)
        replayed, gathered = self._replay_runs(clusters, run, recipe, seeds)
        findings = find(self.settings, policies, clusters, run)
        if "java" not in self.settings.lint.accept:
            findings += [Finding("java", sentence, 0) for sentence in foreign]
        findings += about_evidence(self.settings, (sums for each in replayed for sums in each.sums))
        inputs = _collect_facts(clusters, coded, tables, [each.facts for each in gathered], replayed)
        return ReplayOutcome(
            sums=[
                *(sums for each in replayed for sums in each.sums),
                *(sums for each in gathered for sums in each.sums),
            ],
            inputs=replace(inputs, findings=tuple(findings) or None),
            logged_reason=_explain_no_log(clusters),
            unsalted=_find_unsalted([policy for policy in policies if not foreign_of(policy)], clusters, run),
            unpaired=frozenset(unrepeatable),
            cannot_act=idle,
            at_best=self._compute_bounds([best for each in gathered for best in each.facts.at_best]),
            seeds=seeds,
            senders={cluster.name: cluster.senders for cluster in clusters},
            label_of_tenants=label_of_tenants(
                (cluster.senders, each.facts.homes) for cluster, each in zip(clusters, gathered, strict=True)
            ),
        )

    def tables(self, run: RunPlan) -> Tables:
        """Read all tables but LOOKUPS."""
        return read_tables(
            self.workers,
            self.settings,
            tick_us=run.tick_us,
            work=self.work,
            quarantine=f"{self.output}/quarantine",
            progress=self.progress,
        )

    def plan_clusters(
        self, tables: Tables, run: RunPlan, extras: frozenset[str]
    ) -> tuple[list[Coded], list[ClusterPlan]]:
        """Code the log, and plan every cluster that has demand.

        Args:
            extras: fields of requests that are coded in addition to bundle and properties.
        """
        coded = self._code_log(tables, run, extras)
        return coded, plan_clusters(self.workers, group_demand(coded), tables=tables, run=run, work=self.work)

    def _code_log(self, tables: Tables, run: RunPlan, extras: frozenset[str]) -> list[Coded]:
        """Job 1: every task codes a share of the log."""
        plan = CodingPlan(
            extras=extras,
            client_rules=client_rules(self.settings),
            policies=run.namespaces,
            cuts=tables.cuts(),
            tick_us=run.tick_us,
            window=_read_window(self.settings.evaluation),
            bundle_counts=run.bundle_counts,
        )
        quarantine = f"{self.output}/quarantine"
        if self.lookups is None:
            coded = self._code_files(plan, quarantine)
        else:
            self.progress("reading the rows of a DataFrame")
            coded = code_frame(self.lookups, plan, work=self.work, quarantine=quarantine)
        self._check_quarantine(coded)
        return coded

    def _code_files(self, plan: CodingPlan, quarantine: str) -> list[Coded]:
        if self.settings.inputs.lookups is None:
            raise InputError("no log is named: set inputs.lookups, or give ", Argument("lookups"))
        files = list_log(self.settings.inputs.lookups)
        rows = sum(file.rows for file in files)
        # As many tasks for each core, so that none waits for another.
        cores = parallelism(self.workers)
        shares = share_out(files, self.partitions or cores * max(1, -(-rows // (cores * _ROWS_PER_TASK))))
        self.progress(
            f"reading {quantity(rows, 'row')} of {quantity(len(files), 'file')} in {quantity(len(shares), 'task')}"
        )
        return code_files(self.workers, shares, plan, work=self.work, quarantine=quarantine)

    def _check_quarantine(self, coded: Sequence[Coded]) -> None:
        source = self.settings.inputs.lookups if self.lookups is None else "lookups"
        reasons: Counter[str] = Counter()
        for task in coded:
            reasons.update(task.quarantined)
        refused, allowed = sum(reasons.values()), self.settings.evaluation.max_quarantine_ratio
        rows = sum(task.rows for task in coded)
        if refused > allowed * rows:
            reason, count = reasons.most_common(1)[0]
            raise InputError(
                f"{source}: {refused:,} of {rows:,} rows cannot be used, more than "
                f"max_quarantine_ratio = {allowed} allows; most often ({quantity(count, 'row')}): {reason}"
            )
        if not any(share.counts["demand"] for task in coded for share in task.shares):
            within = (
                "" if _read_window(self.settings.evaluation) is None else " from evaluation.since to evaluation.until"
            )
            raise InputError(f"{source}: none of the {rows:,} rows{within} is a lookup that asks for a broker")
        if refused:
            self.progress(f"{quantity(refused, 'row')} went to quarantine")

    def _replay_runs(
        self, clusters: Sequence[ClusterPlan], run: RunPlan, recipe: Recipe, seeds: Sequence[int]
    ) -> tuple[list[Replayed], list[GatheredFacts]]:
        """Run job 2, in which tasks replay policies over one cluster each, and some also gather its facts."""
        policies = self.settings.policies
        tasks = divide(
            [cluster.words.counts["demand"] + _ROWS_PER_BUNDLE * cluster.words.atoms.count for cluster in clusters],
            Costs(_PREPARING, _GATHERING, [1.0 if policy.shedder is None else _SHEDDING for policy in policies]),
            seeds,
            cores=parallelism(self.workers),
        )
        runs = sum(len(task.runs) for task in tasks)
        n_policies, n_clusters = quantity(len(policies), "policy", "policies"), quantity(len(clusters), "cluster")
        self.progress(f"replaying {n_policies} over {n_clusters} in {quantity(runs, 'run')}")
        output, reconnect_us = Output(self.output, self.work), self.settings.evaluation.reconnect_s * MICRO
        has_log = _explain_no_log(clusters) is None
        bundles = tuple(dict.fromkeys(policy.bundles for policy in policies))

        def replay(task: TaskRuns, clusters: Sequence[ClusterPlan]) -> str:
            cluster = clusters[task.cluster]
            facts = None
            if task.with_facts:
                marks = marks_of(cluster, output.work)
                facts = FactsWalk(cluster, run, marks, reconnect_us, has_log=has_log, bundles=bundles)
            results = replay_runs(cluster, run, recipe, task, facts=facts, output=output)
            return output.work.dump(f"scored/{task.name}", results)

        replayed: dict[tuple[PolicyRun, int], Replayed] = {}
        gathered: dict[int, GatheredFacts] = {}
        rows = sum(clusters[task.cluster].words.counts["demand"] * len(task.runs) for task in tasks)
        for task, name in zip(tasks, run_tasks(self.workers, tasks, clusters, replay, rows=rows), strict=True):
            results, facts = self.work.load(name)
            replayed |= {(of, task.cluster): result for of, result in zip(task.runs, results, strict=True)}
            if facts is not None:
                gathered[task.cluster] = facts
        # They are sorted, since neither figures nor their order may depend on the division of runs among tasks.
        return [replayed[key] for key in sorted(replayed)], [gathered[cluster] for cluster in sorted(gathered)]

    def _compute_bounds(self, figures: Sequence[AtBest]) -> dict[tuple[str, str, str | None], float]:
        sums: dict[tuple[int | None, str, str | None], list[float]] = {}
        for each in figures:
            of_all = sums.setdefault((each.bundles, each.metric, each.key), [0.0, 0.0])
            of_all[:] = of_all[0] + each.best, of_all[1] + each.counted
        return {
            (policy.name, metric, key): best / counted
            for policy in self.settings.policies
            for (bundles, metric, key), (best, counted) in sums.items()
            if bundles == policy.bundles
        }


def seeds_for(section: EvaluationSection, clusters: Sequence[ClusterPlan]) -> tuple[int, ...]:
    """Choose the seeds of a run. They are given, or drawn from the log and the number of the draw.

    Equal logs have equal seeds, however cut into files. Another day's differ, so its replay is independent evidence.
    """
    if isinstance(section.seeds, tuple):
        return section.seeds
    log = [(entry.name, entry.words.counts["demand"], entry.words.first_us, entry.words.last_us) for entry in clusters]
    seeds: dict[int, None] = {}
    for number in count():
        digest = hashlib.blake2b(repr((sorted(log), section.draw, number)).encode(), digest_size=8).digest()
        # Seeds are short enough to be typed, since they are part of the names of decisions.
        seeds[int.from_bytes(digest) % 1_000_000] = None
        if len(seeds) == section.seeds:
            break
    return tuple(sorted(seeds))


def _read_window(section: EvaluationSection) -> tuple[int, int] | None:
    """Compute the first instant of the log that is read and the first that is not, None if all are read."""
    if section.since is None and section.until is None:
        return None
    since = FIRST_US if section.since is None else to_us(section.since)
    return since, LAST_US + 1 if section.until is None else to_us(section.until)


def _explain_no_log(clusters: Sequence[ClusterPlan]) -> str | None:
    """Explain why the logged choice is not scored, None if it is."""
    logged, demand = sum(c.logged for c in clusters), sum(c.words.counts["demand"] for c in clusters)
    if logged >= FIDELITY_RATIO * demand:
        return None
    return f"{logged / demand:.0%} of the lookups carry a known broker, fewer than {FIDELITY_RATIO:.0%}"


def _find_unsalted(
    policies: Sequence[Policy], clusters: Sequence[ClusterPlan], run: RunPlan
) -> dict[str, tuple[str, ...]]:
    """List the parts that ignore the salt, by policy. Policies without such parts are left out.

    It is called after the tasks, which name a part that fails, together with its request.
    """
    brokers = [broker for cluster in clusters for broker in cluster.timeline.roster]
    bundles = [bundle for cluster in clusters for bundle, _ in cluster.words.atoms.bundles]
    requests = probe_requests(bundles, [sent for cluster in clusters for sent in cluster.words.properties])
    return unsalted_parts(policies, requests, brokers, run.topology)


def _collect_facts(
    clusters: Sequence[ClusterPlan],
    coded: Sequence[Coded],
    tables: Tables,
    facts: Sequence[ClusterFacts],
    replayed: Sequence[Replayed],
) -> InputFacts:
    settings, pairs = tables.settings.evaluation, list(zip(clusters, facts, strict=True))
    # All shares count, since a share without demand may still have redirects.
    shares = [share for task in coded for share in task.shares]
    counts = {name: sum(share.counts[name] for share in shares) for name in clusters[0].words.counts}
    demand = sum(fact.demand for fact in facts)
    failures = Counter[str]()
    for run in replayed:
        failures[run.policy] += run.failures
    without = {cluster.name: len(cluster.without_capacity) for cluster in clusters if cluster.without_capacity}
    return InputFacts(
        rows=counts["rows"],
        lookups=counts["demand"],
        redirects=counts["redirects"],
        internal=counts["internal"],
        quarantined=sum(sum(task.quarantined.values()) for task in coded) + tables.quarantined,
        clusters=tuple(cluster.name for cluster in clusters),
        brokers={cluster.name: len(cluster.timeline.roster) for cluster in clusters},
        bundles={cluster.name: fact.bundles for cluster, fact in pairs},
        ticks={cluster.name: fact.ticks for cluster, fact in pairs},
        first_us=min(cluster.words.first_us for cluster in clusters),
        last_us=max(cluster.words.last_us for cluster in clusters),
        induced_ratio=sum(fact.induced for fact in facts) / demand if demand else None,
        ignored_unloads=sum(cluster.timeline.ignored_unloads for cluster in clusters),
        # A third word would keep earlier versions from reading the run.
        capacity="assumed"
        if any(cluster.assumed_capacity is not None for cluster in clusters)
        else None
        if without
        else "given",
        without_capacity=without or None,
        decisions=sum(run.decisions for run in replayed),
        # A unary plus leaves out the policies without any.
        failures=dict(+failures),
        first_failure=next((run.first_failure for run in replayed if run.first_failure), None),
        load=settings.load,
        cycles=cycles_by_policy((run.policy, run.cycles) for run in replayed),
    )
