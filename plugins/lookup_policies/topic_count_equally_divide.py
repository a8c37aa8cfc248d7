"""The split algorithm `topic-count-equally-divide`: half of the topics on either side."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar, Literal

import numpy as np
from numpy.typing import NDArray

from lookup.model import NamespaceBundle

__all__ = ["TopicCountEquallyDivide"]


@dataclass(frozen=True)
class TopicCountEquallyDivide:
    """Cut half way between the two middle topics of the bundle, by hash.

    Match -> Result -> Reason:
        * at most one topic -> no boundary -> there is nothing to divide
        * otherwise -> a + (b - a) // 2 of the hashes a and b of the two topics in the middle
        * with `quirks = "intended"`, a boundary at the lower end of the bundle -> none

    Quirk: where both middle topics have the hash at the lower end of the bundle, the boundary is that end, and the
    split fails when it is carried out (NamespaceBundleFactory: positions lie strictly inside). Effect: the
    attempt counts as made and nothing changes. "intended" leaves the bundle whole.

    Source: TopicCountEquallyDivideBundleSplitAlgorithm,
    `topic_count_equally_divide` in `defaultNamespaceBundleSplitAlgorithm`.
    """

    name: ClassVar[str] = "topic-count-equally-divide"
    reads: ClassVar[frozenset[str]] = frozenset()

    #: whether a boundary that cannot be one is returned as Pulsar does
    quirks: Literal["upstream", "intended"] = "upstream"

    def boundaries(
        self, bundle: NamespaceBundle, topics: NDArray[np.void], positions: Sequence[int] | None
    ) -> Sequence[int]:
        """Return the middle between the two middle topics."""
        hashes: list[int] = np.sort(topics["hash"]).tolist()
        if len(hashes) <= 1:
            return ()
        before, after = hashes[len(hashes) // 2 - 1], hashes[len(hashes) // 2]
        boundary = before + (after - before) // 2
        is_kept = self.quirks == "upstream" or bundle.range.lower < boundary < bundle.range.upper
        return (boundary,) if is_kept else ()
