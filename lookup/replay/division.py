"""Divides the runs of an evaluation among tasks.

Every task puts the days of its cluster together once, counts their rows once, and shows them to all its runs: few tasks
do the least work, more keep all cores busy.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

__all__ = ["Costs", "PolicyRun", "TaskRuns", "divide"]

#: Place of a policy among the evaluation's, and a seed.
PolicyRun = tuple[int, int]

#: At most so many tasks per core are worth while: cores are busy to the end though nobody knows how long a run takes.
_TASKS_PER_CORE = 2


@dataclass(frozen=True, slots=True)
class TaskRuns:
    """What one task does: some runs over one cluster, and perhaps the facts about it."""

    #: place of the cluster among the run's
    cluster: int
    runs: tuple[PolicyRun, ...]
    with_facts: bool


@dataclass(frozen=True, slots=True)
class Costs:
    """About how long things take, by row of the log, in any unit."""

    #: what every task does before its first run
    task: float
    #: one run of each policy
    policies: Sequence[float]


def divide(clusters: Sequence[int], costs: Costs, seeds: Sequence[int], *, cores: int) -> tuple[TaskRuns, ...]:
    """Return the tasks for every policy and seed in every cluster, the longest first.

    Clusters are divided, the largest first, so that the last core is done as early as can be; of equals, into the
    fewest tasks.

    Args:
        clusters: rows of each.
    """
    most = max(1, -(-cores * _TASKS_PER_CORE // len(clusters))) * len(clusters)
    divided = [_divided(clusters, costs, seeds, tasks) for tasks in range(len(clusters), most + 1)]
    best = min(divided, key=lambda tasks: _makespan([length for length, _ in tasks], cores))
    return tuple(task for _, task in best)


def _divided(clusters: Sequence[int], costs: Costs, seeds: Sequence[int], tasks: int) -> list[tuple[float, TaskRuns]]:
    """Return so many tasks, if there are as many runs, and their lengths, the longest first."""
    runs = [(policy, seed) for policy in range(len(costs.policies)) for seed in seeds]
    each, more = divmod(tasks, len(clusters))
    largest = sorted(range(len(clusters)), key=lambda place: -clusters[place])[:more]
    found = [
        (rows * (costs.task + cost), TaskRuns(place, held, with_facts=number == 0))
        for place, rows in enumerate(clusters)
        for number, (cost, held) in enumerate(_groups(runs, costs.policies, each + (place in largest)))
    ]
    return sorted(found, key=lambda entry: -entry[0])


def _groups(
    runs: Sequence[PolicyRun], policies: Sequence[float], groups: int
) -> list[tuple[float, tuple[PolicyRun, ...]]]:
    """Divide runs into groups of about equal cost, the cheapest first."""
    costs = [0.0] * min(groups, len(runs))
    held: list[list[PolicyRun]] = [[] for _ in costs]
    for run in sorted(runs, key=lambda run: (-policies[run[0]], run)):
        place = costs.index(min(costs))
        costs[place] += policies[run[0]]
        held[place].append(run)
    return sorted((cost, tuple(sorted(group))) for cost, group in zip(costs, held, strict=True))


def _makespan(lengths: Sequence[float], cores: int) -> float:
    """Return when the last core is done where each takes the next task as soon as it is free."""
    free = [0.0] * cores
    for length in lengths:
        free[free.index(min(free))] += length
    return max(free)
