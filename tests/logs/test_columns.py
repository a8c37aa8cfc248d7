"""Columns of the canonical tables, and checking rows against them."""

from __future__ import annotations

import math
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from lookup.logs.columns import RESULTS, check_row
from lookup.logs.schema import CANONICAL
from lookup.model.time import FIRST_US, LAST_US
from scripts.columns import PAGE, page_with_columns

_ROW: dict[str, Any] = {"ts": 7, "cluster": "east", "topic": "persistent://t/ns/x"}
_SPLIT: dict[str, Any] = {"ts": 7, "cluster": "east", "bundle": "t/ns/0x00000000_0x40000000", "event": "split"}
_SCALARS = st.none() | st.booleans() | st.integers() | st.floats() | st.text() | st.binary()
_VALUES = st.one_of(_SCALARS, st.lists(_SCALARS), st.dictionaries(st.text(), _SCALARS))
_COLUMNS = st.sampled_from(sorted({name for schema in CANONICAL.values() for name in schema.names} | {"other"}))


def test_a_sound_row_gets_the_defaults() -> None:
    """Absent columns that have a default get it; null means absent."""
    assert check_row("lookups", {**_ROW, "client": None, "properties": {"b": "2", "a": "1"}}, None) == {
        **_ROW,
        "properties": '{"a":"1","b":"2"}',
        "result": "unknown",
        "read_only": False,
        "authoritative": False,
        "weight": 1.0,
    }


def test_half_a_surrogate_pair_is_replaced() -> None:
    """A file holds only text that UTF-8 can hold."""
    row = check_row("lookups", {**_ROW, "client": "c\ud800"}, None)
    assert isinstance(row, dict)
    assert row["client"] == "c?"


@pytest.mark.parametrize("table", sorted(CANONICAL))
def test_a_row_of_a_cluster_that_cannot_be_named_is_refused(table: str) -> None:
    """Every table has the same rule, also where the command names a cluster for rows without one."""
    hidden = check_row(table, {"cluster": "a\tb"}, None)

    assert check_row(table, {"cluster": ""}, "west") == "cluster: the cluster is empty"
    assert r"character '\t'" in str(hidden)


def test_the_cluster_of_the_command_is_for_rows_without_one() -> None:
    """A row's own cluster wins; without either it is missing."""
    nameless = {"ts": 7, "topic": "persistent://t/ns/x"}
    assert check_row("lookups", nameless, "west")["cluster"] == "west"  # type: ignore[call-overload,index]  a row
    assert check_row("lookups", _ROW, "west")["cluster"] == "east"  # type: ignore[call-overload,index]  a row
    assert check_row("lookups", nameless, None) == "cluster is missing"


#: Values of a row of LOOKUPS, and how the sentence begins that it has in quarantine.
SENTENCES = [
    ({"topic": "persistent://t/ns/[a-z]+"}, "topic: 'persistent://t/ns/[a-z]+' is a regular expression of a topic"),
    ({"topic": "orders"}, "topic: topic 'orders' does not begin with persistent://"),
    ({"topic": 7}, "topic: 7 is not text"),
    ({"ts": "now"}, "ts: 'now' is not an integer of µs"),
    ({"ts": FIRST_US - 1}, "ts: -62135596800000001 µs is not between the years 1 and 9999"),
    ({"seq": 1 << 63}, "seq: 9223372036854775808 is not an integer from -2^63 to 2^63 - 1"),
    ({"ts": True}, "ts: True is not an integer of µs"),
    ({"weight": math.nan}, "weight: nan is not a finite number, 0 or more"),
    ({"weight": "2"}, "weight: '2' is not a number"),
    ({"propensity": 1.5}, "propensity: 1.5 is not a finite number, above 0 and at most 1"),
    ({"result": "ok"}, "result: 'ok' is none of connect, redirect, failed, unknown"),
    ({"read_only": 1}, "read_only: 1 is neither true nor false"),
    ({"properties": "{}"}, "properties: '{}' is not a mapping"),
    ({"properties": {"rack": 1}}, "properties: property 'rack' is 1, which is not text"),
    ({"wieght": 1.0}, "there is no column 'wieght'; did you mean 'weight'?"),
    ({"topic": None}, "topic is missing"),
    ({"latency_ms": 10**400}, "latency_ms: 1000"),
]


@pytest.mark.parametrize(("values", "reason"), SENTENCES)
def test_an_unsound_lookup_has_a_reason(values: dict[str, Any], reason: str) -> None:
    """A value that its column cannot hold is told by the column, the value and what would be right."""
    answer = check_row("lookups", {**_ROW, **values}, None)
    assert isinstance(answer, str)
    assert answer.startswith(reason)


@pytest.mark.parametrize(
    ("table", "values", "reason"),
    [
        ("lookup", {}, "there is no table 'lookup'; "),
        ("brokers", {"ts": 7, "cluster": "c", "broker": "b:1", "event": "gone"}, "event: 'gone' "),
        ("loads", {"ts": 7, "cluster": "c", "broker": "b:1", "load": "[1]"}, "load: '[1]' "),
        ("bundles", {"ts": 7, "cluster": "c", "bundle": "t/ns/7", "stats": "{}"}, "bundle: bundle range '7' "),
        ("ownership", {**_SPLIT, "event": "owned"}, "an `owned` row names no"),
        ("ownership", _SPLIT, "a `split` row needs `boundaries`"),
        ("ownership", {**_SPLIT, "boundaries": ["0x50000000"]}, "a `split` row needs `boundaries`"),
        ("ownership", {**_SPLIT, "boundaries": ["x"]}, "boundaries: ['x'] "),
        ("ownership", {**_SPLIT, "boundaries": ["0x100000000"]}, "boundaries: ['0x100000000'] "),
        ("ownership", {**_SPLIT, "by": "me"}, "by: 'me' "),
    ],
)
def test_an_unsound_row_of_another_table_has_a_reason(table: str, values: dict[str, Any], reason: str) -> None:
    """Every table is checked like LOOKUPS."""
    answer = check_row(table, values, None)
    assert isinstance(answer, str)
    assert answer.startswith(reason)


@pytest.mark.parametrize("values", [{"ts": FIRST_US}, {"ts": -1}, {"ts": LAST_US}, {"seq": -5}])
def test_instants_of_every_calendar_year_and_any_number_are_sound(values: dict[str, Any]) -> None:
    """A log may begin before 1970, and numbers that only order rows may be negative."""
    row = check_row("lookups", {**_ROW, **values}, None)

    assert isinstance(row, dict)
    assert values.items() <= row.items()


def test_json_is_left_to_a_caller_that_parses_it() -> None:
    """All other columns are checked all the same."""
    row = {"ts": 7, "cluster": "east", "broker": "b:1", "load": "[1]"}

    assert check_row("loads", row, reads_json=False) == row
    assert check_row("loads", {**row, "broker": ""}, reads_json=False) == "broker: '' is not text"


def test_the_page_lists_the_columns_of_the_code() -> None:
    """`python scripts/columns.py` writes the table of columns."""
    page = PAGE.read_text(encoding="utf-8")

    assert page_with_columns(page) == page
    assert all(f"`{result}`" in page for result in RESULTS)


def test_bundles_and_boundaries_are_written_one_way() -> None:
    """Hash texts get eight lower-case digits and ascend, each once."""
    row = check_row("ownership", {**_SPLIT, "bundle": "t/ns/0X0_0X40000000", "boundaries": ["A", "0X1", "a"]}, None)
    assert isinstance(row, dict)
    assert (row["bundle"], row["boundaries"]) == ("t/ns/0x00000000_0x40000000", ["0x00000001", "0x0000000a"])


@given(st.sampled_from(sorted(CANONICAL)), st.dictionaries(_COLUMNS, _VALUES))
def test_any_row_is_sound_or_has_a_reason_and_sound_rows_can_be_written(table: str, values: dict[str, Any]) -> None:
    """For any row of a reader, the answer is a reason or a row that Arrow takes."""
    answer = check_row(table, values, "east")
    if isinstance(answer, dict):
        assert pa.Table.from_pylist([answer], schema=CANONICAL[table]).num_rows == 1
    else:
        assert answer


def test_json_that_is_nested_too_deep_is_refused_with_its_column() -> None:
    """JSON that brokers registered or reported has the limit of every file."""
    row = {"ts": 7, "cluster": "east", "broker": "b:1", "event": "registered"}
    deep = f'{{"x": {"[" * 64}{"]" * 64}}}'

    assert str(check_row("brokers", {**row, "lookup_data": deep}, None)).startswith("lookup_data: is nested too deep")
    assert isinstance(check_row("brokers", {**row, "lookup_data": f'{{"x": {"[" * 63}{"]" * 63}}}'}, None), dict)


@pytest.mark.parametrize("name", ["broker", "client", "listener", "properties", "result", "asked_broker"])
def test_an_empty_text_of_a_lookup_is_none(name: str) -> None:
    """As a replay reads it; a topic and a cluster there have to be."""
    row = {"ts": 1, "topic": "persistent://t/n/a", "cluster": "c"}

    assert check_row("lookups", {**row, name: ""}) == check_row("lookups", row)
    assert check_row("lookups", {**row, "topic": ""}) == "topic: '' is not text"
