"""Decide which candidates continue, which are undominated, and of these the ones to recommend.

A candidate dominates another if it is at least as good in all objectives, and better in one. Between candidates of one
batch the difference is computed unit by unit, as for a verdict, and the loser is dropped once it is certain.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import MISSING, dataclass, fields, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from lookup.score.figures import Figure, blank_figure, figures_of
from lookup.score.luck import Spread, spread
from lookup.score.metrics.network import NetworkCost
from lookup.score.metrics.totals import ChangeTotal
from lookup.score.rules import Name
from lookup.score.scoring import Scored
from lookup.score.units import Sample, minus

__all__ = [
    "ANSWERED", "MOVES", "Aims", "Samples", "Standing", "as_good", "beaten", "figure_name", "gain_over",
    "leaders", "standings_of", "totals",
]  # fmt: skip

#: Figures that must not get worse, and the costs of a change, which are always considered.
ANSWERED: Name = ("answered_ratio", None)
MOVES: Name = ("moves", None)
#: Columns of a figure in the unit of its value.
_AMOUNTS = (
    "value low high at_best change change_low change_high margin log_low log_high demand_low demand_high best_by_luck "
    "logged replay_low replay_high gap"
).split()
#: A figure without the columns of its uncertainty.
_NO_WIDTH: Mapping[str, Any] = {
    column.name: column.default
    for column in fields(Figure)
    if column.default is not MISSING and column.name not in ("against", "at_best", "change", "logged")
} | {"low": math.nan, "high": math.nan}
#: Figures of a batch in every replicate, by policy, metric and key.
Samples = Mapping[tuple[str, str, str | None], Sample | None]


def figure_name(name: Name) -> str:
    """Format a name as `metric` or `metric:key`."""
    metric, key = name
    return metric if key is None else f"{metric}:{key}"


@dataclass(frozen=True)
class Aims:
    """The aims of a search, by metric and key."""

    objectives: tuple[Name, ...]
    prices: tuple[Name, ...]
    #: how many times the incumbent's figure a candidate's may be
    limits: Mapping[Name, float]
    #: loss of an objective that is none, as a share of the incumbent's figure
    tolerance: float
    #: figures of which more is better
    rising: frozenset[Name]
    #: figures that are totals over time, which a search has by the day, for any length of its replays
    per_day: frozenset[Name] = frozenset()

    @property
    def figures(self) -> tuple[Name, ...]:
        """The figures by which candidates are compared, each once."""
        return tuple(dict.fromkeys([*self.objectives, *self.prices]))

    def turn_upward(self, name: Name, standing: Standing) -> float:
        """Turn a figure so that up is better, NaN if it is unknown."""
        return standing.figures[name].value * (1.0 if name in self.rising else -1.0)

    @property
    def judged(self) -> tuple[Name, ...]:
        """The figures that decide a recommendation, each once. Every further figure makes a decision harder."""
        return tuple(dict.fromkeys([*self.figures, *self.limits]))

    @property
    def shown(self) -> tuple[Name, ...]:
        """The figures that are shown, each once."""
        return tuple(dict.fromkeys([*self.judged, ANSWERED, MOVES]))


@dataclass(frozen=True)
class Standing:
    """The state of a candidate after a batch."""

    figures: Mapping[Name, Figure]
    #: why it cannot act on this log, None if it can
    idle: str | None = None

    @property
    def values(self) -> list[float]:
        """The figures themselves."""
        return [figure.value for figure in self.figures.values()]

    def without_width(self) -> Standing:
        """Copy it without the data of intervals."""
        return replace(self, figures={name: replace(figure, **_NO_WIDTH) for name, figure in self.figures.items()})


def totals(scored: Scored, names: Iterable[Name]) -> frozenset[Name]:
    """Select the figures among some that grow with the scored time."""
    return frozenset(name for name in names if isinstance(scored.metric[name[0]], ChangeTotal | NetworkCost))


def standings_of(scored: Scored, policies: Iterable[str], aims: Aims, *, days: float) -> dict[str, Standing]:
    """Compute the state of policies after an evaluation.

    Args:
        days: number of scored days.
    """
    pooled = {(row.policy, *row.name): row for row in figures_of(scored) if row.scope == "all clusters"}

    def figure_of(policy: str, name: Name) -> Figure:
        figure = pooled.get((policy, *name)) or blank_figure(policy, scored.metric[name[0]], name[1])
        if name not in aims.per_day:
            return figure
        return replace(figure, **{column: getattr(figure, column) / days for column in _AMOUNTS})

    return {
        policy: Standing({name: figure_of(policy, name) for name in aims.shown}, scored.cannot_act.get(policy))
        for policy in policies
    }


def beaten(samples: Samples, standings: Mapping[str, Standing], aims: Aims) -> dict[str, str]:
    """Find by policy another policy with certain dominance. Undominated policies are left out."""
    policies = list(standings)
    values = np.array([[aims.turn_upward(name, standing) for name in aims.figures] for standing in standings.values()])
    first, dominators = [policies[number] for number in _find_undominated(values)], {}
    for policy in policies:
        by = next((other for other in first if other != policy and _dominates(samples, other, policy, aims)), None)
        if by is not None:
            dominators[policy] = by
    return dominators


def as_good(samples: Samples, names: Mapping[int, str], aims: Aims) -> dict[int, list[int]]:
    """Find by candidate the others that are not significantly worse in any objective.

    A loss within the tolerance does not count, nor do prices, as for a recommendation that gains.

    Args:
        names: names of the policies by number, with the incumbent as 0.
    """

    def is_as_good(policy: str, other: str, name: Name) -> bool:
        gain, today = gain_over(samples, policy, other, name, aims), samples.get((names[0], *name))
        # A gain that is unknown, NaN, is not as good.
        return bool(gain and today and gain[0] >= -max(gain[1].half_width(), aims.tolerance * abs(today.mean)))

    def others_as_good(number: int) -> Iterator[int]:
        for rival in names.keys() - {0, number}:
            if all(is_as_good(names[rival], names[number], name) for name in aims.objectives):
                yield rival

    return {number: sorted(others_as_good(number)) for number in names if number}


def leaders(values: NDArray[np.float64], count: int) -> list[int]:
    """Choose at most so many candidates, first undominated ones, then those dominated only by these, and so on.

    Of a front that is too large, its ends and evenly spaced candidates between are chosen, by the first figure.

    Args:
        values: shape (n_candidates, n_figures), up is better.
    """
    rest, picks = list(range(len(values))), list[int]()
    while rest and len(picks) < count:
        front = [rest[place] for place in _find_undominated(values[rest])]
        front.sort(key=lambda number: (*(-values[number]).tolist(), number))
        room = min(count - len(picks), len(front))
        places = np.linspace(0, len(front) - 1, room).round().astype(int) if room > 1 else np.zeros(1, int)
        picks += [front[place] for place in places.tolist()]
        rest = [number for number in rest if number not in front]
    return picks


def _find_undominated(values: NDArray[np.float64]) -> list[int]:
    at_least = (values[:, None, :] >= values[None, :, :]).all(axis=2)
    above = (values[:, None, :] > values[None, :, :]).any(axis=2)
    places: list[int] = np.flatnonzero(~(at_least & above).any(axis=0)).tolist()
    return places


def _dominates(samples: Samples, a: str, b: str, aims: Aims) -> bool:
    is_certain = False
    for name in aims.figures:
        gain = gain_over(samples, a, b, name, aims)
        # Unknown values, as NaN, are not a reason to drop a candidate.
        if gain is None or not gain[0] >= 0:
            return False
        is_certain |= gain[0] > gain[1].half_width()
    return is_certain


def gain_over(samples: Samples, a: str, b: str, name: Name, aims: Aims) -> tuple[float, Spread] | None:
    """Compute the gain of policy a over b in a figure, up is better, and its variation, None if that is unknown."""
    first, other = samples.get((a, *name)), samples.get((b, *name))
    if first is None or other is None or first.strata is None or other.strata is None:
        return None
    sign = 1.0 if name in aims.rising else -1.0
    return sign * (first.mean - other.mean), spread(minus(first, other))
