"""What a run came to: one sample per minute, figures of the whole, and whether they are what a scenario asserts."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from lookup.simulate.scenario import Assertion

__all__ = ["Figures", "Sample", "Trend", "broken"]

Floats = NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class Sample:
    """One minute, after everything that happened in it."""

    minute: int
    #: by registered broker, shape (n_registered,), 1.0 is full
    usage: Floats
    #: bundles that got another owner than before
    moves: int
    #: unloads of the shedder, those included that came back to where they were
    sheds: int
    #: MiB per second of the bundles that moved
    moved_load: float
    splits: int
    #: bundles that nobody serves at the end of the minute
    unowned: int
    #: share of the load on brokers that publish what clients send; NaN where they send nothing
    matched: float
    #: by broker id, NaN where it is not registered
    by_broker: Mapping[str, float]

    @property
    def balance(self) -> float:
        """Return the highest usage over the mean of the registered brokers; 1.0 is even, NaN where nothing is used."""
        mean = float(self.usage.mean()) if len(self.usage) else 0.0
        return self.usage_max / mean if mean else float("nan")

    @property
    def usage_max(self) -> float:
        """Return the highest usage of a registered broker."""
        return float(self.usage.max()) if len(self.usage) else float("nan")


@dataclass(frozen=True, slots=True)
class Figures:
    """A run in numbers."""

    #: highest usage over mean usage, mean over the last minutes
    balance: float
    #: highest usage, mean over the last minutes
    usage_max: float
    #: how far usage went up and down beyond its net change, mean over brokers; 1.0 is a broker's whole capacity
    thrash: float
    #: minutes until the last bundle moved; 0 where none did
    last_move: int
    moves: int
    #: unloads of the shedder, those included that came back to where they were
    sheds: int
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
    samples: tuple[Sample, ...]

    @property
    def figures(self) -> Figures:
        """Return the run in numbers."""
        last = self.samples[-self.window :]
        return Figures(
            balance=float(np.mean([sample.balance for sample in last])),
            usage_max=float(np.mean([sample.usage_max for sample in last])),
            thrash=_thrash(self.samples),
            last_move=max((sample.minute + 1 for sample in self.samples if sample.moves), default=0),
            moves=sum(sample.moves for sample in self.samples),
            sheds=sum(sample.sheds for sample in self.samples),
            moved_load=sum(sample.moved_load for sample in self.samples),
            splits=sum(sample.splits for sample in self.samples),
            unowned=sum(sample.unowned for sample in self.samples),
            matched=float(np.mean([sample.matched for sample in last])),
        )


def broken(assertion: Assertion, figures: Figures) -> bool:
    """Tell whether an assertion does not hold; it never does of a figure that cannot be computed."""
    value: Any = getattr(figures, assertion.figure)
    is_low = assertion.at_least is None or value >= assertion.at_least
    is_high = assertion.at_most is None or value <= assertion.at_most
    return not (is_low and is_high)


def _thrash(samples: tuple[Sample, ...]) -> float:
    """Return total variation beyond net change, mean over brokers (after CockroachDB's asim)."""
    lines = [_line(samples, broker) for broker in samples[0].by_broker]
    return float(np.mean([_beyond_trend(line) for line in lines]))


def _line(samples: tuple[Sample, ...], broker: str) -> Floats:
    return np.array([sample.by_broker[broker] for sample in samples])


def _beyond_trend(line: Floats) -> float:
    # A broker that is away leaves a gap, over which nothing is said; each stretch has a trend of its own.
    return sum(float(np.abs(np.diff(run)).sum()) - abs(float(run[-1] - run[0])) for run in _stretches(line))


def _stretches(line: Floats) -> Iterator[Floats]:
    there = np.flatnonzero(~np.isnan(line))
    for places in np.split(there, np.flatnonzero(np.diff(there) > 1) + 1):
        if len(places):
            yield line[places]
