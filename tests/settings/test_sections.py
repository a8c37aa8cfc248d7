"""The tables `[evaluation]`, `[verdict]` and `[inputs]`."""

from __future__ import annotations

from typing import Any

import pytest
from pydantic import ValidationError

from lookup.settings import EvaluationSection, InputsSection, VerdictSection


def _first(caught: pytest.ExceptionInfo[ValidationError]) -> str:
    return caught.value.errors()[0]["msg"].removeprefix("Value error, ")


@pytest.mark.parametrize(
    ("keys", "sentence"),
    [
        ({"session_s": 90}, "session_s: 90 should be a multiple of tick_s, which is 60"),
        (
            {"tick_s": 7},
            "session_s: 60 should be a multiple of tick_s, which is 7\nbalance_s: 3600 should be a multiple",
        ),
        ({"seeds": [1, 2, 1]}, "seeds: each should occur once, not [1, 2, 1]"),
        ({"seeds": [1 << 63]}, "Input should be less than 9223372036854775808"),
        (
            {"ownership": "shared", "handover_s": 2.5},
            "handover_s: 2.5 should be 0 under shared ownership: nobody owns a bundle to hand over",
        ),
        ({"handover_s": -1}, "Input should be greater than or equal to 0"),
        ({"handover_s": 1e-9}, "should be 0 or at least 0.000001, one microsecond, not 1e-09"),
        ({"handover_s": 5e-324}, "should be 0 or at least 0.000001, one microsecond, not 5e-324"),
        ({"handover_s": 86_401}, "Input should be less than or equal to 86400"),
        (
            {"load": "reported", "load_reports": "published"},
            'load_reports: LOADS says what was published; "published" needs load = "simulated"',
        ),
        ({"seeds": []}, "Tuple should have at least 1 item"),
        ({"ownership": "sole"}, "Input should be 'exclusive' or 'shared'"),
        ({"owner_loss": "none"}, "Input should be 'next-lookup' or 'leader'"),
        ({"load": "measured"}, "Input should be 'simulated' or 'reported'"),
        ({"tick_s": 0}, "Input should be greater than or equal to 1"),
        ({"warmup_s": -1}, "Input should be greater than or equal to 0"),
        ({"overload_threshold": 0.0}, "Input should be greater than or equal to 0.000000001"),
        ({"bytes_per_weight": 5e-324}, "Input should be greater than or equal to 0.000000001"),
        ({"bytes_per_weight": 1e308}, "Input should be less than or equal to 1000000000000000"),
        ({"max_quarantine_ratio": 1.1}, "Input should be less than or equal to 1"),
        ({"default_bundles": 1 << 20}, "Input should be less than or equal to 65536"),
    ],
)
def test_a_replay_that_makes_no_sense_is_refused(keys: dict[str, Any], sentence: str) -> None:
    """Spans are whole ticks, seeds differ, and every figure lies in its range."""
    with pytest.raises(ValidationError) as caught:
        EvaluationSection.model_validate({"incumbent": "x", **keys})

    assert _first(caught).startswith(sentence)


_CENTURY_S = 3_155_760_000


@pytest.mark.parametrize("key", ["tick_s", "session_s", "balance_s", "warmup_s", "reconnect_s", "window_s"])
@pytest.mark.parametrize("seconds", [_CENTURY_S + 1, (1 << 63) - 1, 90_000_000_000_000_000_000])
def test_a_span_of_more_than_a_century_is_refused(key: str, seconds: int) -> None:
    """Microseconds of every span stay within 64 bits, and so does an instant after it."""
    with pytest.raises(ValidationError) as caught:
        EvaluationSection.model_validate({"incumbent": "x", key: seconds})

    assert _first(caught) == f"Input should be less than or equal to {_CENTURY_S}"


def test_a_century_is_the_longest_span() -> None:
    """Spans as long as they may be, and the shortest hand-over, are taken as written."""
    spans = dict.fromkeys(["tick_s", "session_s", "balance_s", "warmup_s", "reconnect_s", "window_s"], _CENTURY_S)
    section = EvaluationSection.model_validate({"incumbent": "x", **spans, "handover_s": 1e-6})

    assert {key: getattr(section, key) for key in spans} == spans
    assert VerdictSection(block_s=_CENTURY_S).block_s == _CENTURY_S


@pytest.mark.parametrize(
    "keys",
    [
        {"block_s": _CENTURY_S + 1},
        {"margin": -0.1},
        {"margins": {"moves": "x"}},
        {"resamples": 0},
        {"resamples": 100_001},
        {"primary": "moves"},
    ],
)
def test_a_verdict_that_makes_no_sense_is_refused(keys: dict[str, Any]) -> None:
    """Margins are not negative, resamples are some but fit into memory, and primary metrics are a list."""
    with pytest.raises(ValidationError):
        VerdictSection.model_validate(keys)


def test_an_empty_path_is_refused() -> None:
    """A path of nothing would be the folder of the settings."""
    with pytest.raises(ValidationError):
        InputsSection(lookups="")
