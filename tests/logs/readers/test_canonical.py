"""Canonical rows are read from CSV and JSON Lines."""

from __future__ import annotations

import json
from typing import Any

import pytest

from lookup.logs.readers import CsvReader, JsonLinesReader
from lookup.model.documents import Row, Unreadable
from tests.logs.readers.lines import one_row, read_lines

_HEADER = "ts,cluster,topic,properties,read_only,weight,client"
_ROW: dict[str, Any] = {"ts": "2026-01-31T12:00:00Z", "cluster": "east", "topic": "persistent://t/ns/x"}


_DEEP = "[" * 65 + "]" * 65


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
        ("7,east", "2 values where"),
        ('7,east,"x', "the quotes do not fit: "),
        ("7,east,persistent://t/ns/x,{},perhaps,1,", "read_only 'perhaps' "),
    ],
)
def test_a_bad_record_spoils_only_itself(line: str, reason: str) -> None:
    """A record that cannot be read is reported and the next one is read."""
    bad, good = read_lines(CsvReader(), _HEADER, line, "7,east,persistent://t/ns/x,{},true,1,c")

    assert isinstance(bad, Unreadable)
    assert (bad.line, bad.text, bad.reason.startswith(reason)) == (2, line, True)
    assert isinstance(good, Row)


def test_an_unknown_column_is_told_with_the_closest() -> None:
    """A misspelt header spoils every record, with a hint."""
    (bad,) = read_lines(CsvReader(), "ts,tpoic", "7,x")

    assert isinstance(bad, Unreadable)
    assert "did you mean 'topic'?" in bad.reason


def test_a_delimiter_of_two_characters_is_refused() -> None:
    """CSV has delimiters of one character."""
    with pytest.raises(ValueError, match=r"`delimiter` .* '::'"):
        CsvReader(delimiter="::")


def test_canonical_keys_are_read_by_name() -> None:
    """Times may be ISO or µs, properties an object or JSON text, empty values are left out."""
    reader = JsonLinesReader()
    full = {**_ROW, "properties": {"rack": "a"}, "weight": 2, "read_only": True, "client": None, "listener": ""}

    values = {"ts": 1769860800000000, "cluster": "east", "topic": "persistent://t/ns/x"}
    assert one_row(reader, json.dumps(_ROW)) == values
    assert one_row(reader, json.dumps({**_ROW, "ts": 1769860800000000})) == values
    assert one_row(reader, json.dumps(full)) == {**values, "properties": {"rack": "a"}, "weight": 2, "read_only": True}
    assert one_row(reader, json.dumps({**_ROW, "properties": '{"rack":"a"}'}))["properties"] == {"rack": "a"}


def test_other_tables_keep_pulsars_json_as_text() -> None:
    """An object in a column of JSON becomes text; a text stays."""
    record = {"ts": 7, "cluster": "east", "broker": "b:8080", "event": "registered", "lookup_data": {"a": [1]}}
    assert one_row(JsonLinesReader(table="brokers"), json.dumps(record))["lookup_data"] == '{"a":[1]}'
    split = {"ts": 7, "bundle": "t/ns/0x00000000_0xffffffff", "event": "split", "boundaries": ["0x40000000"]}
    assert one_row(JsonLinesReader(table="ownership"), json.dumps(split))["boundaries"] == ["0x40000000"]


@pytest.mark.parametrize(
    ("line", "reason"),
    [
        ("{", "the line is not JSON: "),
        ("[1]", "the line is not a JSON object but list"),
        ("[" * 100_000, "the line is nested too deep"),
        (f'{{"ts": 1, "properties": {_DEEP}}}', "the line is nested too deep"),
        (f'{{"ts": 1, "properties": "{_DEEP}"}}', "properties is nested too deep"),
        ('{"tpoic": "x"}', "table 'lookups' has no column 'tpoic'"),
        ('{"ts": "noon"}', "timestamp 'noon' "),
        ('{"weight": "heavy"}', "weight 'heavy' "),
        ('{"read_only": "maybe"}', "read_only 'maybe' "),
        ('{"properties": "{"}', "properties '{' "),
        ('{"seq": "first"}', "seq 'first' "),
    ],
)
def test_a_line_that_is_no_record_says_why(line: str, reason: str) -> None:
    """A record that cannot be read is unreadable with a reason."""
    (bad,) = read_lines(JsonLinesReader(), line)

    assert isinstance(bad, Unreadable)
    assert (bad.line, bad.text, bad.reason.startswith(reason)) == (1, line[:200], True)


def test_keys_can_be_ignored_and_empty_lines_are() -> None:
    """Keys the user names are left out; blank lines are no records."""
    reader = JsonLinesReader(ignore=("note",))
    assert one_row(reader, "", json.dumps({**_ROW, "note": "x"}))["cluster"] == "east"


def test_an_unknown_table_is_refused() -> None:
    """A misspelt table is a ValueError with the closest name."""
    with pytest.raises(ValueError, match="there is no table 'lookup'"):
        JsonLinesReader(table="lookup")  # type: ignore[arg-type]  the point of the test


def test_records_find_their_tables_by_their_columns() -> None:
    """One file may hold rows of every table, and a header says to which its records belong."""
    records = (
        {"topic": "persistent://t/n/a"},
        {"broker": "b:1", "load": {"cpu": {"usage": 1.0}}},
        {"bundle": "t/n/0x00000000_0x40000000", "stats": {"msgRateIn": 1.0}},
        {"bundle": "t/n/0x00000000_0x40000000", "event": "owned", "broker": "b:1"},
        {"broker": "b:1", "event": "registered"},
    )
    rows = read_lines(JsonLinesReader(), *(json.dumps({"ts": 7, "cluster": "c", **record}) for record in records))
    assert [row.table for row in rows if isinstance(row, Row)] == [
        "lookups",
        "loads",
        "bundles",
        "ownership",
        "brokers",
    ]

    (row,) = read_lines(CsvReader(), "ts,cluster,broker,load", "7,c,b:1,{}")
    assert isinstance(row, Row)
    assert row.table == "loads"
