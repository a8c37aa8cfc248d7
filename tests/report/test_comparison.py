"""Rows and columns of the comparison."""

from __future__ import annotations

from dataclasses import replace

import pytest

from lookup.report.comparison import MARKS, Scope, label, lines, mark_of, parts, policies_in_order
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
