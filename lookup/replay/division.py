"""Divides the runs of an evaluation among tasks.

Every task puts the days of its cluster together once and shows them to all its runs, so few tasks do the least work; a
few per core keep all cores busy to the end.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

__all__ = ["PolicyRun", "TaskRuns", "divide"]

#: Place of a policy among the evaluation's, and a seed.
PolicyRun = tuple[int, int]

#: So many tasks per core: cores are busy to the end though nobody knows how long a run takes.
_TASKS_PER_CORE = 2


@dataclass(frozen=True, slots=True)
class TaskRuns:
    """What one task does: some runs over one cluster, and perhaps the facts about it."""

    #: place of the cluster among the run's
    cluster: int
    runs: tuple[PolicyRun, ...]
    with_facts: bool


def divide(
    clusters: Sequence[int], policies: Sequence[float], seeds: Sequence[int], *, cores: int
) -> tuple[TaskRuns, ...]:
    """Return the tasks for every policy and seed in every cluster, the longest first.

    Args:
        clusters: rows of each.
        policies: about how much longer than the others each takes.
    """
    groups = max(1, -(-cores * _TASKS_PER_CORE // len(clusters)))
    runs = [(policy, seed) for policy in range(len(policies)) for seed in seeds]
    found = [
        (rows * cost, TaskRuns(place, held, with_facts=number == 0))
        for place, rows in enumerate(clusters)
        for number, (cost, held) in enumerate(_groups(runs, policies, groups))
    ]
    return tuple(task for _, task in sorted(found, key=lambda entry: -entry[0]))


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
