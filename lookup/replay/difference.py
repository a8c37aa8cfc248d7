"""The difference of two policies over a log: the lookups that they answer by other brokers, by cause, with examples.

Under exclusive ownership `again.py` finds it, by owners. It is found here under shared ownership, in which no bundle
has an owner and nothing is rolled: of lookups that get other odds a share counts as answered by other brokers, the
least for which some dice could give both, half the sum of the differences of the odds. Every lookup is decided alone,
and so a parting is a time for which lookups of one key, all that either policy reads of them, get other odds by one
cause.
"""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace

import numpy as np
from numpy.typing import NDArray

from lookup.engine.explain import DecisionStages, PartingCause, first_difference, stages_of
from lookup.engine.ledger import MICRO
from lookup.engine.manager import LoadManager, ManagerObserver
from lookup.engine.policy import Policy
from lookup.model import LookupRequest
from lookup.replay.counted import weights_of
from lookup.replay.grouping import column_keys
from lookup.replay.plan import ClusterPlan, RunPlan
from lookup.replay.shared import SharedReplay, StretchQuestion
from lookup.replay.stretches import Stretch
from lookup.replay.walk import Tick, walk_together
from lookup.replay.work import WorkDir

__all__ = ["CauseCount", "Parting", "PolicyDifference", "compared_by_key", "counts_by_cause"]

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]
#: Differences of odds up to this are rounding.
_ROUNDING = 1e-12
#: Examples that are kept of each cause: those with most lookups.
_EXAMPLES = 3


@dataclass(frozen=True, slots=True)
class Parting:
    """One time for which two policies had other owners of a bundle, or gave other odds to lookups of one key."""

    cluster: str
    #: None under shared ownership, in which bundles have no owner
    bundle: str | None
    from_us: int
    #: None: up to the end of the log
    to_us: int | None
    #: owners at its beginning, or the brokers that it gives more lookups than the other policy does, None for no
    #: broker; of the first policy and of the second
    brokers: tuple[str | None, str | None]
    #: numbers of the decisions with which it began; None for an owner that no decision made then, or an answer that no
    #: decision gave
    decisions: tuple[int | None, int | None]
    #: answered by other brokers; under shared ownership an expectation
    lookups: float
    weight: float
    #: under shared ownership: all that either policy reads of the requests, as JSON
    key: str | None = None


@dataclass
class CauseCount:
    """All partings of one cause."""

    cause: PartingCause
    partings: int = 0
    lookups: float = 0
    weight: float = 0.0
    #: those with most lookups
    examples: list[Parting] = field(default_factory=list)

    def add(self, partings: Sequence[Parting], count: int, lookups: float, weight: float) -> None:
        """Add partings, given the examples among them."""
        self.partings += count
        self.lookups += lookups
        self.weight += weight
        ranked = sorted(
            [*self.examples, *partings],
            key=lambda one: (-one.lookups, one.cluster, one.from_us, one.bundle or one.key or ""),
        )
        self.examples = ranked[:_EXAMPLES]


def counts_by_cause(partings: Iterable[tuple[PartingCause, Parting]]) -> list[CauseCount]:
    """Count partings by cause."""
    by_cause: dict[PartingCause, list[Parting]] = defaultdict(list)
    for cause, parting in partings:
        by_cause[cause].append(parting)
    counts = []
    for cause, found in by_cause.items():
        total = CauseCount(cause)
        total.add(found, len(found), sum(one.lookups for one in found), sum(one.weight for one in found))
        counts.append(total)
    return counts


@dataclass(frozen=True)
class PolicyDifference:
    """The lookups that two policies answer by other brokers, in all clusters; under shared ownership expectations."""

    policies: tuple[str, str]
    seed: int
    #: of the log
    lookups: int
    weight: float
    #: most lookups first
    causes: tuple[CauseCount, ...]

    @property
    def parted(self) -> float:
        """Return how many lookups are answered by other brokers."""
        return sum(cause.lookups for cause in self.causes)


def compared_by_key(
    cluster: ClusterPlan, run: RunPlan, policies: Sequence[Policy], seed: int, work: WorkDir
) -> list[CauseCount]:
    """Compare two policies over one cluster; return the partings by cause."""
    first, second = (_KeySide(cluster, run, policy, seed) for policy in policies)
    walk = _KeyWalk(cluster, first, second)
    walk_together([first.replay, second.replay, walk], cluster, run, work)
    return walk.counts()


@dataclass(frozen=True, eq=False)
class _KeyAnswer:
    """A policy's answer to one key in a stretch."""

    #: what the policy reads of the requests, as JSON
    text: str
    stages: DecisionStages
    odds: Mapping[str, float]
    #: starts of the ticks with lookups of the key, and the number of the decision in the first of them
    starts: Ints
    number: int


@dataclass(frozen=True, eq=False)
class _Answered:
    """The answers of a policy to the lookups of a stretch."""

    stretch: Stretch
    #: key of each row
    keys: Ints
    #: by key and broker, the last column for no answer
    odds: Floats
    #: by key; keys that no policy was asked about are absent
    answers: dict[int, _KeyAnswer]


class _KeySide:
    """One policy's replay, and its answers in the present slice."""

    def __init__(self, cluster: ClusterPlan, run: RunPlan, policy: Policy, seed: int) -> None:
        self.policy = policy
        self.answered: list[_Answered] = []
        #: of each key that is asked about in the present stretch
        self._stages: list[DecisionStages] = []
        #: decisions so far: rows of DECISIONS
        self._numbered = 0
        observer = ManagerObserver(before_ballot=self._asking)
        self.replay = SharedReplay(cluster, run, policy, seed=seed, observer=observer)
        self.replay.on_answers = self._note

    def _asking(self, manager: LoadManager, request: LookupRequest) -> None:
        self._stages.append(stages_of(self.policy, request, manager.instant()))

    def _note(self, question: StretchQuestion, odds: Floats, codes: list[int]) -> None:
        answers = {}
        for code, decision, stages in zip(codes, self.replay.decisions, self._stages, strict=True):
            answers[code] = _KeyAnswer(decision.key, stages, decision.ballot.odds, decision.ts_us, self._numbered)
            self._numbered += len(decision.ts_us)
        self.replay.decisions.clear()
        self._stages.clear()
        keys = question.classes.key[question.classes.codes]
        self.answered.append(_Answered(question.stretch, keys, odds, answers))


@dataclass
class _OpenKeyParting:
    """A parting that further lookups may belong to."""

    cause: PartingCause
    parting: Parting
    micro: float


class _KeyWalk:
    """Finds partings in the answers that two replays have noted of a slice, and counts their lookups."""

    def __init__(self, cluster: ClusterPlan, first: _KeySide, second: _KeySide) -> None:
        self._cluster, self._sides = cluster, (first, second)
        self._policies = first.policy, second.policy
        #: the last parting of each key, unless it has ended
        self._open: dict[str, _OpenKeyParting] = {}
        self._partings: list[_OpenKeyParting] = []

    def take(self, ticks: Sequence[Tick]) -> None:
        """Compare one slice, after both replays have taken it."""
        first, second = (side.answered for side in self._sides)
        place = 0
        for answered in first:
            # Either policy cuts the slice where its own odds may change; both do so between ticks.
            while place < len(second) and second[place].stretch.low < answered.stretch.high:
                low = max(answered.stretch.low, second[place].stretch.low)
                high = min(answered.stretch.high, second[place].stretch.high)
                if low < high:
                    self._compare((answered, second[place]), low, high)
                if second[place].stretch.high > answered.stretch.high:
                    break
                place += 1
        for side in self._sides:
            side.answered = []

    def _compare(self, sides: tuple[_Answered, _Answered], low: int, high: int) -> None:
        """Compare the answers to the lookups in the rows [low, high), for which either policy has kept its odds."""
        of_row = [side.keys[low - side.stretch.low : high - side.stretch.low] for side in sides]
        pairs = column_keys(of_row[0]).by(of_row[1], size=int(of_row[1].max()) + 1)
        (first, second), codes = pairs.numbered()
        change = sides[0].odds[first] - sides[1].odds[second]
        moved = np.abs(change).sum(axis=1) / 2
        rows = sides[0].stretch.rows
        lookups = np.bincount(codes, minlength=len(first))
        weights = np.broadcast_to(weights_of(rows, slice(low, high)), high - low)
        micro = np.bincount(codes, weights=weights, minlength=len(first))
        begins, ends = np.zeros((2, len(first)), dtype=np.int64)
        # The last assignment to an index wins.
        ends[codes] = np.arange(low, high)
        begins[codes[::-1]] = np.arange(high - 1, low - 1, -1)
        ticks = [tick for tick in sides[0].stretch.ticks if low <= tick.low < high and tick.high > tick.low]
        borders = np.array([tick.low for tick in ticks])
        met: list[tuple[str, int, tuple[_KeyAnswer, _KeyAnswer]]] = []
        for number, (one, other) in enumerate(zip(first.tolist(), second.tolist(), strict=True)):
            # Brokers of pinned bundles answer without a policy.
            if one in sides[0].answers and other in sides[1].answers:
                answers = sides[0].answers[one], sides[1].answers[other]
                met.append((_joined(answers), number, answers))
        # In the order of their texts, so that sums of floats do not depend on how keys are numbered.
        for text, number, answers in sorted(met, key=lambda entry: entry[0]):
            if moved[number] <= _ROUNDING:
                self._open.pop(text, None)
                continue
            began, ended = (
                ticks[int(np.searchsorted(borders, rows_of[number], side="right")) - 1] for rows_of in (begins, ends)
            )
            stages, given = [answer.stages for answer in answers], [answer.odds for answer in answers]
            cause = first_difference(self._policies, stages, given)
            open_ = self._open.get(text)
            if open_ is None or open_.cause != cause:
                open_ = self._open[text] = _OpenKeyParting(
                    cause, self._begun(text, answers, began, change[number]), 0.0
                )
                self._partings.append(open_)
            share = float(moved[number])
            open_.micro += share * float(micro[number])
            open_.parting = replace(
                open_.parting, to_us=ended.end_us, lookups=open_.parting.lookups + share * int(lookups[number])
            )

    def _begun(self, text: str, answers: tuple[_KeyAnswer, _KeyAnswer], tick: Tick, change: Floats) -> Parting:
        """Return a parting that begins in a tick, without lookups.

        Args:
            change: how much higher the odds of each broker are under the first policy, the last of no answer.
        """
        ids = (*self._cluster.timeline.roster.ids, None)
        first, second = (answer.number + int(np.searchsorted(answer.starts, tick.start_us)) for answer in answers)
        brokers = ids[int(np.argmax(change))], ids[int(np.argmin(change))]
        return Parting(self._cluster.name, None, tick.start_us, None, brokers, (first, second), 0.0, 0.0, text)

    def counts(self) -> list[CauseCount]:
        """Return the partings by cause."""
        return counts_by_cause(
            (entry.cause, replace(entry.parting, weight=entry.micro / MICRO)) for entry in self._partings
        )


def _joined(answers: tuple[_KeyAnswer, _KeyAnswer]) -> str:
    """Return what either policy reads of a request, as JSON."""
    if answers[0].text == answers[1].text:
        return answers[0].text
    return json.dumps({**json.loads(answers[0].text), **json.loads(answers[1].text)}, ensure_ascii=False)
