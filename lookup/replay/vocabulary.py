"""What the tasks' own codes mean: one vocabulary per cluster, and the maps from each task's codes to it."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from lookup.replay.atoms import AtomRule, Atoms
from lookup.replay.coding import EXTRA_FIELDS, Share, properties_text
from lookup.replay.parts import narrowed

__all__ = ["ClusterWords", "Recoding", "merge_words", "recoding_of"]

Codes = NDArray[Any]


@dataclass(frozen=True)
class ClusterWords:
    """What the codes of one cluster's rows mean; vocabularies are sorted, so they do not depend on the tasks."""

    cluster: str
    atoms: Atoms
    #: lookup properties by code
    properties: tuple[Mapping[str, str], ...]
    #: texts by code of the fields of EXTRA_FIELDS that are coded
    extras: Mapping[str, tuple[str | None, ...]]
    #: distinct topics of each atom, shape (n_atoms,)
    topics: NDArray[np.int64]
    first_us: int
    last_us: int
    #: lookups by what the log calls their broker
    by_broker: Mapping[str, int]
    counts: Mapping[str, int]


@dataclass(frozen=True)
class Recoding:
    """For each column a task coded: the cluster's code by the task's."""

    atom: Codes
    properties: Codes
    #: roster numbers, -1 for none, -2 for a broker the roster does not know
    broker: Codes
    extras: Mapping[str, Codes]


def merge_words(cluster: str, rule: AtomRule, shares: Sequence[Share]) -> ClusterWords:
    """Put together what the tasks found of one cluster."""
    atoms = Atoms.of(rule, (name for share in shares for name in _asked_namespaces(rule, share)))
    texts = sorted({text for share in shares for text in share.properties if text is not None})
    extras = {name: _sorted_words(share.extras.get(name, []) for share in shares) for name in EXTRA_FIELDS}
    return ClusterWords(
        cluster=cluster,
        atoms=atoms,
        properties=tuple(json.loads(text) for text in texts),
        extras={name: words for name, words in extras.items() if words},
        topics=_topics(atoms, shares),
        first_us=min(share.first_us for share in shares),
        last_us=max(share.last_us for share in shares),
        by_broker=_by_broker(shares),
        counts={name: sum(share.counts[name] for share in shares) for name in shares[0].counts},
    )


def recoding_of(words: ClusterWords, share: Share, brokers: Mapping[str, int]) -> Recoding:
    """Return the maps from one task's codes to the cluster's.

    Args:
        brokers: roster numbers by everything a log may call a broker.
    """
    places = {properties_text(properties): place for place, properties in enumerate(words.properties)}
    extras = {name: _places(words.extras[name]) for name in share.extras if name in words.extras}
    return Recoding(
        atom=narrowed(_atom_map(words.atoms, share)),
        properties=_codes(-1 if text is None else places[text] for text in share.properties),
        broker=_codes([*(brokers.get(text, -2) for text in share.brokers), -1]),
        extras={name: _codes(known[text] for text in share.extras[name]) for name, known in extras.items()},
    )


def _asked_namespaces(rule: AtomRule, share: Share) -> list[str]:
    """Return the namespaces of a task's demand; topics of rows that are left out have codes as well."""
    sizes = [len(rule.boundaries(name)) - 1 for name in share.namespaces]
    places = np.searchsorted(np.cumsum(sizes), share.topics[:, 1], side="right")
    return [share.namespaces[place] for place in np.unique(places).tolist()]


def _atom_map(atoms: Atoms, share: Share) -> NDArray[np.int32]:
    codes = [_atom_codes(atoms, name) for name in share.namespaces]
    return np.concatenate(codes) if codes else np.empty(0, np.int32)


def _atom_codes(atoms: Atoms, namespace: str) -> Codes:
    size, base = len(atoms.rule.boundaries(namespace)) - 1, atoms.base.get(namespace)
    return np.full(size, -1, np.int32) if base is None else np.arange(base, base + size, dtype=np.int32)


def _topics(atoms: Atoms, shares: Sequence[Share]) -> NDArray[np.int64]:
    met = [np.stack([share.topics[:, 0], _atom_map(atoms, share)[share.topics[:, 1]]], axis=1) for share in shares]
    distinct = np.unique(np.concatenate(met), axis=0)
    return np.bincount(distinct[:, 1], minlength=atoms.count)


def _by_broker(shares: Sequence[Share]) -> Mapping[str, int]:
    found: Counter[str] = Counter()
    for share in shares:
        found.update(dict(zip(share.brokers, share.by_broker, strict=True)))
    return dict(found)


def _sorted_words(found: Iterable[Sequence[str | None]]) -> tuple[str | None, ...]:
    words = {word for words in found for word in words}
    return tuple(sorted(words, key=lambda word: (word is not None, word or "")))


def _places(words: Sequence[str | None]) -> dict[str | None, int]:
    return {word: place for place, word in enumerate(words)}


def _codes(values: Iterable[int]) -> Codes:
    # What they map is as long as the log, so they are as short as can be.
    return narrowed(np.array(list(values), dtype=np.int32))
