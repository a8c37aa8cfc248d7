"""What trials of a batch have shown, which `lookup.api.log_trials` makes on a log, one part of which is sealed."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from lookup.score.scoring import Scored
from lookup.tuning.effects import taken_back
from lookup.tuning.racing import Aims, Samples, Standing, as_good, beaten, standing_of
from lookup.tuning.search import Batch

__all__ = ["Shown", "Span", "policy_name", "shown_of_batch", "shown_of_confirmation"]


def policy_name(number: int, incumbent: str) -> str:
    """Return what the policy of a candidate is called in reports."""
    return f"candidate-{number}" if number else incumbent


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
    #: of a confirmation: what became of the cycles of each shedder, and finalists that do as well as each
    cycles: Mapping[int, str] = field(default_factory=dict)
    as_good: Mapping[int, Sequence[int]] = field(default_factory=dict)


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


def shown_of_confirmation(scored: Scored, names: Mapping[int, str], aims: Aims, *, days: float) -> Shown:
    """Return what the evaluation of finalists has shown.

    Args:
        names: of the policies by number, that of the incumbent as 0.
        days: how many were scored.
    """
    samples = {name: figure.sample for name, figure in scored.pooled.items()}
    numbers = {name: number for number, name in names.items() if number}
    good = as_good(samples, list(numbers), names[0], aims)
    accounts = {policy: account for policy, of in scored.inputs.cycles.items() if (account := of.account)}
    return Shown(
        aims,
        {number: standing_of(scored, name, aims, days=days) for number, name in names.items()},
        cycles={number: accounts[name] for number, name in names.items() if name in accounts},
        as_good={numbers[policy]: [numbers[one] for one in others] for policy, others in good.items()},
    )


@dataclass(frozen=True, slots=True)
class Span:
    """What is searched, and what is sealed, as texts for people."""

    first: str
    #: None if nothing is sealed
    sealed_from: str | None
    last: str
