"""Divide the runs of an evaluation among tasks.

Every task puts the days of its cluster together once, counts their rows once, and shows them to all its runs: few tasks
do the least work, more keep all cores busy.
"""

from __future__ import annotations

import heapq
from collections.abc import Sequence
from dataclasses import dataclass

__all__ = ["Costs", "PolicyRun", "TaskRuns", "divide", "end_of"]

#: Index of a policy among the evaluation's, and a seed.
PolicyRun = tuple[int, int]

#: How often the time by which all cores are to be done is narrowed down by half.
_HALVINGS = 20
#: Tasks that grow shorter: the part of the remaining work that the next task of every core takes together.
_ROUND = 0.7


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

    def of(self, run: PolicyRun) -> float:
        """Return the cost of one run."""
        return self.policies[run[0]]

    def of_runs(self, runs: Sequence[PolicyRun]) -> float:
        """Return the cost of several runs."""
        return sum(map(self.of, runs))

    def of_task(self, runs: Sequence[PolicyRun]) -> float:
        """Return the cost of a task with some runs."""
        return self.task + self.of_runs(runs)

    def slower(self, policy: int) -> Costs:
        """Return estimates by which one policy takes twice as long."""
        return Costs(self.task, [cost * (2 if number == policy else 1) for number, cost in enumerate(self.policies)])


#: Index of a cluster, and some of its runs.
_Share = tuple[int, Sequence[PolicyRun]]


def divide(sizes: Sequence[int], costs: Costs, seeds: Sequence[int], *, cores: int) -> tuple[TaskRuns, ...]:
    """Return the tasks for every policy and seed in every cluster, the longest first.

    Of three divisions the one that ends first counts: each cluster is one task; clusters fill one core after another, and
    runs that are too much for a core are left to the next; or tasks grow shorter and shorter, so that a core whose runs
    took longer than estimated gets fewer of the last ones. They end at the mean of what they do if estimates are right,
    and if each policy in turn takes twice as long.

    Args:
        sizes: size of each cluster, in any unit to which time is proportional.

    Source: McNaughton's wrap-around rule, here with a cost of preparing and runs that cannot be cut; which of them fit
    a core is decided the longest first (Coffman, Garey, Johnson: MULTIFIT). Guided self-scheduling (Polychronopoulos,
    Kuck) for tasks that grow shorter.
    """
    runs = [(policy, seed) for policy in range(len(costs.policies)) for seed in seeds]
    longest_first = sorted(runs, key=lambda run: (-costs.of(run), run))
    divisions: list[list[_Share]] = [
        [(cluster, runs) for cluster in range(len(sizes))],
        _wrapped(sizes, costs, longest_first, cores),
        # Seed by seed: the tasks of a cluster have a bit of every policy, also of one that takes longer than estimated.
        _dwindling(sizes, costs, sorted(runs, key=lambda run: (run[1], run[0])), cores),
    ]
    estimates = [costs, *(costs.slower(policy) for policy in range(len(costs.policies)))]
    candidates = [_longest_first(shares, sizes, costs) for shares in divisions]
    # If several end at the same time the first: whole clusters are prepared once.
    return min(candidates, key=lambda tasks: sum(end_of(tasks, sizes, estimate, cores=cores) for estimate in estimates))


def end_of(tasks: Sequence[TaskRuns], sizes: Sequence[int], costs: Costs, *, cores: int) -> float:
    """Return when the last core is done if each takes the next task as soon as it is free."""
    # A heap: its first entry is the core that is free first.
    busy_until = [0.0] * cores
    for task in tasks:
        heapq.heapreplace(busy_until, busy_until[0] + sizes[task.cluster] * costs.of_task(task.runs))
    return max(busy_until)


def _wrapped(sizes: Sequence[int], costs: Costs, runs: Sequence[PolicyRun], cores: int) -> list[_Share]:
    """Fill cores one after another, all up to the earliest time by which that many are enough."""
    early, late = 0.0, sum(size * costs.of_task(runs) for size in sizes)
    shares, _ = _filled(sizes, costs, runs, late)
    for _ in range(_HALVINGS):
        limit = (early + late) / 2
        filled, used = _filled(sizes, costs, runs, limit)
        if used <= cores:
            shares, late = filled, limit
        else:
            early = limit
    return shares


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
                cost = size * costs.of(run)
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


def _dwindling(sizes: Sequence[int], costs: Costs, runs: Sequence[PolicyRun], cores: int) -> list[_Share]:
    """Cut runs into tasks, so many at a time as there are cores, each round's with a part of what remains."""
    remaining = {cluster: list(runs) for cluster in range(len(sizes))}
    work = {cluster: size * costs.of_runs(runs) for cluster, size in enumerate(sizes)}
    shares: list[_Share] = []
    while remaining:
        target = _ROUND * sum(work.values()) / cores
        for _ in range(cores):
            if not remaining:
                break
            cluster = max(work, key=lambda cluster: (work[cluster], -cluster))
            size, left = sizes[cluster], remaining[cluster]
            # No task takes less time than to prepare it, nor leaves that little behind.
            least, taken, cost = size * costs.task, 1, size * costs.of(left[0])
            while taken < len(left) and (cost < max(target, least) or work[cluster] - cost < least):
                cost += size * costs.of(left[taken])
                taken += 1
            shares.append((cluster, left[:taken]))
            work[cluster], remaining[cluster] = work[cluster] - cost, left[taken:]
            if not remaining[cluster]:
                del work[cluster], remaining[cluster]
    return shares


def _longest_first(shares: Sequence[_Share], sizes: Sequence[int], costs: Costs) -> tuple[TaskRuns, ...]:
    """Return tasks, the longest first; the first of each cluster gathers its facts."""
    first = {cluster: number for number, (cluster, _) in reversed(list(enumerate(shares)))}
    tasks = [
        TaskRuns(cluster, tuple(sorted(runs)), with_facts=first[cluster] == number)
        for number, (cluster, runs) in enumerate(shares)
    ]
    return tuple(sorted(tasks, key=lambda task: -sizes[task.cluster] * costs.of_task(task.runs)))
