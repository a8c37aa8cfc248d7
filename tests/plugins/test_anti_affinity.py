"""The filter `anti-affinity`."""

from __future__ import annotations

import pytest

from lookup.model import ClusterView, NamespacePolicies
from lookup.testing import candidates, cluster, engine_request, request
from lookup_policies.anti_affinity import AntiAffinity
from tests.plugins.worlds import kept

GROUP = {"public/default": "billing", "public/other": "BILLING", "public/third": "else"}


def _view(owned: dict[str, int], domains: dict[str, str] | None = None, *others: str) -> ClusterView:
    places = [(owner, place) for owner, count in owned.items() for place in range(count)]
    bundles = {f"public/{'default' if place % 2 else 'other'}/{owner}-{place}": owner for owner, place in places}
    namespaces = NamespacePolicies(anti_affinity_group=GROUP, failure_domains=domains or {})
    return cluster(*owned, *others, owned=bundles, namespaces=namespaces)


@pytest.mark.parametrize(
    ("owned", "domains", "expected"),
    [
        (
            {"b1": 2, "b2": 1, "b3": 2, "b4": 1, "b5": 2, "b6": 2},
            {"b1": "d1", "b2": "d1", "b3": "d2", "b4": "d2", "b5": "d3", "b6": "d3"},
            {"b2", "b4"},
        ),
        ({"b1": 1, "b2": 0, "b3": 0, "b4": 0}, {"b1": "d1", "b2": "d1", "b3": "d2"}, {"b3", "b4"}),
        ({"b1": 0, "b2": 3, "b3": 1}, {"b1": "d1", "b2": "d1", "b3": "d2"}, {"b3"}),
        ({"b1": 1, "b2": 0}, {}, {"b2"}),
    ],
    ids=["documented-example", "no-domain-is-a-domain", "an-empty-broker-in-a-full-domain", "no-domains"],
)
def test_the_emptiest_domain_comes_first(owned: dict[str, int], domains: dict[str, str], expected: set[str]) -> None:
    """Domains with the smallest total are kept, and in them the brokers with the fewest bundles."""
    assert kept(AntiAffinity(failure_domains_enabled=True), request(), _view(owned, domains)) == expected


def test_the_modular_manager_counts_namespaces() -> None:
    """Three bundles of one namespace are one (LoadManagerShared.getAntiAffinityNamespaceOwnedBrokers, Pulsar 4.0.4)."""
    bundles = {f"public/default/{place}": "b1" for place in range(3)} | {
        "public/other/0": "b2",
        "public/default/9": "b2",
    }
    view = cluster("b1", "b2", owned=bundles, namespaces=NamespacePolicies(anti_affinity_group=GROUP))

    assert kept(AntiAffinity(counts="namespaces"), request(), view) == {"b1"}
    assert kept(AntiAffinity(), request(), view) == {"b2"}


def test_without_domains_the_emptiest_brokers_are_kept() -> None:
    """Bundles of every namespace of the group count, whatever the case of its name."""
    assert kept(AntiAffinity(), request(), _view({"b1": 2, "b2": 1, "b3": 1}, {"b2": "d1"})) == {"b2", "b3"}


@pytest.mark.parametrize("topic", ["persistent://public/third/t", "persistent://nobody/none/t"])
def test_other_groups_and_namespaces_without_one_are_free(topic: str) -> None:
    """Only bundles of the own group count."""
    assert kept(AntiAffinity(), request(topic), _view({"b1": 2, "b2": 0})) == {"b1", "b2"}


def test_a_blank_group_is_no_group() -> None:
    """A group of blanks filters nothing."""
    namespaces = NamespacePolicies(anti_affinity_group={"public/default": " "})
    view = cluster("b1", "b2", owned={"public/default/x": "b1"}, namespaces=namespaces)

    assert kept(AntiAffinity(), request(), view) == {"b1", "b2"}


def test_the_detail_counts() -> None:
    """An explanation names the group and what the broker owns of it."""
    view = _view({"b1": 2, "b2": 0})

    assert "owns 2 bundles of group billing" in AntiAffinity().detail(request(), view.brokers[0], view)


@pytest.mark.parametrize(
    ("owned", "expected"),
    [
        ({}, True),
        ({"b1": 2, "b2": 1}, True),
        ({"b1": 1}, True),
        ({"b1": 1, "b2": 1}, False),
        ({"b1": 1, "b2": 2}, True),
    ],
    ids=["nothing-owned", "owner-has-more", "somebody-has-none", "all-alike", "not-all-alike"],
)
def test_a_bundle_stays_only_where_everybody_owns_as_many(owned: dict[str, int], expected: bool) -> None:
    """The modular manager's question before it unloads a bundle of a group."""
    bundles = {f"t/ns/{broker}{place}": broker for broker, count in owned.items() for place in range(count)}
    namespaces = NamespacePolicies(anti_affinity_group={"t/ns": "g"})
    view = cluster("b1", "b2", owned=bundles, namespaces=namespaces)
    asked, owner = engine_request("t/ns/0x00000000_0xffffffff"), candidates(view, "b1")[0]

    assert AntiAffinity().should_unload(asked, owner, candidates(view), view) is expected
    assert AntiAffinity().should_unload(engine_request("t/free/0x0_0x1"), owner, candidates(view), view)
