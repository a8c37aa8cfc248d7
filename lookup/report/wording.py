"""Sentences every form of the report shares: outcomes, what verdicts mean, what to be careful about."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterator, Mapping

from lookup.engine.ledger import MICRO
from lookup.model.time import moment_at
from lookup.replay.quantities import quantity
from lookup.report.comparison import MARKS, OPEN_MARKS, label, policies_in_order
from lookup.report.numbers import number_text
from lookup.score.luck import LEVEL
from lookup.score.scoring import Scored
from lookup.score.verdict import Verdict, Word, family, margin_of

__all__ = ["MEANINGS", "caveats", "comparisons", "conclusion", "floors", "legend", "outcomes"]

MEANINGS: Mapping[Word, str] = {
    "better": "the whole interval of the difference is on the good side",
    "worse": "the whole interval of the difference is on the bad side",
    "equivalent": "the interval, widened by the fidelity gap, lies within the margin, or all figures are the same",
    "inconclusive": "this log cannot tell; the reason says why",
}

#: The year 1980, µs since the epoch: seconds and ms that are taken for µs lie before it until long after 2200.
_EARLY_US = 315_532_800 * MICRO


def legend() -> str:
    """Explain the marks in one line."""
    marks = "  ".join(f"{mark} {word}" for word, mark in MARKS.items())
    open_marks = f"{OPEN_MARKS['better']} {OPEN_MARKS['worse']} for this placement only"
    return f"against the incumbent: {marks}  {open_marks};  ↑ ↓ which direction is better;  * decides the exit code"


def outcomes(scored: Scored) -> list[str]:
    """Say for each candidate, in one sentence, how it compares on the primary metrics and on all."""
    return [
        _outcome(policy, [one for one in scored.verdicts if one.policy == policy])
        for policy in policies_in_order(scored)[1:]
    ]


def _outcome(policy: str, verdicts: list[Verdict]) -> str:
    counts = Counter(one.verdict for one in verdicts)
    summary = ", ".join(f"{counts[word]} {word}" for word in MARKS if counts[word]) or "no verdict"
    if any(one.holds_for == "placement" and one.verdict in ("better", "worse") for one in verdicts):
        summary += ", for this placement only"
    worse = [label(one.metric, one.key) for one in verdicts if one.primary and one.verdict == "worse"]
    return f"{policy}: {summary}" + (f"; worse on primary {', '.join(worse)}" if worse else "")


def comparisons(scored: Scored) -> Iterator[str]:
    """Say how many comparisons were made, and how many of them chance alone would decide."""
    together, alone = family(scored.verdicts)
    if together:
        yield (
            f"{quantity(together, 'comparison decides', 'comparisons decide')} the exit code (*), judged together: "
            f"between equals one of them would come out better or worse in at most {LEVEL:.0%} of all runs."
        )
    if alone:
        yield (
            f"{quantity(alone, 'further comparison was', 'further comparisons were')} made, each for itself: "
            f"between equals chance alone would bring about {LEVEL * alone:.1f} that are better or worse."
        )


def conclusion(scored: Scored) -> str:
    """Say what the exit code means."""
    if len(scored.plan.policies) == 1:
        return "Only the incumbent was replayed: figures, no verdicts."
    return {
        0: _clean(scored),
        3: "At least one candidate is worse than the incumbent on a primary metric (exit code 3).",
        4: (
            "A decision was required and at least one primary metric is inconclusive, or decided for this placement "
            "only (exit code 4)."
        ),
    }[scored.exit_code]


def _clean(scored: Scored) -> str:
    once = [one for one in scored.verdicts if one.primary and one.verdict == "worse"]
    if not once:
        return "No candidate is worse than the incumbent on a primary metric."
    return (
        "No candidate is worse than the incumbent on a primary metric as far as policies go; where one is worse for "
        "this placement only (▽), another draw of luck may turn it, so it does not decide the exit code."
    )


def floors(scored: Scored) -> list[str]:
    """Say what imbalance a per-lookup round-robin would have in each cluster, which no policy has to undercut."""
    known = scored.inputs.get("imbalance_floor")
    if not isinstance(known, Mapping):
        return []
    return [f"{cluster} {number_text(_number(value))}" for cluster, value in known.items() if value is not None]


def caveats(scored: Scored) -> list[str]:
    """Say what a reader should know before trusting the figures."""
    sections = (
        _about_silence,
        _about_time,
        _about_incapable,
        _about_placement,
        _about_inputs,
        _about_fidelity,
        _about_distance,
    )
    return [sentence for section in sections for sentence in section(scored)]


def _about_silence(scored: Scored) -> Iterator[str]:
    best: dict[str, float] = {}
    for one in scored.estimates:
        if one.series.metric.name == "answered_ratio" and one.cluster is not None and not one.series.by:
            best[one.cluster] = max(one.value, best.get(one.cluster, 0.0))
    for cluster in sorted(cluster for cluster, ratio in best.items() if ratio == 0.0):
        yield (
            f"No policy answered a single lookup of cluster {cluster}: was any broker registered there while the log "
            "was written? Compare the times of BROKERS, or `from` and `until`, with those of the log."
        )


def _about_time(scored: Scored) -> Iterator[str]:
    first = scored.inputs.get("first_us")
    if isinstance(first, int) and 0 < first < _EARLY_US:
        began = moment_at(first)
        yield f"The log begins in {began:%B %Y}. Whole numbers in `ts` are taken for µs: are they ms or seconds?"


def _about_placement(scored: Scored) -> Iterator[str]:
    policies: dict[str, list[str]] = {}
    for policy, reason in scored.placed_once.items():
        policies.setdefault(reason, []).append(policy)
    decides = "decide" if scored.plan.rules.accept_placement else "do not decide"
    for reason, names in policies.items() if scored.verdicts else ():
        yield (
            f"{', '.join(names)}: {reason}, so verdicts that involve it hold for this placement only (△ ▽) and "
            f"{decides} the exit code: another draw of luck may turn them."
        )


def _about_incapable(scored: Scored) -> Iterator[str]:
    for policy, reason in scored.cannot_act.items():
        yield f"{policy} is not what it says: {reason}"


def _about_inputs(scored: Scored) -> Iterator[str]:
    inputs, evaluation = scored.inputs, scored.plan.evaluation
    if inputs.get("capacity") == "assumed":
        yield (
            "capacity: assumed. No broker has a capacity, so all of a cluster were given the one that makes mean "
            "usage 0.5; usage shows proportions, not fullness, and overload_ratio is not computed."
        )
    if _number(inputs.get("induced_ratio")) > 0:
        yield (
            f"{_number(inputs['induced_ratio']):.2%} of the lookups came within {evaluation.reconnect_s} s after their "
            "bundle was unloaded or lost in the log; another policy might not have caused them."
        )
    if _number(inputs.get("quarantined")) > 0:
        records = quantity(int(_number(inputs["quarantined"])), "record")
        yield f"{records} could not be used and went to the quarantine table."
    if evaluation.ownership == "shared":
        yield "Ownership is shared: nobody owns bundles, so metrics of assignments and moves have no meaning."


def _about_fidelity(scored: Scored) -> Iterator[str]:
    if scored.fidelity and all(math.isnan(one.gap) for one in scored.fidelity):
        reason = scored.fidelity[0].reason
        yield f"Fidelity is unknown: {reason}. Whether the replayed incumbent is what really happened was not checked."
    strange = [
        one for one in scored.fidelity if one.gap > margin_of((one.metric, one.key), scored.plan.rules, one.resimulated)
    ]
    if strange:
        figures = ", ".join(
            f"{label(one.metric, one.key)} ({number_text(one.logged)} logged, {number_text(one.low)} to "
            f"{number_text(one.high)} replayed)"
            for one in strange
        )
        yield (
            f"The log was not written by {scored.plan.evaluation.incumbent}: no replicate of it would show {figures}. "
            "Differences between policies that are not above these gaps are left open."
        )


def _about_distance(scored: Scored) -> Iterator[str]:
    shares = [
        one.value
        for one in scored.estimates
        if one.series.metric.name == "network_covered_ratio" and one.cluster is None and not one.series.by
    ]
    least = min((share for share in shares if not math.isnan(share)), default=1.0)
    if least == 0.0:
        yield "Distances are unknown: no client and broker have locations that can be compared."
    elif least < 0.995:
        yield f"Network figures are about {least:.1%} of the weight or more; of the rest no distance is known."


def _number(value: object) -> float:
    return float(value) if isinstance(value, int | float) else 0.0
