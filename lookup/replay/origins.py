"""Sum up where the lookups of each bundle come from: their weight by client property, bundle and value.

Only a policy that declares `view.load.origins` has these sums, and even then nothing is added up before it asks.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator, Mapping
from functools import partial

import numpy as np
from numpy.typing import NDArray

from lookup.engine.ledger import MICRO
from lookup.replay.atoms import BundleMap
from lookup.replay.days import SliceRows, Span, outlive
from lookup.replay.plan import ClusterPlan, RunPlan

__all__ = ["OriginWindow"]

Ints = NDArray[np.int64]
#: Keys of pairs of atom and properties, ascending, and the weight of each in micro-units; both of shape (n_pairs,).
_Pairs = tuple[Ints, Ints]


class _Cell:
    """The lookups of one cell of the grid, by pair of atom and properties."""

    def __init__(self, n_codes: int) -> None:
        self.spans: list[Span] = []
        self._n_codes = n_codes
        self._pairs: _Pairs | None = None

    def pairs(self) -> _Pairs:
        """Return the weight of each pair that occurs; no rows may come after."""
        if self._pairs is None:
            sums = [
                rows.once(("origins", low, high), partial(_summed_pairs, rows, slice(low, high), self._n_codes))
                for rows, low, high in self.spans
            ]
            self._pairs = _added(sums)
            self.spans = []
        return self._pairs


def _summed_pairs(rows: SliceRows, span: slice, n_codes: int) -> _Pairs:
    keys = rows.column("atom", span).astype(np.int64) * n_codes + rows.column("properties", span)
    return _by_key(keys, rows.column("weight", span))


def _added(sums: list[_Pairs]) -> _Pairs:
    if not sums:
        return np.empty(0, np.int64), np.empty(0, np.int64)
    keys, weights = zip(*sums, strict=True)
    return _by_key(np.concatenate(keys), np.concatenate(weights))


def _by_key(keys: Ints, weights: Ints) -> _Pairs:
    found, places = np.unique(keys, return_inverse=True)
    return found, np.bincount(places, weights, minlength=len(found)).astype(np.int64)


class OriginWindow:
    """The lookups of the last `session_s` before a grid instant, as `AtomLoads` holds them for the loads of bundles."""

    def __init__(self, cluster: ClusterPlan, run: RunPlan) -> None:
        self._properties = cluster.words.properties
        self._cells: deque[_Cell] = deque(maxlen=run.session_us // run.tick_us)
        self._open = _Cell(len(self._properties))
        self._session_s = run.session_us / MICRO

    def add(self, rows: SliceRows, low: int, high: int) -> None:
        """Add the lookups of a tick to the open cell."""
        self._open.spans.append((rows, low, high))

    def end_slice(self, rows: SliceRows) -> None:
        """Let go of a slice but for its rows of the last `session_s`."""
        outlive(rows, [cell.spans for cell in (*self._cells, self._open)])

    def close_cell(self) -> None:
        """Close the open cell at a grid instant."""
        self._cells.append(self._open)
        self._open = _Cell(len(self._properties))

    def origins(self, bundles: BundleMap) -> Mapping[str, Mapping[str, Mapping[str, float]]]:
        """Return the weight per second by client property, bundle and value; to be asked before the next cell closes.

        Args:
            bundles: as they are at the instant; later splits do not matter.
        """
        return _Origins(tuple(self._cells), self._properties, bundles.ordered(), self._session_s)


class _Origins(Mapping[str, Mapping[str, Mapping[str, float]]]):
    """The sums over some cells, by one property when it is asked for."""

    def __init__(
        self,
        cells: tuple[_Cell, ...],
        properties: tuple[Mapping[str, str], ...],
        bundles: tuple[Ints, NDArray[np.object_]],
        seconds: float,
    ) -> None:
        self._cells, self._properties, self._seconds = cells, properties, seconds
        self._starts, self._names = bundles
        self._known: dict[str, Mapping[str, Mapping[str, float]]] = {}

    def __getitem__(self, key: str) -> Mapping[str, Mapping[str, float]]:
        if key not in self._known:
            self._known[key] = self._by_bundle(key)
        if not self._known[key]:
            raise KeyError(key)
        return self._known[key]

    def __iter__(self) -> Iterator[str]:
        return (key for key in sorted({key for sent in self._properties for key in sent}) if key in self)

    def __len__(self) -> int:
        return len(list(iter(self)))

    def _by_bundle(self, key: str) -> Mapping[str, Mapping[str, float]]:
        values = sorted({sent[key] for sent in self._properties if key in sent})
        numbers = {value: number for number, value in enumerate(values)}
        of_code = np.array([numbers[sent[key]] if key in sent else -1 for sent in self._properties], np.int64)
        keys, micro = _added([cell.pairs() for cell in self._cells])
        atoms, codes = np.divmod(keys, len(self._properties))
        said = (of_code[codes] >= 0) & (micro > 0)
        places = np.searchsorted(self._starts, atoms[said], side="right") - 1
        found, sums = _by_key(places * len(values) + of_code[codes[said]], micro[said])
        origins: dict[str, dict[str, float]] = {}
        for pair, total in zip(found.tolist(), sums.tolist(), strict=True):
            place, number = divmod(pair, len(values))
            origins.setdefault(self._names[place], {})[values[number]] = total / (MICRO * self._seconds)
        return origins
