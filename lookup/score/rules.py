"""The rules of a verdict that name figures: which decide the exit code, and what counts as no difference."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from difflib import get_close_matches

from lookup.engine.measuring import every_key_of
from lookup.errors import SettingsError
from lookup.hooks import Metric
from lookup.settings.sections import VerdictSection

__all__ = ["Name", "check_measured", "check_rules", "default_primary", "margin_of", "name_of", "selects"]

#: Metric and key.
Name = tuple[str, str | None]


def default_primary(labels: Iterable[str]) -> tuple[str, ...]:
    """Return the figures that decide if the settings name none.

    Whether clients are served, near, evenly and in peace: a short list, since every further comparison makes it harder
    to find a difference in any.

    Args:
        labels: properties by which a policy places, or that settings give to clients.
    """
    return ("answered_ratio", *(f"match_ratio:{key}" for key in labels), "imbalance_max_mean", "moved_weight")


def check_rules(rules: VerdictSection, metrics: Sequence[Metric]) -> None:
    """Refuse primary metrics and margins that name no metric, or a key their metric never has.

    Raises:
        SettingsError: all wrong names together.
    """
    known = {metric.name: metric for metric in metrics}
    named = [("primary", name) for name in rules.primary or ()] + [("margins", name) for name in rules.margins]
    problems = [f"verdict.{where}: {reason}" for where, name in named for reason in _misnamed(name, known)]
    problems += [
        f"verdict.primary: {name!r} has no direction and gets no verdict; a metric that goes up or down would be right"
        for name in rules.primary or ()
        if (metric := name_of(name)[0]) in known and known[metric].better == "info"
    ]
    if problems:
        raise SettingsError(problems)


def check_measured(rules: VerdictSection, metrics: Sequence[Metric], measured: Iterable[Name]) -> None:
    """Refuse primary metrics whose key depends on the log if the log has no such key: no policy could fail on it.

    Raises:
        SettingsError: all such names together, with the keys there are.
    """
    closed = {metric.name for metric in metrics if every_key_of(metric) is not None}
    measured = set(measured)
    problems = [
        f"verdict.primary: {named!r} could be measured for no policy; {_keys_of(name_of(named)[0], measured)}"
        for named in rules.primary or ()
        if ":" in named and name_of(named)[0] not in closed and name_of(named) not in measured
    ]
    if problems:
        raise SettingsError(problems)


def margin_of(name: Name, rules: VerdictSection, incumbent: float) -> float:
    """Return what counts as no difference: relative to the incumbent's value, absolute if that is 0."""
    metric, key = name
    margin = rules.margins.get(f"{metric}:{key}", rules.margins.get(metric, rules.margin))
    return margin * abs(incumbent) if incumbent else margin


def name_of(named: str) -> Name:
    """Return metric and key of a name in the settings."""
    metric, colon, key = named.partition(":")
    return metric, key if colon else None


def selects(named: str, name: Name) -> bool:
    """Tell whether a name in the settings means a figure; without a key it means all of its metric."""
    metric, key = name_of(named)
    return metric == name[0] and key in (None, name[1])


def _misnamed(named: str, known: Mapping[str, Metric]) -> Iterator[str]:
    metric, key = name_of(named)
    if metric not in known:
        yield f"no metric is named {metric!r}; {_meant(metric, known)}"
        return
    keys = every_key_of(known[metric])
    if key is None or keys is None or key in keys:
        return
    right = _meant(key, keys) if keys else f"it is one figure, write {metric!r}"
    yield f"{named!r}: {metric} has no key {key!r}; {right}"


def _keys_of(metric: str, measured: Iterable[Name]) -> str:
    keys = sorted(key for name, key in measured if name == metric and key is not None)
    return (
        f"this log has {', '.join(f'{metric}:{key}' for key in keys)}" if keys else f"this log has no key of {metric}"
    )


def _meant(wrong: str, known: Iterable[str]) -> str:
    known = sorted(known)
    close = get_close_matches(wrong, known, n=1)
    return f"did you mean {close[0]!r}?" if close else f"known: {', '.join(known)}"
