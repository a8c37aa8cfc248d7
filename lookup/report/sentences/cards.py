"""Summarise a candidate on a card with gains, costs, significance, and the next step."""

from __future__ import annotations

import math
import shlex
from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from lookup.model.quoting import quantity
from lookup.report.blocks import Card, Facet
from lookup.report.figures import Results
from lookup.report.numbers import amount_text, change_text, size_text, span_text
from lookup.report.sentences.answer import Findings, aims, clauses_of, findings_of, net_score, winner_of
from lookup.report.sentences.names import (
    capitalise,
    clause_of,
    condition_of,
    head_of,
    join_clauses,
    name_of,
    title_of,
    values_of,
)
from lookup.score.figures import Figure
from lookup.score.luck import least_chance, replicates_for
from lookup.score.rules import Name, may_decide
from lookup.score.verdict import GATE_LEVEL

__all__ = ["PLACE", "card", "confirm_command", "explain_command"]

#: Placeholder for the folder of a run in a command, where it is not known.
PLACE = "RUN_DIR"
#: Unrealistic multiples of the log, or of the replicates.
_TOO_LARGE = 50.0
#: Replicates to advise where there is one, and where there are too few for any verdict.
_SEEDS, _FEWEST = 10, 5
#: Share of an interval from which the placement is its main source.
_PREVAILS = 0.7
#: Largest probabilities between equals for "very sure" and "sure". At most LEVEL is "fairly sure".
_VERY, _SURE = 0.001, 0.01

#: Common words for a change with a verdict.
_SIDES = ("gains", "better"), ("costs", "worse")
_FACET_WORDS: Mapping[str, str] = {
    "better": "better", "worse": "worse", "equivalent": "the same", "identical": "the same", "inconclusive": "unclear"
}  # fmt: skip


def card(results: Results, policy: str, folder: str = PLACE, *, is_first: bool = False) -> Card:
    """Summarise a candidate, and identical ones, on a card.

    Args:
        folder: folder of the run, for commands.
        is_first: whether it follows the answer, which has its gains and losses already.
    """
    group = [name for name in results.like(policy) if name != results.incumbent]
    findings = findings_of(results, policy)
    step, command = _choose_next_step(results, policy, findings, folder)
    if results.incumbent in results.like(policy):
        sentence = f"Takes the same decisions as {results.incumbent} on this log."
        step, command = "Nothing.", ""
    else:
        sentence = _write_sentence(results, findings, is_first=is_first)
    return Card(
        title=f"{title_of(group)} (identical)" if len(group) > 1 else policy,
        sentence=sentence,
        rows=(
            ("Gain", [_build_facet(results, row) for row in findings.gains], "no significant gain"),
            ("Cost", [_build_facet(results, row) for row in findings.losses], "no significant loss"),
            ("Unclear", [_build_facet(results, row) for row in findings.unclear], ""),
        ),
        certainty=_describe_certainty(results, findings),
        step=step,
        command=command,
        style=_choose_style(results, findings),
    )


def _choose_style(results: Results, findings: Findings) -> str:
    if findings.fatal or (findings.losses and not findings.gains):
        return "worse"
    net = net_score(row for row in findings.decided if row.primary or row.name in aims(results))
    is_firm = any(may_decide(row.holds_for, results.rules) for row in findings.gains)
    return "better" if is_firm and (net > 0 or not findings.losses) else "inconclusive"


def _write_sentence(results: Results, findings: Findings, *, is_first: bool) -> str:
    gains, losses = clauses_of(results, findings.gains, findings), clauses_of(results, findings.losses, findings)
    same = [name_of(row.name) for row in findings.same if row.primary or not findings.decided]
    parts = []
    if (gains or losses) and not is_first:
        parts.append(
            f"{join_clauses(gains)}, but {join_clauses(losses)}" if gains and losses else join_clauses(gains or losses)
        )
        parts[0] = f"{findings.condition}, it {parts[0]}" if findings.condition else parts[0]
    if same:
        parts.append(f"as good as the incumbent in {join_clauses(same)}")
    if findings.likely:
        parts.append(f"perhaps {join_clauses([clause_of(results, row) for row in findings.likely])}")
    sentences = [f"{capitalise(part)}." for part in parts]
    if findings.fatal:
        sentences.insert(
            1, f"The loss in {join_clauses([name_of(row.name) for row in findings.fatal])} decides against it."
        )
    if findings.open:
        names = join_clauses([name_of(row.name) for row in findings.open])
        sentences.append(f"This log cannot tell whether there is a change in {names}.")
    return " ".join(sentences) or "Nothing was measured to judge it by."


def _build_facet(results: Results, row: Figure) -> Facet:
    before, after = values_of(results, row)
    return Facet(
        words=head_of(row.name),
        name=row.label,
        before=amount_text(before, row),
        after=amount_text(after, row),
        change=change_text(before, after, row),
        span=span_text(row.change_low, row.change_high, row),
        word=_choose_facet_word(results, row),
    )


def _choose_facet_word(results: Results, row: Figure) -> str:
    if row.alone is not None:
        return f"{row.alone} if it were the only comparison"
    least = results.smallest_visible(row)
    if row.verdict != "inconclusive" or not math.isfinite(least):
        return _FACET_WORDS[row.verdict or ""]
    return f"unclear, since changes below {size_text(least, row)} cannot be seen on this log"


def _describe_certainty(results: Results, findings: Findings) -> str:
    texts = []
    firm = [row for row in findings.decided if row.holds_for == "policy"]
    chances = [row.p_family for row in firm if not math.isnan(row.p_family)]
    if chances:
        chance = max(chances)
        # Among how many runs it occurs once, rounded down to one digit.
        runs = min(1000, int(1 / chance)) if chance > 0 else 1000
        runs -= runs % 10 ** (len(str(runs)) - 1)
        grade = "Very sure" if chance <= _VERY else "Sure" if chance <= _SURE else "Fairly sure"
        sides = join_clauses([word for word, verdict in _SIDES if any(row.verdict == verdict for row in firm)])
        texts.append(f"{grade}. Between equal policies, fewer than 1 of {runs:,} comparisons would show such {sides}.")
    elif firm:
        texts.append("Certain on this log.")
    by_condition: dict[str, list[str]] = {}
    for row in findings.decided:
        by_condition.setdefault(condition_of(row), []).append(name_of(row.name))
    texts += [f"{capitalise(text)}: {join_clauses(names)}." for text, names in by_condition.items() if text]
    visible = [row for row in findings.unclear if not math.isnan(row.p_value)]
    if visible and not firm and math.isinf(results.smallest_visible(visible[0])):
        texts.append(f"{quantity(len(results.seeds), 'seed')} cannot show any change, however large.")
    elif visible and not texts:
        texts.append("No change is larger than chance explains.")
    if not texts:
        reason = next((row.reason for row in findings.open if row.reason), None)
        texts.append(f"{capitalise(reason)}." if reason else "Both policies do the same, within the margin.")
    return " ".join(texts)


@dataclass(frozen=True, slots=True)
class _Needed:
    """The means to show a change that this run leaves open, if it is as large as it looks."""

    #: multiple of the log, since an interval shrinks with its square root
    factor: float
    #: replicates in place of a longer log
    seeds: int | None
    name: Name | None = None

    @property
    def sentence(self) -> str:
        subject = "a change" if self.name is None else f"the change in {name_of(self.name)}"
        if self.seeds is not None:
            return f"{self.seeds} seeds would show {subject}."
        return f"A log {max(2, math.ceil(self.factor))} times as long would show {subject}."


def _estimate_needed(results: Results, policy: str, findings: Findings) -> _Needed | None:
    """Compute the least means that would show a change of a candidate, None if they are unrealistic."""
    seeds = len(results.seeds)
    if seeds == 1:
        # Another placement is missing, and it is cheap.
        return _Needed(1.0, _SEEDS)
    # Fewer seeds carry no verdict, however narrow intervals become.
    fewest, needs = max(_FEWEST, replicates_for(GATE_LEVEL / max(1, results.comparisons.deciding))), []
    for row in findings.unclear if policy not in results.placed_once else ():
        # The interval for this log does not include variation of the demand.
        half, placed = (row.change_high - row.change_low) / 2, (row.log_high - row.log_low) / 2
        # A change that the replay itself may bring is not worth the trouble.
        small = max(np.nan_to_num(row.margin), results.gaps.get(row.name, 0.0))
        if not abs(row.change) > small or math.isnan(row.p_value):
            continue
        factor = (half / abs(row.change)) ** 2
        if 1 < factor <= _TOO_LARGE:
            is_placement = placed > _PREVAILS * half
            needs.append(_Needed(factor, max(fewest, math.ceil(factor * seeds)) if is_placement else None, row.name))
        elif factor <= 1 and seeds < fewest and row.p_value <= least_chance(seeds):
            needs.append(_Needed(1.0, fewest, row.name))
    # More seeds cost an hour, a longer log weeks.
    return min(needs, key=lambda needed: (needed.seeds is None, needed.seeds or needed.factor), default=None)


def _choose_next_step(results: Results, policy: str, findings: Findings, folder: str) -> tuple[str, str]:
    candidate = None if policy == winner_of(results) else policy
    if policy in results.cannot_act:
        return f"It lacks something on this log: {results.cannot_act[policy]}.", ""
    if findings.fatal or (findings.losses and not findings.gains):
        return "To see why, compare the owners of a topic.", explain_command(folder, policy, results.incumbent)
    # A single candidate was not selected, and a confirmation has a single one.
    if len(results.candidates) > 1 and any(row.holds_for == "policy" for row in findings.gains):
        step = "Confirm the gain with new seeds first: the best of several candidates tends to look better than it is."
        return step, confirm_command(folder, candidate)
    needed = _estimate_needed(results, policy, findings)
    if needed is not None:
        command = confirm_command(folder, candidate, seeds=needed.seeds, on_other_log=needed.seeds is None)
        return needed.sentence, command
    if policy in results.placed_once:
        return f"A longer log would not show more: {results.placed_once[policy]}.", ""
    if findings.gains:
        return "Replay another day's log.", confirm_command(folder, candidate, on_other_log=True)
    hidden = [row for row in findings.unclear if abs(row.change) > row.margin and not math.isnan(row.p_value)]
    hidden = [row for row in hidden if abs(row.change) <= results.gaps.get(row.name, 0.0)]
    if hidden:
        gaps = [f"{size_text(results.gaps[row.name], row)} in {name_of(row.name)}" for row in hidden]
        return f"A longer log would not show more: the replay itself differs from the log by {join_clauses(gaps)}.", ""
    if findings.unclear:
        return "Replay a longer log, or one with more bundles.", confirm_command(folder, candidate, on_other_log=True)
    return "Nothing.", ""


def confirm_command(folder: str, candidate: str | None, *, seeds: int | None = None, on_other_log: bool = False) -> str:
    """Write the command that replays a candidate of a run and its incumbent once more.

    Args:
        candidate: None for the winner of the run.
        seeds: number of seeds, None for as many as the run had.
        on_other_log: leave a place for another log.
    """
    words = ["lookup", "evaluate", "--confirm", folder]
    words += [] if candidate is None else ["--candidate", candidate]
    words += [] if seeds is None else ["--set", f"evaluation.seeds={seeds}"]
    words += ["--lookups", "LOG"] if on_other_log else []
    return shlex.join([*words, "--output", "confirmed" if seeds is None and not on_other_log else "more"])


def explain_command(folder: str, policy: str, incumbent: str) -> str:
    """Write the command that lists the owners of a topic, for which it leaves a place, under two policies of a run."""
    return shlex.join(["lookup", "explain", folder, "--policy", policy, "--policy", incumbent, "--topic", "TOPIC"])
