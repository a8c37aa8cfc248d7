"""What policies see of simulated load where brokers publish it now and then instead of at every grid instant.

How often that is says the policy's cadence; the arithmetic is the engine's. The ledger itself, and with it every
metric, stays what was measured.

Source: `docs/decisions/load-reports.md`; `facts/loadmanager.md` section 11.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from lookup.engine.ledger import LoadFigures
from lookup.engine.policy import Policy
from lookup.engine.reporting import Measured, ReportBoard
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

    def shown(self, figures: LoadFigures, bundles: NDArray[np.int64], now_us: int) -> LoadFigures:
        """Return what policies see at a grid instant at which brokers measure some figures.

        Args:
            bundles: how many bundles each broker owns, shape (n_brokers,).
        """
        if self._board is None:
            return figures
        load = figures.broker_load
        # Where no rate of messages is known, the load's changes are its changes.
        rate = load if figures.message_rate is None else figures.message_rate
        seen = self._board.measure(Measured(figures.usage, load, rate, bundles, figures.topics), now_us)
        return replace(
            figures,
            usage=seen.usage,
            max_usage=seen.max_usage,
            broker_load=seen.throughput,
            load_ema=seen.throughput_ema,
            topics=seen.topics,
            updated_us=seen.reported_us,
            message_rate=None if figures.message_rate is None else seen.rate,
        )
