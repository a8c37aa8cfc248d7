"""The built-in metrics, registered through the same hook as metrics of third parties.

Each computes sums per bundle or per cell that add up over batches. Definitions and formulas are in `docs/scoring.md`.
`every_key` lists all possible keys of a metric. Without it, or if it is None, they depend on the log.
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
    """Register the built-in metrics in the order of reports."""
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
