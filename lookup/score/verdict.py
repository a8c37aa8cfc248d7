"""Verdicts: each candidate against the re-simulated incumbent, metric by metric, pooled over clusters.

Numbers in, words out; where the numbers come from is `estimates`. The rules stand in `docs/scoring.md`.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from difflib import get_close_matches
from typing import Literal

import numpy as np

from lookup.engine.measuring import every_key_of
from lookup.errors import SettingsError
from lookup.hooks import Metric
from lookup.score.bootstrap import Draws, interval
from lookup.score.estimates import Estimate
from lookup.score.series import Series
from lookup.score.units import count_units, units_text
from lookup.settings.sections import VerdictSection

__all__ = ["Case", "Name", "Verdict", "Word", "check_measured", "check_rules", "exit_code", "judge"]

#: Metric and key.
Name = tuple[str, str | None]
Word = Literal["better", "worse", "equivalent", "inconclusive"]


@dataclass(frozen=True, slots=True)
class Verdict:
    """What is said about one figure of one candidate."""

    policy: str
    against: str
    metric: str
    key: str | None
    verdict: Word
    #: why it is inconclusive, else None
    reason: str | None
    #: candidate - incumbent, turned so that up is better; NaN where one has no value
    delta: float
    #: 95 % percentile interval of delta, NaN where there is none
    low: float
    high: float
    #: what counts as no difference, in the metric's unit
    margin: float
    #: whether it may decide the exit code
    primary: bool


@dataclass(frozen=True, eq=False)
class Case:
    """What verdicts rest on besides the two estimates."""

    incumbent: str
    rules: VerdictSection
    draws: Draws
    #: fidelity gap by figure, absent or NaN where unknown
    gaps: Mapping[Name, float]


def check_rules(rules: VerdictSection, metrics: Sequence[Metric]) -> None:
    """Refuse primary metrics and margins that name no metric, or a key their metric never has.

    Raises:
        SettingsError: all wrong names together.
    """
    known = {metric.name: metric for metric in metrics}
    named = [("primary", name) for name in rules.primary or ()] + [("margins", name) for name in rules.margins]
    problems = [f"verdict.{where}: {reason}" for where, name in named for reason in _misnamed(name, known)]
    problems += [
        f"verdict.primary: {name!r} has no direction and gets no verdict; a metric that goes up or down would be right"
        for name in rules.primary or ()
        if _metric(name) in known and known[_metric(name)].better == "info"
    ]
    if problems:
        raise SettingsError(problems)


def check_measured(rules: VerdictSection, metrics: Sequence[Metric], estimates: Sequence[Estimate]) -> None:
    """Refuse primary metrics whose key depends on the log where the log has no such key: a gate nobody watches.

    Raises:
        SettingsError: all such names together, with the keys there are.
    """
    closed = {metric.name for metric in metrics if every_key_of(metric) is not None}
    found = {one.series.name for one in estimates if one.cluster is None and not one.series.by}
    problems = [
        f"verdict.primary: {named!r} could be measured for no policy; {_keys_of(_metric(named), found)}"
        for named in rules.primary or ()
        if ":" in named and _metric(named) not in closed and _name(named) not in found
    ]
    if problems:
        raise SettingsError(problems)


def judge(estimates: Sequence[Estimate], policies: Sequence[str], case: Case) -> list[Verdict]:
    """Judge every policy but the incumbent by every metric that has a direction, in the order of the estimates."""
    pooled = {
        (one.series.policy, one.series.name): one for one in estimates if one.cluster is None and not one.series.by
    }
    figures = [name for policy, name in pooled if policy == case.incumbent]
    figures += [name for name in dict.fromkeys(name for _, name in pooled) if name not in figures]
    return [
        verdict
        for policy in policies
        if policy != case.incumbent
        for verdict in _judge_policy(policy, {name: _pair(pooled, policy, name, case) for name in figures}, case)
    ]


def exit_code(verdicts: Sequence[Verdict], rules: VerdictSection) -> int:
    """Return 3 where a candidate is worse on a primary metric, 4 where a decision is required and missing, else 0."""
    words = {verdict.verdict for verdict in verdicts if verdict.primary}
    if "worse" in words:
        return 3
    return 4 if rules.require_decision and "inconclusive" in words else 0


Pair = tuple[Estimate | None, Estimate | None]


def _pair(pooled: Mapping[tuple[str, Name], Estimate], policy: str, name: Name, case: Case) -> Pair:
    return pooled.get((policy, name)), pooled.get((case.incumbent, name))


def _judge_policy(policy: str, pairs: Mapping[Name, Pair], case: Case) -> Iterator[Verdict]:
    measured = set()
    for name, (candidate, incumbent) in pairs.items():
        known = candidate or incumbent
        if known is None or known.series.metric.better == "info" or not (_has(candidate) or _has(incumbent)):
            continue
        measured.add(name)
        blank = _blank(policy, name, case, primary=_is_primary(known.series, case.rules))
        yield _judge(blank, candidate, incumbent, case) if candidate and incumbent else _unmeasured(blank, candidate)
    for named in case.rules.primary or ():
        if not any(_selects(named, name) for name in measured):
            # silence must not look like consent
            blank = _blank(policy, _name(named), case, primary=True)
            yield replace(blank, reason="it was not measured for either policy")


def _blank(policy: str, name: Name, case: Case, *, primary: bool) -> Verdict:
    nothing = math.nan
    return Verdict(
        policy, case.incumbent, *name, "inconclusive", None, nothing, nothing, nothing, nothing, primary=primary
    )


def _judge(blank: Verdict, candidate: Estimate, incumbent: Estimate, case: Case) -> Verdict:
    if not (_has(candidate) and _has(incumbent)):
        return _unmeasured(blank, candidate if _has(candidate) else None)
    sign = 1.0 if candidate.series.metric.better == "up" else -1.0
    # adding 0.0 turns -0.0 into 0.0
    delta = sign * (candidate.value - incumbent.value) + 0.0
    if not math.isfinite(delta):
        return replace(blank, reason="the difference is larger than floating-point numbers are")
    low, high = _interval(candidate, incumbent, sign, delta)
    drawn = replace(blank, delta=delta, low=low, high=high, margin=_margin(incumbent, case.rules))
    if _are_identical(candidate.series, incumbent.series):
        # the replay's own error is the same for both
        return _pronounce(drawn, _too_few(candidate, incumbent, case), sure="equivalent")
    reason = _too_few(candidate, incumbent, case) or _without_interval(drawn, candidate) or _unfaithful(drawn, case)
    return _pronounce(drawn, reason)


def _unmeasured(blank: Verdict, candidate: Estimate | None) -> Verdict:
    missing = blank.policy if candidate is None else blank.against
    return replace(blank, reason=f"there is nothing to measure for {missing}")


def _pronounce(drawn: Verdict, reason: str | None, sure: Word | None = None) -> Verdict:
    if reason is not None:
        return replace(drawn, reason=reason)
    word = sure or _word(drawn)
    if word != "inconclusive":
        return replace(drawn, verdict=word)
    least = (drawn.high - drawn.low) / 2
    return replace(drawn, reason=f"the interval holds differences either way; smallest detectable effect {least:.3g}")


def _word(drawn: Verdict) -> Word:
    if -drawn.margin <= drawn.low and drawn.high <= drawn.margin:
        return "equivalent"
    if drawn.low > 0:
        return "better"
    return "worse" if drawn.high < 0 else "inconclusive"


def _too_few(candidate: Estimate, incumbent: Estimate, case: Case) -> str | None:
    if candidate.series.metric.resample == "none":
        return None
    units = count_units(candidate.series, incumbent.series, case.draws)
    if units >= case.rules.min_units:
        return None
    return f"it rests on {units_text(candidate.series, units)}, fewer than the {case.rules.min_units} of min_units"


def _without_interval(drawn: Verdict, candidate: Estimate) -> str | None:
    if not math.isnan(drawn.low):
        return None
    if candidate.series.metric.resample == "none":
        return "the metric has no interval: it does not add over bundles or time"
    return "most resamples have nothing to measure"


def _unfaithful(drawn: Verdict, case: Case) -> str | None:
    gap = case.gaps.get((drawn.metric, drawn.key), math.nan)
    # Where the replay meets the log exactly there is no error that could explain a difference, nor the lack of one.
    if math.isnan(gap) or gap == 0.0 or abs(drawn.delta) > gap:
        return None
    return f"the difference is not above the fidelity gap {gap:.3g}: the replayed incumbent is that far from the log"


def _interval(candidate: Estimate, incumbent: Estimate, sign: float, delta: float) -> tuple[float, float]:
    if candidate.samples is None or incumbent.samples is None:
        return math.nan, math.nan
    return interval(sign * (candidate.samples - incumbent.samples) + 0.0, delta)


def _margin(incumbent: Estimate, rules: VerdictSection) -> float:
    metric, key = incumbent.series.name
    margin = rules.margins.get(f"{metric}:{key}", rules.margins.get(metric, rules.margin))
    return margin * abs(incumbent.value) if incumbent.value else margin


def _has(estimate: Estimate | None) -> bool:
    return estimate is not None and math.isfinite(estimate.value)


def _are_identical(a: Series, b: Series) -> bool:
    """Tell whether two policies have the same sums in every unit, as two names of one policy do."""
    return a.parts.keys() == b.parts.keys() and all(
        np.array_equal(part.sums, b.parts[where].sums) for where, part in a.parts.items()
    )


def _is_primary(series: Series, rules: VerdictSection) -> bool:
    """Tell whether a figure may decide the exit code; by default each with an interval: others stay undecided."""
    if rules.primary is None:
        return series.metric.resample != "none"
    return any(_selects(named, series.name) for named in rules.primary)


def _selects(named: str, name: Name) -> bool:
    metric, key = _name(named)
    return metric == name[0] and key in (None, name[1])


def _name(named: str) -> Name:
    metric, colon, key = named.partition(":")
    return metric, key if colon else None


def _metric(named: str) -> str:
    return named.partition(":")[0]


def _misnamed(named: str, known: Mapping[str, Metric]) -> Iterator[str]:
    """Say what is wrong with a metric's name or its key."""
    metric, key = _name(named)
    if metric not in known:
        yield f"no metric is named {metric!r}; {_meant(metric, known)}"
        return
    keys = every_key_of(known[metric])
    if key is None or keys is None or key in keys:
        return
    right = _meant(key, keys) if keys else f"it is one figure, write {metric!r}"
    yield f"{named!r}: {metric} has no key {key!r}; {right}"


def _keys_of(metric: str, found: Iterable[Name]) -> str:
    keys = sorted(key for name, key in found if name == metric and key is not None)
    return (
        f"this log has {', '.join(f'{metric}:{key}' for key in keys)}" if keys else f"this log has no key of {metric}"
    )


def _meant(wrong: str, known: Iterable[str]) -> str:
    known = sorted(known)
    close = get_close_matches(wrong, known, n=1)
    return f"did you mean {close[0]!r}?" if close else f"known: {', '.join(known)}"
