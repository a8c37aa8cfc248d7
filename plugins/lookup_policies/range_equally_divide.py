"""The split algorithm `range-equally-divide`: a bundle is cut in the middle of its hashes."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

from lookup.model import NamespaceBundle

__all__ = ["RangeEquallyDivide"]


@dataclass(frozen=True)
class RangeEquallyDivide:
    """Cut at lower + (upper - lower) // 2, whatever topics there are; Pulsar's default.

    The halves are of hashes, not of load: all topics may end up in one child.

    Match -> Result -> Reason:
        * any bundle -> one boundary; for a bundle of a single hash it is its lower end, which the engine refuses

    Source: RangeEquallyDivideBundleSplitAlgorithm, `range_equally_divide` in
    `defaultNamespaceBundleSplitAlgorithm`.
    """

    name: ClassVar[str] = "range-equally-divide"
    reads: ClassVar[frozenset[str]] = frozenset()

    def boundaries(
        self, bundle: NamespaceBundle, topics: NDArray[np.void], positions: Sequence[int] | None
    ) -> Sequence[int]:
        """Return the middle of the range."""
        lower, upper = bundle.range.lower, bundle.range.upper
        return (lower + (upper - lower) // 2,)
