"""The engine's dice: numbers that depend on the seed, the cluster, the bundle and how often it rolled, on nothing else.

So a draw is the same however the log is partitioned, and two policies meet the same luck.
"""

from __future__ import annotations

import hashlib

__all__ = ["roll"]

_STEPS = float(1 << 64)


def roll(seed: int, cluster: str, bundle: str, rolls: int) -> float:
    """Return a number in [0, 1).

    Args:
        rolls: how often dice were rolled for this bundle before.
    """
    digest = hashlib.blake2b(f"{seed}\x1f{cluster}\x1f{bundle}\x1f{rolls}".encode()).digest()
    # The division may round up to 1.0 for the last 2**10 values; the caller takes the last candidate then.
    return int.from_bytes(digest[:8], "big") / _STEPS
