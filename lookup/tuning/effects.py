"""Tell settings that matter from those that do not: by what all values of one did, and by what it does alone.

A setting matters if a figure of the first batch depends on its value, by the ranks of both, if taking its change back
loses or gains what is no luck, or if it is among the changes that are recommended first. The first two rarely err,
whatever the number of settings.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Iterator, Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.special import fdtrc, stdtrit
from scipy.stats import rankdata

from lookup.tuning.racing import Aims, Samples, Standing, figure_name, gain_over
from lookup.tuning.search import Candidate, Search
from lookup.tuning.space import Axis, Space

__all__ = ["settings_document", "taken_back"]

#: Probability that among settings without any effect one is taken for one with an effect, for each of the two ways.
_LEVEL = 0.01

#: More degrees of freedom change nothing, and JSON has no infinity.
_MOST_FREEDOM = 1_000.0

#: Of so many ranks any order is as unlikely as one may ask for; and what is left of them by rounding, as a share.
_MANY, _ROUNDING = 20, 1e-12

_Floats = NDArray[np.float64]
#: What a figure gains if a change is taken back: the gain, up is better, its standard error, and degrees of freedom.
_Gains = Mapping[str, Sequence[float]]


def taken_back(
    samples: Samples, batch: Sequence[Candidate], names: Mapping[int, str], aims: Aims
) -> dict[int, dict[str, list[float]]]:
    """Return by candidate of a batch that takes one change back what each figure gains by it.

    Args:
        samples: pooled figures of the batch.
        names: of the policies of all that were replayed together, by number.
    """
    by_number = {one.number: one for one in batch}
    found: dict[int, dict[str, list[float]]] = {}
    for one in batch:
        base = by_number.get(one.of or 0)
        if base is None or len(base.point.changes) - len(one.point.changes) != 1:
            continue
        for name in aims.figures:
            gain = gain_over(samples, names[one.number], names[base.number], name, aims)
            if gain is not None and math.isfinite(gain[0]) and gain[1].error:
                freedom = min(gain[1].freedom, _MOST_FREEDOM)
                found.setdefault(one.number, {})[figure_name(name)] = [gain[0], gain[1].error, freedom]
    return found


def settings_document(
    search: Search,
    first: Mapping[int, Standing],
    batches: Sequence[Mapping[int, _Gains]],
    recommended: Collection[tuple[str, str]],
) -> list[dict[str, Any]]:
    """Return every setting that was varied: where, its value today, its scale, and whether it mattered.

    None for one of which there are too few candidates to tell.

    Args:
        first: how candidates stood in the first batch, whose values lie all over the spaces with the same luck.
        batches: what `taken_back` returned of each.
        recommended: spaces and keys of the changes that are recommended first.
    """
    places = [(space, axis) for space in search.spaces.values() for axis in space.axes]
    # Bonferroni's rule: the probability holds over all settings together.
    level = _LEVEL / len(places)
    told = {place: False for batch in batches for place in _places(search, batch)}
    told |= {place: True for batch in batches for place in _told(search, batch)} | dict.fromkeys(recommended, True)
    return [
        {
            "space": space.name,
            "key": axis.key,
            "today": space.today(axis),
            "scale": "choices" if axis.choices else "log" if axis.is_log else "linear",
            "matters": _matters(told.get((space.name, axis.key)), _chance(axis, space, search, first), level),
        }
        for space, axis in places
    ]


def _matters(is_told: bool | None, chance: tuple[float, float], level: float) -> bool | None:
    """Return whether a setting mattered, None if neither way could have shown it."""
    seen, least = chance
    if is_told or seen <= level:
        return True
    return None if is_told is None and least > level else False


def _places(search: Search, batch: Mapping[int, _Gains]) -> Iterator[tuple[str, str]]:
    for number in batch:
        candidate = search.candidates[number]
        changes = search.candidates[candidate.of or 0].point.changes
        yield from ((candidate.point.space, key) for key in changes if key not in candidate.point.changes)


def _told(search: Search, batch: Mapping[int, _Gains]) -> Iterator[tuple[str, str]]:
    """Yield space and key of each change that makes a difference by itself.

    A few replicates say little about how much one difference varies; together those of a batch say it.
    """
    gains = [(number, name, *gain) for number, figures in batch.items() for name, gain in figures.items()]
    for name in dict.fromkeys(name for _, name, *_ in gains):
        numbers, values, errors, freedoms = zip(*([n, *gain] for n, of, *gain in gains if of == name), strict=True)
        freedom = sum(freedoms)
        error = math.sqrt(sum(f * e**2 for e, f in zip(errors, freedoms, strict=True)) / freedom)
        half = float(stdtrit(freedom, 1.0 - _LEVEL / 2 / len(gains))) * error
        yield from _places(
            search, {number: {} for number, value in zip(numbers, values, strict=True) if abs(value) > half}
        )


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
    if is_choice:
        kinds = list(dict.fromkeys(map(repr, values)))
        columns = np.array([[repr(value) == kind for kind in kinds] for value in values], dtype=float)
    else:
        ranks = rankdata(values) / len(values) - 0.5
        columns = np.column_stack([np.ones_like(ranks), ranks, ranks**2])
    response = rankdata(figures)
    fitted, _, rank, _ = np.linalg.lstsq(columns, response, rcond=None)
    total = float(((response - response.mean()) ** 2).sum())
    left = float(((response - columns @ fitted) ** 2).sum())
    explained, free = int(rank) - 1, len(response) - int(rank)
    if not total or explained < 1 or free < 1:
        return 1.0
    ratio = (total - left) / explained / max(left / free, _ROUNDING * total)
    return max(_least(len(response)), float(fdtrc(explained, free, ratio)))


def _least(count: int) -> float:
    """Return the probability of one order of so many ranks, and of its reverse: none that fits is less likely."""
    return 2.0 / math.factorial(min(count, _MANY)) if count > 1 else 1.0
