"""Separate settings that matter from those that do not: by the figures that each value of one led to.

A setting matters if a figure of the first batch depends on its value, by the ranks of both, or if it is among the
changes that are recommended first, from which the search has taken all others back. The first rarely errs, whatever
the number of settings.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from lookup.tuning.racing import Standing
from lookup.tuning.search import Search
from lookup.tuning.space import Axis, Space

__all__ = ["settings_document"]

#: Probability that among settings without any effect one is taken for one with an effect.
_LEVEL = 0.01

#: Of so many ranks any order is as unlikely as one may ask for; and what is left of them by rounding, as a share.
_MANY, _ROUNDING = 20, 1e-12

_Floats = NDArray[np.float64]


def settings_document(
    search: Search, first: Mapping[int, Standing], recommended: Collection[tuple[str, str]]
) -> list[dict[str, Any]]:
    """Return every setting that was varied: where, its value today, its scale, and whether it mattered.

    None for one of which there are too few candidates to tell.

    Args:
        first: how candidates stood in the first batch, whose values lie all over the spaces with the same luck.
        recommended: spaces and keys of the changes that are recommended first.
    """
    places = [(space, axis) for space in search.spaces.values() for axis in space.axes]
    # Bonferroni's rule: the probability holds over all settings together.
    level = _LEVEL / len(places)
    found = []
    for space, axis in places:
        seen, least = _chance(axis, space, search, first)
        matters = seen <= level or (space.name, axis.key) in recommended
        found.append(
            {
                "space": space.name,
                "key": axis.key,
                "today": space.today(axis),
                "scale": "choices" if axis.choices else "log" if axis.is_log else "linear",
                "matters": None if not matters and least > level else matters,
            }
        )
    return found


def _chance(axis: Axis, space: Space, search: Search, first: Mapping[int, Standing]) -> tuple[float, float]:
    """Return how likely a figure depends as much on a setting that does nothing, and how likely it does so at least."""
    aims = search.aims
    if aims is None:
        return 1.0, 1.0
    known = [
        (value, standing)
        for candidate in search.candidates
        if candidate.point.space == space.name
        and (standing := first.get(candidate.number)) is not None
        and (value := candidate.point.changes.get(axis.key, space.today(axis))) is not None
    ]
    chances = [1.0]
    for name in aims.figures:
        figures = np.array([standing.figures[name].delta for _, standing in known])
        if known and np.isfinite(figures).all():
            chances.append(_dependence([value for value, _ in known], figures, is_choice=bool(axis.choices)))
    seen, least = min(chances), _least(len(known))
    return min(1.0, seen * len(aims.figures)), min(1.0, least * len(aims.figures))


def _dependence(values: Sequence[Any], figures: _Floats, *, is_choice: bool) -> float:
    """Return the probability of such a dependence between two that have none, by the test of F on ranks.

    A number may act in one direction or be best somewhere between; each choice may do anything.
    """
    from scipy import special, stats  # noqa: PLC0415  as in `space`

    if is_choice:
        kinds = list(dict.fromkeys(map(repr, values)))
        columns = np.array([[repr(value) == kind for kind in kinds] for value in values], dtype=float)
    else:
        ranks = stats.rankdata(values) / len(values) - 0.5
        columns = np.column_stack([np.ones_like(ranks), ranks, ranks**2])
    response = stats.rankdata(figures)
    fitted, _, rank, _ = np.linalg.lstsq(columns, response, rcond=None)
    total = float(((response - response.mean()) ** 2).sum())
    left = float(((response - columns @ fitted) ** 2).sum())
    explained, free = int(rank) - 1, len(response) - int(rank)
    if not total or explained < 1 or free < 1:
        return 1.0
    ratio = (total - left) / explained / max(left / free, _ROUNDING * total)
    return max(_least(len(response)), float(special.fdtrc(explained, free, ratio)))


def _least(count: int) -> float:
    """Return the probability of one order of so many ranks, and of its reverse: none that fits is less likely."""
    return 2.0 / math.factorial(min(count, _MANY)) if count > 1 else 1.0
