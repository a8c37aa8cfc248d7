"""A scenario's runs as text: per policy a trend, its figures, and what became of the assertions."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import fields

from lookup.simulate.judge import findings, number_text
from lookup.simulate.scenario import Scenario
from lookup.simulate.trend import Figures, Sample, Trend

__all__ = ["told"]

#: Columns of a trend and their widths.
_COLUMNS = {
    "minute": 8,
    "balance": 10,
    "usage max": 11,
    "sheds": 7,
    "moves": 7,
    "moved MiB/s": 13,
    "splits": 8,
    "unowned": 9,
}


def told(scenario: Scenario, trends: Sequence[Trend]) -> str:
    """Return what is printed of a scenario: every `every` minutes and the last, the moves since the row before."""
    return "\n\n".join("\n".join(_lines(scenario, trend)) for trend in trends)


def _lines(scenario: Scenario, trend: Trend) -> Iterator[str]:
    yield f"policy {trend.policy}"
    yield "".join(f"{name:>{width}}" for name, width in _COLUMNS.items())
    minutes = [*range(0, scenario.minutes, scenario.every), scenario.minutes - 1]
    before = -1
    for minute in dict.fromkeys(minutes):
        yield _row(trend.samples[before + 1 : minute + 1])
        before = minute
    figures = trend.figures
    values = {entry.name: getattr(figures, entry.name) for entry in fields(Figures)}
    # What cannot be told here is left out.
    yield f"  {', '.join(f'{name} {number_text(value)}' for name, value in values.items() if not math.isnan(value))}"
    for finding in findings(scenario, [trend]):
        yield f"  {'holds' if finding.holds else 'FAILED'}: {finding.wanted}"


def _row(samples: Sequence[Sample]) -> str:
    last = samples[-1]
    sheds, moves, splits = (sum(getattr(sample, name) for sample in samples) for name in ("sheds", "moves", "splits"))
    load = sum(sample.moved_load for sample in samples)
    cells = (
        last.minute,
        f"{last.balance:.3f}",
        f"{last.usage_max:.3f}",
        sheds,
        moves,
        f"{load:.1f}",
        splits,
        last.unowned,
    )
    return "".join(f"{cell:>{width}}" for cell, width in zip(cells, _COLUMNS.values(), strict=True))
