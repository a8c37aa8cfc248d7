"""Write figures, differences and verdicts as texts and marks: in the comparison with metrics down, policies across.

Numbers are rounded to about four digits, with commas between thousands; a dash stands for a figure that could not be
computed.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    # With them comes scipy, which numbers are written without.
    from lookup.score.scoring import Scored
    from lookup.score.verdict import Verdict, Word

__all__ = [
    "ARROWS", "LIGHT_MARKS", "MARKS", "NOTHING", "OPEN_MARKS", "UNJUDGED", "WHOLE", "Figure", "Line", "Scope",
    "alike", "apart", "condition_of", "interval_text", "is_unjudged", "label", "lines", "mark_of", "number_text",
    "own_direction", "parts", "scope_of", "signed_text", "value_text", "word_of",
]  # fmt: skip

#: Stands for a figure that could not be computed.
NOTHING = "–"
#: Arrows by the direction that is better.
ARROWS: Mapping[str, str] = {"up": "↑", "down": "↓", "info": " "}
#: Marks by verdict against the incumbent.
MARKS: Mapping[Word, str] = {"better": "▲", "worse": "▼", "equivalent": "=", "identical": "≡", "inconclusive": "?"}
#: The same if the verdict may not hold for the policy.
OPEN_MARKS: Mapping[Word, str] = {**MARKS, "better": "△", "worse": "▽"}
#: Marks of an inconclusive verdict by what it would be if it were the only comparison.
LIGHT_MARKS: Mapping[Word, str] = {"better": "▴", "worse": "▾"}
#: Mark of a verdict without an interval: nothing was judged.
UNJUDGED = "○"

#: Differences below this are those of rounding, 5e-17 between two means of 0.3.
_ROUNDING = 1e-12

By = tuple[tuple[str, str], ...]


@dataclass(frozen=True, slots=True)
class Scope:
    """A choice of figures: one cluster's or the pooled ones, of the whole demand or a part."""

    cluster: str | None = None
    by: By = ()


#: The pooled figures of the whole demand.
WHOLE = Scope()


@dataclass(frozen=True, slots=True)
class Figure:
    """One figure of one policy."""

    value: str
    interval: str
    #: verdict against the incumbent, None if there is none
    verdict: Verdict | None = None

    @property
    def mark(self) -> str:
        """Return the verdict's mark, a blank if there is none."""
        return mark_of(self.verdict) if self.verdict else " "


@dataclass(frozen=True, slots=True)
class Line:
    """One figure across all policies."""

    label: str
    unit: str
    arrow: str
    #: whether it may decide the exit code
    primary: bool
    #: the incumbent's, then those of the candidates
    figures: tuple[Figure, ...]
    #: the best that owners could make of it if they moved freely, empty for figures without such a bound
    at_best: str = ""

    @property
    def name(self) -> str:
        """Return the label behind its direction, and a star if it may decide the exit code."""
        return f"{self.arrow} {self.label}{' *' if self.primary else ''}"


def label(metric: str, key: str | None) -> str:
    """Write a figure's name: `moves[shed]`."""
    return metric if key is None else f"{metric}[{key}]"


def is_unjudged(verdict: Verdict) -> bool:
    """Return whether a verdict is inconclusive for want of an interval."""
    return verdict.verdict == "inconclusive" and math.isnan(verdict.low)


def word_of(verdict: Verdict) -> str:
    """Return the word of a verdict as reports have it."""
    return "not judged" if is_unjudged(verdict) else verdict.verdict


def mark_of(verdict: Verdict) -> str:
    """Return the mark of a verdict: open if it holds here and now only, light if it is none among so many."""
    if is_unjudged(verdict):
        return UNJUDGED
    if verdict.alone is not None:
        return LIGHT_MARKS[verdict.alone]
    return (MARKS if verdict.holds_for == "policy" else OPEN_MARKS)[verdict.verdict]


def scope_of(verdict: Verdict) -> str:
    """Return when a verdict holds only; empty if it holds for the policy, or decides nothing."""
    return "" if verdict.verdict == "inconclusive" else condition_of(verdict)


def condition_of(verdict: Verdict) -> str:
    """Return when a verdict would hold only, whatever it is; empty if for the policy."""
    if verdict.holds_for == "independence":
        kind = "bundles" if verdict.units is None else verdict.units.kind
        return f"only if {kind} are independent"
    return {"policy": "", "placement": "only in this placement", "hours": "only in these hours"}[verdict.holds_for]


def own_direction(verdict: Verdict, better: str) -> tuple[float, float, float]:
    """Return candidate - incumbent and its interval in the metric's own direction: fewer moves are negative.

    Args:
        better: the metric's direction, "up" or "down".
    """
    sign = 1.0 if better == "up" else -1.0
    low, high = sorted((sign * verdict.low, sign * verdict.high))
    # Adding 0.0 turns -0.0 into 0.0.
    return sign * verdict.delta + 0.0, low + 0.0, high + 0.0


def alike(scored: Scored) -> list[tuple[str, ...]]:
    """Return the policies that have the same figures in every metric, in groups of two or more."""
    figures: dict[str, list[object]] = {}
    for figure in scored.estimates:
        # As text, since a figure that is unknown (NaN) equals no other.
        key = figure.cluster, figure.series.name, figure.series.by, repr(figure.value)
        figures.setdefault(figure.series.policy, []).append(key)
    groups: dict[str, list[str]] = {}
    for policy in filter(figures.__contains__, scored.plan.policies):
        groups.setdefault(repr(figures[policy]), []).append(policy)
    return [tuple(names) for names in groups.values() if len(names) > 1]


def apart(scored: Scored) -> dict[str, str]:
    """Return a heading for each candidate that decides as none before it does, with the number of those that do alike.

    A candidate that decides as the incumbent does stands for itself and the candidates like it.
    """
    like = {name: [other for other in group if other in scored.candidates] for group in alike(scored) for name in group}
    heads = {}
    for policy in scored.candidates:
        first, *others = like.get(policy, [policy])
        if policy == first:
            heads[policy] = f"{policy} and {len(others)} alike" if others else policy
    return heads


def parts(scored: Scored) -> tuple[By, ...]:
    """Return the parts of the demand that were measured separately, sorted."""
    return tuple(sorted({figure.series.by for figure in scored.estimates if figure.series.by}))


def lines(scored: Scored, scope: Scope = WHOLE) -> list[Line]:
    """Return every figure of a scope, by default the pooled ones; verdicts belong to these only.

    A metric that no policy has a figure of has a line of dashes.
    """
    estimates = {
        (figure.series.policy, *figure.series.name): figure
        for figure in scored.estimates
        if figure.cluster == scope.cluster and figure.series.by == scope.by
    }
    verdicts = {(verdict.policy, *verdict.name): verdict for verdict in scored.verdicts if scope == WHOLE}
    drawn, bests = [], dict[str, list[float]]()
    for best in scored.at_best if scope == WHOLE else ():
        bests.setdefault(label(best.metric, best.key), []).append(best.value)
    for metric in scored.metrics:
        keys = {key for _, name, key in estimates if name == metric.name}
        # A part of the demand has no line of a metric it lacks: most metrics are measured for the whole only.
        for key in sorted(keys, key=lambda key: key or "") if keys or scope.by else [None]:
            figures = []
            for name in ((policy, metric.name, key) for policy in (scored.incumbent, *scored.candidates)):
                value = interval = NOTHING
                if name in estimates:
                    estimate = estimates[name]
                    value = value_text(estimate.value, metric.unit)
                    interval = interval_text(estimate.low, estimate.high, metric.unit)
                figures.append(Figure(value, interval, verdicts.get(name)))
            primary = any(verdict.primary for name, verdict in verdicts.items() if name[1:] == (metric.name, key))
            text = label(metric.name, key)
            # Policies with other bundles have other bounds.
            ends = dict.fromkeys(value_text(end(bests[text]), metric.unit) for end in (min, max) if text in bests)
            at_best = " to ".join(ends)
            drawn.append(Line(text, metric.unit, ARROWS[metric.better], primary, tuple(figures), at_best))
    return drawn


def value_text(value: float, unit: str) -> str:
    """Write a metric's value without its unit: ratios with four decimals, counts whole, others with four digits."""
    if not math.isfinite(value):
        return NOTHING
    if unit == "ratio":
        return _unsigned_zero(f"{value:.4f}")
    if unit in ("decisions", "moves", "unloads", "lookups"):
        # means over seeds need not be whole
        return _unsigned_zero(f"{value:,.0f}" if value == round(value) or abs(value) >= 10 else f"{value:.1f}")
    return number_text(value)


def number_text(value: float) -> str:
    """Write a number with about four digits.

    Example:
        >>> number_text(1234567.8), number_text(12.3456), number_text(0.00012345), number_text(-5.6e-17)
        ('1,234,568', '12.35', '0.0001234', '0')
    """
    if not math.isfinite(value):
        return NOTHING
    if abs(value) >= 1000:
        return f"{value:,.0f}"
    return f"{value:.4g}" if abs(value) >= _ROUNDING else "0"


def signed_text(value: float, unit: str) -> str:
    """Write a difference with its sign."""
    text = value_text(value, unit)
    return f"+{text}" if value > 0 and text != NOTHING and float(text.replace(",", "")) > 0 else text


def interval_text(low: float, high: float, unit: str) -> str:
    """Write an interval, a dash if there is none."""
    if math.isnan(low):
        return NOTHING
    return f"[{value_text(low, unit)}, {value_text(high, unit)}]"


def _unsigned_zero(text: str) -> str:
    # A value that rounds to zero has no sign: "-0.0000" reads as a difference.
    return text if float(text.replace(",", "")) else text.removeprefix("-")
