"""Tables that a program gives in place of files: every kind gives the same figures, mistakes name the argument."""

from __future__ import annotations

import json
import tempfile
from collections.abc import Callable
from datetime import UTC, datetime
from decimal import Decimal
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
from lookup.api.given import given_tables
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
    folder = tmp_path_factory.mktemp("tables")
    for name, table in tables().items():
        pq.write_table(table, folder / f"{name}.parquet")
    return figures(lookup.evaluate(SETTINGS, workers=HERE, **{name: folder / f"{name}.parquet" for name in tables()}))


def _of_duckdb(table: pa.Table) -> duckdb.DuckDBPyRelation:
    return duckdb.connect().from_arrow(table)


def _categories(table: pa.Table) -> pl.DataFrame:
    frame = pl.DataFrame(table)
    texts = [name for name, kind in frame.schema.items() if kind == pl.String]
    enums = {name: pl.Enum(frame[name].drop_nulls().unique()) for name in texts[1:]}
    return frame.cast({texts[0]: pl.Categorical, **enums})


def _categories_of_pandas(table: pa.Table) -> pd.DataFrame:
    frame = table.to_pandas()
    return frame.astype({name: "category" for name in ("cluster", "topic", "broker", "event") if name in frame})


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
    "categories of pandas": _categories_of_pandas,
    "arrow in pandas": lambda table: table.to_pandas(types_mapper=pd.ArrowDtype),
    "polars": pl.DataFrame,
    "categories of polars": _categories,
    "duckdb": _of_duckdb,
    "large texts, decimals, a zone": _wide,
    "dictionaries": lambda table: table.set_column(
        table.schema.get_field_index("cluster"), "cluster", table["cluster"].dictionary_encode()
    ),
    "unsorted": lambda table: table.take(pa.array(range(table.num_rows)[::-1])),
}


@pytest.mark.parametrize("kind", KINDS)
def test_every_kind_of_frame_is_every_table(kind: str, of_files: pd.DataFrame) -> None:
    """The log and all other tables: the figures are those of files."""
    given = {name: KINDS[kind](table) for name, table in tables().items()}

    pd.testing.assert_frame_equal(figures(lookup.evaluate(SETTINGS, workers=HERE, **given)), of_files)


@pytest.mark.spark
def test_frames_of_spark_are_every_table(spark: SparkSession, of_files: pd.DataFrame) -> None:
    """The log by its session, the others out of it."""
    frames = {name: spark.createDataFrame(table.to_pandas()) for name, table in tables().items()}

    pd.testing.assert_frame_equal(figures(lookup.evaluate(SETTINGS, **frames)), of_files)
    # The types of Arrow that Spark makes: times in its zone, and without one.
    timed = frames["brokers"].selectExpr("timestamp_micros(ts) as ts", "cluster", "broker", "event")
    found = lookup.evaluate(SETTINGS, **{**frames, "brokers": timed})
    pd.testing.assert_frame_equal(figures(found), of_files)


@pytest.mark.spark
def test_frames_of_spark_are_refused_by_argument(spark: SparkSession) -> None:
    """Before a task runs."""
    frames = {name: spark.createDataFrame(table.to_pandas()) for name, table in tables().items()}

    with pytest.raises(InputError, match=r"^lookups: column seq "):
        lookup.evaluate(SETTINGS, frames["lookups"].drop("seq"))
    with pytest.raises(InputError, match=r"^lookups: column 'ts' .* string, "):
        lookup.evaluate(SETTINGS, frames["lookups"].withColumn("ts", frames["lookups"].ts.cast("string")))
    with pytest.raises(InputError, match=r"^loads: column ts "):
        lookup.evaluate(SETTINGS, **{**frames, "loads": frames["loads"].drop("ts")})


def test_brokers_may_be_those_of_the_settings() -> None:
    """A list of mappings, which counts in place of a table that the settings name, and whose mistakes are its own."""
    log = tables()["lookups"]
    brokers = [{"id": "b1:8080"}, {"id": "b2:8080"}]
    settings = {"evaluation": {"incumbent": "stock", "seeds": [1]}, "policies": _POLICIES}

    found = lookup.evaluate({**settings, "inputs": {"brokers": "/nowhere"}}, log, brokers=brokers, workers=HERE)

    expected = lookup.evaluate({**settings, "brokers": brokers}, log, workers=HERE)
    pd.testing.assert_frame_equal(figures(found), figures(expected))
    with pytest.raises(SettingsError, match=r"^brokers\[0\]\.idd: .*'id'\?"):
        lookup.evaluate(settings, log, brokers=[{"idd": "b1:8080"}])


def _with(name: str, column: str, values: Any) -> Callable[[], object]:
    def given() -> object:
        table = tables()[name]
        columns = {field: table[field] for field in table.column_names}
        whole = values if isinstance(values, pa.Array) else pa.array([values] * table.num_rows)
        return pa.table({**columns, column: whole})

    return given


def _pandas_with(column: str, values: list[Any]) -> Callable[[], pd.DataFrame]:
    return lambda: tables()["brokers"].to_pandas().assign(**{column: values})


_UNUSABLE = "lookups: 100 of 100 rows .*"


@pytest.mark.parametrize(
    ("name", "given", "sentence"),
    [
        ("loads", lambda: [1, 2], "loads: is of type list, "),
        ("lookups", lambda: pl.LazyFrame({"ts": [1]}), "lookups: is of type LazyFrame, "),
        ("loads", lambda: tables()["loads"].drop_columns("ts"), "loads: column ts .* has cluster, broker, load"),
        (
            "bundles",
            lambda: pl.DataFrame({"time": [1], "bundle": ["t/n/0x0_0xffffffff"]}),
            "bundles: columns ts and cluster and stats",
        ),
        ("brokers", pd.DataFrame, "brokers: columns ts and cluster and broker"),
        (
            "ownership",
            lambda: tables()["ownership"].to_pandas().rename(columns={"event": 5}),
            "ownership: column event .* ts, cluster, bundle, 5",
        ),
        (
            "lookups",
            lambda: pa.Table.from_arrays([pa.array([1])] * 4, names=["ts", "ts", "cluster", "topic"]),
            "lookups: column 'ts' ",
        ),
        (
            "brokers",
            lambda: pd.concat([tables()["brokers"].to_pandas()[["ts"]], tables()["brokers"].to_pandas()], axis=1),
            "brokers: column 'ts' is there 2",
        ),
        ("lookups", lambda: tables()["lookups"].slice(0, 0), "lookups: .* no row"),
        ("loads", _with("loads", "ts", "noon"), "loads: column 'ts' .* string, "),
        (
            "loads",
            _with("loads", "ts", datetime(2026, 1, 1, tzinfo=UTC).date()),
            r"loads: column 'ts' .* date32\[day\], ",
        ),
        ("loads", _with("loads", "load", {"cpu": {"usage": 1.0}}), "loads: column 'load' .* struct<cpu: "),
        (
            "lookups",
            _with("lookups", "properties", pa.array([[("rack", "a")]] * 100, pa.map_(pa.string(), pa.string()))),
            "lookups: column 'properties' .* map<string, string>, ",
        ),
        ("lookups", _with("lookups", "topic", pa.array([b"x"] * 100)), "lookups: column 'topic' .* binary, "),
        ("lookups", _with("lookups", "seq", pa.array([2**63] * 100, pa.uint64())), "lookups: column 'seq' .* int64: "),
        ("brokers", _pandas_with("broker", ["a", 1]), "brokers: column 'broker' "),
        (
            "brokers",
            lambda: tables()["brokers"].to_pandas().astype({"broker": "category", "ts": "category"}),
            "brokers: column 'ts' .* dictionary<values=int64, ",
        ),
        ("lookups", _with("lookups", "ts", pa.nulls(100)), f"{_UNUSABLE}timestamp"),
        ("lookups", _with("lookups", "weight", -1.0), f"{_UNUSABLE}weight -1.0"),
        (
            "lookups",
            lambda: _of_duckdb(tables()["lookups"]).project("topic::int as ts, cluster, topic"),
            "lookups: .*Conversion Error: .* INT32",
        ),
        ("brokers", _with("brokers", "event", "came"), "cluster 'east' .* brokers, row 1: event: 'came'"),
    ],
)
def test_a_table_that_cannot_be_used_is_named_by_its_argument(
    name: str, given: Callable[[], object], sentence: str
) -> None:
    """Its column and what it holds, and never the file that stands for it."""
    frames = {**tables(), name: given()}

    with pytest.raises(PulsarLookupError, match=f"^{sentence}") as raised:
        lookup.evaluate(SETTINGS, workers=HERE, **frames)
    assert tempfile.gettempdir() not in str(raised.value)


def test_rows_that_cannot_be_used_are_in_quarantine_under_their_argument() -> None:
    """Each with its number and the reason, as those of a file."""
    loads = tables()["loads"].to_pandas()
    loads.loc[3, "load"] = "{"

    (row,) = lookup.evaluate(SETTINGS, workers=HERE, **{**tables(), "loads": loads}).quarantine.to_dict("records")

    assert (row["table"], row["source"], row["line"]) == ("loads", "loads", 4)
    assert "load data is no JSON" in row["reason"]


def test_an_empty_table_says_nothing() -> None:
    """As an empty file does: only the log must have rows."""
    frames = {
        name: table.slice(0, 0) if name in ("bundles", "ownership") else table for name, table in tables().items()
    }

    assert lookup.evaluate(SETTINGS, workers=HERE, **frames).exit_code == 0


def test_a_run_says_that_it_had_frames(tmp_path: Path) -> None:
    """In its manifest, and to those who ask it to be replayed; with the frames it is confirmed."""
    frames = tables()
    settings = {**SETTINGS, "verdict": {"primary": ["imbalance_max_mean"]}}
    lookup.evaluate(settings, output=tmp_path / "run", workers=HERE, **frames)

    manifest = json.loads((tmp_path / "run" / "manifest.json").read_text(encoding="utf-8"))
    assert {entry["path"] for entry in manifest["inputs"].values()} == {"given as a frame"}
    with pytest.raises(InputError, match="lookups were given as a frame"):
        lookup.explain_decision(tmp_path / "run", "east/least/1/0", workers=HERE)
    with pytest.raises(InputError, match=r"^loads: .*a frame"):
        lookup.confirm(
            tmp_path / "run", candidate="least", workers=HERE, **{n: t for n, t in frames.items() if n != "loads"}
        )
    again, _ = lookup.confirm(tmp_path / "run", candidate="least", workers=HERE, **frames)
    assert again.results.inputs.lookups == 100


def test_workers_of_a_cluster_cannot_read_frames() -> None:
    """But for BROKERS, which this process reads."""
    with given_tables({"brokers": tables()["brokers"], "loads": "/shared/loads"}) as given:
        given.require_reach()
    with given_tables({"loads": tables()["loads"]}) as given, pytest.raises(SettingsError) as raised:
        given.require_reach()
    assert str(raised.value).startswith("loads: ")
    with given_tables({"lookups": tables()["lookups"]}) as given, pytest.raises(SettingsError, match="DataFrame of Sp"):
        given.require_reach()


def test_files_of_frames_are_gone_after_the_call() -> None:
    """They may be large."""
    with given_tables({"loads": tables()["loads"]}) as given:
        (path,) = given.files

        assert Path(path).exists()

    assert not Path(path).exists()


def test_numbers_of_any_kind_weigh() -> None:
    """Decimals and integers are weights."""
    log = tables()["lookups"]
    found = []
    for values in (pa.array([Decimal("2.0")] * 100), pa.array([2] * 100, pa.int8()), pa.array([2.0] * 100)):
        with given_tables({"lookups": log.set_column(log.schema.get_field_index("weight"), "weight", values)}) as given:
            found.append(pq.read_table(next(iter(given.files)))["weight"].to_pylist())

    assert found[0] == found[1] == found[2] == [2.0] * 100
