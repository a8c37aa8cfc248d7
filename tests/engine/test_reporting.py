"""When load is published, and what others see meanwhile: a whole cluster against one reporter per broker."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from lookup.engine.reporting import Cadence, Measured, Published, ReportBoard
from lookup.model import Load, ResourceUsage
from tests.engine.reporter import LoadReporter, LoadSample, ResourceWeights, SystemResourceUsage

_S = 1_000_000
_START_US = 1_700_000_000 * _S
_COLUMNS = ("usage", "max_usage", "throughput", "rate", "throughput_ema", "topics", "reported_us")

#: Usage in 64ths, exact in 32 bits, and traffic, bundles, topics of one broker; None where it is not there.
_BROKER = st.none() | st.tuples(*[st.integers(0, 40)] * 4) | st.tuples(*[st.integers(37, 42)] * 4)
_TICKS = st.lists(st.tuples(_BROKER, _BROKER), min_size=1, max_size=12)
_CADENCES = st.builds(Cadence, st.sampled_from([5_000, 60_000, 70_000]), st.sampled_from([0, 30_000, 900_000]))


def _measured(*brokers: tuple[int, ...] | None) -> Measured:
    usage, traffic, bundles, topics = (
        [np.nan if broker is None else broker[place] for broker in brokers] for place in range(4)
    )
    counts = np.nan_to_num([bundles, topics]).astype(np.int64)
    load = np.array(traffic, dtype=np.float64)
    return Measured(np.array(usage, dtype=np.float64) / 64, load, load, counts[0], counts[1])


class _Plain:
    """The same cluster, broker by broker and sample by sample."""

    def __init__(self, cadence: Cadence, history: float) -> None:
        self._cadence, self._weights = cadence, ResourceWeights(history=history)
        self._reporters: dict[int, LoadReporter] = {}
        self._now: tuple[tuple[int, ...] | None, ...] = ()
        self._next_us = _START_US

    def measure(self, brokers: tuple[tuple[int, ...] | None, ...], now_us: int) -> None:
        while self._next_us < now_us:
            self._sample()
        self._now = brokers
        self._reporters = {n: one for n, one in self._reporters.items() if brokers[n] is not None}
        if self._next_us == now_us:
            self._sample()

    def _sample(self) -> None:
        for number, broker in enumerate(self._now):
            if broker is not None:
                fresh = LoadReporter(self._cadence, self._weights)
                self._reporters.setdefault(number, fresh).take(_sample(*broker), self._next_us // 1000)
        self._next_us += self._cadence.min_interval_ms * 1000

    def row(self, number: int) -> list[float]:
        """Return a broker's row of the board."""
        if number not in self._reporters:
            return [np.nan, np.nan, np.nan, np.nan, np.nan, 0, 0]
        seen = self._reporters[number].published
        return [
            seen.weighted_max_ema,
            seen.max_resource_usage,
            seen.msg_throughput,
            seen.msg_rate,
            seen.msg_throughput_ema,
            seen.topics,
            seen.reported_at * 1000,
        ]


def _sample(usage: int, traffic: int, bundles: int, topics: int) -> LoadSample:
    system = SystemResourceUsage(cpu=ResourceUsage(usage, 64))
    return LoadSample(system, msg_throughput_in=traffic, msg_rate_out=traffic, bundle_count=bundles, topics=topics)


def _row(board: Published, number: int) -> list[float]:
    return [float(getattr(board, name)[number]) for name in _COLUMNS]


@given(_TICKS, _CADENCES, st.sampled_from([0.0, 0.5, 0.9]), st.sampled_from([5, 60, 61, 1000]))
def test_the_board_shows_what_each_broker_would_publish(
    ticks: list[tuple[tuple[int, ...] | None, ...]], cadence: Cadence, history: float, tick_s: int
) -> None:
    """At every instant, whatever comes and goes."""
    board, plain = ReportBoard(2, _START_US, replace(cadence, history=history)), _Plain(cadence, history)
    for number, brokers in enumerate(ticks):
        now_us = _START_US + number * tick_s * _S
        shown = board.measure(_measured(*brokers), now_us)
        plain.measure(brokers, now_us)

        for broker in range(2):
            assert _row(shown, broker) == pytest.approx(plain.row(broker), rel=1e-9, abs=1e-9, nan_ok=True)


def test_usage_may_be_unknown() -> None:
    """The rest is reported all the same."""
    board = ReportBoard(1, _START_US)
    unknown = Measured(np.array([np.nan]), np.array([5.0]), np.array([5.0]), np.array([1]), np.array([2]))

    shown = board.measure(unknown, _START_US)

    assert np.isnan(shown.usage[0])
    assert (shown.throughput[0], shown.throughput_ema[0], shown.topics[0]) == (5.0, 5.0, 2)


def test_before_the_first_sample_nobody_reports() -> None:
    """Also where brokers are there."""
    shown = ReportBoard(1, _START_US + 1).measure(_measured((1, 1, 1, 1)), _START_US)

    assert np.isnan(shown.throughput[0])
    assert shown.reported_us[0] == 0


def test_a_broker_that_left_meanwhile_starts_afresh() -> None:
    """Nobody sees its old report again, nor its old average, though it is back before it is measured."""
    board = ReportBoard(2, _START_US)
    board.measure(_measured((0, 10, 1, 1), (0, 10, 1, 1)), _START_US)

    board.leave(np.array([True, False]), _START_US + 7 * _S)
    gone = board.published
    shown = board.measure(_measured((64, 10, 1, 1), (64, 10, 1, 1)), _START_US + 60 * _S)

    assert np.isnan(gone.throughput[0])
    assert gone.throughput[1] == 10.0
    assert shown.usage.round(6).tolist() == [1.0, 0.1]


def _figures(usage: list[float], rate: list[float] | None = None) -> Load:
    known = np.array(usage)
    rates = None if rate is None else np.array(rate)
    topics = np.array([3, 4])
    return Load(known, known * 10.0, topics, [(), ()], {"rack": {"a": 1.0}}, rates=rates)


def test_the_view_shows_what_was_published() -> None:
    """Usage smoothed and as measured, throughput likewise, topics, rates and when it was measured."""
    board, none = ReportBoard(2, _START_US, Cadence(history=0.5)), np.zeros(2, dtype=np.int64)
    board.shown(_figures([0.2, 0.2], [1.0, 1.0]), none, _START_US)
    seen = board.shown(_figures([0.6, 0.21], [1.0, 1.01]), none, _START_US + 5 * _S)

    assert seen.usage.tolist() == pytest.approx([0.4, 0.2])
    assert seen.max_usage is not None
    assert seen.max_usage.tolist() == [0.6, 0.2]
    assert seen.throughput.tolist() == [6.0, 2.0]
    assert seen.smoothed_throughput is not None
    assert seen.smoothed_throughput.tolist() == pytest.approx([4.0, 2.0])
    assert seen.updated_us is not None
    assert seen.updated_us.tolist() == [_START_US + 5 * _S, _START_US]
    assert seen.rates is not None
    assert seen.rates.tolist() == [1.0, 1.0]
    assert (seen.topics.tolist(), seen.demand) == ([3, 4], {"rack": {"a": 1.0}})
