"""Write numbers as text, whole values for tables, few digits for sentences."""

from __future__ import annotations

import math
from collections.abc import Mapping

from lookup.score.figures import Figure

__all__ = [
    "ARROWS", "NOTHING", "amount_text", "change_text", "difference_text", "interval_text", "is_share", "number_text",
    "rounded_text", "signed_text", "size_text", "span_text", "value_text",
]  # fmt: skip

#: Placeholder for a figure that could not be computed.
NOTHING = "–"
#: Arrows by the direction that is better.
ARROWS: Mapping[str, str] = {"up": "↑", "down": "↓", "info": " "}
#: Numbers from here on are written in millions.
_LARGE = 1e8
#: A value that grows to this multiple is written as a multiple.
_MULTIPLE = 1.5
#: Differences below this come from rounding, 5e-17 between two means of 0.3.
_ROUNDING = 1e-12
#: Metrics whose values are shares of a whole, which people read in percent.
_SHARES = frozenset(
    {"agreement_ratio", "answered_ratio", "isolation_ratio", "match_ratio", "network_covered_ratio", "overload_ratio"}
)
#: The metric that is a ratio to the mean.
_TO_MEAN = "imbalance_max_mean"
#: Units that the name of a figure contains already.
_COUNTS = frozenset({"decisions", "moves", "unloads", "lookups"})


def value_text(value: float, unit: str) -> str:
    """Write a value without its unit. Ratios have four decimals, counts are whole, and others have four digits."""
    if not math.isfinite(value):
        return NOTHING
    if unit == "ratio":
        return _drop_sign_of_zero(f"{value:.4f}")
    if unit in _COUNTS:
        # Means over seeds need not be whole.
        return _drop_sign_of_zero(f"{value:,.0f}" if value == round(value) or abs(value) >= 10 else f"{value:.1f}")
    return number_text(value)


def number_text(value: float) -> str:
    """Write a number with about four digits, large ones in millions.

    Example:
        >>> number_text(1.82e9), number_text(1234567.8), number_text(12.3456), number_text(-5.6e-17)
        ('1,820 M', '1,234,568', '12.35', '0')
    """
    if not math.isfinite(value):
        return NOTHING
    if abs(value) >= _LARGE:
        return f"{value / 1e6:,.0f} M"
    if abs(value) >= 1000:
        return f"{value:,.0f}"
    return f"{value:.4g}" if abs(value) >= _ROUNDING else "0"


def signed_text(value: float, unit: str) -> str:
    """Write a change with its sign."""
    text = value_text(value, unit)
    return f"+{text}" if value > 0 and text != NOTHING and text.strip("0.") else text


def interval_text(low: float, high: float, unit: str) -> str:
    """Write an interval, a dash if there is none."""
    return NOTHING if math.isnan(low) else f"[{value_text(low, unit)}, {value_text(high, unit)}]"


def is_share(figure: Figure) -> bool:
    """Check whether a figure is a share of a whole."""
    return figure.metric in _SHARES


def amount_text(value: float, figure: Figure) -> str:
    """Write a value with its unit in three digits, a share in percent: 34.2 %, 99.98 %, 442, 0.308 ms."""
    if not math.isfinite(value):
        return NOTHING
    if not is_share(figure):
        # For a ratio to the mean near 1, three digits would hide the changes.
        return _add_unit(rounded_text(value, 4 if figure.metric == _TO_MEAN else 3), figure)
    percent = 100 * value
    if 99 < percent < 100:
        # Near 100 the distance from it matters.
        return f"{percent:.{-math.floor(math.log10(100 - percent))}f} %"
    return f"{percent:.1f} %" if 10 <= percent < 100 else f"{rounded_text(percent, 3)} %"


def change_text(before: float, after: float, figure: Figure) -> str:
    """Write a change in two digits, for shares in points, for others in percent or as a multiple."""
    if not math.isfinite(before + after):
        return NOTHING
    if is_share(figure):
        return _format_points(after - before, signed=True)
    if figure.metric == _TO_MEAN:
        return _add_unit(rounded_text(after - before, 2, signed=True), figure)
    if not before:
        return _add_unit(rounded_text(after, 3, signed=True), figure)
    ratio = after / before
    return (
        f"× {rounded_text(ratio, 2)}" if ratio >= _MULTIPLE else f"{rounded_text(100 * (ratio - 1), 2, signed=True)} %"
    )


def difference_text(before: float, after: float, what: str) -> str:
    """Compare two amounts in words, such as "1.7 times as many bundles" or "18 % fewer bundles".

    Args:
        what: "many" with a countable noun, "much" with an uncountable one, for example "many bundles".
    """
    word, _, noun = what.partition(" ")
    if not after:
        return f"no {noun}"
    if not before:
        return f"{rounded_text(after, 3)} {noun} instead of none"
    ratio = after / before
    if ratio >= _MULTIPLE:
        times = rounded_text(ratio, 2)
        return f"{'twice' if times == '2' else f'{times} times'} as {what}"
    share = f"{rounded_text(100 * abs(ratio - 1), 2)} %"
    return f"{share} {'more' if ratio > 1 else 'fewer' if word == 'many' else 'less'} {noun}"


def span_text(low: float, high: float, figure: Figure) -> str:
    """Write the interval of a change in two digits, in points or the unit, or a dash if there is none."""
    if math.isnan(low):
        return NOTHING
    if is_share(figure):
        return f"{_format_points(low, signed=True).removesuffix(' points')} to {_format_points(high, signed=True)}"
    return _add_unit(f"{rounded_text(low, 2, signed=True)} to {rounded_text(high, 2, signed=True)}", figure)


def size_text(size: float, figure: Figure) -> str:
    """Write the size of a change in two digits."""
    return _format_points(size) if is_share(figure) else _add_unit(rounded_text(size, 2), figure)


def rounded_text(value: float, digits: int, *, signed: bool = False) -> str:
    """Write a number with some significant digits, without an exponent from a thousandth to a trillion."""
    rounded = float(f"{value:.{digits}g}") + 0.0
    text = f"{rounded:,.0f}" if abs(rounded) >= 10.0 ** (digits - 1) else f"{rounded:.{digits}g}"
    return f"+{text}" if signed and rounded > 0 else text


def _format_points(difference: float, *, signed: bool = False) -> str:
    text = rounded_text(100 * difference, 2, signed=signed)
    return f"{text} {'point' if text.lstrip('+-') == '1' else 'points'}"


def _add_unit(text: str, figure: Figure) -> str:
    if figure.metric == _TO_MEAN:
        return f"{text} × mean"
    return text if figure.unit in _COUNTS or figure.unit == "ratio" else f"{text} {figure.unit}"


def _drop_sign_of_zero(text: str) -> str:
    # A value that rounds to zero has no sign: "-0.0000" reads as a difference.
    return text if float(text.replace(",", "")) else text.removeprefix("-")
