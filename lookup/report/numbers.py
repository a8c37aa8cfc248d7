"""Numbers as people read them: as many digits as mean something, thousands apart, a dash where there is nothing."""

from __future__ import annotations

import math

__all__ = ["NOTHING", "interval_text", "number_text", "signed_text", "value_text"]

#: Stands for a figure that could not be computed.
NOTHING = "–"
_COUNTED = ("decisions", "moves", "lookups")


def value_text(value: float, unit: str) -> str:
    """Write a metric's value without its unit: ratios with four decimals, counts whole, others with four digits."""
    if not math.isfinite(value):
        return NOTHING
    if unit == "ratio":
        return _unsigned_zero(f"{value:.4f}")
    if unit in _COUNTED:
        # means over seeds need not be whole
        return _unsigned_zero(f"{value:,.0f}" if value == round(value) or abs(value) >= 10 else f"{value:.1f}")
    return number_text(value)


def number_text(value: float) -> str:
    """Write a number with about four digits.

    Example:
        >>> number_text(1234567.8), number_text(12.3456), number_text(0.00012345)
        ('1,234,568', '12.35', '0.0001234')
    """
    if not math.isfinite(value):
        return NOTHING
    if abs(value) >= 1000:
        return f"{value:,.0f}"
    return f"{value:.4g}"


def signed_text(value: float, unit: str) -> str:
    """Write a difference with its sign."""
    text = value_text(value, unit)
    return f"+{text}" if value > 0 and text != NOTHING and float(text.replace(",", "")) > 0 else text


def interval_text(low: float, high: float, unit: str) -> str:
    """Write an interval, a dash where there is none."""
    if math.isnan(low):
        return NOTHING
    return f"[{value_text(low, unit)}, {value_text(high, unit)}]"


def _unsigned_zero(text: str) -> str:
    return text if float(text.replace(",", "")) else text.removeprefix("-")
