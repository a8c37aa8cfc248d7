"""Combine neighbouring cells of time in blocks that are long enough not to count slow drift repeatedly."""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

__all__ = ["block_length", "in_blocks"]

FloatArray = NDArray[np.float64]

#: A series has at most this many blocks, and at least the minimum, since the spread of fewer could not be known.
_MOST, _LEAST = 6, 3
#: Waves of half a length and of one, in half periods, and the following ones for comparison.
_SLOW, _NEXT = 2, 8
#: Ratios of the power of slow waves to that of the next ones, above which they may be a drift, and are a drift. Noise
#: exceeds the first in one of eight cases, and the second in one of eighty.
_SUSPECT, _DRIFT = 3.0, 10.0


def block_length(series: FloatArray, least: int) -> tuple[int, bool]:
    """Compute the number of neighbouring cells in one observation, and whether the series is too short for it.

    Politis and White's rule is for the smallest error of a variance. The error of a test is mostly bias, so the
    length is doubled here. Drift over the whole length of a series is not visible in its autocorrelation, so
    its slowest waves are examined as well. `tests/acceptance/calibration` measures both.

    Args:
        series: one number for each cell, shape (n_cells,).
        least: lower bound of the result.
    """
    n = len(series)
    longest = max(least, n // _LEAST)
    length, slowness = _compute_length(series), _compute_slowness(series)
    target = math.ceil(2 * length) if length > 1 else 1
    is_short = target > longest or slowness > _DRIFT
    if slowness > _SUSPECT:
        target = longest
    return min(longest, max(least, math.ceil(n / _MOST), target)), is_short


def in_blocks(parts: FloatArray, block: int) -> FloatArray:
    """Add up neighbours, `block` of them from every cell on, around the end, shape (n_replicates, n_cells)."""
    if block == 1:
        return parts
    around = np.concatenate([parts, parts[:, : block - 1]], axis=1)
    sums = np.cumsum(np.pad(around, ((0, 0), (1, 0))), axis=1)
    neighbours: FloatArray = sums[:, block:] - sums[:, :-block]
    return neighbours


def _compute_length(series: FloatArray) -> float:
    """Compute the length of circular blocks for a mean's variance with the smallest error, 1.0 for white noise.

    Sources: Politis and White, Automatic Block-Length Selection for the Dependent Bootstrap, Econometric Reviews 23
    (2004), with the correction of Patton, Politis and White, ibid. 28 (2009).
    """
    n = len(series)
    centred = series - series.mean()
    run = max(5, math.ceil(math.sqrt(math.log10(n)))) if n > 1 else 0
    most = math.ceil(math.sqrt(n)) + run
    lags = np.arange(min(n, most + run + 1))
    covariances = np.array([float((centred[: n - lag] * centred[lag:]).sum()) / n for lag in lags])
    if covariances[0] <= 0:
        return 1.0
    is_large = np.abs(covariances[1:] / covariances[0]) >= 2 * math.sqrt(math.log10(n) / n)
    # The last lag before a run of small correlations, or the last large one without such a run.
    quiet = (lag for lag in range(most) if not is_large[lag : lag + run].any())
    last = next(quiet, int(np.flatnonzero(is_large).max(initial=-1)) + 1)
    if not last:
        return 1.0
    width = min(2 * last, len(lags) - 1)
    used = np.arange(1, width + 1)
    flat = np.minimum(1.0, 2 * (1 - used / width)) * covariances[1 : width + 1]
    density = covariances[0] + 2 * flat.sum()
    slope = 2 * float((used * flat).sum())
    # A density near zero, or below, is that of a series whose swings cancel out within the lags looked at.
    return float(min(n, (1.5 * slope**2 / density**2 * n) ** (1 / 3))) if density > 0 else float(n)


def _compute_slowness(series: FloatArray) -> float:
    """Compute the power of a series' slowest whole-length cosines relative to the next ones, 0.0 for a short series.

    Source: Müller and Watson, Testing Models of Low-Frequency Variability, Econometrica 76 (2008).
    """
    n = len(series)
    waves = np.arange(1, min(_NEXT, n - 1) + 1)
    if len(waves) <= _SLOW:
        return 0.0
    power = (np.cos(np.pi * waves[:, None] * (np.arange(n) + 0.5) / n) * series).sum(axis=1) ** 2
    slow, others = float(power[:_SLOW].mean()), float(power[_SLOW:].mean())
    return slow / others if others else math.inf if slow else 0.0
