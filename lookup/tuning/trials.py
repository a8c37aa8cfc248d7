"""Results of the trials of a batch, which `lookup.api.log_trials` runs."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from lookup.score.scoring import Scored
from lookup.tuning.racing import Aims, Samples, Standing, as_good, beaten, standings_of
from lookup.tuning.search import TrialBatch

__all__ = ["Shown", "policy_name", "shown_of", "shown_of_batch"]


def policy_name(number: int, incumbent: str) -> str:
    """Build the name of a candidate's policy in reports."""
    return f"candidate-{number}" if number else incumbent


@dataclass(frozen=True, slots=True)
class Shown:
    """The results of a batch, by number of candidate."""

    aims: Aims
    #: of the incumbent as well
    standings: Mapping[int, Standing]
    #: candidates that another one of the batch certainly dominates
    beaten_by: Mapping[int, int] = field(default_factory=dict)
    #: for a confirmation, finalists that are not significantly worse, and the results of each shedder's cycles
    as_good: Mapping[int, Sequence[int]] = field(default_factory=dict)
    cycles: Mapping[int, str] = field(default_factory=dict)


def shown_of_batch(
    batch: TrialBatch, names: Mapping[int, str], samples: Samples, standings: Mapping[int, Standing], aims: Aims
) -> Shown:
    """Collect the results of a batch. In a race no candidate is dropped before its end."""
    if batch.replicates == 1:
        # One replicate does not show the variation of placement, so there is no width, and no certain difference.
        return Shown(aims, {number: standing.without_width() for number, standing in standings.items()})
    by_name = {name: number for number, name in names.items()}
    worse = beaten(samples, {name: standings[number] for number, name in names.items()}, aims)
    is_race = batch.kind == "race"
    return Shown(
        aims, standings, {by_name[name]: by_name[by] for name, by in worse.items() if by_name[name] and not is_race}
    )


def shown_of(
    scored: Scored, numbers: Iterable[int], aims: Aims, *, days: float, batch: TrialBatch | None = None
) -> Shown:
    """Collect the results of an evaluation of some candidates and the incumbent.

    Args:
        days: number of scored days.
        batch: None for a confirmation.
    """
    names = {number: policy_name(number, scored.incumbent) for number in (0, *numbers)}
    by_name = standings_of(scored, names.values(), aims, days=days)
    standings = {number: by_name[name] for number, name in names.items()}
    samples = {name: figure.sample for name, figure in scored.pooled.items()}
    if batch is not None:
        return shown_of_batch(batch, names, samples, standings, aims)
    accounts = {policy: account for policy, of in scored.inputs.cycles.items() if (account := of.account)}
    cycles = {number: accounts[name] for number, name in names.items() if name in accounts}
    return Shown(aims, standings, as_good=as_good(samples, names, aims), cycles=cycles)
