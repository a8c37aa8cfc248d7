"""Measures placements of large clusters: how far from the bound, how long, and HiGHS on the same problem."""

from __future__ import annotations

import resource
import subprocess
import sys
import time
from collections.abc import Iterator

import numpy as np
from figures import Figure
from numpy.typing import NDArray
from scipy import optimize, sparse

from lookup import best_placement

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]

#: Racks, share of the weight that may move, most imbalance; the gap that is kept.
_CASES = ((3, 0.05, 1.05, 0.002), (12, 0.2, 1.05, 0.008), (12, None, 1.05, 0.015), (12, None, 1.01, 0.015))
_GIB = 1 << 30


def measure_optimum() -> Iterator[Figure]:
    """Yield gaps, seconds and memory."""
    for racks, share, limit, most in _CASES:
        weights, owners, shares, rack = _cluster(10_000, 100, racks)
        budget = None if share is None else share * float(weights.sum())
        begun = time.process_time()
        found = best_placement(
            weights, np.ones(100), owners=owners, near=shares[:, rack], max_imbalance=limit, max_moved_weight=budget
        )
        seconds = time.process_time() - begun
        moved = "any moves" if share is None else f"{share:.0%} of the weight moves"
        what = f"10,000 bundles, 100 brokers, {racks} racks, balance within {limit - 1:.0%}, {moved}"
        yield Figure(f"{what}: gap", found.gap * 100, "%", bound=most * 100, note="to the proven bound")
        begun = time.process_time()
        linear = _linear(weights, owners, shares, rack, limit, budget)
        rival = time.process_time() - begun
        note = f"HiGHS: {rival:.2f} s for the relaxation without a placement, {linear:.5f}; our bound {found.bound:.5f}"
        yield Figure(f"{what}: one core", seconds, "s", note=note)
    # In a process of its own, whose memory is that of the problem alone.
    large = subprocess.run([sys.executable, __file__], capture_output=True, text=True, check=True)
    gap, seconds, gib = map(float, large.stdout.split())
    what = "100,000 bundles, 1,000 brokers, 12 racks, balance within 5%, 20% of the weight moves"
    yield Figure(f"{what}: gap", gap * 100, "%", bound=0.8)
    yield Figure(f"{what}: one core", seconds, "s")
    yield Figure(f"{what}: peak memory", gib, "GiB", bound=1.0, note="with the table of nearness, 0.37 GiB")


def _cluster(bundles: int, brokers: int, racks: int) -> tuple[Floats, Ints, Floats, Ints]:
    """Return weights, owners in balance, the shares of each bundle's lookups by rack, and the brokers' racks."""
    dice = np.random.default_rng(1)
    weights = 1 / np.arange(1, bundles + 1) ** 0.5
    weights = np.minimum(weights, 0.5 * weights.sum() / brokers)
    dice.shuffle(weights)
    owners, loads = np.zeros(bundles, dtype=np.int64), np.zeros(brokers)
    for bundle in np.argsort(-weights):
        owners[bundle] = dice.choice(np.flatnonzero(loads <= loads.min() * 1.03))
        loads[owners[bundle]] += weights[bundle]
    return weights, owners, dice.dirichlet(np.full(racks, 0.5), bundles), np.arange(brokers) % racks


def _linear(weights: Floats, owners: Ints, shares: Floats, rack: Ints, limit: float, budget: float | None) -> float:
    """Return the bound by the linear program over bundles and racks: HiGHS on the same relaxation."""
    bundles, racks = shares.shape
    room = limit * weights.sum() / len(rack) * np.bincount(rack)
    rows = [sparse.kron(weights[None, :], sparse.eye(racks))]
    most = [room]
    if budget is not None:
        moved = np.repeat(weights, racks)
        moved[np.arange(bundles) * racks + rack[owners]] = 0.0
        rows.append(sparse.csr_matrix(moved[None, :]))
        most.append(np.array([budget]))
    found = optimize.linprog(
        -(weights[:, None] * shares).ravel(),
        A_ub=sparse.vstack(rows).tocsr(),
        b_ub=np.concatenate(most),
        A_eq=sparse.kron(sparse.eye(bundles), np.ones((1, racks))).tocsr(),
        b_eq=np.ones(bundles),
        bounds=(0, 1),
        method="highs",
    )
    return float(-found.fun / weights.sum())


def _large() -> None:
    """Print the gap, the seconds and the peak memory of the largest case."""
    weights, owners, shares, rack = _cluster(100_000, 1_000, 12)
    near = shares.astype(np.float32)[:, rack]
    begun = time.process_time()
    found = best_placement(
        weights, np.ones(1_000), owners=owners, near=near, max_imbalance=1.05, max_moved_weight=0.2 * weights.sum()
    )
    seconds = time.process_time() - begun
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024 / _GIB
    print(found.gap, seconds, peak)


if __name__ == "__main__":
    _large()
