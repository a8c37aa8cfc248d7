"""How samples become load reports."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lookup.model import BrokerLoadData, LoadSample, ResourceUsage, ResourceWeights, SystemResourceUsage, updated_load
from lookup.model.load_data import smoothed

_FIGURES = st.floats(0, 1e9)
_USAGES = st.builds(ResourceUsage, _FIGURES, st.floats(1, 1e9))
_SAMPLES = st.builds(
    LoadSample,
    usage=st.builds(SystemResourceUsage, *[_USAGES] * 5),
    msg_throughput_in=_FIGURES,
    msg_throughput_out=_FIGURES,
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
