"""Decide on the recommendation after the sealed days, and write it in a form to paste."""

from __future__ import annotations

import json
import math
from collections.abc import Iterator, Mapping

from lookup.score.rules import Name
from lookup.settings.pulsar_keys import NOT_DYNAMIC
from lookup.tuning.racing import ANSWERED, Aims, Standing, figure_name

__all__ = ["back_lines", "dynamic_lines", "objection", "of_bundles", "patch", "promises", "restart_lines"]


def objection(candidate: Standing, incumbent: Standing, aims: Aims, *, alone: bool = False) -> str | None:
    """Explain why a candidate is not recommended, None if it is.

    It is recommended within the limits and without more unanswered lookups, in two cases. Either an objective is better
    and every other one is kept, or all are kept and a price is lower.

    Args:
        alone: whether the intervals decide, as if nothing else had been tried, instead of the verdicts on all together.
    """
    if candidate.idle is not None:
        return f"it cannot act on this log: {candidate.idle}"
    if candidate.figures[ANSWERED].guard != "kept":
        return "it may leave more lookups unanswered"
    for name, times in aims.limits.items():
        if not _is_within(candidate, incumbent, name, times, aims):
            return f"{figure_name(name)} is not within {times:g} times today's"

    def is_better(name: Name) -> bool:
        figure = candidate.figures[name]
        return figure.gain_interval[0] > 0 if alone else figure.verdict == "better"

    better = [name for name in aims.figures if is_better(name)]
    if not better:
        texts = []
        for name in aims.figures:
            figure = candidate.figures[name]
            is_alone = figure.verdict == "inconclusive" and figure.gain_interval[0] > 0
            note = " (better if it were the only comparison)" if is_alone else ""
            texts.append(f"{figure_name(name)} {figure.verdict}{note}")
        return f"no figure is significantly better: {', '.join(texts)}"
    has_gained = any(name in better for name in aims.objectives)
    for name in aims.objectives if has_gained else aims.figures:
        figure = candidate.figures[name]
        # Of a figure without an interval a loss beyond the tolerance is not excluded.
        is_kept = figure.verdict in ("equivalent", "identical")
        is_kept = is_kept or figure.gain_interval[0] >= -_compute_tolerance(incumbent, name, aims)
        if name not in better and not is_kept:
            return f"{figure_name(name)} may be worse by more than the tolerance"
    return None


def promises(candidate: Standing, incumbent: Standing, aims: Aims) -> bool:
    """Check whether a candidate would be recommended if its figures of the search were exact."""
    if candidate.idle is not None:
        return False
    gains = {name: aims.turn_upward(name, candidate) - aims.turn_upward(name, incumbent) for name in aims.figures}
    if any(math.isnan(gain) for gain in gains.values()):
        return False
    for name, times in aims.limits.items():
        if not _is_within(candidate, incumbent, name, times, aims):
            return False
    if any(gains[name] < -_compute_tolerance(incumbent, name, aims) for name in aims.objectives):
        return False
    return any(gains[name] > 0 for name in aims.figures)


def _compute_tolerance(incumbent: Standing, name: Name, aims: Aims) -> float:
    return aims.tolerance * abs(incumbent.figures[name].value)


def _is_within(candidate: Standing, incumbent: Standing, name: Name, times: float, aims: Aims) -> bool:
    value, today = candidate.figures[name].value, incumbent.figures[name].value
    return value >= times * today if name in aims.rising else value <= times * today


def patch(changes: Mapping[str, object], today: Mapping[str, object]) -> str:
    """Write changed keys of a `broker.conf` as a patch of two lines each."""
    lines = []
    for key, value in changes.items():
        if today.get(key) is not None:
            lines.append(f"-{key}={_format_plain(today[key])}")
        lines.append(f"+{key}={_format_plain(value)}")
    return "\n".join(lines)


def dynamic_lines(changes: Mapping[str, object]) -> Iterator[str]:
    """Yield the command that changes a key in a running cluster, for each key for which there is one."""
    for key, value in changes.items():
        if key not in NOT_DYNAMIC:
            yield f"pulsar-admin brokers update-dynamic-config --config {key} --value {_format_plain(value)}"


def back_lines(before: Mapping[str, object]) -> Iterator[str]:
    """Yield the command that reverts each change of a running cluster. A key that was not written is deleted again."""
    yield from dynamic_lines({key: value for key, value in before.items() if value is not None})
    for key, value in before.items():
        if value is None and key not in NOT_DYNAMIC:
            yield f"pulsar-admin brokers delete-dynamic-config --config {key}"


def restart_lines(changes: Mapping[str, object]) -> Iterator[str]:
    """Yield the changed keys that count only after a restart, as a `broker.conf` has them."""
    yield from (f"{key}={_format_plain(value)}" for key, value in changes.items() if key in NOT_DYNAMIC)


def of_bundles(count: object) -> str:
    """Warn users who change the number of bundles of a namespace."""
    return (
        f"The figures hold for namespaces with {count} bundles. defaultNumberOfNamespaceBundles applies only to "
        "namespaces that are created after a restart. Split the bundles of existing namespaces with "
        "`pulsar-admin namespaces split-bundle`. Bundles cannot be merged again."
    )


def _format_plain(value: object) -> str:
    return json.dumps(value) if isinstance(value, bool) else str(value)
