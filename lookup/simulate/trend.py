"""Describe the run of a policy through a scenario: one sample per minute, and figures of the whole."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from lookup.engine.cycle_sums import CycleSums
from lookup.model.churn import discounted, on_cycles

__all__ = ["OVERLOADED", "MinuteSample", "Trend", "TrendFigures"]

#: Usage above which a broker is overloaded; Pulsar: loadBalancerBrokerOverloadedThresholdPercentage, 85.
OVERLOADED = 0.85
#: Usage that is above it by less is rounding.
_ROUNDING = 1e-9

Floats = NDArray[np.float64]
_Indices = NDArray[np.int64]


@dataclass(frozen=True, eq=False)
class MinuteSample:
    """One minute, after everything that happened in it."""

    minute: int
    #: by registered broker, shape (n_registered,), 1.0 is full
    usage: Floats
    #: bundles that got another owner than before, each by the numbers of the brokers it left and came to, in order
    moved: tuple[tuple[int, int], ...]
    #: unloads of the shedder and of children of splits, including those that came back to the broker they left
    unloads: int
    #: MiB per second of the bundles that moved
    moved_load: float
    splits: int
    #: bundles that no broker serves at the end of the minute
    unowned: int
    #: registered brokers that serve nothing
    idle: int
    #: share of the load on brokers that publish what clients send; NaN if they send nothing
    matched: float
    #: by broker id, NaN if it is not registered
    by_broker: Mapping[str, float]

    @property
    def moves(self) -> int:
        """Return how many bundles got another owner than before."""
        return len(self.moved)

    @property
    def balance(self) -> float:
        """Return the highest usage over the mean of the registered brokers; 1.0 is even, NaN if nothing is used."""
        mean = float(self.usage.mean()) if len(self.usage) else 0.0
        return self.usage_max / mean if mean else float("nan")

    @property
    def usage_max(self) -> float:
        """Return the highest usage of a registered broker."""
        return float(self.usage.max()) if len(self.usage) else float("nan")


@dataclass(frozen=True, slots=True)
class TrendFigures:
    """A run in numbers."""

    #: highest usage over mean usage, mean over the last minutes
    balance: float
    #: highest usage, mean over the last minutes
    usage_max: float
    #: highest usage of any broker in any minute
    usage_peak: float
    #: minutes in which some broker was above `OVERLOADED`
    overloaded: int
    #: registered brokers that serve nothing in the last minute
    idle: int
    #: how far usage goes up and down, discounted by its trend, mean over brokers; 1.0 is a broker's whole capacity
    thrash: float
    #: minutes until the last bundle moved; 0 if none did
    last_move: int
    #: minutes until the shedder last unloaded a bundle, wherever that went; 0 if it never did
    last_unload: int
    moves: int
    #: moves on cycles of the graph of moves between brokers: without them every broker has as many bundles as with them
    cycle_moves: int
    #: unloads of the shedder and of children of splits, including those that came back to the broker they left
    unloads: int
    #: MiB per second that changed their broker, every move counted
    moved_load: float
    splits: int
    #: bundle-minutes without owner
    unowned: int
    #: share of the load on brokers that publish what clients send, mean over the last minutes; NaN: they send nothing
    matched: float


@dataclass(frozen=True, eq=False)
class Trend:
    """A policy's run through a scenario."""

    policy: str
    #: minutes at the end over which balance is averaged
    window: int
    samples: tuple[MinuteSample, ...]
    #: what became of its shedder's cycles; None if it has no shedder
    cycles: CycleSums | None = None

    @property
    def figures(self) -> TrendFigures:
        """Return the run in numbers."""
        samples, last = self.samples, self.samples[-self.window :]
        moved: _Indices = np.array([move for sample in samples for move in sample.moved], np.int64).reshape(-1, 2)
        # `np.mean` and not `nanmean`: a minute without figures must not hide among the others.
        return TrendFigures(
            balance=float(np.mean([sample.balance for sample in last])),
            usage_max=float(np.mean([sample.usage_max for sample in last])),
            usage_peak=max(sample.usage_max for sample in samples),
            overloaded=sum(sample.usage_max > OVERLOADED + _ROUNDING for sample in samples),
            idle=samples[-1].idle,
            thrash=_thrash(samples),
            last_move=max((sample.minute + 1 for sample in samples if sample.moves), default=0),
            last_unload=max((sample.minute + 1 for sample in samples if sample.unloads), default=0),
            moves=sum(sample.moves for sample in samples),
            # After TiKV's pd-analysis, which counts the same for the regions of a store.
            cycle_moves=int(on_cycles(moved[:, 0], moved[:, 1]).sum()),
            unloads=sum(sample.unloads for sample in samples),
            moved_load=sum(sample.moved_load for sample in samples),
            splits=sum(sample.splits for sample in samples),
            unowned=sum(sample.unowned for sample in samples),
            matched=float(np.mean([sample.matched for sample in last])),
        )


def _thrash(samples: tuple[MinuteSample, ...]) -> float:
    """Return trend-discounting total variation, mean over brokers (after CockroachDB's asim)."""
    variations = []
    for broker in samples[0].by_broker:
        usage: Floats = np.array([sample.by_broker[broker] for sample in samples])
        # A broker that is away leaves a gap, over which nothing is known; each stretch has a trend of its own.
        known = np.flatnonzero(~np.isnan(usage))
        stretches = np.split(known, np.flatnonzero(np.diff(known) > 1) + 1)
        # `np.split` returns one empty stretch for a broker that was never there.
        steps = [np.diff(usage[stretch]) for stretch in stretches if len(stretch)]
        variations.append(sum(float(discounted(step[:, None]).sum()) for step in steps))
    return float(np.mean(variations))
