"""Number the hash ranges of a cluster, and keep which bundles they form at each moment of a replay.

Atoms are the finest ranges of hashes that any bundle of a run is made of. A namespace's atoms lie between neighbouring
boundaries that occur anywhere in the run; a bundle is a run of atoms, and without splits the two are the same. Atoms
are numbered by namespace (sorted) and hash, so a bundle is a slice of numbers.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property, lru_cache
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

from lookup.model.bundles import BundleRange, NamespacePolicies

__all__ = ["AtomRule", "Atoms", "BundleMap"]


@dataclass(frozen=True)
class AtomRule:
    """The rule that gives any namespace of one cluster its atoms: first boundaries and all points of later splits."""

    policies: NamespacePolicies
    #: hashes at which a bundle of a namespace is split, by namespace
    cuts: Mapping[str, tuple[int, ...]]

    def boundaries(self, namespace: str) -> tuple[int, ...]:
        """Return the boundaries of a namespace's atoms, ascending."""
        return tuple(sorted({*self.policies.boundaries_of(namespace), *self.cuts.get(namespace, ())}))

    def place(self, hashed: int, boundaries: Sequence[int]) -> int:
        """Return the number of a topic's atom within its namespace, by the topic's hash."""
        # The last range is closed: the greatest hash belongs to it, as in Pulsar's NamespaceBundleFactory.
        return min(bisect_right(boundaries, hashed) - 1, len(boundaries) - 2)


@dataclass(frozen=True)
class Atoms:
    """The atoms of the namespaces that occur in one cluster."""

    rule: AtomRule
    #: sorted
    namespaces: tuple[str, ...]

    @classmethod
    def of(cls, rule: AtomRule, namespaces: Iterable[str]) -> Atoms:
        """Number the atoms of some namespaces."""
        return cls(rule, tuple(sorted(set(namespaces))))

    @cached_property
    def boundaries(self) -> tuple[tuple[int, ...], ...]:
        """Return each namespace's atom boundaries."""
        return tuple(self.rule.boundaries(namespace) for namespace in self.namespaces)

    @cached_property
    def base(self) -> Mapping[str, int]:
        """Return the number of each namespace's first atom."""
        first, base = 0, {}
        for namespace, boundaries in zip(self.namespaces, self.boundaries, strict=True):
            base[namespace] = first
            first += len(boundaries) - 1
        return base

    @cached_property
    def count(self) -> int:
        """Return how many atoms there are."""
        return sum(len(boundaries) - 1 for boundaries in self.boundaries)

    @cached_property
    def bundles(self) -> tuple[tuple[str, slice], ...]:
        """Return the bundles the run begins with, in order of their atoms: name and atoms."""
        return tuple(
            (f"{namespace}/{text}", self._slice(namespace, low, high))
            for namespace in self.namespaces
            for low, high, text in _ranges(self.rule.policies.boundaries_of(namespace))
        )

    def slice_of(self, bundle: str) -> slice | None:
        """Return the atoms of a bundle by its name, None if it is not made of whole atoms of this cluster."""
        namespace, _, bounds = bundle.rpartition("/")
        if namespace not in self.base:
            return None
        ends = BundleRange.parse(bounds)
        starts = self._starts[namespace]
        return self._slice(namespace, ends.lower, ends.upper) if {ends.lower, ends.upper} <= starts.keys() else None

    @cached_property
    def _starts(self) -> Mapping[str, Mapping[int, int]]:
        """Return the number of the atom that begins at each boundary, by namespace."""
        return {
            namespace: {bound: self.base[namespace] + number for number, bound in enumerate(boundaries)}
            for namespace, boundaries in zip(self.namespaces, self.boundaries, strict=True)
        }

    def _slice(self, namespace: str, low: int, high: int) -> slice:
        starts = self._starts[namespace]
        return slice(starts[low], starts[high])


@lru_cache(maxsize=64)
def _ranges(boundaries: tuple[int, ...]) -> tuple[tuple[int, int, str], ...]:
    """Return the ends and the text of each range; cached, since namespaces mostly share their boundaries."""
    return tuple((low, high, str(BundleRange(low, high))) for low, high in pairwise(boundaries))


class BundleMap:
    """The current bundles of one cluster and the atoms of each; splits change them.

    Args:
        splits: (parent, children) that took place before the run began; what they leave is the run's first bundles.
    """

    def __init__(self, atoms: Atoms, splits: Iterable[tuple[str, Sequence[str]]] = ()) -> None:
        self._atoms = atoms
        self._slices = dict(atoms.bundles)
        #: name of the bundle of each atom, shape (n_atoms,)
        self.names = np.empty(atoms.count, dtype=object)
        for bundle, span in self._slices.items():
            self.names[span] = bundle
        self._index: tuple[NDArray[np.int64], NDArray[np.object_]] | None = None
        for parent, children in splits:
            self.split(parent, children)

    def __contains__(self, bundle: str) -> bool:
        return bundle in self._slices

    def atoms_of(self, bundle: str) -> slice:
        """Return the atoms of a bundle that exists."""
        return self._slices[bundle]

    def split(self, parent: str, children: Sequence[str]) -> bool:
        """Replace a bundle by its children; return whether that changed anything."""
        if parent not in self._slices or len(children) < 2:
            return False
        # The children's names are parsed before anything changes: one that is none raises and leaves the map whole.
        spans = [(child, self._atoms.slice_of(child)) for child in children]
        del self._slices[parent]
        for child, span in spans:
            if span is not None:
                self._slices[child] = span
                self.names[span] = child
        self._index = None
        return True

    def ordered(self) -> tuple[NDArray[np.int64], NDArray[np.object_]]:
        """Return the first atom of every bundle, ascending, and the bundles' names, both of shape (n_bundles,)."""
        # Kept between splits: every grid instant adds up loads by these starts.
        if self._index is None:
            bundles = sorted((span.start, bundle) for bundle, span in self._slices.items())
            starts = np.array([start for start, _ in bundles], dtype=np.int64)
            self._index = starts, np.array([bundle for _, bundle in bundles], dtype=object)
        return self._index
