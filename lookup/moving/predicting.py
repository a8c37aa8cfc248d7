"""Figures after a plan, in intervals: how its placement would have done with the loads of the time before it.

Brokers report a few bundles each, ten by default. Of those besides only the sum is known, so what moves with them is
drawn: every division of the sum among them is as likely as any other.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence

import numpy as np
from numpy.typing import NDArray
from scipy import special

from lookup.model.quoting import quantity
from lookup.model.time import US_PER_S
from lookup.moving.balance import Balance, Move
from lookup.moving.plan import Predicted
from lookup.moving.state import ClusterState, Samples

__all__ = ["predicted"]

Floats = NDArray[np.float64]

#: Share of measurements that an interval is to cover.
_COVERED = 0.95
#: By how much the load of a broker is measured wrong at least, as a share: brokers measure over a minute, of which a
#: move interrupts clients for up to 0.7 s (docs/plan.md).
_LEAST = 0.7 / 60
#: Divisions among bundles without report that are drawn.
_DRAWS = 100


def predicted(
    state: ClusterState, balance: Balance, moves: Sequence[Move], quiet: Mapping[int, int], after: Mapping[str, float]
) -> tuple[dict[str, Predicted], str]:
    """Return figures with the intervals in which they are to be measured, and what these cover."""
    samples = state.samples
    if isinstance(samples, str):
        return {name: Predicted(value=value) for name, value in after.items()}, f"no intervals: {samples}"
    unknown = [move for move in moves if move.bundle not in state.loads]
    divisions = _divisions(unknown, quiet)
    instants = _loads_after(state, samples, moves)
    past = [[balance.figures(loads) for loads in _divided(known, besides, divisions)] for known, besides in instants]
    # Student's: loads that were reported three times say little of how they vary.
    at, reports = (1.0 + _COVERED) / 2.0, samples.reports
    times, normal = special.stdtrit(reports - 1, at) * math.sqrt(1.0 + 1.0 / reports), special.ndtri(at)
    # If the fullest broker is measured wrong by a share e, imbalance is by as much, and deviation by e/2 at most.
    least = {"imbalance": _LEAST * after["imbalance"], "deviation": _LEAST * after["imbalance"] / 2.0}
    intervals = {}
    for name, value in after.items():
        values = np.array([[figures[name] for figures in instant] for instant in past])
        mean, of_time = values.mean(), values.mean(axis=1).std(ddof=1)
        half = max(math.hypot(times * of_time, normal * math.sqrt(values.var(axis=1).mean())), least[name])
        # The plan fits the loads of its instant: at others its placement is less even, so the mean belongs inside.
        low, high = float(min(value, mean) - half), float(max(value, mean) + half)
        intervals[name] = Predicted(value=value, low=max(low, 0.0), high=high)
    minutes = samples.span_us / US_PER_S / 60
    how = f"vary as in the {minutes:.0f} minutes before, in which each broker reported {reports} times or more"
    more = f"; of {quantity(len(unknown), 'bundle')} that move no load was reported, only what all such carry"
    return intervals, f"{_COVERED:.0%} of measurements, if loads {how}{more if unknown else ''}"


def _divisions(unknown: Sequence[Move], quiet: Mapping[int, int]) -> list[tuple[int, list[int], Floats]]:
    """Draw which owners have which shares, shape (n_draws, n_owners), of what a source carries besides, by source."""
    parts: dict[int, Counter[int]] = {}
    for move in unknown:
        sizes = parts.setdefault(move.source, Counter({move.source: quiet[move.source]}))
        sizes.update({move.source: -1, move.destination: 1})
    dice = np.random.default_rng(0)
    # Sums over parts of a flat Dirichlet are again of Dirichlet, with the sizes of the parts.
    return [(source, [*+of], dice.dirichlet([*(+of).values()], _DRAWS)) for source, of in sorted(parts.items())]


def _divided(known: Floats, besides: Floats, divisions: Sequence[tuple[int, list[int], Floats]]) -> Floats:
    """Return the loads of brokers by each of the divisions, shape (n_draws, n_brokers); one draw if there are none."""
    loads = np.tile(known + besides, (_DRAWS if divisions else 1, 1))
    for source, owners, shares in divisions:
        loads[:, source] -= besides[source]
        loads[:, owners] += besides[source] * shares
    return np.maximum(0.0, loads)


def _loads_after(state: ClusterState, samples: Samples, moves: Sequence[Move]) -> Iterator[tuple[Floats, Floats]]:
    """Yield what brokers would have carried of bundles with a report at each past instant, and did besides."""
    brokers = state.view.brokers
    owners = np.full(len(samples.bundles), -1)
    for bundle, column in samples.bundles.items():
        owned = state.owners.get(bundle)
        number = None if owned is None else brokers.number(owned.broker)
        owners[column] = -1 if number is None else number
    for move in moves:
        if move.bundle in samples.bundles:
            owners[samples.bundles[move.bundle]] = move.destination
    for loads, then, totals in zip(samples.loads, samples.owners, samples.totals, strict=True):
        besides = np.maximum(0.0, totals - _by_broker(then, loads, len(brokers)))
        yield _by_broker(owners, loads, len(brokers)), besides


def _by_broker(owners: NDArray[np.int64], loads: Floats, n_brokers: int) -> Floats:
    # One place more for bundles without owner.
    return np.bincount(owners + 1, loads, n_brokers + 1)[1:].astype(np.float64)
