"""What runs inside Spark tasks: code a share of the log, replay policies over one cluster and gather facts about it.

Each function takes plain data and a work folder and returns something small.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from lookup.engine.measuring import Sums, keys_of, sums_of
from lookup.hooks import Metric
from lookup.logs.parquet import Split, open_parquet
from lookup.logs.rows import LogBatch, Quarantined, texts_of
from lookup.model.batch import Batch
from lookup.model.names import cluster_problem
from lookup.replay.coding import Coder, CodingPlan, Share, used_columns
from lookup.replay.counted import Counted
from lookup.replay.cycles import CycleSums, sums_of_cycles
from lookup.replay.division import TaskRuns
from lookup.replay.exclusive import ExclusiveReplay
from lookup.replay.facts import ClusterFacts, FactsWalk
from lookup.replay.outcome import LOGGED, MetricSums
from lookup.replay.plan import ClusterPlan, RunPlan
from lookup.replay.recipe import Recipe, built
from lookup.replay.shared import SharedReplay
from lookup.replay.walk import walk_together
from lookup.replay.work import WorkDir
from lookup.replay.written import (
    RunName,
    cycle_table,
    decision_table,
    key_decision_table,
    owner_table,
    write_quarantine,
    write_table,
)

__all__ = [
    "Coded",
    "Gathered",
    "Output",
    "Replayed",
    "code_batches",
    "code_share",
    "metric_sums",
    "read_splits",
    "replay_runs",
]

#: Columns whose dictionaries are kept as they stand in the file.
_TEXTS = ("cluster", "topic", "client", "properties", "broker", "result", "listener")


@dataclass(frozen=True)
class Output:
    """Where a replay writes: its tables, and what passes between its jobs."""

    folder: str
    work: WorkDir


@dataclass
class Coded:
    """What one task made of its share."""

    task: int
    shares: list[Share] = field(default_factory=list)
    rows: int = 0
    #: quarantined rows by reason
    quarantined: dict[str, int] = field(default_factory=dict)


@dataclass
class Replayed:
    """What one replay left: the sums of every metric, and how it went."""

    policy: str
    sums: list[MetricSums]
    decisions: int = 0
    failures: int = 0
    first_failure: str | None = None
    #: what the log says and bundles in flight could not do at once, or not at all
    late_splits: int = 0
    refused_unloads: int = 0
    #: what came of the shedder's cycles, None for a policy without shedder
    cycles: CycleSums | None = None


#: A cluster's facts and the sums of its logged choice.
Gathered = tuple[ClusterFacts, list[MetricSums]]


def code_share(task: int, splits: Sequence[Split], plan: CodingPlan, *, work: WorkDir, quarantine: str) -> Coded:
    """Code some row groups of canonical Parquet files."""
    return code_batches(task, read_splits(splits, plan), plan, work=work, quarantine=quarantine)


def code_batches(task: int, batches: Iterator[LogBatch], plan: CodingPlan, *, work: WorkDir, quarantine: str) -> Coded:
    """Code batches from anywhere; one coder per cluster."""
    coders: dict[str, Coder] = {}
    found: list[Quarantined] = []
    coded = Coded(task)
    for batch in batches:
        coded.rows += batch.rows.num_rows
        for cluster, rows in _by_cluster(batch):
            problem = "the cluster is missing" if cluster is None else cluster_problem(cluster)
            if cluster is None or problem is not None:
                found.extend(Quarantined(rows.source, line, str(problem), "") for line in rows.line_numbers.tolist())
                continue
            if cluster not in coders:
                coders[cluster] = Coder(plan, cluster, work, task)
            coders[cluster].add(rows)
    coded.shares = [coder.finish() for _, coder in sorted(coders.items())]
    found.extend(row for _, coder in sorted(coders.items()) for row in coder.quarantined)
    write_quarantine(found, "lookups", quarantine, f"lookups-{task:05d}.parquet")
    for row in found:
        coded.quarantined[row.reason] = coded.quarantined.get(row.reason, 0) + 1
    return coded


def read_splits(splits: Sequence[Split], plan: CodingPlan) -> Iterator[LogBatch]:
    """Yield the rows of row groups with the columns a replay needs, dictionaries kept."""
    for split in splits:
        columns = used_columns(split.file.columns, plan)
        with open_parquet(split.file.path, read_dictionary=[name for name in columns if name in _TEXTS]) as parquet:
            row = split.first_row
            for group in range(split.first_group, split.first_group + split.groups):
                for rows in parquet.read_row_group(group, columns=columns, use_threads=False).to_batches():
                    yield LogBatch(rows, split.file.path, row, split.file.cluster)
                    row += rows.num_rows


def replay_runs(
    cluster: ClusterPlan, run: RunPlan, recipe: Recipe, task: TaskRuns, *, facts: FactsWalk | None, output: Output
) -> tuple[list[Replayed], Gathered | None]:
    """Replay policies over one cluster, all of them day by day, and write DECISIONS, OWNERS and CYCLES.

    Args:
        facts: walks along, None where another task gathers the cluster's facts.

    Returns:
        What each run left, in order of the task's runs, and the cluster's facts.
    """
    policies, metrics = built(recipe)
    kind = SharedReplay if run.is_shared else ExclusiveReplay
    replays = [kind(cluster, run, policies[place], seed=seed, work=output.work) for place, seed in task.runs]
    walk_together([*replays, *([facts] if facts else ())], cluster, run, output.work)
    replayed = []
    for replay, (place, seed) in zip(replays, task.runs, strict=True):
        name = RunName(cluster.name, policies[place].name, seed)
        decisions = _write(replay, name, output.folder, f"{cluster.place:04d}-{place:04d}-{seed}.parquet")
        replayed.append(_replayed(replay, metrics, seed, decisions))
    return replayed, _gathered(facts.facts(), metrics) if facts else None


def _write(replay: ExclusiveReplay | SharedReplay, name: RunName, folder: str, file: str) -> int:
    """Write DECISIONS, OWNERS and CYCLES of one run; return the rows of DECISIONS."""
    if isinstance(replay, ExclusiveReplay):
        decisions, owners = decision_table(name, replay.decisions), owner_table(name, replay.owners)
        cycles = cycle_table(name, replay.cycles)
    else:
        decisions, owners = key_decision_table(name, replay.decisions), owner_table(name, ())
        cycles = cycle_table(name, ())
    write_table(decisions, f"{folder}/decisions", file)
    write_table(owners, f"{folder}/owners", file)
    write_table(cycles, f"{folder}/cycles", file)
    return int(decisions.num_rows)


def _replayed(replay: ExclusiveReplay | SharedReplay, metrics: Sequence[Metric], seed: int, decisions: int) -> Replayed:
    manager = replay.manager
    late, refused, cycles = 0, 0, None
    if isinstance(replay, ExclusiveReplay):
        late, refused = replay.late_splits, replay.refused_unloads
        if manager.policy.shedder is not None:
            cycles = sums_of_cycles(manager.policy.shedder.name, replay.cycles)
    return Replayed(
        policy=manager.policy.name,
        sums=metric_sums(replay.counted(), metrics, (manager.policy.name, seed)),
        decisions=decisions,
        failures=manager.failures.count,
        first_failure=manager.failures.first,
        late_splits=late,
        refused_unloads=refused,
        cycles=cycles,
    )


def _gathered(facts: ClusterFacts, metrics: Sequence[Metric]) -> Gathered:
    sums = [] if facts.logged is None else metric_sums(facts.logged, metrics, (LOGGED, 0))
    return replace(facts, logged=None), sums


def metric_sums(counted: Counted, metrics: Sequence[Metric], name: tuple[str, int]) -> list[MetricSums]:
    """Add up what every metric says, for the whole demand and for each part of it that `--by` asks for.

    Args:
        name: policy and seed.

    Raises:
        PluginError: where a metric raises or breaks its protocol.
    """
    found: list[MetricSums] = []
    for by, batches in counted.parts():
        last = batches[-1]
        first = int(last.cells.start[0]) if len(last.cells.start) else 0
        for metric in metrics:
            for key in keys_of(metric, batches):
                sums = sums_of(metric, batches, key)
                held = MetricSums(counted.cluster.name, *name, metric.name, key, by, sums.total, first)
                if metric.resample == "event":
                    held = replace(held, events=last.events)
                elif metric.resample == "bundle":
                    held = replace(held, epochs=_by_epoch(batches, sums, len(counted.rosters)))
                found.append(held)
    return found


def _by_epoch(batches: Sequence[Batch], sums: Sums, n_epochs: int) -> NDArray[np.float64]:
    """Lay the totals of batches out by their registry epochs, shape (n_epochs, k)."""
    by_epoch = np.zeros((n_epochs, sums.by_batch.shape[1]))
    by_epoch[[batch.epoch for batch in batches]] = sums.by_batch
    return by_epoch


def _by_cluster(batch: LogBatch) -> Iterator[tuple[str | None, LogBatch]]:
    """Yield the rows of each cluster; None for rows without one."""
    if batch.cluster is not None:
        yield batch.cluster, batch
        return
    column = batch.rows.column("cluster")
    names = column if pa.types.is_dictionary(column.type) else column.dictionary_encode()
    codes = names.indices.fill_null(-1).to_numpy(zero_copy_only=False)
    for code in sorted(set(codes.tolist())):
        cluster = None if code < 0 else texts_of(names.dictionary)[code]
        if (codes == code).all():
            yield cluster, batch
        else:
            places = np.flatnonzero(codes == code)
            yield cluster, replace(batch, rows=batch.rows.take(pa.array(places)), lines=batch.line_numbers[places])
