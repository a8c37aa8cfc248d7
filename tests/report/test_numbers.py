"""Numbers as people read them."""

from __future__ import annotations

import math

import pytest

from lookup.report.numbers import interval_text, number_text, signed_text, value_text


@pytest.mark.parametrize(
    ("value", "unit", "text"),
    [
        (0.81234567, "ratio", "0.8123"),
        (1.0, "ratio", "1.0000"),
        (-0.00001, "ratio", "0.0000"),
        (1234567.0, "moves", "1,234,567"),
        (0.0, "moves", "0"),
        (3.25, "moves", "3.2"),
        (1234.4, "decisions", "1,234"),
        (-0.01, "moves", "0.0"),
        (30.0, "ms", "30"),
        (0.0512345, "ms", "0.05123"),
        (123456.7, "weight/s", "123,457"),
        (math.nan, "ms", "–"),
        (math.inf, "ratio", "–"),
    ],
)
def test_values(value: float, unit: str, text: str) -> None:
    """Ratios have four decimals, counts none, others about four digits, nothing is a dash."""
    assert value_text(value, unit) == text


@pytest.mark.parametrize(
    ("value", "text"),
    [(0.1, "+0.1000"), (-0.1, "-0.1000"), (0.0, "0.0000"), (1e-9, "0.0000"), (math.nan, "–"), (math.inf, "–")],
)
def test_differences_have_a_sign(value: float, text: str) -> None:
    """Zero, also after rounding, and nothing have none."""
    assert signed_text(value, "ratio") == text


def test_large_differences_have_a_sign() -> None:
    """Thousands are apart there too."""
    assert signed_text(12345.0, "moves") == "+12,345"


def test_intervals() -> None:
    """Both ends in the metric's digits, a dash for none."""
    assert interval_text(0.1, 0.25, "ratio") == "[0.1000, 0.2500]"
    assert interval_text(math.nan, math.nan, "ratio") == "–"


def test_numbers() -> None:
    """Without a unit."""
    assert number_text(math.nan) == "–"
    assert number_text(0.1 + 0.2) == "0.3"
