"""Points in time as logs write them."""

from __future__ import annotations

from datetime import UTC, datetime
from zoneinfo import ZoneInfo

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lookup.model.time import (
    FIRST_US,
    LAST_US,
    HalfDayClock,
    counted_unit,
    is_in_calendar,
    likelier_unit,
    mistaken_unit,
    moment_at,
    parse_access_time,
    parse_iso,
    time_parser,
    time_text,
    to_us,
    zone_of,
)

_MOMENTS = st.datetimes(timezones=st.just(UTC))


@given(_MOMENTS)
def test_iso_survives_a_round_trip(moment: datetime) -> None:
    """An ISO text gives back its moment to the µs."""
    assert parse_iso(moment.isoformat()) == to_us(moment)


@pytest.mark.parametrize(
    "text",
    [
        "2023-09-20T08:27:32,188+0000",
        "2023-09-20T08:27:32.188Z",
        "2023-09-20 10:27:32.188+02:00",
        "2023-09-20T08:27:32.188",
    ],
)
def test_iso_dialects_mean_the_same(text: str) -> None:
    """Comma or point, offset or none, blank or T: one moment."""
    assert parse_iso(text) == 1695198452188000


def test_a_text_without_offset_is_in_the_given_zone() -> None:
    """The zone applies to texts without offset, daylight saving included."""
    assert parse_iso("2023-09-20T10:27:32.188", zone_of("Europe/Berlin")) == 1695198452188000


def test_access_log_times_are_read_in_any_locale() -> None:
    """The English month of an access log is read whatever the process's locale says."""
    assert parse_access_time("07/Nov/2018:12:27:31 +0000") == 1541593651000000
    assert parse_access_time("16/Apr/2026:11:30:22 -0700") == 1776364222000000


@given(st.integers(0, 10**12), st.integers(0, 999_999))
def test_unix_seconds_are_exact(seconds: int, micros: int) -> None:
    """A decimal count of seconds keeps every µs."""
    assert time_parser("unix", UTC)(f"{seconds}.{micros:06}") == seconds * 1_000_000 + micros


def test_short_and_long_fractions() -> None:
    """A fraction of any length counts; what is below the µs is cut off."""
    assert time_parser("unix", UTC)("7.5") == 7_500_000
    assert time_parser("unix", UTC)("7.0000019") == 7_000_001
    assert time_parser("unix_ms", UTC)("7.25") == 7_250


def test_other_units_and_patterns() -> None:
    """Milliseconds, µs, ns and strptime patterns are read as they say; what is below the µs is cut off."""
    assert time_parser("unix_ms", UTC)("1695198452188") == 1695198452188000
    assert time_parser("unix_us", UTC)("1695198452188000") == 1695198452188000
    assert time_parser("unix_ns", UTC)("1695198452188000999") == 1695198452188000
    assert time_parser("%d.%m.%Y %H:%M", zone_of("Europe/Berlin"))("20.09.2023 10:27") == 1695198420000000


@pytest.mark.parametrize(
    ("form", "text", "sentence"),
    [
        ("unix", "soon", "timestamp 'soon' is not a number"),
        ("unix", "1e999999999", "is not a number"),
        ("iso", "yesterday", "is not ISO-8601"),
        ("access", "07/Foo/2018:12:27:31 +0000", "07/Nov/2018"),
        ("%Y", "x", "does not match '%Y'"),
    ],
)
def test_what_is_no_time_is_told_by_a_clause(form: str, text: str, sentence: str) -> None:
    """A text that is no time raises ValueError with what it should have been."""
    with pytest.raises(ValueError, match=sentence):
        time_parser(form, UTC)(text)


def test_unknown_formats_and_zones_are_refused() -> None:
    """A misspelt format or zone is a ValueError that lists or shows what is right."""
    with pytest.raises(ValueError, match="known: unix, unix_ms, "):
        time_parser("epoch", UTC)
    with pytest.raises(ValueError, match="time zone 'Mars/Base' is unknown"):
        zone_of("Mars/Base")


@pytest.mark.parametrize(
    ("text", "zone", "what"),
    [
        ("2026-10-25T02:30:00", "Europe/Berlin", "was shown twice"),
        ("2026-03-29T02:30:00", "Europe/Berlin", "was put forward over"),
        ("2026-11-01T01:59:59", "America/New_York", "was shown twice"),
        ("2026-03-08T02:00:00", "America/New_York", "was put forward over"),
    ],
)
def test_a_time_that_is_none_or_two_is_refused(text: str, zone: str, what: str) -> None:
    """Instants of the repeated hour would fall on those before it; the sentence says what helps."""
    for parse in (lambda text: parse_iso(text, zone_of(zone)), time_parser("%Y-%m-%dT%H:%M:%S", zone_of(zone))):
        with pytest.raises(ValueError, match=f"{what}.*like 'Etc/GMT-1'"):
            parse(text)


@pytest.mark.parametrize("text", ["2026-10-25T01:59:59", "2026-10-25T03:00:00", "2026-10-25T02:30:00+01:00"])
def test_times_beside_the_repeated_hour_are_clear(text: str) -> None:
    """And so is one with an offset."""
    berlin = ZoneInfo("Europe/Berlin")
    moment = datetime.fromisoformat(text)

    assert parse_iso(text, berlin) == to_us(moment if moment.tzinfo else moment.replace(tzinfo=berlin))


@given(_MOMENTS)
def test_an_instant_is_the_moment_it_was_counted_from(moment: datetime) -> None:
    """Counting µs and going back loses nothing, and what is printed is read as the same instant."""
    assert moment_at(to_us(moment)) == moment
    assert parse_iso(time_text(to_us(moment))) == to_us(moment)


@pytest.mark.parametrize(
    ("first_us", "last_us", "unit"),
    [
        (1_711_372_749_900, 1_711_459_149_900, "ms"),
        (1_711_372_749, 1_711_459_149, "seconds"),
        (1_711_372, 1_711_459, "seconds taken for ns"),
        (1_711_372_749_000_000, 1_711_459_149_000_000, None),
        (0, 3_600_000_000, None),
        (1_711_372_749_900, 1_711_372_749_000_000, None),
    ],
)
def test_a_table_in_another_unit_is_found(first_us: int, last_us: int, unit: str | None) -> None:
    """If all times of a table would be of our days in another unit, that unit is named; a table from 0 on is sound."""
    sentence = mistaken_unit(first_us, last_us)

    assert sentence is None if unit is None else sentence is not None and f"of March 2024 as {unit};" in sentence


def test_a_count_is_read_in_the_unit_that_makes_it_likely() -> None:
    """Seconds, ms, µs and ns of one moment are told apart by their size; other numbers and texts are no times."""
    counts = ("1711372749.9", "1711372749900", "1711372749900000", "1711372749900000000")
    assert [counted_unit(text) for text in counts] == ["unix", "unix_ms", "unix_us", "unix_ns"]
    assert [counted_unit(text) for text in ("2024-03-25", "7", "20240325131909", "")] == [None] * 4


@pytest.mark.parametrize(
    ("hours", "lacks"),
    [
        ((11, 12, 1, 2), True),
        ((2, 1, 12, 11), True),
        ((11, 12, 13, 14), False),
        ((1, 2, 11, 12), False),
        ((1, 12, 13), False),
    ],
)
def test_a_clock_of_half_days_jumps(hours: tuple[int, ...], lacks: bool) -> None:
    """From 12 to 1 o'clock it goes back by half a day, with no hour above 12."""
    clock = HalfDayClock()
    for hour in hours:
        clock.take(hour * 3_600_000_000 + 1_800_000_000)

    assert clock.lacks_half_days is lacks


@pytest.mark.parametrize(
    ("form", "meant"), [("unix_ms", "unix"), ("unix_us", "unix_ms"), ("unix_ns", "unix_us"), ("iso", None)]
)
def test_a_likelier_unit_is_found(form: str, meant: str | None) -> None:
    """A count of one unit that was read as the next smaller one."""
    assert likelier_unit(parse_iso("2026-01-01T00:00:00Z") // 1_000, form) == meant


def test_calendars_end_with_the_year_9999() -> None:
    """The first and the last µs have a date; those before and after have none."""
    assert time_text(FIRST_US) == "0001-01-01T00:00:00Z"
    assert time_text(LAST_US) == "9999-12-31T23:59:59.999999Z"
    for beyond in (FIRST_US - 1, LAST_US + 1):
        with pytest.raises(OverflowError):
            moment_at(beyond)
    assert time_text(None) is None


def test_an_offset_may_lead_out_of_the_calendar() -> None:
    """A moment counts by its time in UTC."""
    assert is_in_calendar(datetime.fromisoformat("9999-12-31T23:59:59Z"))
    assert not is_in_calendar(datetime.fromisoformat("9999-12-31T23:59:59-01:00"))
