"""The comparison as text, and numbers as people read them."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import get_args

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
    scope_of,
    signed_text,
    value_text,
    word_of,
)
from lookup.score.verdict import HoldsFor, Word
from tests.report.results import near, placed_once, result, varied
from tests.score.cases import METRICS, decided, ratios, sums


def test_labels() -> None:
    """A key stands in brackets."""
    assert label("moves", None) == "moves"
    assert label("moves", "shed") == "moves[shed]"


def test_every_metric_has_a_line() -> None:
    """Also one that could not be computed: dashes."""
    found = {line.label: line for line in lines(result())}

    assert list(found) == [metric.name for metric in METRICS]
    assert {figure.value for figure in found["network_cost"].figures} == {"–"}


def test_cells_carry_value_interval_and_mark() -> None:
    """In the order of the policies; the incumbent has no mark."""
    line = next(line for line in lines(result()) if line.label == "answered_ratio")

    assert (line.unit, line.arrow, line.primary) == ("ratio", "↑", True)
    assert [(figure.value, figure.mark) for figure in line.figures] == [
        ("0.5000", " "),
        ("0.7000", "▲"),
        ("0.5000", "≡"),
    ]
    assert line.figures[0].interval.startswith("[0.4")


def test_a_figure_of_locality_has_its_best_beside_it() -> None:
    """Policies with other bundles have other bounds: both ends stand there; other figures have none."""
    found = {line.label: line.at_best for line in lines(near())}

    assert found["match_ratio[rack]"] == "0.5000 to 0.7500"
    assert set(found.values()) == {"0.5000 to 0.7500", ""}


def test_open_marks_hold_for_one_placement() -> None:
    """What is better or worse with one draw of luck only does not look like more."""
    rows = {line.label: line for line in lines(placed_once())}

    assert [figure.mark for figure in rows["answered_ratio"].figures] == [" ", "△", "≡"]
    assert [figure.mark for figure in rows["moves"].figures] == [" ", "▽", "≡"]


@pytest.mark.parametrize(
    ("word", "mark"), [("better", "△"), ("worse", "▽"), ("equivalent", "="), ("identical", "≡"), ("inconclusive", "?")]
)
@pytest.mark.parametrize("scope", ["placement", "hours"])
def test_only_decided_words_have_an_open_mark(word: Word, mark: str, scope: HoldsFor) -> None:
    """The others say as much of a placement, or of these hours, as of a policy."""
    verdict = replace(result().verdicts[0], verdict=word)

    assert mark_of(verdict) == MARKS[word]
    assert mark_of(replace(verdict, holds_for=scope)) == mark


def test_a_verdict_that_is_none_among_many_has_a_light_mark() -> None:
    """By what it would be if it were the only comparison, wherever it holds; its word stays inconclusive."""
    rows = {line.label: line for line in lines(varied())}
    found = {(one.policy, label(one.metric, one.key)): one for one in varied().verdicts}
    light = [found["new", "match_ratio[zone]"], found["new", "moves"]]

    assert [figure.mark for figure in rows["match_ratio[zone]"].figures] == [" ", "▴", "?"]
    assert [figure.mark for figure in rows["moves"].figures] == [" ", "▾", "▾"]
    assert [mark_of(replace(one, holds_for="hours")) for one in light] == ["▴", "▾"]
    assert {word_of(one) for one in light} == {"inconclusive"}


def test_hours_have_open_marks_beside_those_of_policies() -> None:
    """The difference that drifts, and only that one."""
    rows = {line.label: [figure.mark for figure in line.figures] for line in lines(varied())}

    assert rows["imbalance_max_mean"] == [" ", "▽", "≡"]
    assert rows["match_ratio[rack]"] == [" ", "▼", "≡"]


@pytest.mark.parametrize(
    ("scope", "text"),
    [
        ("policy", ""),
        ("placement", "only in this placement"),
        ("hours", "only in these hours"),
        ("independence", "only if bundles are independent"),
    ],
)
def test_a_scope_is_said_of_what_is_decided(scope: HoldsFor, text: str) -> None:
    """Of a policy's verdict there is nothing to add, and what is inconclusive holds for nothing."""
    verdict = replace(varied().verdicts[0], holds_for=scope)

    assert [scope_of(replace(verdict, verdict=word)) for word in get_args(Word)] == [
        "" if word == "inconclusive" else text for word in get_args(Word)
    ]


@pytest.mark.parametrize(("primary", "marks"), [(("answered_ratio",), [" ", " "]), (("network_ms_p95",), [" ", "○"])])
def test_a_percentile_is_judged_only_if_it_is_primary(primary: tuple[str, ...], marks: list[str]) -> None:
    """It has no interval; where nobody asks for a verdict none is missing, so that it has a figure and no mark."""
    rows = {"stock": [[1, 1], [0, 9]], "new": [[2, 2], [0, 8]]}
    parts_ = [ratios(policy, [0.5] * 30) for policy in rows]
    found = decided([*parts_, *(sums(policy, of, "network_ms_p95") for policy, of in rows.items())], primary=primary)
    line = next(line for line in lines(found) if line.label == "network_ms_p95")

    assert [figure.value for figure in line.figures] == ["1", "1"]
    assert [figure.mark for figure in line.figures] == marks
    assert ("network_ms_p95" in [verdict.metric for verdict in found.verdicts]) == (marks[1] == "○")


def test_clusters_and_parts_have_no_marks() -> None:
    """Verdicts are about the pooled figures of the whole demand."""
    tenant = (("tenant", "t1"),)

    assert parts(result()) == (tenant,)
    assert {figure.mark for line in lines(result(), Scope("c")) for figure in line.figures} == {" "}
    (line,) = lines(result(), Scope(by=tenant))
    assert [figure.value for figure in line.figures] == ["0.2500", "–", "–"]


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
