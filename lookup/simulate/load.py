"""What topics carry in every minute of a scenario: evenly spread hashes, Zipf's law, swings and jitter.

Everything follows from the scenario and its seed, so every policy meets the same load.
"""

from __future__ import annotations

import hashlib
import math

import numpy as np
from numpy.typing import NDArray

from lookup.model.bundles import HASH_END
from lookup.simulate.scenario import Event, NamespaceLoad

__all__ = ["MIB", "TopicLoads"]

MIB = 1024 * 1024

Floats = NDArray[np.float64]
_Words = NDArray[np.uint64]


class TopicLoads:
    """The topics of one namespace.

    Args:
        seed: of which topic is large, and of jitter.
    """

    def __init__(self, spec: NamespaceLoad, seed: int) -> None:
        self.spec = spec
        #: place of each topic on the hash circle, ascending, shape (n_topics,)
        self.hashes: NDArray[np.int64] = (np.arange(spec.topics) * 2 + 1) * (HASH_END + 1) // (2 * spec.topics)
        self._seed = f"{seed}\x1f{spec.name}"
        self._factors = np.ones(spec.topics)
        self._base = _zipf(spec.topics, spec.skew, self._seed) * spec.load * MIB

    def change(self, event: Event) -> None:
        """Let an event change the load, if it is about this namespace."""
        if event.factor is not None and event.namespace in (None, self.spec.name):
            self._factors[list(event.topics) or slice(None)] = event.factor

    def at(self, minute: int) -> Floats:
        """Return bytes per second of every topic in a minute, shape (n_topics,)."""
        swing = 1.0 + self.spec.wave * math.sin(2.0 * math.pi * minute / self.spec.period)
        loads = self._base * self._factors * swing
        if self.spec.jitter:
            noise = _uniform(self.spec.topics, self._seed, minute + 1)
            loads = loads * (1.0 + self.spec.jitter * (2.0 * noise - 1.0))
        return loads


def _zipf(count: int, exponent: float, seed: str) -> Floats:
    """Return shares that add up to 1, in an order that follows from the seed."""
    shares = 1.0 / np.arange(1, count + 1) ** exponent
    ranks = np.argsort(np.argsort(_uniform(count, seed, 0), kind="stable"), kind="stable")
    ordered: Floats = (shares / shares.sum())[ranks]
    return ordered


def _uniform(count: int, seed: str, stream: int) -> Floats:
    """Return numbers in [0, 1) that follow from their place, the seed and the stream alone, shape (count,)."""
    # Streams begin anywhere on the one long sequence, so that they do not overlap.
    start = int.from_bytes(hashlib.blake2b(f"{seed}\x1f{stream}".encode(), digest_size=8).digest(), "big")
    words = np.arange(1, count + 1, dtype=np.uint64) * np.uint64(0x9E3779B97F4A7C15) + np.uint64(start)
    # Two rounds of SplitMix64's finaliser: neighbours come out unrelated.
    for _ in range(2):
        words = (words ^ (words >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
        words = (words ^ (words >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
        words = words ^ (words >> np.uint64(31))
    scaled: Floats = (words >> np.uint64(11)).astype(np.float64) / float(1 << 53)
    return scaled
