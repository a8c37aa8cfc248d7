"""Rows of tables, and what cannot be used of them."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from lookup.errors import InputError
from lookup.model.broker import Broker, Roster
from lookup.model.time import FIRST_US
from lookup.replay.tables import broker_numbers, registrations, reported_load
from tests.replay.layouts import write_rows
from tests.replay.plans import NOON

ROW = {"ts": NOON, "cluster": "east", "broker": "a:1", "event": "registered"}


def _written(folder: Path, *rows: dict[str, Any]) -> str:
    write_rows([{**ROW, **row} for row in rows], "brokers", folder / "x.parquet")
    return str(folder / "x.parquet")


def test_rows_are_in_order_of_time_then_of_the_file(tmp_path: Path) -> None:
    """Unsorted files are put in order; equal times stay as they stand."""
    rows = [{"ts": NOON + second, "broker": name} for second, name in ((2, "c"), (1, "a"), (1, "b"))]

    assert [row.broker for row in registrations(_written(tmp_path, *rows)).of("east")] == ["a", "b", "c"]


def test_a_list_of_brokers_registers_them_for_all_time(tmp_path: Path) -> None:
    """Without `ts` and `event` a broker is registered before any log begins, and `id` is as good a name."""
    data = '{"brokerVersion":"4.2.4"}'
    rows = pa.table({"id": ["b1:8080", "b2:8080"], "cluster": ["east", "east"], "lookup_data": [data, None]})
    pq.write_table(rows, tmp_path / "a.parquet")

    first, second = registrations(str(tmp_path)).of("east")

    assert (first.broker, first.event, second.broker) == ("b1:8080", "registered", "b2:8080")
    assert first.lookup_data is not None
    assert first.lookup_data.broker_version == "4.2.4"
    assert first.ts_us == second.ts_us == FIRST_US


def test_no_path_is_no_row() -> None:
    """A table that is not given has no rows and nothing wrong."""
    assert registrations(None).rows == {}
    assert registrations(None).of("east") == []


def test_the_folder_s_cluster_stands_for_the_column(tmp_path: Path) -> None:
    """A path that names the cluster wins over what the rows say."""
    _written(tmp_path / "cluster=west", {})

    assert list(registrations(str(tmp_path)).rows) == ["west"]


def test_timestamps_may_be_integers(tmp_path: Path) -> None:
    """µs since the epoch, as the fast layout writes them, are as good as timestamps."""
    columns = {"ts": [NOON], "cluster": ["east"], "broker": ["a:1"], "event": ["registered"]}
    pq.write_table(pa.table(columns), tmp_path / "x.parquet")

    (row,) = registrations(str(tmp_path / "x.parquet")).of("east")
    assert (row.ts_us, row.broker) == (NOON, "a:1")


def test_bytes_that_are_no_text_refuse_the_table(tmp_path: Path) -> None:
    """A table with bytes that are no UTF-8 is named."""
    raw = pa.array([b"\xff"], pa.binary())
    broken = pa.StringArray.from_buffers(1, raw.buffers()[1], raw.buffers()[2])
    table = pa.table({"ts": [NOON], "cluster": ["east"], "broker": broken, "event": ["registered"]})
    pq.write_table(table, tmp_path / "x.parquet")

    with pytest.raises(InputError, match=r"x\.parquet: .* UTF-8: "):
        registrations(str(tmp_path / "x.parquet"))


def test_reports_of_known_brokers_become_columns() -> None:
    """Usage, load and topics stand under the broker's number; brokers that nobody registered are left out."""
    report = reported_load('{"weightedMaxEMA":0.5,"msgThroughputIn":2.0,"msgThroughputOut":1.0,"topics":7}')
    columns = broker_numbers([(NOON, "a:1", report), (NOON, "gone", report)], Roster([Broker("0"), Broker("a:1")]))

    assert {name: values.tolist() for name, values in columns.items()} == {
        "ts": [NOON],
        "broker": [1],
        "usage": [0.5],
        "load": [3.0],
        "topics": [7],
    }


def test_what_only_some_reports_tell_is_a_column_with_gaps() -> None:
    """NaN where a row is silent, 0 for a resource beside others; what no row tells is no column."""
    partial = (
        '{"cpu":{"usage":30,"limit":100},"msgRateIn":2.5,"maxResourceUsage":0.3,"msgThroughputEMA":7,"topics":null}'
    )
    columns = broker_numbers([(NOON, "a:1", reported_load(text)) for text in (partial, "{}")], Roster([Broker("a:1")]))
    found = {name: [str(value) for value in columns[name].tolist()] for name in columns if name not in ("ts", "broker")}

    assert found == {
        "usage": ["1.0", "1.0"],
        "load": ["0.0", "0.0"],
        "max_usage": ["0.3", "nan"],
        "smoothed_throughput": ["7.0", "nan"],
        "rate": ["2.5", "nan"],
        "cpu": ["30.000001907348633", "nan"],
        **{name: ["0.0", "nan"] for name in ("memory", "direct_memory", "bandwidth_in", "bandwidth_out")},
    }
