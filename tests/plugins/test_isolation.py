"""The filters `isolation` and `anti-affinity`."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lookup.model import ClusterView, IsolationPolicy, LookupRequest, NamespacePolicies
from lookup.testing import candidates, cluster, engine_request, request
from lookup_policies.isolation import AntiAffinity, Isolation
from tests.plugins.worlds import kept, labelled

OWN = request("persistent://my-tenant/my-ns/t")


def _view(isolation: Mapping[str, tuple[IsolationPolicy, ...]]) -> ClusterView:
    brokers = [f"broker{number}:8080" for number in (1, 2, 3)]
    return cluster(*brokers, namespaces=NamespacePolicies(isolation=isolation))


def _policy(min_limit: int) -> Mapping[str, tuple[IsolationPolicy, ...]]:
    return {"my-tenant/my-ns": (IsolationPolicy(("broker1",), ("broker2",), min_limit),)}


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


_ONE, _TWO, _THREE = (f"broker{number}:8080" for number in (1, 2, 3))
_ADDED = {"my-tenant/my-ns": (IsolationPolicy(("broker1",)), IsolationPolicy(("broker3",)))}
_SERVING = cluster(
    labelled("b1", persistent_topics_enabled=False), labelled("b2", non_persistent_topics_enabled=False), labelled("b3")
)
_ISOLATED = cluster(labelled("broker1:1", persistent_topics_enabled=False), namespaces=NamespacePolicies(_policy(1)))


@pytest.mark.parametrize(
    ("asked", "view", "offered", "expected"),
    [
        # A namespace with a policy uses primaries, secondaries below the limit, and never anybody else.
        (OWN, _view(_policy(1)), (), {_ONE}),
        (OWN, _view(_policy(2)), (), {_ONE, _TWO}),
        (OWN, _view(_policy(2)), (_TWO, _THREE), {_TWO}),
        (OWN, _view(_policy(1)), (_TWO, _THREE), {_TWO}),
        (OWN, _view(_policy(2)), (_THREE,), set()),
        # A primary broker of one namespace serves no other; a secondary one does.
        (request(), _view(_policy(1)), (), {_TWO, _THREE}),
        (OWN, _view(_ADDED), (), {_ONE, _THREE}),
        # A pattern that fits only the beginning of the host does not match.
        (OWN, _view({"my-tenant/my-ns": (IsolationPolicy(("broker",)),)}), (), set()),
        # Without a policy the broker has to serve the topic's kind; as in Pulsar that does not count under a policy.
        (request("persistent://public/default/t"), _SERVING, (), {"b2", "b3"}),
        (request("non-persistent://public/default/t"), _SERVING, (), {"b1", "b3"}),
        (engine_request(), _SERVING, (), {"b2", "b3"}),
        (OWN, _ISOLATED, (), {"broker1:1"}),
    ],
)
def test_isolation_keeps_brokers(
    asked: LookupRequest, view: ClusterView, offered: tuple[str, ...], expected: set[str]
) -> None:
    """Those that the policies of all namespaces leave."""
    assert kept(Isolation(), asked, view, *offered) == expected


GROUP = {"public/default": "billing", "public/other": "BILLING", "public/third": "else", "public/blank": " "}
_DOMAINS = {"b1": "d1", "b2": "d1", "b3": "d2", "b4": "d2", "b5": "d3", "b6": "d3"}
_BY_DOMAIN = AntiAffinity(failure_domains_enabled=True)


def _grouped(owned: dict[str, int], domains: dict[str, str] | None = None) -> ClusterView:
    places = [(owner, place) for owner, count in owned.items() for place in range(count)]
    bundles = {f"public/{'default' if place % 2 else 'other'}/{owner}-{place}": owner for owner, place in places}
    namespaces = NamespacePolicies(anti_affinity_group=GROUP, failure_domains=domains or {})
    return cluster(*owned, owned=bundles, namespaces=namespaces)


_OF_ONE = {f"public/default/{place}": "b1" for place in range(3)} | {"public/other/0": "b2", "public/default/9": "b2"}
_NAMESPACES = cluster("b1", "b2", owned=_OF_ONE, namespaces=NamespacePolicies(anti_affinity_group=GROUP))
_BLANK = replace(_NAMESPACES, ownership=cluster("b1", "b2", owned={"public/blank/x": "b1"}).ownership)


@pytest.mark.parametrize(
    ("part", "topic", "view", "expected"),
    [
        # Domains with the smallest total are kept, and in them the brokers with the fewest bundles; no domain is one.
        (
            _BY_DOMAIN,
            "default",
            _grouped({"b1": 2, "b2": 1, "b3": 2, "b4": 1, "b5": 2, "b6": 2}, _DOMAINS),
            {"b2", "b4"},
        ),
        (_BY_DOMAIN, "default", _grouped({"b1": 1, "b2": 0, "b3": 0, "no": 0}, _DOMAINS), {"b3", "no"}),
        (_BY_DOMAIN, "default", _grouped({"b1": 0, "b2": 3, "b3": 1}, _DOMAINS), {"b3"}),
        (_BY_DOMAIN, "default", _grouped({"b1": 1, "b2": 0}), {"b2"}),
        (AntiAffinity(), "default", _grouped({"b1": 2, "b2": 1, "b3": 1}, {"b2": "d1"}), {"b2", "b3"}),
        # Three bundles of one namespace are one (LoadManagerShared.getAntiAffinityNamespaceOwnedBrokers, Pulsar 4.0.4).
        (AntiAffinity(counts="namespaces"), "default", _NAMESPACES, {"b1"}),
        (AntiAffinity(), "default", _NAMESPACES, {"b2"}),
        # Only bundles of the own group count, and a group of blanks is none.
        (AntiAffinity(), "third", _grouped({"b1": 2, "b2": 0}), {"b1", "b2"}),
        (AntiAffinity(), "none", _grouped({"b1": 2, "b2": 0}), {"b1", "b2"}),
        (AntiAffinity(), "blank", _BLANK, {"b1", "b2"}),
    ],
)
def test_anti_affinity_keeps_brokers(part: AntiAffinity, topic: str, view: ClusterView, expected: set[str]) -> None:
    """Those that own the fewest bundles of the group."""
    assert kept(part, request(f"persistent://public/{topic}/t"), view) == expected


def test_the_detail_counts() -> None:
    """An explanation names the group and what the broker owns of it."""
    view = _grouped({"b1": 2, "b2": 0})

    assert "owns 2 bundles of group billing" in AntiAffinity().detail(request(), view.brokers[0], view)
