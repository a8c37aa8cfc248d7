"""Decision keys of rows as small integers: what the odds of a lookup depend on, apart from the instant."""

from __future__ import annotations

import json
from collections.abc import Hashable, Sequence

import numpy as np
from numpy.typing import NDArray

from lookup.engine.policy import Policy
from lookup.model.request import LookupRequest
from lookup.replay.bundle_map import BundleMap
from lookup.replay.coding import EXTRA_FIELDS
from lookup.replay.ordering import DayRows
from lookup.replay.plan import ClusterPlan

__all__ = ["KeyCoder", "key_text"]

Ints = NDArray[np.int64]
#: Above this many combinations of codes, keys are numbered as they occur.
_SMALL = 1 << 16


class KeyCoder:
    """Numbers the decision keys of one policy's lookups."""

    def __init__(self, cluster: ClusterPlan, policy: Policy, bundles: BundleMap) -> None:
        self._reads = policy.request_reads
        self._bundles = bundles
        labels = [name for name in self._reads if name.startswith("properties")]
        self._by_properties = _numbered([_labels_of(labels, properties) for properties in cluster.words.properties])
        self._extras = [name for name in EXTRA_FIELDS if name in self._reads]
        self._sizes = [len(cluster.words.extras.get(name, ())) or 1 for name in self._extras]
        self._seen: dict[int, int] = {}
        self.refresh()

    @property
    def by_client(self) -> Ints | None:
        """Return the key of each client class where nothing else makes a difference, else None."""
        is_alone = not self._extras and not (self._by_atom.size and self._by_atom.max())
        return self._by_properties if is_alone and self._by_properties.size else None

    def refresh(self) -> None:
        """Number the bundles again after a split."""
        places = [name for name in ("bundle", "namespace", "tenant") if name in self._reads]
        names = self._bundles.names if places else ()
        self._by_atom = _numbered([_places_of(places, str(name)) for name in names])

    def codes(self, rows: DayRows, low: int, high: int) -> tuple[Ints, int]:
        """Return the key of each row, shape (n_rows,), and a bound above all keys so far."""
        span = slice(low, high)
        codes, size = np.zeros(high - low, dtype=np.int64), 1
        for numbers, column in ((self._by_properties, "properties"), (self._by_atom, "atom")):
            if numbers.size and numbers.max():
                codes = codes * (int(numbers.max()) + 1) + numbers[rows.column(column, span)]
                size *= int(numbers.max()) + 1
        for name, words in zip(self._extras, self._sizes, strict=True):
            codes = codes * words + rows.column(name, span)
            size *= words
        return (codes, size) if size <= _SMALL else self._renumbered(codes)

    def _renumbered(self, codes: Ints) -> tuple[Ints, int]:
        found, places = np.unique(codes, return_inverse=True)
        numbers = [self._seen.setdefault(code, len(self._seen)) for code in found.tolist()]
        return np.array(numbers, dtype=np.int64)[places], len(self._seen)


def key_text(policy: Policy, request: LookupRequest) -> str:
    """Write a decision key as JSON: the fields the policy reads and their values."""
    return json.dumps(dict(zip(policy.request_reads, policy.decision_key(request), strict=True)), ensure_ascii=False)


def _labels_of(names: Sequence[str], properties: object) -> Hashable:
    held = dict(properties)  # type: ignore[call-overload]  # a mapping
    if "properties" in names:
        return tuple(sorted(held.items()))
    return tuple(held.get(name.partition(".")[2]) for name in names)


def _places_of(names: Sequence[str], bundle: str) -> Hashable:
    namespace = bundle.rpartition("/")[0]
    known = {"bundle": bundle, "namespace": namespace, "tenant": namespace.partition("/")[0]}
    return tuple(known[name] for name in names)


def _numbered(keys: Sequence[Hashable]) -> Ints:
    seen: dict[Hashable, int] = {}
    return np.array([seen.setdefault(key, len(seen)) for key in keys], dtype=np.int64)
