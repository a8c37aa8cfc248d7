"""How well the replay reproduces what happened: the incumbent replayed, beside the brokers the log says answered."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from lookup.replay.outcome import LOGGED
from lookup.score.series import Series

__all__ = ["Fidelity", "compare_with_log"]


@dataclass(frozen=True, slots=True)
class Fidelity:
    """One figure as logged and as replayed; NaN where unknown."""

    metric: str
    key: str | None
    logged: float
    resimulated: float
    #: |logged - re-simulated|: differences between policies up to this may be the replay's own
    gap: float
    #: why there is no gap
    reason: str | None


def compare_with_log(series: Sequence[Series], incumbent: str, logged_reason: str | None) -> list[Fidelity]:
    """Compare every pooled figure of the incumbent with that of the logged choices.

    Args:
        logged_reason: why the logged choices could not be measured at all.
    """
    replayed = _pooled(series, incumbent)
    logged = _pooled(series, LOGGED)
    return [_compare(one, logged.get(name), logged_reason) for name, one in replayed.items()]


def _pooled(series: Sequence[Series], policy: str) -> Mapping[tuple[str, str | None], Series]:
    return {one.name: one for one in series if one.policy == policy and not one.by}


def _compare(replayed: Series, logged: Series | None, logged_reason: str | None) -> Fidelity:
    ours, theirs = replayed.value(), math.nan if logged is None else logged.value()
    gap = abs(ours - theirs)
    return Fidelity(*replayed.name, theirs, ours, gap, _why(logged, logged_reason) if math.isnan(gap) else None)


def _why(logged: Series | None, logged_reason: str | None) -> str:
    if logged is not None:
        return "there is nothing to measure"
    return logged_reason or "it cannot be computed from the logged brokers"
