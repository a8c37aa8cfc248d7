"""Estimate figures with intervals from their variance over replicates, over units of demand and over events.

A replicate has a new seed and a new salt. Replicates are crossed with units and with events, so every unit
occurs in every replicate. The derivation is in `docs/scoring.md`.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import count

import numpy as np
from numpy.typing import NDArray
from scipy import special

from lookup.engine.measuring import bounds_of
from lookup.hooks import Luck, Question
from lookup.model.evidence import effective
from lookup.score.blocks import block_length, in_blocks
from lookup.score.series import Series
from lookup.score.units import Layout, Sample, Stratum, sample

__all__ = [
    "LEVEL", "Estimate", "Spread", "around", "estimate", "least_chance", "pool_estimates", "quantile", "replicates_for",
    "spread",
]  # fmt: skip

FloatArray = NDArray[np.float64]

#: Probability that an interval misses its true value.
LEVEL = 0.05


def quantile(freedom: float, level: float = LEVEL) -> float:
    """Compute the half width of an interval by its miss probability, in standard errors, by Student's t."""
    return float(special.stdtrit(freedom, 1.0 - level / 2))


@dataclass(frozen=True, slots=True)
class Spread:
    """The variance of a figure's mean over replicates."""

    #: by source, in the figure's unit squared, 0 if the figure does not vary with it
    variances: Mapping[Luck, float] = field(default_factory=dict)
    #: degrees of freedom of their sum (Satterthwaite)
    freedom: float = math.inf
    #: smallest probability that the number of replicates supports
    least: float = 0.0
    #: whether the drift of the figure is as slow as the log is long, so that it does not apply to other hours
    is_drifting: bool = False

    @property
    def error(self) -> float:
        """The standard error."""
        return math.sqrt(sum(self.variances.values()))

    @property
    def main_source(self) -> Luck:
        """The source with the largest variance."""
        return max(self.variances, key=lambda source: self.variances[source])

    def half_width(self, level: float = LEVEL) -> float:
        """Compute the half width of the interval with this miss probability, by Student's t."""
        return quantile(self.freedom, level) * self.error if self.error else 0.0

    def chance(self, delta: float) -> float:
        """Compute the two-sided probability of a difference at least as large as this one between equals."""
        if not self.error:
            return self.least if delta else 1.0
        return max(self.least, float(2 * special.stdtr(self.freedom, -abs(delta) / self.error)))


@dataclass(frozen=True, eq=False)
class Estimate:
    """The value of one series in one cluster, or pooled, with its interval."""

    series: Series
    #: None for all clusters pooled
    cluster: str | None
    #: the mean over replicates, NaN if there is nothing to measure
    value: float
    #: NaN if there is no interval
    low: float = math.nan
    high: float = math.nan
    #: the figure in every replicate, kept only for pooled estimates of the whole demand
    sample: Sample | None = None


def pool_estimates(estimates: Iterable[Estimate]) -> dict[tuple[str, str, str | None], Estimate]:
    """Select the estimates over all clusters and the whole demand, by policy, metric and key."""
    whole = (figure for figure in estimates if figure.cluster is None and not figure.series.by)
    return {(figure.series.policy, *figure.series.name): figure for figure in whole}


def estimate(series: Sequence[Series], layout: Layout) -> list[Estimate]:
    """Estimate every series in the order given, each pooled first and then by cluster."""
    estimates = []
    for figure in series:
        bounds = bounds_of(figure.metric)
        if bounds is None:
            # A function of sums that are never negative is not negative either.
            is_positive = all((part.sums >= 0).all() for part in figure.parts.values())
            bounds = (0.0 if is_positive else -math.inf, math.inf)
        for cluster in (None, *figure.clusters):
            draws = sample(figure, layout, cluster)
            value = draws.mean
            # Verdicts compare only pooled figures, and the samples of all others would fill the memory of a long run.
            pooled = draws if cluster is None and not figure.by else None
            low = high = math.nan
            if draws.has_spread and not math.isnan(value):
                low, high = around(value, spread(draws).half_width(), bounds)
            estimates.append(Estimate(figure, cluster, value, low, high, pooled))
    return estimates


def around(value: float, half: float, bounds: tuple[float, float]) -> tuple[float, float]:
    """Compute the interval around a value, with this half width if the bounds are far away.

    Towards each bound the scale is linear for the first half of the way, and logarithmic from there, so the interval
    approaches the bound but never reaches it. Intervals far from the bounds are the same as without bounds.

    Args:
        bounds: the smallest and the largest possible figure, infinite where there is no bound.
    """
    least, most = bounds
    return value - _compute_arm(half, value - least), value + _compute_arm(half, most - value)


def _compute_arm(half: float, room: float) -> float:
    if room <= 0:
        return 0.0
    if half <= room / 2:
        return half
    return room * (1 - math.exp(1 - 2 * half / room) / 2)


def spread(sample: Sample, question: Question = "demand") -> Spread:
    """Add up the variance of a sample's mean over its sources.

    The variance between replicates is that of random placement and salts and their interaction with units. Over units
    it is that of means over replicates, less the interaction, which would count twice (two-way clustering).

    Args:
        question: "log" leaves out the variance of the demand.
    """
    n = len(sample.values)
    variances: dict[Luck, float] = {"placement": 0.0}
    #: squares of the terms that make the sum, each by its degrees of freedom
    squares, shared, is_drifting = 0.0, 0.0, False
    for coarsest in sample.strata or ():
        stratum = coarsest.at(sample.depth)
        means, interplay, freedom, drifts = _compute_variance(stratum)
        # Finer units are used, as coarser ones are few. If these vary more than independent finer ones, that counts.
        coarser = coarsest
        while coarser is not stratum and coarser.within is not None:
            if coarser.parts.shape[1] > 1:
                means, interplay = max(
                    (means, interplay), _compute_variance(coarser)[:2], key=lambda pair: pair[0] - pair[1]
                )
            coarser = coarser.within
        shared += interplay
        if question == "demand" or stratum.is_on_log:
            is_drifting |= drifts
            variances[stratum.source] = variances.get(stratum.source, 0.0) + max(0.0, means - interplay)
            if means > interplay:
                squares += means**2 / freedom + (interplay**2 / (freedom * (n - 1)) if n > 1 else 0.0)
    if n > 1:
        # With one replicate the placement variance is unknown. The restriction of verdicts to it is noted elsewhere.
        placement = sum(float(np.var(values, ddof=1)) for values in sample.drawn or (sample.values,)) / n
        # Few replicates may agree by chance though units do not, so units' variance counts as one more replicate.
        variances["placement"] = placement = max(placement, ((n - 1) * placement + shared) / n)
        squares += placement**2 / (n - 1)
    total = sum(variances.values())
    return Spread(variances, max(1.0, total**2 / squares) if squares else math.inf, least_chance(n), is_drifting)


def least_chance(replicates: int) -> float:
    """Compute the smallest two-sided probability that a number of replicates supports, for any difference.

    Two equal policies with a figure of two equally likely values differ that often in all replicates. The
    result for one replicate does not include random variation.
    """
    return 2.0 ** (1 - 2 * replicates) if replicates > 1 else 0.0


def replicates_for(chance: float) -> int:
    """Find the smallest number of replicates, two or more, that supports a probability."""
    return next(n for n in count(2) if least_chance(n) <= chance)


def _compute_variance(stratum: Stratum) -> tuple[float, float, float, bool]:
    """Compute the contribution of a stratum's units to the variance of the mean over replicates.

    Returns:
        The variance of their means over replicates, the part of it that is their interaction with the
            placement, the degrees of freedom, and whether blocks of time are too short for the drift.
    """
    n = len(stratum.parts)
    blocks, length, drifts = _group_in_blocks(stratum)
    freedom, correction = _compute_freedom(stratum, length)
    # Few units count in full, including the mean. Of many, the spread around the mean counts, n / (n - 1) of it.
    means = correction * float((blocks.mean(axis=0) ** 2).sum()) / length
    interplay = correction * float(blocks.var(axis=0, ddof=1).sum()) / (n * length) if n > 1 else 0.0
    return means, interplay, freedom, drifts


def _group_in_blocks(stratum: Stratum) -> tuple[FloatArray, int, bool]:
    """Find the parts of a stratum's units, cells of time in blocks, a block's length, and whether it is too short."""
    if stratum.block is None:
        return stratum.parts, 1, False
    length, is_short = block_length(stratum.parts.mean(axis=0), stratum.block)
    return in_blocks(stratum.parts, length), length, is_short


def _compute_freedom(stratum: Stratum, length: int) -> tuple[float, float]:
    """Compute the degrees of freedom of a variance over units, and the correction factor of their squares.

    The squares are too small by this factor. If some units weigh more the degrees lie between Kish's number of units,
    which measurements show to be too large, and Satterthwaite's rule for weighted squares, which is too small.
    """
    units = stratum.parts.shape[1] / length
    if stratum.is_few:
        return max(1.0, units), 1.0
    freedom = units - 1
    if stratum.block is None:
        # Divided by their largest, since squares of very large weights overflow.
        shares = stratum.weights / (stratum.weights.max(initial=0.0) or 1.0)
        squares = effective(shares**2)
        # Whole namespaces vary in jumps, and for these the smaller number is correct by measurement.
        has_leaps = stratum.kind in ("namespaces", "tenants") and not stratum.is_recounted
        most = squares - 1 if has_leaps else (effective(shares) - 1 + squares) / 2
        freedom = min(freedom, most)
    return max(1.0, freedom), units / max(1.0, units - 1)
