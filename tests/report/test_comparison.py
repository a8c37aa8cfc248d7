"""The comparison as text, and numbers as people read them."""

from __future__ import annotations

import math
from dataclasses import replace

import pytest

from lookup.report.comparison import (
    MARKS,
    Scope,
    interval_text,
    label,
    lines,
    mark_of,
    number_text,
    parts,
    policies_in_order,
    signed_text,
    value_text,
)
from lookup.score.verdict import Word
from tests.report.results import placed_once, result
from tests.score.cases import METRICS, plan, ratios, scored


def test_the_incumbent_comes_first() -> None:
    """Then the candidates as in the settings."""
    result_ = scored([ratios(name, [0.5] * 30) for name in ("a", "b")], plan("b", "a"))

    assert policies_in_order(result_) == ("b", "a")


def test_labels() -> None:
    """A key stands in brackets."""
    assert label("moves", None) == "moves"
    assert label("moves", "shed") == "moves[shed]"


def test_every_metric_has_a_line() -> None:
    """Also one that could not be computed: dashes."""
    found = {line.label: line for line in lines(result())}

    assert list(found) == [metric.name for metric in METRICS]
    assert {cell.value for cell in found["network_cost"].cells} == {"–"}


def test_cells_carry_value_interval_and_mark() -> None:
    """In the order of the policies; the incumbent has no mark."""
    line = next(line for line in lines(result()) if line.label == "answered_ratio")

    assert (line.unit, line.arrow, line.primary) == ("ratio", "↑", True)
    assert [(cell.value, cell.mark) for cell in line.cells] == [("0.5000", " "), ("0.7000", "▲"), ("0.5000", "=")]
    assert line.cells[0].interval.startswith("[0.4")


def test_open_marks_hold_for_one_placement() -> None:
    """What is better or worse with one draw of luck only does not look like more."""
    rows = {line.label: line for line in lines(placed_once())}

    assert [cell.mark for cell in rows["answered_ratio"].cells] == [" ", "△", "="]
    assert [cell.mark for cell in rows["moves"].cells] == [" ", "▽", "="]


@pytest.mark.parametrize(
    ("word", "mark"), [("better", "△"), ("worse", "▽"), ("equivalent", "="), ("inconclusive", "?")]
)
def test_only_decided_words_have_an_open_mark(word: Word, mark: str) -> None:
    """The others say as much of a placement as of a policy."""
    verdict = replace(result().verdicts[0], verdict=word)

    assert mark_of(verdict) == MARKS[word]
    assert mark_of(replace(verdict, holds_for="placement")) == mark


def test_clusters_and_parts_have_no_marks() -> None:
    """Verdicts are about the pooled figures of the whole demand."""
    tenant = (("tenant", "t1"),)

    assert parts(result()) == (tenant,)
    assert {cell.mark for line in lines(result(), Scope("c")) for cell in line.cells} == {" "}
    (line,) = lines(result(), Scope(by=tenant))
    assert [cell.value for cell in line.cells] == ["0.2500", "–", "–"]


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
