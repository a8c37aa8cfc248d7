"""Which bundles a report names."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lookup.model import IsolationPolicy, NamespaceBundleStats, NamespacePolicies
from lookup.model.top_bundles import may_be_shed, top_bundles

_STATS = st.builds(
    NamespaceBundleStats,
    msg_throughput_in=st.floats(0, 1e7),
    msg_throughput_out=st.floats(0, 1e7),
    topics=st.integers(0, 9),
)
_BUNDLES = st.dictionaries(st.integers(0, 99).map("t/n/{}".format), _STATS, max_size=20)


def _busy(load: float) -> NamespaceBundleStats:
    return NamespaceBundleStats(msg_throughput_in=load * 1e6)


@given(_BUNDLES, st.integers(0, 25))
def test_the_greatest_are_chosen_in_ascending_order(stats: dict[str, NamespaceBundleStats], k: int) -> None:
    """As many as there are, none greater is left behind, and each keeps its figures."""
    chosen = top_bundles(stats, k).top_bundles_load_data
    busy = {name: one for name, one in stats.items() if one.msg_throughput_in + one.msg_throughput_out > 0}
    ranks = [one.rank for one in chosen.values()]

    assert len(chosen) == min(k, len(busy))
    assert ranks == sorted(one.rank for one in busy.values())[len(busy) - len(chosen) :]
    assert all(busy[name] is one for name, one in chosen.items())


@given(_BUNDLES, st.integers(0, 25))
def test_the_order_bundles_come_in_does_not_matter(stats: dict[str, NamespaceBundleStats], k: int) -> None:
    """Pulsar leaves ties open; here names decide."""
    turned = dict(reversed(stats.items()))

    assert list(top_bundles(turned, k).top_bundles_load_data.items()) == list(
        top_bundles(stats, k).top_bundles_load_data.items()
    )


def test_idle_bundles_and_those_of_the_system_are_left_out() -> None:
    """However many messages or topics they have."""
    stats = {
        "pulsar/system/0x00000000_0xffffffff": _busy(9),
        "t/idle/0x00000000_0xffffffff": NamespaceBundleStats(msg_rate_in=1e6, topics=99),
        "t/n/0x00000000_0xffffffff": _busy(1),
    }

    assert list(top_bundles(stats, 3).top_bundles_load_data) == ["t/n/0x00000000_0xffffffff"]


_POLICIES = NamespacePolicies(
    isolation={"t/isolated": (IsolationPolicy(("b",)),)}, anti_affinity_group={"t/apart": "g"}
)


@pytest.mark.parametrize(
    ("with_policies", "wanted"), [(False, ["t/n/0"]), (True, ["t/isolated/0", "t/apart/0", "t/n/0"])]
)
def test_namespaces_with_policies_are_left_out_unless_asked_for(*, with_policies: bool, wanted: list[str]) -> None:
    """Isolation and anti-affinity alike."""
    stats = {"t/n/0": _busy(3), "t/apart/0": _busy(2), "t/isolated/0": _busy(1)}

    chosen = top_bundles(stats, 5, policies=_POLICIES, with_policies=with_policies)

    assert list(chosen.top_bundles_load_data) == wanted


def test_a_namespace_without_policies_may_be_shed() -> None:
    """An empty list of policies and a blank group are none."""
    blank = NamespacePolicies(isolation={"t/n": ()}, anti_affinity_group={"t/n": " "})

    assert may_be_shed("t/n", blank)
    assert not may_be_shed("t/isolated", _POLICIES)
    assert not may_be_shed("t/apart", _POLICIES)
