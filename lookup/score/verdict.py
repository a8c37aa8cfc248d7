"""Judge each candidate against the re-simulated incumbent, metric by metric, pooled over clusters.

A verdict reports whether it rests on too few blocks of time, bundles or events, and by how much the best of several
equal candidates would look better. Intervals come from `luck`, rules from the settings (`docs/scoring.md`).
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Literal

import numpy as np
from numpy.typing import NDArray
from scipy import special

from lookup.engine.measuring import luck_of
from lookup.engine.ownership import EVENT_WORDS
from lookup.hooks import Luck, Question
from lookup.model.evidence import effective
from lookup.model.quoting import quantity
from lookup.replay.outcome import MetricSums, Number
from lookup.score.luck import LEVEL, Estimate, Spread, least_chance, pool_estimates, spread
from lookup.score.rules import Name, margin_of, may_decide, name_of, selects
from lookup.score.series import Series
from lookup.score.units import Layout, Sample, Units, is_enough, minus, sample
from lookup.settings.evaluation import VerdictSection

__all__ = [
    "GATE_LEVEL", "Case", "Guard", "HoldsFor", "InCluster", "Span", "Verdict", "Winner", "Word", "exit_code", "holm",
    "is_undecided", "judge", "too_few", "winners",
]  # fmt: skip

Word = Literal["better", "worse", "equivalent", "identical", "inconclusive"]
HoldsFor = Literal["policy", "placement", "hours", "independence"]
#: Whether it is shown that a guarded figure does not get worse, that it does, or neither.
Guard = Literal["kept", "lost", "open"]

#: Lookups whose loss is not significant unless it is certain.
_HANDFUL = 5
#: Probability that any comparison for the exit code decides between equals when a loss is reported. Half of such
#: decisions are losses, so that of two hundred runs of equals one may fail. For a gain it is LEVEL.
GATE_LEVEL = 0.01
#: Advice for a narrower interval, by its largest random source.
_REMEDIES: Mapping[Luck, str] = {
    "placement": "most of the noise comes from the placement, which more seeds would average out",
    "demand": "most of the noise comes from the demand, which a longer log or more bundles would reduce",
    "events": "most of the noise comes from the events, and a log with more of them would reduce it",
}
_DRIFTS = "the difference drifts over the whole log, so only a longer log can decide"


@dataclass(frozen=True, slots=True)
class Span:
    """The answer to one question, which is the interval of a difference and its probability between equals."""

    #: 95 % interval of the verdict's delta, NaN if there is none
    low: Number
    high: Number
    #: two-sided probability of a difference as large between equals, NaN without an interval
    p_value: Number


@dataclass(frozen=True, slots=True)
class InCluster:
    """The difference in one cluster. All differences of a run hold together with 95 %."""

    cluster: str
    #: as the verdict's
    delta: Number
    low: Number
    high: Number


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
    #: candidate - incumbent, turned so that up is better, NaN if one has no value
    delta: Number
    #: 95 % interval of delta for the question that is judged, NaN if there is none
    low: Number
    high: Number
    #: whether it may decide the exit code
    primary: bool
    #: tolerance below which a difference does not count, in the metric's unit
    margin: Number = math.nan
    #: "placement" if another random draw may reverse it, since no replicate shows a policy's placement with other
    #: names. "hours" if the difference drifts so slowly that other hours may reverse it. "independence" if so few
    #: senders have the traffic that their demand has to be assumed independent
    holds_for: HoldsFor = "policy"
    #: probability of a difference as large between equals, NaN if there is no interval
    p_value: Number = math.nan
    #: the same, adjusted for all comparisons together (Holm), for the exit code or else of one figure, NaN without one
    p_family: Number = math.nan
    #: the verdict if it were the only comparison, None if it is the same
    alone: Word | None = None
    #: subject of low, high and p_value, either this log alone or similar demand
    question: Question = "demand"
    #: for a metric that is judged on this log, whether there is no loss, None for others
    guard: Guard | None = None
    #: senders of the demand that it rests on, None if it is judged on this log, or has no interval
    units: Units | None = None
    #: the answers to both questions
    on_log: Span = Span(math.nan, math.nan, math.nan)
    for_demand: Span = Span(math.nan, math.nan, math.nan)
    #: the differences by cluster if some clusters gain and others lose, else empty
    clusters: tuple[InCluster, ...] = ()

    @property
    def name(self) -> Name:
        """Metric and key."""
        return self.metric, self.key

    @property
    def is_decided(self) -> bool:
        """Whether the difference between candidate and incumbent is decided."""
        return self.verdict in ("better", "worse")


@dataclass(frozen=True, eq=False)
class Case:
    """The inputs of verdicts other than the two estimates."""

    incumbent: str
    rules: VerdictSection
    #: names of the figures that decide, `metric` or `metric:key`
    primary: tuple[str, ...]
    layout: Layout
    #: fidelity gap by figure, absent or NaN if unknown
    gaps: Mapping[Name, float] = field(default_factory=dict)
    #: policies whose verdicts hold for their placement only, and those whose replicates are not paired with others'
    placed_once: frozenset[str] = frozenset()
    unpaired: frozenset[str] = frozenset()
    #: why no verdict against the incumbent is possible, None if verdicts are possible
    refused: str | None = None
    #: metrics that are judged on this log alone
    guarded: frozenset[str] = frozenset()


def judge(estimates: Sequence[Estimate], policies: Sequence[str], case: Case) -> list[Verdict]:
    """Judge every policy but the incumbent by every metric that has a direction, in the order of the estimates."""
    of_policy = pool_estimates(estimates)
    # Figures of the incumbent first.
    names = dict.fromkeys(key[1:] for key in sorted(of_policy, key=lambda key: key[0] != case.incumbent))
    verdicts = []
    for policy in policies:
        if policy == case.incumbent:
            continue
        judged = set()
        for name in names:
            candidate, incumbent = of_policy.get((policy, *name)), of_policy.get((case.incumbent, *name))
            estimate = candidate if _has_value(candidate) else incumbent
            if estimate is None or not _has_value(estimate) or estimate.series.metric.better == "info":
                continue  # nothing to judge, since neither has a value, or there is no direction
            primary = any(selects(named, name) for named in case.primary)
            if estimate.series.metric.resample == "none" and not primary:
                continue  # without interval there is no verdict, which is reported only where a verdict was requested
            judged.add(name)
            once = "placement" in luck_of(estimate.series.metric) and bool(case.placed_once & {policy, case.incumbent})
            blank = replace(
                _build_blank(policy, name, case, primary=primary), holds_for="placement" if once else "policy"
            )
            verdicts.append(_measure(blank, candidate, incumbent, case))
        for named in case.rules.primary or ():
            if not any(selects(named, name) for name in judged):
                # Silence must not look like consent.
                reason = "it was not measured for either policy"
                verdicts.append(replace(_build_blank(policy, name_of(named), case, primary=True), reason=reason))
    return _adjust_for_family(verdicts, case)


def exit_code(verdicts: Sequence[Verdict], rules: VerdictSection) -> int:
    """Find the exit code, 3 if a primary metric is worse, 4 without a required decision, else 0.

    A guarded metric must not get worse. Rules may require a decision on every primary metric, and accept one placement.
    """
    primary = [verdict for verdict in verdicts if verdict.primary]
    deciding = [verdict for verdict in primary if may_decide(verdict.holds_for, rules)]
    if any(verdict.verdict == "worse" for verdict in deciding):
        return 3
    is_open = len(deciding) < len(primary) or any(is_undecided(verdict) for verdict in deciding)
    is_unguarded = any(verdict.guard in ("lost", "open") for verdict in primary)
    return 4 if is_unguarded or (rules.require_decision and is_open) else 0


def is_undecided(verdict: Verdict) -> bool:
    """Check whether the question is open. For a guarded figure it is a possible loss, for others the verdict."""
    return verdict.guard == "open" if verdict.guard is not None else verdict.verdict == "inconclusive"


def _build_blank(policy: str, name: Name, case: Case, *, primary: bool) -> Verdict:
    nothing, is_guarded = math.nan, name[0] in case.guarded
    return Verdict(
        policy, case.incumbent, *name, "inconclusive", None, nothing, nothing, nothing, primary=primary,
        question="log" if is_guarded else "demand", guard="open" if is_guarded else None,
    )  # fmt: skip


def _measure(blank: Verdict, candidate: Estimate | None, incumbent: Estimate | None, case: Case) -> Verdict:
    if case.refused is not None:
        return replace(blank, reason=case.refused)
    if candidate is None or incumbent is None or not (_has_value(candidate) and _has_value(incumbent)):
        missing = blank.against if _has_value(candidate) else blank.policy
        return replace(blank, reason=f"there is nothing to measure for {missing}")
    a, b = candidate.series, incumbent.series
    sign = 1.0 if a.metric.better == "up" else -1.0
    # adding 0.0 turns -0.0 into 0.0
    delta = sign * (candidate.value - incumbent.value) + 0.0
    if not math.isfinite(delta):
        return replace(blank, reason="the difference is larger than floating-point numbers are")
    verdict = replace(blank, delta=delta, margin=margin_of(a.metric, a.key, case.rules, incumbent.value))
    # Two names of one policy have the same sums in every unit, not only the same total.
    if a.parts.keys() == b.parts.keys() and all(
        np.array_equal(part.sums, b.parts[unit].sums) for unit, part in a.parts.items()
    ):
        # The replay's own error is the same for both, and there is nothing that chance could bring.
        same = Span(0.0, 0.0, math.nan)
        return _judge_guard(
            replace(verdict, verdict="identical", low=0.0, high=0.0, on_log=same, for_demand=same, holds_for="policy")
        )
    if candidate.sample is None or incumbent.sample is None or candidate.sample.strata is None:
        return replace(verdict, reason="the metric has no interval: it does not add over bundles or time")
    difference = minus(candidate.sample, incumbent.sample, is_paired=case.unpaired.isdisjoint((a.policy, b.policy)))
    lucks: dict[Question, Spread] = {"log": spread(difference, "log"), "demand": spread(difference)}
    spans: dict[Question, Span] = {}
    for question, luck in lucks.items():
        half = luck.half_width()
        spans[question] = Span(delta - half, delta + half, luck.chance(delta))
    luck, span = lucks[verdict.question], spans[verdict.question]
    verdict = replace(
        verdict, low=span.low, high=span.high, on_log=spans["log"], for_demand=spans["demand"],
        clusters=_compare_clusters(a, b, case, verdict.question),
        units=difference.units if verdict.question == "demand" else None,
    )  # fmt: skip
    if verdict.question == "demand":
        reason = too_few(a, b, difference, case.layout, case.rules)
        if reason is not None:
            return replace(verdict, reason=reason)
    if not (delta or luck.error):
        return _judge_guard(replace(verdict, verdict="equivalent"))
    pronounced = _pronounce(replace(verdict, p_value=span.p_value), luck, case)
    return _judge_guard(pronounced, delta - luck.half_width(2 * LEVEL), max(verdict.margin, _compute_handful(b)))


def _pronounce(verdict: Verdict, luck: Spread, case: Case) -> Verdict:
    """Give the word on a difference with an interval, or the reason why there is none."""
    gap = float(np.nan_to_num(case.gaps.get(verdict.name, 0.0)))
    # If it holds for one placement only, the restriction to these hours need not be reported.
    decided = replace(verdict, holds_for=_find_scope(verdict, luck)) if verdict.holds_for == "policy" else verdict
    # A guarded figure is judged on the log as replayed, under both policies with the same error.
    apart = gap if verdict.guard is None else 0.0
    if -verdict.margin <= verdict.low - apart and verdict.high + apart <= verdict.margin:
        return replace(decided, verdict="equivalent")
    if gap and abs(verdict.delta) <= gap:
        reason = (
            f"the difference is not above the fidelity gap {gap:.3g}: the replayed incumbent is that far from the log"
        )
        return replace(verdict, reason=reason)
    # A guarded figure may be worse by its margin.
    lost = 0.0 if verdict.guard is None else -verdict.margin
    if verdict.low > 0 or verdict.high < lost:
        if luck.least <= LEVEL:
            return replace(decided, verdict="better" if verdict.delta > 0 else "worse")
        seeds = quantity(len(case.layout.seeds), "seed")
        reason = f"{seeds} can carry no probability below {luck.least:.2g}, however large the difference; 5 seeds would"
        return replace(verdict, reason=reason)
    half = max((verdict.high - verdict.low) / 2, gap)
    reason = "the interval holds differences either way"
    if -verdict.margin <= verdict.low and verdict.high <= verdict.margin:
        reason = f"the interval lies within the margin, but not if it is widened by the fidelity gap {gap:.3g}"
    source = luck.main_source
    remedy = _DRIFTS if luck.is_drifting and source == "demand" else _REMEDIES[source]
    return replace(verdict, reason=f"{reason}; smallest detectable effect {half:.3g}, {remedy}")


def _find_scope(verdict: Verdict, luck: Spread) -> HoldsFor:
    """Find the range in which a decided difference holds, if any placement shows it."""
    if luck.is_drifting:
        return "hours"
    return "independence" if verdict.units is not None and verdict.units.is_taken_for_granted else "policy"


def _judge_guard(verdict: Verdict, at_worst: float = 0.0, tolerated: float = 0.0) -> Verdict:
    """Judge whether a guarded metric loses no more than `tolerated` at worst, by the one-sided lower bound."""
    if verdict.guard is None:
        return verdict
    if verdict.verdict == "worse":
        return replace(verdict, guard="lost")
    if verdict.verdict != "inconclusive" or at_worst >= -tolerated:
        return replace(verdict, guard="kept")
    reason = f"that no more than {tolerated:.3g} is lost cannot be shown, it may be {-at_worst:.3g}"
    return replace(verdict, guard="open", reason=f"{reason}: {verdict.reason}")


def _compute_handful(series: Series) -> float:
    """Compute the share of a few lookups, 0.0 for other figures. Smaller losses are not significant."""
    if series.metric.unit != "ratio" or series.metric.grain != "lookup":
        return 0.0
    lookups = sum(float(part.sums[:, -1].sum()) for part in series.parts.values()) / len(series.seeds)
    return _HANDFUL / lookups if lookups else 0.0


def _adjust_for_family(verdicts: Sequence[Verdict], case: Case) -> list[Verdict]:
    """Revoke decisions that chance alone would bring among all comparisons made for one purpose.

    Comparisons that may decide the exit code are one family. For every other figure the comparisons of all
    candidates are one, since readers look at the best of many first.
    """
    families: dict[Name | None, list[int]] = {}
    for index, verdict in enumerate(verdicts):
        if not math.isnan(verdict.p_value):
            decides = verdict.primary and may_decide(verdict.holds_for, case.rules)
            families.setdefault(None if decides else verdict.name, []).append(index)
    judged = list(verdicts)
    for name, members in families.items():
        for index, adjusted in zip(members, holm([verdicts[index].p_value for index in members]), strict=True):
            verdict = replace(verdicts[index], p_family=adjusted)
            judged[index] = _adjust_verdict(verdict, len(members), case, decides=name is None)
    return judged


def holm(chances: Sequence[float]) -> list[float]:
    """Adjust probabilities of differences between equals for all comparisons made together.

    Source: Holm, A Simple Sequentially Rejective Multiple Test Procedure, Scandinavian Journal of Statistics 6 (1979).
    """
    adjusted, highest = [1.0] * len(chances), 0.0
    for rank, place in enumerate(sorted(range(len(chances)), key=lambda place: chances[place])):
        # The running maximum keeps the order, since no comparison may pass that is less probable than a failed one.
        highest = max(highest, min(1.0, (len(chances) - rank) * chances[place]))
        adjusted[place] = highest
    return adjusted


def _adjust_verdict(verdict: Verdict, members: int, case: Case, *, decides: bool) -> Verdict:
    """Judge a verdict as one of several comparisons, undecided if chance among so many brings the difference."""
    level = GATE_LEVEL if decides and verdict.verdict == "worse" else LEVEL
    if not verdict.is_decided or verdict.p_family <= level:
        return verdict
    scope = "for the exit code" if decides else "of this figure"
    reason = (
        f"alone it would be {verdict.verdict}, but in {quantity(members, 'comparison')} {scope} chance brings such a "
        f"difference with probability {verdict.p_family:.2g}, and {level:g} is asked for"
    )
    least = least_chance(len(case.layout.seeds))
    if least * members > level:
        reason += f"; {quantity(len(case.layout.seeds), 'seed')} can carry no less than {least:.2g} in each"
    return replace(
        verdict, verdict="inconclusive", reason=reason, alone=verdict.verdict, holds_for="policy",
        guard="open" if verdict.guard == "lost" else verdict.guard,
    )  # fmt: skip


def _compare_clusters(a: Series, b: Series, case: Case, question: Question) -> tuple[InCluster, ...]:
    """Compute the difference of two series in every cluster if some clusters certainly gain and some lose."""
    clusters = [name for name in a.clusters if name in b.clusters]
    sign, seeds = 1.0 if a.metric.better == "up" else -1.0, case.layout.seeds
    gains = [np.mean([a.value_of_seed(one, name) - b.value_of_seed(one, name) for one in seeds]) for name in clusters]
    # Before any unit is left out, which takes most of the time of scoring, since most figures agree in all clusters.
    if not {-1.0, 1.0} <= set(np.sign(gains)):
        return ()
    parts = []
    for name in clusters:
        difference = minus(sample(a, case.layout, name), sample(b, case.layout, name))
        delta = sign * difference.mean
        half = spread(difference, question).half_width(LEVEL / len(clusters))
        parts.append(InCluster(name, delta + 0.0, delta - half, delta + half))
    return tuple(parts) if any(part.low > 0 for part in parts) and any(part.high < 0 for part in parts) else ()


def _has_value(estimate: Estimate | None) -> bool:
    return estimate is not None and math.isfinite(estimate.value)


@dataclass(frozen=True, slots=True)
class Winner:
    """The advantage in one figure that random placement gives the best of some candidates."""

    metric: str
    key: str | None
    candidates: int
    #: the mean over the candidates, in the metric's unit
    value: Number
    #: how far the best of so many equals would be from that on average, in the metric's unit
    advantage: Number


def winners(estimates: Sequence[Estimate], verdicts: Sequence[Verdict]) -> list[Winner]:
    """Compute the advantage in every figure on which several candidates are judged, in the order of the estimates.

    The candidates are treated as equals whose means over replicates vary with their average variance. Source of the
    mean of the largest of n normal numbers: Blom, Statistical Estimates and Transformed Beta-Variables (Wiley, 1958).
    """
    judged = {(verdict.policy, *verdict.name) for verdict in verdicts if not math.isnan(verdict.p_value)}
    of_name: dict[tuple[str, str | None], list[Estimate]] = {}
    for figure in estimates:
        if figure.sample is not None and (figure.series.policy, *figure.series.name) in judged:
            of_name.setdefault(figure.series.name, []).append(figure)
    rows = []
    for name, figures in of_name.items():
        n = len(figures)
        samples = [figure.sample for figure in figures if figure.sample is not None]
        variance = sum(spread(part, "log").variances["placement"] for part in samples) / n
        if n > 1 and variance > 0:
            largest = float(special.ndtri((n - 0.375) / (n + 0.25)))
            value = sum(figure.value for figure in figures) / n
            rows.append(Winner(*name, n, value, largest * math.sqrt(variance)))
    return rows


def too_few(a: Series, b: Series, difference: Sample, layout: Layout, rules: VerdictSection) -> str | None:
    """Write the sentence that a comparison rests on too few units or events with figures, None if it does not."""
    parts = [(cluster, part) for series in (a, b) for (cluster, _), part in series.parts.items()]
    if a.metric.resample == "time":
        return _explain_few_blocks([part for _, part in parts], layout, rules)
    weights = difference.weights(difference.depth)
    if is_enough(weights, rules.min_units):
        return None
    causes = _active_events(parts)
    if not causes:
        # Empty totals are equal. An empty quotient has no value and is handled elsewhere.
        return _explain_few_bundles(weights, rules) if weights.any() else None
    cause, most = causes.most_common(1)[0]
    if most >= rules.min_events:
        return None
    count = quantity(most, *EVENT_WORDS.get(cause, ("event happened", "events happened")))
    return f"only {count}, fewer than the {rules.min_events} of min_events"


def _explain_few_blocks(parts: Sequence[MetricSums], layout: Layout, rules: VerdictSection) -> str | None:
    # Starts of the cells with figures under either policy, in any cluster. Cells of one time are one unit.
    cells = [part.start_us + np.flatnonzero(part.sums.any(axis=1)) * layout.cell_us for part in parts]
    blocks = -(-len(np.unique(np.concatenate(cells))) // layout.block)
    if blocks >= max(2, rules.min_units):
        return None
    based_on = quantity(blocks, "block of time", "blocks of time")
    return f"it is based on {based_on}, fewer than {_describe_wanted(blocks, rules)}"


def _active_events(parts: Sequence[tuple[str, MetricSums]]) -> Counter[str]:
    active: dict[str, NDArray[np.bool_]] = {}
    for cluster, part in parts:
        rows = np.asarray(part.sums[len(part.sums) - len(part.events) :].any(axis=1))
        active[cluster] = active[cluster] | rows if cluster in active else rows
    causes_of = {cluster: part.events for cluster, part in parts}
    return Counter(causes_of[name][number] for name, rows in active.items() for number in np.flatnonzero(rows))


def _explain_few_bundles(weights: NDArray[np.float64], rules: VerdictSection) -> str:
    bundles, worth, least = int(np.count_nonzero(weights)), effective(weights), max(2, rules.min_units)
    if bundles < least:
        return f"it is based on {quantity(bundles, 'bundle')}, fewer than {_describe_wanted(bundles, rules)}"
    return (
        f"one bundle has {weights.max() / weights.sum():.0%} of the load behind it, so {bundles:,} bundles "
        f"count as {min(worth, least - 0.1):.1f} of equal load, fewer than {_describe_wanted(worth, rules)}"
    )


def _describe_wanted(units: float, rules: VerdictSection) -> str:
    return f"the {rules.min_units} of min_units" if units < rules.min_units else "the two that can differ"
