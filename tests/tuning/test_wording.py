"""What is said of a search besides its answer."""

from __future__ import annotations

import pytest

from lookup.score.figures import Figure, json_row
from lookup.tuning.document import read_figures
from lookup.tuning.racing import MOVES, figure_name
from lookup.tuning.wording import (
    SEALED,
    SEARCHED,
    beside_today,
    confirmation,
    describe_reopened,
    figure_rows,
    label,
    restart_text,
)
from tests.tuning.worlds import IMBALANCE, figure_of


def test_a_candidate_stands_beside_today_as_it_did_in_its_own_batch() -> None:
    """Its batch had other luck than the last one, in which today's figure is 1.2; what has no gain stays."""
    near = ("match_ratio", "rack")
    today = [figure_of(IMBALANCE, 1.2), figure_of(near, 0.5), figure_of(MOVES, 3.0)]
    one = [figure_of(IMBALANCE, 1.4, 0.0), figure_of(near, 0.4, 0.25), figure_of(MOVES, 7.0)]
    figures = {(0, SEARCHED): _by_name(*today), (1, SEARCHED): _by_name(*one), (1, SEALED): _by_name(*one)}

    shown = beside_today(figures)

    assert [figure.value for figure in shown[1, SEARCHED].values()] == [1.2, 0.75, 7.0]
    assert shown[1, SEALED] == figures[1, SEALED]


@pytest.mark.parametrize(
    ("sealed", "said"), [("2026-01-06T00:00:00Z", "the sealed days"), (None, "the same days with new seeds")]
)
def test_nothing_is_called_sealed_that_was_not(sealed: str | None, said: str) -> None:
    """Without sealed days finalists are replayed on the same ones."""
    assert confirmation({"sealed_from": sealed}) == said


def test_keys_that_need_a_restart_are_named() -> None:
    """Who pastes the lines for a running cluster has the others too."""
    assert "restart applies: lowerBoundarySheddingEnabled=true. " in restart_text(["lowerBoundarySheddingEnabled=true"])


def test_what_was_opened_before_is_worth_less() -> None:
    """How often it was opened is part of the answer."""
    assert describe_reopened(3).startswith("these days were opened 3 times")


def test_no_gain_takes_a_count_below_0() -> None:
    """A batch in which today made many moves may show a gain of more than today made in the last one."""
    figures = {(0, SEARCHED): _by_name(figure_of(MOVES, 3.0)), (1, SEARCHED): _by_name(figure_of(MOVES, 2.0, 5.0))}

    (figure,) = beside_today(figures)[1, SEARCHED].values()

    assert figure.value == 0.0


def _by_name(*figures: Figure) -> dict[str, Figure]:
    return {figure_name(figure.name): figure for figure in figures}


def test_the_figures_of_each_part_of_the_log_stand_apart() -> None:
    """Those of the search and of the sealed days; a total is that of a day."""
    values = {SEARCHED: (2.0, 1.5), SEALED: (3.0, 2.25)}
    figures = [
        {"candidate": number, "days": days, **json_row(figure_of(MOVES, value, values[days][0] - value))}
        for days, of in values.items()
        for number, value in zip((0, 4), of, strict=True)
    ]
    document = {
        "objectives": ["moves"], "prices": [], "per_day": ["moves"], "sealed_from": "tuesday",
        "finalists": [{"candidate": 4, "objection": None}], "figures": figures,
    }  # fmt: skip

    heads, rows = figure_rows(document, beside_today(read_figures(document)))

    assert heads[1:3] == [f"moves a day, {days}" for days in ("the search", "the sealed days")]
    assert [cell.split(",")[0] for cell in rows[1]] == ["4", "1.5", "2.25", "recommended"]
    assert rows[0][1:3] == ["2", "3"]


def test_only_totals_are_those_of_a_day() -> None:
    """A ratio has no length."""
    assert [label(name, {"per_day": ["moves"]}) for name in ("moves", "overload_ratio")] == [
        "moves a day",
        "overload_ratio",
    ]
