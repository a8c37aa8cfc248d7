"""All bundles of a namespace as Pulsar finds and splits them: the model that the vectors' areas of bundles ask."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import Literal

from lookup.errors import ArgumentError, NotFoundError
from lookup.model.bundles import HASH_END, BundleRange, NamespaceBundle, bundle_index, bundle_ranges, topic_hash
from lookup.model.names import NamespaceName, TopicName
from lookup.model.quoting import shown

__all__ = ["NamespaceBundles"]


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

    def __post_init__(self) -> None:
        if len(self.boundaries) < 2 or any(low >= high for low, high in pairwise(self.boundaries)):
            raise ArgumentError(f"boundaries of {self.namespace} are not at least two ascending hashes")

    @property
    def ranges(self) -> tuple[BundleRange, ...]:
        """The ranges of the bundles, in order."""
        return bundle_ranges(self.boundaries)

    def find(self, topic: str) -> NamespaceBundle:
        """Return the bundle of a topic, by its complete name.

        Raises:
            ArgumentError: if the topic belongs to another namespace.
            NotFoundError: if no bundle holds its hash.
        """
        name = TopicName.parse(topic)
        # A namespace of version 1 has its cluster in the middle, which the name of a topic counts to the local part.
        if not f"{name.namespace}/{name.local}".startswith(f"{self.namespace}/"):
            raise ArgumentError(f"topic {shown(topic)} belongs to another namespace than {self.namespace}")
        return self.find_hash(topic_hash(topic))

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
        return NamespaceBundle(self.namespace, self.ranges[bundle_index(hashed, self.boundaries)])

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
        return self.ranges[index]
