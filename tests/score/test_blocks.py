"""Blocks of neighbouring cells: how long a series asks for them to be, and their sums."""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import fft

from lookup.score.blocks import block_length, in_blocks

SERIES = st.lists(st.floats(-1e6, 1e6), min_size=1, max_size=60).map(lambda values: np.array(values, dtype=np.float64))


def noise(rng: np.random.Generator, hours: int = 120) -> np.ndarray:
    """Draw hours that know nothing of each other."""
    return rng.normal(size=hours)


def persistent(rng: np.random.Generator, hours: int = 120, kept: float = 0.8) -> np.ndarray:
    """Draw hours each of which keeps a share of the one before."""
    shocks = rng.normal(size=hours)
    series = np.zeros(hours)
    for hour in range(1, hours):
        series[hour] = kept * series[hour - 1] + shocks[hour]
    return series


def politis_white(series: np.ndarray) -> float:
    """Return the length of circular blocks as it is published, step by step (Patton, Politis and White 2009)."""
    n, centred = len(series), series - np.mean(series)
    run = max(5, math.ceil(math.sqrt(math.log10(n))))
    most = math.ceil(math.sqrt(n)) + run

    def covariance(lag: int) -> float:
        return float(sum(centred[t] * centred[t + lag] for t in range(n - lag))) / n

    large = [
        lag
        for lag in range(1, most + run + 1)
        if abs(covariance(lag)) >= 2 * math.sqrt(math.log10(n) / n) * covariance(0)
    ]
    quiet = [m for m in range(most) if not set(range(m + 1, m + run + 1)) & set(large)]
    last = quiet[0] if quiet else max(large)
    width = min(2 * last, most + run)
    density, slope = covariance(0), 0.0
    for lag in range(1, width + 1):
        window = min(1.0, 2 * (1 - lag / width))
        density += 2 * window * covariance(lag)
        slope += 2 * window * lag * covariance(lag)
    if not last:
        return 1.0
    return float((2 * slope**2 / (4 / 3 * density**2)) ** (1 / 3) * n ** (1 / 3)) if density > 0 else float(n)


def drifts(series: np.ndarray) -> bool:
    """Return whether the two slowest waves have three times the power of the six that follow."""
    power = fft.dct(series, type=2)[1:9] ** 2
    return bool(power[:2].mean() > 3 * power[2:].mean())


def lengths(draw: Callable[[np.random.Generator], np.ndarray], least: int = 1) -> list[tuple[int, bool]]:
    """Return what is answered of 200 series."""
    rng = np.random.default_rng(3)
    return [block_length(draw(rng), least) for _ in range(200)]


class TestLength:
    """How many neighbours are one observation."""

    def test_of_noise_a_sixth_of_the_series_is_enough(self) -> None:
        """More blocks than six are never made, and for most series no fewer; few are said to be too short."""
        found = lengths(noise)

        assert np.median([length for length, _ in found]) == 20
        assert min(length for length, _ in found) == 20
        assert np.mean([is_short for _, is_short in found]) <= 0.08

    def test_of_hours_that_keep_something_of_the_last_it_is_longer(self) -> None:
        """Many of these series ask for more than there is, and few series of noise do."""
        kept, without = lengths(lambda rng: persistent(rng, 60, 0.9)), lengths(lambda rng: noise(rng, 60))

        assert np.mean([length for length, _ in kept]) > 1.3 * np.mean([length for length, _ in without])
        assert np.mean([is_short for _, is_short in kept]) > 0.2 > 0.1 > np.mean([is_short for _, is_short in without])

    @pytest.mark.parametrize(("hours", "kept"), [(60, 0.8), (120, 0.8), (168, 0.9)])
    def test_without_a_drift_it_is_twice_that_of_politis_and_white(self, hours: int, kept: float) -> None:
        """Of series that ask for it, between a sixth and a third of the series."""
        rng, between = np.random.default_rng(5), 0
        for series in (persistent(rng, hours, kept) for _ in range(100)):
            if drifts(series):
                continue
            wanted = math.ceil(2 * politis_white(series))
            expected = min(hours // 3, max(math.ceil(hours / 6), wanted))
            between += hours / 6 < expected < hours // 3
            assert block_length(series, 1) == (expected, 2 * politis_white(series) > hours // 3)

        assert between

    @pytest.mark.parametrize("hours", [24, 60, 61, 168])
    @pytest.mark.parametrize("waves", [1, 2])
    def test_of_a_slow_wave_it_is_the_longest(self, hours: int, waves: int) -> None:
        """Half a wave over all of the series, or a whole one, is a drift: a third of the series is one block."""
        wave = np.cos(np.pi * waves * (np.arange(hours) + 0.5) / hours)

        assert block_length(wave, 1) == (hours // 3, True)

    @pytest.mark.parametrize(
        ("slow", "length", "is_short"),
        [(1.0, 10, False), (1.7, 10, False), (1.8, 20, False), (3.1, 20, False), (3.2, 20, True)],
    )
    def test_a_drift_has_many_times_the_power_of_faster_waves(self, slow: float, length: int, is_short: bool) -> None:
        """Of equal waves the two slowest are made larger: that of three makes blocks long, that of ten too short."""
        waves = np.arange(1, 60)
        signs = np.random.default_rng(1).choice([-1.0, 1.0], 59) * np.where(waves <= 2, slow, 1.0)
        series = signs @ np.cos(np.pi * waves[:, None] * (np.arange(60) + 0.5) / 60)

        assert block_length(series, 1) == (length, is_short)

    @pytest.mark.parametrize(("least", "expected"), [(1, 10), (10, 10), (11, 11), (20, 20), (30, 30), (60, 60)])
    def test_it_is_no_less_than_configured(self, least: int, expected: int) -> None:
        """Even if fewer than three blocks remain then."""
        assert block_length(np.zeros(60), least) == (expected, False)

    @pytest.mark.parametrize(
        ("hours", "expected"),
        [(1, (1, False)), (3, (1, False)), (6, (1, False)), (7, (2, False)), (12, (2, False)), (13, (3, False))],
    )
    def test_series_of_few_cells(self, hours: int, expected: tuple[int, bool]) -> None:
        """A block has a sixth of the cells, and one at least."""
        assert block_length(np.zeros(hours), 1) == expected

    @given(SERIES, st.data())
    def test_it_lies_between_what_is_configured_and_a_third(self, series: np.ndarray, data: st.DataObject) -> None:
        """Whatever the series, unless more is configured; where it is too short it is the longest."""
        least = data.draw(st.integers(1, len(series)))
        length, is_short = block_length(series, least)

        longest = max(least, len(series) // 3)
        assert least <= length <= longest
        assert length >= min(longest, math.ceil(len(series) / 6))
        assert length == longest or not is_short

    @given(st.integers(0, 1000), st.sampled_from([1e-6, 0.5, 3.0, 1e6]))
    def test_the_unit_does_not_matter(self, seed: int, scale: float) -> None:
        """Nor does it matter which way is up."""
        series = persistent(np.random.default_rng(seed), 48)

        assert block_length(series, 1) == block_length(scale * series, 1) == block_length(-series, 1)

    def test_where_zero_is_does_not_matter(self) -> None:
        """A constant is no wave."""
        series = persistent(np.random.default_rng(4), 48)

        assert block_length(series, 1) == block_length(series + 100.0, 1)


class TestSums:
    """Sums of neighbours, from every cell on."""

    @given(SERIES, st.data())
    def test_every_cell_is_in_as_many_blocks(self, series: np.ndarray, data: st.DataObject) -> None:
        """As many as a block has cells, so that the sums add up to that many times the series."""
        block = data.draw(st.integers(1, len(series)))
        blocks = in_blocks(series[None, :], block)

        assert blocks.shape == (1, len(series))
        slow = [sum(series[(start + step) % len(series)] for step in range(block)) for start in range(len(series))]
        assert blocks[0] == pytest.approx(slow, abs=1e-6)
