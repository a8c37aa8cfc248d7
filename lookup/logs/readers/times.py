"""Points in time as logs write them, turned into integers of µs since the Unix epoch (UTC).

Arithmetic is exact: no timestamp passes through a float.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from datetime import UTC, date, datetime, timedelta, tzinfo
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

from lookup.model.quoting import shown

__all__ = ["TimeParser", "parse_access_time", "parse_iso", "parse_time_of_day", "time_parser", "to_us", "zone_of"]

#: Turns a timestamp's text into µs; raises ValueError with a clause that says what is wrong.
TimeParser = Callable[[str], int]

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_US = timedelta(microseconds=1)
#: µs per unit of the formats that count from the epoch.
_UNIX = {"unix": 1_000_000, "unix_ms": 1_000, "unix_us": 1}
#: A count since the epoch; 19 digits are more than any int64 of µs holds.
_NUMBER = re.compile(r"(\d{1,19})(?:\.(\d*))?\Z", re.ASCII)
# `strptime("%b")` follows the process's locale; servers write English whatever it is.
_MONTHS = {
    name: number for number, name in enumerate("Jan Feb Mar Apr May Jun Jul Aug Sep Oct Nov Dec".split(), start=1)
}


def to_us(moment: datetime) -> int:
    """Count µs from the epoch to an aware moment."""
    return (moment - _EPOCH) // _US


def zone_of(name: str) -> tzinfo:
    """Return the time zone of a name such as `UTC` or `Europe/Berlin`.

    Raises:
        ValueError: where the machine knows no such zone.
    """
    if name.upper() in ("UTC", "Z"):
        return UTC
    try:
        return ZoneInfo(name)
    except (ZoneInfoNotFoundError, OSError):
        raise ValueError(f"time zone {shown(name)} is unknown; write a name like 'UTC' or 'Europe/Berlin'") from None


def parse_iso(text: str, zone: tzinfo = UTC) -> int:
    """Read ISO-8601 with `.` or `,` before fractions; a text without offset is in `zone`."""
    try:
        moment = datetime.fromisoformat(text.strip())
        return to_us(moment if moment.tzinfo else moment.replace(tzinfo=zone))
    except (ValueError, OverflowError):
        raise ValueError(f"timestamp {shown(text)} is not ISO-8601, like 2026-01-31T12:00:00.000Z") from None


def parse_access_time(text: str) -> int:
    """Read the time of an access log, `07/Nov/2018:12:27:31 +0000`."""
    try:
        day, month, rest = text.split("/", 2)
        moment = datetime.strptime(f"{day} {_MONTHS[month]} {rest}", "%d %m %Y:%H:%M:%S %z")
        return to_us(moment)
    except (ValueError, KeyError, OverflowError):
        raise ValueError(f"timestamp {shown(text)} is not of the form 07/Nov/2018:12:27:31 +0000") from None


def parse_time_of_day(text: str, day: date, zone: tzinfo) -> int:
    """Read `12:27:31.643` as a moment of a given day."""
    return parse_iso(f"{day.isoformat()}T{text}", zone)


def time_parser(form: str, zone: tzinfo) -> TimeParser:
    """Return the parser of a format: `unix`, `unix_ms`, `unix_us`, `iso`, `access`, or a pattern of `strptime`.

    Raises:
        ValueError: where the format is none of these.
    """
    if form in _UNIX:
        return _counter(_UNIX[form], form)
    if form == "iso":
        return lambda text: parse_iso(text, zone)
    if form == "access":
        return parse_access_time
    if "%" in form:
        return _patterned(form, zone)
    raise ValueError(
        f"time format {shown(form)} is unknown; known: {', '.join(_UNIX)}, iso, access, or a strptime pattern with %"
    )


def _counter(scale: int, form: str) -> TimeParser:
    def parse(text: str) -> int:
        """Return µs since the epoch of a counted time."""
        found = _NUMBER.match(text)
        if found is None:
            raise ValueError(f"timestamp {shown(text)} is not a number ({form})")
        whole, fraction = found.groups(default="")
        return int(whole) * scale + int(fraction.ljust(6, "0")[:6]) * scale // 1_000_000

    return parse


def _patterned(form: str, zone: tzinfo) -> TimeParser:
    def parse(text: str) -> int:
        """Return µs since the epoch of a time written by the pattern."""
        try:
            moment = datetime.strptime(text, form)
            return to_us(moment if moment.tzinfo else moment.replace(tzinfo=zone))
        except (ValueError, OverflowError):
            raise ValueError(f"timestamp {shown(text)} does not match {shown(form)}") from None

    return parse
