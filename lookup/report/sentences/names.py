"""Name figures and verdicts, and describe the effect of a policy in one clause."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from lookup.engine.ownership import CAUSE_WORDS
from lookup.report.figures import Results
from lookup.report.numbers import amount_text, difference_text
from lookup.score.figures import Figure
from lookup.score.rules import Name
from lookup.score.verdict import HoldsFor, Word

__all__ = [
    "LIGHT_MARKS", "MARKS", "OPEN_MARKS", "UNJUDGED", "capitalise", "clause_of", "condition_of", "head_of",
    "join_clauses", "legend", "mark_of", "name_of", "title_of", "values_of", "word_of",
]  # fmt: skip

#: Marks by verdict against the incumbent.
MARKS: Mapping[Word, str] = {"better": "▲", "worse": "▼", "equivalent": "=", "identical": "≡", "inconclusive": "?"}
#: The same if the verdict may not hold for the policy.
OPEN_MARKS: Mapping[Word, str] = {**MARKS, "better": "△", "worse": "▽"}
#: Marks of a figure that would be significant if it were the only comparison.
LIGHT_MARKS: Mapping[Word, str] = {"better": "▴", "worse": "▾"}
#: Mark of a figure without an interval.
UNJUDGED = "○"
#: Names in a title. Others are counted.
_NAMED = 2


@dataclass(frozen=True, slots=True)
class _Phrase:
    """Common words for a metric. `{key}`, `{before}`, `{after}` and `{difference}` are filled in."""

    name: str
    #: effect of a policy, without its subject
    clause: str
    #: for `difference_text`
    noun: str = ""


_PHRASES: Mapping[str, _Phrase] = {
    "answered_ratio": _Phrase("answered lookups", "answers {after} of the lookups instead of {before}"),
    "isolation_ratio": _Phrase(
        "lookups within isolation",
        "serves {after} of the isolated lookups within their isolation group instead of {before}",
    ),
    "match_ratio": _Phrase(
        "same-{key} lookups", "serves {after} of the lookups in their own {key} instead of {before}"
    ),
    "network_ms_mean": _Phrase(
        "the mean distance to clients", "has a mean distance to clients of {after} instead of {before}"
    ),
    "network_ms_p95": _Phrase(
        "the 95th percentile of the distance", "has a 95th percentile of the distance of {after} instead of {before}"
    ),
    "network_cost": _Phrase("the cost of traffic", "needs traffic for {after} instead of {before}"),
    "imbalance_max_mean": _Phrase(
        "the load of the busiest broker", "loads the busiest broker with {after} instead of {before}"
    ),
    "imbalance_cv": _Phrase("the spread of load", "has a spread of load of {after} instead of {before}"),
    "overload_ratio": _Phrase("overloaded time", "overloads brokers for {after} of the time instead of {before}"),
    "load_variation": _Phrase("the variation of load", "has a variation of load of {after} instead of {before}"),
    "moves": _Phrase("moves", "moves {difference}", "many bundles"),
    "unloads": _Phrase("unloads", "unloads {difference}", "many bundles"),
    "redundant_moves": _Phrase("moves back", "moves {difference} back to an earlier owner", "many bundles"),
    "cycle_moves": _Phrase("moves in circles", "moves {difference} in circles", "many bundles"),
    "moved_weight": _Phrase("moved load", "moves {difference}", "much load"),
    "assignments": _Phrase("decisions", "takes {difference}", "many decisions"),
}


def head_of(name: Name) -> str:
    """Write the common name of a figure as a head, such as "load of the busiest broker"."""
    return name_of(name).removeprefix("the ")


def name_of(name: Name) -> str:
    """Write the common name of a figure within a sentence, such as "the load of the busiest broker"."""
    metric, key = name
    phrase = _PHRASES.get(metric)
    if phrase is None:
        return (metric if key is None else f"{metric} {key}").replace("_", " ")
    return _add_key(phrase.name, name)


def _add_key(text: str, name: Name) -> str:
    metric, key = name
    if key is None or metric == "match_ratio":
        return text.replace("{key}", key or "label")
    return f"{text} ({CAUSE_WORDS.get(key, key)})"


def clause_of(results: Results, row: Figure) -> str:
    """Describe the effect of a policy as a clause without subject."""
    before, after = values_of(results, row)
    phrase = _PHRASES.get(row.metric)
    if phrase is None:
        return f"has {amount_text(after, row)} {name_of(row.name)} instead of {amount_text(before, row)}"
    text = phrase.clause.replace("{after}", amount_text(after, row)).replace("{before}", amount_text(before, row))
    if phrase.noun:
        text = text.replace("{difference}", difference_text(before, after, phrase.noun))
    return _add_key(text, row.name)


def values_of(results: Results, row: Figure) -> tuple[float, float]:
    """Find the value of the incumbent and that of the policy."""
    before = results.incumbents(row)
    return math.nan if before is None else before.value, row.value


def join_clauses(clauses: Sequence[str]) -> str:
    """Join clauses or names by commas, the last by "and"."""
    *most, last = clauses
    return f"{', '.join(most)} and {last}" if most else last


def capitalise(text: str) -> str:
    """Begin with a capital letter."""
    return f"{text[0].upper()}{text[1:]}"


def title_of(names: Sequence[str]) -> str:
    """Name policies that decide alike."""
    if len(names) <= _NAMED:
        return " and ".join(names)
    return f"{', '.join(names[:_NAMED])} and {len(names) - _NAMED} more"


def word_of(row: Figure) -> str:
    """Name a verdict."""
    return "not judged" if row.verdict == "inconclusive" and not row.has_interval else str(row.verdict)


def mark_of(row: Figure) -> str:
    """Choose the mark of a verdict, open if it holds only here and now, light if revoked among so many."""
    if row.verdict is None:
        return ""
    if row.verdict == "inconclusive" and not row.has_interval:
        return UNJUDGED
    if row.alone is not None:
        return LIGHT_MARKS[row.alone]
    return (MARKS if row.holds_for == "policy" else OPEN_MARKS)[row.verdict]


_CONDITIONS: Mapping[HoldsFor, str] = {
    "policy": "", "placement": "only in this placement", "hours": "only in these hours"
}  # fmt: skip


def condition_of(row: Figure, *, always: bool = False) -> str:
    """Describe the restriction of a verdict, empty if it holds for the policy.

    Args:
        always: whether an inconclusive verdict has it as well.
    """
    if row.holds_for is None or (row.verdict == "inconclusive" and not always):
        return ""
    if row.holds_for == "independence":
        return f"only if {row.units or 'bundles'} are independent"
    return _CONDITIONS[row.holds_for]


def legend() -> str:
    """Explain the marks in one line."""
    marks = "  ".join(f"{mark} {word}" for word, mark in MARKS.items())
    return (
        f"Compared with the incumbent: {marks}  {UNJUDGED} not judged  {LIGHT_MARKS['better']} {LIGHT_MARKS['worse']} "
        f"if it were the only comparison  {OPEN_MARKS['better']} {OPEN_MARKS['worse']} only under a condition.  ↑ ↓ "
        "the better direction.  * decides the exit code."
    )
