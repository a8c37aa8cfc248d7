"""Judge a run for a pipeline: by its primary metrics, or against a budget of tolerated regressions.

A budget is judged by intervals. What is beyond it with certainty fails, what is within it with certainty passes, and
everything else is undecided; so two runs of the same policies pass, whatever the budget. `docs/ci.md` explains it.

A pipeline reads the outcome as JUnit XML.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Literal
from xml.etree import ElementTree as ET

from lookup.engine.measuring import question_of
from lookup.errors import Argument, Sentence, SettingsError
from lookup.hooks import Metric
from lookup.model.quoting import one_line, quantity, suggestion
from lookup.report.comparison import (
    UNJUDGED,
    condition_of,
    interval_text,
    label,
    mark_of,
    number_text,
    own_direction,
    signed_text,
)
from lookup.report.difference import Change, Difference
from lookup.report.wording import is_open, opening
from lookup.score.luck import LEVEL, least_chance, quantile, replicates_for
from lookup.score.rules import name_of
from lookup.score.scoring import Scored
from lookup.score.verdict import Verdict

__all__ = [
    "CHECK_HEADS", "EXCEEDED", "Check", "Gate", "Outcome", "check_budget", "gate_of", "junit_xml",
]  # fmt: skip

Outcome = Literal["passed", "failed", "undecided", "not judged"]
#: From what a reader has to see first to what may be skipped.
OUTCOMES: tuple[Outcome, ...] = ("failed", "undecided", "not judged", "passed")
#: Exit code if a budget is exceeded.
EXCEEDED = 5
#: Heads of the table of checks.
CHECK_HEADS = ("result", "policy", "figure", "change", "interval", "budget")


@dataclass(frozen=True, slots=True)
class Check:
    """One figure of one policy that may fail a pipeline."""

    policy: str
    #: as in the report, `moves[shed]`
    name: str
    unit: str
    outcome: Outcome
    #: policy - reference with its interval, in the metric's own direction; NaN if unknown
    change: float
    low: float
    high: float
    #: largest tolerated regression; NaN if the verdict decides
    budget: float
    #: why it is not passed, one clause; empty if it is
    reason: str = ""
    mark: str = ""

    @property
    def row(self) -> tuple[str, ...]:
        """Return the check in words under `CHECK_HEADS`."""
        tolerated = "" if math.isnan(self.budget) else f"{number_text(self.budget)} {self.unit}"
        change = f"{signed_text(self.change, self.unit)} {self.unit} {self.mark}".strip()
        interval = interval_text(self.low, self.high, self.unit)
        return self.outcome, self.policy, self.name, change, interval, tolerated


@dataclass(frozen=True)
class Gate:
    """What a run says to a pipeline."""

    #: the first line of everything that a pipeline shows
    headline: str
    #: those that failed first
    checks: tuple[Check, ...]
    has_budget: bool
    exit_code: int


def check_budget(budget: Mapping[str, float], metrics: Sequence[Metric], names: Sequence[str] | None = None) -> None:
    """Refuse a budget of what has no direction or is not measured.

    Args:
        budget: largest tolerated regression by `metric` or `metric:key`.
        names: of the figures of a finished run, as in its report; None: not known yet, so that keys are not checked.

    Raises:
        SettingsError: all wrong names together.
    """
    known = {metric.name: metric for metric in metrics}
    problems = []
    for named in budget:
        metric = name_of(named)[0]
        if metric not in known:
            problems.append(f"no metric is named {metric!r}; {suggestion(metric, sorted(known))}")
        elif known[metric].better == "info":
            problems.append(
                f"{named!r} has no direction and cannot regress; a metric that goes up or down would be right"
            )
        elif names is not None and not _selected(named, names):
            keys = sorted(name for name in names if name.startswith(f"{metric}["))
            right = f"it has {', '.join(keys)}" if keys else f"it has no figure of {metric}"
            problems.append(f"{named!r} could be measured for no policy of this run; {right}")
    if problems:
        raise SettingsError([Sentence(Argument("budget"), f": {problem}") for problem in problems])


def _selected(named: str, names: Sequence[str]) -> list[str]:
    """Return the figures that a name of a budget means: the one named, the whole, or else every key of its metric."""
    exact = label(*name_of(named))
    if exact in names:
        return [exact]
    return [name for name in names if ":" not in named and name.startswith(f"{named}[")]


def gate_of(scored: Scored, budget: Mapping[str, float] | None = None, difference: Difference | None = None) -> Gate:
    """Judge a run by its primary metrics or, if there is one, by a budget alone.

    Args:
        budget: largest tolerated regression by `metric` or `metric:key`, in the metric's unit.
        difference: from an earlier run to this one, which the budget is then about; None: it is about the differences
            of candidates from the incumbent.

    Raises:
        SettingsError: if the budget names what this run does not have.
    """
    if budget is None:
        checks = [_by_verdict(verdict, scored) for verdict in scored.verdicts if verdict.primary]
        headline, code = " ".join(opening(scored)), scored.exit_code
        return Gate(headline, _in_order(checks), has_budget=False, exit_code=code)
    check_budget(budget, scored.metrics, _names(scored))
    if difference is None:
        checks = list(_named([_candidate(verdict, scored) for verdict in scored.verdicts], _names(scored), budget))
    else:
        changes = [_change(change, scored, difference) for change in difference.changes]
        checks = list(_named(changes, list(dict.fromkeys(change.name for change in changes)), budget))
    if not checks:
        # Silence must not look like consent.
        raise SettingsError(
            Argument("budget"),
            ": there is no candidate to hold against it; give ",
            Argument("against", "RUN_DIR"),
            ", or an evaluation with a candidate",
        )
    checks = _judged(checks, scored)
    guarded = {metric.name for metric in scored.metrics if question_of(metric) == "log"}
    open_ = [check for check in checks if check.outcome in ("undecided", "not judged")]
    is_unguarded = any(check.name.partition("[")[0] in guarded for check in open_)
    code = 4 if is_unguarded or (open_ and scored.plan.rules.require_decision) else 0
    if any(check.outcome == "failed" for check in checks):
        code = EXCEEDED
    return Gate(_headline(checks, code), _in_order(checks), has_budget=True, exit_code=code)


def _in_order(checks: Sequence[Check]) -> tuple[Check, ...]:
    return tuple(sorted(checks, key=lambda check: OUTCOMES.index(check.outcome)))


def _names(scored: Scored) -> list[str]:
    return list(dict.fromkeys(label(*figure.series.name) for figure in scored.estimates if not figure.series.by))


def _check(verdict: Verdict, scored: Scored) -> Check:
    metric = scored.metric[verdict.metric]
    change, low, high = own_direction(verdict, metric.better)
    return Check(
        policy=verdict.policy,
        name=label(*verdict.name),
        unit=metric.unit,
        outcome="undecided",
        change=change,
        low=low,
        high=high,
        budget=math.nan,
        reason=verdict.reason or "",
        mark=mark_of(verdict),
    )


def _by_verdict(verdict: Verdict, scored: Scored) -> Check:
    check = _check(verdict, scored)
    if verdict.guard == "kept":
        return replace(check, outcome="passed", reason="")
    if is_open(verdict, scored):
        return replace(check, reason=check.reason or f"it holds {condition_of(verdict)}")
    if verdict.verdict == "worse":
        return replace(check, outcome="failed", reason="it is worse on a primary metric")
    if verdict.verdict == "inconclusive":
        return replace(check, outcome="not judged" if math.isnan(verdict.low) else "undecided")
    return replace(check, outcome="passed")


def _named(checks: Sequence[Check], names: Sequence[str], budget: Mapping[str, float]) -> Iterator[Check]:
    for named, tolerated in budget.items():
        for name in _selected(named, names):
            yield from (replace(check, budget=tolerated) for check in checks if check.name == name)


def _candidate(verdict: Verdict, scored: Scored) -> Check:
    """Write the difference of a candidate from the incumbent; a reason says why it is no judge."""
    check = _check(verdict, scored)
    # Without a p value a comparison rests on too little, unless both are the same.
    if verdict.verdict not in ("equivalent", "identical") and math.isnan(verdict.p_value):
        return check
    is_said = check.change and is_open(verdict, scored)
    return replace(check, reason=f"it holds {condition_of(verdict)}" if is_said else "")


def _change(change: Change, scored: Scored, difference: Difference) -> Check:
    """Write a change since an earlier run; a reason says why it is no judge."""
    reasons = [
        verdict.reason or ""
        for verdict in scored.verdicts
        if (verdict.policy, label(*verdict.name)) == (change.policy, change.name)
        and (verdict.verdict == "inconclusive" and math.isnan(verdict.p_value) and not math.isnan(verdict.low))
    ]
    reason = reasons[-1] if reasons else ""
    if change.unlike:
        reason = f"not comparable: {change.unlike}"
    elif math.isnan(change.delta):
        missing = "the earlier run" if math.isnan(change.first) else "this run"
        reason = f"{missing} has no figure of it"
    elif change.policy in scored.cannot_act:
        reason = f"{change.policy} is not what it says: {scored.cannot_act[change.policy]}"
    elif change.delta and change.policy in {*scored.placed_once, *difference.runs[0].scored.placed_once}:
        reason = reason or ("" if scored.plan.rules.accept_placement else "it holds only in this placement")
    return Check(
        policy=change.policy,
        name=change.name,
        unit=change.unit,
        outcome="undecided",
        change=change.delta,
        low=change.delta - change.half,
        high=change.delta + change.half,
        budget=math.nan,
        reason=reason,
        mark=change.mark,
    )


def _judged(checks: Sequence[Check], scored: Scored) -> list[Check]:
    """Judge all checks of a budget together, so that between equals chance fails at most 5 % of all runs.

    The chance is shared out equally (Bonferroni), by Student's t with the degrees of freedom of the replicates.
    """
    with_interval = sum(check.high > check.low and not check.reason for check in checks)
    seeds = len(scored.plan.evaluation.drawn)
    freedom = max(1, seeds - 1)
    # One-sided: only what is worse fails. Never narrower than the intervals of the report.
    wider = max(1.0, quantile(freedom, 2 * LEVEL / max(1, with_interval)) / quantile(freedom))
    gaps = {label(*name): gap for name, gap in scored.gaps.items()}
    judged = [_against_budget(check, scored, wider, gaps.get(check.name, 0.0)) for check in checks]
    # However large the difference: equals come out apart that often, one-sided, in so many replicates.
    compared = sum(bool(check.change) for check in judged)
    if seeds == 1 or least_chance(seeds) / 2 * compared <= LEVEL:
        return judged
    enough = replicates_for(2 * LEVEL / compared)
    few = f"{quantity(seeds, 'seed')} can carry no failure of {quantity(compared, 'figure')}; {enough} seeds would"
    return [replace(each, outcome="undecided", reason=few) if each.outcome == "failed" else each for each in judged]


def _against_budget(check: Check, scored: Scored, wider: float, gap: float) -> Check:
    """Judge one check.

    Args:
        wider: factor of the interval, which then holds together with those of all other checks.
        gap: distance of the replayed incumbent from the log: what is below it may be the replay's own.
    """
    if math.isnan(check.change):
        return replace(check, outcome="not judged", mark=UNJUDGED)
    if math.isnan(check.low) and not check.change:
        return replace(check, outcome="passed", low=check.change, high=check.change, reason="")
    if math.isnan(check.low):
        reason = check.reason or "the metric has no interval: it does not add over bundles or time"
        return replace(check, outcome="not judged", reason=reason, mark=UNJUDGED)
    half = (check.high - check.low) / 2 * wider
    check = replace(check, low=check.change - half, high=check.change + half)
    better = scored.metric[check.name.partition("[")[0]].better
    worse = -check.change if better == "up" else check.change
    least, most = worse - half, worse + half
    if not (check.change or half):
        return replace(check, outcome="passed", reason="")
    if check.reason:
        return check
    if most + gap <= check.budget:
        return replace(check, outcome="passed")
    if least > check.budget and abs(check.change) > gap:
        reason = f"it regresses by {number_text(least)} {check.unit} at least"
        return replace(check, outcome="failed", reason=f"{reason}, and {number_text(check.budget)} are tolerated")
    if least > check.budget:
        return replace(check, reason=f"the change is not above the fidelity gap {number_text(gap)} {check.unit}")
    widened = f", the fidelity gap {number_text(gap)} counted in" if gap else ""
    reason = f"it may regress by up to {number_text(most + gap)} {check.unit}{widened}; smallest effect that this log"
    return replace(check, reason=f"{reason} can show {number_text(max(half, gap))}")


def _headline(checks: Sequence[Check], code: int) -> str:
    counts = {outcome: [check for check in checks if check.outcome == outcome] for outcome in OUTCOMES}
    open_ = len(counts["undecided"]) + len(counts["not judged"])
    if counts["failed"]:
        text = f"The budget is exceeded by {', '.join(f'{check.name} of {check.policy}' for check in counts['failed'])}"
    elif not open_:
        text = f"Within the budget: {quantity(len(checks), 'figure')}"
    else:
        text = "No figure exceeds the budget with certainty"
    # The verdicts may have named another code, which the budget replaces.
    text += f" (exit code {code})."
    return f"{text} Undecided: {open_} of {quantity(len(checks), 'figure')}." if open_ else text


def junit_xml(gate: Gate) -> bytes:
    """Write the checks as JUnit XML, a suite per policy; what is undecided is skipped, with the reason."""
    root = ET.Element("testsuites", _counts(gate, None) | {"name": one_line(gate.headline)})
    for policy in dict.fromkeys(check.policy for check in gate.checks):
        suite = ET.SubElement(root, "testsuite", {"name": one_line(policy)} | _counts(gate, policy))
        for check in (check for check in gate.checks if check.policy == policy):
            case = ET.SubElement(suite, "testcase", classname=one_line(policy), name=one_line(check.name))
            if check.outcome == "passed":
                continue
            kind = "failure" if check.outcome == "failed" else "skipped"
            message = one_line(f"{check.outcome}: {check.reason}")
            ET.SubElement(case, kind, message=message).text = one_line(", ".join(filter(None, check.row)))
    ET.indent(root)
    text: bytes = ET.tostring(root, encoding="utf-8", xml_declaration=True)
    return text + b"\n"


def _counts(gate: Gate, policy: str | None) -> dict[str, str]:
    outcomes_of = [check.outcome for check in gate.checks if policy in (None, check.policy)]
    failed, passed = outcomes_of.count("failed"), outcomes_of.count("passed")
    counts = {"tests": len(outcomes_of), "failures": failed, "errors": 0, "skipped": len(outcomes_of) - failed - passed}
    return {name: str(count) for name, count in counts.items()}
