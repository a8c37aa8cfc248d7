"""Load reports as Pulsar writes them."""

from __future__ import annotations

import json
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from lookup.errors import InputError
from lookup.model import BrokerLoadData, NamespaceBundleStats, ResourceUsage
from lookup.model.load_data import broker_load_from_json, bundle_stats_from_json
from tests.model.records import JSON, either, records


def test_a_broker_report_is_read() -> None:
    """Under Pulsar's names, resources within."""
    text = json.dumps(
        {
            "cpu": {"usage": 40.0, "limit": 100.0},
            "directMemory": {"usage": 5, "limit": None},
            "msgThroughputIn": 12,
            "weightedMaxEMA": 0.4,
            "maxResourceUsage": 0.5,
            "topics": 7.0,
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
        (broker_load_from_json, "{", "data is not JSON"),
        (broker_load_from_json, "[]", "not a JSON object but list"),
        (broker_load_from_json, '{"topics": "7"}', "topics is '7', "),
        (broker_load_from_json, '{"topics": 7.5}', "topics is 7.5, not a whole number"),
        (broker_load_from_json, '{"cpu": 5}', "cpu is 5, not an object"),
        (broker_load_from_json, '{"cpu": []}', r"cpu is \[\], not an object"),
        (broker_load_from_json, '{"bandwidthIn": {"usage": "x"}}', r"bandwidthIn\.usage is 'x', "),
        (broker_load_from_json, '{"memory": {"limit": NaN}}', r"memory\.limit is nan, "),
        (broker_load_from_json, '{"weightedMaxEMA": true}', "weightedMaxEMA is True, not a number"),
        (bundle_stats_from_json, "nonsense", "bundle stats is not JSON"),
        (bundle_stats_from_json, '{"msgRateIn": []}', r"msgRateIn is \[\], not a number"),
        (bundle_stats_from_json, '{"msgRateIn": 1e999}', "msgRateIn is inf, "),
    ],
)
def test_what_is_no_report_is_refused(read: Any, text: str, sentence: str) -> None:
    """The sentence names the figure and its value."""
    with pytest.raises(InputError, match=sentence):
        read(text)


@given(JSON | records(BrokerLoadData, NamespaceBundleStats, ResourceUsage))
def test_no_json_is_worse_than_refused(value: Any) -> None:
    """Whatever the text holds, a report comes out or an `InputError`; a report has finite figures only."""
    report = either(broker_load_from_json, json.dumps(value))
    either(bundle_stats_from_json, json.dumps(value))

    assert report is None or np.isfinite([report.msg_rate_in, report.cpu.usage, report.weighted_max_ema]).all()


_FIGURES = st.floats(0, 1e12)
_COUNTS = st.integers(0, 10**9)
_STATS = st.builds(NamespaceBundleStats, _FIGURES, _FIGURES, _FIGURES, _FIGURES, _COUNTS, _COUNTS, _COUNTS, _COUNTS)


@given(_STATS, _STATS, _STATS)
def test_the_order_of_bundles_is_one(
    one: NamespaceBundleStats, two: NamespaceBundleStats, three: NamespaceBundleStats
) -> None:
    """Transitive, so that sorting never fails as it did in Pulsar's issue 24754."""
    ordered = sorted((one, two, three), key=lambda stats: stats.rank)

    assert ordered[0].rank <= ordered[1].rank <= ordered[2].rank
