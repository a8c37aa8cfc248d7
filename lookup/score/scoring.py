"""The way from a replay's sums to a scored comparison: estimates, fidelity, verdicts, exit code."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from lookup.hooks import Metric
from lookup.replay.outcome import LOGGED, ReplayOutcome
from lookup.score.bootstrap import Draws, Resampling, draw
from lookup.score.estimates import Estimate, estimate
from lookup.score.fidelity import Fidelity, compare_with_log
from lookup.score.series import Series, series_of
from lookup.score.verdict import Case, Verdict, check_measured, check_rules, exit_code, judge
from lookup.settings.sections import EvaluationSection, VerdictSection

__all__ = ["Plan", "Scored", "score"]


@dataclass(frozen=True)
class Plan:
    """What is compared and by which rules."""

    #: names in the order of the settings, the incumbent among them
    policies: tuple[str, ...]
    evaluation: EvaluationSection
    rules: VerdictSection


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
    #: policies that roll dice and were replayed with one seed only
    one_roll: tuple[str, ...]
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
    draws = draw(replayed, _resampling(plan))
    estimates = estimate(replayed, draws)
    check_measured(plan.rules, metrics, estimates)
    verdicts = judge(estimates, plan.policies, _case(plan, draws, fidelity))
    return Scored(
        plan=plan,
        metrics=metrics,
        estimates=estimates,
        verdicts=verdicts,
        fidelity=fidelity,
        inputs=outcome.inputs,
        one_roll=_one_roll(outcome, replayed),
        exit_code=exit_code(verdicts, plan.rules),
    )


def _resampling(plan: Plan) -> Resampling:
    rules, evaluation = plan.rules, plan.evaluation
    return Resampling(rules.resamples, rules.block_s, evaluation.balance_s, evaluation.seeds[0])


def _case(plan: Plan, draws: Draws, fidelity: Sequence[Fidelity]) -> Case:
    gaps = {(one.metric, one.key): one.gap for one in fidelity}
    return Case(plan.evaluation.incumbent, plan.rules, draws, gaps)


def _one_roll(outcome: ReplayOutcome, series: Sequence[Series]) -> tuple[str, ...]:
    once = {one.policy for one in series if len(one.seeds) == 1}
    return tuple(sorted(once & outcome.rolled))
