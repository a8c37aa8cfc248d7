"""Replay one run of an evaluation a second time, up to an instant, for an observer.

A replay is exact. The same settings and the same log give the same decisions, so a run need not keep the views of its
policies. Nothing is scored and no table is written.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from lookup.engine.manager import ManagerObserver
from lookup.engine.policy import Policy
from lookup.errors import InputError
from lookup.logs.jobs import Workers
from lookup.model.quoting import suggestion
from lookup.replay.coding import EXTRA_FIELDS
from lookup.replay.exclusive import ExclusiveReplay
from lookup.replay.records import RunName
from lookup.replay.run import prepare
from lookup.replay.walk import walk_slices
from lookup.replay.work import WorkDir
from lookup.settings.evaluation import EvaluationFile

__all__ = ["Again", "replay_again"]


@dataclass(frozen=True)
class Again:
    """One run of an evaluation that is replayed a second time, up to an instant."""

    settings: EvaluationFile
    name: RunName
    policy: Policy
    #: ticks that begin after it are left out, µs
    until_us: int


def replay_again(
    workers: Workers,
    again: Again,
    work: WorkDir,
    observer: ManagerObserver,
    *,
    progress: Callable[[str], None] = lambda message: None,
) -> ExclusiveReplay:
    """Replay a run up to an instant. The workers code the log, and this process replays the run.

    Args:
        work: a folder that every worker can reach, which the caller removes.

    Raises:
        InputError: if a table cannot be used, or the log has no lookups of the cluster.
        PolicyError: if a part of the policy fails and the policy's `on_error` is to stop.
    """
    # All fields of a request are coded, even if the policy does not read them, since they are shown with the answer.
    run, clusters = prepare(workers, again.settings, work, extras=frozenset(EXTRA_FIELDS), progress=progress)
    by_name = {cluster.name: cluster for cluster in clusters}
    if again.name.cluster not in by_name:
        hint = suggestion(again.name.cluster, by_name)
        raise InputError(f"the log has no lookups of cluster {again.name.cluster!r}; {hint}")
    cluster = by_name[again.name.cluster]
    replay = ExclusiveReplay(cluster, run, again.policy, seed=again.name.seed, observer=observer)
    progress(f"replaying {again.policy.name} over {cluster.name} once more")
    for ticks in walk_slices(cluster, run, work):
        due = [tick for tick in ticks if tick.start_us <= again.until_us]
        if due:
            replay.take(due)
        if len(due) < len(ticks):
            break
    return replay
