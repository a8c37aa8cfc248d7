"""Divide the runs of an evaluation among tasks, and replay those of one task, which are policies over one cluster.

Every task builds the slices of its cluster once, counts their rows once, and shows them to all its runs. So few tasks
do the least work, and more tasks keep all cores busy.

Policies and metrics come to tasks as settings and the contents of plug-in files, and are built once per worker process.
Objects do not travel, since a plug-in's class does not have a module on a worker until its file is loaded. File names
do not travel either, since a session keeps the first file of a name, and an edited one would be refused or ignored.
"""

from __future__ import annotations

import heapq
import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache

import numpy as np

from lookup.engine.build import build_policies
from lookup.engine.cycle_sums import CycleSums
from lookup.engine.measuring import keys_of, question_of, sums_of
from lookup.engine.plugins import PluginContents, Registry, contents_of, load_contents, load_plugins
from lookup.engine.policy import Policy
from lookup.hooks import Metric
from lookup.replay.counted import Counted
from lookup.replay.exclusive import ExclusiveReplay
from lookup.replay.facts import ClusterFacts, FactsWalk
from lookup.replay.outcome import LOGGED, MetricSums
from lookup.replay.plan import ClusterPlan, RunPlan
from lookup.replay.records import RunName, cell_table, cycle_table, decision_table, flow_table, owner_table
from lookup.replay.walk import walk_together
from lookup.replay.work import WorkDir, write_table
from lookup.settings.evaluation import EvaluationFile
from lookup.settings.policy import PolicySpec
from lookup.settings.resolve import load_manager_keys

__all__ = [
    "Costs", "GatheredFacts", "Output", "PolicyRun", "Recipe", "Replayed", "TaskRuns", "build_from_recipe",
    "build_on_driver", "build_recipe", "divide", "metric_sums", "metrics_of", "replay_runs",
]  # fmt: skip

#: Index of a policy among the evaluation's, and a seed.
PolicyRun = tuple[int, int]
#: The entry for the gathering of facts among the runs of a cluster.
_FACTS: PolicyRun = (-1, 0)

#: How often the time by which all cores are to be done is narrowed down by half.
_HALVINGS = 20


@dataclass(frozen=True, slots=True)
class TaskRuns:
    """One task, which has some runs over one cluster, the facts about it, or both."""

    #: index of the cluster among the run's
    cluster: int
    runs: tuple[PolicyRun, ...]
    with_facts: bool

    @property
    def name(self) -> str:
        """A name that no other task of the evaluation has."""
        return "{}-{}-{}".format(self.cluster, *(self.runs or (_FACTS,))[0])


@dataclass(frozen=True, slots=True)
class Costs:
    """Estimates of time, by unit of a cluster's size."""

    #: preparation of a task before its first run
    task: float
    #: gathering the facts
    facts: float
    #: one run of each policy
    policies: Sequence[float]

    def of_run(self, run: PolicyRun) -> float:
        """Look up the cost of a run, or of the facts."""
        return self.facts if run == _FACTS else self.policies[run[0]]

    def of_task(self, runs: Sequence[PolicyRun]) -> float:
        """Compute the cost of a task with some runs."""
        return self.task + sum(map(self.of_run, runs))


#: Index of a cluster, and some of its runs.
_Share = tuple[int, Sequence[PolicyRun]]


def divide(sizes: Sequence[int], costs: Costs, seeds: Sequence[int], *, cores: int) -> tuple[TaskRuns, ...]:
    """Divide all policies and seeds in every cluster, and each cluster's facts, into tasks, the longest first.

    Clusters fill core by core up to the earliest time at which cores suffice. Runs that do not fit go to the next.

    Args:
        sizes: size of each cluster, in any unit to which time is proportional.

    Source: McNaughton's wrap-around rule, here with a cost of preparing and runs that cannot be cut. The runs that fit
    a core are chosen the longest first (Coffman, Garey, Johnson: MULTIFIT).
    """
    # Runs are ordered by seed, so that a policy that takes longer than estimated is spread over tasks.
    runs = [_FACTS, *((policy, seed) for seed in seeds for policy in range(len(costs.policies)))]
    runs.sort(key=costs.of_run, reverse=True)
    early, late = 0.0, sum(size * costs.of_task(runs) for size in sizes)
    shares, _ = _fill_cores(sizes, costs, runs, late)
    for _ in range(_HALVINGS):
        limit = (early + late) / 2
        filled, used = _fill_cores(sizes, costs, runs, limit)
        if used <= cores:
            shares, late = filled, limit
        else:
            early = limit
    # A division pays for each of its tasks with another preparation, and cores are filled in the order of the clusters.
    whole: list[_Share] = [(cluster, runs) for cluster in range(len(sizes))]
    shares = min(whole, shares, key=lambda tasks: _estimate_end(tasks, sizes, costs, cores))
    shares = sorted(shares, key=lambda share: -sizes[share[0]] * costs.of_task(share[1]))
    return tuple(
        TaskRuns(cluster, tuple(sorted(run for run in runs if run != _FACTS)), with_facts=_FACTS in runs)
        for cluster, runs in shares
    )


def _fill_cores(
    sizes: Sequence[int], costs: Costs, runs: Sequence[PolicyRun], limit: float
) -> tuple[list[_Share], int]:
    shares: list[_Share] = []
    used, busy = 1, 0.0
    for cluster, size in enumerate(sizes):
        remaining = list(runs)
        while remaining:
            share: list[PolicyRun] = []
            ends = busy + size * costs.task
            for run in remaining:
                cost = size * costs.of_run(run)
                # A long run that does not fit on this core may leave room for a short one. An idle core takes a run in
                # any case. Otherwise no limit would be enough for it.
                if ends + cost <= limit or not (busy or share):
                    share.append(run)
                    ends += cost
            if share:
                shares.append((cluster, share))
            members = set(share)
            remaining = [run for run in remaining if run not in members]
            used, busy = (used + 1, 0.0) if remaining else (used, ends)
    return shares, used


def _estimate_end(shares: Sequence[_Share], sizes: Sequence[int], costs: Costs, cores: int) -> float:
    """Compute when the last core is done, if each free core takes the longest remaining task."""
    busy = [0.0] * cores
    for length in sorted((sizes[cluster] * costs.of_task(runs) for cluster, runs in shares), reverse=True):
        heapq.heapreplace(busy, busy[0] + length)
    return max(busy)


@dataclass(frozen=True)
class Recipe:
    """The policies of a run as written, and the plug-in files they need."""

    #: JSON of each `PolicySpec`
    policies: tuple[str, ...]
    plugin_files: PluginContents
    #: JSON of the keys of the brokers' `broker.conf`, which fill parameters
    conf: str


def build_recipe(settings: EvaluationFile) -> Recipe:
    """Build the recipe from which tasks build the policies."""
    return Recipe(
        policies=tuple(policy.model_dump_json() for policy in settings.policies),
        plugin_files=contents_of(settings.plugin_files),
        conf=json.dumps(dict(load_manager_keys(settings))),
    )


def build_on_driver(settings: EvaluationFile) -> tuple[Policy, ...]:
    """Build the policies on the driver, to check them and find the fields that they read.

    Raises:
        PluginError: if a plug-in cannot be loaded.
        SettingsError: with all mistakes in all policies.
    """
    return build_policies(load_plugins(settings.plugin_files), settings.policies, load_manager_keys(settings))


@lru_cache(maxsize=4)
def build_from_recipe(recipe: Recipe) -> tuple[tuple[Policy, ...], tuple[Metric, ...]]:
    """Build policies and metrics on a worker, each recipe once per process."""
    registry = load_contents(recipe.plugin_files)
    policies = [PolicySpec.model_validate_json(text) for text in recipe.policies]
    return build_policies(registry, policies, json.loads(recipe.conf)), metrics_of(registry)


def metrics_of(registry: Registry) -> tuple[Metric, ...]:
    """Build one metric of every registered class, with its defaults."""
    makers: list[Callable[[], Metric]] = list(registry.classes["metrics"].values())
    return tuple(make() for make in makers)


@dataclass(frozen=True)
class Output:
    """The destinations of a replay, which are the folder of its tables, and the files that pass between its jobs."""

    folder: str
    work: WorkDir


@dataclass
class Replayed:
    """The sums of every metric of one run, and how it went."""

    policy: str
    sums: list[MetricSums]
    decisions: int = 0
    failures: int = 0
    first_failure: str | None = None
    #: the shedder's cycles after the warm-up, None for a policy without shedder
    cycles: CycleSums | None = None


@dataclass(frozen=True)
class GatheredFacts:
    """A cluster's facts, without the counts of its logged choice, and that choice's sums."""

    facts: ClusterFacts
    sums: list[MetricSums]


def replay_runs(
    cluster: ClusterPlan, run: RunPlan, recipe: Recipe, task: TaskRuns, *, facts: FactsWalk | None, output: Output
) -> tuple[list[Replayed], GatheredFacts | None]:
    """Replay policies over one cluster, all of them day by day, and write the tables of each run.

    Args:
        facts: an observer that gathers the cluster's facts, None if another task does.

    Returns:
        The results of the runs, in order of the task's runs, and the cluster's facts.
    """
    policies, metrics = build_from_recipe(recipe)
    replays = [ExclusiveReplay(cluster, run, policies[number], seed=seed) for number, seed in task.runs]
    walk_together([*replays, *([facts] if facts else ())], cluster, run, output.work)
    replayed = []
    for replay, (number, seed) in zip(replays, task.runs, strict=True):
        policy = replay.manager.policy
        name, file = RunName(cluster.name, policy.name, seed), f"{cluster.place:04d}-{number:04d}-{seed}.parquet"
        # Every run leaves all tables, so that a reader of a folder finds the columns even if no run has rows.
        write_table(decision_table(name, replay.decisions), f"{output.folder}/decisions", file)
        write_table(owner_table(name, replay.owners), f"{output.folder}/owners", file)
        write_table(cycle_table(name, replay.cycles), f"{output.folder}/cycles", file)
        counted = replay.collect_counts()
        write_table(cell_table(name, counted.batches), f"{output.folder}/cells", file)
        write_table(flow_table(name, counted.batches), f"{output.folder}/flows", file)
        cycle_sums = None
        if policy.shedder is not None:
            scored = (cycle.report for cycle in replay.cycles if cycle.ts_us >= replay.scored_from)
            cycle_sums = CycleSums.of(policy.shedder.name, scored)
        failures = replay.manager.failures
        replayed.append(
            Replayed(
                policy.name,
                metric_sums(counted, metrics, (policy.name, seed)),
                len(replay.decisions),
                failures.count,
                failures.first,
                cycle_sums,
            )
        )
    if facts is None:
        return replayed, None
    gathered = facts.facts()
    logged = [] if gathered.logged is None else metric_sums(gathered.logged, metrics, (LOGGED, 0))
    # The counts stay here, since they are as large as the log, and the driver needs only their sums.
    return replayed, GatheredFacts(replace(gathered, logged=None), logged)


def metric_sums(counted: Counted, metrics: Sequence[Metric], name: tuple[str, int]) -> list[MetricSums]:
    """Add up the values of every metric, for the whole demand and for each part of it that `by` names.

    Args:
        name: policy and seed.

    Raises:
        PluginError: if a metric raises or breaks its protocol.
    """
    every: list[MetricSums] = []
    for by, batches, rest in counted.parts():
        last = batches[-1]
        first_us = int(last.cells.start[0]) if len(last.cells.start) else 0
        for metric in metrics:
            for key in keys_of(metric, batches):
                sums = sums_of(metric, batches, key)
                entry = MetricSums(counted.cluster.name, *name, metric.name, key, by, sums.total, first_us)
                if metric.resample == "event":
                    entry = replace(entry, events=last.events)
                elif metric.resample == "bundle":
                    epochs = np.zeros((len(counted.rosters), sums.by_batch.shape[1]))
                    epochs[[batch.epoch for batch in batches]] = sums.by_batch
                    entry = replace(entry, epochs=epochs)
                elif metric.resample == "time" and question_of(metric) == "demand":
                    whole = sums.total.sum(axis=0)
                    losses = [sums_of(metric, [batch], key).total.sum(axis=0) if batch else whole for batch in rest]
                    entry = replace(entry, without=np.array(losses).reshape(len(rest), len(whole)))
                every.append(entry)
    return every
