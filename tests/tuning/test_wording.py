"""What is said of a search besides its answer."""

from __future__ import annotations

from typing import Any

import pytest

from lookup.tuning.wording import beside_today, confirmation, figure_rows, label, reopened, restart_text


def _figure(value: float, delta: float | None = None) -> dict[str, Any]:
    return {"value": value, "delta": delta, "low": None, "high": None}


def test_a_candidate_stands_beside_today_as_it_did_in_its_own_batch() -> None:
    """Its batch had other luck than the last one, in which today's figure is 1.2; what has no gain stays."""
    today = {"imbalance_max_mean": _figure(1.2), "match_ratio:rack": _figure(0.5), "moves": _figure(3.0)}
    document = {"incumbent": {"search": today}, "rising": ["match_ratio:rack"]}
    figures = {"imbalance_max_mean": _figure(1.4, 0.0), "match_ratio:rack": _figure(0.4, 0.25), "moves": _figure(7.0)}
    one = {"candidate": 1, "search": figures}

    shown = beside_today(one, document)["search"]

    assert [figure["value"] for figure in shown.values()] == [1.2, 0.75, 7.0]
    assert figures["imbalance_max_mean"]["value"] == 1.4
    assert beside_today({"candidate": 2, "search": None}, document)["search"] is None


@pytest.mark.parametrize(
    ("sealed", "said"), [("2026-01-06T00:00:00Z", "the sealed days"), (None, "the same days, other luck")]
)
def test_nothing_is_called_sealed_that_was_not(sealed: str | None, said: str) -> None:
    """Without sealed days finalists are replayed on the same ones."""
    assert confirmation({"sealed_from": sealed}) == said


def test_keys_that_need_a_restart_are_named() -> None:
    """Who pastes the lines for a running cluster has the others too."""
    assert "restart: lowerBoundarySheddingEnabled=true; " in restart_text(["lowerBoundarySheddingEnabled=true"])


def test_what_was_opened_before_is_worth_less() -> None:
    """How often it was opened is part of the answer."""
    assert reopened(3).startswith("these days were opened 3 times")


def test_no_gain_takes_a_count_below_0() -> None:
    """A batch in which today made many moves may show a gain of more than today made in the last one."""
    document = {"incumbent": {"search": {"moves": _figure(3.0)}}, "rising": []}

    (figure,) = beside_today({"search": {"moves": _figure(2.0, 5.0)}}, document)["search"].values()

    assert figure["value"] == 0.0


def _finalist(number: int, value: float, *keys: str, **known: Any) -> dict[str, Any]:
    """Return a finalist that gained 0.5 from 2 in the search, and gains 3 - value from 3 on the sealed days."""
    figures = {"search": {"moves": _figure(1.5, 0.5)}, "sealed": {"moves": _figure(value, 3.0 - value)}}
    about = {"changes": dict.fromkeys(keys, 1), "objection": None}
    return {"candidate": number, "as_good": [], "idle": None, **figures, **about, **known}


def _document(*finalists: dict[str, Any], against: Any = ()) -> dict[str, Any]:
    today = {"search": {"moves": _figure(2.0)}, "sealed": {"moves": _figure(3.0)}, "cycles": None}
    aims = {"objectives": ["moves"], "prices": [], "rising": [], "per_day": ["moves"]}
    days = {"first": "monday", "sealed_from": "tuesday", "last": "friday", "opened": 1}
    found = {"incumbent": today, "finalists": list(finalists), "recommended": list(finalists), "against": against}
    return {**found, **aims, **days, "candidates": [], "settings": []}


def test_the_figures_of_each_part_of_the_log_stand_apart() -> None:
    """Those of the search, of the sealed days, and of another log; a total is that of a day."""
    elsewhere = {"candidate": 4, "sealed": {"moves": _figure(5.0, -1.0)}, "objection": "it moves more"}
    log = {"log": "next-week", "incumbent": {"moves": _figure(4.0)}, "finalists": [elsewhere], "conclusion": "keep"}
    document = _document(_finalist(4, 2.25, "a"), against=[log])

    heads, rows = figure_rows(document)

    assert heads[1:4] == [f"moves a day, {days}" for days in ("the search", "the sealed days", "next-week")]
    assert [cell.split(",")[0] for cell in rows[1]] == ["4", "1.5", "2.25", "5", "recommended", "it moves more"]
    assert rows[0][1:4] == ["2", "3", "4"]


def test_only_totals_are_those_of_a_day() -> None:
    """A ratio has no length."""
    assert [label(name, {"per_day": ["moves"]}) for name in ("moves", "overload_ratio")] == [
        "moves a day",
        "overload_ratio",
    ]
