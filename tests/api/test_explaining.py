"""`lookup.explain`: why policies answer a lookup as they do, for a program."""

from __future__ import annotations

from typing import Any

import pytest

import lookup
from lookup.errors import SettingsError

_SETTINGS: dict[str, Any] = {
    "evaluation": {"incumbent": "stock"},
    "brokers": [{"id": f"b{n}:8080", "properties": {"lookup.rack": rack}} for n, rack in enumerate("ab")],
    "policies": [
        {"name": "stock", "selector": "random"},
        {"name": "rack", "scorers": ["property-match"], "selector": "best"},
    ],
}


def test_every_policy_is_explained() -> None:
    """Votes of all brokers, by policy, and the request as policies see it."""
    found = lookup.explain(_SETTINGS, "orders", properties={"rack": "b"})

    assert list(found.policies) == ["stock", "rack"]
    assert [vote.broker for vote in found.policies["rack"].chosen] == ["b1:8080"]
    assert found.scene.request.topic == "persistent://public/default/orders"
    assert found.answered_without_policy is None


def test_mistakes_name_arguments() -> None:
    """Not flags."""
    with pytest.raises(SettingsError, match=r"^policy: .*'rak'; did you mean 'rack'\?"):
        lookup.explain(_SETTINGS, "orders", policy=["rak"])
    with pytest.raises(SettingsError, match=r"^usage: .*'b9:8080'"):
        lookup.explain(_SETTINGS, "orders", usage={"b9:8080": 0.5})


def test_a_topic_of_the_load_managers_own_asks_no_policy() -> None:
    """The reason is in the answer."""
    found = lookup.explain(_SETTINGS, "persistent://pulsar/system/loadbalancer-service-unit-state")

    assert found.policies == {}
    assert "load manager's own" in str(found.answered_without_policy)
