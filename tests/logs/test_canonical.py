"""Checking rows and writing the canonical layout."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st

from lookup.logs.canonical import canonical_json, check_row, partition_of, write_parquet
from lookup.logs.schema import CANONICAL

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
    """What UTF-8 cannot hold does not reach a file."""
    row = check_row("lookups", {**_ROW, "client": "c\ud800"}, None)
    assert isinstance(row, dict)
    assert row["client"] == "c?"


@pytest.mark.parametrize("table", sorted(CANONICAL))
def test_a_row_of_a_cluster_that_cannot_be_named_is_refused(table: str) -> None:
    """Every table has the same rule, also where the command names a cluster for rows without one."""
    hidden = check_row(table, {"cluster": "a\tb"}, None)

    assert check_row(table, {"cluster": ""}, "west") == "cluster: the cluster is empty"
    assert hidden == r"cluster: cluster 'a\tb' has the character '\t', which nobody sees"


def test_the_cluster_of_the_command_is_for_rows_without_one() -> None:
    """A row's own cluster wins; without either the reason says how to give one."""
    nameless = {"ts": 7, "topic": "persistent://t/ns/x"}
    assert check_row("lookups", nameless, "west")["cluster"] == "west"  # type: ignore[call-overload,index]  a row
    assert check_row("lookups", _ROW, "west")["cluster"] == "east"  # type: ignore[call-overload,index]  a row
    assert check_row("lookups", nameless, None) == "cluster is missing; name one with --cluster"


@pytest.mark.parametrize(
    ("values", "reason"),
    [
        ({"topic": "persistent://t/ns/[a-z]+"}, "topic: 'persistent://t/ns/[a-z]+' is a regular expression of a topic"),
        ({"topic": "orders"}, "topic: topic 'orders' does not begin with persistent://"),
        ({"topic": 7}, "topic: 7 is no text"),
        ({"ts": "now"}, "ts: 'now' is no integer of µs"),
        ({"ts": -1}, "ts: -1 µs is not between the years 1970 and 9999"),
        ({"ts": True}, "ts: True is no integer of µs"),
        ({"weight": -1.0}, "weight: -1.0 is not a finite number, 0 or more"),
        ({"weight": math.nan}, "weight: nan is not a finite number, 0 or more"),
        ({"weight": "2"}, "weight: '2' is no number"),
        ({"propensity": 0}, "propensity: 0 is not a finite number, above 0 and at most 1"),
        ({"propensity": 1.5}, "propensity: 1.5 is not a finite number, above 0 and at most 1"),
        ({"result": "ok"}, "result: 'ok' is none of connect, redirect, failed, unknown"),
        ({"read_only": 1}, "read_only: 1 is neither true nor false"),
        ({"properties": "{}"}, "properties: '{}' is no mapping"),
        ({"properties": {"rack": 1}}, "properties: property 'rack' is 1, which is no text"),
        ({"wieght": 1.0}, "there is no column 'wieght'; did you mean 'weight'?"),
        ({"topic": None}, "topic is missing"),
        ({"latency_ms": 10**400}, "latency_ms: 1000"),
        ({"weight": math.inf}, "weight: inf is not a finite number, 0 or more"),
    ],
)
def test_an_unsound_lookup_has_a_reason(values: dict[str, Any], reason: str) -> None:
    """A value that its column cannot hold is told by the column, the value and what would be right."""
    answer = check_row("lookups", {**_ROW, **values}, None)
    assert isinstance(answer, str)
    assert answer.startswith(reason)


@pytest.mark.parametrize(
    ("table", "values", "reason"),
    [
        ("lookup", {}, "there is no table 'lookup'; did you mean 'lookups'?"),
        ("brokers", {"ts": 7, "cluster": "c", "broker": "b:1", "event": "gone"}, "event: 'gone' is none of registered"),
        ("loads", {"ts": 7, "cluster": "c", "broker": "b:1", "load": "[1]"}, "load: '[1]' is no JSON object"),
        ("bundles", {"ts": 7, "cluster": "c", "bundle": "t/ns/7", "stats": "{}"}, "bundle: bundle range '7' is not"),
        ("ownership", {**_SPLIT, "event": "owned"}, "an `owned` row names no broker"),
        ("ownership", _SPLIT, "a `split` row needs `boundaries` inside its bundle t/ns/0x00000000_0x40000000"),
        ("ownership", {**_SPLIT, "boundaries": ["0x50000000"]}, "a `split` row needs `boundaries` inside"),
        ("ownership", {**_SPLIT, "boundaries": ["x"]}, "boundaries: ['x'] has an entry that is no hash text"),
        ("ownership", {**_SPLIT, "boundaries": ["0x2", "0x1"]}, "boundaries: ['0x2', '0x1'] does not ascend"),
        ("ownership", {**_SPLIT, "by": "me"}, "by: 'me' is none of policy, admin"),
    ],
)
def test_an_unsound_row_of_another_table_has_a_reason(table: str, values: dict[str, Any], reason: str) -> None:
    """Every table is checked like LOOKUPS."""
    answer = check_row(table, values, None)
    assert isinstance(answer, str)
    assert answer.startswith(reason)


def test_bundles_and_boundaries_are_written_one_way() -> None:
    """Hash texts get eight lower-case digits."""
    row = check_row("ownership", {**_SPLIT, "bundle": "t/ns/0X0_0X40000000", "boundaries": ["0X1", "A"]}, None)
    assert isinstance(row, dict)
    assert (row["bundle"], row["boundaries"]) == ("t/ns/0x00000000_0x40000000", ["0x00000001", "0x0000000a"])


@given(st.sampled_from(sorted(CANONICAL)), st.dictionaries(_COLUMNS, _VALUES))
def test_any_row_is_sound_or_has_a_reason_and_sound_rows_can_be_written(table: str, values: dict[str, Any]) -> None:
    """Whatever a reader yields, the answer is a reason or a row that Arrow takes."""
    answer = check_row(table, values, "east")
    if isinstance(answer, dict):
        assert pa.Table.from_pylist([answer], schema=CANONICAL[table]).num_rows == 1
    else:
        assert answer


@given(st.dictionaries(st.text(), st.text()))
def test_equal_properties_have_equal_texts(properties: dict[str, str]) -> None:
    """The order in which properties were sent does not matter."""
    assert canonical_json(dict(reversed(properties.items()))) == canonical_json(properties)


def test_a_cluster_of_any_name_is_one_folder() -> None:
    """Slashes and equal signs of a cluster's name are encoded as Hive does."""
    assert partition_of("a/b=c", "2026-01-31") == "cluster=a%2Fb%3Dc/date=2026-01-31"


def test_a_file_keeps_its_dictionaries(tmp_path: Path) -> None:
    """20,000 topics of 45 bytes stay dictionary-encoded in the one row group, and times are stored as differences."""
    topics = [f"persistent://tenant/namespace/topic-{number:09}" for number in range(20_000)]
    rows = [{"ts": place, "seq": place, "cluster": "c", "topic": topic} for place, topic in enumerate(topics * 2)]
    path = tmp_path / "part.parquet"
    write_parquet(pa.Table.from_pylist(rows, schema=CANONICAL["lookups"]), str(path))

    group = pq.ParquetFile(path).metadata.row_group(0)
    columns = {group.column(place).path_in_schema: group.column(place) for place in range(group.num_columns)}
    assert group.num_rows == 40_000
    assert columns["topic"].encodings == ("PLAIN", "RLE", "RLE_DICTIONARY")
    assert columns["topic"].total_uncompressed_size < 1.3 * 20_000 * 45
    assert "DELTA_BINARY_PACKED" in columns["ts"].encodings


def test_json_that_is_nested_too_deep_is_refused_with_its_column() -> None:
    """What brokers registered or reported has the limit that every file has."""
    row = {"ts": 7, "cluster": "east", "broker": "b:1", "event": "registered"}
    deep = f'{{"x": {"[" * 64}{"]" * 64}}}'

    assert check_row("brokers", {**row, "lookup_data": deep}, None) == (
        "lookup_data: is nested too deep: at most 64 tables or lists may stand inside one another"
    )
    assert isinstance(check_row("brokers", {**row, "lookup_data": f'{{"x": {"[" * 63}{"]" * 63}}}'}, None), dict)
