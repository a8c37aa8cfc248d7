"""Resampling: which bundles, which cells of time and which seeds each resample drew, and totals over them.

All policies meet the same draws, so that differences between policies are paired. Bundles are drawn with replacement
within their cluster; time is drawn in circular blocks, the same blocks for all clusters. Draws depend on the
evaluation's first seed and the names of clusters, on nothing else.
"""

from __future__ import annotations

import zlib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from lookup.score.series import Series

__all__ = ["Draws", "Resampling", "draw", "interval", "totals"]

FloatArray = NDArray[np.float64]
IndexArray = NDArray[np.int64]
CountArray = NDArray[np.uint8]

#: Entries of one chunk of draws or products: a few MB, which stay in the cache.
_CHUNK = 1 << 19


@dataclass(frozen=True, slots=True)
class Resampling:
    """How to resample."""

    resamples: int = 2000
    #: length of a block of time, seconds
    block_s: int = 3600
    #: length of a cell of the balance metrics, seconds
    cell_s: int = 3600
    #: the evaluation's first seed
    seed: int = 1


@dataclass(frozen=True, eq=False)
class Draws:
    """How often each resample drew each unit."""

    how: Resampling
    #: units that have figures, by cluster: shape (n_drawn,), ascending; other bundles are not drawn
    bundles: Mapping[str, IndexArray]
    #: by cluster: shape (resamples, n_drawn)
    bundle_counts: Mapping[str, CountArray]
    #: start of every cell any cluster has, µs, shape (n_cells,)
    cells: IndexArray
    #: shape (resamples, n_cells)
    cell_counts: CountArray

    @property
    def cells_per_block(self) -> int:
        """Return how many cells a block has, at least one and at most all."""
        return _cells_per_block(self.how, len(self.cells))

    def seed_shares(self, seeds: int) -> FloatArray:
        """Return how much each of so many seeds counts in each resample, shape (resamples, seeds), rows add up to 1."""
        rng = _generator(self.how, "seeds")
        return _draw(rng, self.how.resamples, seeds).astype(np.float64) / seeds


def draw(series: Sequence[Series], how: Resampling) -> Draws:
    """Draw for everything that some series were measured with."""
    bundles = _active(series)
    cells = _cells(series, how)
    counts = {name: _draw(_generator(how, name), how.resamples, len(rows)) for name, rows in bundles.items()}
    return Draws(how, bundles, counts, cells, _draw_blocks(how, len(cells)))


def totals(series: Sequence[Series], cluster: str, draws: Draws) -> list[dict[int, FloatArray]]:
    """Total the sums of some series in one cluster over each resample.

    Args:
        series: all of one unit of resampling, bundle or time.

    Returns:
        For each series, by seed: shape (resamples, k); a seed without figures in the cluster is absent.
    """
    found = [(place, seed) for place, one in enumerate(series) for seed in one.seeds if (cluster, seed) in one.parts]
    answer: list[dict[int, FloatArray]] = [{} for _ in series]
    if found:
        units = [_units(series[place], (cluster, seed), draws) for place, seed in found]
        counts = _counts(series[found[0][0]], cluster, draws)
        for (place, seed), total in zip(found, _products(counts, units), strict=True):
            answer[place][seed] = total
    return answer


def interval(samples: FloatArray, observed: float) -> tuple[float, float]:
    """Return the 95 % percentile interval of resampled values; it contains the observed value.

    NaN where the observed value or more than half of the samples are: resamples that miss every unit with figures.
    """
    known = samples[~np.isnan(samples)]
    if np.isnan(observed) or 2 * len(known) < len(samples):
        return float("nan"), float("nan")
    low, high = np.percentile(known, [2.5, 97.5])
    return min(float(low), observed), max(float(high), observed)


def _generator(how: Resampling, purpose: str) -> np.random.Generator:
    """Return dice of their own for each purpose, so that one more cluster does not change another's draws."""
    return np.random.default_rng([abs(how.seed), zlib.crc32(purpose.encode())])


def _draw(rng: np.random.Generator, resamples: int, units: int) -> CountArray:
    """Draw as many units as there are, with replacement, shape (resamples, units)."""
    # A unit drawn more than 255 times of n has a probability below 1 / 255!: eight bits are enough.
    counts = np.zeros((resamples, units), dtype=np.uint8)
    for rows in _chunks(resamples, units):
        counts[rows] = _occurrences(rng.integers(units, size=(rows.stop - rows.start, units)), units)
    return counts


def _draw_blocks(how: Resampling, cells: int) -> CountArray:
    """Draw circular blocks of neighbouring cells until all places are filled, shape (resamples, cells)."""
    if not cells:
        return np.zeros((how.resamples, 0), dtype=np.uint8)
    length = _cells_per_block(how, cells)
    starts = _generator(how, "time").integers(cells, size=(how.resamples, -(-cells // length)))
    drawn = (starts[:, :, None] + np.arange(length)).reshape(how.resamples, -1)[:, :cells] % cells
    return _occurrences(drawn, cells)


def _occurrences(drawn: IndexArray, units: int) -> CountArray:
    """Count how often each unit occurs in each row, shape (rows, units)."""
    rows = len(drawn)
    flat = (drawn + np.arange(rows)[:, None] * units).ravel()
    return np.bincount(flat, minlength=rows * units).reshape(rows, units).astype(np.uint8)


def _cells_per_block(how: Resampling, cells: int) -> int:
    return min(max(1, round(how.block_s / how.cell_s)), max(cells, 1))


def _chunks(resamples: int, width: int) -> Iterator[slice]:
    step = max(1, _CHUNK // max(width, 1))
    return (slice(start, min(start + step, resamples)) for start in range(0, resamples, step))


def _active(series: Sequence[Series]) -> dict[str, IndexArray]:
    """Find the bundles with any figure in any series, by cluster."""
    masks: dict[str, NDArray[np.bool_]] = {}
    for one in series:
        if one.metric.resample == "bundle" and not one.by:
            for (cluster, _), part in one.parts.items():
                masks.setdefault(cluster, np.zeros(len(part.sums), dtype=np.bool_))
                masks[cluster] |= part.sums.any(axis=1)
    return {cluster: np.flatnonzero(masks[cluster]) for cluster in sorted(masks)}


def _cells(series: Sequence[Series], how: Resampling) -> IndexArray:
    """Find the cells that any cluster has; what none has (clusters years apart) is not drawn."""
    starts = [
        part.start_us + np.arange(len(part.sums)) * (how.cell_s * 1_000_000)
        for one in series
        if one.metric.resample == "time"
        for part in one.parts.values()
    ]
    return np.unique(np.concatenate(starts)) if starts else np.zeros(0, dtype=np.int64)


def _counts(series: Series, cluster: str, draws: Draws) -> CountArray:
    return draws.bundle_counts[cluster] if series.metric.resample == "bundle" else draws.cell_counts


def _units(series: Series, part: tuple[str, int], draws: Draws) -> FloatArray:
    """Return a part's sums by drawn unit, shape (n_drawn, k)."""
    sums = series.parts[part]
    if series.metric.resample == "bundle":
        return sums.sums[draws.bundles[part[0]]]
    units = np.zeros((len(draws.cells), sums.sums.shape[1]))
    first = int(np.searchsorted(draws.cells, sums.start_us))
    units[first : first + len(sums.sums)] = sums.sums
    return units


def _products(counts: CountArray, units: Sequence[FloatArray]) -> list[FloatArray]:
    """Multiply draws with sums, shape (resamples, k) for each (n_drawn, k).

    Columns that occur more than once, as the number of lookups does under every policy, are multiplied once; that also
    makes equal sums give equal totals to the last bit.
    """
    columns, places = _distinct(units)
    rows = np.flatnonzero(columns.any(axis=1))
    product = np.empty((len(counts), columns.shape[1]))
    held = columns[rows]
    for chunk in _chunks(len(counts), len(rows)):
        product[chunk] = counts[chunk][:, rows].astype(np.float64) @ held
    return [product[:, place] for place in places]


def _distinct(units: Sequence[FloatArray]) -> tuple[FloatArray, list[IndexArray]]:
    """Return the different columns, shape (n_drawn, n_different), and for each array the places of its own."""
    known: dict[bytes, int] = {}
    different: list[FloatArray] = []
    places = []
    for array in units:
        own = []
        for column in np.ascontiguousarray(array.T):
            place = known.setdefault(column.tobytes(), len(different))
            if place == len(different):
                different.append(column)
            own.append(place)
        places.append(np.array(own, dtype=np.int64))
    return np.stack(different, axis=1), places
