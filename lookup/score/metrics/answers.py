"""Metrics that count answers: how many lookups got a broker, and how many got the one the log says."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

from lookup.model.batch import Batch
from lookup.score.metrics.kinds import Better, Grain, Resample
from lookup.score.metrics.totals import per_bundle, quotient

__all__ = ["AgreementRatio", "AnsweredRatio"]


@dataclass(frozen=True)
class AnsweredRatio:
    """Lookups that got a broker / lookups."""

    name: ClassVar[str] = "answered_ratio"
    unit: ClassVar[str] = "ratio"
    better: ClassVar[Better] = "up"
    grain: ClassVar[Grain] = "lookup"
    resample: ClassVar[Resample] = "bundle"
    every_key: ClassVar[tuple[str, ...]] = ()

    def keys(self, batch: Batch) -> Sequence[str | None]:
        """Return one whole."""
        return (None,)

    def accumulate(self, batch: Batch, key: str | None) -> NDArray[np.float64]:
        """Return answered lookups and lookups, shape (n_bundles, 2)."""
        served = batch.served
        answered = np.where(served.broker >= 0, served.lookups, 0.0)
        return per_bundle(batch, served.bundle, answered, served.lookups)

    def value(self, sums: NDArray[np.float64]) -> NDArray[np.float64]:
        """Return the share of answered lookups."""
        return quotient(sums)


@dataclass(frozen=True)
class AgreementRatio:
    """Lookups answered as logged / answered lookups with a logged broker."""

    name: ClassVar[str] = "agreement_ratio"
    unit: ClassVar[str] = "ratio"
    better: ClassVar[Better] = "info"
    grain: ClassVar[Grain] = "lookup"
    resample: ClassVar[Resample] = "bundle"
    every_key: ClassVar[tuple[str, ...]] = ()

    def keys(self, batch: Batch) -> Sequence[str | None]:
        """Return one whole."""
        return (None,)

    def accumulate(self, batch: Batch, key: str | None) -> NDArray[np.float64]:
        """Return lookups answered as logged and answered lookups with a logged broker, shape (n_bundles, 2)."""
        return np.stack([batch.agreed, batch.logged], axis=1)

    def value(self, sums: NDArray[np.float64]) -> NDArray[np.float64]:
        """Return the share of lookups answered as logged."""
        return quotient(sums)
