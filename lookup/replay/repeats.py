"""Sample the lookups of a log by time and topic, to see whether its rows are there twice."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

__all__ = ["Repeats", "keys_of"]

#: Pairs of time and topic that are kept, those with the least hashes: whoever counts them counts the same ones.
_MOST = 1000
#: Fewer pairs say nothing about a log.
_TELLING = 20

Keys = NDArray[np.uint64]


def keys_of(ts: NDArray[np.int64], topics: NDArray[Any]) -> Keys:
    """Hash each lookup's time and topic, shape (n_lookups,).

    Args:
        ts: µs since the Unix epoch.
        topics: a hash of each topic.
    """
    # Multiplications wrap around, as in SplitMix64.
    keys = ts.astype(np.uint64) * np.uint64(0x9E3779B97F4A7C15) + topics.astype(np.uint64)
    keys = (keys ^ (keys >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    return keys ^ (keys >> np.uint64(27))


class Repeats:
    """How often each sampled pair of time and topic occurs; the same however the rows are divided."""

    def __init__(self) -> None:
        self._keys: Keys = np.empty(0, np.uint64)
        self._counts: NDArray[np.int64] = np.empty(0, np.int64)

    def add(self, keys: Keys) -> None:
        """Count some lookups by their keys."""
        if len(self._keys) == _MOST:
            keys = keys[keys <= self._keys[-1]]
        if len(keys):
            self._count(keys, np.ones(len(keys), np.int64))

    def merge(self, other: Repeats) -> None:
        """Count what another has counted."""
        self._count(other._keys, other._counts)

    def _count(self, keys: Keys, counts: NDArray[np.int64]) -> None:
        found, places = np.unique(np.concatenate([self._keys, keys]), return_inverse=True)
        sums = np.bincount(places, weights=np.concatenate([self._counts, counts])).astype(np.int64)
        self._keys, self._counts = found[:_MOST], sums[:_MOST]

    @property
    def even_ratio(self) -> float:
        """Return the share of pairs that occur an even number of times: all of a log that is there twice.

        0.0 of a log with too few pairs to tell.
        """
        return float(np.mean(self._counts % 2 == 0)) if len(self._counts) >= _TELLING else 0.0
