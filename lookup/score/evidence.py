"""Say on how much a comparison rests, blocks of time, bundles or events, and whether it is too little for a verdict."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence

import numpy as np
from numpy.typing import NDArray

from lookup.model.evidence import effective
from lookup.model.quoting import quantity
from lookup.replay.outcome import MetricSums
from lookup.score.luck import Layout, Sample
from lookup.score.series import Series
from lookup.settings.evaluation import VerdictSection

__all__ = ["too_few"]

#: Words for one event and for several, by the cause it has in changes of owner.
_EVENTS: Mapping[str, tuple[str, str]] = {
    "forced": ("broker was lost", "brokers were lost"),
    "admin": ("bundle was unloaded by an administrator", "bundles were unloaded by an administrator"),
    "split": ("bundle was split", "bundles were split"),
}


def too_few(a: Series, b: Series, difference: Sample, layout: Layout, rules: VerdictSection) -> str | None:
    """Return the sentence that a comparison rests on too few units or events with figures; None if it does not.

    Args:
        difference: of the samples of the two series.
    """
    parts = [(cluster, part) for series in (a, b) for (cluster, _), part in series.parts.items()]
    if a.metric.resample == "time":
        return _too_few_blocks([part for _, part in parts], layout, rules)
    strata = [one.weights for one in difference.strata or () if one.source == "demand"]
    weights = np.concatenate([np.zeros(0), *strata])
    # Rounding makes eight equal bundles a little fewer.
    if effective(weights) >= _least(rules) * (1 - 1e-9):
        return None
    causes = _active_events(parts)
    if causes:
        return _too_few_events(causes, rules)
    # Totals of nothing are equal; a quotient of nothing has no value and does not come here.
    return _too_few_bundles(weights, rules) if weights.any() else None


def _too_few_blocks(parts: Sequence[MetricSums], layout: Layout, rules: VerdictSection) -> str | None:
    # Starts of the cells with figures under either policy, in any cluster: cells of one time are one unit.
    cells: set[int] = set()
    for part in parts:
        cells.update((part.start_us + np.flatnonzero(part.sums.any(axis=1)) * layout.cell_us).tolist())
    blocks = -(-len(cells) // layout.block)
    if blocks >= _least(rules):
        return None
    return f"it rests on {quantity(blocks, 'block of time', 'blocks of time')}, fewer than {_wanted(blocks, rules)}"


def _active_events(parts: Sequence[tuple[str, MetricSums]]) -> Counter[str]:
    """Count the events with a figure under either policy by cause; those of a cluster are the same in all its parts."""
    active: dict[str, NDArray[np.bool_]] = {}
    for cluster, part in parts:
        rows = np.asarray(part.sums[len(part.sums) - len(part.events) :].any(axis=1))
        active[cluster] = active[cluster] | rows if cluster in active else rows
    causes_of = {cluster: part.events for cluster, part in parts}
    return Counter(causes_of[name][number] for name, rows in active.items() for number in np.flatnonzero(rows))


def _too_few_events(causes: Counter[str], rules: VerdictSection) -> str | None:
    cause, most = causes.most_common(1)[0]
    if most >= rules.min_events:
        return None
    count = quantity(most, *_EVENTS.get(cause, ("event happened", "events happened")))
    return f"{count}; which one is luck, and {rules.min_events} of min_events are asked for"


def _too_few_bundles(weights: NDArray[np.float64], rules: VerdictSection) -> str:
    bundles, worth = int(np.count_nonzero(weights)), effective(weights)
    if bundles < _least(rules):
        return f"it rests on {quantity(bundles, 'bundle')}, fewer than {_wanted(bundles, rules)}"
    return (
        f"one bundle has {weights.max() / weights.sum():.0%} of what it rests on, so that {bundles:,} bundles are "
        f"worth {min(worth, _least(rules) - 0.1):.1f} of equal weight, fewer than {_wanted(worth, rules)}"
    )


def _least(rules: VerdictSection) -> int:
    return max(2, rules.min_units)


def _wanted(units: float, rules: VerdictSection) -> str:
    return f"the {rules.min_units} of min_units" if units < rules.min_units else "the two that can differ"
