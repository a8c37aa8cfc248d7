"""Tables that a program gives in place of files: every kind gives the same figures, mistakes name the argument."""

from __future__ import annotations

import json
import tempfile
from collections.abc import Callable
from datetime import date
from pathlib import Path
from typing import Any

import duckdb
import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyspark.sql import SparkSession

import lookup
from lookup.errors import InputError, PulsarLookupError, SettingsError
from lookup.logs.jobs import InProcess

HERE = InProcess()
FIRST_US = 1_769_860_800_000_000
BUNDLE = "t/n/0x00000000_0xffffffff"
_POLICIES = [{"name": "stock", "selector": "random"}, {"name": "least", "scorers": ["headroom"], "selector": "best"}]
SETTINGS: dict[str, Any] = {
    "evaluation": {"incumbent": "stock", "seeds": [1], "load": "reported", "default_bundles": 1},
    "policies": _POLICIES,
}


def tables() -> dict[str, pa.Table]:
    """Return a log of an hour with brokers, their loads, statistics of the bundle, and an unload."""
    at = [FIRST_US + second * 1_000_000 for second in range(0, 3600, 36)]
    first = {"ts": FIRST_US, "cluster": "east"}
    names = [f"b{number}:8080" for number in range(2)]
    throughput = {"msgThroughputIn": 1000.0, "msgThroughputOut": 1000.0}
    loads = [{"cpu": {"usage": 10.0 + 40.0 * (name == names[0]), "limit": 100.0}} | throughput for name in names]
    return {
        "lookups": pa.Table.from_pylist(
            [
                {"ts": ts, "seq": row, "cluster": "east", "topic": f"persistent://t/n/x{row % 7}", "weight": 1.5}
                for row, ts in enumerate(at)
            ]
        ),
        "brokers": pa.Table.from_pylist([{**first, "broker": name, "event": "registered"} for name in names]),
        "loads": pa.Table.from_pylist(
            [
                {**first, "ts": ts, "broker": name, "load": json.dumps(load)}
                for ts in at[::10]
                for name, load in zip(names, loads, strict=True)
            ]
        ),
        "bundles": pa.Table.from_pylist([{**first, "bundle": BUNDLE, "stats": json.dumps(throughput)}]),
        "ownership": pa.Table.from_pylist(
            [
                {**first, "bundle": BUNDLE, "event": "owned", "broker": names[0], "by": "policy", "boundaries": []},
                {**first, "ts": at[50], "bundle": BUNDLE, "event": "unloaded", "broker": None, "by": "admin"},
            ]
        ),
    }


def figures(found: lookup.api.results.Evaluation) -> pd.DataFrame:
    """Return the figures of an evaluation that can be compared."""
    return found.figures


@pytest.fixture(scope="module")
def of_files(tmp_path_factory: pytest.TempPathFactory) -> pd.DataFrame:
    """Return the figures over the tables as files."""
    paths = {name: tmp_path_factory.mktemp("tables") / f"{name}.parquet" for name in tables()}
    for name, table in tables().items():
        pq.write_table(table, paths[name])
    return figures(lookup.evaluate(settings=SETTINGS, workers=HERE, **paths))


def _categories(table: pa.Table) -> pl.DataFrame:
    frame = pl.DataFrame(table)
    texts = [name for name, kind in frame.schema.items() if kind == pl.String]
    enums = {name: pl.Enum(frame[name].drop_nulls().unique()) for name in texts[1:]}
    return frame.cast({texts[0]: pl.Categorical, **enums})


def _wide(table: pa.Table) -> pa.Table:
    kinds = {pa.string(): pa.large_string(), pa.float64(): pa.decimal128(12, 3), pa.int64(): pa.int64()}
    fields = [field.with_type(kinds.get(field.type, field.type)) for field in table.schema]
    times = table.cast(pa.schema(fields))
    zoned = times["ts"].cast(pa.timestamp("us", "UTC")).cast(pa.timestamp("ns", "Europe/Berlin"))
    return times.set_column(times.schema.get_field_index("ts"), "ts", zoned)


def _indexed(table: pa.Table) -> pd.DataFrame:
    frame = table.to_pandas()
    return frame.assign(ts=pd.to_datetime(frame["ts"], unit="us"), mine=[{"a": 1}] * len(frame)).set_index("ts")


KINDS: dict[str, Callable[[pa.Table], object]] = {
    "arrow": lambda table: table,
    "batch": lambda table: table.combine_chunks().to_batches()[0],
    "reader": lambda table: table.to_reader(max_chunksize=3),
    "pandas": lambda table: table.to_pandas(),
    "naive times in the index, an object beside": _indexed,
    "categories of pandas": lambda table: table.to_pandas().astype({"cluster": "category"}),
    "arrow in pandas": lambda table: table.to_pandas(types_mapper=pd.ArrowDtype),
    "polars": pl.DataFrame,
    "categories of polars": _categories,
    "duckdb": lambda table: duckdb.connect().from_arrow(table),
    "large texts, decimals, a zone": _wide,
    "unsorted": lambda table: table.take(pa.array(range(table.num_rows)[::-1])),
}


@pytest.mark.parametrize("kind", KINDS)
def test_every_kind_of_frame_is_every_table(kind: str, of_files: pd.DataFrame) -> None:
    """The log and all other tables: the figures are those of files."""
    given = {name: KINDS[kind](table) for name, table in tables().items()}

    pd.testing.assert_frame_equal(figures(lookup.evaluate(settings=SETTINGS, workers=HERE, **given)), of_files)


@pytest.mark.spark
def test_frames_of_spark_are_every_table(spark: SparkSession, of_files: pd.DataFrame) -> None:
    """The log by its session, the others out of it; each as Spark's own types may have it, times without a zone too."""
    frames = {name: spark.createDataFrame(table.to_pandas()) for name, table in tables().items()}

    pd.testing.assert_frame_equal(figures(lookup.evaluate(settings=SETTINGS, **frames)), of_files)
    frames["brokers"] = frames["brokers"].selectExpr("timestamp_micros(ts) as ts", "cluster", "broker", "event")
    pd.testing.assert_frame_equal(figures(lookup.evaluate(settings=SETTINGS, **frames)), of_files)
    for name, column in (("lookups", "seq"), ("loads", "ts")):
        with pytest.raises(InputError, match=f"^{name}: column {column} is missing"):
            lookup.evaluate(settings=SETTINGS, **{**frames, name: frames[name].drop(column)})


def test_brokers_may_be_those_of_the_settings() -> None:
    """A list of mappings, which counts in place of a table that the settings name, and whose mistakes are its own."""
    given = {"policies": _POLICIES, "incumbent": "stock", "overrides": {"evaluation.seeds": [1]}, "workers": HERE}
    brokers = [{"id": "b1:8080"}, {"id": "b2:8080"}]

    found, expected = (
        figures(lookup.evaluate(tables()["lookups"], settings=settings, **more, **given))
        for settings, more in (({"inputs": {"brokers": "/nowhere"}}, {"brokers": brokers}), ({"brokers": brokers}, {}))
    )

    pd.testing.assert_frame_equal(found, expected)
    with pytest.raises(SettingsError, match=r"^brokers\[0\]\.idd: .*'id'\?"):
        lookup.evaluate(tables()["lookups"], brokers=[{"idd": "b1:8080"}], **given)


def _with(name: str, **columns: Any) -> Callable[[], object]:
    def given() -> object:
        table = tables()[name]
        whole = {column: pa.array([value] * table.num_rows) for column, value in columns.items()}
        return pa.table({**dict(zip(table.column_names, table.columns, strict=True)), **whole})

    return given


def _twice() -> pd.DataFrame:
    frame = tables()["brokers"].to_pandas()
    return pd.concat([frame[["ts"]], frame], axis=1)


def _without(name: str, *columns: str) -> Callable[[], object]:
    return lambda: pl.DataFrame(tables()[name]).drop(columns).rename({"cluster": "Cluster"})


_UNUSABLE = "lookups: 100 of 100 rows .*"


@pytest.mark.parametrize(
    ("name", "given", "sentence"),
    [
        ("loads", lambda: [1, 2], "loads: row 0 is 1, which is not a mapping"),
        ("lookups", lambda: pl.LazyFrame({"ts": [1]}), "lookups: is of type LazyFrame, "),
        ("loads", _without("loads", "ts"), "loads: column ts is missing; it needs ts, broker, load, and has Cluster, "),
        ("bundles", _without("bundles", "ts", "stats"), "bundles: columns ts and stats are missing; "),
        ("ownership", lambda: pd.DataFrame({5: ["a"]}), "ownership: columns .* has 5$"),
        ("brokers", _twice, "brokers: column 'ts' is there 2"),
        ("lookups", lambda: tables()["lookups"].slice(0, 0), "lookups: .* no row"),
        ("loads", _with("loads", ts="noon"), "loads: column 'ts': timestamp 'noon' is not ISO-8601"),
        ("loads", _with("loads", ts=date(2026, 1, 1)), r"loads: column 'ts' .* date32\[day\], "),
        ("loads", _with("loads", ts=1_769_860_800_000), "loads: its times .* as ms; "),
        ("lookups", _with("lookups", ts=None), f"{_UNUSABLE}timestamp"),
        ("lookups", _with("lookups", weight="1.5"), "lookups: column 'weight': '1.5' is a text; "),
        ("lookups", _with("lookups", weight=-1.0), f"{_UNUSABLE}weight -1.0"),
        ("lookups", _with("lookups", properties={"rack": 1}), "lookups: column 'properties': property 'rack' is 1, "),
        ("lookups", _with("lookups", topic=b"x"), "lookups: column 'topic' .* binary, "),
        ("lookups", _with("lookups", seq=0.5), "lookups: column 'seq' .* double, "),
        (
            "brokers",
            lambda: pd.DataFrame({"broker": ["a", 1], "lookup_data": "{}"}),
            "brokers: column 'broker' holds values",
        ),
        ("brokers", _with("brokers", event="came"), "cluster 'east' .* brokers, row 1: event: 'came'"),
        ("lookups", lambda: duckdb.connect().sql("select 'x'::int as ts"), "lookups: .*Conversion Error: .* INT32"),
    ],
)
def test_a_table_that_cannot_be_used_is_named_by_its_argument(
    name: str, given: Callable[[], object], sentence: str
) -> None:
    """Its column and what it holds, and never the file that stands for it."""
    with pytest.raises(PulsarLookupError, match=f"^{sentence}") as raised:
        lookup.evaluate(settings=SETTINGS, workers=HERE, **{**tables(), name: given()})
    assert tempfile.gettempdir() not in str(raised.value)


def test_rows_that_cannot_be_used_are_in_quarantine_under_their_argument() -> None:
    """Each with its number and the reason, as those of a file; a table without rows is no mistake."""
    loads = tables()["loads"].to_pandas()
    loads.loc[3, "load"] = "{"
    given = {**tables(), "loads": loads, "bundles": tables()["bundles"].slice(0, 0)}

    (row,) = lookup.evaluate(settings=SETTINGS, workers=HERE, **given).quarantine.to_dict("records")

    assert (row["table"], row["source"], row["line"]) == ("loads", "loads", 4)
    assert "load data is not JSON" in row["reason"]


def test_a_run_says_that_it_had_frames(tmp_path: Path) -> None:
    """In its manifest, and to those who ask it to be replayed; with the frames it is confirmed."""
    run, frames = tmp_path / "run", tables()
    found = lookup.evaluate(settings=SETTINGS, output=run, workers=HERE, **frames)
    given = {"candidate": "least", "workers": HERE, "overrides": {"verdict.primary": ["imbalance_max_mean"]}}

    assert {entry["path"] for entry in found.manifest["inputs"].values()} == {"given as a frame"}
    with pytest.raises(InputError, match="lookups were given as a frame"):
        lookup.explain_decision(run, "east/least/1/0", workers=HERE)
    with pytest.raises(InputError, match=r"^loads: .*a frame"):
        lookup.confirm(run, **{**frames, "loads": None}, **given)
    assert lookup.confirm(run, **frames, **given)[0].results.inputs.lookups == 100
