"""What trials of a batch have shown; they are made by `lookup.api.log_trials`."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from lookup.score.scoring import Scored
from lookup.tuning.racing import Aims, Samples, Standing, as_good, beaten, standings_of
from lookup.tuning.search import TrialBatch

__all__ = ["Shown", "policy_name", "shown_of", "shown_of_batch"]


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
    #: of a confirmation: finalists that are not shown to be worse, and what became of the cycles of each shedder
    as_good: Mapping[int, Sequence[int]] = field(default_factory=dict)
    cycles: Mapping[int, str] = field(default_factory=dict)


def shown_of_batch(
    batch: TrialBatch, names: Mapping[int, str], samples: Samples, standings: Mapping[int, Standing], aims: Aims
) -> Shown:
    """Return what a batch has shown; in a race nobody is out before its end."""
    if batch.replicates == 1:
        # One replicate shows nothing of the luck of placements: no width, and nothing that is certain.
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
    """Return what an evaluation of some candidates and the incumbent has shown.

    Args:
        days: how many were scored.
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
