"""Say on how much a comparison rests, blocks of time, bundles or events, and whether it is too little for a verdict."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from lookup.engine.ownership import EVENT_WORDS
from lookup.model.evidence import effective
from lookup.model.quoting import quantity
from lookup.replay.outcome import MetricSums
from lookup.score.luck import Layout, Sample
from lookup.score.series import Series
from lookup.settings.evaluation import VerdictSection

__all__ = ["too_few"]


def too_few(a: Series, b: Series, difference: Sample, layout: Layout, rules: VerdictSection) -> str | None:
    """Return the sentence that a comparison rests on too few units or events with figures; None if it does not."""
    parts = [(cluster, part) for series in (a, b) for (cluster, _), part in series.parts.items()]
    if a.metric.resample == "time":
        return _too_few_blocks([part for _, part in parts], layout, rules)
    weights = np.concatenate([np.zeros(0), *(one.weights for one in difference.strata or () if one.source == "demand")])
    # Rounding makes eight equal bundles a little fewer.
    if effective(weights) >= max(2, rules.min_units) * (1 - 1e-9):
        return None
    causes = _active_events(parts)
    if not causes:
        # Totals of nothing are equal; a quotient of nothing has no value and does not come here.
        return _too_few_bundles(weights, rules) if weights.any() else None
    cause, most = causes.most_common(1)[0]
    if most >= rules.min_events:
        return None
    count = quantity(most, *EVENT_WORDS.get(cause, ("event happened", "events happened")))
    return f"{count}; which one is luck, and {rules.min_events} of min_events are asked for"


def _too_few_blocks(parts: Sequence[MetricSums], layout: Layout, rules: VerdictSection) -> str | None:
    # Starts of the cells with figures under either policy, in any cluster: cells of one time are one unit.
    cells = [part.start_us + np.flatnonzero(part.sums.any(axis=1)) * layout.cell_us for part in parts]
    blocks = -(-len(np.unique(np.concatenate(cells))) // layout.block)
    if blocks >= max(2, rules.min_units):
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


def _too_few_bundles(weights: NDArray[np.float64], rules: VerdictSection) -> str:
    bundles, worth, least = int(np.count_nonzero(weights)), effective(weights), max(2, rules.min_units)
    if bundles < least:
        return f"it rests on {quantity(bundles, 'bundle')}, fewer than {_wanted(bundles, rules)}"
    return (
        f"one bundle has {weights.max() / weights.sum():.0%} of what it rests on, so that {bundles:,} bundles are "
        f"worth {min(worth, least - 0.1):.1f} of equal weight, fewer than {_wanted(worth, rules)}"
    )


def _wanted(units: float, rules: VerdictSection) -> str:
    return f"the {rules.min_units} of min_units" if units < rules.min_units else "the two that can differ"
