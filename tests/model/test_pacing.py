"""Windows in which bundles may be moved, and rates."""

from __future__ import annotations

import pytest

from lookup.model.pacing import parse_rate, parse_window
from lookup.model.time import parse_iso


def _inside(text: str, *times: str) -> list[bool]:
    """Return whether times of the week from Monday, 23 November 2026, are in a window: `Mon 02:00`."""
    days = ("Mon", "Tue", "Wed", "Thu", "Fri", "Sat", "Sun")
    window = parse_window(text)
    return [
        window.holds(parse_iso(f"2026-11-{23 + days.index(day)}T{clock}:00Z"))
        for day, _, clock in (time.partition(" ") for time in times)
    ]


def test_a_window_of_the_day_holds_every_day() -> None:
    """Its first minute belongs to it, its last does not."""
    assert _inside("02:00-05:00", "Mon 01:59", "Mon 02:00", "Sun 04:59", "Sun 05:00") == [False, True, True, False]


def test_a_window_may_cross_midnight() -> None:
    """It is one window, of the day on which it begins."""
    assert _inside("22:00-05:00", "Mon 21:59", "Mon 22:00", "Tue 04:59", "Tue 05:00") == [False, True, True, False]
    saturday = _inside("Sat 22:00-06:00", "Sat 05:00", "Sat 23:00", "Sun 05:59", "Sun 06:00", "Sun 23:00", "Mon 05:00")
    assert saturday == [False, True, True, False, False, False]


def test_days_may_go_beyond_the_end_of_the_week() -> None:
    """From one day through another, both included."""
    assert _inside("Sat-Mon 00:00-24:00", "Fri 23:59", "Sat 00:00", "Sun 23:59", "Mon 23:59", "Tue 00:00") == [
        False, True, True, True, False,
    ]  # fmt: skip
    assert _inside("Mon-Fri 12:00-13:00", "Fri 12:30", "Sat 12:30") == [True, False]


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("2:00-5:00", "should be like 02:00-05:00, Sat 22:00-06:00 or Mon-Fri 22:00-05:00, not '2:00-5:00'"),
        ("sat 02:00-05:00", "should be like 02:00-05:00"),
        ("02:00-25:00", "25:00 in '02:00-25:00' is no time of the day"),
        ("02:60-05:00", "02:60 in '02:60-05:00' is no time of the day"),
        ("02:00-02:00", "'02:00-02:00' has no minute in it; a whole day is 00:00-24:00"),
        ("24:00-02:00", "'24:00-02:00' has no minute in it"),
    ],
)
def test_what_is_no_window_is_refused(text: str, problem: str) -> None:
    """With what would be one."""
    with pytest.raises(ValueError, match=problem):
        parse_window(text)


def test_a_rate_is_the_time_between_two() -> None:
    """In seconds, whatever its unit."""
    assert [parse_rate(text) for text in ("2/min", "10/h", "0.5/s")] == [30.0, 360.0, 2.0]
    with pytest.raises(ValueError, match="'2' is not a rate like 2/min, 10/h or 1/s"):
        parse_rate("2")
