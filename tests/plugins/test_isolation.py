"""The filters `isolation` and `anti-affinity`."""

from __future__ import annotations

from collections.abc import Mapping

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lookup.model import ClusterView, IsolationPolicy, NamespacePolicies
from lookup.testing import candidates, cluster, engine_request, request
from lookup_policies.isolation import AntiAffinity, Isolation
from tests.plugins.worlds import kept, labelled

OWN = request("persistent://my-tenant/my-ns/t")


def _view(isolation: Mapping[str, tuple[IsolationPolicy, ...]]) -> ClusterView:
    brokers = [f"broker{number}:8080" for number in (1, 2, 3)]
    return cluster(*brokers, namespaces=NamespacePolicies(isolation=isolation))


def _policy(min_limit: int) -> Mapping[str, tuple[IsolationPolicy, ...]]:
    return {"my-tenant/my-ns": (IsolationPolicy(("broker1",), ("broker2",), min_limit),)}


@pytest.mark.parametrize(
    ("min_limit", "offered", "expected"),
    [(1, (1, 2, 3), {1}), (2, (1, 2, 3), {1, 2}), (2, (2, 3), {2}), (1, (2, 3), {2}), (2, (3,), set())],
)
def test_secondaries_join_where_primaries_are_too_few(
    min_limit: int, offered: tuple[int, ...], expected: set[int]
) -> None:
    """A namespace with a policy uses primaries, secondaries below the limit, and never anybody else."""
    ids = [f"broker{number}:8080" for number in offered]

    assert kept(Isolation(), OWN, _view(_policy(min_limit)), *ids) == {f"broker{number}:8080" for number in expected}


@given(
    policies=st.lists(st.tuples(st.integers(0, 7), st.integers(0, 7), st.integers(1, 4)), max_size=3),
    is_own=st.booleans(),
)
def test_what_may_be_admitted_is_what_is_admitted_beside_some_brokers(
    policies: list[tuple[int, int, int]], *, is_own: bool
) -> None:
    """Whichever brokers other filters leave; a secondary counts, since these may leave no primary."""
    hosts = ("broker1", "broker2", "broker3")

    def some(bits: int) -> tuple[str, ...]:
        return tuple(host for number, host in enumerate(hosts) if bits >> number & 1)

    rules = tuple(IsolationPolicy(some(primary), some(secondary), limit) for primary, secondary, limit in policies)
    view, asked = _view({"my-tenant/my-ns": rules}), OWN if is_own else request()
    beside = [{f"{host}:8080" for host in some(bits)} for bits in range(1, 8)]
    admitted = [kept(Isolation(), asked, view, *ids) for ids in beside]
    mask = Isolation().may_admit(asked, candidates(view), view)

    assert set().union(*admitted) == {broker for broker, is_in in zip(view.brokers.ids, mask, strict=True) if is_in}


def test_other_namespaces_keep_off_claimed_brokers() -> None:
    """A primary broker of one namespace serves no other; a secondary one does."""
    assert kept(Isolation(), request(), _view(_policy(1))) == {"broker2:8080", "broker3:8080"}


def test_several_policies_of_a_namespace_add_up() -> None:
    """Each policy contributes its brokers."""
    both = {"my-tenant/my-ns": (IsolationPolicy(("broker1",)), IsolationPolicy(("broker3",)))}

    assert kept(Isolation(), OWN, _view(both)) == {"broker1:8080", "broker3:8080"}


def test_a_pattern_matches_the_whole_host() -> None:
    """A pattern that fits only the beginning of the host does not match."""
    view = _view({"my-tenant/my-ns": (IsolationPolicy(("broker",)),)})

    assert kept(Isolation(), OWN, view) == set()


@pytest.mark.parametrize(
    ("topic", "expected"),
    [("persistent://public/default/t", {"b2", "b3"}), ("non-persistent://public/default/t", {"b1", "b3"})],
)
def test_a_broker_must_serve_the_domain(topic: str, expected: set[str]) -> None:
    """Without a policy the broker has to serve the topic's kind."""
    view = cluster(
        labelled("b1", persistent_topics_enabled=False),
        labelled("b2", non_persistent_topics_enabled=False),
        labelled("b3"),
    )

    assert kept(Isolation(), request(topic), view) == expected


def test_a_request_of_the_engine_counts_as_persistent() -> None:
    """A request without a topic needs a broker for persistent ones."""
    view = cluster(labelled("b1", persistent_topics_enabled=False), labelled("b2"))

    assert kept(Isolation(), engine_request(), view) == {"b2"}


def test_the_domain_does_not_count_under_a_policy() -> None:
    """As in Pulsar, an isolated namespace uses its brokers whatever they serve."""
    view = cluster(labelled("broker1:1", persistent_topics_enabled=False), namespaces=NamespacePolicies(_policy(1)))

    assert kept(Isolation(), OWN, view) == {"broker1:1"}


@pytest.mark.parametrize(
    ("isolation", "detail"),
    [
        (_policy(1), "host broker3 is none of those my-tenant/my-ns may use now"),
        ({"x/y": (IsolationPolicy(("broker3",)),)}, "host broker3 is primary for other namespaces"),
        ({}, "does not serve persistent topics"),
    ],
)
def test_the_detail_tells_the_causes_apart(isolation: Mapping[str, tuple[IsolationPolicy, ...]], detail: str) -> None:
    """An explanation says which of the three rules it was."""
    view = _view(isolation)

    assert Isolation().detail(OWN, view.brokers[2], view) == detail


def test_an_id_without_port_is_dropped_where_that_is_asked_for() -> None:
    """Pulsar knows no such ids, so they neither serve nor count as primaries."""
    policies = NamespacePolicies(isolation={"public/default": (IsolationPolicy(("b1", "b2"), ("b3",), 2),)})
    view = cluster("b1", "b2:8080", "b3:8080", namespaces=policies)

    assert kept(Isolation(), request(), view) == {"b1", "b2:8080"}
    assert kept(Isolation(portless="drop"), request(), view) == {"b2:8080", "b3:8080"}
    assert Isolation(portless="drop").detail(request(), candidates(view, "b1")[0], view) == "id b1 has no port"


GROUP = {"public/default": "billing", "public/other": "BILLING", "public/third": "else"}


def _grouped(owned: dict[str, int], domains: dict[str, str] | None = None, *others: str) -> ClusterView:
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
    assert kept(AntiAffinity(failure_domains_enabled=True), request(), _grouped(owned, domains)) == expected


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
    assert kept(AntiAffinity(), request(), _grouped({"b1": 2, "b2": 1, "b3": 1}, {"b2": "d1"})) == {"b2", "b3"}


@pytest.mark.parametrize("topic", ["persistent://public/third/t", "persistent://nobody/none/t"])
def test_other_groups_and_namespaces_without_one_are_free(topic: str) -> None:
    """Only bundles of the own group count."""
    assert kept(AntiAffinity(), request(topic), _grouped({"b1": 2, "b2": 0})) == {"b1", "b2"}


def test_a_blank_group_is_no_group() -> None:
    """A group of blanks filters nothing."""
    namespaces = NamespacePolicies(anti_affinity_group={"public/default": " "})
    view = cluster("b1", "b2", owned={"public/default/x": "b1"}, namespaces=namespaces)

    assert kept(AntiAffinity(), request(), view) == {"b1", "b2"}


def test_the_detail_counts() -> None:
    """An explanation names the group and what the broker owns of it."""
    view = _grouped({"b1": 2, "b2": 0})

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
