"""The JSON Lines reader."""

from __future__ import annotations

import json
from typing import Any

import pytest

from lookup.logs.readers import JsonLinesReader
from lookup.model.documents import Unreadable
from tests.logs.readers.lines import one_row, read_lines

_ROW: dict[str, Any] = {"ts": "2026-01-31T12:00:00Z", "cluster": "east", "topic": "persistent://t/ns/x"}

_TOO_DEEP = "is nested too deep: at most 64 tables or lists may stand inside one another"
_DEEP = "[" * 65 + "]" * 65


def test_canonical_columns_are_read_by_name() -> None:
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
        ("{", "the line is no JSON: Expecting property name enclosed in double quotes at character 2"),
        ("[1]", "a JSON list stands where an object was expected"),
        ("[" * 100_000, f"the line {_TOO_DEEP}"),
        (f'{{"ts": 1, "properties": {_DEEP}}}', f"the line {_TOO_DEEP}"),
        (f'{{"ts": 1, "properties": "{_DEEP}"}}', f"properties {_TOO_DEEP}"),
        ('{"tpoic": "x"}', "table 'lookups' has no column 'tpoic'; did you mean 'topic'?, or `ignore` it"),
        ('{"ts": "noon"}', "timestamp 'noon' is not ISO-8601, like 2026-01-31T12:00:00.000Z"),
        ('{"weight": "heavy"}', "weight 'heavy' is not a number"),
        ('{"read_only": "maybe"}', "read_only 'maybe' is neither true nor false"),
        ('{"properties": "{"}', "properties '{' is no JSON"),
        ('{"seq": "first"}', "seq 'first' is no integer"),
    ],
)
def test_a_line_that_is_no_record_says_why(line: str, reason: str) -> None:
    """A record that cannot be read is unreadable with a reason."""
    assert read_lines(JsonLinesReader(), line) == [Unreadable(1, reason, line[:200])]


def test_keys_can_be_ignored_and_empty_lines_are() -> None:
    """Keys the user names are left out; blank lines are no records."""
    reader = JsonLinesReader(ignore=("note",))
    assert one_row(reader, "", json.dumps({**_ROW, "note": "x"}))["cluster"] == "east"


def test_an_unknown_table_is_refused() -> None:
    """A misspelt table is a ValueError with the closest name."""
    with pytest.raises(ValueError, match="there is no table 'lookup'; did you mean 'lookups'"):
        JsonLinesReader(table="lookup")  # type: ignore[arg-type]  the point of the test
