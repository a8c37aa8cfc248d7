"""How often clients meet a broker with their own label, by lookup property."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

from lookup.model.batch import Batch
from lookup.score.metrics.kinds import Better, Grain, Resample
from lookup.score.metrics.totals import per_bundle, quotient

__all__ = ["MatchRatio"]


@dataclass(frozen=True)
class MatchRatio:
    """Lookups served by a broker with the client's label / answered lookups whose client sent the property."""

    name: ClassVar[str] = "match_ratio"
    unit: ClassVar[str] = "ratio"
    better: ClassVar[Better] = "up"
    grain: ClassVar[Grain] = "lookup"
    resample: ClassVar[Resample] = "bundle"

    def keys(self, batch: Batch) -> Sequence[str | None]:
        """Return every lookup property any client sends, sorted."""
        return sorted({key for client in batch.clients for key in client.properties})

    def accumulate(self, batch: Batch, key: str | None) -> NDArray[np.float64]:
        """Return matched lookups and lookups that could match, shape (n_bundles, 2)."""
        sent = _sent(batch, str(key))
        served = batch.served
        counted = np.where((served.broker >= 0) & (sent[served.client] != None), served.lookups, 0.0)  # noqa: E711  elementwise
        matched = np.where(_matches(batch, str(key))[served.broker, served.client], counted, 0.0)
        return per_bundle(batch, served.bundle, matched, counted)

    def value(self, sums: NDArray[np.float64]) -> NDArray[np.float64]:
        """Return the share of matched lookups."""
        return quotient(sums)


def _sent(batch: Batch, key: str) -> NDArray[np.object_]:
    return np.array([client.properties.get(key) for client in batch.clients], dtype=object)


def _matches(batch: Batch, key: str) -> NDArray[np.bool_]:
    """Tell for every broker and client class whether their labels are the same, shape (n_brokers + 1, n_clients).

    The last row, which number -1 picks, is that of unanswered lookups. Two absent labels compare as equal here; the
    clients without one are not counted anyway.
    """
    labels = np.array([*batch.brokers.labels(key), None], dtype=object)
    same: NDArray[np.bool_] = labels[:, None] == _sent(batch, key)[None, :]
    return same
