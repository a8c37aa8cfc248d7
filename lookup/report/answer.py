"""Write what a run answers: by which figures each candidate is better or worse than the incumbent, and what is open."""

from __future__ import annotations

import math
from collections.abc import Iterator

from lookup.report.comparison import interval_text, label, own_direction, scope_of, signed_text, value_text
from lookup.report.wording import of_wholes
from lookup.score.rules import Name
from lookup.score.scoring import Scored
from lookup.score.verdict import Verdict

__all__ = ["answers", "headline", "locality", "question"]


def locality(scored: Scored) -> Name | None:
    """Return the figure that stands for locality: the match of a label that decides, else of a rack, else distance."""
    primary = {verdict.name for verdict in scored.verdicts if verdict.primary}
    keys = [key for _, metric, key in scored.pooled if metric == "match_ratio"]
    names: list[Name] = [*sorted((name for name in primary if name[0] == "match_ratio"), key=str)]
    names += [("match_ratio", "rack"), *(("match_ratio", key) for key in dict.fromkeys(keys))]
    for metric, key in (*names, ("network_ms_mean", None)):
        figures = [scored.pooled.get((policy, metric, key)) for policy in scored.plan.policies]
        if any(figure and math.isfinite(figure.value) and figure.value for figure in figures):
            return metric, key
    return None


def headline(scored: Scored) -> tuple[Name, ...]:
    """Return the figures that are set against each other: locality, if there is any, imbalance and moves."""
    near = locality(scored)
    return (*([near] if near else []), ("imbalance_max_mean", None), ("moves", None))


def question(scored: Scored) -> str | None:
    """Say against what candidates are held, and by which metrics; None if there is no candidate."""
    if not scored.verdicts:
        return None
    primary = dict.fromkeys(label(*verdict.name) for verdict in of_wholes(scored) if verdict.primary)
    by = f" Primary metrics, by which this evaluation decides: {', '.join(primary)}." if primary else ""
    return (
        f"Each candidate against {scored.incumbent}, the incumbent; in brackets the difference with its 95 % "
        f"interval.{by}"
    )


def answers(scored: Scored) -> list[str]:
    """Answer for each candidate in one sentence that begins with its name and a colon.

    It has the primary figures that are better or worse, those that are equivalent and those that are undecided, and
    of the figures of `headline` that are not primary those that are better, worse or undecided.
    """
    if not scored.verdicts:
        return []
    return [f"{policy}: {'; '.join(_clauses(scored, policy))}." for policy in scored.candidates]


def _clauses(scored: Scored, policy: str) -> Iterator[str]:
    verdicts = [verdict for verdict in of_wholes(scored) if verdict.policy == policy]
    primary = [verdict for verdict in verdicts if verdict.primary]
    found = [_change(scored, verdict) for verdict in primary if verdict.is_decided]
    if found or not primary:
        yield ", ".join(found) or "no primary metric was measured"
    for what, word in (("identical", "identical"), ("equivalent", "equivalent"), ("undecided", "inconclusive")):
        names = [f"{label(*verdict.name)}{_scope(verdict)}" for verdict in primary if verdict.verdict == word]
        if names:
            yield f"{what} on {', '.join(names)}"
    others = [verdict for verdict in verdicts if not verdict.primary and verdict.name in headline(scored)]
    besides = [_change(scored, verdict) for verdict in others if verdict.is_decided]
    open_ = [label(*verdict.name) for verdict in others if verdict.verdict == "inconclusive"]
    besides += [f"undecided on {', '.join(open_)}"] if open_ else []
    if besides:
        yield f"not primary: {', '.join(besides)}"


def _change(scored: Scored, verdict: Verdict) -> str:
    """Write a figure of a candidate beside the incumbent's, with their difference in the metric's own direction."""
    metric = scored.metric[verdict.metric]
    ours, theirs = (
        value_text(scored.pooled[policy, *verdict.name].value, metric.unit)
        for policy in (verdict.policy, verdict.against)
    )
    change, low, high = own_direction(verdict, metric.better)
    interval = interval_text(low, high, metric.unit).strip("[]").replace(", ", " to ")
    word = f"{verdict.verdict}{_scope(verdict)}"
    return f"{label(*verdict.name)} {ours} instead of {theirs} ({signed_text(change, metric.unit)}, {interval}, {word})"


def _scope(verdict: Verdict) -> str:
    return f" {scope_of(verdict)}".rstrip()
