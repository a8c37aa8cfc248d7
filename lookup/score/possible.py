"""Say what any placement could reach in a log, which share of it each policy reaches, and whether one claims more.

Bounds are of single figures, and of locality or distance against balance; with free moves, and with as many as the
incumbent makes. They are those of policies that answer every lookup. What a policy leaves unanswered leaves the
denominators of its figures: it is held to a bound over what it answers, which is a little wider.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from lookup.engine.ledger import MICRO
from lookup.engine.measuring import bounds_of
from lookup.hooks import Metric
from lookup.placement.frontier import Multipliers, frontier
from lookup.replay.outcome import POSSIBLE, BoundSums, LocalityBound, Number, ReplayOutcome
from lookup.score.luck import Estimate, Layout, Sample, minus, pooled, sample, spread
from lookup.score.rules import Name
from lookup.score.series import Series, series_of
from lookup.score.verdict import HoldsFor

__all__ = ["Best", "Beyond", "Frontier", "Possible", "Share", "possible"]

Floats = NDArray[np.float64]
#: Pooled figures by policy, metric and key.
Measured = Mapping[tuple[str, str, str | None], Estimate]

#: Rounding of sums, as a share of a bound: nothing below it is beyond the bound.
_ROUNDING = 1e-9
#: A policy that leaves more than this share of the lookups unanswered is measured by nothing: its bounds are too wide.
_UNANSWERED = 0.01
_LOCALITY, _DISTANCE = "match_ratio", "network_ms_mean"
_BALANCE, _OVERLOAD = "imbalance_max_mean", "overload_ratio"


@dataclass(frozen=True, slots=True)
class Best:
    """What no placement surpasses in one figure."""

    metric: str
    key: str | None
    incumbent: Number
    #: with free moves
    free: Number
    #: with as many as the incumbent makes; NaN if that is not bounded
    few: Number
    #: half the width of the 95 % interval of the distance between the incumbent and `free`
    noise: Number


@dataclass(frozen=True, slots=True)
class Share:
    """How far a policy goes from the incumbent's figure to the best with free moves."""

    policy: str
    metric: str
    key: str | None
    #: 0 is the incumbent, 1 the bound; NaN with a reason
    share: Number
    #: 95 % interval, NaN if there is none
    low: Number
    high: Number
    holds_for: HoldsFor
    #: why there is no share, or no interval
    reason: str | None


@dataclass(frozen=True, slots=True)
class Frontier:
    """The curve of nearness against balance that no placement crosses, by corners of (imbalance, match or distance)."""

    metric: str
    key: str | None
    #: with free moves; to the right of the last corner it is level, to the left of the first there is nothing
    free: tuple[tuple[float, float], ...]
    #: with as many as the incumbent makes; empty if that is not bounded
    few: tuple[tuple[float, float], ...]


@dataclass(frozen=True, slots=True)
class Beyond:
    """A policy that lies beyond a bound."""

    policy: str
    #: metric and key of the one figure that is bounded, or of both
    figures: tuple[Name, ...]
    seed: int


@dataclass(frozen=True, slots=True)
class Possible:
    """What is possible in a log, in the order of the metrics, and how far policies come."""

    #: the moves of the incumbent, the mean over replicates rounded up; None under shared ownership
    moves: int | None
    figures: tuple[Best, ...]
    shares: tuple[Share, ...]
    frontiers: tuple[Frontier, ...]
    #: policies that leave too many lookups unanswered to be measured
    unanswered: tuple[str, ...]
    #: policies beyond a bound: a fault of this program
    beyond: tuple[Beyond, ...]
    #: reasons of the filters that the bounds go by: every policy keeps these brokers out
    filters: tuple[str, ...] = ()


def possible(
    outcome: ReplayOutcome,
    metrics: Sequence[Metric],
    *,
    estimates: Sequence[Estimate],
    layout: Layout,
    incumbent: str,
    placed_once: Collection[str],
) -> Possible | None:
    """Return what is possible, None if it was not bounded.

    Args:
        placed_once: policies with luck that no replicate shows.
    """
    if outcome.multipliers is None:
        return None
    measured = pooled(estimates)
    policies = tuple(dict.fromkeys(policy for policy, *_ in measured))
    answered = {policy: measured.get((policy, "answered_ratio", None)) for policy in policies}
    unanswered = tuple(name for name, of in answered.items() if (of.value if of else 0.0) < 1.0 - _UNANSWERED)
    figures = [figure for bounds in outcome.bounds for figure in bounds.figures]
    limits = {series.name: series for series in series_of(figures, metrics, [POSSIBLE])}
    bounds = _Bounds.of(outcome.bounds, outcome.multipliers, limits)
    made = measured.get((incumbent, "moves", None))
    moves = None if made is None else math.ceil(made.value * (1 - _ROUNDING))
    bests, shares = [], []
    for name, limit in limits.items():
        own, free = measured.get((incumbent, *name)), limit.value()
        if own is None or own.sample is None or math.isnan(own.value) or math.isnan(free):
            continue
        if limit.metric.better == "up" and not free:
            continue  # no broker has what clients want
        noise = spread(minus(sample(bounds.over_answers(name, measured, incumbent), layout), own.sample)).half_width()
        few = math.nan if moves is None else bounds.few(name, free, moves)
        bests.append(Best(*name, own.value, free, few, noise))
        for policy in policies:
            candidate = measured.get((policy, *name))
            if policy == incumbent or candidate is None or candidate.sample is None:
                continue
            blank = Share(policy, *name, math.nan, math.nan, math.nan, "policy", None)
            silent = [each for each in (policy, incumbent) if each in unanswered]
            if silent:
                blank = replace(
                    blank, reason=f"{silent[0]} leaves more than {_UNANSWERED:.0%} of the lookups unanswered"
                )
            elif abs(free - own.value) <= max(noise, _ROUNDING * abs(free)):
                blank = replace(blank, reason="nothing to improve: the incumbent is as near to the bound as luck goes")
            else:
                room = minus(sample(bounds.over_answers(name, measured, policy), layout), own.sample)
                blank = _share(blank, minus(candidate.sample, own.sample), room)
                if {policy, incumbent} & set(placed_once):
                    blank = replace(blank, holds_for="placement")
            shares.append(blank)
    return Possible(
        moves=moves,
        figures=tuple(bests),
        shares=tuple(shares),
        frontiers=tuple(bounds.frontiers(moves)),
        unanswered=unanswered,
        beyond=tuple(each for policy in policies for each in bounds.beyond(measured, policy)),
    )


def _share(blank: Share, gain: Sample, room: Sample) -> Share:
    """Divide what a candidate gains by what there is to gain, with the luck of both (by the delta method)."""
    whole = room.mean
    share = gain.mean / whole
    if gain.strata is None or room.strata is None or not gain.has_spread:
        return replace(blank, share=share, reason="too few bundles or blocks of time for an interval")
    strata = [
        replace(x, parts=(x.parts - share * y.parts) / whole, weights=x.weights + y.weights)
        for x, y in zip(gain.strata, room.strata, strict=True)
    ]
    luck = spread(Sample(share + (gain.values - share * room.values) / whole, tuple(strata)))
    half = luck.half_width()
    return replace(
        blank, share=share, low=share - half, high=share + half, holds_for="hours" if luck.is_drifting else "policy"
    )


@dataclass(frozen=True, eq=False)
class _Bounds:
    """The bounds of all clusters together; weights are in micro-units, as the multipliers have them."""

    multipliers: Multipliers
    #: by figure
    limits: Mapping[Name, Series]
    weight: float
    #: by metric
    evenness: Mapping[str, Floats]
    #: by figure
    localities: Mapping[Name, LocalityBound]

    @classmethod
    def of(cls, clusters: Sequence[BoundSums], multipliers: Multipliers, limits: Mapping[Name, Series]) -> _Bounds:
        """Add up the bounds of clusters, in their order."""
        localities = {}
        for name in sorted({name for cluster in clusters for name in cluster.localities}, key=str):
            of_name = [_of_cluster(cluster, name, multipliers) for cluster in clusters]
            few = [bound.few for bound in of_name if bound.few is not None]
            localities[name] = LocalityBound(
                np.sum([bound.free for bound in of_name], axis=0),
                np.sum(few, axis=0) if len(few) == len(of_name) else None,
                np.max([bound.dearest for bound in of_name], axis=0),
            )
        return cls(
            multipliers,
            limits,
            sum(cluster.weight for cluster in clusters),
            {
                metric: np.sum([cluster.evenness[metric] for cluster in clusters], axis=0)
                for metric in clusters[0].evenness
            },
            localities,
        )

    def few(self, name: Name, free: float, moves: float) -> float:
        """Return the bound of a figure with so many moves; NaN if there is none."""
        if name[0] in self.evenness and self.weight:
            return max(free, self._uneven(name[0], moves) / self.weight)
        if name[0] == _OVERLOAD:
            # At one instant a bundle is whole whether it may move or not: fewer moves prove no more.
            return free
        bound = self.localities.get(name)
        if bound is None or bound.few is None:
            return math.nan
        few = self._figure(name, float(self._paid(bound.few, moves)[0]))
        return min(free, few) if self.limits[name].metric.better == "up" else max(free, few)

    def over_answers(self, name: Name, measured: Measured, policy: str) -> Series:
        """Return a bound for what a policy answers, in each of its replicates; it has the rows of the policy's sums."""
        limit, own = self.limits[name], measured[policy, *name].series
        perfect = (bounds_of(limit.metric) or (0.0, math.inf))[0]

        def over(bound: Floats, counted: Floats, place: tuple[str, int]) -> Floats:
            if name[0] == _LOCALITY:
                most = np.minimum(bound[:, 0], counted)
            elif name[0] == _DISTANCE:
                # What is not answered may be what was farthest.
                most = np.maximum(bound[:, 0] - self.multipliers.farthest_ms * (bound[:, 1] - counted), 0.0)
            else:
                most = np.where(self._is_less(name, measured, policy, place), perfect * counted, bound[:, 0])
            return np.column_stack([most, counted])

        parts = {}
        for place, part in own.parts.items():
            whole = limit.parts[place[0], limit.seeds[0]]
            epochs = over(whole.epochs, part.epochs[:, 1], place) if len(part.epochs) else part.epochs
            parts[place] = replace(part, sums=over(whole.sums, part.sums[:, 1], place), epochs=epochs)
        return replace(limit, parts=parts)

    def _is_less(self, name: Name, measured: Measured, policy: str, place: tuple[str, int]) -> NDArray[np.bool_]:
        """Return in which cells a policy serves less than what came: there it is only known what perfection has.

        Args:
            place: cluster and seed.
        """
        served = measured.get((policy, *((_BALANCE, None) if name[0] == _OVERLOAD else name)))
        if served is None:
            return np.ones(len(measured[policy, *name].series.parts[place].sums), dtype=bool)
        whole = self.limits[served.series.name]
        came = whole.parts[place[0], whole.seeds[0]].sums[:, 1]
        is_less: NDArray[np.bool_] = served.series.parts[place].sums[:, 1] < came * (1 - _ROUNDING)
        if name[0] == _OVERLOAD:
            # The first usage of a cell is that of lookups of the cell before.
            is_less = is_less | np.append(False, is_less[:-1])
        return is_less

    def frontiers(self, moves: float | None) -> Iterator[Frontier]:
        """Yield the curve of each figure of nearness."""
        for name, bound in self.localities.items():
            if not (bound.free[0] and self.weight):
                continue  # nothing can be near, or there is nothing to balance
            least = self.limits[_BALANCE, None].value()
            curves = [self._curve(name, bound.free, least), tuple[tuple[float, float], ...]()]
            if bound.few is not None and moves is not None:
                few = np.minimum(bound.free, self._paid(bound.few, moves))
                curves[1] = self._curve(name, few, self.few((_BALANCE, None), least, moves))
            yield Frontier(*name, *curves)

    def _curve(self, name: Name, offsets: Floats, least: float) -> tuple[tuple[float, float], ...]:
        """Return the corners of the curve under lines of near lookups, from the least imbalance on."""
        corners = frontier(offsets, self.multipliers.balance * self.weight, least)
        return tuple((at, self._figure(name, near)) for at, near in corners)

    def beyond(self, measured: Measured, policy: str) -> Iterator[Beyond]:
        """Yield the figures of a policy that are beyond what is possible, replicate by replicate."""
        for (metric, key), limit in self.limits.items():
            own = measured.get((policy, metric, key))
            if own is None:
                continue
            sign = 1.0 if limit.metric.better == "up" else -1.0
            over = self.over_answers((metric, key), measured, policy)
            for seed in own.series.seeds:
                value, most = own.series.value_of_seed(seed), over.value_of_seed(seed)
                if sign * (value - most) > _ROUNDING * max(1.0, abs(most)):
                    yield Beyond(policy, ((metric, key),), seed)
        yield from self._beyond_moves(measured, policy)

    def _beyond_moves(self, measured: Measured, policy: str) -> Iterator[Beyond]:
        """Yield figures of balance, and of nearness with balance, that a policy could not have with its own moves."""
        balance, made = (measured.get((policy, *name)) for name in ((_BALANCE, None), ("moves", None)))
        if balance is None:
            return
        for seed in balance.series.seeds:
            most_loaded, served = _total(balance.series, seed) * MICRO
            missing = max(0.0, self.weight - served)
            moves = None if made is None else float(_total(made.series, seed)[0])
            for metric in self.evenness if moves is not None and missing <= _ROUNDING * served else ():
                figure = measured.get((policy, metric, None))
                least = self._uneven(metric, moves or 0.0) - _ROUNDING * self.weight
                if figure is not None and _total(figure.series, seed)[0] * MICRO < least:
                    yield Beyond(policy, ((metric, None),), seed)
            for name, bound in self.localities.items():
                figure = measured.get((policy, *name))
                if figure is None:
                    continue
                loss = self.multipliers.balance * most_loaded
                most = bound.free if bound.few is None or moves is None else self._paid(bound.few, moves)
                most = np.minimum(most, bound.free) + bound.dearest * missing
                near = self._near(name, _total(figure.series, seed))
                # Terms are much larger than what they leave.
                rounding = _ROUNDING * (bound.free[0] + loss)
                if (near - loss > most + rounding).any():
                    yield Beyond(policy, (name, (_BALANCE, None)), seed)

    def _near(self, name: Name, sums: Floats) -> float:
        """Return the near lookups of a figure by its sums, shape (2,)."""
        if name[0] == _DISTANCE:
            gained = self.multipliers.farthest_ms * sums[1] - sums[0]
            return float(gained * MICRO * self.multipliers.per_ms)
        return float(sums[0])

    def _figure(self, name: Name, near: float) -> float:
        """Return what a figure is with so many near lookups, if all is answered."""
        series = self.limits[name]
        counted = float(_total(series, series.seeds[0])[1])
        if name[0] == _DISTANCE:
            return self.multipliers.farthest_ms - near / (self.multipliers.per_ms * MICRO * counted)
        return near / counted

    def _paid(self, few: Floats, moves: float) -> Floats:
        """Return the bounds with so many moves, shape (n_slopes,)."""
        bounds: Floats = (few + self.multipliers.moves * moves).min(axis=1)
        return bounds

    def _uneven(self, metric: str, moves: float) -> float:
        """Return the least of a figure of balance with so many moves, times weight."""
        return float((self.evenness[metric] - self.multipliers.splits * moves).max())


def _of_cluster(cluster: BoundSums, name: Name, multipliers: Multipliers) -> LocalityBound:
    """Return the bound of a figure in a cluster; where nothing can be near, it is that of perfect balance."""
    even = -multipliers.balance * cluster.weight
    nothing = LocalityBound(even, np.repeat(even[:, None], len(multipliers.moves), axis=1), multipliers.balance)
    return cluster.localities.get(name, nothing)


def _total(series: Series, seed: int) -> Floats:
    """Return the sums of one replicate over all clusters, shape (k,)."""
    total: Floats = np.sum([series.parts[name, seed].sums.sum(axis=0) for name in series.clusters], axis=0)
    return total
