"""When and how fast bundles may be moved: daily windows, and rates; all of UTC, and nothing here reads a clock."""

from __future__ import annotations

import re
from dataclasses import dataclass

from lookup.model.quoting import shown
from lookup.model.time import US_PER_S

__all__ = ["Window", "parse_rate", "parse_window"]

_DAYS = ("Mon", "Tue", "Wed", "Thu", "Fri", "Sat", "Sun")
_DAY_MIN = 24 * 60
#: The epoch was a Thursday.
_EPOCH_DAY = 3
_DAY = "|".join(_DAYS)
_WINDOW = re.compile(rf"(?:({_DAY})(?:-({_DAY}))? )?(\d\d:\d\d)-(\d\d:\d\d)", re.ASCII)
_RATE = re.compile(r"(\d{1,6}(?:\.\d{1,6})?)/(s|min|h)", re.ASCII)
#: Seconds of the units of a rate.
_PER = {"s": 1.0, "min": 60.0, "h": 3600.0}


@dataclass(frozen=True, slots=True)
class Window:
    """A time of the day, on some days of the week; it ends on the next day if its end is before its beginning."""

    #: as it was written
    text: str
    #: days on which it begins, 0 is Monday
    days: frozenset[int]
    #: minutes after midnight; the end does not belong to it
    begin_min: int
    end_min: int

    def holds(self, us: int) -> bool:
        """Return whether an instant, µs since the Unix epoch, is in it."""
        days, minute = divmod(us // (60 * US_PER_S), _DAY_MIN)
        today = (days + _EPOCH_DAY) % 7
        if self.begin_min < self.end_min:
            return today in self.days and self.begin_min <= minute < self.end_min
        yesterday = (today - 1) % 7
        return (today in self.days and minute >= self.begin_min) or (yesterday in self.days and minute < self.end_min)

    def __str__(self) -> str:
        return self.text


def parse_window(text: str) -> Window:
    """Read a window like `02:00-05:00`, `Sat 22:00-06:00` or `Mon-Fri 00:00-24:00`.

    Raises:
        ValueError: a clause that says what is wrong.
    """
    match = _WINDOW.fullmatch(text)
    if match is None:
        raise ValueError(f"should be like 02:00-05:00, Sat 22:00-06:00 or Mon-Fri 22:00-05:00, not {shown(text)}")
    first, last, begins, ends = match.groups()
    begin, end = _minutes(begins, text), _minutes(ends, text)
    if begin in (end, _DAY_MIN):
        raise ValueError(f"{shown(text)} has no minute in it; a whole day is 00:00-24:00")
    if first is None:
        days = range(7)
    else:
        begun = _DAYS.index(first)
        days = range(begun, begun + 1 + (_DAYS.index(last or first) - begun) % 7)
    return Window(text, frozenset(day % 7 for day in days), begin, end)


def _minutes(clock: str, text: str) -> int:
    hours, minutes = map(int, clock.split(":"))
    count = hours * 60 + minutes
    if minutes > 59 or count > _DAY_MIN:
        raise ValueError(f"{clock} in {shown(text)} is no time of the day")
    return count


def parse_rate(text: str) -> float:
    """Read a rate such as `2/min`, as the seconds between two.

    Raises:
        ValueError: a clause that says what is wrong.
    """
    match = _RATE.fullmatch(text)
    if match is None or not float(match[1]):
        raise ValueError(f"{text!r} is not a rate like 2/min, 10/h or 1/s")
    return _PER[match[2]] / float(match[1])
