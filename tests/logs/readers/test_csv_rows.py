"""The CSV reader."""

from __future__ import annotations

import pytest

from lookup.logs.readers import CsvReader, JsonLinesReader
from lookup.model.documents import Row, Unreadable
from tests.logs.readers.lines import one_row, read_lines

_HEADER = "ts,cluster,topic,properties,read_only,weight,client"


def test_canonical_columns_are_read_under_their_header() -> None:
    """Texts become what the columns hold; empty ones are absent."""
    line = '2026-01-31T12:00:00Z,east,persistent://t/ns/x,"{""rack"":""a""}",true,2.5,'

    assert one_row(CsvReader(), _HEADER, line) == {
        "ts": 1769860800000000,
        "cluster": "east",
        "topic": "persistent://t/ns/x",
        "properties": {"rack": "a"},
        "read_only": True,
        "weight": 2.5,
    }


@pytest.mark.parametrize("reader", ["csv", "jsonl"])
def test_a_time_without_offset_is_utc(reader: str) -> None:
    """CSV and JSON Lines read the same moment, on every machine."""
    time, topic = "2026-01-31T12:00:00", "persistent://t/ns/x"
    if reader == "csv":
        row = one_row(CsvReader(), "ts,topic", f"{time},{topic}")
    else:
        row = one_row(JsonLinesReader(), f'{{"ts": "{time}", "topic": "{topic}"}}')

    assert row["ts"] == 1769860800000000


def test_integers_of_microseconds_are_times() -> None:
    """A count of µs is read as it is."""
    assert one_row(CsvReader(delimiter=";"), "ts;topic", "7;persistent://t/ns/x")["ts"] == 7


@pytest.mark.parametrize(
    ("line", "reason"),
    [
        ("7,east", "2 values where the header names 7 columns"),
        ('7,east,"x', "the quotes do not fit: unexpected end of data"),
        ("7,east,persistent://t/ns/x,{},perhaps,1,", "read_only 'perhaps' is neither true nor false"),
    ],
)
def test_a_bad_record_spoils_only_itself(line: str, reason: str) -> None:
    """A record that cannot be read is reported and the next one is read."""
    bad, good = read_lines(CsvReader(), _HEADER, line, "7,east,persistent://t/ns/x,{},true,1,c")

    assert bad == Unreadable(2, reason, line)
    assert isinstance(good, Row)


def test_an_unknown_column_is_told_with_the_closest() -> None:
    """A misspelt header spoils every record, with a hint."""
    (bad,) = read_lines(CsvReader(), "ts,tpoic", "7,x")

    assert isinstance(bad, Unreadable)
    assert "has no column 'tpoic'; did you mean 'topic'?" in bad.reason


def test_a_delimiter_of_two_characters_is_refused() -> None:
    """CSV has delimiters of one character."""
    with pytest.raises(ValueError, match="`delimiter` must be one character, it is '::'"):
        CsvReader(delimiter="::")


def test_a_header_that_is_one_column_is_questioned() -> None:
    """With another delimiter it would be several."""
    (header,) = read_lines(CsvReader(), "ts;cluster;topic")

    assert header == Unreadable(
        1, "the header is one column, 'ts;cluster;topic'; should `delimiter` be ';'?", "ts;cluster;topic"
    )
    assert read_lines(CsvReader(delimiter=";"), "ts;cluster;topic") == []
