"""What trials of a batch have shown, which `lookup.api.log_trials` makes on a log, one part of which is sealed."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from lookup.tuning.effects import taken_back
from lookup.tuning.racing import Aims, Samples, Standing, beaten
from lookup.tuning.search import Batch, Candidate

__all__ = ["Shown", "Span", "policy_name", "shown_of_batch"]


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
    #: what became of the cycles of each shedder
    cycles: Mapping[int, str] = field(default_factory=dict)


def shown_of_batch(
    batch: Batch,
    names: Mapping[int, str],
    samples: Samples,
    standings: Mapping[int, Standing],
    aims: Aims,
) -> Shown:
    """Return what a batch has shown; in a race nobody is out before its end."""
    by_name = {name: number for number, name in names.items()}
    of_names = {name: standings[number] for number, name in names.items()}
    if batch.replicates == 1:
        # One replicate shows nothing of the luck of placements: no width, and nothing that is certain.
        standings = {number: standing.without_width() for number, standing in standings.items()}
    worse = {} if batch.kind == "race" or batch.replicates == 1 else beaten(samples, of_names, aims)
    return Shown(
        aims,
        standings,
        beaten_by={by_name[name]: by_name[by] for name, by in worse.items() if by_name[name]},
        taken_back=taken_back(samples, batch.candidates, names, aims),
    )


@dataclass(frozen=True, slots=True)
class Span:
    """What is searched, and what is sealed, as texts for people."""

    first: str
    #: None if nothing is sealed
    sealed_from: str | None
    last: str
    #: days that are sealed, 0 if moves of a day mean nothing
    days: float = 0.0
