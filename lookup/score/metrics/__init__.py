"""The built-in metrics, registered through the same hook as those of third parties.

Each answers sums per bundle or per cell that add over batches; definitions and formulas are in `docs/scoring.md`.
`every_key` lists the keys a metric can ever have; without it, or if it is None, they depend on the log.
"""

from __future__ import annotations

from lookup.hooks import Metric, hookimpl
from lookup.score.metrics.answers import AgreementRatio, AnsweredRatio, IsolationRatio, MatchRatio
from lookup.score.metrics.balance import ImbalanceCv, ImbalanceMaxMean, LoadVariation, OverloadRatio
from lookup.score.metrics.movement import (
    Assignments,
    CycleMoves,
    MovedWeight,
    Moves,
    NecessaryMoves,
    RedundantMoves,
    Unloads,
)
from lookup.score.metrics.network import NetworkCost, NetworkCoveredRatio, NetworkMsMean, NetworkMsP95

__all__ = [
    "AgreementRatio", "AnsweredRatio", "Assignments", "CycleMoves", "ImbalanceCv", "ImbalanceMaxMean", "IsolationRatio",
    "LoadVariation", "MatchRatio", "MovedWeight", "Moves", "NecessaryMoves", "NetworkCost", "NetworkCoveredRatio",
    "NetworkMsMean", "NetworkMsP95", "OverloadRatio", "RedundantMoves", "Unloads", "lookup_register_metrics",
]  # fmt: skip


@hookimpl
def lookup_register_metrics() -> tuple[type[Metric], ...]:
    """Return the built-in metrics in the order in which reports show them."""
    return (
        AnsweredRatio,
        IsolationRatio,
        MatchRatio,
        NetworkMsMean,
        NetworkMsP95,
        NetworkCoveredRatio,
        NetworkCost,
        ImbalanceMaxMean,
        ImbalanceCv,
        OverloadRatio,
        LoadVariation,
        Assignments,
        Moves,
        Unloads,
        RedundantMoves,
        CycleMoves,
        NecessaryMoves,
        MovedWeight,
        AgreementRatio,
    )
