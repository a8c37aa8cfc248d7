"""Bundles, the ranges of the 32-bit hash circle by which a namespace's topics are owned, and operators' settings.

This module has hashing, boundaries, names and the policies of namespaces (isolation, anti-affinity groups,
failure domains). Owners of bundles are elsewhere.

Source: `docs/pulsar/load-managers.md`.
"""

from __future__ import annotations

import re
import zlib
from bisect import bisect_right
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from itertools import pairwise

from lookup.errors import InvalidNameError
from lookup.model.names import NamespaceName, pinned_broker
from lookup.model.quoting import shown

__all__ = [
    "FULL_RANGE", "HASH_END", "BundleRange", "IsolationPolicy", "NamespaceBundle", "NamespacePolicies", "bundle_index",
    "bundle_name_parts", "bundle_of", "bundle_ranges", "equal_boundaries", "topic_hash",
]  # fmt: skip

#: Last value of the hash circle and end of the last bundle of a namespace.
HASH_END = 0xFFFFFFFF
#: The boundaries of a namespace with one bundle.
FULL_RANGE = (0, HASH_END)


@dataclass(frozen=True, slots=True, order=True)
class BundleRange:
    """Hashes in [lower, upper), or [lower, upper] if upper is the end of the circle."""

    lower: int
    upper: int

    @classmethod
    def parse(cls, text: str) -> BundleRange:
        """Read `0x00000000_0x40000000`, in either case."""
        lower, _, upper = text.partition("_")
        try:
            ends = int(lower, 16), int(upper, 16)
        except ValueError:
            raise InvalidNameError(f"bundle range {shown(text)} is not of the form 0x00000000_0x40000000") from None
        if not 0 <= ends[0] < ends[1] <= HASH_END:
            raise InvalidNameError(f"bundle range {shown(text)} does not ascend within 0x00000000_0xffffffff")
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
        """Read a bundle's name, in which everything before the last slash is the namespace.

        Raises:
            InvalidNameError: if there is no slash, or the range or the namespace is malformed.
        """
        namespace, bounds = bundle_name_parts(text)
        return cls(NamespaceName.parse(namespace), BundleRange.parse(bounds))

    def __str__(self) -> str:
        return f"{self.namespace}/{self.range}"


def bundle_name_parts(text: str) -> tuple[str, str]:
    """Split a bundle's name at its last slash into namespace and range, both as written."""
    namespace, slash, bounds = text.rpartition("/")
    if not slash:
        raise InvalidNameError(f"bundle {shown(text)} is not of the form tenant/namespace/0x00000000_0x40000000")
    return namespace, bounds


def topic_hash(topic: str) -> int:
    """Hash a complete topic name: CRC-32 (IEEE, unsigned) of its UTF-8 bytes, equal to Spark's `crc32`."""
    return zlib.crc32(topic.encode())


def equal_boundaries(count: int) -> tuple[int, ...]:
    """Divide the circle as Pulsar does for a new namespace, in steps of 2**32 // count, the last up to the end."""
    # 2**32 hashes and not 2**32 - 1, with which boundaries of powers of two would be off by one.
    step = (HASH_END + 1) // count
    return (*(index * step for index in range(count)), HASH_END)


def bundle_index(hashed: int, boundaries: Sequence[int]) -> int:
    """Find the position of the bundle that holds a hash.

    Pulsar fails for the one hash that equals the end of the circle, since it finds the last boundary. Here that
    hash belongs to the last bundle, whose range is closed.
    """
    # Ranges include their lower end, hence `bisect_right`.
    return min(bisect_right(boundaries, hashed) - 1, len(boundaries) - 2)


def bundle_ranges(boundaries: Sequence[int]) -> tuple[BundleRange, ...]:
    """List the ranges between neighbouring boundaries."""
    return tuple(BundleRange(low, high) for low, high in pairwise(boundaries))


def bundle_of(topic: str, boundaries: Sequence[int]) -> BundleRange:
    """Find the range that holds a topic, given its namespace's boundaries."""
    index = bundle_index(topic_hash(topic), boundaries)
    return BundleRange(boundaries[index], boundaries[index + 1])


@dataclass(frozen=True, slots=True)
class IsolationPolicy:
    """A namespace's primary hosts and, if too few are left, secondary ones, by regular expressions for whole names."""

    primary: tuple[str, ...]
    secondary: tuple[str, ...] = ()
    #: below this many primaries the secondaries join
    min_limit: int = 1

    def names(self, host: str) -> bool:
        """Check whether the policy contains a host as primary or secondary."""
        return any(re.fullmatch(pattern, host) for pattern in (*self.primary, *self.secondary))


@dataclass(frozen=True)
class NamespacePolicies:
    """Settings of namespaces. A namespace without an entry has the defaults."""

    isolation: Mapping[str, tuple[IsolationPolicy, ...]] = field(default_factory=dict)
    #: group by namespace, compared without regard to case
    anti_affinity_group: Mapping[str, str] = field(default_factory=dict)
    #: domain by broker id
    failure_domains: Mapping[str, str] = field(default_factory=dict)
    #: boundaries by namespace
    boundaries: Mapping[str, tuple[int, ...]] = field(default_factory=dict)
    #: bundles of a namespace without boundaries (Pulsar: defaultNumberOfNamespaceBundles)
    default_bundles: int = 4

    def permits(self, namespace: str, host: str) -> bool | None:
        """Check whether isolation policies of a namespace permit a host, None if the namespace has no such policy."""
        policies = self.isolation.get(namespace)
        return any(policy.names(host) for policy in policies) if policies else None

    @cached_property
    def primaries(self) -> tuple[str, ...]:
        """The patterns of all hosts that are primary for some namespace, sorted."""
        policies = [policy for of_namespace in self.isolation.values() for policy in of_namespace]
        return tuple(sorted({pattern for policy in policies for pattern in policy.primary}))

    def boundaries_of(self, namespace: str) -> tuple[int, ...]:
        """Find the boundaries with which a namespace starts, ascending, first 0, last 0xffffffff.

        Heartbeat and SLA namespaces have one bundle (`pulsar/broker-0:8080/0x00000000_0xffffffff`), named by its owner.
        """
        if pinned_broker(namespace) is not None:
            return FULL_RANGE
        return self.boundaries.get(namespace) or equal_boundaries(self.default_bundles)

    def group_members(self, group: str) -> tuple[str, ...]:
        """List the namespaces of an anti-affinity group, sorted."""
        key = group.casefold()
        return tuple(sorted(name for name, own in self.anti_affinity_group.items() if own.casefold() == key))
