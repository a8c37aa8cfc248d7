"""Bundles: ranges of the 32-bit hash circle by which a namespace's topics are owned, and what operators set for them.

Hashing, boundaries, names and the policies of namespaces (isolation, anti-affinity groups, failure domains) live here;
who owns a bundle does not.

Source: `docs/pulsar/load-managers.md`.
"""

from __future__ import annotations

import zlib
from bisect import bisect_right
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import pairwise
from typing import Literal

from lookup.errors import ArgumentError, InvalidNameError, NotFoundError
from lookup.model.names import NamespaceName, TopicName, pinned_broker
from lookup.model.quoting import shown
from lookup.model.recent import Recent

__all__ = [
    "FULL_RANGE", "HASH_END", "BundleRange", "IsolationPolicy", "NamespaceBundle", "NamespaceBundles",
    "NamespacePolicies", "bundle_index", "bundle_name_parts", "bundle_of", "bundle_ranges", "equal_boundaries",
    "topic_hash",
]  # fmt: skip

#: Last value of the hash circle and end of the last bundle of a namespace.
HASH_END = 0xFFFFFFFF
#: The boundaries of a namespace with one bundle.
FULL_RANGE = (0, HASH_END)
#: Of how many topics `NamespaceBundles` keeps the bundle: a few hundred kilobytes per namespace.
_MOST_TOPICS = 1 << 12


@dataclass(frozen=True, slots=True, order=True)
class BundleRange:
    """Hashes in [lower, upper), or [lower, upper] if upper is the end of the circle."""

    lower: int
    upper: int

    @classmethod
    def parse(cls, text: str) -> BundleRange:
        """Read `0x00000000_0x40000000`, in either case.

        Raises:
            InvalidNameError: if it is not two hexadecimal numbers in ascending order.
        """
        lower, _, upper = text.partition("_")
        try:
            ends = int(lower, 16), int(upper, 16)
        except ValueError:
            raise InvalidNameError(f"bundle range {shown(text)} is not of the form 0x00000000_0x40000000") from None
        if not 0 <= ends[0] < ends[1] <= HASH_END:
            raise InvalidNameError(f"bundle range {shown(text)} does not ascend within 0x00000000_0xffffffff")
        return cls(*ends)

    @property
    def is_upper_closed(self) -> bool:
        """Return whether the upper end belongs to the range: it is the end of the circle."""
        return self.upper == HASH_END

    @property
    def can_split(self) -> bool:
        """Return whether there is room for a boundary between the ends."""
        return self.upper - self.lower > 1

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
            InvalidNameError: if there is no slash, or the range or the namespace is malformed.
        """
        namespace, bounds = bundle_name_parts(text)
        return cls(NamespaceName.parse(namespace), BundleRange.parse(bounds))

    def __str__(self) -> str:
        return f"{self.namespace}/{self.range}"


@dataclass(frozen=True, slots=True)
class NamespaceBundles:
    """All bundles of a namespace, found by hash or topic and split as Pulsar's `NamespaceBundles` does.

    Upstream accident: a hash that equals the end of the circle is found at the last boundary, behind which there is no
    bundle, so the lookup of such a topic fails (one topic name in 2**32). `quirks="intended"` gives that hash to the
    last bundle, as its closed range says and as `bundle_index` does everywhere else in the framework.

    Source: `NamespaceBundles.getBundle`, `NamespaceBundleFactory.splitBundles`; `docs/pulsar/load-managers.md`.
    """

    namespace: NamespaceName
    #: ascending, one more than there are bundles
    boundaries: tuple[int, ...]
    quirks: Literal["upstream", "intended"] = "upstream"
    #: bundles of the topics that were found; boundaries never change, so that none is ever out of date
    _found: Recent[str, NamespaceBundle] = field(
        default_factory=lambda: Recent(_MOST_TOPICS), init=False, repr=False, compare=False
    )

    def __post_init__(self) -> None:
        if len(self.boundaries) < 2 or any(low >= high for low, high in pairwise(self.boundaries)):
            raise ArgumentError(f"boundaries of {self.namespace} are not at least two ascending hashes")

    @property
    def ranges(self) -> tuple[BundleRange, ...]:
        """The ranges of the bundles, in order."""
        return bundle_ranges(self.boundaries)

    def find(self, topic: str) -> NamespaceBundle:
        """Return the bundle of a topic, by its complete name; kept for the topics of which it was asked lately.

        Raises:
            ArgumentError: if the topic belongs to another namespace.
            NotFoundError: if no bundle holds its hash.
        """
        known = self._found.get(topic)
        if known is not None:
            return known
        name = TopicName.parse(topic)
        # A namespace of version 1 has its cluster in the middle, which the name of a topic counts to the local part.
        if not f"{name.namespace}/{name.local}".startswith(f"{self.namespace}/"):
            raise ArgumentError(f"topic {shown(topic)} belongs to another namespace than {self.namespace}")
        found = self.find_hash(topic_hash(topic))
        self._found.put(topic, found)
        return found

    def find_hash(self, hashed: int) -> NamespaceBundle:
        """Return the bundle that holds a hash.

        Raises:
            NotFoundError: if the hash lies below the first boundary or above the last, or equals the last and
                `quirks` is upstream.
        """
        first, last = self.boundaries[0], self.boundaries[-1]
        fails_at_end = self.quirks == "upstream" or last != HASH_END
        if not first <= hashed <= last or (hashed == last and fails_at_end):
            raise NotFoundError(f"hash 0x{hashed:08x} is in no bundle of {self.namespace}")
        return NamespaceBundle(self.namespace, _range_at(bundle_index(hashed, self.boundaries), self.boundaries))

    def split(self, index: int, count: int = 2) -> NamespaceBundles:
        """Divide one bundle into `count` of equal width; the last takes the remainder.

        Raises:
            NotFoundError: if there is no bundle of that index.
            ArgumentError: if `count` is below 2 or the bundle too narrow for it.
        """
        whole = self._range(index)
        # Pulsar divides integers, so the last child may be wider by up to `count` - 1 hashes.
        width = (whole.upper - whole.lower) // count if count > 1 else 0
        if width < 1:
            raise ArgumentError(f"bundle {self.namespace}/{whole} cannot be split into {count}")
        return self.split_at(index, [whole.lower + width * child for child in range(1, count)])

    def split_at(self, index: int, positions: Iterable[int]) -> NamespaceBundles:
        """Divide one bundle at positions, in any order.

        Raises:
            NotFoundError: if there is no bundle of that index.
            ArgumentError: if there is no position, or one does not lie strictly between the bundle's ends.
        """
        whole, cuts = self._range(index), sorted(set(positions))
        if not cuts or not whole.lower < cuts[0] <= cuts[-1] < whole.upper:
            raise ArgumentError(f"bundle {self.namespace}/{whole} can only be split between its ends")
        return replace(self, boundaries=(*self.boundaries[: index + 1], *cuts, *self.boundaries[index + 1 :]))

    def _range(self, index: int) -> BundleRange:
        if not 0 <= index < len(self.boundaries) - 1:
            raise NotFoundError(f"{self.namespace} has no bundle of index {index}")
        return _range_at(index, self.boundaries)


def bundle_name_parts(text: str) -> tuple[str, str]:
    """Take a bundle's name apart at its last slash: namespace and range, both as they are written.

    Raises:
        InvalidNameError: if there is no slash.
    """
    namespace, slash, bounds = text.rpartition("/")
    if not slash:
        raise InvalidNameError(f"bundle {shown(text)} is not of the form tenant/namespace/0x00000000_0x40000000")
    return namespace, bounds


def topic_hash(topic: str) -> int:
    """Hash a complete topic name: CRC-32 (IEEE, unsigned) of its UTF-8 bytes, equal to Spark's `crc32`."""
    return zlib.crc32(topic.encode())


def equal_boundaries(count: int) -> tuple[int, ...]:
    """Divide the circle as Pulsar does for a new namespace: steps of 2**32 // count, the last bundle to the end."""
    # 2**32 and not 2**32 - 1 hashes: with the latter, boundaries of powers of two would be off by one.
    step = (HASH_END + 1) // count
    return (*(index * step for index in range(count)), HASH_END)


def bundle_index(hashed: int, boundaries: Sequence[int]) -> int:
    """Return the place of the bundle that holds a hash.

    Pulsar fails for the one hash that equals the end of the circle (it finds the last boundary); here that hash belongs
    to the last bundle, as the closed range of that bundle says.
    """
    # Ranges include their lower end, hence `bisect_right`.
    return min(bisect_right(boundaries, hashed) - 1, len(boundaries) - 2)


def bundle_ranges(boundaries: Sequence[int]) -> tuple[BundleRange, ...]:
    """Return the ranges between neighbouring boundaries."""
    return tuple(BundleRange(low, high) for low, high in pairwise(boundaries))


def bundle_of(topic: str, boundaries: Sequence[int]) -> BundleRange:
    """Return the range that holds a topic, given its namespace's boundaries."""
    return _range_at(bundle_index(topic_hash(topic), boundaries), boundaries)


def _range_at(index: int, boundaries: Sequence[int]) -> BundleRange:
    return BundleRange(boundaries[index], boundaries[index + 1])


@dataclass(frozen=True, slots=True)
class IsolationPolicy:
    """The hosts that a namespace may use: primary ones, and secondary ones if too few primaries are left.

    Both are regular expressions that must match a whole host name.
    """

    primary: tuple[str, ...]
    secondary: tuple[str, ...] = ()
    #: below this many primaries the secondaries join
    min_limit: int = 1


@dataclass(frozen=True)
class NamespacePolicies:
    """Settings of namespaces; a namespace that is not named has the defaults."""

    isolation: Mapping[str, tuple[IsolationPolicy, ...]] = field(default_factory=dict)
    #: group by namespace; groups compare without regard to case
    anti_affinity_group: Mapping[str, str] = field(default_factory=dict)
    #: domain by broker id
    failure_domains: Mapping[str, str] = field(default_factory=dict)
    #: boundaries by namespace
    boundaries: Mapping[str, tuple[int, ...]] = field(default_factory=dict)
    #: bundles of a namespace without boundaries (Pulsar: defaultNumberOfNamespaceBundles)
    default_bundles: int = 4

    def boundaries_of(self, namespace: str) -> tuple[int, ...]:
        """Return the boundaries a namespace starts with, ascending, first 0, last 0xffffffff.

        The namespaces of heartbeats and SLA monitors have one bundle (`pulsar/broker-0:8080/0x00000000_0xffffffff` in
        real logs): its owner is in the name.
        """
        if pinned_broker(namespace) is not None:
            return FULL_RANGE
        return self.boundaries.get(namespace) or equal_boundaries(self.default_bundles)

    def group_members(self, group: str) -> tuple[str, ...]:
        """Return the namespaces of an anti-affinity group, sorted."""
        wanted = group.casefold()
        return tuple(sorted(name for name, own in self.anti_affinity_group.items() if own.casefold() == wanted))
