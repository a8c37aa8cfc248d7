"""What is said of a search besides its answer."""

from __future__ import annotations

from typing import Any

import pytest

from lookup.tuning.wording import beside_today, confirmation, reopened, restart_text


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
