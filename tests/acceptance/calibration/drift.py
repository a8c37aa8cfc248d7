"""Imbalance that drifts: figures of cells drawn by themselves, of two policies that are equal over all times."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from lookup.replay.outcome import MetricSums, ReplayOutcome
from lookup.score.scoring import Scored, ScoringPlan, score
from lookup.settings.evaluation import EvaluationSection, VerdictSection
from tests.acceptance.calibration.equals import METRICS, SEEDS

__all__ = ["DRIFTS", "Drift", "drifting"]

_CELL_S = 900
FloatArray = NDArray[np.float64]


@dataclass(frozen=True)
class Drift:
    """How a difference between two policies wanders over the hours of a log."""

    kind: Literal["memory", "wave", "none"]
    #: hours after which a memory has faded to 1 / e, or of a wave
    period_h: float
    log_h: int
    #: what cells differ by besides, for a drift of size 1
    noise: float = 0.3

    @property
    def name(self) -> str:
        """Write it down in a few words."""
        what = {
            "none": "no drift",
            "memory": f"a memory of {self.period_h:g} h",
            "wave": f"a wave of {self.period_h:g} h",
        }
        return f"{what[self.kind]} in a log of {self.log_h} h, noise {self.noise:g}"

    def draw(self, rng: np.random.Generator) -> FloatArray:
        """Draw the difference in every cell, shape (n_cells,); it is 0 on average over all draws."""
        n, period = self.log_h * 3600 // _CELL_S, self.period_h * 3600 / _CELL_S
        noise = self.noise * rng.normal(size=n)
        if self.kind == "none":
            return noise
        if self.kind == "wave":
            phase = 2 * math.pi * np.arange(n) / period
            up, across = rng.normal(size=2)
            wave: FloatArray = up * np.cos(phase) + across * np.sin(phase)
            return wave + noise
        kept = math.exp(-1 / period)
        memory = np.empty(n)
        memory[0] = rng.normal()
        for cell in range(1, n):
            memory[cell] = kept * memory[cell - 1] + math.sqrt(1 - kept**2) * rng.normal()
        return memory + noise


#: Every drift that the page is about.
DRIFTS = (
    Drift("none", 1, 6, noise=1.0),
    Drift("memory", 1, 24, noise=0.0),
    Drift("memory", 1, 24),
    Drift("wave", 12, 6, noise=0.0),
    Drift("wave", 12, 6),
    Drift("wave", 24, 48, noise=0.0),
    Drift("wave", 24, 48),
)


def drifting(drift: Drift, seed: int, block_s: int = _CELL_S) -> Scored:
    """Compare two policies whose imbalance differs by a drift, in every replicate by the same and some noise."""
    rng = np.random.default_rng(seed)
    difference = drift.draw(rng)
    parts = []
    for policy, sign in (("incumbent", 0.0), ("candidate", 1.0)):
        for replicate in range(1, SEEDS + 1):
            above = 30 + sign * difference + 0.1 * rng.normal() + 0.1 * rng.normal(size=len(difference))
            sums = np.stack([100 * above, np.full(len(difference), 100.0)], axis=1)
            parts.append(MetricSums("c", policy, replicate, "imbalance_max_mean", None, (), sums))
    evaluation = EvaluationSection(incumbent="incumbent", seeds=SEEDS, balance_s=_CELL_S)
    # Any difference is one here: with a margin the figures would depend on what the imbalance happens to be.
    rules = VerdictSection(block_s=block_s, margin=0.0)
    return score(ReplayOutcome(parts), METRICS, ScoringPlan(("incumbent", "candidate"), evaluation, rules))
