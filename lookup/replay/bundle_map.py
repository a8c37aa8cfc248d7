"""Which bundles exist at a moment of a replay, and which atoms each is made of."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import numpy as np
from numpy.typing import NDArray

from lookup.replay.atoms import Atoms

__all__ = ["BundleMap"]


class BundleMap:
    """The current bundles of one cluster; splits change it.

    Args:
        splits: (parent, children) that took place before the run began; what they leave is the run's first bundles.
    """

    def __init__(self, atoms: Atoms, splits: Iterable[tuple[str, Sequence[str]]] = ()) -> None:
        self._atoms = atoms
        self._slices = dict(atoms.bundles)
        #: name of the bundle of each atom, shape (n_atoms,)
        self.names = np.empty(atoms.count, dtype=object)
        for name, place in self._slices.items():
            self.names[place] = name
        for parent, children in splits:
            self.split(parent, children)
        self._index: tuple[NDArray[np.int64], NDArray[np.object_]] | None = None

    def __contains__(self, bundle: str) -> bool:
        return bundle in self._slices

    def atoms_of(self, bundle: str) -> slice:
        """Return the atoms of a bundle that exists."""
        return self._slices[bundle]

    def split(self, parent: str, children: Sequence[str]) -> bool:
        """Replace a bundle by its children; tell whether that changed anything."""
        if parent not in self._slices or len(children) < 2:
            return False
        places = [(child, self._atoms.slice_of(child)) for child in children]
        del self._slices[parent]
        for child, place in places:
            if place is not None:
                self._slices[child] = place
                self.names[place] = child
        self._index = None
        return True

    def ordered(self) -> tuple[NDArray[np.int64], NDArray[np.object_]]:
        """Return the first atom of every bundle, ascending, and the bundles' names, both of shape (n_bundles,)."""
        if self._index is None:
            found = sorted((place.start, name) for name, place in self._slices.items())
            starts = np.array([start for start, _ in found], dtype=np.int64)
            self._index = starts, np.array([name for _, name in found], dtype=object)
        return self._index
