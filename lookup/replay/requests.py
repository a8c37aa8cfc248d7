"""Make the requests a policy sees from the codes of a row, and number the decision keys that follow from them.

A decision key is what the odds of a lookup depend on, apart from the instant: the values of the fields a policy reads.
"""

from __future__ import annotations

import json
from collections.abc import Hashable, Iterable

import numpy as np
from numpy.typing import NDArray

from lookup.engine.policy import Policy
from lookup.model.request import LookupRequest
from lookup.replay.atoms import BundleMap
from lookup.replay.coding import EXTRA_FIELDS
from lookup.replay.days import SliceRows
from lookup.replay.grouping import column_keys, compacted
from lookup.replay.plan import ClusterPlan

__all__ = ["KeyCoder", "RequestMaker", "key_text"]

Ints = NDArray[np.int64]
#: Above this many combinations of codes, keys are numbered as they occur.
_SMALL = 1 << 16


class RequestMaker:
    """Builds requests with the fields that the policies of the run read; the others are None."""

    def __init__(self, cluster: ClusterPlan, bundles: BundleMap) -> None:
        self._words = cluster.words
        self._bundles = bundles

    def request(self, rows: SliceRows, row: int) -> LookupRequest:
        """Return the request of one row of a slice."""
        bundle: str = self._bundles.names[rows.value("atom", row)]
        code, words = rows.value("properties", row), self._words

        def make(**extras: str | None) -> LookupRequest:
            """Put a request together."""
            namespace = bundle.rpartition("/")[0]
            tenant, properties = namespace.partition("/")[0], words.properties[code]
            return LookupRequest(tenant=tenant, namespace=namespace, bundle=bundle, properties=properties, **extras)

        if words.extras:
            return make(**{name: texts[rows.value(name, row)] for name, texts in words.extras.items()})
        # Without topics and clients requests are few, and the policies that share a slice meet the same ones.
        return rows.once(("request", bundle, code), make)


class KeyCoder:
    """Numbers the decision keys of one policy's lookups."""

    def __init__(self, cluster: ClusterPlan, policy: Policy, bundles: BundleMap) -> None:
        self._reads = policy.request_reads
        self._bundles = bundles
        labels = [name for name in self._reads if name.startswith("properties")]
        # "properties" stands for all labels, "properties.rack" for one of them.
        self._by_properties = _numbered(
            tuple(sorted(properties.items()))
            if "properties" in labels
            else tuple(properties.get(name.partition(".")[2]) for name in labels)
            for properties in cluster.words.properties
        )
        #: how many texts each coded field has that the policy reads
        self._extras = {
            name: len(cluster.words.extras.get(name, ())) or 1 for name in EXTRA_FIELDS if name in self._reads
        }
        #: number of each key so far, if there may be too many to use the packed codes themselves
        self._seen: dict[int, int] = {}
        self.refresh()

    @property
    def by_client(self) -> Ints | None:
        """Return the key of each client class if nothing else makes a difference, else None."""
        is_alone = not self._extras and not (self._by_atom.size and self._by_atom.max())
        return self._by_properties if is_alone and self._by_properties.size else None

    def refresh(self) -> None:
        """Number the bundles again after a split."""
        levels = [name for name in ("bundle", "namespace", "tenant") if name in self._reads]
        keys = []
        for bundle in map(str, self._bundles.names if levels else ()):
            namespace = bundle.rpartition("/")[0]
            names = {"bundle": bundle, "namespace": namespace, "tenant": namespace.partition("/")[0]}
            keys.append(tuple(names[level] for level in levels))
        self._by_atom = _numbered(keys)

    def codes(self, rows: SliceRows, low: int, high: int) -> tuple[Ints, int]:
        """Return the key of each row, shape (n_rows,), and a bound above all keys so far."""
        span = slice(low, high)
        keys = column_keys(np.zeros(high - low, dtype=np.int64), size=1)
        for name, numbers in (("properties", self._by_properties), ("atom", self._by_atom)):
            if numbers.size and numbers.max():
                keys = keys.by(numbers[rows.column(name, span)], size=int(numbers.max()) + 1)
        for name, size in self._extras.items():
            keys = keys.by(rows.column(name, span), size=size)
        if keys.bound is not None and keys.bound <= _SMALL:
            return keys.rows.astype(np.int64, copy=False), keys.bound
        # Topics and clients make millions of combinations, of which few occur: odds are a table by key.
        occurring, of_row = compacted(keys.rows)
        numbers = np.array([self._seen.setdefault(code, len(self._seen)) for code in occurring.tolist()], np.int64)
        return numbers[of_row], len(self._seen)


def key_text(policy: Policy, request: LookupRequest) -> str:
    """Write a decision key as JSON: the fields the policy reads and their values."""
    return json.dumps(dict(zip(policy.request_reads, policy.decision_key(request), strict=True)), ensure_ascii=False)


def _numbered(keys: Iterable[Hashable]) -> Ints:
    """Return a number for each key, the same for equal ones, in order of first occurrence."""
    seen: dict[Hashable, int] = {}
    return np.array([seen.setdefault(key, len(seen)) for key in keys], dtype=np.int64)
