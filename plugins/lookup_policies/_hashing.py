"""Hashes that selectors place by: a salted digest of a text, and a fast way to mix digests.

No part lives here. With the salt of production, "", digests are plain BLAKE2.
"""

from __future__ import annotations

from hashlib import blake2b

import numpy as np
from numpy.typing import NDArray

__all__ = ["digest", "mixed"]

Digests = NDArray[np.uint64]


def digest(text: str, salt: str = "") -> int:
    """Return the first 64 bits of a text's hash, another for each salt.

    Args:
        salt: at most 64 bytes in UTF-8; "" makes no difference.
    """
    return int.from_bytes(blake2b(text.encode(), digest_size=8, key=salt.encode()).digest())


def mixed(digests: Digests, key: int) -> Digests:
    """Mix a 64-bit key into digests: other numbers for each key, as good as independent of one another.

    A digest of every pair would do as well and take thirty times as long.

    Source: the finalizer of SplitMix64, Steele, Lea and Flood, OOPSLA 2014.
    """
    sums = digests + np.uint64(key)
    sums = (sums ^ (sums >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    sums = (sums ^ (sums >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    sums ^= sums >> np.uint64(31)
    return sums
