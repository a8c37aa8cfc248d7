"""Define the figures and the words of a report."""

from __future__ import annotations

from inspect import getdoc

from lookup.report.figures import Results
from lookup.score.figures import Figure
from lookup.score.metrics import lookup_register_metrics

__all__ = ["definitions"]

_DIRECTIONS = {"up": "more is better", "down": "less is better", "info": "neither direction is better"}
_DEFINITIONS = {
    "incumbent": "The policy that all others are compared with, usually the current policy of the cluster.",
    "primary metric, *": "A metric that decides whether a candidate is worse. All others are for people to weigh.",
    "95 % interval": (
        "The range of the figure with other demand, other placements and other events. An interval of a change that "
        "contains 0 does not show which policy is better."
    ),
    "margin": "The change that counts as none, a share of the incumbent's value from the settings.",
    "better, worse": "The whole interval of the change is on one side of 0.",
    "equivalent, identical": "The interval lies within the margin, or both policies took the same decisions.",
    "inconclusive": "This log does not show whether the candidate is better or worse.",
    "for demand like this, on this log": (
        "Answers and overload are judged on the lookups as they came. Everything else is judged for lookups like "
        "these, drawn again."
    ),
    "fidelity gap": (
        "The distance between the replayed incumbent and the log. Smaller changes may come from the replay."
    ),
    "at best": "The value if every bundle were always on the broker nearest to most of its clients.",
    "only in this placement, △ ▽": "Other broker names may change the verdict, so it does not decide the exit code.",
    "only in these hours, △ ▽": "Other hours may change the verdict, so it does not decide the exit code.",
    "only if bundles are independent, △ ▽": "The log has too few namespaces to show that its bundles are independent.",
    "▴ ▾": "Better or worse if it were the only comparison. Among so many, chance brings such changes.",
    "weight": "The load of the session behind a lookup, 1 where the log does not say.",
    "replicate": "One replay with its own seed. Figures are means over all replicates.",
    "bundle": "A range of a namespace's topics with one owner at a time. A move gives it to another broker.",
}


def definitions(results: Results) -> list[tuple[str, str]]:
    """Define the figures of the run, then the words of its report."""
    docs = {metric.name: getdoc(metric) or "" for metric in lookup_register_metrics()}
    labels: dict[str, dict[str, Figure]] = {}
    for row in results.pooled.values():
        labels.setdefault(row.metric, {})[row.label] = row
    defined = []
    for metric, rows in labels.items():
        text = docs.get(metric, "").partition("\n\n")[0].replace("\n", " ").rstrip(".")
        row = next(iter(rows.values()))
        if text:
            defined.append((", ".join(rows), f"{text} ({row.unit}, {_DIRECTIONS[row.better]})."))
    return [*defined, *_DEFINITIONS.items()]
