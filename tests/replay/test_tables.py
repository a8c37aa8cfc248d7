"""The small tables."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from lookup.errors import InputError
from lookup.logs.schema import CANONICAL
from lookup.model.broker import Broker, Roster
from lookup.model.bundles import NamespacePolicies
from lookup.replay.atoms import AtomRule, Atoms
from lookup.replay.tables import (
    SmallTable,
    broker_numbers,
    bundle_numbers,
    bundle_rows,
    load_rows,
    ownership_events,
    registrations,
)
from tests.replay.layouts import write_rows
from tests.replay.plans import NOON, WHOLE
from tests.replay.worlds import MICRO

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


@pytest.mark.parametrize(
    ("table", "read"),
    [("brokers", registrations), ("ownership", ownership_events), ("loads", load_rows), ("bundles", bundle_rows)],
)
@pytest.mark.parametrize(
    ("cluster", "reason"), [("", "the cluster is empty"), ("a ", "cluster 'a ' begins or ends with a blank")]
)
def test_rows_of_a_cluster_that_cannot_be_named_go_to_quarantine(
    tmp_path: Path, table: str, read: Callable[[str], SmallTable], cluster: str, reason: str
) -> None:
    """Each of the small tables has the rule of LOOKUPS."""
    row = {"cluster": cluster, "event": "registered", "load": "{}", "stats": "{}"}
    row = {name: value for name, value in row.items() if name in CANONICAL[table].names}
    found = read(_written(tmp_path, table, row))

    assert ([one.reason for one in found.quarantined], found.rows) == ([f"cluster: {reason}"], {})


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


def test_what_only_some_loads_tell_is_a_column_with_gaps(tmp_path: Path) -> None:
    """NaN where a row is silent, 0 for a resource beside others; what no row tells is no column."""
    told = '{"cpu":{"usage":30,"limit":100},"msgRateIn":2.5,"maxResourceUsage":0.3,"msgThroughputEMA":7,"topics":null}'
    rows = load_rows(_written(tmp_path, "loads", {"load": told}, {"load": "{}"})).of("east")
    columns = broker_numbers(rows, Roster([Broker("a:1")]))
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


def test_rates_of_bundles_are_a_column_where_any_row_tells_them(tmp_path: Path) -> None:
    """In and out together, in millionths; a rate that no sum could hold goes to quarantine."""
    stats = ('{"msgRateIn":1.5,"msgRateOut":2.0}', "{}", '{"msgRateIn":1e300}')
    table = bundle_rows(_written(tmp_path, "bundles", *({"bundle": WHOLE, "stats": text} for text in stats)))
    columns = bundle_numbers(table.of("east"), Atoms.of(AtomRule(NamespacePolicies(default_bundles=1), {}), ["t/n"]))

    assert columns["rate"].tolist() == [3_500_000, 0]
    assert [row.reason.partition(" is above")[0] for row in table.quarantined] == ["msgRateIn + msgRateOut"]


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
