"""Say figures in words and in few digits: what a metric is called, and what more or less of it means in a sentence.

Metrics of plug-ins go by their names.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass

from lookup.engine.ownership import CAUSE_WORDS
from lookup.hooks import Metric
from lookup.report.comparison import NOTHING
from lookup.score.rules import Name

__all__ = ["Words", "amount_text", "change_text", "filled", "is_share", "size_text", "span_text", "words_of"]

#: Figures that grow to this multiple, or shrink to its inverse, are said to do so as a multiple.
_MULTIPLE = 1.5
#: Metrics whose figures are parts of a whole.
_SHARES = frozenset(
    {"agreement_ratio", "answered_ratio", "isolation_ratio", "match_ratio", "network_covered_ratio", "overload_ratio"}
)
#: Units that the name of a figure says already.
_SAID = frozenset({"ratio", "decisions", "moves", "unloads", "lookups"})


@dataclass(frozen=True, slots=True)
class Words:
    """What a figure is called, and what a policy does of which it is more, less or the same.

    In `more` and `less`, `{points}` stands for a difference of shares, `{share}` for a relative difference, and
    `{many}` and `{much}` for how a number or an amount compares.
    """

    name: str
    more: str
    less: str
    same: str


#: By metric; `{key}` stands for the key of a figure.
_WORDS: Mapping[str, Words] = {
    "answered_ratio": Words(
        "answered lookups",
        "answers {points} more of the lookups",
        "answers {points} fewer of the lookups",
        "answers as many lookups",
    ),
    "isolation_ratio": Words(
        "lookups within isolation",
        "serves {points} more of the isolated lookups from their own brokers",
        "serves {points} fewer of the isolated lookups from their own brokers",
        "serves as many within isolation",
    ),
    "match_ratio": Words(
        "same-{key} share",
        "serves {points} more of the lookups from their own {key}",
        "serves {points} fewer of the lookups from their own {key}",
        "serves as many from their own {key}",
    ),
    "network_ms_mean": Words(
        "mean distance", "is {share} farther from clients", "is {share} nearer to clients", "is as near to clients"
    ),
    "network_ms_p95": Words(
        "distance of the farthest 5 %", "is farther from the farthest", "is nearer to the farthest", "is as near to all"
    ),
    "network_covered_ratio": Words("share with a known distance", "knows more", "knows less", "knows as much"),
    "network_cost": Words(
        "cost of traffic", "makes traffic {share} dearer", "makes traffic {share} cheaper", "costs as much traffic"
    ),
    "imbalance_max_mean": Words("load of the busiest broker", "balances worse", "balances better", "balances as well"),
    "imbalance_cv": Words(
        "spread of load", "spreads load less evenly", "spreads load more evenly", "spreads load as evenly"
    ),
    "overload_ratio": Words(
        "overloaded share", "overloads brokers more", "overloads brokers less", "overloads brokers as much"
    ),
    "load_variation": Words(
        "change of load", "lets load change more", "lets load change less", "lets load change as much"
    ),
    "assignments": Words("decisions", "decides {many} times", "decides {many} times", "decides as often"),
    "moves": Words("moved bundles", "moves {many} bundles", "moves {many} bundles", "moves as many bundles"),
    "unloads": Words("unloads", "unloads {many} bundles", "unloads {many} bundles", "unloads as many bundles"),
    "redundant_moves": Words(
        "moves that lead back", "moves {many} bundles in vain", "moves {many} bundles in vain", "moves as many in vain"
    ),
    "cycle_moves": Words(
        "moves in circles", "moves {many} in circles", "moves {many} in circles", "moves as many in circles"
    ),
    "necessary_moves": Words("moves that stay", "moves more", "moves less", "moves as much"),
    "moved_weight": Words("moved load", "moves {much} load", "moves {much} load", "moves as much load"),
    "agreement_ratio": Words("agreement with the log", "agrees more", "agrees less", "agrees as much"),
}


def words_of(name: Name) -> Words:
    """Return the words for a figure, those of a metric's key with the key in them."""
    metric, key = name
    words = _WORDS.get(metric)
    if words is None:
        plain = (metric if key is None else f"{metric} {key}").replace("_", " ")
        return Words(plain, f"has more {plain}", f"has less {plain}", f"has as much {plain}")
    if metric == "match_ratio":
        filled = (text.replace("{key}", key or "") for text in (words.name, words.more, words.less, words.same))
        return Words(*filled)
    if key is None:
        return words
    of = f" ({CAUSE_WORDS[key]})" if key in CAUSE_WORDS else f" ({key})"
    return Words(*(f"{text}{of}" for text in (words.name, words.more, words.less, words.same)))


def is_share(metric: Metric) -> bool:
    """Return whether a metric's figures are parts of a whole, which people read in percent."""
    return metric.name in _SHARES


def amount_text(value: float, metric: Metric) -> str:
    """Write a figure with its unit in three digits; a share in percent, near 100 with as many as its distance from it.

    Example:
        34.2 %, 99.98 %, 1.76, 442, 0.308 ms
    """
    if not math.isfinite(value):
        return NOTHING
    if not is_share(metric):
        return _with_unit(_digits(value, 3), metric)
    percent = 100 * value
    if 99 < percent < 100:
        return f"{percent:.{-math.floor(math.log10(100 - percent))}f} %"
    return f"{percent:.1f} %" if 10 <= percent < 100 else f"{_digits(percent, 3)} %"


def change_text(before: float, after: float, metric: Metric) -> str:
    """Write a difference in two digits: of shares in points, of others as a part or a multiple of the first."""
    if not math.isfinite(before + after):
        return NOTHING
    if is_share(metric):
        return _points(after - before, signed=True)
    if not before:
        return _with_unit(_digits(after, 3, signed=True), metric)
    ratio = after / before
    if ratio >= _MULTIPLE:
        return f"× {_digits(ratio, 2)}"
    return f"{_digits(100 * (ratio - 1), 2, signed=True)} %"


def span_text(low: float, high: float, metric: Metric) -> str:
    """Write the interval of a difference in two digits, in points or the metric's unit; a dash if there is none."""
    if math.isnan(low):
        return NOTHING
    if is_share(metric):
        return f"{_points(low, signed=True).removesuffix(' points')} to {_points(high, signed=True)}"
    return _with_unit(f"{_digits(low, 2, signed=True)} to {_digits(high, 2, signed=True)}", metric)


def size_text(size: float, metric: Metric) -> str:
    """Write the size of a difference in two digits."""
    return _points(size) if is_share(metric) else _with_unit(_digits(size, 2), metric)


def filled(text: str, before: float, after: float) -> str:
    """Return a clause of `Words` with the difference between two figures in it."""
    how = {"points": _points(abs(after - before))}
    how["share"] = f"{_digits(100 * abs(after / before - 1), 2)} %" if before else "much"
    how |= {word: _compared(before, after, word) for word in ("many", "much")}
    for name, said in how.items():
        text = text.replace(f"{{{name}}}", said)
    return text


def _compared(before: float, after: float, word: str) -> str:
    if not after:
        return "no"
    if not before:
        return f"{_digits(after, 3)} instead of no"
    ratio = after / before
    if ratio >= _MULTIPLE:
        text = _digits(ratio, 2)
        return f"twice as {word}" if text == "2" else f"{text} times as {word}"
    change = f"{_digits(100 * abs(ratio - 1), 2)} %"
    return f"{change} {'more' if ratio > 1 else 'fewer' if word == 'many' else 'less'}"


def _points(difference: float, *, signed: bool = False) -> str:
    text = _digits(100 * difference, 2, signed=signed)
    return f"{text} {'point' if text.lstrip('+-') == '1' else 'points'}"


def _digits(value: float, digits: int, *, signed: bool = False) -> str:
    """Write a number with some significant digits, without an exponent from a thousandth to a trillion."""
    rounded = float(f"{value:.{digits}g}") + 0.0
    least = 10.0 ** (digits - 1)
    text = f"{rounded:,.0f}" if abs(rounded) >= least else f"{rounded:.{digits}g}"
    return f"+{text}" if signed and rounded > 0 else text


def _with_unit(text: str, metric: Metric) -> str:
    if metric.name == "imbalance_max_mean":
        return f"{text} × mean"
    return text if metric.unit in _SAID else f"{text} {metric.unit}"
