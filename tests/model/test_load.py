"""Load reports as Pulsar writes them."""

from __future__ import annotations

import json
from typing import Any

import pytest

from lookup.errors import InputError
from lookup.model import BrokerLoadData, NamespaceBundleStats, ResourceUsage
from lookup.model.load import broker_load_from_json, bundle_stats_from_json
from tests.model.vectors import vectors


@pytest.mark.parametrize("vector", vectors("broker_load_data.defaults"))
def test_a_fresh_report_is_pulsars(vector: dict[str, Any]) -> None:
    """A broker that never reported looks full."""
    expected, fresh = vector["expected"], BrokerLoadData()

    assert fresh.max_resource_usage == expected["maxResourceUsage"]
    assert fresh.weighted_max_ema == expected["weightedMaxEMA"]
    assert fresh.msg_throughput_ema == expected["msgThroughputEMA"]
    assert (fresh.updated_at, fresh.reported_at) == (expected["updatedAt"], expected["reportedAt"])
    assert (fresh.bundle_count, fresh.topics) == (expected["bundleCount"], expected["topics"])


def test_a_broker_report_is_read() -> None:
    """Under Pulsar's names, resources within."""
    text = json.dumps(
        {
            "cpu": {"usage": 40.0, "limit": 100.0},
            "directMemory": {"usage": 5},
            "msgThroughputIn": 12,
            "weightedMaxEMA": 0.4,
            "maxResourceUsage": 0.5,
            "topics": 7,
            "updatedAt": 1700000000000,
            "unknown": "x",
        }
    )

    assert broker_load_from_json(text) == BrokerLoadData(
        cpu=ResourceUsage(40.0, 100.0),
        direct_memory=ResourceUsage(5, 0.0),
        msg_throughput_in=12,
        weighted_max_ema=0.4,
        max_resource_usage=0.5,
        topics=7,
        updated_at=1700000000000,
    )


def test_bundle_stats_are_read() -> None:
    """What is absent or null is zero."""
    assert bundle_stats_from_json('{"msgRateIn": 2.5, "consumerCount": 3, "topics": null}') == NamespaceBundleStats(
        msg_rate_in=2.5, consumer_count=3
    )


@pytest.mark.parametrize(
    ("read", "text", "sentence"),
    [
        (broker_load_from_json, "{", "broker load data is no JSON"),
        (broker_load_from_json, "[]", "broker load data is no JSON object but list"),
        (broker_load_from_json, '{"topics": "7"}', "topics is '7', not a number"),
        (broker_load_from_json, '{"weightedMaxEMA": true}', "weightedMaxEMA is True, not a number"),
        (bundle_stats_from_json, "nonsense", "bundle stats is no JSON"),
        (bundle_stats_from_json, '{"msgRateIn": []}', r"msgRateIn is \[\], not a number"),
    ],
)
def test_what_is_no_report_is_refused(read: Any, text: str, sentence: str) -> None:
    """The sentence names the figure and its value."""
    with pytest.raises(InputError, match=sentence):
        read(text)
