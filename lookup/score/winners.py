"""Say what luck does for the winner: by how much the best of several equals would look better than they are."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from scipy import special

from lookup.replay.outcome import Number
from lookup.score.luck import Estimate, spread
from lookup.score.verdict import Verdict

__all__ = ["Winner", "winners"]


@dataclass(frozen=True, slots=True)
class Winner:
    """The advantage that luck of the placement gives the best of some candidates in one figure."""

    metric: str
    key: str | None
    candidates: int
    #: the mean over the candidates, in the metric's unit
    value: Number
    #: how far the best of so many equals would be from that on average, in the metric's unit
    advantage: Number


def winners(estimates: Sequence[Estimate], verdicts: Sequence[Verdict]) -> list[Winner]:
    """Return the advantage in every figure by which several candidates are judged, in the order of the estimates.

    The candidates are taken for equals whose means over replicates vary as theirs do on average. Source of the mean
    of the largest of n normal numbers: Blom, Statistical Estimates and Transformed Beta-Variables (Wiley, 1958).
    """
    judged = {(verdict.policy, *verdict.name) for verdict in verdicts if not math.isnan(verdict.p_value)}
    of_name: dict[tuple[str, str | None], list[Estimate]] = {}
    for figure in estimates:
        if figure.sample is not None and (figure.series.policy, *figure.series.name) in judged:
            of_name.setdefault(figure.series.name, []).append(figure)
    found = []
    for name, figures in of_name.items():
        n = len(figures)
        samples = [figure.sample for figure in figures if figure.sample is not None]
        variance = sum(spread(one, "log").variances["placement"] for one in samples) / n
        if n > 1 and variance > 0:
            largest = float(special.ndtri((n - 0.375) / (n + 0.25)))
            value = sum(figure.value for figure in figures) / n
            found.append(Winner(*name, n, value, largest * math.sqrt(variance)))
    return found
