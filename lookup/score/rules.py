"""Read and check the rules of a verdict that name figures, which are primary metrics and their margins.

They are separate from `verdict`, which needs scipy, so commands can check an evaluation without that extra.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from lookup.engine.measuring import every_key_of, question_of
from lookup.errors import SettingsError
from lookup.hooks import Metric
from lookup.model.quoting import suggestion
from lookup.settings.evaluation import VerdictSection

__all__ = ["Name", "check_measured", "check_rules", "default_primary", "margin_of", "may_decide", "name_of", "selects"]

#: Metric and key.
Name = tuple[str, str | None]


def default_primary(labels: Iterable[str]) -> tuple[str, ...]:
    """Choose the figures that decide if the settings name none.

    They measure whether clients are served, nearby, evenly and with few moves. The list is short, since every
    further comparison makes it harder to find a difference.

    Args:
        labels: properties by which a policy places, or that settings give to clients.
    """
    return ("answered_ratio", *(f"match_ratio:{key}" for key in labels), "imbalance_max_mean", "moved_weight")


def check_rules(rules: VerdictSection, metrics: Sequence[Metric]) -> None:
    """Refuse primary metrics and margins that do not name a metric, or name a key that their metric never has.

    Raises:
        SettingsError: with all wrong names together.
    """
    by_name = {metric.name: metric for metric in metrics}
    problems = []
    named_in = [("primary", name) for name in rules.primary or ()] + [("margins", name) for name in rules.margins]
    for table, named in named_in:
        metric, key = name_of(named)
        if metric not in by_name:
            problems.append(f"verdict.{table}: no metric is named {metric!r}; {suggestion(metric, sorted(by_name))}")
            continue
        keys = every_key_of(by_name[metric])
        if key is not None and keys is not None and key not in keys:
            right = suggestion(key, sorted(keys)) if keys else f"it is one figure, write {metric!r}"
            problems.append(f"verdict.{table}: {named!r}: {metric} has no key {key!r}; {right}")
    problems += [
        f"verdict.primary: {named!r} has no direction and gets no verdict; a metric that goes up or down would be right"
        for named in rules.primary or ()
        if (metric := name_of(named)[0]) in by_name and by_name[metric].better == "info"
    ]
    if problems:
        raise SettingsError(problems)


def check_measured(rules: VerdictSection, metrics: Sequence[Metric], measured: Iterable[Name]) -> None:
    """Refuse primary metrics with a key that the log does not have, since no policy could fail on them.

    Raises:
        SettingsError: with all such names together, and the existing keys.
    """
    closed = {metric.name for metric in metrics if every_key_of(metric) is not None}
    measured = set(measured)
    problems = []
    for named in rules.primary or ():
        metric, key = name_of(named)
        if key is not None and metric not in closed and (metric, key) not in measured:
            keys = sorted(f"{name}:{other}" for name, other in measured if name == metric and other is not None)
            right = f"this log has {', '.join(keys)}" if keys else f"this log has no key of {metric}"
            problems.append(f"verdict.primary: {named!r} could be measured for no policy; {right}")
    if problems:
        raise SettingsError(problems)


def margin_of(metric: Metric, key: str | None, rules: VerdictSection, incumbent: float) -> float:
    """Compute the tolerance below which a difference does not count, in the metric's unit.

    It is a share of the incumbent's value. For a value near 0 it is the share of a share, which avoids a jump.
    For a guarded ratio it is the share itself, of all lookups or of all time of brokers.
    """
    named = rules.margins.get(f"{metric.name}:{key}", rules.margins.get(metric.name))
    if question_of(metric) == "log" and named is None:
        named = rules.guard_margin
        if metric.unit == "ratio":
            return named
    share = rules.margin if named is None else named
    return share * max(abs(incumbent), share)


def may_decide(holds_for: str | None, rules: VerdictSection) -> bool:
    """Check whether a verdict that holds for this much may decide the exit code."""
    return holds_for == "policy" or (holds_for == "placement" and rules.accept_placement)


def name_of(named: str) -> Name:
    """Split a name in the settings into metric and key."""
    metric, colon, key = named.partition(":")
    return metric, key if colon else None


def selects(named: str, name: Name) -> bool:
    """Check whether a name in the settings selects a figure. Without a key it selects all of its metric."""
    metric, key = name_of(named)
    return metric == name[0] and key in (None, name[1])
