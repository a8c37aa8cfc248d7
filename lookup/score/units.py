"""Compute the contribution of each unit of demand and of each event to a figure, in every replicate.

A unit is a group that sends together (a bundle, a namespace or a tenant) or a block of neighbouring cells of time. An
event is a lost broker, or a bundle that an administrator unloaded or that was split. The contribution of a unit is the
change of the figure without it (the delete-one jackknife), so the same sums give the same interval everywhere.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Literal, get_args

import numpy as np
from numpy.typing import NDArray

from lookup.engine.measuring import luck_of, value_of
from lookup.hooks import Luck, Resample
from lookup.model.evidence import effective
from lookup.replay.outcome import MetricSums
from lookup.replay.senders import Senders
from lookup.score.series import Series

__all__ = ["Layout", "Sample", "Stratum", "Units", "is_enough", "layout_of", "minus", "sample"]

FloatArray = NDArray[np.float64]
IndexArray = NDArray[np.int64]
BoolArray = NDArray[np.bool_]

#: Who sends demand together, fine before coarse.
SenderKind = Literal["bundles", "namespaces", "tenants"]
#: The sender of each of some units by number, for kinds of senders, fine before coarse.
Kinds = Sequence[tuple[SenderKind, IndexArray]]
#: Smaller shares of a number are rounding.
_ROUNDING = 1e-12


@dataclass(frozen=True, eq=False)
class Layout:
    """Units and events that all series of a run share, so that policies are compared unit by unit.

    Units and events without a figure under any policy are left out, since nothing happened in them.
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
    #: with fewer events of a cause, their effect is counted at its full size
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

    #: the random source of the units, "demand" or "events"
    source: Luck
    #: the contribution of each unit to the figure, by replicate, shape (n_replicates, n_units)
    parts: FloatArray
    #: how much each unit counts, in any measure, shape (n_units,)
    weights: FloatArray
    #: if the units are cells of time, how many neighbours are taken together at least
    block: int | None = None
    #: whether there are so few that each counts at its full size, since their spread is unknown
    is_few: bool = False
    #: whether they might have come otherwise although the demand is as it was
    is_on_log: bool = False
    #: kind of units, if they send the demand
    kind: SenderKind | None = None
    #: whether the figure was counted again without each of them, which overstates how much it varies
    is_recounted: bool = False
    #: the same by finer units of which these are made
    within: Stratum | None = None

    def at(self, depth: int) -> Stratum:
        """Find the units at a finer level by this many steps, or the finest."""
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
    #: values of two samples whose replicates have nothing in common, so that their variances add up
    drawn: tuple[FloatArray, ...] = ()

    @property
    def mean(self) -> float:
        """The mean over replicates, NaN if nothing was measured."""
        return float(self.values.mean())

    @property
    def has_spread(self) -> bool:
        """Whether there are at least two units of demand, so that one has something to vary against."""
        demand = [stratum.at(self.depth) for stratum in self.strata or () if stratum.source == "demand"]
        return any(stratum.parts.shape[1] >= 2 * (stratum.block or 1) for stratum in demand) or len(demand) > 1

    @cached_property
    def depth(self) -> int:
        """The number of steps by which the units are finer than the coarsest, of which there are too few."""
        most = len(get_args(SenderKind)) - 1
        return next((depth for depth in range(most) if is_enough(self.weights(depth), self.min_units)), most)

    @property
    def units(self) -> Units | None:
        """The kind of the units of demand, None if there are only blocks of time."""
        senders = [stratum for stratum in self.strata or () if stratum.kind is not None]
        kind = next((stratum.at(self.depth).kind for stratum in senders), None)
        if kind is None:
            return None
        weights = self.weights(self.depth)
        is_finer = any(stratum.at(self.depth) is not stratum for stratum in senders)
        return Units(kind, int(np.count_nonzero(weights)), effective(weights), is_taken_for_granted=is_finer)

    def weights(self, depth: int = 0) -> FloatArray:
        """Compute the weight of each sender, at this many steps finer than the coarsest."""
        senders = [stratum.at(depth) for stratum in self.strata or () if stratum.kind is not None]
        return np.concatenate([np.zeros(0), *(stratum.weights for stratum in senders)])


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
        min_events: with fewer events of a cause, their effect is counted at its full size.
        min_units: with fewer units of equal weight, finer units are used.
        senders: by cluster. If senders are unknown, each bundle is a sender.
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
    active = _find_active(parts, _events_of, ("event",))
    events: dict[str, dict[str, list[int]]] = {}
    for cluster, cause_of in causes.items():
        for number in active[cluster].tolist():
            events.setdefault(cause_of[number], {}).setdefault(cluster, []).append(number)
    # Sorted, since sums of floats depend on order, and figures must not depend on the order of clusters' replays.
    return Layout(
        seeds=tuple(sorted({seed for figure in series for _, seed in figure.parts})),
        bundles=_find_active(parts, _bundles_of, ("bundle", "event")),
        epochs=_find_active(parts, lambda part: part.epochs, ("bundle",)),
        cells=starts,
        cell_us=cell_s * 1_000_000,
        block=min(max(1, round(block_s / cell_s)), max(1, len(starts))),
        events={
            cause: {cluster: np.array(numbers) for cluster, numbers in sorted(by_cluster.items())}
            for cause, by_cluster in sorted(events.items())
        },
        min_events=min_events,
        min_units=min_units,
        senders={name: _senders(entry, by_tenant=by_tenant) for name, entry in (senders or {}).items()},
        shares={name: _shares(entry, by_tenant=by_tenant) for name, entry in (senders or {}).items()},
    )


def _senders(senders: Senders, *, by_tenant: bool) -> Kinds:
    kinds: Kinds = [("namespaces", senders.namespace), ("tenants", senders.tenant)]
    return kinds if by_tenant else kinds[:1]


def _shares(senders: Senders, *, by_tenant: bool) -> Kinds:
    # The first bundle of a share represents it.
    _, first = np.unique(senders.share, return_index=True)
    coarser: Kinds = [(kind, numbers[first]) for kind, numbers in _senders(senders, by_tenant=by_tenant)]
    finest: Kinds = [("bundles", np.arange(len(first)))]
    # Shares are bundles where namespaces are few.
    return [*finest, *coarser] if len(first) > len(senders.namespaces) else coarser


def sample(series: Series, layout: Layout, cluster: str | None = None) -> Sample:
    """Compute a series in every replicate, in one cluster or pooled over all, with the contribution of each unit."""
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
            # Clusters begin at different times. Cells of one time are one unit of all of them.
            first = int(np.searchsorted(layout.cells, part.start_us))
            cells[replicate, first : first + len(part.sums)] += part.sums
        # A single cell, like a single bundle, counts at its full size.
        is_few = cells.shape[1] == 1
        blocks = Stratum(
            "demand", _compute_parts(series, cells, is_few=is_few), _compute_weights(cells), layout.block, is_few
        )
        names = tuple(layout.shares) if cluster is None else clusters
        senders = _iter_sender_strata(series, names, layout, cells.sum(axis=1))
        return Sample(values, (blocks, *senders), layout.min_units)
    totals = np.zeros((len(layout.seeds), _width(series)))
    for replicate, part in parts:
        totals[replicate] += part.sums.sum(axis=0)
    # Pooled series have strata for every cluster of the run, so that any two can be subtracted.
    names = tuple(layout.bundles) if cluster is None else clusters
    return Sample(values, tuple(_iter_strata(series, names, layout, totals)), layout.min_units)


def minus(a: Sample, b: Sample, *, is_paired: bool = True) -> Sample:
    """Subtract two samples of one metric, replicate by replicate and unit by unit."""
    strata = None
    if a.strata is not None and b.strata is not None:
        strata = tuple(_subtract_stratum(x, y) for x, y in zip(a.strata, b.strata, strict=True))
    return replace(a, values=a.values - b.values, strata=strata, drawn=() if is_paired else (a.values, b.values))


def _subtract_stratum(x: Stratum, y: Stratum) -> Stratum:
    parts = x.parts - y.parts
    # The rounding error between two equal numbers is not a difference, and would look like drift.
    parts[np.abs(parts) <= _ROUNDING * (np.abs(x.parts) + np.abs(y.parts))] = 0.0
    within = None if x.within is None or y.within is None else _subtract_stratum(x.within, y.within)
    return replace(x, parts=parts, weights=x.weights + y.weights, within=within)


def is_enough(weights: FloatArray, min_units: int) -> bool:
    """Check whether units of some weights are worth as many of equal weight, two at least."""
    # Rounding makes eight equal bundles a little fewer.
    return effective(weights) >= max(2, min_units) * (1 - 1e-9)


def _compute_parts(
    series: Series, rows: FloatArray, totals: FloatArray | None = None, *, is_few: bool = False
) -> FloatArray:
    """Compute each unit's part of the figure, its loss if others replace the unit, shape (n_replicates, n_units).

    Args:
        rows: sums of the units, shape (n_replicates, n_units, k).
        totals: sums of the whole figure, shape (n_replicates, k), None if the rows are complete.
        is_few: whether no other units replace a unit.
    """
    n = rows.shape[1]
    if not n:
        return np.zeros(rows.shape[:2])
    totals = rows.sum(axis=1) if totals is None else totals
    share = 1.0 if is_few else (n - 1) / n
    lost = rows if is_few else (rows - rows.mean(axis=1, keepdims=True)) / share
    value, rest = value_of(series.metric, totals)[:, None], totals[:, None, :] - lost
    # A unit may be the only one. The rounding error that remains without it is nothing, and cannot be measured on.
    rest[np.abs(rest) <= _ROUNDING * np.abs(totals[:, None, :])] = 0.0
    without = value_of(series.metric, rest)
    # A replicate without measurements does not have parts. Its value is NaN already.
    parts: FloatArray = np.nan_to_num(share * (value - without))
    return parts


def _compute_weights(rows: FloatArray) -> FloatArray:
    """Compute the weights of units, shape (n_units,), from the last of a metric's sums, the reference of a ratio."""
    weights: FloatArray = np.abs(rows[..., -1]).mean(axis=0)
    return weights


def _iter_strata(series: Series, clusters: Iterable[str], layout: Layout, totals: FloatArray) -> Iterator[Stratum]:
    """Yield the strata of some clusters, first bundles, then the events of each cause, or else registry epochs."""
    for name in clusters:
        rows = _rows(series, name, layout, _bundles_of, layout.bundles[name])
        yield _nest_bundles(series, rows, totals, layout.senders.get(name, ()), layout.bundles[name])
    if series.metric.resample == "event":
        # By cause, so that losses of brokers are compared with each other, not with unloads.
        for by_cluster in layout.events.values():
            by_name = [
                _rows(series, name, layout, _events_of, by_cluster[name]) for name in clusters if name in by_cluster
            ]
            if by_name:
                events = np.concatenate(by_name, axis=1)
                # A single event has no spread, whatever is asked for.
                is_few = events.shape[1] < max(2, layout.min_events)
                # Events of one cause are exchangeable, for any number of moves of each.
                parts, equal = _compute_parts(series, events, totals, is_few=is_few), np.ones(events.shape[1])
                yield Stratum("events", parts, equal, is_few=is_few, is_on_log=True)
    elif "events" in luck_of(series.metric):
        # Between two changes of the registry the choice of brokers was different, so an epoch is an event. The share of
        # demand in each is part of the variation of demand.
        for name in clusters:
            if len(layout.epochs.get(name, ())) > 1:
                rows = _rows(series, name, layout, lambda part: part.epochs, layout.epochs[name])
                yield Stratum("events", _compute_parts(series, rows, totals), _compute_weights(rows))


def _nest_bundles(series: Series, rows: FloatArray, totals: FloatArray, senders: Kinds, bundles: IndexArray) -> Stratum:
    # A single bundle or sender has no spread of its own and counts at its full size.
    is_few = rows.shape[1] == 1
    parts = _compute_parts(series, rows, totals, is_few=is_few)
    stratum = Stratum("demand", parts, _compute_weights(rows), is_few=is_few, kind="bundles")
    for kind, numbers in senders:
        summed = _sum_columns(rows, numbers[bundles])
        is_few = summed.shape[1] == 1
        parts = _compute_parts(series, summed, totals, is_few=is_few)
        stratum = Stratum("demand", parts, _compute_weights(summed), is_few=is_few, kind=kind, within=stratum)
    return stratum


def _iter_sender_strata(
    series: Series, clusters: Iterable[str], layout: Layout, totals: FloatArray
) -> Iterator[Stratum]:
    """Yield the senders of each cluster by the change of a figure over time without them, if that was counted."""
    for name in clusters:
        of_seed = {seed: series.parts[name, seed] for seed in layout.seeds if (name, seed) in series.parts}
        if not any(len(part.without) for part in of_seed.values()):
            continue
        shares = layout.shares[name]
        lost = np.zeros((len(layout.seeds), len(shares[0][1]), totals.shape[1]))
        for replicate, seed in enumerate(layout.seeds):
            if seed in of_seed and len(of_seed[seed].without):
                lost[replicate] = of_seed[seed].sums.sum(axis=0) - of_seed[seed].without
        parts, weights = _compute_parts(series, lost, totals, is_few=True), _compute_weights(lost)
        stratum: Stratum | None = None
        for kind, numbers in shares:
            summed, of_senders = _sum_columns(parts, numbers), _sum_columns(weights[None], numbers)[0]
            parts_of = _center(summed, of_senders)
            stratum = Stratum("demand", parts_of, of_senders, kind=kind, is_recounted=True, within=stratum)
        if stratum is not None:
            yield stratum


def _center(parts: FloatArray, weights: FloatArray) -> FloatArray:
    """Centre the contributions of units with any weight, since any traffic less is less balance."""
    is_active = weights > 0
    n = int(is_active.sum())
    means = parts.sum(axis=1, keepdims=True) / max(1, n)
    # The others do not replace a unit that was left out.
    centred: FloatArray = np.where(is_active, (parts - means) * ((n - 1) / max(1, n)), 0.0)
    return centred


def _sum_columns(columns: FloatArray, numbers: IndexArray) -> FloatArray:
    present, places = np.unique(numbers, return_inverse=True)
    summed = np.zeros((len(present), columns.shape[0], *columns.shape[2:]))
    np.add.at(summed, places, columns.swapaxes(0, 1))
    return summed.swapaxes(0, 1)


def _rows(
    series: Series, cluster: str, layout: Layout, rows: Callable[[MetricSums], FloatArray], indices: IndexArray
) -> FloatArray:
    by_replicate = np.zeros((len(layout.seeds), len(indices), _width(series)))
    for replicate, seed in enumerate(layout.seeds):
        if (cluster, seed) in series.parts:
            by_replicate[replicate] = rows(series.parts[cluster, seed])[indices]
    return by_replicate


def _width(series: Series) -> int:
    return int(next(iter(series.parts.values())).sums.shape[1])


def _find_active(
    parts: Iterable[tuple[Series, str, MetricSums]], rows: Callable[[MetricSums], FloatArray], kinds: Sequence[Resample]
) -> dict[str, IndexArray]:
    masks: dict[str, BoolArray] = {}
    for series, cluster, part in parts:
        if series.metric.resample in kinds:
            sums = rows(part)
            mask = masks.setdefault(cluster, np.zeros(len(sums), dtype=np.bool_))
            mask |= sums.any(axis=1)
    return {cluster: np.flatnonzero(mask) for cluster, mask in sorted(masks.items())}


# Rows of events follow those of bundles.
def _bundles_of(part: MetricSums) -> FloatArray:
    return part.sums[: len(part.sums) - len(part.events)]


def _events_of(part: MetricSums) -> FloatArray:
    return part.sums[len(part.sums) - len(part.events) :]
