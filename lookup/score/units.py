"""How many independent observations a comparison rests on: bundles or blocks of time, never lookups."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from lookup.replay.quantities import quantity
from lookup.score.bootstrap import Draws
from lookup.score.series import Series

__all__ = ["count_units", "units_text"]

BoolArray = NDArray[np.bool_]


def count_units(a: Series, b: Series, draws: Draws) -> int:
    """Count the units with figures in either of two series of one metric, over all clusters.

    Where a metric is a total (a single column) every unit that was drawn is an observation, zeros included: a bundle
    that did not move says something about moves. Where it is a quotient, units without figures say nothing.
    """
    if a.metric.resample == "time":
        cells = {cell for one in (a, b) for cell in _cells(one, draws)}
        return -(-len(cells) // draws.cells_per_block)
    return sum(_bundles(a, b, cluster, draws) for cluster in sorted({*a.clusters, *b.clusters}))


def units_text(series: Series, units: int) -> str:
    """Write how many units of resampling there are: `7 bundles`, `1 block of time`."""
    if series.metric.resample == "time":
        return quantity(units, "block of time", "blocks of time")
    return quantity(units, "bundle")


def _bundles(a: Series, b: Series, cluster: str, draws: Draws) -> int:
    parts = [part.sums for one in (a, b) for (name, _), part in one.parts.items() if name == cluster]
    if parts[0].shape[1] == 1:
        return len(draws.bundles[cluster])
    return int(np.logical_or.reduce([sums.any(axis=1) for sums in parts]).sum())


def _cells(series: Series, draws: Draws) -> list[int]:
    """Return the starts of the cells with figures, µs."""
    found: list[int] = []
    for part in series.parts.values():
        places = np.flatnonzero(part.sums.any(axis=1))
        found += (part.start_us + places * draws.how.cell_s * 1_000_000).tolist()
    return found
