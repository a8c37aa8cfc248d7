"""Describe the run of a policy through a scenario, check the scenario's assertions, and print both as text.

A trend has one sample per minute, and figures of the whole, which assertions are about.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, fields
from typing import Any

import numpy as np
from numpy.typing import NDArray

from lookup.engine.answers import Failures
from lookup.engine.cycle_sums import CycleSums
from lookup.model.churn import discount_trend, on_cycles
from lookup.model.quoting import quantity
from lookup.simulation.scenario import Assertion, Scenario

__all__ = [
    "OVERLOADED", "AssertionResult", "MinuteSample", "Trend", "TrendFigures", "findings", "limits_text",
    "number_text", "trends_text",
]  # fmt: skip

#: Usage above which a broker is overloaded, 85 in Pulsar's loadBalancerBrokerOverloadedThresholdPercentage.
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
    #: unloads of the shedder and of children of splits, including returns to the broker they left
    unloads: int
    #: MiB per second of the bundles that moved
    moved_load: float
    splits: int
    #: bundles that no broker serves at the end of the minute
    unowned: int
    #: registered brokers that serve nothing
    idle: int
    #: share of load on brokers that publish clients' properties, mean over the last minutes, NaN if clients send none
    matched: float
    #: by broker id, NaN if it is not registered
    by_broker: Mapping[str, float]

    @property
    def moves(self) -> int:
        """The number of bundles that got another owner than before."""
        return len(self.moved)

    @property
    def balance(self) -> float:
        """The highest usage over the mean of the registered brokers. 1.0 is even, NaN if nothing is used."""
        mean = float(self.usage.mean()) if len(self.usage) else 0.0
        return self.usage_max / mean if mean else float("nan")

    @property
    def usage_max(self) -> float:
        """The highest usage of a registered broker."""
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
    #: variation of usage, discounted by its trend, mean over brokers. 1.0 is a broker's whole capacity
    thrash: float
    #: minutes until the last bundle moved, 0 if none did
    last_move: int
    #: minutes until the shedder last unloaded a bundle, whatever its new owner, 0 if it never did
    last_unload: int
    moves: int
    #: moves on cycles of the graph of moves between brokers. Without them every broker has as many bundles as with them
    cycle_moves: int
    #: unloads of the shedder and of children of splits, including returns to the broker they left
    unloads: int
    #: MiB per second that changed their broker, every move counted
    moved_load: float
    splits: int
    #: bundle-minutes without owner
    unowned: int
    #: share of the load on brokers that publish their clients' properties, mean over the last minutes, NaN if clients
    #: send none
    matched: float


@dataclass(frozen=True, eq=False)
class Trend:
    """A policy's run through a scenario."""

    policy: str
    #: minutes at the end over which balance is averaged
    window: int
    samples: tuple[MinuteSample, ...]
    #: outcomes of its shedder's cycles, None if it has no shedder
    cycles: CycleSums | None = None
    #: failures of its parts that it has passed over
    failures: Failures = field(default_factory=Failures)

    @property
    def figures(self) -> TrendFigures:
        """The run in numbers."""
        samples, last = self.samples, self.samples[-self.window :]
        moved: _Indices = np.array([move for sample in samples for move in sample.moved], np.int64).reshape(-1, 2)
        # `np.mean` is used, not `nanmean`, since a minute without figures must not be hidden among the others.
        return TrendFigures(
            balance=float(np.mean([sample.balance for sample in last])),
            usage_max=float(np.mean([sample.usage_max for sample in last])),
            usage_peak=max(sample.usage_max for sample in samples),
            overloaded=sum(sample.usage_max > OVERLOADED + _ROUNDING for sample in samples),
            idle=samples[-1].idle,
            thrash=_measure_thrash(samples),
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


def _measure_thrash(samples: tuple[MinuteSample, ...]) -> float:
    """Compute the trend-discounting total variation, mean over brokers (after CockroachDB's asim)."""
    variations = []
    for broker in samples[0].by_broker:
        usage: Floats = np.array([sample.by_broker[broker] for sample in samples])
        # An absent broker leaves a gap without known usage, so each stretch has a trend of its own.
        known = np.flatnonzero(~np.isnan(usage))
        stretches = np.split(known, np.flatnonzero(np.diff(known) > 1) + 1)
        # `np.split` returns one empty stretch for a broker that was never there.
        steps = [np.diff(usage[stretch]) for stretch in stretches if len(stretch)]
        variations.append(sum(float(discount_trend(step[:, None]).sum()) for step in steps))
    return float(np.mean(variations))


#: Columns of a trend and their widths.
_COLUMNS = {
    "minute": 8,
    "balance": 10,
    "usage max": 11,
    "unloads": 9,
    "moves": 7,
    "moved MiB/s": 13,
    "splits": 8,
    "unowned": 9,
}


@dataclass(frozen=True)
class AssertionResult:
    """The result of one assertion for one policy."""

    assertion: Assertion
    policy: str
    #: value of the figure
    value: float
    #: whether the assertion lists the policy in `unlike`, so that it must be false for it
    is_unlike: bool
    #: whether it is as it should be
    holds: bool

    @property
    def wanted(self) -> str:
        """The expectation in words, `moves not at most 3`."""
        return f"{self.assertion.figure} {'not ' * self.is_unlike}{limits_text(self.assertion)}"

    @property
    def failure(self) -> str:
        """A sentence with the value, the expectation and its reason."""
        reason = f", because {self.assertion.because}" if self.assertion.because else ""
        should = f"should {'not ' * self.is_unlike}be {limits_text(self.assertion)}"
        return f"policy {self.policy!r}: {self.assertion.figure} is {self.value:g} and {should}{reason}"


def findings(scenario: Scenario, trends: Sequence[Trend]) -> Iterator[AssertionResult]:
    """Yield a finding per assertion and policy, policy by policy. One without `policy` is about all not in `unlike`."""
    for trend in trends:
        figures = trend.figures
        for assertion in scenario.assertions:
            is_unlike = trend.policy in assertion.unlike
            if is_unlike or assertion.policy in (None, trend.policy):
                value: Any = getattr(figures, assertion.figure)
                # NaN fails both comparisons, so a figure that cannot be computed breaks every assertion with a limit.
                is_enough = assertion.at_least is None or value >= assertion.at_least
                is_within = is_enough and (assertion.at_most is None or value <= assertion.at_most)
                # For policies in `unlike` it must be false, since an assertion true of all does not describe one.
                holds = is_within != is_unlike
                yield AssertionResult(assertion, trend.policy, value, is_unlike, holds)


def limits_text(assertion: Assertion) -> str:
    """Write the limits of an assertion in words."""
    limits = [("at least", assertion.at_least), ("at most", assertion.at_most)]
    return " and ".join(f"{word} {limit:g}" for word, limit in limits if limit is not None)


def number_text(value: float) -> str:
    """Write a figure as it is printed, counts as integers, all others with three decimals."""
    return str(value) if isinstance(value, int) else f"{value:.3f}"


def trends_text(scenario: Scenario, trends: Sequence[Trend]) -> str:
    """Write the report of a scenario, with the rows of the trend, the figures, and the findings of each policy.

    Rows are every `every` minutes and the last one. Unloads, moves and splits are those since the row before.
    """
    return "\n\n".join("\n".join(_trend_lines(scenario, trend)) for trend in trends)


def _trend_lines(scenario: Scenario, trend: Trend) -> Iterator[str]:
    yield f"policy {trend.policy}"
    yield "".join(f"{name:>{width}}" for name, width in _COLUMNS.items())
    # A dict, since the last minute may be one of the others already.
    minutes = dict.fromkeys([*range(0, scenario.minutes, scenario.every), scenario.minutes - 1])
    after = 0
    for minute in minutes:
        samples = trend.samples[after : minute + 1]
        after, last = minute + 1, samples[-1]
        cells = (
            last.minute,
            f"{last.balance:.3f}",
            f"{last.usage_max:.3f}",
            sum(sample.unloads for sample in samples),
            sum(sample.moves for sample in samples),
            f"{sum(sample.moved_load for sample in samples):.1f}",
            sum(sample.splits for sample in samples),
            last.unowned,
        )
        yield "".join(f"{cell:>{width}}" for cell, width in zip(cells, _COLUMNS.values(), strict=True))
    figures = trend.figures
    values = {entry.name: getattr(figures, entry.name) for entry in fields(TrendFigures)}
    # Figures that cannot be computed are left out, `matched` if clients send nothing, balance if nothing is used.
    yield f"  {', '.join(f'{name} {number_text(value)}' for name, value in values.items() if not math.isnan(value))}"
    if trend.cycles is not None and trend.cycles.idleness is not None:
        yield f"  {trend.cycles.idleness}"
    if trend.failures.count:
        yield f"  its parts failed {quantity(trend.failures.count, 'time')}, the first: {trend.failures.first}"
    for finding in findings(scenario, [trend]):
        yield f"  {'holds' if finding.holds else 'FAILED'}: {finding.wanted}"
