"""Verdicts: each candidate against the re-simulated incumbent, metric by metric, pooled over clusters.

Numbers in, words out; where the numbers come from is `luck`. The rules stand in `docs/scoring.md`.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Literal

import numpy as np

from lookup.engine.measuring import luck_of
from lookup.hooks import Luck, Metric
from lookup.replay.quantities import quantity
from lookup.score.estimates import Estimate
from lookup.score.luck import LEVEL, Layout, Spread, minus, spread
from lookup.score.rules import Name, margin_of, name_of, selects
from lookup.score.series import Series
from lookup.settings.sections import VerdictSection

__all__ = ["Case", "HoldsFor", "Verdict", "Word", "exit_code", "family", "judge"]

Word = Literal["better", "worse", "equivalent", "inconclusive"]
HoldsFor = Literal["policy", "placement"]

#: What would make an interval narrower, by the source of most of the luck in it.
_REMEDIES: Mapping[Luck, str] = {
    "placement": "most of it is luck of the placement, which more seeds would average out",
    "demand": "most of it is luck of the demand, of which a longer log or more bundles would say more",
    "events": "most of it is luck of the events, of which a log with more of them would say more",
}
#: What an event is called, by the cause it has in changes of owner.
_EVENTS: Mapping[str, tuple[str, str]] = {
    "forced": ("broker was lost", "brokers were lost"),
    "admin": ("bundle was unloaded by an administrator", "bundles were unloaded by an administrator"),
    "split": ("bundle was split", "bundles were split"),
}


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
    #: candidate - incumbent, turned so that up is better; NaN if one has no value
    delta: float
    #: 95 % interval of delta, NaN if there is none
    low: float
    high: float
    #: what counts as no difference, in the metric's unit
    margin: float
    #: whether it may decide the exit code
    primary: bool
    #: "placement" if another draw of luck may turn it: no replicate shows how a policy would place with other names
    holds_for: HoldsFor = "policy"
    #: probability of a difference as large between equals, NaN if there is no interval
    p_value: float = math.nan
    #: the same for primary figures, with all comparisons that may decide the exit code counted in (Holm); else NaN
    p_family: float = math.nan


@dataclass(frozen=True, eq=False)
class Case:
    """What verdicts rest on besides the two estimates."""

    incumbent: str
    rules: VerdictSection
    #: names of the figures that decide, `metric` or `metric:key`
    primary: tuple[str, ...]
    layout: Layout
    #: fidelity gap by figure, absent or NaN if unknown
    gaps: Mapping[Name, float] = field(default_factory=dict)
    #: policies whose verdicts hold for their placement only
    placed_once: frozenset[str] = frozenset()
    #: why nothing can be said against the incumbent; None: something can
    refused: str | None = None


@dataclass(frozen=True, eq=False)
class _Pair:
    """One figure of a candidate and of the incumbent; None if it was not measured."""

    name: Name
    candidate: Estimate | None
    incumbent: Estimate | None

    @property
    def metric(self) -> Metric | None:
        """Return the metric if it has a direction, and a value under one of the two; else there is nothing to judge."""
        known = self.candidate if _has(self.candidate) else self.incumbent
        if known is None or not _has(known) or known.series.metric.better == "info":
            return None
        return known.series.metric


def judge(estimates: Sequence[Estimate], policies: Sequence[str], case: Case) -> list[Verdict]:
    """Judge every policy but the incumbent by every metric that has a direction, in the order of the estimates."""
    pooled = {
        (one.series.policy, one.series.name): one for one in estimates if one.cluster is None and not one.series.by
    }
    figures = [name for policy, name in pooled if policy == case.incumbent]
    figures += [name for name in dict.fromkeys(name for _, name in pooled) if name not in figures]
    drawn = [
        verdict
        for policy in policies
        if policy != case.incumbent
        for verdict in _judge_policy(
            policy,
            [_Pair(name, pooled.get((policy, name)), pooled.get((case.incumbent, name))) for name in figures],
            case,
        )
    ]
    return _judged_together(drawn, case)


def exit_code(verdicts: Sequence[Verdict], rules: VerdictSection) -> int:
    """Return 3 if a candidate is worse on a primary metric, 4 if a decision is required and missing, else 0.

    What holds for one placement only is no decision, unless the rules accept it.
    """
    primary = [verdict for verdict in verdicts if verdict.primary]
    deciding = [verdict for verdict in primary if _may_decide(verdict, rules)]
    if any(verdict.verdict == "worse" for verdict in deciding):
        return 3
    is_open = len(deciding) < len(primary) or any(verdict.verdict == "inconclusive" for verdict in deciding)
    return 4 if rules.require_decision and is_open else 0


def family(verdicts: Sequence[Verdict]) -> tuple[int, int]:
    """Return how many comparisons were made together for the exit code, and how many each for itself."""
    together = sum(not math.isnan(verdict.p_family) for verdict in verdicts)
    return together, sum(not math.isnan(verdict.p_value) for verdict in verdicts) - together


def _judge_policy(policy: str, pairs: Sequence[_Pair], case: Case) -> Iterator[Verdict]:
    judged = [(pair, metric) for pair in pairs if (metric := pair.metric) is not None]
    for pair, metric in judged:
        primary = any(selects(named, pair.name) for named in case.primary)
        once = "placement" in luck_of(metric) and bool(case.placed_once & {policy, case.incumbent})
        blank = replace(_blank(policy, pair.name, case, primary=primary), holds_for="placement" if once else "policy")
        yield replace(blank, reason=case.refused) if case.refused else _measured(blank, pair, case)
    for named in case.rules.primary or ():
        if not any(selects(named, pair.name) for pair, _ in judged):
            # Silence must not look like consent.
            blank = _blank(policy, name_of(named), case, primary=True)
            yield replace(blank, reason="it was not measured for either policy")


def _blank(policy: str, name: Name, case: Case, *, primary: bool) -> Verdict:
    nothing = math.nan
    return Verdict(
        policy, case.incumbent, *name, "inconclusive", None, nothing, nothing, nothing, nothing, primary=primary
    )


def _measured(blank: Verdict, pair: _Pair, case: Case) -> Verdict:
    """Judge a figure by itself, as if it were the only one."""
    candidate, incumbent = pair.candidate, pair.incumbent
    if candidate is None or incumbent is None or not (_has(candidate) and _has(incumbent)):
        missing = blank.against if _has(candidate) else blank.policy
        return replace(blank, reason=f"there is nothing to measure for {missing}")
    sign = 1.0 if candidate.series.metric.better == "up" else -1.0
    # adding 0.0 turns -0.0 into 0.0
    delta = sign * (candidate.value - incumbent.value) + 0.0
    if not math.isfinite(delta):
        return replace(blank, reason="the difference is larger than floating-point numbers are")
    drawn = replace(blank, delta=delta, margin=margin_of(pair.name, case.rules, incumbent.value))
    is_same = _are_same(candidate.series, incumbent.series)
    if candidate.sample is None or incumbent.sample is None or candidate.sample.strata is None:
        if is_same:
            return replace(drawn, verdict="equivalent")
        return replace(drawn, reason="the metric has no interval: it does not add over bundles or time")
    luck = spread(minus(candidate.sample, incumbent.sample))
    half = luck.half_width()
    drawn = replace(drawn, low=delta - half, high=delta + half)
    too_few = _too_few(candidate.series, incumbent.series, case)
    if too_few is not None:
        return replace(drawn, reason=too_few)
    if is_same or not (delta or luck.error):
        # The replay's own error is the same for both, and there is nothing that chance could bring.
        return replace(drawn, verdict="equivalent")
    return _pronounced(replace(drawn, p_value=luck.chance(delta)), luck, case)


def _are_same(a: Series, b: Series) -> bool:
    """Tell whether two policies have the same sums in every unit, as two names of one policy do."""
    return a.parts.keys() == b.parts.keys() and all(
        np.array_equal(part.sums, b.parts[where].sums) for where, part in a.parts.items()
    )


def _pronounced(drawn: Verdict, luck: Spread, case: Case) -> Verdict:
    gap = case.gaps.get((drawn.metric, drawn.key), math.nan)
    gap = 0.0 if math.isnan(gap) else gap
    if -drawn.margin <= drawn.low - gap and drawn.high + gap <= drawn.margin:
        return replace(drawn, verdict="equivalent")
    if gap and abs(drawn.delta) <= gap:
        reason = (
            f"the difference is not above the fidelity gap {gap:.3g}: the replayed incumbent is that far from the log"
        )
        return replace(drawn, reason=reason)
    if drawn.low > 0 or drawn.high < 0:
        return replace(drawn, verdict="better" if drawn.delta > 0 else "worse")
    half = (drawn.high - drawn.low) / 2
    reason = "the interval holds differences either way; smallest detectable effect"
    return replace(drawn, reason=f"{reason} {half:.3g}, {_REMEDIES[luck.main_source]}")


def _judged_together(verdicts: Sequence[Verdict], case: Case) -> list[Verdict]:
    """Take back what chance alone would bring among all comparisons that may decide the exit code.

    Source: Holm, A Simple Sequentially Rejective Multiple Test Procedure, Scandinavian Journal of Statistics 6 (1979).
    """
    members = [
        place
        for place, one in enumerate(verdicts)
        if one.primary and _may_decide(one, case.rules) and not math.isnan(one.p_value)
    ]
    judged = list(verdicts)
    adjusted = 0.0
    for rank, place in enumerate(sorted(members, key=lambda place: verdicts[place].p_value)):
        one = verdicts[place]
        adjusted = max(adjusted, min(1.0, (len(members) - rank) * one.p_value))
        judged[place] = replace(one, p_family=adjusted)
        if one.verdict in ("better", "worse") and adjusted > LEVEL:
            reason = (
                f"alone it would be {one.verdict}, but among {len(members)} comparisons that decide the exit code "
                f"chance brings such a difference with probability {adjusted:.2f}"
            )
            judged[place] = replace(judged[place], verdict="inconclusive", reason=reason)
    return judged


def _may_decide(verdict: Verdict, rules: VerdictSection) -> bool:
    return verdict.holds_for == "policy" or rules.accept_placement


def _too_few(a: Series, b: Series, case: Case) -> str | None:
    """Say that a comparison rests on too few units or events in which something happened; None if it does not."""
    if a.metric.resample == "time":
        blocks = -(-len({*_cells(a, case.layout), *_cells(b, case.layout)}) // case.layout.block)
        return _few(blocks, "block of time", "blocks of time", case)
    bundles, events = _met(a, b)
    if not events:
        # Totals of nothing are equal; a quotient of nothing has no value and does not come here.
        return _few(bundles, "bundle", "bundles", case) if bundles else None
    cause, most = events.most_common(1)[0]
    if bundles >= case.rules.min_units or most >= case.rules.min_events:
        return None
    count = quantity(most, *_EVENTS.get(cause, ("event happened", "events happened")))
    return f"{count}; which one is luck, and {case.rules.min_events} of min_events are asked for"


def _met(a: Series, b: Series) -> tuple[int, Counter[str]]:
    """Count the bundles with figures under either policy, and the events with any by their cause."""
    bundles: set[tuple[str, int]] = set()
    events: dict[tuple[str, int], str] = {}
    for (cluster, _), part in (*a.parts.items(), *b.parts.items()):
        size = len(part.sums) - len(part.events)
        rows = np.flatnonzero(part.sums.any(axis=1)).tolist()
        bundles.update((cluster, row) for row in rows if row < size)
        events.update(((cluster, row), part.events[row - size]) for row in rows if row >= size)
    return len(bundles), Counter(events.values())


def _few(units: int, one: str, many: str, case: Case) -> str | None:
    if units >= max(2, case.rules.min_units):
        return None
    wanted = f"the {case.rules.min_units} of min_units" if units < case.rules.min_units else "the two that can differ"
    return f"it rests on {quantity(units, one, many)}, fewer than {wanted}"


def _cells(series: Series, layout: Layout) -> Iterator[int]:
    """Yield the starts of the cells with figures, µs."""
    for part in series.parts.values():
        yield from (part.start_us + np.flatnonzero(part.sums.any(axis=1)) * layout.cell_us).tolist()


def _has(estimate: Estimate | None) -> bool:
    return estimate is not None and math.isfinite(estimate.value)
