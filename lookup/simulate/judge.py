"""Check the assertions of a scenario against trends, and print trends and findings as text."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, fields
from typing import Any

from lookup.simulate.scenario import Assertion, Scenario
from lookup.simulate.trend import Trend, TrendFigures

__all__ = ["AssertionResult", "broken", "findings", "limits_text", "number_text", "trends_text"]

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
        """Return the expectation in words: `moves not at most 3`."""
        return f"{self.assertion.figure} {'not ' * self.is_unlike}{limits_text(self.assertion)}"

    @property
    def failure(self) -> str:
        """Return a sentence with the value, the expectation and its reason."""
        reason = f", because {self.assertion.because}" if self.assertion.because else ""
        should = f"should {'not ' * self.is_unlike}be {limits_text(self.assertion)}"
        return f"policy {self.policy!r}: {self.assertion.figure} is {self.value:g} and {should}{reason}"


def findings(scenario: Scenario, trends: Sequence[Trend]) -> Iterator[AssertionResult]:
    """Yield a finding of every assertion for every policy it is about, policy by policy.

    An assertion without `policy` is about all of them but those in `unlike`.
    """
    for trend in trends:
        figures = trend.figures
        for assertion in scenario.assertions:
            is_unlike = trend.policy in assertion.unlike
            if is_unlike or assertion.policy in (None, trend.policy):
                value: Any = getattr(figures, assertion.figure)
                # For policies in `unlike` it must be false: an assertion true of every policy says nothing about one.
                holds = broken(assertion, figures) == is_unlike
                yield AssertionResult(assertion, trend.policy, value, is_unlike, holds)


def broken(assertion: Assertion, figures: TrendFigures) -> bool:
    """Return whether a figure is outside the limits of an assertion; one that cannot be computed always is."""
    value: Any = getattr(figures, assertion.figure)
    # NaN fails both comparisons: a figure that cannot be computed breaks every assertion with a limit.
    is_low = assertion.at_least is None or value >= assertion.at_least
    is_high = assertion.at_most is None or value <= assertion.at_most
    return not (is_low and is_high)


def limits_text(assertion: Assertion) -> str:
    """Return the limits of an assertion in words."""
    limits = [("at least", assertion.at_least), ("at most", assertion.at_most)]
    return " and ".join(f"{word} {limit:g}" for word, limit in limits if limit is not None)


def number_text(value: float) -> str:
    """Return a figure as it is printed: counts whole, all else with three decimals."""
    return str(value) if isinstance(value, int) else f"{value:.3f}"


def trends_text(scenario: Scenario, trends: Sequence[Trend]) -> str:
    """Return what is printed of a scenario: per policy the rows of its trend, its figures, and its findings.

    Rows are every `every` minutes and the last one; unloads, moves and splits are those since the row before.
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
    # What cannot be computed is left out: `matched` if clients send nothing, balance if nothing is used.
    yield f"  {', '.join(f'{name} {number_text(value)}' for name, value in values.items() if not math.isnan(value))}"
    if trend.cycles is not None and trend.cycles.idleness is not None:
        yield f"  {trend.cycles.idleness}"
    for finding in findings(scenario, [trend]):
        yield f"  {'holds' if finding.holds else 'FAILED'}: {finding.wanted}"
