"""Score a replay from its sums to estimates, fidelity, verdicts and the exit code."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property

import numpy as np

from lookup.engine.measuring import bounds_of, question_of
from lookup.hooks import Metric
from lookup.replay.outcome import LOGGED, InputFacts, Number, ReplayOutcome
from lookup.score.luck import LEVEL, Estimate, around, estimate, pool_estimates, quantile
from lookup.score.rules import check_measured, check_rules, default_primary
from lookup.score.series import Series, series_of
from lookup.score.units import layout_of
from lookup.score.verdict import Case, Verdict, Winner, exit_code, judge, winners
from lookup.settings.evaluation import EvaluationSection, VerdictSection

__all__ = ["Fidelity", "Scored", "ScoringPlan", "compare_with_log", "score"]


@dataclass(frozen=True)
class ScoringPlan:
    """The policies to compare and the rules to compare them by."""

    #: names in the order of the settings, the incumbent among them
    policies: tuple[str, ...]
    evaluation: EvaluationSection
    rules: VerdictSection
    #: properties that a policy reads or that settings give to clients, whose match matters to users
    labels: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Fidelity:
    """One figure as logged and as replayed, NaN if unknown."""

    metric: str
    key: str | None
    logged: Number
    #: range in which one more replicate would lie, the ranges of all figures together with 95 %
    low: Number
    high: Number
    #: distance of the logged figure from that range. Smaller differences between policies may come from the replay
    gap: Number
    #: why there is no gap
    reason: str | None


@dataclass(frozen=True, eq=False)
class Scored:
    """A replay with all contents of its report."""

    plan: ScoringPlan
    metrics: Sequence[Metric]
    #: ordered by part of the demand, policy, metric, key, with pooled before clusters
    estimates: Sequence[Estimate]
    verdicts: Sequence[Verdict]
    #: by how much the best of so many equals would look better, of every figure that several candidates are judged by
    winners: Sequence[Winner]
    fidelity: Sequence[Fidelity]
    inputs: InputFacts
    #: why verdicts on a policy hold for its placement only, by policy
    placed_once: Mapping[str, str]
    #: why a policy cannot act as intended on this log, by policy
    cannot_act: Mapping[str, str]
    exit_code: int
    #: best figure of locality if the owners of a policy's bundles moved freely, by policy, metric and key
    at_best: Mapping[tuple[str, str, str | None], float] = field(default_factory=dict)
    #: the property by which the namespaces of a tenant send together, None if each is on its own
    label_of_tenants: str | None = None

    @property
    def incumbent(self) -> str:
        """The policy that all others are held against."""
        return self.plan.evaluation.incumbent

    @cached_property
    def metric(self) -> Mapping[str, Metric]:
        """The metrics by name."""
        return {metric.name: metric for metric in self.metrics}

    @cached_property
    def pooled(self) -> Mapping[tuple[str, str, str | None], Estimate]:
        """The figures over all clusters and the whole demand, by policy, metric and key."""
        return pool_estimates(self.estimates)


def score(outcome: ReplayOutcome, metrics: Sequence[Metric], plan: ScoringPlan) -> Scored:
    """Compute values, intervals and verdicts from the sums of a replay.

    Raises:
        SettingsError: if the rules name a metric that does not exist, or a key that the log does not have.
    """
    rules, incumbent = plan.rules, plan.evaluation.incumbent
    # Wrong names are refused before anything is computed, absent keys once the log has shown which there are.
    check_rules(rules, metrics)
    series = series_of(outcome.sums, metrics, [*plan.policies, LOGGED])
    fidelity = compare_with_log(series, incumbent, outcome.logged_reason)
    replayed = [figure for figure in series if figure.policy != LOGGED]
    layout = layout_of(
        replayed,
        cell_s=plan.evaluation.balance_s,
        block_s=rules.block_s,
        min_events=rules.min_events,
        min_units=rules.min_units,
        senders=outcome.senders,
        by_tenant=outcome.label_of_tenants is not None,
    )
    estimates = estimate(replayed, layout)
    check_measured(rules, metrics, {figure.name for figure in replayed if not figure.by})
    placed_once = _explain_one_placement(outcome, replayed, plan)
    reason = outcome.cannot_act.get(incumbent)
    case = Case(
        incumbent=incumbent,
        rules=rules,
        primary=default_primary(plan.labels) if rules.primary is None else rules.primary,
        layout=layout,
        gaps={(figure.metric, figure.key): figure.gap for figure in fidelity},
        placed_once=frozenset(placed_once),
        refused=None if reason is None else f"a part of the incumbent {incumbent} cannot act on this log",
        unpaired=outcome.unpaired,
        guarded=frozenset(metric.name for metric in metrics if question_of(metric) == "log"),
    )
    verdicts = judge(estimates, plan.policies, case)
    return Scored(
        plan=plan,
        metrics=metrics,
        estimates=estimates,
        verdicts=verdicts,
        winners=winners(estimates, verdicts),
        fidelity=fidelity,
        inputs=outcome.inputs,
        placed_once=placed_once,
        cannot_act=outcome.cannot_act,
        exit_code=exit_code(verdicts, rules),
        at_best=outcome.at_best,
        label_of_tenants=outcome.label_of_tenants,
    )


def compare_with_log(series: Sequence[Series], incumbent: str, logged_reason: str | None) -> list[Fidelity]:
    """Compare every pooled figure of the incumbent with the logged one, which a replicate could show.

    The range of a figure is that of one more replicate, by Student's t.

    Args:
        logged_reason: why the logged choices could not be measured at all.
    """
    replayed, logged = (
        {figure.name: figure for figure in series if figure.policy == policy and not figure.by}
        for policy in (incumbent, LOGGED)
    )
    # All ranges together hold with LEVEL (Bonferroni), and only figures that the log has can lie outside of theirs.
    level = LEVEL / max(1, sum(name in logged for name in replayed))
    compared = []
    for name, figure in replayed.items():
        logged_value = logged[name].value() if name in logged else math.nan
        values = np.array([figure.value_of_seed(seed) for seed in figure.seeds])
        n, mean, half = len(values), float(values.mean()), 0.0
        if n > 1 and not np.isnan(values).any():
            half = float(quantile(n - 1, level) * np.std(values, ddof=1) * math.sqrt(1.0 + 1.0 / n))
        low, high = around(mean, half, bounds_of(figure.metric) or (-math.inf, math.inf))
        gap, reason = math.nan, None
        if math.isfinite(logged_value - mean):
            gap = float(max(low - logged_value, logged_value - high, 0.0))
        elif name in logged:
            reason = "there is nothing to measure"
        else:
            reason = logged_reason or "it cannot be computed from the logged brokers"
        compared.append(Fidelity(*name, logged_value, low, high, gap, reason))
    return compared


def _explain_one_placement(outcome: ReplayOutcome, series: Sequence[Series], plan: ScoringPlan) -> dict[str, str]:
    reasons: dict[str, str] = {}
    for policy in plan.policies:
        own = [figure for figure in series if figure.policy == policy]
        unsalted = outcome.unsalted.get(policy)
        if unsalted:
            separate = "separates" if len(unsalted) == 1 else "separate"
            reasons[policy] = f"{' and '.join(unsalted)} {separate} equal brokers by their names, ignoring the salt"
        elif len({seed for figure in own for seed in figure.seeds}) == 1:
            reasons[policy] = "it was replayed with one seed"
        elif _are_equal_replicates(own):
            reasons[policy] = "all its replicates are the same"
    return reasons


def _are_equal_replicates(series: Sequence[Series]) -> bool:
    """Check whether all replicates of a policy have the same sums, though it gave bundles an owner.

    A policy that is not known to have ever given an owner does not have random variation from that.
    """
    counts = [part.sums for figure in series if figure.name == ("assignments", None) for part in figure.parts.values()]
    if counts and not any(sums.any() for sums in counts):
        return False
    for figure in series:
        first: dict[str, np.ndarray] = {}
        for (cluster, _), part in figure.parts.items():
            if not np.array_equal(first.setdefault(cluster, part.sums), part.sums):
                return False
    return True
