"""Who sends together: bundles of a namespace, and namespaces of a tenant that live in one place."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
import pytest

from lookup.model.batch import ClientClass
from lookup.replay.senders import Senders, label_of_tenants, most_sent, senders_of


def _bundles(tenants: Sequence[int], bundles: int = 1) -> list[str]:
    """Name bundles of as many namespaces as each tenant has."""
    namespaces = [
        f"t{tenant:02}/n{number:03}" for tenant, count in enumerate(tenants) for number in range(count)
    ]  # fmt: skip
    return [f"{namespace}/0x{each:08x}_0x{each + 1:08x}" for namespace in namespaces for each in range(bundles)]


def test_bundles_belong_to_a_namespace_and_it_to_a_tenant() -> None:
    """Namespaces are numbered in the order of their names."""
    senders = senders_of(["t/b/0x0_0x8", "s/a/0x0_0x8", "t/b/0x8_0xf", "t/a/0x0_0xf"])

    assert senders.namespaces == ("s/a", "t/a", "t/b")
    assert (senders.namespace.tolist(), senders.tenant.tolist()) == ([2, 0, 2, 1], [1, 0, 1, 1])


@pytest.mark.parametrize(
    ("namespaces", "bundles", "shares"), [(7, 3, 21), (8, 3, 8), (64, 1, 64), (200, 2, 64), (1, 100, 64)]
)
def test_figures_are_counted_without_so_many_shares(namespaces: int, bundles: int, shares: int) -> None:
    """Of a few namespaces each bundle is one, else each namespace, and never more than 64 of neighbours."""
    senders = senders_of(_bundles([namespaces], bundles))

    assert np.unique(senders.share).tolist() == list(range(shares))
    assert (np.diff(senders.share) >= 0).all()


def test_the_home_of_a_namespace_is_what_most_of_its_lookups_say() -> None:
    """By lookups and not by clients, over all groups together; of equals the first by name."""
    clients = [ClientClass({"rack": "b"}), ClientClass({"rack": "a"}), ClientClass()]
    groups = [
        (np.array([0, 0, 1]), np.array([0, 1, 2]), np.array([5.0, 3.0, 9.0])),
        (np.array([0, 2, 2]), np.array([1, 0, 1]), np.array([3.0, 4.0, 4.0])),
    ]

    assert most_sent(groups, clients) == {"rack": {0: "a", 2: "a"}}


def _homes(racks: Mapping[str, str]) -> list[tuple[Senders, Mapping[str, Mapping[int, str]]]]:
    """Write down where the namespaces of each tenant live, a letter for each namespace."""
    senders = senders_of(_bundles([len(letters) for letters in racks.values()]))
    return [(senders, {"rack": dict(enumerate("".join(racks.values())))})]


@pytest.mark.parametrize(
    ("racks", "label"),
    [
        ({"t": "aaaa", "u": "bbbb", "v": "cccc"}, "rack"),
        ({"t": "aaab", "u": "bbbb", "v": "cccc"}, "rack"),
        # They live together more often than chance would bring, but not for the most part.
        ({"t": "aaab", "u": "bbbc", "v": "ccca"}, None),
        # Each lives on its own.
        ({"t": "abca", "u": "bcab", "v": "cabc"}, None),
        # All live in one rack: tenants have nothing of their own.
        ({"t": "aaaa", "u": "aaaa"}, None),
        # One tenant, or namespaces of which each is the only one of its tenant.
        ({"t": "aabb"}, None),
        ({"t": "a", "u": "b", "v": "c"}, None),
    ],
)
def test_tenants_send_together_if_their_namespaces_live_together(racks: Mapping[str, str], label: str | None) -> None:
    """More of them do than chance would bring."""
    assert label_of_tenants(_homes(racks)) == label


def test_clusters_are_counted_together() -> None:
    """A tenant of one cluster says nothing of one of the same name in another."""
    together = _homes({"t": "aaaa", "u": "bbbb"})

    assert label_of_tenants([*together, *_homes({"t": "ab"})]) == "rack"
    assert label_of_tenants([]) is None
