"""Load reports as Pulsar writes them, and how samples become the next one."""

from __future__ import annotations

import json
import math
import struct
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from lookup.errors import InputError
from lookup.model import (
    BrokerLoadData,
    LoadSample,
    NamespaceBundleStats,
    ResourceUsage,
    ResourceWeights,
    SystemResourceUsage,
    updated_load,
)
from lookup.model.load_data import broker_load_from_json, broker_load_to_json, bundle_stats_from_json, smoothed
from tests.model.records import JSON, either, records
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
        (broker_load_from_json, "{", "broker load data is no JSON"),
        (broker_load_from_json, "[]", "broker load data is no JSON object but list"),
        (broker_load_from_json, '{"topics": "7"}', "topics is '7', not a whole number of at most 64 bits"),
        (broker_load_from_json, '{"topics": 7.5}', "topics is 7.5, not a whole number"),
        (broker_load_from_json, '{"cpu": 5}', "cpu is 5, not an object"),
        (broker_load_from_json, '{"cpu": []}', r"cpu is \[\], not an object"),
        (broker_load_from_json, '{"bandwidthIn": {"usage": "x"}}', r"bandwidthIn\.usage is 'x', not a number"),
        (broker_load_from_json, '{"memory": {"limit": NaN}}', r"memory\.limit is nan, not a finite number"),
        (broker_load_from_json, '{"weightedMaxEMA": true}', "weightedMaxEMA is True, not a number"),
        (bundle_stats_from_json, "nonsense", "bundle stats is no JSON"),
        (bundle_stats_from_json, '{"msgRateIn": []}', r"msgRateIn is \[\], not a number"),
        (bundle_stats_from_json, '{"msgRateIn": 1e999}', "msgRateIn is inf, not a finite number"),
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


@given(_FIGURES, st.integers(0, 2**62))
def test_a_report_survives_its_json(figure: float, count: int) -> None:
    """Every figure to the last bit."""
    data = BrokerLoadData(
        cpu=ResourceUsage(figure, figure + 1), weighted_max_ema=figure, topics=count, updated_at=count, reported_at=1
    )

    assert broker_load_from_json(broker_load_to_json(data)) == data


def _float32(value: float) -> float:
    return float(struct.unpack("f", struct.pack("f", value))[0])


@given(st.floats(0, 1e30), st.floats(1e-6, 1e30))
def test_percentages_are_those_of_32_bits(usage: float, limit: float) -> None:
    """Rounded after each step."""
    ratio = _float32(_float32(usage) / _float32(limit))
    wanted = ratio * 100 if ratio * 100 > 3e38 else _float32(ratio * 100)

    assert ResourceUsage(usage, limit).percent_usage == pytest.approx(wanted, rel=1e-15)


@pytest.mark.parametrize(("usage", "limit"), [(5, 0), (5, -1), (0, 0), (0, 100)])
def test_without_limit_or_usage_nothing_is_used(usage: float, limit: float) -> None:
    """Whatever the other is."""
    assert ResourceUsage(usage, limit).percent_usage == 0.0


def test_percentages_are_neither_clamped_nor_refused() -> None:
    """Above the limit is above 100, beyond 32 bits is infinite."""
    assert ResourceUsage(300, 100).percent_usage == 300.0
    assert ResourceUsage(1e300, 1).percent_usage == math.inf


@pytest.mark.parametrize(
    ("one", "other", "sign"),
    [
        ({"msg_throughput_in": 50_000}, {"msg_throughput_in": 49_999}, 1),
        ({"msg_throughput_in": 149_999}, {"msg_throughput_in": 50_000}, 0),
        ({"msg_throughput_in": 50_000}, {"msg_throughput_out": 1e12}, 1),
        ({"msg_throughput_out": 50_000}, {"msg_rate_in": 1e9}, 1),
        ({"msg_rate_in": 25, "msg_rate_out": 25}, {"topics": 10**6}, 1),
        ({"topics": 499}, {"cache_size": 10**6}, -1),
        ({"topics": 1, "consumer_count": 250, "producer_count": 249}, {"topics": 499}, 1),
        ({"cache_size": 199_999}, {"cache_size": 100_000}, 0),
    ],
)
def test_bundles_are_ordered_by_steps(one: dict[str, float], other: dict[str, float], sign: int) -> None:
    """Inbound throughput first, then outbound, rate, what is connected, what is cached."""
    assert NamespaceBundleStats(**one).compare(NamespaceBundleStats(**other)) == sign  # type: ignore[arg-type]  # counts are whole
    assert NamespaceBundleStats(**other).compare(NamespaceBundleStats(**one)) == -sign  # type: ignore[arg-type]  # likewise


@given(_STATS, _STATS, _STATS)
def test_the_order_of_bundles_is_one(
    one: NamespaceBundleStats, two: NamespaceBundleStats, three: NamespaceBundleStats
) -> None:
    """Transitive, so that sorting never fails as it did in Pulsar's issue 24754."""
    ordered = sorted((one, two, three), key=lambda stats: stats.rank)

    assert ordered[0].compare(ordered[1]) <= 0
    assert ordered[1].compare(ordered[2]) <= 0
    assert ordered[0].compare(ordered[2]) <= 0


_MEASURED = st.floats(0, 1e9)
_USAGES = st.builds(ResourceUsage, _MEASURED, st.floats(1, 1e9))
_SAMPLES = st.builds(
    LoadSample,
    usage=st.builds(SystemResourceUsage, *[_USAGES] * 5),
    msg_throughput_in=_MEASURED,
    msg_throughput_out=_MEASURED,
    bundle_count=st.integers(0, 1000),
)


def _percent(**used: float) -> LoadSample:
    return LoadSample(usage=SystemResourceUsage(**{name: ResourceUsage(value, 100) for name, value in used.items()}))


def test_memory_is_left_out_of_the_largest_usage() -> None:
    """It counts in the weighted one, by its weight, which is 0 unless somebody sets it."""
    usage = _percent(memory=90, cpu=10).usage

    assert usage.max_usage == pytest.approx(0.1, rel=1e-6)
    assert usage.weighted_usage(ResourceWeights()) == pytest.approx(0.1, rel=1e-6)
    assert usage.weighted_usage(ResourceWeights(memory=0.5)) == pytest.approx(0.45, rel=1e-6)


@pytest.mark.parametrize("name", ["cpu", "direct_memory", "bandwidth_in", "bandwidth_out"])
def test_every_other_resource_counts(name: str) -> None:
    """In both, by its own weight."""
    usage = _percent(**{name: 50}).usage

    assert usage.max_usage == 0.5
    assert usage.weighted_usage(replace(ResourceWeights(), **{name: 0.5})) == 0.25


def test_the_first_sample_starts_the_averages() -> None:
    """The 1.0 of a broker that never reported does not count."""
    first = updated_load(BrokerLoadData(), replace(_percent(cpu=50), msg_throughput_in=8.0), 7)

    assert (first.weighted_max_ema, first.msg_throughput_ema) == (0.5, 8.0)
    assert (first.updated_at, first.reported_at) == (7, 0)


def test_later_samples_are_mixed_in() -> None:
    """By the share of history."""
    weights = ResourceWeights(history=0.75)
    first = updated_load(BrokerLoadData(), replace(_percent(cpu=50), msg_throughput_in=8.0), 7, weights=weights)
    second = updated_load(first, replace(_percent(cpu=100), msg_throughput_out=16.0), 8, weights=weights)

    assert (second.weighted_max_ema, second.msg_throughput_ema) == (0.625, 10.0)
    assert (second.max_resource_usage, second.msg_throughput_in, second.updated_at) == (1.0, 0.0, 8)


@given(st.lists(_SAMPLES, min_size=1, max_size=5), st.floats(0, 1))
def test_averages_stay_among_the_samples(samples: list[LoadSample], history: float) -> None:
    """Whatever the share of history; raw figures are those of the last sample, and nothing is reported."""
    weights, data = ResourceWeights(history=history), BrokerLoadData()
    for now_ms, sample in enumerate(samples, start=1):
        data = updated_load(data, sample, now_ms, weights=weights)

    seen = [sample.usage.weighted_usage(weights) for sample in samples]
    assert min(seen) * (1 - 1e-9) <= data.weighted_max_ema <= max(seen) * (1 + 1e-9)
    assert (data.cpu, data.bundle_count) == (samples[-1].usage.cpu, samples[-1].bundle_count)
    assert (data.reported_at, data.updated_at) == (0, len(samples))


def test_without_history_the_average_is_the_last_value() -> None:
    """To the last bit, and infinities do not spoil it."""
    assert smoothed(float("inf"), 0.3, 0.0) == 0.3
    assert smoothed(0.1, 0.3, 1.0) == 0.1


def test_usage_prints_as_pulsar_logs_it() -> None:
    """Two decimals, halves up."""
    usage = SystemResourceUsage(cpu=ResourceUsage(0.125, 100), memory=ResourceUsage(30, 100))

    assert str(usage) == ("cpu: 0.13%, memory: 30.00%, directMemory: 0.00%, bandwidthIn: 0.00%, bandwidthOut: 0.00%")
