"""The comparison as rows and columns of text: metrics down, policies across, each cell a value and a verdict's mark."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from lookup.hooks import Metric
from lookup.report.numbers import NOTHING, interval_text, value_text
from lookup.score.luck import Estimate
from lookup.score.scoring import Scored
from lookup.score.verdict import Verdict, Word

__all__ = [
    "ARROWS",
    "MARKS",
    "OPEN_MARKS",
    "Cell",
    "Line",
    "Scope",
    "label",
    "lines",
    "mark_of",
    "parts",
    "policies_in_order",
]

#: Which direction is better.
ARROWS: Mapping[str, str] = {"up": "↑", "down": "↓", "info": " "}
#: What the comparison with the incumbent says.
MARKS: Mapping[Word, str] = {"better": "▲", "worse": "▼", "equivalent": "=", "inconclusive": "?"}
#: The same if it holds for one placement only.
OPEN_MARKS: Mapping[Word, str] = {**MARKS, "better": "△", "worse": "▽"}

By = tuple[tuple[str, str], ...]


@dataclass(frozen=True, slots=True)
class Scope:
    """Which figures: one cluster's or the pooled ones, of the whole demand or a part."""

    cluster: str | None = None
    by: By = ()


@dataclass(frozen=True, slots=True)
class Cell:
    """One figure of one policy."""

    value: str
    interval: str
    #: verdict against the incumbent, None where there is none
    verdict: Verdict | None = None

    @property
    def mark(self) -> str:
        """Return the verdict's mark, a blank where there is none."""
        return mark_of(self.verdict) if self.verdict else " "


@dataclass(frozen=True, slots=True)
class Line:
    """One figure across all policies."""

    label: str
    unit: str
    arrow: str
    #: whether it may decide the exit code
    primary: bool
    #: in the order of `policies_in_order`
    cells: tuple[Cell, ...]


def policies_in_order(scored: Scored) -> tuple[str, ...]:
    """Return the policies, the incumbent first."""
    incumbent = scored.plan.evaluation.incumbent
    return (incumbent, *(name for name in scored.plan.policies if name != incumbent))


def label(metric: str, key: str | None) -> str:
    """Write a figure's name: `moves[shed]`."""
    return metric if key is None else f"{metric}[{key}]"


def mark_of(verdict: Verdict) -> str:
    """Return the mark of a verdict, an open one if it holds for one placement only."""
    return (OPEN_MARKS if verdict.holds_for == "placement" else MARKS)[verdict.verdict]


def parts(scored: Scored) -> tuple[By, ...]:
    """Return the parts of the demand that were measured apart, sorted."""
    return tuple(sorted({one.series.by for one in scored.estimates if one.series.by}))


def lines(scored: Scored, scope: Scope | None = None) -> list[Line]:
    """Return every figure of a scope, by default the pooled ones; verdicts belong to these only.

    A metric nobody could compute has a line of dashes.
    """
    scope = scope or Scope()
    found = {
        (one.series.policy, *one.series.name): one
        for one in scored.estimates
        if one.cluster == scope.cluster and one.series.by == scope.by
    }
    verdicts = {(one.policy, one.metric, one.key): one for one in scored.verdicts} if scope == Scope() else {}
    return [
        _line(scored, metric, key, _Figures(found, verdicts))
        for metric in scored.metrics
        for key in _keys(metric, found, scope)
    ]


@dataclass(frozen=True, slots=True)
class _Figures:
    estimates: Mapping[tuple[str, str, str | None], Estimate]
    verdicts: Mapping[tuple[str, str, str | None], Verdict]


def _keys(metric: Metric, found: Mapping[tuple[str, str, str | None], Estimate], scope: Scope) -> Sequence[str | None]:
    keys = {key for _, name, key in found if name == metric.name}
    return sorted(keys, key=lambda key: key or "") if keys or scope.by else [None]


def _line(scored: Scored, metric: Metric, key: str | None, figures: _Figures) -> Line:
    cells = [_cell((policy, metric.name, key), figures) for policy in policies_in_order(scored)]
    judged = [verdict for where, verdict in figures.verdicts.items() if where[1:] == (metric.name, key)]
    primary = any(verdict.primary for verdict in judged)
    return Line(label(metric.name, key), metric.unit, ARROWS[metric.better], primary, tuple(cells))


def _cell(where: tuple[str, str, str | None], figures: _Figures) -> Cell:
    verdict, estimate = figures.verdicts.get(where), figures.estimates.get(where)
    if estimate is None:
        return Cell(NOTHING, NOTHING, verdict)
    unit = estimate.series.metric.unit
    return Cell(value_text(estimate.value, unit), interval_text(estimate.low, estimate.high, unit), verdict)
