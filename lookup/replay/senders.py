"""Tell who sends together: bundles of a namespace share their clients, and so may the namespaces of a tenant.

What sends together is one unit of demand, since it comes, grows and lives in a rack as one.
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
#: Tenants are one if their namespaces agree in more than this share of what chance would leave open.
_AGREEMENT = 0.5


@dataclass(frozen=True, eq=False)
class Senders:
    """The namespaces and tenants of a cluster's bundles, by number; columns of shape (n_bundles,)."""

    #: names, sorted: neighbours are mostly of one tenant
    namespaces: tuple[str, ...]
    namespace: Ints
    tenant: Ints
    #: what figures over time are counted without, one share after the other: a namespace, a part of one, or a few
    share: Ints


def senders_of(bundles: Sequence[str]) -> Senders:
    """Return who sends to bundles, whose names are `tenant/namespace/range`."""
    names, namespace = np.unique([bundle.rpartition("/")[0] for bundle in bundles], return_inverse=True)
    _, tenant = np.unique([name.partition("/")[0] for name in names.tolist()], return_inverse=True)
    parts = namespace if len(names) >= _FEWEST else np.arange(len(bundles))
    count = int(parts.max(initial=-1)) + 1
    return Senders(tuple(names.tolist()), namespace, tenant[namespace], parts * min(count, _MOST) // max(count, 1))


def most_sent(sent: Iterable[tuple[Ints, Ints, Floats]], clients: Sequence[ClientClass]) -> Homes:
    """Return by property the value that most lookups of each namespace have, those without any left out.

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
    """Return the property that the namespaces of a tenant share, None if there is none: then each is on its own.

    Of all pairs of namespaces of one tenant, more have the same value than chance would bring, which is how often
    namespaces of two tenants have it.

    Args:
        homes: of each cluster.
    """
    #: by property: pairs of one tenant, those of them that agree, all pairs, those of them that agree
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
