"""Judge candidates: each against the re-simulated incumbent, metric by metric, pooled over clusters.

Intervals come from `luck`, the rules that name figures (which decide the exit code, and which difference is none) from
the settings. The derivation is in `docs/scoring.md`.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from lookup.engine.measuring import luck_of
from lookup.hooks import Luck
from lookup.model.quoting import quantity
from lookup.score.luck import LEVEL, Estimate, Layout, Spread, minus, spread
from lookup.score.rules import Name, margin_of, name_of, selects
from lookup.score.series import Series
from lookup.settings.evaluation import VerdictSection

__all__ = ["Case", "HoldsFor", "Verdict", "Word", "exit_code", "family", "judge"]

Word = Literal["better", "worse", "equivalent", "inconclusive"]
HoldsFor = Literal["policy", "placement"]

#: Advice that would make an interval narrower, by the source of most of the luck in it.
_REMEDIES: Mapping[Luck, str] = {
    "placement": "most of it is luck of the placement, which more seeds would average out",
    "demand": "most of it is luck of the demand, of which a longer log or more bundles would say more",
    "events": "most of it is luck of the events, of which a log with more of them would say more",
}
#: Words for one event and for several, by the cause it has in changes of owner.
_EVENTS: Mapping[str, tuple[str, str]] = {
    "forced": ("broker was lost", "brokers were lost"),
    "admin": ("bundle was unloaded by an administrator", "bundles were unloaded by an administrator"),
    "split": ("bundle was split", "bundles were split"),
}


@dataclass(frozen=True, slots=True)
class Verdict:
    """The judgement on one figure of one candidate."""

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
    """Everything verdicts rest on besides the two estimates."""

    incumbent: str
    rules: VerdictSection
    #: names of the figures that decide, `metric` or `metric:key`
    primary: tuple[str, ...]
    layout: Layout
    #: fidelity gap by figure, absent or NaN if unknown
    gaps: Mapping[Name, float] = field(default_factory=dict)
    #: policies whose verdicts hold for their placement only
    placed_once: frozenset[str] = frozenset()
    #: why no verdict against the incumbent is possible; None: verdicts are possible
    refused: str | None = None


def judge(estimates: Sequence[Estimate], policies: Sequence[str], case: Case) -> list[Verdict]:
    """Judge every policy but the incumbent by every metric that has a direction, in the order of the estimates."""
    pooled = {
        (estimate.series.policy, estimate.series.name): estimate
        for estimate in estimates
        if estimate.cluster is None and not estimate.series.by
    }
    figures = [name for policy, name in pooled if policy == case.incumbent]
    figures += [name for name in dict.fromkeys(name for _, name in pooled) if name not in figures]
    verdicts = []
    for policy in policies:
        if policy == case.incumbent:
            continue
        judged = set()
        for name in figures:
            candidate, incumbent = pooled.get((policy, name)), pooled.get((case.incumbent, name))
            known = candidate if _has(candidate) else incumbent
            if known is None or not _has(known) or known.series.metric.better == "info":
                continue  # nothing to judge: no value under either of the two, or no direction
            judged.add(name)
            primary = any(selects(named, name) for named in case.primary)
            once = "placement" in luck_of(known.series.metric) and bool(case.placed_once & {policy, case.incumbent})
            blank = _blank(policy, name, case, primary=primary)
            blank = replace(blank, reason=case.refused, holds_for="placement" if once else "policy")
            verdicts.append(blank if case.refused else _measured(blank, candidate, incumbent, case))
        for named in case.rules.primary or ():
            if not any(selects(named, name) for name in judged):
                # Silence must not look like consent.
                blank = _blank(policy, name_of(named), case, primary=True)
                verdicts.append(replace(blank, reason="it was not measured for either policy"))
    return _judged_together(verdicts, case)


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


def _blank(policy: str, name: Name, case: Case, *, primary: bool) -> Verdict:
    nothing = math.nan
    return Verdict(
        policy, case.incumbent, *name, "inconclusive", None, nothing, nothing, nothing, nothing, primary=primary
    )


def _measured(blank: Verdict, candidate: Estimate | None, incumbent: Estimate | None, case: Case) -> Verdict:
    """Judge a figure by itself, as if it were the only one."""
    if candidate is None or incumbent is None or not (_has(candidate) and _has(incumbent)):
        missing = blank.against if _has(candidate) else blank.policy
        return replace(blank, reason=f"there is nothing to measure for {missing}")
    a, b = candidate.series, incumbent.series
    sign = 1.0 if a.metric.better == "up" else -1.0
    # adding 0.0 turns -0.0 into 0.0
    delta = sign * (candidate.value - incumbent.value) + 0.0
    if not math.isfinite(delta):
        return replace(blank, reason="the difference is larger than floating-point numbers are")
    drawn = replace(blank, delta=delta, margin=margin_of(a.name, case.rules, incumbent.value))
    # Two names of one policy have the same sums in every unit, not only the same total.
    is_same = a.parts.keys() == b.parts.keys() and all(
        np.array_equal(part.sums, b.parts[unit].sums) for unit, part in a.parts.items()
    )
    if candidate.sample is None or incumbent.sample is None or candidate.sample.strata is None:
        if is_same:
            return replace(drawn, verdict="equivalent")
        return replace(drawn, reason="the metric has no interval: it does not add over bundles or time")
    luck = spread(minus(candidate.sample, incumbent.sample))
    half = luck.half_width()
    drawn = replace(drawn, low=delta - half, high=delta + half)
    too_few = _too_few(a, b, case)
    if too_few is not None:
        return replace(drawn, reason=too_few)
    if is_same or not (delta or luck.error):
        # The replay's own error is the same for both, and there is nothing that chance could bring.
        return replace(drawn, verdict="equivalent")
    return _pronounced(replace(drawn, p_value=luck.chance(delta)), luck, case)


def _pronounced(drawn: Verdict, luck: Spread, case: Case) -> Verdict:
    """Give the word on a difference with an interval, or the reason why there is none."""
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
        index
        for index, verdict in enumerate(verdicts)
        if verdict.primary and _may_decide(verdict, case.rules) and not math.isnan(verdict.p_value)
    ]
    judged = list(verdicts)
    adjusted = 0.0
    for rank, index in enumerate(sorted(members, key=lambda index: verdicts[index].p_value)):
        verdict = verdicts[index]
        # The running maximum keeps the order: no comparison may pass that is less probable than one that failed.
        adjusted = max(adjusted, min(1.0, (len(members) - rank) * verdict.p_value))
        judged[index] = replace(verdict, p_family=adjusted)
        if verdict.verdict in ("better", "worse") and adjusted > LEVEL:
            reason = (
                f"alone it would be {verdict.verdict}, but among {len(members)} comparisons that decide the exit code "
                f"chance brings such a difference with probability {adjusted:.2f}"
            )
            judged[index] = replace(judged[index], verdict="inconclusive", reason=reason)
    return judged


def _may_decide(verdict: Verdict, rules: VerdictSection) -> bool:
    return verdict.holds_for == "policy" or rules.accept_placement


def _too_few(a: Series, b: Series, case: Case) -> str | None:
    """Return the sentence that a comparison rests on too few units or events with figures; None if it does not."""
    parts = [(cluster, part) for series in (a, b) for (cluster, _), part in series.parts.items()]
    if a.metric.resample == "time":
        # Starts of the cells with figures under either policy, in any cluster: cells of one time are one unit.
        cells: set[int] = set()
        for _, part in parts:
            cells.update((part.start_us + np.flatnonzero(part.sums.any(axis=1)) * case.layout.cell_us).tolist())
        return _few(-(-len(cells) // case.layout.block), "block of time", "blocks of time", case)
    # Rows with a figure under either policy; those of a cluster are the same in all its parts.
    active: dict[str, NDArray[np.bool_]] = {}
    causes_of: dict[str, tuple[str, ...]] = {}
    for cluster, part in parts:
        rows = np.asarray(part.sums.any(axis=1))
        active[cluster] = active[cluster] | rows if cluster in active else rows
        causes_of[cluster] = part.events
    bundles, causes = 0, Counter[str]()
    for cluster, rows in active.items():
        events = causes_of[cluster]
        bundles += int(np.count_nonzero(rows[: len(rows) - len(events)]))
        causes.update(events[number] for number in np.flatnonzero(rows[len(rows) - len(events) :]).tolist())
    if not causes:
        # Totals of nothing are equal; a quotient of nothing has no value and does not come here.
        return _few(bundles, "bundle", "bundles", case) if bundles else None
    cause, most = causes.most_common(1)[0]
    if bundles >= case.rules.min_units or most >= case.rules.min_events:
        return None
    count = quantity(most, *_EVENTS.get(cause, ("event happened", "events happened")))
    return f"{count}; which one is luck, and {case.rules.min_events} of min_events are asked for"


def _few(units: int, one: str, many: str, case: Case) -> str | None:
    if units >= max(2, case.rules.min_units):
        return None
    wanted = f"the {case.rules.min_units} of min_units" if units < case.rules.min_units else "the two that can differ"
    return f"it rests on {quantity(units, one, many)}, fewer than {wanted}"


def _has(estimate: Estimate | None) -> bool:
    return estimate is not None and math.isfinite(estimate.value)
