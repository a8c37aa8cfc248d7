"""What a search is tried on: a log, one part of which is sealed, or scenarios, of which other seeds are."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol

from lookup.tuning.effects import taken_back
from lookup.tuning.racing import Aims, Measured, Standing, beaten
from lookup.tuning.search import Batch, Candidate, Search
from lookup.tuning.space import Space

__all__ = ["Shown", "Span", "Trials", "policy_name", "shown_of_batch"]


def policy_name(candidate: Candidate, incumbent: str) -> str:
    """Return what the policy of a candidate is called in reports."""
    return f"candidate-{candidate.number}" if candidate.number else incumbent


@dataclass(frozen=True, slots=True)
class Shown:
    """What a batch has shown, by number of candidate."""

    aims: Aims
    #: of the incumbent as well
    standings: Mapping[int, Standing]
    #: candidates that another one of the batch certainly dominates
    beaten_by: Mapping[int, int] = field(default_factory=dict)
    #: what `lookup.tuning.effects.taken_back` returned
    taken_back: Mapping[int, Mapping[str, list[float]]] = field(default_factory=dict)
    #: what no placement surpasses, None if it is not bounded
    possible: dict[str, Any] | None = None
    #: what became of the cycles of each shedder
    cycles: Mapping[int, str] = field(default_factory=dict)


def shown_of_batch(
    batch: Batch,
    names: Mapping[int, str],
    measured: Mapping[tuple[str, str, str | None], Measured],
    standings: Mapping[int, Standing],
    aims: Aims,
    *,
    possible: dict[str, Any] | None = None,
) -> Shown:
    """Return what a batch has shown; in a race nobody is out before its end.

    Args:
        names: of the policies of all that were tried together, by number, the incumbent's first.
        measured: pooled figures by policy, metric and key.
    """
    by_name = {name: number for number, name in names.items()}
    of_names = {name: standings[number] for number, name in names.items()}
    worse = {} if batch.kind == "race" else beaten(measured, of_names, aims)
    return Shown(
        aims,
        standings,
        beaten_by={by_name[name]: by_name[by] for name, by in worse.items() if by_name[name]},
        taken_back=taken_back(measured, batch.candidates, names, aims),
        possible=possible,
    )


@dataclass(frozen=True, slots=True)
class Span:
    """What is searched, and what is sealed, as texts for people."""

    #: "days" or "seeds"
    unit: str
    first: str
    #: None if nothing is sealed
    sealed_from: str | None
    last: str
    #: days that are sealed, 0 if moves of a day mean nothing
    days: float = 0.0


class Trials(Protocol):
    """Tries candidates; the same batch shows the same, wherever it is tried."""

    @property
    def incumbent(self) -> str:
        """Return the name of today's policy."""

    @property
    def spaces(self) -> Sequence[Space]:
        """Return what is varied."""

    @property
    def replicates(self) -> int:
        """Return in how many replicates finalists are judged."""

    @property
    def span(self) -> Span:
        """Return what is searched and what is sealed."""

    @property
    def settings(self) -> object:
        """Return what tells this search from others, besides its file, as JSON has it."""

    @property
    def sealed(self) -> object:
        """Return what tells what is sealed from other days or seeds."""

    def begin(self, folder: str) -> None:
        """Check, once the folder is there, what could not be checked before."""

    def tried(self, batch: Batch, number: int, search: Search, progress: Callable[[str], None]) -> Shown:
        """Try a batch, and the incumbent with it.

        Args:
            number: of the batch; each has luck of its own.
        """

    def confirmed(
        self,
        finalists: Sequence[Candidate],
        search: Search,
        progress: Callable[[str], None],
        warn: Callable[[str], None],
    ) -> Shown:
        """Judge the finalists on what is sealed."""
