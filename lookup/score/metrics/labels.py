"""How often clients meet a broker with their own label, by lookup property."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

from lookup.hooks import Better
from lookup.model.batch import Batch
from lookup.score.metrics.totals import LookupQuotient, of_pairs, per_bundle

__all__ = ["MatchRatio"]


@dataclass(frozen=True)
class MatchRatio(LookupQuotient):
    """Lookups served by a broker with the client's label / answered lookups whose client sent the property."""

    name: ClassVar[str] = "match_ratio"
    better: ClassVar[Better] = "up"
    #: they depend on the log
    every_key: ClassVar[tuple[str, ...] | None] = None

    def keys(self, batch: Batch) -> Sequence[str | None]:
        """Return every lookup property any client sends, sorted."""
        return sorted({key for client in batch.clients for key in client.properties})

    def accumulate(self, batch: Batch, key: str | None) -> NDArray[np.float64]:
        """Return matched lookups and lookups that could match, shape (n_bundles, 2)."""
        served = batch.served
        matches, counts = _tables(batch, str(key))
        matched, counted = (served.lookups * of_pairs(served, table) for table in (matches, counts))
        return per_bundle(batch, served.bundle, matched, counted)


def _tables(batch: Batch, key: str) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Tell which pairs of broker and client match and which count, 1.0 or 0.0, shape (1 + n_brokers, n_clients).

    The first row, that of unanswered lookups, has neither.
    """
    sent = [client.properties.get(key) for client in batch.clients]
    counts = np.zeros((1 + len(batch.brokers), len(sent)))
    counts[1:] = [value is not None for value in sent]
    matches = np.zeros_like(counts)
    # two absent labels compare as equal, but that client does not count
    matches[1:] = (batch.brokers.labels(key)[:, None] == np.array(sent, dtype=object)[None, :]) & (counts[1:] > 0)
    return matches, counts
