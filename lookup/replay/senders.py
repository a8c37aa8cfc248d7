"""Find the units of demand. Bundles of a namespace share their clients, and so may the namespaces of a tenant.

Bundles with the same clients are one unit of demand, since their demand arises, grows and is located together.
"""

from __future__ import annotations

import math
from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from lookup.model.batch import ClientClass

__all__ = ["Homes", "Senders", "label_of_tenants", "most_sent", "senders_of"]

Ints = NDArray[np.int64]
Floats = NDArray[np.float64]
#: By property, the value that most lookups of each namespace have, by its number.
Homes = Mapping[str, Mapping[int, str]]

#: With fewer namespaces figures over time are counted without each bundle, with more in so many shares of neighbours.
_FEWEST, _MOST = 8, 64
#: Tenants are units if their namespaces agree in more than this share of the agreement that chance does not explain.
_AGREEMENT = 0.5


@dataclass(frozen=True, eq=False)
class Senders:
    """The namespaces and tenants of a cluster's bundles, by number, in columns of shape (n_bundles,)."""

    #: names, sorted, so that most neighbours are of one tenant
    namespaces: tuple[str, ...]
    namespace: Ints
    tenant: Ints
    #: share of each bundle, a namespace, a part of one, or several. Figures over time are counted without each in turn
    share: Ints


def senders_of(bundles: Sequence[str]) -> Senders:
    """Number the namespaces and tenants of bundles, whose names are `tenant/namespace/range`."""
    names, namespace = np.unique([bundle.rpartition("/")[0] for bundle in bundles], return_inverse=True)
    _, tenant = np.unique([name.partition("/")[0] for name in names.tolist()], return_inverse=True)
    parts = namespace if len(names) >= _FEWEST else np.arange(len(bundles))
    count = int(parts.max(initial=-1)) + 1
    return Senders(tuple(names.tolist()), namespace, tenant[namespace], parts * min(count, _MOST) // max(count, 1))


def most_sent(sent: Iterable[tuple[Ints, Ints, Floats]], clients: Sequence[ClientClass]) -> Homes:
    """Find the most frequent value of each property in each namespace. Namespaces without a value are left out.

    Args:
        sent: numbers of namespaces and client classes, and lookups, each of shape (n_groups,).
    """
    counts: dict[str, dict[int, Counter[str]]] = defaultdict(lambda: defaultdict(Counter))
    for groups in sent:
        for number, client, lookups in zip(*(column.tolist() for column in groups), strict=True):
            for key, value in clients[client].properties.items():
                counts[key][number][value] += lookups
    # Of equals the first by name.
    return {
        key: {number: min(values, key=lambda value: (-values[value], value)) for number, values in by_namespace.items()}
        for key, by_namespace in counts.items()
    }


def label_of_tenants(homes: Iterable[tuple[Senders, Homes]]) -> str | None:
    """Find the property that the namespaces of a tenant share, None if each namespace is its own unit.

    Pairs of namespaces of one tenant must have the same value more often than pairs of two tenants, which is chance.

    Args:
        homes: of each cluster.
    """
    #: by property, the number of pairs of one tenant, how many agree, the number of all pairs, how many agree
    pairs: dict[str, list[int]] = defaultdict(lambda: [0, 0, 0, 0])
    for senders, values in homes:
        tenant_of = dict(zip(senders.namespace.tolist(), senders.tenant.tolist(), strict=True))
        for key, home in values.items():
            tenants = [tenant_of[number] for number in home]
            groups = (tenants, zip(tenants, home.values(), strict=True), [None] * len(home), home.values())
            for place, members in enumerate(groups):
                pairs[key][place] += sum(math.comb(count, 2) for count in Counter(members).values())
    for key, (own, own_alike, every, alike) in sorted(pairs.items()):
        if own and own < every:
            chance = (alike - own_alike) / (every - own)
            if own_alike / own - chance > _AGREEMENT * (1 - chance):
                return key
    return None
