"""Figures after a plan, in intervals: how its placement would have done with the loads of the time before it."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence

import numpy as np
from numpy.typing import NDArray
from scipy import special

from lookup.model.time import US_PER_S
from lookup.moving.balance import Balance, Move
from lookup.moving.plan import Predicted
from lookup.moving.state import ClusterState, Samples

__all__ = ["predicted"]

Floats = NDArray[np.float64]

#: Share of measurements that an interval is to cover.
_COVERED = 0.95
#: Least half of an interval, as a share of the value: brokers measure over a minute, of which a move interrupts clients
#: for up to 0.7 s (docs/plan.md).
_LEAST = 0.7 / 60


def predicted(
    state: ClusterState, balance: Balance, moves: Sequence[Move], quiet: Mapping[int, int], after: Mapping[str, float]
) -> tuple[dict[str, Predicted], str]:
    """Return figures with the intervals in which they are to be measured, and what these cover."""
    samples = state.samples
    if isinstance(samples, str):
        return {name: Predicted(value=value) for name, value in after.items()}, f"no intervals: {samples}"
    past = [balance.figures(loads) for loads in _loads_after(state, samples, moves, quiet)]
    # Student's: loads that were reported three times say little of how they vary.
    times = float(special.stdtrit(samples.reports - 1, (1.0 + _COVERED) / 2.0)) * math.sqrt(1.0 + 1.0 / samples.reports)
    intervals = {}
    for name, value in after.items():
        values = np.array([figures[name] for figures in past])
        mean, half = float(values.mean()), max(times * float(values.std(ddof=1)), _LEAST * value)
        # The plan fits the loads of its instant: at others its placement is less even, so the mean belongs inside.
        low, high = min(value, mean) - half, max(value, mean) + half
        intervals[name] = Predicted(value=value, low=max(low, 0.0), high=high)
    minutes = samples.span_us / US_PER_S / 60
    how = f"vary as in the {minutes:.0f} minutes before, in which each broker reported {samples.reports} times or more"
    return intervals, f"{_COVERED:.0%} of measurements, if loads {how}"


def _loads_after(
    state: ClusterState, samples: Samples, moves: Sequence[Move], quiet: Mapping[int, int]
) -> Iterator[Floats]:
    """Yield the loads of brokers at each instant of the past, had the owners been those after the plan."""
    brokers = state.view.brokers
    owners = np.full(len(samples.bundles), -1)
    for bundle, column in samples.bundles.items():
        owned = state.owners.get(bundle)
        number = None if owned is None else brokers.number(owned.broker)
        owners[column] = -1 if number is None else number
    for move in moves:
        if move.bundle in samples.bundles:
            owners[samples.bundles[move.bundle]] = move.destination
    shares = [move for move in moves if move.bundle not in state.loads]
    for loads, then, totals in zip(samples.loads, samples.owners, samples.totals, strict=True):
        named = _by_broker(then, loads, len(brokers))
        besides = np.maximum(0.0, totals - named)
        after = besides + _by_broker(owners, loads, len(brokers))
        for move in shares:
            share = besides[move.source] / quiet[move.source]
            after[move.source] -= share
            after[move.destination] += share
        yield after


def _by_broker(owners: NDArray[np.int64], loads: Floats, n_brokers: int) -> Floats:
    # One place more for bundles without owner.
    return np.bincount(owners + 1, loads, n_brokers + 1)[1:].astype(np.float64)
