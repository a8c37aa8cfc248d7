"""How well the replay reproduces what happened: is the logged figure a plausible replicate of the incumbent?"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from scipy import special

from lookup.replay.outcome import LOGGED
from lookup.score.luck import LEVEL
from lookup.score.series import Series

__all__ = ["Fidelity", "compare_with_log"]


@dataclass(frozen=True, slots=True)
class Fidelity:
    """One figure as logged and as replayed; NaN if unknown."""

    metric: str
    key: str | None
    logged: float
    #: mean over the replicates
    resimulated: float
    #: range in which one more replicate would lie, the ranges of all figures together with 95 %
    low: float
    high: float
    #: distance of the logged figure from that range: differences between policies up to this may be the replay's own
    gap: float
    #: seeds of the replicates that were compared
    seeds: tuple[int, ...]
    #: why there is no gap
    reason: str | None


def compare_with_log(series: Sequence[Series], incumbent: str, logged_reason: str | None) -> list[Fidelity]:
    """Compare every pooled figure of the incumbent with that of the logged choices.

    Args:
        logged_reason: why the logged choices could not be measured at all.
    """
    replayed, logged = _pooled(series, incumbent), _pooled(series, LOGGED)
    known = sum(name in logged for name in replayed)
    return [_compare(one, logged.get(name), logged_reason, LEVEL / max(1, known)) for name, one in replayed.items()]


def _pooled(series: Sequence[Series], policy: str) -> Mapping[tuple[str, str | None], Series]:
    return {one.name: one for one in series if one.policy == policy and not one.by}


def _compare(replayed: Series, logged: Series | None, logged_reason: str | None, level: float) -> Fidelity:
    figure = math.nan if logged is None else logged.value()
    values = np.array([replayed.value_of_seed(seed) for seed in replayed.seeds])
    mean, half = float(values.mean()), _reach(values, level)
    low, high = mean - half, mean + half
    gap = float(max(low - figure, figure - high, 0.0)) if math.isfinite(figure - mean) else math.nan
    reason = None
    if math.isnan(gap):
        unmeasured = logged_reason or "it cannot be computed from the logged brokers"
        reason = unmeasured if logged is None else "there is nothing to measure"
    return Fidelity(*replayed.name, figure, mean, low, high, gap, replayed.seeds, reason)


def _reach(values: np.ndarray, level: float) -> float:
    """Return how far from the mean one more replicate lies with this probability of lying farther (Student's t)."""
    n = len(values)
    if n < 2 or np.isnan(values).any():
        return 0.0
    return float(special.stdtrit(n - 1, 1.0 - level / 2) * np.std(values, ddof=1) * math.sqrt(1.0 + 1.0 / n))
