"""Number the hash ranges of a cluster, and keep which bundles they form at each moment of a replay.

An atom is a finest range of hashes, and every bundle of a run is made of whole atoms. A namespace's atoms lie between
neighbouring boundaries that occur anywhere in the run, under any policy. A bundle is a run of atoms. Bundles and atoms
are the same if there are no splits and all policies begin with the same bundles. Atoms are numbered by namespace
(sorted) and hash, so a bundle is a slice of numbers.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property, lru_cache
from itertools import chain, groupby, pairwise

import numpy as np
from numpy.typing import NDArray

from lookup.model.bundles import BundleRange, NamespacePolicies

__all__ = ["AtomRule", "Atoms", "BundleMap"]


@dataclass(frozen=True)
class AtomRule:
    """The rule for the atoms of any namespace of one cluster, by first boundaries and all later split points."""

    policies: NamespacePolicies
    #: hashes at which a bundle of a namespace is split, by namespace
    cuts: Mapping[str, tuple[int, ...]]
    #: numbers of bundles that policies of the run begin with in place of the default
    counts: tuple[int, ...] = ()

    def boundaries(self, namespace: str) -> tuple[int, ...]:
        """Compute the boundaries of a namespace's atoms, ascending."""
        firsts = (self.first_boundaries(namespace, count) for count in (None, *self.counts))
        return tuple(sorted({*chain.from_iterable(firsts), *self.cuts.get(namespace, ())}))

    def first_boundaries(self, namespace: str, count: int | None = None) -> tuple[int, ...]:
        """Compute the boundaries with which a namespace begins, ascending.

        Args:
            count: bundles of a namespace without boundaries of its own. None is the default number.
        """
        policies = self.policies if count is None else replace(self.policies, default_bundles=count)
        return policies.boundaries_of(namespace)

    def place(self, hashed: int, boundaries: Sequence[int]) -> int:
        """Find the number of a topic's atom within its namespace by the topic's hash."""
        # The last range is closed, since the greatest hash belongs to it, as in Pulsar's NamespaceBundleFactory.
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
        """Each namespace's atom boundaries."""
        return tuple(self.rule.boundaries(namespace) for namespace in self.namespaces)

    @cached_property
    def base(self) -> Mapping[str, int]:
        """The number of each namespace's first atom."""
        first, base = 0, {}
        for namespace, boundaries in zip(self.namespaces, self.boundaries, strict=True):
            base[namespace] = first
            first += len(boundaries) - 1
        return base

    @cached_property
    def count(self) -> int:
        """The number of atoms."""
        return sum(len(boundaries) - 1 for boundaries in self.boundaries)

    @cached_property
    def bundles(self) -> tuple[tuple[str, slice], ...]:
        """The name and atoms of each bundle at the beginning of the log, in order of their atoms."""
        return self.first_bundles()

    def first_bundles(self, count: int | None = None) -> tuple[tuple[str, slice], ...]:
        """List the name and atoms of each bundle with which a policy begins, in order of their atoms.

        Args:
            count: bundles of a namespace without boundaries of its own. None is the default number.
        """
        return tuple(
            (f"{namespace}/{text}", self._slice(namespace, low, high))
            for namespace in self.namespaces
            for low, high, text in _ranges(self.rule.first_boundaries(namespace, count))
        )

    def names_of(self, starts: NDArray[np.int64]) -> tuple[str, ...]:
        """Name ranges by their first atoms, ascending. Each range extends to the next one of its namespace.

        Args:
            starts: shape (n_ranges,), the first atom of every namespace among them.
        """
        hashes = [(number, low) for number, ends in enumerate(self.boundaries) for low in ends[:-1]]
        by_namespace = groupby((hashes[start] for start in starts.tolist()), lambda first: first[0])
        return tuple(
            f"{self.namespaces[number]}/{BundleRange(low, high)}"
            for number, firsts in by_namespace
            for low, high in pairwise([*(low for _, low in firsts), self.boundaries[number][-1]])
        )

    def slice_of(self, bundle: str) -> slice | None:
        """Find the atoms of a bundle by its name, None if it does not consist of whole atoms of this cluster."""
        namespace, _, bounds = bundle.rpartition("/")
        if namespace not in self.base:
            return None
        ends = BundleRange.parse(bounds)
        starts = self._starts[namespace]
        return self._slice(namespace, ends.lower, ends.upper) if {ends.lower, ends.upper} <= starts.keys() else None

    @cached_property
    def _starts(self) -> Mapping[str, Mapping[int, int]]:
        return {
            namespace: {bound: self.base[namespace] + number for number, bound in enumerate(boundaries)}
            for namespace, boundaries in zip(self.namespaces, self.boundaries, strict=True)
        }

    def _slice(self, namespace: str, low: int, high: int) -> slice:
        starts = self._starts[namespace]
        return slice(starts[low], starts[high])


@lru_cache(maxsize=64)
def _ranges(boundaries: tuple[int, ...]) -> tuple[tuple[int, int, str], ...]:
    """List the ends and the text of each range. It is cached, since most namespaces share boundaries."""
    return tuple((low, high, str(BundleRange(low, high))) for low, high in pairwise(boundaries))


class BundleMap:
    """The current bundles of one cluster and the atoms of each. Splits change them.

    Args:
        splits: (parent, children) before the run began. The bundles after them are the run's first.
        count: first bundles of a namespace without boundaries of its own. None is the default number.
    """

    def __init__(
        self, atoms: Atoms, splits: Iterable[tuple[str, Sequence[str]]] = (), *, count: int | None = None
    ) -> None:
        self._atoms = atoms
        self._slices = dict(atoms.bundles if count is None else atoms.first_bundles(count))
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
        """Look up the atoms of a bundle that exists."""
        return self._slices[bundle]

    def split(self, parent: str, children: Sequence[str]) -> bool:
        """Replace a bundle by its children, and return whether that changed anything."""
        if parent not in self._slices or len(children) < 2:
            return False
        # The children's names are parsed before anything changes, so a wrong name raises and leaves the map unchanged.
        spans = [(child, self._atoms.slice_of(child)) for child in children]
        del self._slices[parent]
        for child, span in spans:
            if span is not None:
                self._slices[child] = span
                self.names[span] = child
        self._index = None
        return True

    def sort_bundles(self) -> tuple[NDArray[np.int64], NDArray[np.object_]]:
        """List the first atom of every bundle, ascending, and the bundles' names, both of shape (n_bundles,)."""
        # Kept between splits, since loads are added up by these starts at every grid instant.
        if self._index is None:
            first = (span.start for span in self._slices.values())
            starts = np.sort(np.fromiter(first, np.int64, len(self._slices)))
            self._index = starts, self.names[starts]
        return self._index
