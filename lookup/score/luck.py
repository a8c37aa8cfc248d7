"""Estimate figures with intervals: their variance over replicates, over units of demand and over events.

A replicate draws new dice and a new salt; a unit is a bundle, or a block of neighbouring cells of time; an event is a
broker that was lost, a bundle that an administrator unloaded, or one that was split. Replicates are crossed with units
and with events: every unit occurs in every replicate. The derivation is in `docs/scoring.md`.

Nothing is drawn here: what a unit adds to a figure is what the figure loses without it (the delete-one jackknife), so
that the same sums give the same interval everywhere.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from itertools import count
from typing import Literal, get_args

import numpy as np
from numpy.typing import NDArray
from scipy import special

from lookup.engine.measuring import bounds_of, luck_of, value_of
from lookup.hooks import Luck, Question, Resample
from lookup.model.evidence import effective
from lookup.replay.outcome import MetricSums
from lookup.replay.senders import Senders
from lookup.score.blocks import block_length, in_blocks
from lookup.score.series import Series

__all__ = [
    "LEVEL", "Estimate", "Layout", "Sample", "SenderKind", "Spread", "Stratum", "Units", "around", "estimate",
    "is_enough", "layout_of", "least_chance", "minus", "pooled", "replicates_for", "sample", "spread",
]  # fmt: skip

FloatArray = NDArray[np.float64]
IndexArray = NDArray[np.int64]
BoolArray = NDArray[np.bool_]

#: Who sends demand together, fine before coarse.
SenderKind = Literal["bundles", "namespaces", "tenants"]
#: The sender of each of some units by number, for kinds of senders, fine before coarse.
Kinds = Sequence[tuple[SenderKind, IndexArray]]
#: Probability with which an interval misses what it is about.
LEVEL = 0.05
#: Smaller shares of a number are rounding.
_ROUNDING = 1e-12


@dataclass(frozen=True, eq=False)
class Layout:
    """Units and events that all series of a run share, so that policies are compared unit by unit.

    Units and events without a figure under any policy are left out: nothing happened in them.
    """

    #: seeds of the replicates, ascending
    seeds: tuple[int, ...]
    #: numbers of the bundles with figures, by cluster, shape (n_units,)
    bundles: Mapping[str, IndexArray]
    #: start of every cell of time that a cluster has, µs, shape (n_cells,)
    cells: IndexArray
    cell_us: int
    #: neighbouring cells that are taken together, at least 1
    block: int
    #: numbers of the registry epochs with figures, by cluster, shape (n_epochs,)
    epochs: Mapping[str, IndexArray]
    #: numbers of the events with figures among the cluster's, by cause and cluster, shape (n_events,)
    events: Mapping[str, Mapping[str, IndexArray]]
    #: with fewer events of a cause, what they did is counted at its full size
    min_events: int = 1
    #: with fewer units of equal weight, finer ones are the units
    min_units: int = 2
    #: who sends to each bundle, by cluster
    senders: Mapping[str, Kinds] = field(default_factory=dict)
    #: whose traffic each share is that figures over time were counted without, by cluster
    shares: Mapping[str, Kinds] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Units:
    """The units of demand that a figure rests on."""

    kind: SenderKind
    count: int
    #: how many of equal weight are worth as much
    worth: float
    #: whether there were too few coarser units to show that these are independent
    is_taken_for_granted: bool


@dataclass(frozen=True, eq=False)
class Stratum:
    """Contribution of the units of one kind to a figure."""

    #: the source of luck that the units stand for, "demand" or "events"
    source: Luck
    #: what the figure owes to each unit, by replicate, shape (n_replicates, n_units)
    parts: FloatArray
    #: how much each unit counts, in any measure, shape (n_units,)
    weights: FloatArray
    #: if the units are cells of time, how many neighbours are taken together at least
    block: int | None = None
    #: whether there are so few that each counts at its full size, since their spread says nothing
    is_few: bool = False
    #: whether they might have come otherwise although the demand is as it was
    is_on_log: bool = False
    #: what they are, if they send the demand
    kind: SenderKind | None = None
    #: whether the figure was counted again without each of them, which overstates how much it varies
    is_recounted: bool = False
    #: the same by finer units of which these are made
    within: Stratum | None = None

    def at(self, depth: int) -> Stratum:
        """Return the units so many steps finer, or the finest."""
        return self if self.within is None or not depth else self.within.at(depth - 1)


@dataclass(frozen=True, eq=False)
class Sample:
    """A figure, or the difference of two, in every replicate."""

    #: shape (n_replicates,), NaN if there is nothing to measure
    values: FloatArray
    #: None if the metric's rows are no units
    strata: tuple[Stratum, ...] | None = ()
    #: with fewer units of equal weight, finer ones are the units
    min_units: int = 2

    @property
    def mean(self) -> float:
        """Return the mean over replicates; NaN if there is nothing to measure."""
        return float(self.values.mean())

    @property
    def has_spread(self) -> bool:
        """Return whether there are at least two units of demand, so that one has something to vary against."""
        demand = [stratum.at(self.depth) for stratum in self.strata or () if stratum.source == "demand"]
        return any(stratum.parts.shape[1] >= 2 * (stratum.block or 1) for stratum in demand) or len(demand) > 1

    @cached_property
    def depth(self) -> int:
        """Return how many steps the units of demand are finer than the coarsest, since of those there are too few."""
        most = len(get_args(SenderKind)) - 1
        return next((depth for depth in range(most) if is_enough(self.weights(depth), self.min_units)), most)

    @property
    def units(self) -> Units | None:
        """Return what the units of demand are; None if there are none but blocks of time."""
        senders = [stratum for stratum in self.strata or () if stratum.kind is not None]
        kind = next((stratum.at(self.depth).kind for stratum in senders), None)
        if kind is None:
            return None
        weights = self.weights(self.depth)
        is_finer = any(stratum.at(self.depth) is not stratum for stratum in senders)
        return Units(kind, int(np.count_nonzero(weights)), effective(weights), is_taken_for_granted=is_finer)

    def weights(self, depth: int = 0) -> FloatArray:
        """Return how much each sender counts, at so many steps finer than the coarsest."""
        senders = [stratum.at(depth) for stratum in self.strata or () if stratum.kind is not None]
        return np.concatenate([np.zeros(0), *(stratum.weights for stratum in senders)])


@dataclass(frozen=True, slots=True)
class Spread:
    """The variance of a figure's mean over replicates."""

    #: by source, in the figure's unit squared; 0 if the figure does not vary with it
    variances: Mapping[Luck, float] = field(default_factory=dict)
    #: degrees of freedom of their sum (Satterthwaite)
    freedom: float = math.inf
    #: no probability is smaller: what the number of replicates can carry
    least: float = 0.0
    #: whether the figure drifts as slowly as the log is long, so that it says nothing of other hours
    is_drifting: bool = False

    @property
    def error(self) -> float:
        """Return the standard error."""
        return math.sqrt(sum(self.variances.values()))

    @property
    def main_source(self) -> Luck:
        """Return the source with the largest variance."""
        return max(self.variances, key=lambda source: self.variances[source])

    def half_width(self, level: float = LEVEL) -> float:
        """Return half the width of the interval that misses with this probability, by Student's t."""
        return float(special.stdtrit(self.freedom, 1.0 - level / 2)) * self.error if self.error else 0.0

    def chance(self, delta: float) -> float:
        """Return the probability of a difference at least as large as this one between equals, two-sided."""
        if not self.error:
            return self.least if delta else 1.0
        return max(self.least, float(2 * special.stdtr(self.freedom, -abs(delta) / self.error)))


@dataclass(frozen=True, eq=False)
class Estimate:
    """The value of one series in one cluster, or pooled, with its interval."""

    series: Series
    #: None: pooled over all clusters
    cluster: str | None
    #: the mean over replicates, NaN if there is nothing to measure
    value: float
    #: NaN if there is no interval
    low: float = math.nan
    high: float = math.nan
    #: the figure in every replicate; kept for pooled estimates of the whole demand only
    sample: Sample | None = None


def pooled(estimates: Iterable[Estimate]) -> dict[tuple[str, str, str | None], Estimate]:
    """Return the figures over all clusters and the whole demand, by policy, metric and key."""
    whole = (figure for figure in estimates if figure.cluster is None and not figure.series.by)
    return {(figure.series.policy, *figure.series.name): figure for figure in whole}


def estimate(series: Sequence[Series], layout: Layout) -> list[Estimate]:
    """Estimate every series, in the order given: pooled first, then each of its clusters."""
    estimates = []
    for figure in series:
        bounds = bounds_of(figure.metric)
        if bounds is None:
            # What is made of sums that are never negative is not negative either.
            is_positive = all((part.sums >= 0).all() for part in figure.parts.values())
            bounds = (0.0 if is_positive else -math.inf, math.inf)
        for cluster in (None, *figure.clusters):
            drawn = sample(figure, layout, cluster)
            value = drawn.mean
            # Verdicts compare pooled figures only: the samples of all others would fill the memory of a long run.
            kept = drawn if cluster is None and not figure.by else None
            low = high = math.nan
            if drawn.has_spread and not math.isnan(value):
                low, high = around(value, spread(drawn).half_width(), bounds)
            estimates.append(Estimate(figure, cluster, value, low, high, kept))
    return estimates


def around(value: float, half: float, bounds: tuple[float, float]) -> tuple[float, float]:
    """Return the interval around a value, of half this width where the ends are far away.

    Towards each end the scale is straight for the first half of the way, and logarithmic from there: it comes ever
    nearer to the end and never to it. Intervals that keep away from the ends are what they would be without any.

    Args:
        bounds: the least and the largest the figure can be; infinite where there is no end.
    """
    least, most = bounds
    return value - _way(half, value - least), value + _way(half, most - value)


def _way(half: float, room: float) -> float:
    """Return how far it is to go towards an end that is so far away."""
    if room <= 0:
        return 0.0
    if half <= room / 2:
        return half
    return room * (1 - math.exp(1 - 2 * half / room) / 2)


def layout_of(  # noqa: PLR0913  a run's settings and what is known of its senders, of which most may be left out
    series: Sequence[Series],
    *,
    cell_s: int,
    block_s: int,
    min_events: int = 1,
    min_units: int = 2,
    senders: Mapping[str, Senders] | None = None,
    by_tenant: bool = False,
) -> Layout:
    """Find the units and events in which something happened under any policy.

    Args:
        cell_s: seconds of a cell of time.
        block_s: seconds of a block of neighbouring cells.
        min_events: with fewer events of a cause, what they did is counted at its full size.
        min_units: with fewer units of equal weight, finer ones are the units.
        senders: by cluster; where it is not known who sends, each bundle is a sender.
        by_tenant: whether the namespaces of a tenant send together.
    """
    parts = [(figure, cluster, part) for figure in series for (cluster, _), part in figure.parts.items()]
    cells = [
        part.start_us + np.arange(len(part.sums)) * (cell_s * 1_000_000)
        for figure, _, part in parts
        if figure.metric.resample == "time"
    ]
    starts = np.unique(np.concatenate(cells)) if cells else np.empty(0, np.int64)
    causes = {cluster: part.events for _, cluster, part in parts if part.events}
    active = _active(parts, _events_of, ("event",))
    events: dict[str, dict[str, list[int]]] = {}
    for cluster, cause_of in causes.items():
        for number in active[cluster].tolist():
            events.setdefault(cause_of[number], {}).setdefault(cluster, []).append(number)
    # Everything is sorted: floating-point sums depend on the order of their terms, and figures must not depend on the
    # order in which clusters were replayed.
    return Layout(
        seeds=tuple(sorted({seed for figure in series for _, seed in figure.parts})),
        bundles=_active(parts, _bundles_of, ("bundle", "event")),
        epochs=_active(parts, lambda part: part.epochs, ("bundle",)),
        cells=starts,
        cell_us=cell_s * 1_000_000,
        block=min(max(1, round(block_s / cell_s)), max(1, len(starts))),
        events={
            cause: {cluster: np.array(numbers) for cluster, numbers in sorted(by_cluster.items())}
            for cause, by_cluster in sorted(events.items())
        },
        min_events=min_events,
        min_units=min_units,
        senders={name: _senders(known, by_tenant=by_tenant) for name, known in (senders or {}).items()},
        shares={name: _shares(known, by_tenant=by_tenant) for name, known in (senders or {}).items()},
    )


def _senders(known: Senders, *, by_tenant: bool) -> Kinds:
    kinds: Kinds = [("namespaces", known.namespace), ("tenants", known.tenant)]
    return kinds if by_tenant else kinds[:1]


def _shares(known: Senders, *, by_tenant: bool) -> Kinds:
    # The first bundle of a share stands for it.
    _, first = np.unique(known.share, return_index=True)
    coarser: Kinds = [(kind, numbers[first]) for kind, numbers in _senders(known, by_tenant=by_tenant)]
    finest: Kinds = [("bundles", np.arange(len(first)))]
    # Shares are bundles where namespaces are few.
    return [*finest, *coarser] if len(first) > len(known.namespaces) else coarser


def sample(series: Series, layout: Layout, cluster: str | None = None) -> Sample:
    """Return a series in every replicate, in one cluster or pooled over all, with what each unit adds to it."""
    clusters = series.clusters if cluster is None else (cluster,)
    values = np.array([series.value_of_seed(seed, cluster) for seed in layout.seeds])
    if series.metric.resample == "none":
        return Sample(values, None)
    parts = [
        (replicate, series.parts[name, seed])
        for replicate, seed in enumerate(layout.seeds)
        for name in clusters
        if (name, seed) in series.parts
    ]
    if series.metric.resample == "time":
        cells = np.zeros((len(layout.seeds), len(layout.cells), _width(series)))
        for replicate, part in parts:
            # Clusters begin at different times; cells of one time are one unit of all of them.
            first = int(np.searchsorted(layout.cells, part.start_us))
            cells[replicate, first : first + len(part.sums)] += part.sums
        # A single cell, like a single bundle, counts at its full size.
        is_few = cells.shape[1] == 1
        blocks = Stratum("demand", _parts(series, cells, is_few=is_few), _weights(cells), layout.block, is_few)
        names = tuple(layout.shares) if cluster is None else clusters
        senders = _senders_over_time(series, names, layout, cells.sum(axis=1))
        return Sample(values, (blocks, *senders), layout.min_units)
    totals = np.zeros((len(layout.seeds), _width(series)))
    for replicate, part in parts:
        totals[replicate] += part.sums.sum(axis=0)
    # Pooled series have strata for every cluster of the run, so that any two can be subtracted.
    names = tuple(layout.bundles) if cluster is None else clusters
    return Sample(values, tuple(_strata(series, names, layout, totals)), layout.min_units)


def minus(a: Sample, b: Sample) -> Sample:
    """Return the difference of two samples of one metric, replicate by replicate and unit by unit."""
    if a.strata is None or b.strata is None:
        return Sample(a.values - b.values, None)
    strata = tuple(_less(x, y) for x, y in zip(a.strata, b.strata, strict=True))
    return replace(a, values=a.values - b.values, strata=strata)


def _less(x: Stratum, y: Stratum) -> Stratum:
    parts = x.parts - y.parts
    # What is left of two equal numbers is no difference, and would be taken for one that drifts.
    parts[np.abs(parts) <= _ROUNDING * (np.abs(x.parts) + np.abs(y.parts))] = 0.0
    within = None if x.within is None or y.within is None else _less(x.within, y.within)
    return replace(x, parts=parts, weights=x.weights + y.weights, within=within)


def is_enough(weights: FloatArray, min_units: int) -> bool:
    """Return whether units of some weights are worth as many of equal weight, two at least."""
    # Rounding makes eight equal bundles a little fewer.
    return effective(weights) >= max(2, min_units) * (1 - 1e-9)


def spread(sample: Sample, question: Question = "demand") -> Spread:
    """Add up the variance of a sample's mean over its sources.

    Between replicates it is what dice and salts did, the interplay with units included; over units it is what the means
    over replicates vary by, less the interplay, which would count twice (two-way clustering).

    Args:
        question: "log" leaves out what varies with the demand.
    """
    n = len(sample.values)
    variances: dict[Luck, float] = {"placement": 0.0}
    #: squares of the terms that make the sum, each by its degrees of freedom
    squares, shared, is_drifting = 0.0, 0.0, False
    for coarsest in sample.strata or ():
        stratum = coarsest.at(sample.depth)
        means, interplay, freedom, drifts = _variance(stratum)
        # Finer units are taken since there are few coarser ones: if these vary more than independent finer ones would,
        # that counts.
        coarser = coarsest
        while coarser is not stratum and coarser.within is not None:
            if coarser.parts.shape[1] > 1:
                means, interplay = max((means, interplay), _variance(coarser)[:2], key=lambda pair: pair[0] - pair[1])
            coarser = coarser.within
        shared += interplay
        if question == "demand" or stratum.is_on_log:
            is_drifting |= drifts
            variances[stratum.source] = variances.get(stratum.source, 0.0) + max(0.0, means - interplay)
            if means > interplay:
                squares += means**2 / freedom + (interplay**2 / (freedom * (n - 1)) if n > 1 else 0.0)
    if n > 1:
        # With one replicate there is nothing to see of placement: that verdicts hold for it only is said elsewhere.
        placement = float(np.var(sample.values, ddof=1)) / n
        # Few replicates may agree by chance where their units do not: they count as one more that varies as units do.
        variances["placement"] = placement = max(placement, ((n - 1) * placement + shared) / n)
        squares += placement**2 / (n - 1)
    total = sum(variances.values())
    return Spread(variances, max(1.0, total**2 / squares) if squares else math.inf, least_chance(n), is_drifting)


def least_chance(replicates: int) -> float:
    """Return the smallest probability that so many replicates can carry, two-sided, however large the difference.

    Two equal policies whose figure is one of two values at even odds come out apart that often in all replicates. One
    replicate says nothing of luck, neither this.
    """
    return 2.0 ** (1 - 2 * replicates) if replicates > 1 else 0.0


def replicates_for(chance: float) -> int:
    """Return the smallest number of replicates, two or more, that can carry a probability."""
    return next(n for n in count(2) if least_chance(n) <= chance)


def _variance(stratum: Stratum) -> tuple[float, float, float, bool]:
    """Return what the units of a stratum add to the variance of the mean over replicates.

    Returns:
        The variance of their means over replicates, the part of it that is their interplay with the placement, the
        degrees of freedom, and whether blocks of time are too short for what drifts.
    """
    n = len(stratum.parts)
    blocks, length, drifts = _in_blocks(stratum)
    freedom, correction = _freedom(stratum, length)
    # Few units count at their full size, mean included; of many the spread around the mean, n / (n - 1) of it.
    means = correction * float((blocks.mean(axis=0) ** 2).sum()) / length
    interplay = correction * float(blocks.var(axis=0, ddof=1).sum()) / (n * length) if n > 1 else 0.0
    return means, interplay, freedom, drifts


def _in_blocks(stratum: Stratum) -> tuple[FloatArray, int, bool]:
    """Return the parts of a stratum's units, cells of time in blocks; a block's length; and whether it is too short."""
    if stratum.block is None:
        return stratum.parts, 1, False
    length, is_short = block_length(stratum.parts.mean(axis=0), stratum.block)
    return in_blocks(stratum.parts, length), length, is_short


def _freedom(stratum: Stratum, length: int) -> tuple[float, float]:
    """Return the degrees of freedom of a variance over units, and the factor by which their squares are too small.

    Where some units weigh more than others it lies between what Kish's number of units and what Satterthwaite's rule
    for weighted squares say, of which the one is measured to be too large and the other too small.
    """
    units = stratum.parts.shape[1] / length
    if stratum.is_few:
        return max(1.0, units), 1.0
    freedom = units - 1
    if stratum.block is None:
        # By their largest: squares of very large weights are no numbers.
        shares = stratum.weights / (stratum.weights.max(initial=0.0) or 1.0)
        squares = effective(shares**2)
        # What whole namespaces send varies by leaps: of these the smaller number is measured to be right.
        has_leaps = stratum.kind in ("namespaces", "tenants") and not stratum.is_recounted
        most = squares - 1 if has_leaps else (effective(shares) - 1 + squares) / 2
        freedom = min(freedom, most)
    return max(1.0, freedom), units / max(1.0, units - 1)


def _parts(series: Series, rows: FloatArray, totals: FloatArray | None = None, *, is_few: bool = False) -> FloatArray:
    """Return what the figure owes to each unit: its loss without it, the others standing in for the unit.

    Args:
        rows: sums of the units, shape (n_replicates, n_units, k).
        totals: sums of everything the figure is made of, shape (n_replicates, k); None: the rows are all there is.
        is_few: nothing stands in for a unit.

    Returns:
        Shape (n_replicates, n_units).
    """
    n = rows.shape[1]
    if not n:
        return np.zeros(rows.shape[:2])
    totals = rows.sum(axis=1) if totals is None else totals
    share = 1.0 if is_few else (n - 1) / n
    lost = rows if is_few else (rows - rows.mean(axis=1, keepdims=True)) / share
    value, rest = value_of(series.metric, totals)[:, None], totals[:, None, :] - lost
    # A unit may be all there is: what rounding leaves of the others is nothing, and nothing can be measured on it.
    rest[np.abs(rest) <= _ROUNDING * np.abs(totals[:, None, :])] = 0.0
    without = value_of(series.metric, rest)
    # A replicate with nothing to measure has no parts; its value is NaN already.
    parts: FloatArray = np.nan_to_num(share * (value - without))
    return parts


def _weights(rows: FloatArray) -> FloatArray:
    """Return how much units count, shape (n_units,): the last of a metric's sums is what it is relative to, if any."""
    weights: FloatArray = np.abs(rows[..., -1]).mean(axis=0)
    return weights


def _strata(series: Series, clusters: Iterable[str], layout: Layout, totals: FloatArray) -> Iterator[Stratum]:
    """Yield the strata of some clusters: their bundles, then the events of each cause, or else the registry epochs."""
    for name in clusters:
        rows = _rows(series, name, layout, _bundles_of, layout.bundles[name])
        yield _nested(series, rows, totals, layout.senders.get(name, ()), layout.bundles[name])
    if series.metric.resample == "event":
        # By cause: losses of brokers are compared with each other, not with unloads.
        for by_cluster in layout.events.values():
            by_name = [
                _rows(series, name, layout, _events_of, by_cluster[name]) for name in clusters if name in by_cluster
            ]
            if by_name:
                events = np.concatenate(by_name, axis=1)
                # A single event has no spread, whatever is asked for.
                is_few = events.shape[1] < max(2, layout.min_events)
                # Events of one cause stand for one another, however much each of them moved.
                parts, equal = _parts(series, events, totals, is_few=is_few), np.ones(events.shape[1])
                yield Stratum("events", parts, equal, is_few=is_few, is_on_log=True)
    elif "events" in luck_of(series.metric):
        # Between two changes of the registry there were other brokers to choose from: an epoch is an event. How much of
        # the demand met which is the demand's luck.
        for name in clusters:
            if len(layout.epochs.get(name, ())) > 1:
                rows = _rows(series, name, layout, lambda part: part.epochs, layout.epochs[name])
                yield Stratum("events", _parts(series, rows, totals), _weights(rows))


def _nested(series: Series, rows: FloatArray, totals: FloatArray, senders: Kinds, bundles: IndexArray) -> Stratum:
    """Return the bundles of a cluster within who sends to them."""
    # A single bundle or sender has no spread of its own and counts at its full size.
    is_few = rows.shape[1] == 1
    parts = _parts(series, rows, totals, is_few=is_few)
    stratum = Stratum("demand", parts, _weights(rows), is_few=is_few, kind="bundles")
    for kind, numbers in senders:
        summed = _summed(rows, numbers[bundles])
        is_few = summed.shape[1] == 1
        parts = _parts(series, summed, totals, is_few=is_few)
        stratum = Stratum("demand", parts, _weights(summed), is_few=is_few, kind=kind, within=stratum)
    return stratum


def _senders_over_time(
    series: Series, clusters: Iterable[str], layout: Layout, totals: FloatArray
) -> Iterator[Stratum]:
    """Yield the senders of each cluster by what a figure over time is without them, if that was counted."""
    for name in clusters:
        of_seed = {seed: series.parts[name, seed] for seed in layout.seeds if (name, seed) in series.parts}
        if not any(len(part.without) for part in of_seed.values()):
            continue
        shares = layout.shares[name]
        lost = np.zeros((len(layout.seeds), len(shares[0][1]), totals.shape[1]))
        for replicate, seed in enumerate(layout.seeds):
            if seed in of_seed and len(of_seed[seed].without):
                lost[replicate] = of_seed[seed].sums.sum(axis=0) - of_seed[seed].without
        parts, weights = _parts(series, lost, totals, is_few=True), _weights(lost)
        stratum: Stratum | None = None
        for kind, numbers in shares:
            summed, of_senders = _summed(parts, numbers), _summed(weights[None], numbers)[0]
            parts_of = _centred(summed, of_senders)
            stratum = Stratum("demand", parts_of, of_senders, kind=kind, is_recounted=True, within=stratum)
        if stratum is not None:
            yield stratum


def _centred(parts: FloatArray, weights: FloatArray) -> FloatArray:
    """Return what units with any weight add to a figure beyond what each does: any traffic less is less balance."""
    is_active = weights > 0
    n = int(is_active.sum())
    means = parts.sum(axis=1, keepdims=True) / max(1, n)
    # The others do not stand in for a unit that was left out.
    centred: FloatArray = np.where(is_active, (parts - means) * ((n - 1) / max(1, n)), 0.0)
    return centred


def _summed(columns: FloatArray, numbers: IndexArray) -> FloatArray:
    """Add up the units of each number, along the second axis."""
    present, places = np.unique(numbers, return_inverse=True)
    summed = np.zeros((len(present), columns.shape[0], *columns.shape[2:]))
    np.add.at(summed, places, columns.swapaxes(0, 1))
    return summed.swapaxes(0, 1)


def _rows(
    series: Series, cluster: str, layout: Layout, rows: Callable[[MetricSums], FloatArray], kept: IndexArray
) -> FloatArray:
    by_replicate = np.zeros((len(layout.seeds), len(kept), _width(series)))
    for replicate, seed in enumerate(layout.seeds):
        if (cluster, seed) in series.parts:
            by_replicate[replicate] = rows(series.parts[cluster, seed])[kept]
    return by_replicate


def _width(series: Series) -> int:
    return int(next(iter(series.parts.values())).sums.shape[1])


def _active(
    parts: Iterable[tuple[Series, str, MetricSums]],
    rows: Callable[[MetricSums], FloatArray],
    kinds: Sequence[Resample],
) -> dict[str, IndexArray]:
    """Return the numbers of the rows with any figure in any series over units of these kinds, by cluster."""
    masks: dict[str, BoolArray] = {}
    for series, cluster, part in parts:
        if series.metric.resample in kinds:
            sums = rows(part)
            mask = masks.setdefault(cluster, np.zeros(len(sums), dtype=np.bool_))
            mask |= sums.any(axis=1)
    return {cluster: np.flatnonzero(mask) for cluster, mask in sorted(masks.items())}


# Rows of events stand behind those of bundles.
def _bundles_of(part: MetricSums) -> FloatArray:
    return part.sums[: len(part.sums) - len(part.events)]


def _events_of(part: MetricSums) -> FloatArray:
    return part.sums[len(part.sums) - len(part.events) :]
