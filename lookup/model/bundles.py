"""Bundles: the ranges of the 32-bit hash circle by which a namespace's topics are owned.

Hashing, boundaries and names live here; who owns a bundle does not.

Source: `facts/loadmanager.md` section 10.1.
"""

from __future__ import annotations

import zlib
from bisect import bisect_right
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise

from lookup.errors import InvalidNameError
from lookup.model.names import NamespaceName

__all__ = [
    "FULL_RANGE",
    "HASH_END",
    "BundleRange",
    "NamespaceBundle",
    "bundle_index",
    "bundle_of",
    "bundle_ranges",
    "equal_boundaries",
    "topic_hash",
]

#: Last value of the hash circle and end of the last bundle of a namespace.
HASH_END = 0xFFFFFFFF
#: The boundaries of a namespace with one bundle.
FULL_RANGE = (0, HASH_END)


@dataclass(frozen=True, slots=True, order=True)
class BundleRange:
    """Hashes in [lower, upper), or [lower, upper] where upper is the end of the circle."""

    lower: int
    upper: int

    @classmethod
    def parse(cls, text: str) -> BundleRange:
        """Read `0x00000000_0x40000000`, in either case.

        Raises:
            InvalidNameError: where it is not two hexadecimal numbers in ascending order.
        """
        lower, _, upper = text.partition("_")
        try:
            ends = int(lower, 16), int(upper, 16)
        except ValueError:
            raise InvalidNameError(f"bundle range {text!r} is not of the form 0x00000000_0x40000000") from None
        if not 0 <= ends[0] < ends[1] <= HASH_END:
            raise InvalidNameError(f"bundle range {text!r} does not ascend within 0x00000000_0xffffffff")
        return cls(*ends)

    def __contains__(self, hashed: int) -> bool:
        return self.lower <= hashed < self.upper or hashed == self.upper == HASH_END

    def __str__(self) -> str:
        return f"0x{self.lower:08x}_0x{self.upper:08x}"


@dataclass(frozen=True, slots=True)
class NamespaceBundle:
    """One bundle of one namespace, printed as `tenant/namespace/0x00000000_0x40000000`."""

    namespace: NamespaceName
    range: BundleRange

    @classmethod
    def parse(cls, text: str) -> NamespaceBundle:
        """Read a bundle's name: all before the last slash is the namespace.

        Raises:
            InvalidNameError: where there is no slash, or the range or the namespace is malformed.
        """
        namespace, slash, bounds = text.rpartition("/")
        if not slash:
            raise InvalidNameError(f"bundle {text!r} is not of the form tenant/namespace/0x00000000_0x40000000")
        return cls(NamespaceName.parse(namespace), BundleRange.parse(bounds))

    def __str__(self) -> str:
        return f"{self.namespace}/{self.range}"


def topic_hash(topic: str) -> int:
    """Hash a complete topic name: CRC-32 (IEEE, unsigned) of its UTF-8 bytes, equal to Spark's `crc32`."""
    return zlib.crc32(topic.encode())


def equal_boundaries(count: int) -> tuple[int, ...]:
    """Divide the circle as Pulsar does for a new namespace: steps of 2**32 // count, the last bundle to the end."""
    step = (HASH_END + 1) // count
    return (*(index * step for index in range(count)), HASH_END)


def bundle_index(hashed: int, boundaries: Sequence[int]) -> int:
    """Return the place of the bundle that holds a hash.

    Pulsar fails for the one hash that equals the end of the circle (it finds the last boundary); here that hash belongs
    to the last bundle, as the closed range of that bundle says.
    """
    return min(bisect_right(boundaries, hashed) - 1, len(boundaries) - 2)


def bundle_ranges(boundaries: Sequence[int]) -> tuple[BundleRange, ...]:
    """Return the ranges between neighbouring boundaries."""
    return tuple(BundleRange(low, high) for low, high in pairwise(boundaries))


def bundle_of(topic: str, boundaries: Sequence[int]) -> BundleRange:
    """Return the range that holds a topic, given its namespace's boundaries."""
    index = bundle_index(topic_hash(topic), boundaries)
    return BundleRange(boundaries[index], boundaries[index + 1])
