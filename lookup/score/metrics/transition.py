"""Lookups that met their bundle in flight: what clients notice of bundles that change hands.

Nothing is measured where bundles change hands at once (`evaluation.handover_s = 0`).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

from lookup.model.batch import TRANSIT_STATES, Batch
from lookup.score.metrics.totals import LookupTotal, per_bundle

__all__ = ["InTransition", "InTransitionWeight"]

FloatArray = NDArray[np.float64]


@dataclass(frozen=True)
class InTransition(LookupTotal):
    """Lookups that came while their bundle was being handed over, by its state; most of them are answered."""

    name: ClassVar[str] = "in_transition"
    unit: ClassVar[str] = "lookups"
    every_key: ClassVar[tuple[str, ...]] = TRANSIT_STATES

    def keys(self, batch: Batch) -> Sequence[str | None]:
        """Return the whole and every state, nothing where bundles change hands at once."""
        return () if batch.transitions is None else (None, *TRANSIT_STATES)

    def accumulate(self, batch: Batch, key: str | None) -> FloatArray:
        """Return lookups in transition, all or those of one state, shape (n_bundles, 1)."""
        found = batch.transitions
        if found is None:
            return np.zeros((len(batch.bundles), 1))
        kept = found.lookups if key is None else np.where(found.state == TRANSIT_STATES.index(key), found.lookups, 0.0)
        return per_bundle(batch, found.bundle, kept)


@dataclass(frozen=True)
class InTransitionWeight(LookupTotal):
    """The weight of the lookups that came while their bundle was being handed over."""

    name: ClassVar[str] = "in_transition_weight"
    unit: ClassVar[str] = "weight"

    def keys(self, batch: Batch) -> Sequence[str | None]:
        """Return one whole, nothing where bundles change hands at once."""
        return () if batch.transitions is None else (None,)

    def accumulate(self, batch: Batch, key: str | None) -> FloatArray:
        """Return the weight of lookups in transition, shape (n_bundles, 1)."""
        found = batch.transitions
        if found is None:
            return np.zeros((len(batch.bundles), 1))
        return per_bundle(batch, found.bundle, found.weight)
