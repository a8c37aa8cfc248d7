"""Merge the tasks' vocabularies into one per cluster, and map each task's codes to it."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from lookup.replay.atoms import AtomRule, Atoms
from lookup.replay.coding import EXTRA_FIELDS, Share, properties_text
from lookup.replay.days import Codes, narrowed
from lookup.replay.repeats import Repeats

__all__ = ["ClusterWords", "merge_words", "recoding_of", "short_codes"]


@dataclass(frozen=True)
class ClusterWords:
    """The meaning of the codes of one cluster's rows; vocabularies are sorted, so they do not depend on the tasks."""

    cluster: str
    atoms: Atoms
    #: lookup properties by code
    properties: tuple[Mapping[str, str], ...]
    #: lookups that carry each of the properties, shape (n_properties,)
    by_properties: NDArray[np.int64]
    #: lookups to which each rule for clients applies, shape (n_rules,)
    by_rule: NDArray[np.int64]
    #: texts by code of the fields of EXTRA_FIELDS that are coded
    extras: Mapping[str, tuple[str | None, ...]]
    #: distinct topics of each atom, shape (n_atoms,)
    topics: NDArray[np.int64]
    first_us: int
    last_us: int
    #: lookups by what the log calls their broker
    by_broker: Mapping[str, int]
    counts: Mapping[str, int]
    #: share of the pairs of time and topic that occur an even number of times, of a sample
    even_ratio: float


def merge_words(cluster: str, rule: AtomRule, shares: Sequence[Share]) -> ClusterWords:
    """Put the tasks' shares of one cluster together."""
    namespaces: set[str] = set()
    for share in shares:
        # Only namespaces of demand count: topics of rows that are left out have codes as well.
        sizes = [len(rule.boundaries(name)) - 1 for name in share.namespaces]
        demanded = np.unique(np.searchsorted(np.cumsum(sizes), share.topics[:, 1], side="right"))
        namespaces.update(share.namespaces[number] for number in demanded.tolist())
    atoms = Atoms.of(rule, namespaces)
    sent: Counter[str] = Counter()
    for share in shares:
        for text, lookups in zip(share.properties, share.by_properties, strict=True):
            if text is not None:
                sent[text] += lookups
    texts = sorted(sent)
    extras = {}
    for name in EXTRA_FIELDS:
        words = {word for share in shares for word in share.extras.get(name, [])}
        extras[name] = tuple(sorted(words, key=lambda word: (word is not None, word or "")))
    by_broker: Counter[str] = Counter()
    for share in shares:
        by_broker.update(dict(zip(share.brokers, share.by_broker, strict=True)))
    # One topic may be in the shares of several tasks: it counts once, by its digest. Digests fill 64 bits, so RowKeys
    # has no room to pack the atom with them.
    digests = [np.stack([share.topics[:, 0], _atom_map(atoms, share)[share.topics[:, 1]]], axis=1) for share in shares]
    distinct = np.unique(np.concatenate(digests), axis=0)
    repeats = Repeats()
    for share in shares:
        repeats.merge(share.repeats)
    return ClusterWords(
        cluster=cluster,
        atoms=atoms,
        properties=tuple(json.loads(text) for text in texts),
        by_properties=np.array([sent[text] for text in texts], dtype=np.int64),
        by_rule=np.sum([share.by_rule for share in shares], axis=0, dtype=np.int64),
        extras={name: words for name, words in extras.items() if words},
        topics=np.bincount(distinct[:, 1], minlength=atoms.count),
        first_us=min(share.first_us for share in shares),
        last_us=max(share.last_us for share in shares),
        by_broker=dict(by_broker),
        counts={name: sum(share.counts[name] for share in shares) for name in shares[0].counts},
        even_ratio=repeats.even_ratio,
    )


def recoding_of(words: ClusterWords, share: Share, brokers: Mapping[str, int]) -> Mapping[str, Codes]:
    """Return the maps from one task's codes to the cluster's, by column.

    Args:
        brokers: roster numbers by everything a log may call a broker.
    """
    by_text = {properties_text(properties): code for code, properties in enumerate(words.properties)}
    extras = {
        name: {word: code for code, word in enumerate(words.extras[name])}
        for name in share.extras
        if name in words.extras
    }
    return {
        "atom": narrowed(_atom_map(words.atoms, share)),
        "properties": short_codes(-1 if text is None else by_text[text] for text in share.properties),
        # -1 for no broker, -2 for one that the roster does not know. Code -1 is an index as well: that of the last.
        "broker": short_codes([*(brokers.get(text, -2) for text in share.brokers), -1]),
        **{name: short_codes(codes[text] for text in share.extras[name]) for name, codes in extras.items()},
    }


def _atom_map(atoms: Atoms, share: Share) -> NDArray[np.int32]:
    """Return the cluster's atom by the task's, -1 for atoms of namespaces without demand."""
    codes = [np.empty(0, np.int32)]
    for namespace in share.namespaces:
        size, base = len(atoms.rule.boundaries(namespace)) - 1, atoms.base.get(namespace)
        codes.append(np.full(size, -1, np.int32) if base is None else np.arange(base, base + size, dtype=np.int32))
    return np.concatenate(codes)


def short_codes(values: Iterable[int]) -> Codes:
    """Return codes in the smallest integers that hold them: a column of a log is decoded by them."""
    return narrowed(np.array(list(values), dtype=np.int32))
