"""Judge a run for a pipeline by its primary metrics, or against a budget of tolerated regressions.

A budget is judged by intervals. A check fails if it certainly exceeds the budget, passes if it is certainly within it,
and is undecided otherwise. So two runs of the same policies pass with any budget. `docs/ci.md` explains it.

A pipeline reads the outcome as JUnit XML.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Literal
from xml.etree import ElementTree as ET

from lookup.errors import Argument, Sentence, SettingsError
from lookup.hooks import Better
from lookup.model.quoting import one_line, quantity, suggestion
from lookup.report.compare import Change, Difference
from lookup.report.figures import Results
from lookup.report.numbers import interval_text, number_text, signed_text
from lookup.report.sentences import UNJUDGED, condition_of, mark_of, opening
from lookup.score.figures import Figure
from lookup.score.luck import LEVEL, least_chance, quantile, replicates_for
from lookup.score.rules import may_decide, name_of

__all__ = ["CHECK_HEADS", "EXCEEDED", "Check", "Gate", "Outcome", "check_budget", "gate_of", "junit_xml"]

Outcome = Literal["passed", "failed", "undecided", "not judged"]
#: From the most important check to the least.
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
    #: policy - reference with its interval, in the metric's own direction, NaN if unknown
    change: float
    low: float
    high: float
    #: largest tolerated regression, NaN if the verdict decides
    budget: float
    #: why it is not passed, one clause, empty if it is
    reason: str = ""
    mark: str = ""

    @property
    def row(self) -> tuple[str, ...]:
        """The check in words under `CHECK_HEADS`."""
        tolerated = "" if math.isnan(self.budget) else f"{number_text(self.budget)} {self.unit}"
        change = f"{signed_text(self.change, self.unit)} {self.unit} {self.mark}".strip()
        interval = interval_text(self.low, self.high, self.unit)
        return self.outcome, self.policy, self.name, change, interval, tolerated


@dataclass(frozen=True)
class Gate:
    """The result of a run for a pipeline."""

    #: the first line of everything that a pipeline shows
    headline: str
    #: failed checks first
    checks: tuple[Check, ...]
    has_budget: bool
    exit_code: int


def check_budget(
    budget: Mapping[str, float], directions: Mapping[str, Better], names: Sequence[str] | None = None
) -> None:
    """Refuse a budget for metrics without a direction or without measurements.

    Args:
        budget: largest tolerated regression by `metric` or `metric:key`.
        directions: the better direction of each metric.
        names: names of figures as in a finished run's report. If None, not known yet, keys are not checked.

    Raises:
        SettingsError: with all wrong names together.
    """
    problems = []
    for named in budget:
        metric = name_of(named)[0]
        if metric not in directions:
            problems.append(f"no metric is named {metric!r}; {suggestion(metric, sorted(directions))}")
        elif directions[metric] == "info":
            problems.append(
                f"{named!r} has no direction and cannot regress; a metric that goes up or down would be right"
            )
        elif names is not None and not _match_figures(named, names):
            keys = sorted(name for name in names if name.startswith(f"{metric}["))
            right = f"it has {', '.join(keys)}" if keys else f"it has no figure of {metric}"
            problems.append(f"{named!r} could be measured for no policy of this run; {right}")
    if problems:
        raise SettingsError([Sentence(Argument("budget"), f": {problem}") for problem in problems])


def _match_figures(named: str, names: Sequence[str]) -> list[str]:
    """Find the figures for a name of a budget, which are the named one, the whole, or every key of its metric."""
    metric, key = name_of(named)
    exact = metric if key is None else f"{metric}[{key}]"
    if exact in names:
        return [exact]
    return [name for name in names if ":" not in named and name.startswith(f"{named}[")]


def gate_of(results: Results, budget: Mapping[str, float] | None = None, difference: Difference | None = None) -> Gate:
    """Judge a run by its primary metrics or, if there is one, only by a budget.

    Args:
        budget: largest tolerated regression by `metric` or `metric:key`, in the metric's unit.
        difference: from an earlier run to this one, to which the budget then applies. With None it applies to
            the differences of candidates from the incumbent.

    Raises:
        SettingsError: if the budget names a figure that this run does not have.
    """
    if budget is None:
        checks = [_check_verdict(row, results) for row in results.verdicts if row.primary]
        headline, code = " ".join(opening(results)), results.exit_code
        return Gate(headline, _sort_checks(checks), has_budget=False, exit_code=code)
    check_budget(budget, results.directions, _list_names(results))
    if difference is None:
        checks = list(
            _name_checks([_check_candidate(row, results) for row in results.verdicts], _list_names(results), budget)
        )
    else:
        changes = [_check_change(change, results, difference) for change in difference.changes]
        checks = list(_name_checks(changes, list(dict.fromkeys(change.name for change in changes)), budget))
    if not checks:
        # Silence must not look like consent.
        raise SettingsError(
            Argument("budget"),
            ": there is no candidate to hold against it; give ",
            Argument("against", "RUN_DIR"),
            ", or an evaluation with a candidate",
        )
    checks = _judge_checks(checks, results)
    guarded = {row.label for row in results.pooled.values() if row.question == "log"}
    open_ = [check for check in checks if check.outcome in ("undecided", "not judged")]
    is_unguarded = any(check.name in guarded for check in open_)
    code = 4 if is_unguarded or (open_ and results.rules.require_decision) else 0
    if any(check.outcome == "failed" for check in checks):
        code = EXCEEDED
    return Gate(_write_headline(checks, code), _sort_checks(checks), has_budget=True, exit_code=code)


def _sort_checks(checks: Sequence[Check]) -> tuple[Check, ...]:
    return tuple(sorted(checks, key=lambda check: OUTCOMES.index(check.outcome)))


def _list_names(results: Results) -> list[str]:
    return list(dict.fromkeys(row.label for row in results.pooled.values() if not math.isnan(row.value)))


def _build_check(row: Figure) -> Check:
    return Check(
        policy=row.policy,
        name=row.label,
        unit=row.unit,
        outcome="undecided",
        change=row.change,
        low=row.change_low,
        high=row.change_high,
        budget=math.nan,
        reason=row.reason or "",
        mark=mark_of(row),
    )


def _check_verdict(row: Figure, results: Results) -> Check:
    check = _build_check(row)
    if row.guard == "kept":
        return replace(check, outcome="passed", reason="")
    if not may_decide(row.holds_for, results.rules):
        return replace(check, reason=check.reason or f"it holds {condition_of(row, always=True)}")
    if row.verdict == "worse":
        return replace(check, outcome="failed", reason="it is worse on a primary metric")
    if row.verdict == "inconclusive":
        return replace(check, outcome="undecided" if row.has_interval else "not judged")
    return replace(check, outcome="passed")


def _name_checks(checks: Sequence[Check], names: Sequence[str], budget: Mapping[str, float]) -> Iterator[Check]:
    for named, tolerated in budget.items():
        for name in _match_figures(named, names):
            yield from (replace(check, budget=tolerated) for check in checks if check.name == name)


def _check_candidate(row: Figure, results: Results) -> Check:
    """Write the change of a candidate from the incumbent as a check, with a reason if it does not count."""
    check = _build_check(row)
    # Without a probability a comparison has too few observations, unless both are the same.
    if row.verdict not in ("equivalent", "identical") and math.isnan(row.p_value):
        return check
    is_conditional = check.change and not may_decide(row.holds_for, results.rules)
    return replace(check, reason=f"it holds {condition_of(row, always=True)}" if is_conditional else "")


def _check_change(change: Change, results: Results, difference: Difference) -> Check:
    """Write a change since an earlier run as a check, with a reason if it does not decide."""
    reasons = [
        row.reason or ""
        for row in results.verdicts
        if (row.policy, row.label) == (change.policy, change.name)
        and (row.verdict == "inconclusive" and math.isnan(row.p_value) and row.has_interval)
    ]
    reason = reasons[-1] if reasons else ""
    if change.unlike:
        reason = f"not comparable: {change.unlike}"
    elif math.isnan(change.delta):
        missing = "the earlier run" if math.isnan(change.first) else "this run"
        reason = f"{missing} has no figure of it"
    elif change.policy in results.cannot_act:
        reason = f"{change.policy} cannot act on this log: {results.cannot_act[change.policy]}"
    elif change.delta and change.policy in {*results.placed_once, *difference.runs[0].results.placed_once}:
        reason = reason or ("" if results.rules.accept_placement else "it holds only in this placement")
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


def _judge_checks(checks: Sequence[Check], results: Results) -> list[Check]:
    """Judge all checks of a budget together, so that between equals chance fails at most 5 % of all runs.

    The chance is shared out equally (Bonferroni), by Student's t with the degrees of freedom of the replicates.
    """
    with_interval = sum(check.high > check.low and not check.reason for check in checks)
    seeds = len(results.seeds)
    freedom = max(1, seeds - 1)
    # One-sided, since only worse values fail. It is never narrower than the intervals of the report.
    wider = max(1.0, quantile(freedom, 2 * LEVEL / max(1, with_interval)) / quantile(freedom))
    gaps = {row.label: row.gap for row in results.pooled.values() if not math.isnan(row.gap)}
    judged = [_judge_check(check, results, wider, gaps.get(check.name, 0.0)) for check in checks]
    # For any size of the difference, since equals differ that often, one-sided, in so many replicates.
    compared = sum(bool(check.change) for check in judged)
    if seeds == 1 or least_chance(seeds) / 2 * compared <= LEVEL:
        return judged
    enough = replicates_for(2 * LEVEL / compared)
    few = f"{quantity(seeds, 'seed')} can carry no failure of {quantity(compared, 'figure')}; {enough} seeds would"
    return [replace(each, outcome="undecided", reason=few) if each.outcome == "failed" else each for each in judged]


def _judge_check(check: Check, results: Results, wider: float, gap: float) -> Check:
    """Judge one check.

    Args:
        wider: factor of the interval, with which the intervals of all checks hold together.
        gap: distance of the replayed incumbent from the log. Smaller changes may come from the replay itself.
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
    better = results.directions[check.name.partition("[")[0]]
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


def _write_headline(checks: Sequence[Check], code: int) -> str:
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
    """Write the checks as JUnit XML, with a suite per policy. Undecided checks are skipped, with the reason."""
    root = ET.Element("testsuites", _count_outcomes(gate, None) | {"name": one_line(gate.headline)})
    for policy in dict.fromkeys(check.policy for check in gate.checks):
        suite = ET.SubElement(root, "testsuite", {"name": one_line(policy)} | _count_outcomes(gate, policy))
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


def _count_outcomes(gate: Gate, policy: str | None) -> dict[str, str]:
    outcomes_of = [check.outcome for check in gate.checks if policy in (None, check.policy)]
    failed, passed = outcomes_of.count("failed"), outcomes_of.count("passed")
    counts = {"tests": len(outcomes_of), "failures": failed, "errors": 0, "skipped": len(outcomes_of) - failed - passed}
    return {name: str(count) for name, count in counts.items()}
