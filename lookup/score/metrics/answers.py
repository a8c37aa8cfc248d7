"""Metrics that count answers: how many lookups got a broker, and how many got the one the log says."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

from lookup.hooks import Better
from lookup.model.batch import Batch
from lookup.score.metrics.totals import LookupQuotient, per_bundle

__all__ = ["AgreementRatio", "AnsweredRatio"]


@dataclass(frozen=True)
class AnsweredRatio(LookupQuotient):
    """Lookups that got a broker / lookups."""

    name: ClassVar[str] = "answered_ratio"
    better: ClassVar[Better] = "up"

    def accumulate(self, batch: Batch, key: str | None) -> NDArray[np.float64]:
        """Return answered lookups and lookups, shape (n_bundles, 2)."""
        served = batch.served
        answered = np.where(served.broker >= 0, served.lookups, 0.0)
        return per_bundle(batch, served.bundle, answered, served.lookups)


@dataclass(frozen=True)
class AgreementRatio(LookupQuotient):
    """Lookups answered as logged / answered lookups with a logged broker."""

    name: ClassVar[str] = "agreement_ratio"
    better: ClassVar[Better] = "info"

    def accumulate(self, batch: Batch, key: str | None) -> NDArray[np.float64]:
        """Return lookups answered as logged and answered lookups with a logged broker, shape (n_bundles, 2)."""
        return np.stack([batch.agreed, batch.logged], axis=1)
