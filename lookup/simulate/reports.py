"""What everybody sees of the load of brokers: figures of this minute, or what was last published.

How brokers publish is the engine's business.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from lookup.engine.ledger import LoadFigures
from lookup.engine.policy import Policy
from lookup.engine.reporting import ReportBoard
from lookup.simulate.scenario import Scenario

__all__ = ["FreshReports", "Reports", "reports_of"]

Floats = NDArray[np.float64]


class Reports(Protocol):
    """Says what is seen of brokers that measure some figures."""

    def shown(self, figures: LoadFigures, bundles: NDArray[np.int64], now_us: int) -> LoadFigures:
        """Return what is seen of the figures of this minute.

        Args:
            bundles: how many bundles each broker owns, shape (n_brokers,).
            now_us: µs since the Unix epoch, later than in the call before.
        """


def reports_of(scenario: Scenario, policy: Policy, start_us: int) -> Reports:
    """Return the reports of a scenario's brokers under a policy.

    How often they publish is the policy's cadence, what they remember of the past the scenario's.

    Args:
        start_us: time of the first minute, µs since the Unix epoch.
    """
    n_brokers = len(scenario.broker_ids)
    if scenario.reports == "fresh":
        return FreshReports(n_brokers, scenario.history)
    return ReportBoard(n_brokers, start_us, replace(policy.cadence, history=scenario.history))


class FreshReports:
    """Every broker reports in every minute; usage is smoothed over the minutes before.

    Args:
        n_brokers: brokers of the scenario, there or not.
        history: share of the usage before in the next, ratio in [0, 1].
    """

    def __init__(self, n_brokers: int, history: float) -> None:
        self._usage: Floats = np.full(n_brokers, np.nan)
        self._history = history

    def shown(self, figures: LoadFigures, bundles: NDArray[np.int64], now_us: int) -> LoadFigures:
        """Return what is seen of the figures of this minute."""
        # Who comes back begins anew: usage of brokers that are away is NaN.
        smoothed = self._history * self._usage + (1.0 - self._history) * figures.usage
        self._usage = np.where(np.isnan(self._usage), figures.usage, smoothed)
        return replace(figures, usage=self._usage.copy())
