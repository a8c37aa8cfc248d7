"""Choose the candidates of the next replay from the results of earlier batches.

The first candidates cover the spaces, and later ones are near the best of these, in turns. Changes of the
best are reverted one by one, and tried alone, since a useless change is not worth making. Then the best of
all are tried in half as many replicates as a verdict has, and the first of these in all of them if no gain
is significant. Finalists are candidates with a significant gain, and before each the equally good one with
the fewest changes. There are no random draws, so the same figures lead to the same finalists.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from lookup.settings.tuning import TuneSection
from lookup.tuning.advice import objection, promises
from lookup.tuning.racing import Aims, Standing, leaders
from lookup.tuning.space import Point, Space, near, spread

__all__ = ["Candidate", "Search", "TrialBatch"]

#: Share of the candidates that are spread over the spaces, and turns in which the others are tried near the best.
_WIDE, _TURNS = 0.6, 2
#: Below so many candidates all are spread.
_FEW = 16
#: The best whose changes are taken back one by one.
_PARED = 3


@dataclass
class Candidate:
    """One of the tried settings. Number 0 is the incumbent."""

    number: int
    point: Point
    #: incumbent, defaults, wide, near or pared
    origin: str
    #: after the last batch that it was in
    standing: Standing | None = None
    #: the candidate of which it takes changes back, None if it takes none back
    of: int | None = None
    #: the candidate that certainly dominates it, None if none does
    beaten_by: int | None = None


@dataclass(frozen=True, slots=True)
class TrialBatch:
    """Candidates that share a scan of the log, together with the incumbent."""

    kind: str
    candidates: Sequence[Candidate]
    replicates: int

    @property
    def replays(self) -> int:
        """How often a policy is replayed, the incumbent among them."""
        return (len(self.candidates) + 1) * self.replicates


class Search:
    """The candidates so far, and the next ones.

    Args:
        replicates: number of replicates of a verdict.
    """

    def __init__(self, spaces: Sequence[Space], section: TuneSection, *, replicates: int) -> None:
        self.spaces = {space.name: space for space in spaces}
        self.incumbent = Candidate(0, Point("", (), {}), "incumbent")
        self.candidates = [self.incumbent]
        #: None until the first batch has shown which figures there are
        self.aims: Aims | None = None
        self._section = section
        self._streams = {name: spread(space, section.candidates) for name, space in self.spaces.items()}
        self._full = replicates
        #: numbers of the candidates that were in the race
        self._raced: frozenset[int] = frozenset()

    def batches(self) -> Iterator[TrialBatch]:
        """Yield the batches. `learn` is called with the results of each before the next is requested."""
        few = min(self._section.replicates, self._full)
        # Where the best lie is seen without a second look at all the others.
        yield TrialBatch("wide", self._spread(), _halve(few))
        for turn in range(_TURNS):
            if added := self._add_near(turn):
                yield TrialBatch("near", added, few)
        # In the way finalists are chosen, with the first front in order of the first objective.
        bases = self.best(len(self.candidates))[:_PARED]
        if added := [candidate for base in bases for candidate in self._add_ablations(base, is_best=base is bases[0])]:
            # Together with their origins, so that both have the same seeds.
            yield TrialBatch("pared", [*bases, *added], few)
        simpler = [candidate for base in bases for candidate in self._add_simplest(base)]
        rivals = {candidate.number: candidate for candidate in [*self.best(2 * self._section.finalists), *simpler]}
        if rivals:
            self._raced = frozenset(rivals)
            # Half of a verdict's, since the sealed days decide, with all of them.
            half = _halve(self._full)
            yield TrialBatch("race", list(rivals.values()), half)
            # With few replicates only a large gain is significant.
            close = [] if self.finalists() or half == self._full else self._choose_leading(self.has_raced)
            if close:
                yield TrialBatch("race", close, self._full)

    def left_after(self, batch: TrialBatch) -> int:
        """Estimate the number of replays after a batch, including those of the sealed part."""
        few, finalists = min(self._section.replicates, self._full), self._section.finalists
        replays = (finalists + 1) * self._full
        if batch.kind == "race":
            return replays
        replays += (2 * finalists + _PARED) * _halve(self._full)
        if batch.kind == "pared":
            return replays
        return replays + few * (_PARED + max(0, self._section.candidates - len(self.candidates)))

    def learn(self, aims: Aims, standings: Mapping[int, Standing], beaten_by: Mapping[int, int]) -> None:
        """Record the results of a batch, by candidate.

        Args:
            beaten_by: candidates that others of the batch certainly dominate.
        """
        self.aims = aims
        for number, standing in standings.items():
            self.candidates[number].standing = standing
            self.candidates[number].beaten_by = beaten_by.get(number)

    def finalists(self) -> list[Candidate]:
        """Choose the candidates worth the sealed days. A gain that more days do not show, fewer will not show."""
        return self._choose_leading(self._is_shown)

    def _choose_leading(self, may_lead: Callable[[Candidate], bool]) -> list[Candidate]:
        """Find before each good candidate the equally good one with the fewest changes.

        Of equivalent candidates only one is listed, since others would take places and make all verdicts harder.
        """
        raced = [*filter(self.has_raced, self.best(len(self.candidates)))]
        distinct: dict[str, Candidate] = {}
        for good in filter(may_lead, raced):
            smallest = min((rival for rival in raced if self._does_as_well(rival, good)), key=_n_changes)
            for candidate in (smallest, good):
                # As text, since NaN does not equal itself.
                distinct.setdefault(str([] if candidate.standing is None else candidate.standing.values), candidate)
        return list(distinct.values())[: self._section.finalists]

    def has_raced(self, candidate: Candidate) -> bool:
        """Check whether a candidate was in the race for the sealed days."""
        return candidate.number in self._raced

    def best(self, count: int) -> list[Candidate]:
        """Choose the most promising candidates, at most so many, by successive undominated fronts."""
        aims, today = self.aims, self.incumbent.standing
        if aims is None or today is None:
            return []
        alive = [
            (candidate, standing)
            for candidate in self.candidates[1:]
            if (standing := candidate.standing) is not None
            and candidate.beaten_by is None
            and promises(standing, today, aims)
        ]
        if not alive:
            return []
        values = np.array([[aims.turn_upward(name, standing) for name in aims.figures] for _, standing in alive])
        return [alive[place][0] for place in leaders(values, count)]

    def _spread(self) -> list[Candidate]:
        budget = self._section.candidates
        # A few candidates, or all there are, do not need a second look.
        whole = budget < _FEW or sum(space.size for space in self.spaces.values()) <= budget
        for space in self.spaces.values():
            default = space.defaults()
            if default is not None:
                self._add(default, "defaults")
        self._draw(list(self._streams.values()), budget if whole else math.ceil(budget * _WIDE))
        return self.candidates[1:]

    def _draw(self, streams: list[Iterator[Point]], count: int) -> None:
        while streams and len(self.candidates) < count:
            for stream in list(streams):
                point = next(stream, None)
                if point is None:
                    streams.remove(stream)
                elif len(self.candidates) < count:
                    self._add(point, "wide")

    def _add_near(self, turn: int) -> list[Candidate]:
        spread_out = sum(candidate.origin != "near" for candidate in self.candidates)
        room = self._section.candidates - spread_out
        # Ablations are candidates too, so at most a quarter of the remaining ones is kept for them.
        room -= (
            min(room // 4, _PARED * max(len(space.axes) for space in self.spaces.values()))
            + len(self.candidates)
            - spread_out
        )
        count = -(-room // (_TURNS - turn))
        good = [candidate.point for candidate in self.best(self._section.finalists) if candidate.point.coordinates]
        listed = [name for name, space in self.spaces.items() if math.isfinite(space.size)]
        spaces = dict.fromkeys(point.space for point in good) or listed
        before = len(self.candidates)
        for number, name in enumerate(spaces):
            centres = [point for point in good if point.space == name]
            share = (count + number) // len(spaces)
            if name in listed:
                # Among listed values nothing is near another.
                self._draw([self._streams[name]], len(self.candidates) + share)
                continue
            for point in near(self.spaces[name], centres, share, turn=turn) if share > 0 else ():
                self._add(point, "near")
        return self.candidates[before:]

    def _add_ablations(self, base: Candidate, *, is_best: bool) -> list[Candidate]:
        """Build candidates without each change of a candidate and, for the best one, with each change alone."""
        before, keys = len(self.candidates), self._list_varied(base)
        for key in keys:
            self._add(base.point.without(key), "pared", base.number)
        for key in keys if is_best else ():
            self._add(base.point.without(*(other for other in keys if other != key)), "pared", base.number)
        return self.candidates[before:]

    def _add_simplest(self, base: Candidate) -> list[Candidate]:
        """Find the equally good version with the fewest changes, and one without all idle changes."""
        as_good = {entry.point.identity: entry for entry in self.candidates[1:] if self._does_as_well(entry, base)}
        idle = [key for key in self._list_varied(base) if base.point.without(key).identity in as_good]
        before = len(self.candidates)
        self._add(base.point.without(*idle), "pared", base.number)
        versions = (version for version in as_good.values() if version.of == base.number)
        return [*sorted(versions, key=_n_changes)[:1], *self.candidates[before:]]

    def _list_varied(self, candidate: Candidate) -> list[str]:
        return [axis.key for axis in self.spaces[candidate.point.space].axes if axis.key in candidate.point.changes]

    def _does_as_well(self, candidate: Candidate, other: Candidate) -> bool:
        """Check whether a candidate loses no more than the tolerance against another in any objective."""
        aims, a, b, today = self.aims, candidate.standing, other.standing, self.incumbent.standing
        if aims is None or a is None or b is None or today is None:
            return False
        return all(
            aims.turn_upward(name, a) >= aims.turn_upward(name, b) - aims.tolerance * abs(today.figures[name].value)
            for name in aims.objectives
        )

    def _is_shown(self, candidate: Candidate) -> bool:
        """Check whether the race has shown a significant gain, as if nothing else had been tried."""
        aims, standing, today = self.aims, candidate.standing, self.incumbent.standing
        if aims is None or standing is None or today is None or not self.has_raced(candidate):
            return False
        return objection(standing, today, aims, alone=True) is None

    def _add(self, point: Point, origin: str, of: int | None = None) -> None:
        if point.changes and all(point.identity != other.point.identity for other in self.candidates):
            self.candidates.append(Candidate(len(self.candidates), point, origin, of=of))


def _n_changes(candidate: Candidate) -> int:
    return len(candidate.point.changes)


def _halve(replicates: int) -> int:
    return -(-replicates // 2)
