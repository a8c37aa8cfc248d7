"""Divide the runs of an evaluation among tasks.

Every task puts the days of its cluster together once, counts their rows once, and shows them to all its runs: few tasks
do the least work, more keep all cores busy.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

__all__ = ["Costs", "PolicyRun", "TaskRuns", "divide"]

#: Place of a policy among the evaluation's, and a seed.
PolicyRun = tuple[int, int]

#: How often the time by which all cores are to be done is narrowed down by half.
_HALVINGS = 20


@dataclass(frozen=True, slots=True)
class TaskRuns:
    """One task: some runs over one cluster, and perhaps the facts about it."""

    #: place of the cluster among the run's
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


#: A cluster, by its place, and some of its runs.
_Share = tuple[int, list[PolicyRun]]


def divide(clusters: Sequence[int], costs: Costs, seeds: Sequence[int], *, cores: int) -> tuple[TaskRuns, ...]:
    """Return the tasks for every policy and seed in every cluster, the longest first.

    Clusters stay whole, or, if all is done earlier so, fill one core after another: runs that are too much for a
    core are left to the next, so that few clusters are prepared twice.

    Args:
        clusters: size of each, in any unit to which time is proportional.

    Source: McNaughton's wrap-around rule, here with a cost of preparing and runs that cannot be cut; which of them fit
    a core is decided the longest first (Coffman, Garey, Johnson: MULTIFIT).
    """
    every = [(policy, seed) for policy in range(len(costs.policies)) for seed in seeds]
    runs = sorted(every, key=lambda run: (-costs.of(run), run))
    whole: list[_Share] = [(place, runs) for place in range(len(clusters))]
    ways = []
    for shares in (whole, _wrapped(clusters, costs, runs, cores)):
        tasks = _longest_first(shares, clusters, costs)
        # When the last core is done if each takes the next task as soon as it is free.
        free = [0.0] * cores
        for length, _ in tasks:
            free[free.index(min(free))] += length
        ways.append((max(free), [task for _, task in tasks]))
    # Of equal ways the first: whole clusters are prepared once.
    return tuple(min(ways, key=lambda way: way[0])[1])


def _wrapped(clusters: Sequence[int], costs: Costs, runs: Sequence[PolicyRun], cores: int) -> list[_Share]:
    """Fill cores one after another, all up to the earliest time by which that many are enough."""
    early, late = 0.0, sum(size * (costs.task + sum(map(costs.of, runs))) for size in clusters)
    shares, _ = _filled(clusters, costs, runs, late)
    for _ in range(_HALVINGS):
        limit = (early + late) / 2
        filled, used = _filled(clusters, costs, runs, limit)
        if used <= cores:
            shares, late = filled, limit
        else:
            early = limit
    return shares


def _filled(clusters: Sequence[int], costs: Costs, runs: Sequence[PolicyRun], limit: float) -> tuple[list[_Share], int]:
    """Fill cores up to a limit, beyond it with a single run at most; return what they do, and how many there are."""
    shares: list[_Share] = []
    used, busy = 1, 0.0
    for place, size in enumerate(clusters):
        left = list(runs)
        while left:
            taken: list[PolicyRun] = []
            ends = busy + size * costs.task
            for run in left:
                cost = size * costs.of(run)
                # A long run that is too much for this core may leave room for a short one. An idle core takes one in
                # any case: else no limit would be enough for it.
                if ends + cost <= limit or not (busy or taken):
                    taken.append(run)
                    ends += cost
            if taken:
                shares.append((place, taken))
            done = set(taken)
            left = [run for run in left if run not in done]
            used, busy = (used + 1, 0.0) if left else (used, ends)
    return shares, used


def _longest_first(shares: Sequence[_Share], clusters: Sequence[int], costs: Costs) -> list[tuple[float, TaskRuns]]:
    """Return tasks with their lengths; the first of each cluster gathers its facts."""
    first = {place: number for number, (place, _) in reversed(list(enumerate(shares)))}
    tasks = [
        (
            clusters[place] * (costs.task + sum(map(costs.of, runs))),
            TaskRuns(place, tuple(sorted(runs)), with_facts=first[place] == number),
        )
        for number, (place, runs) in enumerate(shares)
    ]
    return sorted(tasks, key=lambda entry: -entry[0])
