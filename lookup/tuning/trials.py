"""What a search is tried on: a log, one part of which is sealed, or scenarios, of which other seeds are."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol

from lookup.tuning.racing import Aims, Standing
from lookup.tuning.search import Batch, Candidate, Search
from lookup.tuning.space import Space

__all__ = ["Shown", "Span", "Trials", "policy_name"]


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
