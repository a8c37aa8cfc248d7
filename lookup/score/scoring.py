"""The way from a replay's sums to a scored comparison: estimates, fidelity, verdicts, exit code."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from lookup.hooks import Metric
from lookup.replay.outcome import LOGGED, ReplayOutcome
from lookup.score.estimates import Estimate, estimate
from lookup.score.fidelity import Fidelity, compare_with_log
from lookup.score.luck import Layout, layout_of
from lookup.score.rules import Name, check_measured, check_rules, default_primary
from lookup.score.series import Series, series_of
from lookup.score.verdict import Case, Verdict, exit_code, judge
from lookup.settings.sections import EvaluationSection, VerdictSection

__all__ = ["Plan", "Scored", "score"]


@dataclass(frozen=True)
class Plan:
    """What is compared and by which rules."""

    #: names in the order of the settings, the incumbent among them
    policies: tuple[str, ...]
    evaluation: EvaluationSection
    rules: VerdictSection
    #: properties that a policy reads or that settings give to clients: matching them is what users care about
    labels: tuple[str, ...] = ()


@dataclass(frozen=True, eq=False)
class Scored:
    """Everything a report says about an evaluation."""

    plan: Plan
    metrics: Sequence[Metric]
    #: ordered by part of the demand, policy, metric, key; pooled before clusters
    estimates: Sequence[Estimate]
    verdicts: Sequence[Verdict]
    fidelity: Sequence[Fidelity]
    inputs: Mapping[str, object]
    #: why verdicts on a policy hold for its placement only, by policy
    placed_once: Mapping[str, str]
    #: why a policy cannot do what it says on this log, by policy
    cannot_act: Mapping[str, str]
    exit_code: int

    @property
    def clusters(self) -> tuple[str, ...]:
        """Return the clusters with figures, sorted."""
        return tuple(sorted({one.cluster for one in self.estimates if one.cluster is not None}))


def score(outcome: ReplayOutcome, metrics: Sequence[Metric], plan: Plan) -> Scored:
    """Turn the sums of a replay into values, intervals and verdicts.

    Raises:
        SettingsError: where the rules name a metric there is not, or a key that the log does not have.
    """
    check_rules(plan.rules, metrics)
    series = series_of(outcome.sums, metrics, [*plan.policies, LOGGED])
    fidelity = compare_with_log(series, plan.evaluation.incumbent, outcome.logged_reason)
    replayed = [one for one in series if one.policy != LOGGED]
    layout = _layout(replayed, plan)
    estimates = estimate(replayed, layout)
    check_measured(plan.rules, metrics, _measured(estimates))
    placed_once = _placed_once(outcome, replayed, plan)
    verdicts = judge(estimates, plan.policies, _case(outcome, layout, fidelity, placed_once, plan))
    return Scored(
        plan=plan,
        metrics=metrics,
        estimates=estimates,
        verdicts=verdicts,
        fidelity=fidelity,
        inputs=outcome.inputs,
        placed_once=placed_once,
        cannot_act=outcome.cannot_act,
        exit_code=exit_code(verdicts, plan.rules),
    )


def _layout(series: Sequence[Series], plan: Plan) -> Layout:
    rules = plan.rules
    return layout_of(series, cell_s=plan.evaluation.balance_s, block_s=rules.block_s, min_events=rules.min_events)


def _measured(estimates: Sequence[Estimate]) -> set[Name]:
    return {one.series.name for one in estimates if one.cluster is None and not one.series.by}


def _case(
    outcome: ReplayOutcome, layout: Layout, fidelity: Sequence[Fidelity], placed_once: Mapping[str, str], plan: Plan
) -> Case:
    incumbent, rules = plan.evaluation.incumbent, plan.rules
    why = outcome.cannot_act.get(incumbent)
    return Case(
        incumbent=incumbent,
        rules=rules,
        primary=default_primary(plan.labels) if rules.primary is None else rules.primary,
        layout=layout,
        gaps={(one.metric, one.key): one.gap for one in fidelity},
        placed_once=frozenset(placed_once),
        refused=None if why is None else f"the incumbent {incumbent} is not what it says: {why}",
    )


def _placed_once(outcome: ReplayOutcome, series: Sequence[Series], plan: Plan) -> dict[str, str]:
    """Say by policy why what is found of it may be luck that no replicate shows, if it may be."""
    reasons: dict[str, str] = {}
    for policy in plan.policies:
        own = [one for one in series if one.policy == policy]
        unsalted = outcome.unsalted.get(policy)
        if unsalted:
            tell = "tells" if len(unsalted) == 1 else "tell"
            reasons[policy] = f"{' and '.join(unsalted)} {tell} equal brokers apart by their names, whatever the salt"
        elif len({seed for one in own for seed in one.seeds}) == 1:
            reasons[policy] = "it was replayed with one seed"
        elif plan.evaluation.ownership == "exclusive" and _has_placed(own) and all(map(_is_same, own)):
            reasons[policy] = "all its replicates are the same"
    return reasons


def _has_placed(series: Sequence[Series]) -> bool:
    """Tell whether a policy gave any bundle an owner, as far as is known: one that never does has no luck with it."""
    counts = [part.sums for one in series if one.name == ("assignments", None) for part in one.parts.values()]
    return not counts or any(sums.any() for sums in counts)


def _is_same(series: Series) -> bool:
    """Tell whether all replicates of a series have the same sums."""
    by_cluster: dict[str, np.ndarray] = {}
    sums = ((cluster, part.sums) for (cluster, _), part in series.parts.items())
    return all(np.array_equal(by_cluster.setdefault(cluster, own), own) for cluster, own in sums)
