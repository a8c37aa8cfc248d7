"""When load is published, and what others see meanwhile."""

from __future__ import annotations

import math
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lookup.engine.reporting import Cadence, largest_change, percent_change
from lookup.model import BrokerLoadData, LoadSample, ResourceUsage, ResourceWeights, SystemResourceUsage
from tests.engine.reporter import LoadReporter

_MINUTE = 60_000
_USAGES = st.lists(st.floats(0, 200), min_size=1, max_size=40)


def _sample(cpu: float, bundles: int = 10) -> LoadSample:
    return LoadSample(usage=SystemResourceUsage(cpu=ResourceUsage(cpu, 100)), bundle_count=bundles)


@pytest.mark.parametrize(
    ("old", "new", "percent"), [(0, 0, 0.0), (0, 5, math.inf), (50, 0, 100.0), (50, 75, 50.0), (50, 25, 50.0)]
)
def test_changes_are_relative_to_what_was_published(old: float, new: float, percent: float) -> None:
    """From nothing to something is infinite."""
    assert percent_change(old, new) == percent


@pytest.mark.parametrize(
    ("changed", "percent"),
    [
        ({}, 0.0),
        ({"max_resource_usage": 0.75}, 25.0),
        ({"msg_rate_in": 150.0}, 25.0),
        ({"msg_rate_in": 0.0, "msg_rate_out": 200.0}, 0.0),
        ({"msg_throughput_out": 80.0}, 10.0),
        ({"bundle_count": 12}, 20.0),
        ({"topics": 10**6, "weighted_max_ema": 0.0, "msg_throughput_ema": 0.0}, 0.0),
    ],
)
def test_four_figures_count(changed: dict[str, float], percent: float) -> None:
    """Usage by points, the other three relative, in and out together; averages and topics do not count."""
    before = BrokerLoadData(
        max_resource_usage=0.5,
        msg_rate_in=100.0,
        msg_rate_out=100.0,
        msg_throughput_in=100.0,
        msg_throughput_out=100.0,
        bundle_count=10,
    )

    assert largest_change(before, replace(before, **changed)) == percent  # type: ignore[arg-type]  # counts are whole


@pytest.mark.parametrize(
    ("rate", "now_ms", "forced", "why"),
    [
        (100.0, 5_000, False, None),
        (110.0, 5_000, False, None),
        (111.0, 5_000, False, "change"),
        (100.0, 15 * _MINUTE, False, None),
        (100.0, 15 * _MINUTE + 1, False, "interval"),
        (100.0, 0, True, "forced"),
    ],
)
def test_reports_are_published_strictly_beyond_the_limits(
    rate: float, now_ms: int, why: str | None, *, forced: bool
) -> None:
    """Ten percent and fifteen minutes are not yet enough."""
    published, current = (BrokerLoadData(msg_rate_in=value) for value in (100.0, rate))

    assert Cadence().reason(published, current, now_ms, forced=forced) == why


def test_others_see_what_was_published_last() -> None:
    """The broker's own average moves with every sample, that of its report stands still."""
    reporter = LoadReporter(weights=ResourceWeights(history=0.5))
    now_ms = 100 * _MINUTE

    assert reporter.take(_sample(50), now_ms) == "interval"
    assert reporter.take(_sample(58), now_ms + 5_000) is None
    assert reporter.published.weighted_max_ema == 0.5
    assert reporter.current.weighted_max_ema == pytest.approx(0.54)
    assert reporter.published.reported_at == reporter.current.reported_at == now_ms

    assert reporter.take(_sample(62), now_ms + 10_000) == "change"
    assert reporter.published == reporter.current
    assert reporter.published.weighted_max_ema == pytest.approx(0.58)


def test_a_quiet_broker_is_seen_as_it_was_up_to_a_quarter_of_an_hour_ago() -> None:
    """Then it publishes whatever changed."""
    reporter = LoadReporter()
    start = 100 * _MINUTE
    reasons = [reporter.take(_sample(50 + minute / 10), start + minute * _MINUTE) for minute in range(17)]

    assert reasons == ["interval", *[None] * 15, "interval"]


def test_a_broker_that_never_published_looks_full() -> None:
    """Until its first report."""
    assert LoadReporter().published.weighted_max_ema == 1.0


@given(_USAGES, st.integers(1_000, 600_000))
def test_what_others_see_is_never_far_off(usages: list[float], interval_ms: int) -> None:
    """After each sample the published figures are within the threshold, or they are the current ones."""
    reporter, now_ms = LoadReporter(), 100 * _MINUTE
    for usage in usages:
        why = reporter.take(_sample(usage), now_ms)

        assert largest_change(reporter.published, reporter.current) <= reporter.cadence.change_percent
        assert now_ms - reporter.published.reported_at <= reporter.cadence.max_interval_ms
        assert (why is None) or reporter.published == reporter.current
        now_ms += interval_ms


@given(_USAGES)
def test_publishing_does_not_change_the_averages(usages: list[float]) -> None:
    """A broker forced to report at every sample has the same figures."""
    quiet, loud = LoadReporter(), LoadReporter()
    for now_ms, usage in enumerate(usages, start=1):
        quiet.take(_sample(usage), now_ms)
        loud.take(_sample(usage), now_ms, forced=True)

    assert quiet.current.weighted_max_ema == loud.published.weighted_max_ema
