"""Divide the runs of an evaluation among tasks.

Every task puts the slices of its cluster together once, counts their rows once, and shows them to all its runs: few
tasks do the least work, more keep all cores busy.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

__all__ = ["Costs", "PolicyRun", "TaskRuns", "divide"]

#: Index of a policy among the evaluation's, and a seed.
PolicyRun = tuple[int, int]

#: How often the time by which all cores are to be done is narrowed down by half.
_HALVINGS = 20


@dataclass(frozen=True, slots=True)
class TaskRuns:
    """One task: some runs over one cluster, and perhaps the facts about it."""

    #: index of the cluster among the run's
    cluster: int
    runs: tuple[PolicyRun, ...]
    with_facts: bool


@dataclass(frozen=True, slots=True)
class Costs:
    """Estimates of time, by unit of a cluster's size."""

    #: preparation of a task before its first run
    task: float
    #: one run of each policy
    policies: Sequence[float]

    def of_task(self, runs: Sequence[PolicyRun]) -> float:
        """Return the cost of a task with some runs."""
        return self.task + sum(self.policies[policy] for policy, _ in runs)


#: Index of a cluster, and some of its runs.
_Share = tuple[int, Sequence[PolicyRun]]


def divide(sizes: Sequence[int], costs: Costs, seeds: Sequence[int], *, cores: int) -> tuple[TaskRuns, ...]:
    """Return the tasks for every policy and seed in every cluster, the longest first.

    Clusters fill one core after another, all up to the earliest time by which that many are enough; runs that are too
    much for a core are left to the next.

    Args:
        sizes: size of each cluster, in any unit to which time is proportional.

    Source: McNaughton's wrap-around rule, here with a cost of preparing and runs that cannot be cut; which of them fit
    a core is decided the longest first (Coffman, Garey, Johnson: MULTIFIT).
    """
    # Seed by seed: a policy that takes longer than estimated is spread over tasks.
    runs = [(policy, seed) for seed in seeds for policy in range(len(costs.policies))]
    runs.sort(key=lambda run: -costs.policies[run[0]])
    early, late = 0.0, sum(size * costs.of_task(runs) for size in sizes)
    shares, _ = _filled(sizes, costs, runs, late)
    for _ in range(_HALVINGS):
        limit = (early + late) / 2
        filled, used = _filled(sizes, costs, runs, limit)
        if used <= cores:
            shares, late = filled, limit
        else:
            early = limit
    # The first task of each cluster gathers its facts.
    first = {cluster: number for number, (cluster, _) in reversed(list(enumerate(shares)))}
    tasks = [
        TaskRuns(cluster, tuple(sorted(runs)), with_facts=first[cluster] == number)
        for number, (cluster, runs) in enumerate(shares)
    ]
    return tuple(sorted(tasks, key=lambda task: -sizes[task.cluster] * costs.of_task(task.runs)))


def _filled(sizes: Sequence[int], costs: Costs, runs: Sequence[PolicyRun], limit: float) -> tuple[list[_Share], int]:
    """Fill cores up to a limit, beyond it with a single run at most; return the shares and the number of cores."""
    shares: list[_Share] = []
    used, busy = 1, 0.0
    for cluster, size in enumerate(sizes):
        remaining = list(runs)
        while remaining:
            taken: list[PolicyRun] = []
            ends = busy + size * costs.task
            for run in remaining:
                cost = size * costs.policies[run[0]]
                # A long run that is too much for this core may leave room for a short one. An idle core takes one in
                # any case: else no limit would be enough for it.
                if ends + cost <= limit or not (busy or taken):
                    taken.append(run)
                    ends += cost
            if taken:
                shares.append((cluster, taken))
            done = set(taken)
            remaining = [run for run in remaining if run not in done]
            used, busy = (used + 1, 0.0) if remaining else (used, ends)
    return shares, used
