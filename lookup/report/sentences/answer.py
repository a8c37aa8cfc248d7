"""Rank candidates, and decide whether to switch, to keep the incumbent, or that a log cannot decide."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Literal

from lookup.model.quoting import quantity
from lookup.report.figures import Results
from lookup.report.numbers import amount_text, size_text
from lookup.report.sentences.names import clause_of, condition_of, join_clauses, name_of, values_of
from lookup.score.figures import Figure
from lookup.score.rules import Name, may_decide

__all__ = [
    "BALANCE", "MOVES", "OVERLOAD", "Answer", "Findings", "aims", "answer", "clauses_of", "findings_of",
    "locality", "may_fail", "net_score", "rank_candidates", "wholes", "winner_of",
]  # fmt: skip

#: The price of every change, whatever a policy is for.
MOVES: Name = ("moves", None)
BALANCE: Name = ("imbalance_max_mean", None)
#: Brokers are not to be overloaded, whatever a policy is for.
OVERLOAD: Name = ("overload_ratio", None)
#: A candidate that overloads brokers for this much more of the time is not recommended, a ratio.
_MOST_OVERLOAD = 0.05
#: Metrics that count some events of another metric. A metric's keys are found by their names.
_PARTS_OF: Mapping[str, str] = {"cycle_moves": "moves", "redundant_moves": "moves"}


def locality(results: Results) -> Name | None:
    """Choose the figure for locality, which is the match of a deciding label, else of a rack, else the distance."""
    primary = {row.name for row in results.verdicts if row.primary}
    keys = [key for _, metric, key in results.pooled if metric == "match_ratio"]
    names: list[Name] = [*sorted((name for name in primary if name[0] == "match_ratio"), key=str)]
    names += [
        ("match_ratio", "rack"),
        *(("match_ratio", key) for key in dict.fromkeys(keys)),
        ("network_ms_mean", None),
    ]
    for name in names:
        figures = [results.pooled.get((policy, *name)) for policy in results.policies]
        if any(figure and math.isfinite(figure.value) and figure.value for figure in figures):
            return name
    return None


def aims(results: Results) -> tuple[Name, ...]:
    """List the figures that motivate the choice of a policy, which are locality and balance if the run has them."""
    near = locality(results)
    has_balance = any(key[1:] == BALANCE for key in results.pooled)
    return (*([] if near is None else [near]), *([BALANCE] if has_balance else []))


def wholes(results: Results) -> list[Figure]:
    """List the compared figures that are part of no other, as moves of one cause are part of all moves."""
    names = {row.name for row in results.verdicts}

    def find_whole(row: Figure) -> str | None:
        return _PARTS_OF.get(row.metric) if row.key is None else row.metric

    return [row for row in results.verdicts if (find_whole(row), None) not in names]


def may_fail(row: Figure, results: Results) -> bool:
    """Check whether a figure fails the run because of a primary loss that holds for the policy."""
    return row.primary and row.verdict == "worse" and may_decide(row.holds_for, results.rules)


def _rules_out(row: Figure, results: Results) -> bool:
    """Check whether a figure alone prevents a recommendation, since it fails the run or brokers are overloaded."""
    is_overload = row.name == OVERLOAD and row.verdict == "worse" and row.gain < -_MOST_OVERLOAD
    return is_overload or may_fail(row, results)


@dataclass
class Findings:
    """The figures of one candidate that its sentences are about."""

    gains: list[Figure] = field(default_factory=list)
    losses: list[Figure] = field(default_factory=list)
    same: list[Figure] = field(default_factory=list)
    #: significant if each were the only comparison
    likely: list[Figure] = field(default_factory=list)
    open: list[Figure] = field(default_factory=list)
    #: losses that prevent a recommendation
    fatal: list[Figure] = field(default_factory=list)

    @property
    def decided(self) -> list[Figure]:
        """The significant changes."""
        return [*self.gains, *self.losses]

    @property
    def condition(self) -> str:
        """The common condition of all significant changes, empty if they have none, or several."""
        conditions = {condition_of(row) for row in self.decided}
        return conditions.pop() if len(conditions) == 1 else ""

    @property
    def unclear(self) -> list[Figure]:
        """The changes that are not significant on this log."""
        return [*self.likely, *self.open]


def findings_of(results: Results, policy: str) -> Findings:
    """Sort the important figures by their verdicts. They are primary ones, aims and moves."""
    findings, names = Findings(), {*aims(results), OVERLOAD, MOVES}
    rows = [row for row in wholes(results) if row.policy == policy]
    findings.fatal = [row for row in rows if _rules_out(row, results)]
    for row in sorted((row for row in rows if row.primary or row.name in names), key=lambda row: not row.primary):
        if row.is_decided:
            (findings.gains if row.verdict == "better" else findings.losses).append(row)
        elif row.verdict == "inconclusive":
            (findings.open if row.alone is None else findings.likely).append(row)
        # A figure that is zero for both policies is not mentioned.
        elif any(values_of(results, row)):
            findings.same.append(row)
    return findings


def net_score(rows: Iterable[Figure]) -> float:
    """Add up gains less losses, each by how sure it is."""
    total = 0.0
    for row in rows:
        sign = {"better": 1.0, "worse": -1.0}.get(row.alone or row.verdict or "", 0.0)
        total += sign * (0.25 if row.alone else 1.0 if row.holds_for == "policy" else 0.5)
    return total


def rank_candidates(results: Results) -> list[str]:
    """Sort the candidates, the best first.

    Fewest certain losses on primary metrics come first, then most gains less losses in primary metrics and
    aims, then in all. A verdict under a condition counts a half, and a verdict that is significant only alone a
    quarter. Among equals the changes in the aims are added up, significant or not.
    """
    aimed, rows = aims(results), wholes(results)

    def compute_size(row: Figure) -> float:
        before = abs(values_of(results, row)[0])
        part = row.gain if row.unit == "ratio" else row.gain / (before or math.inf)
        return part if math.isfinite(part) else 0.0

    def rank(policy: str) -> tuple[float, float, float, float]:
        own = [row for row in rows if row.policy == policy]
        deciding = [row for row in own if row.primary or row.name in aimed]
        return (
            -sum(_rules_out(row, results) for row in own),
            net_score(deciding),
            net_score(own),
            sum(compute_size(row) for row in own if row.name in aimed),
        )

    return sorted(results.candidates, key=rank, reverse=True)


def winner_of(results: Results) -> str | None:
    """Find the best candidate among those with a better figure, None if there is none."""
    better = {row.policy for row in results.verdicts if row.verdict == "better"}
    return next((policy for policy in rank_candidates(results) if policy in better), None)


def clauses_of(results: Results, rows: Iterable[Figure], found: Findings) -> list[str]:
    """Describe the effects of a candidate, each with its condition unless all changes share it."""
    conditions = {row.name: condition_of(row) for row in rows}
    return [
        f"{clause_of(results, row)} ({conditions[row.name]})"
        if conditions[row.name] not in ("", found.condition)
        else clause_of(results, row)
        for row in rows
    ]


@dataclass(frozen=True, slots=True)
class Answer:
    """The recommendation after a run, in one sentence."""

    kind: Literal["switch", "keep", "unclear"]
    sentence: str
    #: the candidate whose gains and losses the sentence names
    about: str | None = None


def answer(results: Results) -> Answer:
    """Decide whether to switch, to keep the incumbent, or that this log cannot decide."""
    incumbent, order = results.incumbent, rank_candidates(results)
    if not order:
        return Answer("keep", f"Only {incumbent} was replayed. There is no candidate to compare.")
    if incumbent in results.cannot_act:
        return Answer("unclear", f"Cannot tell: {incumbent} cannot act on this log, {results.cannot_act[incumbent]}.")
    if all(row.verdict == "identical" for row in results.verdicts):
        return Answer("keep", f"Keep {incumbent}: every candidate takes the same decisions on this log.")
    best = order[0]
    findings = findings_of(results, best)
    deciding = {row.name for row in results.verdicts if row.primary} | {*aims(results)}
    worth = net_score(row for row in findings.decided if row.name in deciding)
    # A gain outside the aims does not justify the possible loss of an aim.
    may_lose = any(row.gain < -row.margin for row in findings.unclear if row.name in deciding)
    is_firm = any(may_decide(row.holds_for, results.rules) for row in findings.gains)
    if not findings.fatal and findings.gains and (worth > 0 or not findings.losses):
        if is_firm and (worth > 0 or not may_lose):
            return Answer("switch", f"Switch to {best}: it {_describe_effects(results, findings)}", best)
        return Answer("unclear", f"Cannot tell: {best} {_describe_effects(results, findings)}", best)
    if findings.fatal or findings.losses:
        return Answer("keep", f"Keep {incumbent}: {_describe_against(results, order, findings)}", best)
    if any(row.gain for row in findings.unclear):
        return Answer("unclear", f"Cannot tell: {_describe_missed(results, best, findings)}")
    return Answer("keep", f"Keep {incumbent}: {_describe_equal(results, order)}")


def _describe_effects(results: Results, findings: Findings) -> str:
    clauses, costs = clauses_of(results, findings.gains, findings), clauses_of(results, findings.losses, findings)
    text = join_clauses(clauses)
    text += f", but {join_clauses(costs)}" if costs else ""
    unclear = [
        f"{name_of(row.name)} ({amount_text(before, row)} → {amount_text(after, row)})"
        for row in findings.unclear
        if row.name != OVERLOAD
        for before, after in [values_of(results, row)]
    ]
    if shared := findings.condition:
        text += f". {'This' if len(findings.decided) == 1 else 'All of this'} holds {shared}"
    elif unclear and not costs:
        text += f". Its effect on {join_clauses(unclear)} is not clear"
    elif not costs:
        text += ", at no cost that this run shows"
    return f"{text}."


def _describe_equal(results: Results, order: Sequence[str]) -> str:
    others = [(name, of) for name in order[1:] for of in [findings_of(results, name)] if of.fatal or of.losses]
    if not others:
        return "no candidate differs by more than the margin."
    name, of = others[0]
    losses = join_clauses([clause_of(results, row) for row in of.fatal or of.losses])
    return f"{order[0]} does not differ by more than the margin, and {name} {losses}."


def _describe_against(results: Results, order: Sequence[str], findings: Findings) -> str:
    best, others = order[0], len(order) - 1
    losses = findings.fatal or findings.losses
    gains, clauses = clauses_of(results, findings.gains, findings), join_clauses(clauses_of(results, losses, findings))
    text = f"{best} {join_clauses(gains)}, but {clauses}" if gains else f"{best} {clauses}"
    text += f", {findings.condition}" if findings.condition else ""
    if not others:
        return f"{text}."
    return f"{text}. The other {quantity(others, 'candidate ranks', 'candidates rank')} below it."


def _describe_missed(results: Results, best: str, findings: Findings) -> str:
    rows = [row for row in findings.unclear if not math.isnan(row.p_value)] or findings.unclear
    visible = [row for row in rows if math.isfinite(results.smallest_visible(row)) and row.has_interval]
    if not visible:
        reason = next((row.reason for row in rows if row.reason), None)
        return f"{reason or 'there is no interval to judge by'}."
    changes = [
        f"{name_of(row.name)} {amount_text(before, row)} → {amount_text(after, row)}"
        for row in visible
        for before, after in [values_of(results, row)]
    ]
    limits = [f"{size_text(results.smallest_visible(row), row)} in {name_of(row.name)}" for row in visible]
    return f"for {best} ({', '.join(changes)}) this log shows only changes above {join_clauses(limits)}."
