"""Replay a log once more and look on: one run up to an instant, or two policies side by side over the whole log.

A replay is exact: the same settings and the same log give the same decisions, so a run need not keep what its policies
saw. Nothing is scored and no table is written.

Two policies answer a lookup otherwise if its bundle has other owners. What happened when these parted is their cause.
Under shared ownership, in which bundles have no owner, `difference.py` compares the odds of each lookup.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from lookup.engine.explain import DecisionStages, PartingCause, first_difference, stages_of
from lookup.engine.ledger import MICRO
from lookup.engine.manager import LoadManager, ManagerObserver
from lookup.engine.ownership import OwnershipChange
from lookup.engine.policy import Policy
from lookup.errors import InputError
from lookup.logs.jobs import Workers, run_tasks
from lookup.model import Decision, LookupRequest
from lookup.model.quoting import suggestion
from lookup.replay.coding import EXTRA_FIELDS
from lookup.replay.counted import rows_by_atom, weights_of
from lookup.replay.days import SliceRows
from lookup.replay.difference import CauseCount, Parting, PolicyDifference, compared_by_key, counts_by_cause
from lookup.replay.exclusive import ExclusiveReplay
from lookup.replay.plan import ClusterPlan, RunPlan
from lookup.replay.records import RunName
from lookup.replay.run import prepare
from lookup.replay.shared import SharedReplay
from lookup.replay.tasks import built, built_here, ship
from lookup.replay.walk import Tick, walk_slices, walk_together
from lookup.replay.work import WorkDir
from lookup.settings.evaluation import EvaluationFile

__all__ = ["Again", "find_difference", "replay_again"]


@dataclass(frozen=True)
class Again:
    """What is replayed once more: one run of an evaluation, up to an instant."""

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
) -> ExclusiveReplay | SharedReplay:
    """Replay a run up to an instant; the log is coded by the workers, the run itself is replayed here.

    Args:
        work: a folder that every worker can reach, which the caller removes.

    Raises:
        InputError: if a table cannot be used, or the log has no lookups of the cluster.
        PolicyError: if a part of the policy fails and the policy says stop.
    """
    # Every field of a request, read by the policy or not: what was asked is part of the answer.
    run, clusters = prepare(workers, again.settings, work, extras=frozenset(EXTRA_FIELDS), progress=progress)
    by_name = {cluster.name: cluster for cluster in clusters}
    if again.name.cluster not in by_name:
        hint = suggestion(again.name.cluster, by_name)
        raise InputError(f"the log has no lookups of cluster {again.name.cluster!r}; {hint}")
    cluster = by_name[again.name.cluster]
    kind = SharedReplay if run.is_shared else ExclusiveReplay
    replay = kind(cluster, run, again.policy, seed=again.name.seed, observer=observer)
    progress(f"replaying {again.policy.name} over {cluster.name} once more")
    for ticks in walk_slices(cluster, run, work):
        due = [tick for tick in ticks if tick.start_us <= again.until_us]
        if due:
            replay.take(due)
        if len(due) < len(ticks):
            break
    return replay


Ints = NDArray[np.int64]


def find_difference(  # noqa: PLR0913  what is compared, by keyword the rest
    workers: Workers,
    settings: EvaluationFile,
    policies: tuple[str, str],
    seed: int,
    work: WorkDir,
    *,
    cluster: str | None = None,
    progress: Callable[[str], None] = lambda message: None,
) -> PolicyDifference:
    """Find the causes for which two policies answer lookups by other brokers.

    Args:
        work: a folder that every worker can reach, which the caller removes.
        cluster: the only one that is compared; None: all.

    Raises:
        InputError: if a table cannot be used, or the log has no lookups of the cluster.
        PolicyError: if a part of a policy fails and its policy says stop.
    """
    chosen = [policy for name in policies for policy in settings.policies if policy.name == name]
    pair = settings.model_copy(update={"policies": tuple(chosen)})
    reads = frozenset[str]().union(*(policy.reads for policy in built_here(pair)))
    run, clusters = prepare(workers, pair, work, extras=reads & frozenset(EXTRA_FIELDS), progress=progress)
    clusters = [planned for planned in clusters if cluster in (None, planned.name)]
    if not clusters:
        raise InputError(f"the log has no lookups of cluster {cluster!r}")
    progress(f"replaying {policies[0]} and {policies[1]} side by side")
    recipe = ship(pair)

    def compare(place: int, clusters: Sequence[ClusterPlan]) -> str:
        """Compare the policies over one cluster; return the name of the file with the result."""
        cluster, (policies, _) = clusters[place], built(recipe)
        if run.is_shared:
            counts = compared_by_key(cluster, run, policies, seed, work)
        else:
            first, second = (_Side(cluster, run, policy, seed) for policy in policies)
            walk = _PartingWalk(cluster, first, second)
            walk_together([first.replay, second.replay, walk], cluster, run, work)
            counts = walk.counts()
        return work.dump(f"parted/{place}", counts)

    # The largest first, so that no core waits long for the last one.
    places = sorted(range(len(clusters)), key=lambda place: -clusters[place].words.counts["demand"])
    by_cause: dict[PartingCause, CauseCount] = {}
    for name in sorted(run_tasks(workers, places, clusters, compare)):
        for count in work.load(name):
            total = by_cause.setdefault(count.cause, CauseCount(count.cause))
            total.add(count.examples, count.partings, count.lookups, count.weight)
    return PolicyDifference(
        policies,
        seed,
        sum(planned.words.counts["demand"] for planned in clusters),
        sum(planned.words.counts["micro"] for planned in clusters) / MICRO,
        tuple(sorted(by_cause.values(), key=lambda count: (-count.lookups, count.cause))),
    )


@dataclass(frozen=True, eq=False, slots=True)
class _Choice:
    """A choice of an owner, and the stages that led to it."""

    #: place among the decisions of the run; None if a request was declined as it had been before
    number: int | None
    stages: DecisionStages


@dataclass(frozen=True, eq=False, slots=True)
class _Event:
    """A change of a bundle's owner under one policy, from a row of a slice on."""

    row: int
    atoms: slice
    owner: int
    change: OwnershipChange
    #: made the owner; None if none did
    choice: _Choice | None


class _Side:
    """One policy's replay, and what happened in it in the present slice."""

    def __init__(self, cluster: ClusterPlan, run: RunPlan, policy: Policy, seed: int) -> None:
        self.policy = policy
        self.events: list[_Event] = []
        #: the last choice for each bundle at each instant
        self.choices: dict[tuple[str, int], _Choice] = {}
        self._n_decisions = 0
        observer = ManagerObserver(before_decision=self._choosing)
        self.replay = ExclusiveReplay(cluster, run, policy, seed=seed, observer=observer)
        self.replay.on_change = self._changed

    def _choosing(self, manager: LoadManager, request: LookupRequest, ts_us: int, is_repeated: bool) -> None:
        # Before the decision: an assignment changes owners and memory, which a part may read.
        stages = stages_of(self.policy, request, manager.instant())
        self.choices[request.bundle, ts_us] = _Choice(None if is_repeated else self._n_decisions, stages)
        self._n_decisions += not is_repeated

    def _changed(self, change: OwnershipChange, atoms: slice, owner: int, row: int) -> None:
        choice = self.choices.get((change.bundle, change.ts_us)) if change.decided else None
        self.events.append(_Event(row, atoms, owner, change, choice))

    def decision(self, choice: _Choice) -> Decision | None:
        """Return the decision of a choice; None if it was declined as before."""
        return None if choice.number is None else self.replay.decisions[choice.number].decision

    def forget(self) -> None:
        """Begin the next slice."""
        self.events = []
        self.choices.clear()


#: The changes of one instant that the two policies have made to an atom.
_Sides = tuple[list[_Event], list[_Event]]


@dataclass(slots=True)
class _OpenParting:
    """A parting, over one atom or several of one bundle, and its cause."""

    cause: PartingCause
    parting: Parting


class _PartingWalk:
    """Finds partings from the changes that two replays have noted of a slice, and counts their lookups."""

    def __init__(self, cluster: ClusterPlan, first: _Side, second: _Side) -> None:
        self._cluster, self._sides = cluster, (first, second)
        self._policies = first.policy, second.policy
        n_atoms = cluster.words.atoms.count
        #: owner of each atom under either policy, -1 for none
        self._owners = np.full((2, n_atoms), -1, dtype=np.int64)
        #: number of the parting that each atom is in, -1 for none
        self._parted = np.full(n_atoms, -1, dtype=np.int64)
        self._partings: list[_OpenParting] = []
        #: lookups and micro-units of weight of each parting, as counted day by day
        self._lookups: list[NDArray[np.float64]] = []
        self._micro: list[NDArray[np.float64]] = []

    def take(self, ticks: Sequence[Tick]) -> None:
        """Count one slice, after both replays have taken it."""
        rows, before = ticks[-1].rows, self._parted.copy()
        # Atoms that are parted already count from the first row on.
        held = [(atom, 0, int(before[atom])) for atom in np.flatnonzero(before >= 0).tolist()]
        changes = [*held, *self._changes()]
        for side in self._sides:
            side.forget()
        if changes and len(rows):
            self._count(rows, before, changes)

    def _changes(self) -> Iterator[tuple[int, int, int]]:
        """Yield atom, row and parting, -1 for none, whenever an atom begins or ends to be parted."""
        # By instants as well as by rows: time goes on while no lookup comes.
        moments: dict[tuple[int, int], dict[int, _Sides]] = defaultdict(dict)
        for side, noted in enumerate(self._sides):
            for event in noted.events:
                for atom in range(event.atoms.start, event.atoms.stop):
                    moments[event.row, event.change.ts_us].setdefault(atom, ([], []))[side].append(event)
        for row, ts_us in sorted(moments):
            # Atoms of one bundle part together.
            begun: dict[tuple[str, int], int] = {}
            for atom, sides in sorted(moments[row, ts_us].items()):
                before = int(self._parted[atom])
                self._parted[atom] = self._after(atom, sides, begun)
                if self._parted[atom] != before:
                    yield atom, row, int(self._parted[atom])

    def _after(self, atom: int, sides: _Sides, begun: dict[tuple[str, int], int]) -> int:
        """Return the parting that an atom is in after the changes of one instant, -1 for none.

        Args:
            begun: partings that begin with this instant, by bundle and instant.
        """
        for side, events in enumerate(sides):
            if events:
                self._owners[side, atom] = events[-1].owner
        before = int(self._parted[atom])
        change = (sides[0] or sides[1])[-1].change
        if self._owners[0, atom] == self._owners[1, atom]:
            if before >= 0 and np.count_nonzero(self._parted == before) == 1:
                ended = self._partings[before]
                ended.parting = replace(ended.parting, to_us=change.ts_us)
            return -1
        if before >= 0:
            # A bundle that was taken away is given to another broker a little later.
            known = self._partings[before]
            if None in known.parting.brokers:
                known.parting = replace(known.parting, brokers=self._brokers(atom))
            return before
        key = change.bundle, change.ts_us
        if key not in begun:
            begun[key] = len(self._partings)
            self._partings.append(self._opened(atom, sides))
        return begun[key]

    def _opened(self, atom: int, sides: _Sides) -> _OpenParting:
        """Return the parting that begins with some changes of one instant."""
        change = (sides[0] or sides[1])[-1].change
        choices, odds = [], []
        for events, side in zip(sides, self._sides, strict=True):
            # A policy that declined has made no change, but it has chosen.
            choice = events[-1].choice if events else side.choices.get((change.bundle, change.ts_us))
            decision = None if choice is None else side.decision(choice)
            if (None if decision is None else decision.broker) != (events[-1].change.broker if events else None):
                # The shedder took it away again in that instant, and had a destination drawn.
                choice = None
            choices.append(choice)
            odds.append({} if decision is None else decision.odds)
        first, second = (None if choice is None else choice.number for choice in choices)
        brokers = self._brokers(atom)
        parting = Parting(self._cluster.name, change.bundle, change.ts_us, None, brokers, (first, second), 0, 0.0)
        stages = [choice.stages for choice in choices if choice is not None]
        are_chosen = len(stages) == len(choices)
        return _OpenParting(
            first_difference(self._policies, stages, odds) if are_chosen else self._apart(atom, sides), parting
        )

    def _brokers(self, atom: int) -> tuple[str | None, str | None]:
        ids, (first, second) = self._cluster.timeline.roster.ids, self._owners[:, atom].tolist()
        return None if first < 0 else ids[first], None if second < 0 else ids[second]

    def _apart(self, atom: int, sides: _Sides) -> PartingCause:
        """Return the cause if not both policies have decided."""
        words = []
        for policy, events, owner in zip(self._policies, sides, self._owners[:, atom].tolist(), strict=True):
            idle = "kept its owner" if owner >= 0 else "had no owner and did not decide"
            words.append(f"{policy.name} {_deeds([event.change for event in events]) or idle}")
        return PartingCause("shedder" if all(sides) else "owner kept", ", ".join(words))

    def _count(self, rows: SliceRows, before: Ints, changes: Sequence[tuple[int, int, int]]) -> None:
        """Count the lookups of a slice by parting.

        Args:
            before: parting of each atom when the slice begins, -1 for none.
            changes: of each atom, row and parting, in order of time.
        """
        span = slice(0, len(rows))
        by_atom = rows_by_atom(rows, span, len(before))
        places, sizes, _, value = by_atom.tenures(before, *np.array(changes, dtype=np.int64).T)
        partings = np.repeat(value, sizes)
        counted = partings >= 0
        # Whole micro-units below 2**53, so that sums in any order are exact.
        weights = np.broadcast_to(weights_of(rows, span), len(rows))[places]
        self._lookups.append(np.bincount(partings[counted]).astype(np.float64))
        self._micro.append(np.bincount(partings[counted], weights=weights[counted]).astype(np.float64))

    def counts(self) -> list[CauseCount]:
        """Return the partings by cause; those without a lookup are left out."""
        lookups, micro = _summed(self._lookups, len(self._partings)), _summed(self._micro, len(self._partings))
        return counts_by_cause(
            (entry.cause, replace(entry.parting, lookups=int(count), weight=weight / MICRO))
            for entry, count, weight in zip(self._partings, lookups.tolist(), micro.tolist(), strict=True)
            if count
        )


def _deeds(changes: Sequence[OwnershipChange]) -> str:
    """Say what happened to a bundle at an instant, as the predicate of a policy; empty if nothing did."""
    words = {"shed": "took it away with its shedder", "forced": "lost its broker", "admin": "let it be unloaded"}
    given, taken = changes[-1:] and changes[-1].broker is not None, [one for one in changes if one.broker is None]
    if given and not changes[-1].decided:
        return "moved it with its shedder" if changes[-1].cause == "shed" else "had its owner from the log"
    deeds = [words.get(change.cause, change.cause) for change in taken]
    return " and ".join(dict.fromkeys([*deeds, *(["decided anew"] if given else [])]))


def _summed(parts: Sequence[NDArray[np.float64]], size: int) -> NDArray[np.float64]:
    total = np.zeros(size)
    for part in parts:
        total[: len(part)] += part
    return total
