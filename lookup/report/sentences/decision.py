"""Explain the exit code, the undecided figures, and the effect of chance among so many comparisons."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Sequence

from lookup.model.quoting import quantity
from lookup.report.figures import Results
from lookup.report.numbers import amount_text, number_text
from lookup.report.sentences.answer import BALANCE, MOVES, aims, answer, may_fail, wholes
from lookup.report.sentences.names import condition_of, join_clauses, name_of, title_of
from lookup.score.figures import Figure
from lookup.score.luck import LEVEL
from lookup.score.rules import may_decide
from lookup.score.verdict import GATE_LEVEL

__all__ = [
    "at_best_sentence", "by_policy", "comparison_counts", "conclusion", "identical_sentence", "luck_sentence",
    "opening", "undecided_figures",
]  # fmt: skip

#: Smaller advantages are not worth a sentence.
_NO_ADVANTAGE = 0.001


def conclusion(results: Results) -> str:
    """Explain the exit code, and count the primary comparisons that are undecided."""
    count = len(_list_undecided(results))
    return (
        f"{_describe_decision(results)} Undecided: {_describe_share(results)}."
        if count
        else _describe_decision(results)
    )


def opening(results: Results) -> list[str]:
    """Write the sentences that a pipeline shows first."""
    return [answer(results).sentence, conclusion(results), *filter(None, [luck_sentence(results)])]


def _describe_decision(results: Results) -> str:
    if not results.candidates:
        return "Only the incumbent was replayed, so there are no verdicts (exit code 0)."
    if results.exit_code == 3:
        worse = by_policy(row for row in results.verdicts if may_fail(row, results))
        return f"Worse on a primary metric: {worse} (exit code 3)."
    if results.exit_code == 4:
        lost = by_policy(row for row in results.verdicts if row.primary and row.guard in ("lost", "open"))
        if lost:
            return f"Not shown to be kept on this log: {lost} (exit code 4)."
        return f"A decision is required, and there is none: {by_policy(_list_undecided(results))} (exit code 4)."
    if any(row.primary and row.verdict == "worse" for row in results.verdicts):
        return "No candidate is worse on a primary metric, except under a condition (▽) (exit code 0)."
    return "No candidate is worse than the incumbent on a primary metric (exit code 0)."


def by_policy(rows: Iterable[Figure]) -> str:
    """List figures with the policies that each is of."""
    names: dict[str, list[str]] = {}
    for row in rows:
        names.setdefault(row.label, []).append(row.policy)
    return ", ".join(f"{label} of {join_clauses(policies)}" for label, policies in names.items())


def _list_undecided(results: Results) -> list[Figure]:
    primary = [row for row in results.verdicts if row.primary]
    return [row for row in primary if row.is_open or not may_decide(row.holds_for, results.rules)]


def _describe_share(results: Results) -> str:
    count, primary = len(_list_undecided(results)), sum(row.primary for row in results.verdicts)
    if count == primary:
        return "every primary comparison"
    return f"{count} of {quantity(primary, 'primary comparison')}"


def undecided_figures(results: Results) -> list[str]:
    """List each undecided primary figure with its candidates, and the smallest change that this log shows."""
    of_name: dict[str, list[Figure]] = {}
    for row in _list_undecided(results):
        of_name.setdefault(row.label, []).append(row)
    return [
        f"{label} of {join_clauses([row.policy for row in rows])}: {_explain_open(results, rows)}."
        for label, rows in of_name.items()
    ]


def _explain_open(results: Results, rows: Sequence[Figure]) -> str:
    # Without a probability a comparison has too few observations, so that its interval shows nothing.
    open_ = [row for row in rows if row.is_open and not math.isnan(row.p_value)]
    if not open_:
        reasons = [row.reason or condition_of(row, always=True) for row in rows]
        return " and ".join(dict.fromkeys(filter(None, reasons))) or "not judged"
    sizes = sorted(results.smallest_visible(row) for row in open_)
    if math.isinf(sizes[0]):
        return f"{quantity(len(results.seeds), 'seed')} cannot show any change"
    texts = dict.fromkeys(f"{number_text(size)} {open_[0].unit}" for size in (sizes[0], sizes[-1]))
    return f"this log shows changes above {' to '.join(texts)}"


def comparison_counts(results: Results) -> Iterator[str]:
    """Count the comparisons, and how many of them chance alone would decide."""
    counts = results.comparisons
    if counts.deciding:
        yield (
            f"{quantity(counts.deciding, 'comparison decides', 'comparisons decide')} the exit code (*) and are judged "
            f"together. If all policies were equal, at most {LEVEL:.0%} of such runs would have a significant one, and "
            f"at most {GATE_LEVEL / 2:.1%} a significant loss."
        )
    if counts.others:
        yield (
            f"{quantity(counts.others, 'other comparison is', 'other comparisons are')} judged together for each "
            f"figure. If all policies were equal, chance would make {LEVEL * counts.figures:.2g} of "
            f"{quantity(counts.figures, 'figure')} significant."
        )
    names = {row.name for row in wholes(results)}
    parts = dict.fromkeys(row.label for row in results.verdicts if row.name not in names)
    if parts:
        yield f"Figures that are parts of another one are counted once: {', '.join(parts)}."


def identical_sentence(results: Results) -> str:
    """Name the policies that are the same on this log."""
    groups = [group for group in results.identical if len(group) > 1]
    if not groups:
        return "No two policies take the same decisions."
    return " ".join(f"{title_of(group)} take the same decisions on this log." for group in groups)


def at_best_sentence(results: Results) -> str | None:
    """Describe the best possible locality, None if that is not known."""
    texts = []
    for name in aims(results):
        bests = [row for row in results.pooled.values() if row.name == name and not math.isnan(row.at_best)]
        if not bests:
            continue
        is_up = bests[0].better == "up"
        best = (max if is_up else min)(row.at_best for row in bests)
        end = "at most" if is_up else "at least"
        texts.append(f"{name_of(name)} would be {end} {amount_text(best, bests[0])}")
    return f"Even if bundles could move at any time, {' and '.join(texts)}." if texts else None


def luck_sentence(results: Results) -> str | None:
    """Describe the advantage of the best of so many equals, None if there is nothing to report."""
    primary = [row.name for row in results.verdicts if row.primary]
    texts, most = [], 0
    for name in dict.fromkeys([*primary, BALANCE, MOVES]):
        rows = [row for row in results.verdicts if row.name == name and not math.isnan(row.best_by_luck)]
        mean = sum(row.value for row in rows) / len(rows) if rows else 0.0
        share = abs(rows[0].best_by_luck / mean) if mean else 0.0
        if share >= _NO_ADVANTAGE:
            texts.append(f"{share:.1%} better in {name_of(name)}")
            most = max(most, len(rows))
    if not texts:
        return None
    return f"By chance alone, the best of {most} equal candidates would look {join_clauses(texts)}."
