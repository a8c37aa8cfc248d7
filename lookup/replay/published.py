"""What policies see of simulated load where brokers publish it now and then instead of at every grid instant.

How often that is says the policy's cadence; the arithmetic is the engine's. The ledger itself, and with it every
metric, stays what was measured.

Source: `docs/decisions/load-reports.md`; `docs/pulsar/load-managers.md`.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from lookup.engine.policy import Policy
from lookup.engine.reporting import ReportBoard
from lookup.model.load import Load
from lookup.replay.plan import ClusterPlan, RunPlan

__all__ = ["Publications"]


class Publications:
    """The load reports of one cluster under one policy; passes figures on as they are where reports are instant."""

    def __init__(self, cluster: ClusterPlan, run: RunPlan, policy: Policy) -> None:
        timeline = cluster.timeline
        board = ReportBoard(len(timeline.roster), int(timeline.bounds[0]), policy.cadence)
        self._board = board if run.is_published else None

    @property
    def is_kept(self) -> bool:
        """Tell whether every grid instant has to be shown: reports depend on those before."""
        return self._board is not None

    def leave(self, gone: NDArray[np.bool_], now_us: int) -> None:
        """Note which brokers are not registered, shape (n_brokers,)."""
        if self._board is not None:
            self._board.leave(gone, now_us)

    def shown(self, figures: Load, bundles: NDArray[np.int64], now_us: int) -> Load:
        """Return what policies see at a grid instant at which brokers measure some figures.

        Args:
            bundles: how many bundles each broker owns, shape (n_brokers,).
        """
        return figures if self._board is None else self._board.shown(figures, bundles, now_us)
