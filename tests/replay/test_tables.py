"""The small tables."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from lookup.errors import InputError
from lookup.model.broker import Broker, Roster
from lookup.model.namespaces import NamespacePolicies
from lookup.replay.atoms import AtomRule, Atoms
from lookup.replay.tables import broker_numbers, bundle_numbers, bundle_rows, load_rows, ownership_events, registrations
from tests.replay.plans import NOON, WHOLE
from tests.replay.worlds import MICRO, write_rows

ROW = {"ts": NOON, "cluster": "east", "broker": "a:1", "bundle": WHOLE}


def _written(folder: Path, table: str, *rows: dict[str, Any]) -> str:
    write_rows([{**ROW, **row} for row in rows], table, folder / "x.parquet")
    return str(folder / "x.parquet")


def test_rows_are_in_order_of_time_then_of_the_file(tmp_path: Path) -> None:
    """Unsorted files are put in order; equal times stay as they stand."""
    rows = [
        {"ts": NOON + second, "event": "registered", "broker": name} for second, name in ((2, "c"), (1, "a"), (1, "b"))
    ]
    found = registrations(_written(tmp_path, "brokers", *rows)).of("east")

    assert [row["value"].broker for row in found] == ["a", "b", "c"]


def test_no_path_is_no_row() -> None:
    """A table that is not given has no rows and nothing wrong."""
    assert registrations(None).rows == {}
    assert registrations(None).of("east") == []


def test_the_folder_s_cluster_stands_for_the_column(tmp_path: Path) -> None:
    """A path that names the cluster wins over what the rows say."""
    _written(tmp_path / "cluster=west", "brokers", {"event": "registered"})

    assert list(registrations(str(tmp_path)).rows) == ["west"]


def test_timestamps_may_be_integers(tmp_path: Path) -> None:
    """µs since the epoch, as the fast layout writes them, are as good as timestamps."""
    columns = {"ts": [NOON], "cluster": ["east"], "bundle": [WHOLE], "event": ["owned"], "broker": ["a:1"]}
    pq.write_table(pa.table(columns), tmp_path / "x.parquet")

    (row,) = ownership_events(str(tmp_path / "x.parquet")).of("east")
    assert (row["value"].ts_us, row["value"].bundle) == (NOON, WHOLE)


def test_bundles_are_named_in_one_way(tmp_path: Path) -> None:
    """Upper case and missing zeros of a logged bundle make no difference."""
    (row,) = ownership_events(_written(tmp_path, "ownership", {"event": "owned", "bundle": "t/n/0x0_0xFFFFFFFF"})).of(
        "east"
    )

    assert row["value"].bundle == WHOLE


def test_bytes_that_are_no_text_refuse_the_table(tmp_path: Path) -> None:
    """A small table with bytes that are no UTF-8 is named."""
    raw = pa.array([b"\xff"], pa.binary())
    broken = pa.StringArray.from_buffers(1, raw.buffers()[1], raw.buffers()[2])
    table = pa.table({"ts": [NOON], "cluster": ["east"], "broker": broken, "event": ["registered"]})
    pq.write_table(table, tmp_path / "x.parquet")

    with pytest.raises(InputError, match=r"x\.parquet: holds bytes that are no text in UTF-8: "):
        registrations(str(tmp_path / "x.parquet"))


def test_loads_of_known_brokers_become_columns(tmp_path: Path) -> None:
    """Usage, load and topics stand under the broker's number; brokers that nobody registered are left out."""
    report = '{"weightedMaxEMA":0.5,"msgThroughputIn":2.0,"msgThroughputOut":1.0,"topics":7}'
    rows = load_rows(_written(tmp_path, "loads", {"load": report}, {"load": report, "broker": "gone"})).of("east")
    columns = broker_numbers(rows, Roster([Broker("0"), Broker("a:1")]))

    assert {name: values.tolist() for name, values in columns.items()} == {
        "ts": [NOON],
        "broker": [1],
        "usage": [0.5],
        "load": [3.0],
        "topics": [7],
    }


def test_bundle_stats_become_columns_of_atoms(tmp_path: Path) -> None:
    """Throughput in micro-units stands under the bundle's atoms; bundles of no whole atoms are left out."""
    stats = '{"msgThroughputIn":0.1,"msgThroughputOut":0.2}'
    bundles = ({"bundle": WHOLE}, {"bundle": "t/n/0x00000000_0x10000000"}, {"bundle": "t/other/0x00000000_0xffffffff"})
    rows = bundle_rows(_written(tmp_path, "bundles", *({**row, "stats": stats} for row in bundles))).of("east")
    columns = bundle_numbers(rows, Atoms.of(AtomRule(NamespacePolicies(default_bundles=2), {}), ["t/n"]))

    assert {name: values.tolist() for name, values in columns.items()} == {
        "ts": [NOON],
        "first": [0],
        "stop": [2],
        "micro": [round(0.3 * MICRO)],
    }
