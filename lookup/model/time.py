"""Parse, check and print instants, which are integers of µs since the Unix epoch (UTC), so arithmetic is exact.

`datetime` appears only at input and output. This module does not read a clock.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import UTC, date, datetime, timedelta, tzinfo
from typing import overload
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

from lookup.model.quoting import shown

__all__ = [
    "FIRST_US", "LAST_US", "QUARTER_US", "US_PER_S", "HalfDayClock", "TimeParser", "counted_unit", "is_in_calendar",
    "likelier_unit", "mistaken_unit", "moment_at", "parse_access_time", "parse_iso", "parse_time_of_day", "time_parser",
    "time_text", "to_us", "zone_of",
]  # fmt: skip

#: Converts a timestamp's text to µs, or raises ValueError with a clause about the mistake.
TimeParser = Callable[[str], int]

US_PER_S = 1_000_000
#: A quarter of an hour. The offset of a zone is a multiple of it, and so are midnights everywhere.
QUARTER_US = 900 * US_PER_S
#: The first and the last instant of the calendar, which are the beginning of the year 1 and the end of the year 9999.
FIRST_US, LAST_US = -62_135_596_800 * US_PER_S, 253_402_300_800 * US_PER_S - 1

#: The years 1980 and 2100: seconds and ms that are taken for µs lie before the first until long after 2200.
_EARLY_US, _LATE_US = 315_532_800 * US_PER_S, 4_102_444_800 * US_PER_S
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_US = timedelta(microseconds=1)
_HOUR_US = 3_600 * US_PER_S
#: ns per unit of the formats that count from the epoch.
_UNIX = {"unix": 1_000_000_000, "unix_ms": 1_000_000, "unix_us": 1_000, "unix_ns": 1}
#: A count since the epoch. 19 digits are more than any int64 of µs holds.
_NUMBER = re.compile(r"(\d{1,19})(?:\.(\d*))?\Z", re.ASCII)
_BLANK = re.compile(r" (?=(?:Z|[+-]\d\d:?\d\d)\Z)", re.ASCII)
# `strptime("%b")` follows the process's locale, but servers write English in any locale.
_MONTHS = {
    name: number for number, name in enumerate("Jan Feb Mar Apr May Jun Jul Aug Sep Oct Nov Dec".split(), start=1)
}


def to_us(moment: datetime) -> int:
    """Count µs from the epoch to an aware moment."""
    # A difference of datetimes is exact, but `timestamp()` is a float and loses µs after the year 2242.
    return (moment - _EPOCH) // _US


def moment_at(us: int) -> datetime:
    """Convert an instant to an aware moment in UTC.

    Raises:
        OverflowError: if it is before `FIRST_US` or after `LAST_US`.
    """
    return _EPOCH + us * _US


@overload
def time_text(us: int) -> str: ...
@overload
def time_text(us: None) -> None: ...
def time_text(us: int | None) -> str | None:
    """Write an instant as `2026-01-01T12:00:00Z`. None stays None."""
    return None if us is None else moment_at(us).isoformat().replace("+00:00", "Z")


def is_in_calendar(moment: datetime) -> bool:
    """Check whether a moment lies in the years 1 to 9999 both in UTC and at its own offset."""
    # A moment near either end of the calendar may leave it when it moves to UTC.
    try:
        moment.astimezone(UTC)
    except OverflowError:
        return False
    return True


def mistaken_unit(first_us: int, last_us: int) -> str | None:
    """Explain that all times of a table were written in a larger unit than the assumed one, else None."""
    for unit, factor in ("ms", 1_000), ("seconds", 1_000_000), ("seconds taken for ns", 1_000_000_000):
        if _EARLY_US < first_us * factor <= last_us * factor < _LATE_US:
            month = f"{moment_at(first_us * factor):%B %Y}"
            return (
                f"its times are of January 1970 as µs, and of {month} as {unit}; `ts` takes timestamps or counts of µs"
            )
    return None


def likelier_unit(us: int, form: str) -> str | None:
    """Find the format whose unit makes an unlikely time likely.

    Args:
        us: the unlikely time, µs since the epoch.
        form: the format with which it was read.
    """
    count = us * 1_000 // _UNIX[form] if form in _UNIX else 0
    return next((unit for unit, ns in _UNIX.items() if _EARLY_US < count * ns // 1_000 < _LATE_US), None)


def counted_unit(text: str) -> str | None:
    """Find the format that makes a count a time from 1980 to 2100, None without one or if it is not a number."""
    if not _NUMBER.match(text):
        return None
    return next(
        (form for form, scale in _UNIX.items() if _EARLY_US < _build_counter(scale, form)(text) < _LATE_US), None
    )


@dataclass
class HalfDayClock:
    """Finds out by a log's times that its clock has 12 hours, and that AM and PM are missing."""

    _hours: set[int] = field(default_factory=set)
    _last_us: int | None = None
    _jumps: bool = False

    def take(self, us: int) -> None:
        """Look at the next time, µs."""
        self._hours.add(us // _HOUR_US % 24)
        # From 12:59 to 1:00 it goes back, or on if the log begins with the newest line.
        self._jumps |= self._last_us is not None and 11 * _HOUR_US <= abs(us - self._last_us) <= 12 * _HOUR_US
        self._last_us = us

    @property
    def lacks_half_days(self) -> bool:
        """Whether all hours are from 1 to 12 and the clock jumps between these two."""
        return self._jumps and {1, 12} <= self._hours <= set(range(1, 13))


def zone_of(name: str) -> tzinfo:
    """Find the time zone of a name such as `UTC` or `Europe/Berlin`."""
    # The database of zones may be missing on the machine, and UTC must work without it.
    if name.upper() in ("UTC", "Z"):
        return UTC
    try:
        return ZoneInfo(name)
    except (ZoneInfoNotFoundError, OSError):
        raise ValueError(f"time zone {shown(name)} is unknown; write a name like 'UTC' or 'Europe/Berlin'") from None


class _ClockError(Exception):
    """Clocks of a zone showed a time twice, or never."""


def _place_in_zone(moment: datetime, zone: tzinfo) -> int:
    if moment.tzinfo is not None:
        return to_us(moment)
    first, second = (moment.replace(tzinfo=zone, fold=fold) for fold in (0, 1))
    if zone is not UTC and first.utcoffset() != second.utcoffset():
        # Of a time that never was, the first reading has the smaller offset.
        is_twice = to_us(first) < to_us(second)
        raise _ClockError("was shown twice, as clocks were put back," if is_twice else "was put forward over by clocks")
    return to_us(first)


def _build_clock_error(text: str, zone: tzinfo, error: _ClockError) -> ValueError:
    fixed = "log with an offset, or name a zone without summer time, like 'Etc/GMT-1' for +01:00"
    return ValueError(f"timestamp {shown(text)} {error} in {zone}; {fixed}")


def parse_iso(text: str, zone: tzinfo = UTC) -> int:
    """Read ISO-8601, with `.` or `,` before fractions, maybe a blank before the offset, in `zone` without offset."""
    text = text.strip()
    try:
        try:
            moment = datetime.fromisoformat(text)
        except ValueError:
            # Some write a blank before the offset.
            moment = datetime.fromisoformat(_BLANK.sub("", text, count=1))
        return _place_in_zone(moment, zone)
    except _ClockError as error:
        raise _build_clock_error(text, zone, error) from None
    except (ValueError, OverflowError):
        raise ValueError(f"timestamp {shown(text)} is not ISO-8601, like 2026-01-31T12:00:00.000Z") from None


def parse_access_time(text: str) -> int:
    """Read the time of an access log, `07/Nov/2018:12:27:31 +0000`."""
    try:
        day, month, rest = text.split("/", 2)
        return to_us(datetime.strptime(f"{day} {_MONTHS[month]} {rest}", "%d %m %Y:%H:%M:%S %z"))
    except (ValueError, KeyError, OverflowError):
        raise ValueError(f"timestamp {shown(text)} is not of the form 07/Nov/2018:12:27:31 +0000") from None


def parse_time_of_day(text: str, day: date, zone: tzinfo) -> int:
    """Read `12:27:31.643` as a moment of a given day."""
    return parse_iso(f"{day.isoformat()}T{text}", zone)


def time_parser(form: str, zone: tzinfo) -> TimeParser:
    """Build the parser of a format.

    The format is `unix`, `unix_ms`, `unix_us`, `unix_ns`, `iso`, `access`, or a `strptime` pattern.

    Raises:
        ValueError: if the format is none of these.
    """
    if form in _UNIX:
        return _build_counter(_UNIX[form], form)
    if form == "iso":
        return lambda text: parse_iso(text, zone)
    if form == "access":
        return parse_access_time
    if "%" in form:
        return _build_parser(form, zone)
    raise ValueError(
        f"time format {shown(form)} is unknown; known: {', '.join(_UNIX)}, iso, access, or a strptime pattern with %"
    )


def _build_counter(scale: int, form: str) -> TimeParser:
    def parse(text: str) -> int:
        match = _NUMBER.match(text)
        if match is None:
            raise ValueError(f"timestamp {shown(text)} is not a number ({form})")
        whole, fraction = match.groups(default="")
        # Digits instead of floats, since a double cannot hold today's date in seconds to the last µs.
        return (int(whole) * US_PER_S + int(fraction.ljust(6, "0")[:6])) * scale // (1_000 * US_PER_S)

    return parse


def _build_parser(form: str, zone: tzinfo) -> TimeParser:
    def parse(text: str) -> int:
        try:
            return _place_in_zone(datetime.strptime(text, form), zone)
        except _ClockError as error:
            raise _build_clock_error(text, zone, error) from None
        except (ValueError, OverflowError):
            raise ValueError(f"timestamp {shown(text)} does not match {shown(form)}") from None

    return parse
