"""The split algorithm `specified-positions-divide`: an administrator says where a bundle is cut."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar, Literal

import numpy as np
from numpy.typing import NDArray

from lookup.errors import InputError
from lookup.model import NamespaceBundle

__all__ = ["SpecifiedPositionsDivide"]


@dataclass(frozen=True)
class SpecifiedPositionsDivide:
    """Cut at those of the given positions that lie strictly inside the bundle.

    A splitter's cycle gives no positions, so under this algorithm nothing is ever split by itself.

    Match -> Result -> Reason:
        * no positions -> an error -> an administrator forgot them
        * at most one topic -> no boundary -> there is nothing to divide
        * otherwise -> the positions strictly inside, ascending; none where none is inside

    Quirk: a position given twice is returned twice, and the split fails when it is carried out, as boundaries have to
    ascend. Effect: nothing is split. "intended" returns it once.

    Source: SpecifiedPositionsBundleSplitAlgorithm, `specified_positions_divide` in
    `defaultNamespaceBundleSplitAlgorithm`.
    """

    name: ClassVar[str] = "specified-positions-divide"
    reads: ClassVar[frozenset[str]] = frozenset()

    #: whether a position given twice is a boundary twice, as in Pulsar
    quirks: Literal["upstream", "intended"] = "upstream"

    def boundaries(
        self, bundle: NamespaceBundle, topics: NDArray[np.void], positions: Sequence[int] | None
    ) -> Sequence[int]:
        """Return the positions inside the bundle, ascending.

        Raises:
            InputError: where no position is given.
        """
        if not positions:
            raise InputError(f"to split {bundle} at specified positions, at least one position has to be given")
        if len(topics) <= 1:
            return ()
        given = positions if self.quirks == "upstream" else set(positions)
        return tuple(sorted(place for place in given if bundle.range.lower < place < bundle.range.upper))
