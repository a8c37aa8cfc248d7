"""The vectors of the shedder `transfer`: sums are met to the last bit, and wrong examples are told apart."""

from __future__ import annotations

from typing import Any

import pytest

from tests.model.vectors import vectors
from tests.vectors import NotUnderstood
from tests.vectors.transfer import AREAS

#: Keys of sums that are the same only if they are added up in the same order.
_SUMS = ("loadAvg", "loadStd", "internal_std_after_cycle")


@pytest.mark.parametrize("item", [*vectors("transfer_shedder"), *vectors("transfer_shedder.debug_quirk")])
def test_sums_are_upstreams_to_the_last_bit(item: dict[str, Any]) -> None:
    """Averages and deviations are equal, not only close."""
    expected = {key: item["expected"][key] for key in _SUMS if key in item["expected"]}
    answer = AREAS[item["area"]](item["input"], item["expected"])

    assert {key: answer[key] for key in expected} == expected


BUNDLES = [["t/n/0x00000000_0x80000000", 2], ["t/n/0x80000000_0xffffffff", 7]]
INPUT: dict[str, Any] = {
    "config": {"loadBalancerSheddingConditionHitCountThreshold": 0},
    "available_brokers": ["a:1", "b:1"],
    "brokers": {
        "a:1": {"weightedMaxEMA": 0.1, "msgThroughputIn": 1, "msgThroughputOut": 1, "top_bundles_ascending": None},
        "b:1": {"weightedMaxEMA": 0.9, "msgThroughputIn": 1, "msgThroughputOut": 9, "top_bundles_ascending": BUNDLES},
    },
}
MOVED: dict[str, Any] = {
    "source": "b:1",
    "bundle": "t/n/0x00000000_0x80000000",
    "dest": "a:1",
    "label": "Success",
    "reason": "Overloaded",
}


@pytest.mark.parametrize(
    ("more", "decisions", "reason"),
    [
        ({}, [MOVED], "Overloaded"),
        (
            {"config": {**INPUT["config"], "loadBalancerTransferEnabled": False}},
            [{**MOVED, "dest": None}],
            "Overloaded",
        ),
        ({"config": {}}, [], "HitCount"),
        ({"available_brokers": ["a:1", "b:1", "c:1"]}, [], "NoLoadData"),
        ({"updatedAt": "1 ms"}, [], "OutDatedData"),
        ({"recentlyUnloadedBrokers_ms_before_updatedAt": {"a:1": 179_999}}, [], "CoolDown"),
        ({"recentlyUnloadedBrokers_ms_before_updatedAt": {"a:1": 180_000}}, [MOVED], "Overloaded"),
        ({"recentlyUnloadedBundles": [bundle for bundle, _ in BUNDLES]}, [], "NoBundles"),
        ({"not_transferable_namespaces": ["t/n"]}, [], "NoBundles"),
        ({"not_transferable_namespaces": ["t/m"]}, [MOVED], "Overloaded"),
        ({"every_bundle_not_transferable": True}, [], "NoBundles"),
        ({"only_transferable_bundle": "t/n/0x80000000_0xffffffff"}, [], "NoBundles"),
        ({"filter": "fails for every bundle"}, [], "NoBundles"),
        ({"channel.isOwner": "always false"}, [], "NoBundles"),
        ({"available_brokers": "cannot be read", "brokers": None}, [], "Unknown"),
    ],
)
def test_every_key_has_its_effect(more: dict[str, Any], decisions: list[Any], reason: str) -> None:
    """Inputs that no vector of the file may have are read as the vectors' README says."""
    given = {key: value for key, value in (INPUT | more).items() if value is not None}
    answer = AREAS["transfer_shedder"](given, {})

    assert answer["decisions_as_set"] == decisions
    assert answer["counter"]["reason"] == reason


@pytest.mark.parametrize(
    ("area", "more"),
    [
        ("transfer_shedder", {"surprise": 1}),
        ("transfer_shedder", {"filter": "works"}),
        ("transfer_shedder", {"channel.isOwner": "sometimes"}),
        ("transfer_shedder", {"updatedAt": "yesterday"}),
        ("transfer_shedder", {"cluster": "two brokers"}),
        ("transfer_shedder", {"config": {"loadBalancerBrokerLoadTargetStd": "high"}}),
        ("transfer_shedder.hit_count", {"surprise": 1}),
    ],
)
def test_what_is_not_known_is_not_understood(area: str, more: dict[str, Any]) -> None:
    """An unknown key or value is refused rather than passed over."""
    with pytest.raises(NotUnderstood):
        AREAS[area](INPUT | {"calls": 1} | more if area != "transfer_shedder" else INPUT | more, {})


@pytest.mark.parametrize("kind", ["random_load", "random_load_stats"])
def test_random_loads_keep_the_invariant(kind: str) -> None:
    """Whatever is drawn: overfull brokers, few and many bundles."""
    given = {"kind": kind, "n_brokers": 12, "cpu_percent_range": [0, 300], "bundles_per_broker": 4, "repeats": 30}

    assert AREAS["transfer_shedder.property"](given, {}) == {"invariant": True}


def test_a_property_of_another_kind_is_not_understood() -> None:
    """There are two kinds."""
    with pytest.raises(NotUnderstood, match="kind other"):
        AREAS["transfer_shedder.property"]({"kind": "other"}, {})
