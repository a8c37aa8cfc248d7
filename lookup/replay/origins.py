"""Sum up where the lookups of each bundle come from, as weight by client property, bundle and value.

Only a policy that declares `view.load.origins` has these sums, and nothing is added up before it reads them.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping

import numpy as np
from numpy.typing import NDArray

from lookup.engine.ledger import MICRO
from lookup.replay.days import SliceRows

__all__ = ["Origins", "Pairs", "add_pairs", "summed_pairs"]

Ints = NDArray[np.int64]
#: Keys of pairs of atom and properties, ascending, and the weight of each in micro-units, both of shape (n_pairs,).
Pairs = tuple[Ints, Ints]


def summed_pairs(rows: SliceRows, span: slice, n_codes: int) -> Pairs:
    """Sum the weight of each pair in some rows. `n_codes` is the number of sets of properties."""
    keys = rows.column("atom", span).astype(np.int64) * n_codes + rows.column("properties", span)
    return _sum_by_key(keys, rows.column("weight", span))


def add_pairs(sums: list[Pairs]) -> Pairs:
    """Add weights up by their pairs."""
    if not sums:
        return np.empty(0, np.int64), np.empty(0, np.int64)
    keys, weights = zip(*sums, strict=True)
    return _sum_by_key(np.concatenate(keys), np.concatenate(weights))


def _sum_by_key(keys: Ints, weights: Ints) -> Pairs:
    unique, places = np.unique(keys, return_inverse=True)
    return unique, np.bincount(places, weights, minlength=len(unique)).astype(np.int64)


class Origins(Mapping[str, Mapping[str, Mapping[str, float]]]):
    """Weight per second by client property, bundle and value. Each property is summed when it is read.

    Args:
        pairs: returns the sums of some cells, and is called before the next cell closes.
        bundles: the bundles of the instant from `BundleMap.sort_bundles`, which later splits do not change.
        seconds: length of the cells.
    """

    def __init__(
        self,
        pairs: Callable[[], list[Pairs]],
        properties: tuple[Mapping[str, str], ...],
        bundles: tuple[Ints, NDArray[np.object_]],
        seconds: float,
    ) -> None:
        self._pairs, self._properties, self._seconds = pairs, properties, seconds
        self._starts, self._names = bundles
        self._known: dict[str, Mapping[str, Mapping[str, float]]] = {}

    def __getitem__(self, key: str) -> Mapping[str, Mapping[str, float]]:
        if key not in self._known:
            self._known[key] = self._sum_by_bundle(key)
        if not self._known[key]:
            raise KeyError(key)
        return self._known[key]

    def __iter__(self) -> Iterator[str]:
        return (key for key in sorted({key for sent in self._properties for key in sent}) if key in self)

    def __len__(self) -> int:
        return len(list(iter(self)))

    def _sum_by_bundle(self, key: str) -> Mapping[str, Mapping[str, float]]:
        values = sorted({sent[key] for sent in self._properties if key in sent})
        numbers = {value: number for number, value in enumerate(values)}
        of_code = np.array([numbers[sent[key]] if key in sent else -1 for sent in self._properties], np.int64)
        keys, micro = add_pairs(self._pairs())
        atoms, codes = np.divmod(keys, len(self._properties))
        is_known = (of_code[codes] >= 0) & (micro > 0)
        places = np.searchsorted(self._starts, atoms[is_known], side="right") - 1
        pairs, sums = _sum_by_key(places * len(values) + of_code[codes[is_known]], micro[is_known])
        origins: dict[str, dict[str, float]] = {}
        bundles, of_values = self._names[pairs // len(values)].tolist(), (pairs % len(values)).tolist()
        loads = sums / (MICRO * self._seconds)
        for bundle, number, load in zip(bundles, of_values, loads.tolist(), strict=True):
            origins.setdefault(bundle, {})[values[number]] = load
        return origins
