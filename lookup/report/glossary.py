"""Explain the figures and the words of a report, one line each.

What a built-in metric says of itself is the first paragraph of its class; metrics of others are not known to the folder
of a run, and have no line.
"""

from __future__ import annotations

from inspect import getdoc

from lookup.report.comparison import label
from lookup.score.metrics import lookup_register_metrics
from lookup.score.scoring import Scored

__all__ = ["terms"]

_DIRECTIONS = {"up": "more is better", "down": "less is better", "info": "neither more nor less is better"}
_WORDS = {
    "incumbent": ("the policy that all others are held against, as a rule the one that the cluster runs today"),
    "primary metric, *": (
        "one of the few metrics that decide whether a candidate is worse; all other figures are for people to weigh"
    ),
    "95 % interval": (
        "where the figure would lie with other luck of the demand, of the placement and of events; an "
        "interval of a difference that has 0 in it leaves open which policy is better"
    ),
    "margin": ("the difference that counts as none, a share of the incumbent's figure as the settings say"),
    "for demand like this, on this log": (
        "two questions that are never mixed: whether a policy is better for lookups like these, drawn again, and "
        "whether anything is lost on the lookups as they came; answers and overload are guarded on this log, "
        "everything else is judged for demand like this"
    ),
    "undecided, inconclusive": (
        "this log cannot tell whether the candidate is better or worse; a longer log or more replicates may"
    ),
    "fidelity": (
        "how far the replayed incumbent is from what the log says really happened; a difference between "
        "policies that is no larger may come from the replay itself"
    ),
    "floor": (
        "the imbalance_max_mean of dealing lookups out to the brokers in turn: a policy near it has nothing "
        "left to gain"
    ),
    "for this placement only, △ ▽": (
        "one placement was replayed, or the policy places bundles in one way only, so that another draw of luck, like "
        "a broker of another name, may turn the verdict; it does not decide"
    ),
    "for these hours only, △ ▽": (
        "the difference drifts as slowly as the log is long, so that other hours may turn the verdict; it does not "
        "decide"
    ),
    "▴ ▾": (
        "better or worse if it were the only comparison, but among so many candidates chance brings such differences"
    ),
    "weight": "how much load the session behind a lookup brings, 1 where the log does not say",
    "cell": "a stretch of time, as long as balance_s of the settings, in which what each broker served is added up",
    "replicate": ("the same log replayed once more with other dice; figures are the mean of all replicates"),
    "bundle": ("a range of a namespace's topics, which has one owner at a time; a move gives it to another broker"),
}


def terms(scored: Scored) -> list[tuple[str, str]]:
    """Return the names of the run's figures, then the words of its report, each with what it means."""
    described = {metric.name: getdoc(metric) or "" for metric in lookup_register_metrics()}
    keys: dict[str, list[str]] = {}
    for figure in scored.estimates:
        keys.setdefault(figure.series.metric.name, []).append(label(*figure.series.name))
    explained = []
    for metric in scored.metrics:
        text = described.get(metric.name, "").partition("\n\n")[0].replace("\n", " ").rstrip(".")
        if text and metric.name in keys:
            names = ", ".join(dict.fromkeys(keys[metric.name]))
            explained.append((names, f"{text} ({metric.unit}, {_DIRECTIONS[metric.better]})."))
    return [*explained, *((word, f"{text[0].upper()}{text[1:]}.") for word, text in _WORDS.items())]
