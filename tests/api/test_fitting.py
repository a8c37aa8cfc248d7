"""Frames as people have them: every kind gives the value that its canonical tables give."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from datetime import UTC, datetime, timedelta
from typing import Any

import duckdb
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from pyspark.sql import SparkSession

import lookup
from lookup.errors import PulsarLookupError
from lookup.logs.jobs import InProcess

_FIRST = datetime(2026, 1, 31, 12, tzinfo=UTC)
#: A log of one cluster, times as texts, properties as mappings, some of which lack a label.
ROWS: list[dict[str, Any]] = [
    {
        "ts": (_FIRST + timedelta(seconds=10 * number)).isoformat(),
        "topic": f"persistent://shop/team-{number % 40}/orders",
        "properties": {"rack": "ab"[number % 40 % 2], **({"zone": "z"} if number % 3 else {})},
    }
    for number in range(200)
]
BROKERS = [{"broker": f"b{number}:8080", "properties": {"lookup.rack": rack}} for number, rack in enumerate("ab")]


def _value(lookups: Any, brokers: Any = BROKERS, workers: Any = None) -> tuple[float, list[str]]:
    """Return how many lookups are answered in their rack if a policy looks at it, and the clusters."""
    if brokers is BROKERS:
        brokers = pd.DataFrame(BROKERS)
    rack = {"name": "rack", "scorers": ["property-match"], "selector": "best"}
    found = lookup.evaluate(
        lookups, policies=["random", rack], incumbent="random", brokers=brokers, workers=workers or InProcess(),
        overrides={"evaluation.seeds": 1},
    )  # fmt: skip
    return found.results.pooled["rack", "match_ratio", "rack"].value, list(found.results.clusters)


def _sql(query: str) -> Callable[[], Any]:
    def relation() -> Any:
        connection = duckdb.connect()
        connection.register("log", pa.Table.from_pylist(ROWS))
        return connection.sql(query)

    return relation


def _pandas(**columns: Any) -> pd.DataFrame:
    return pd.DataFrame(ROWS).assign(**columns)


_TIMES = pd.to_datetime(pd.Series([row["ts"] for row in ROWS]))
_TOLD = [{"broker": row["broker"], "lookup_data": {"properties": row["properties"]}} for row in BROKERS]


@pytest.mark.parametrize(
    "log",
    [
        lambda: ROWS,
        _pandas,
        lambda: _pandas(ts=_TIMES.dt.tz_localize(None)),
        lambda: _pandas(ts=_TIMES.dt.tz_convert("Asia/Tokyo")),
        lambda: _pandas(ts=[text.replace("+00:00", "") for text in _pandas()["ts"]]).set_index("ts"),
        lambda: [{**row, **({"seq": number} if number % 2 else {})} for number, row in enumerate(ROWS)],
        lambda: _pandas(weight=[1, *[1.0] * 199], client=None, mine=[{"a": 1}, *"b" * 199]),
        lambda: pl.DataFrame(ROWS),
        lambda: pl.DataFrame(ROWS).with_columns(
            pl.col("ts").str.to_datetime(time_zone="UTC").dt.epoch("us"), cluster=pl.lit("main")
        ),
        lambda: pl.DataFrame(ROWS).with_columns(pl.col("topic").cast(pl.Categorical)),
        lambda: pa.Table.from_pylist(ROWS),
        lambda: pa.Table.from_pylist(ROWS).to_reader(max_chunksize=7),
        _sql("from log"),
        _sql("select ts::timestamp as ts, topic, map {'rack': properties.rack} as properties from log"),
    ],
)
def test_every_form_of_a_log_is_of_one_cluster(log: Callable[[], Any]) -> None:
    """Times as texts, with zones or without; properties as mappings, structs or maps."""
    assert _value(log()) == (1.0, ["main"])


@pytest.fixture
def in_tokyo(spark: SparkSession) -> Iterator[SparkSession]:
    """Let the session, which other tests use too, speak another zone for one test."""
    before = spark.conf.get("spark.sql.session.timeZone") or "UTC"
    spark.conf.set("spark.sql.session.timeZone", "Asia/Tokyo")
    yield spark
    spark.conf.set("spark.sql.session.timeZone", before)


@pytest.mark.spark
def test_a_log_of_spark_is_of_one_cluster(in_tokyo: SparkSession) -> None:
    """It needs `seq` alone beside; a session's own zone does not count."""
    schema = "ts string, topic string, properties map<string, string>, seq bigint"
    rows = [(row["ts"].replace("+00:00", ""), *list(row.values())[1:], seq) for seq, row in enumerate(ROWS)]

    found = lookup.evaluate(
        in_tokyo.createDataFrame(rows, schema), policies=["random"], incumbent="random", brokers=_TOLD, workers=in_tokyo
    )

    assert (found.results.inputs.first_us, list(found.results.clusters)) == (
        int(_FIRST.timestamp()) * 1_000_000,
        ["main"],
    )


@pytest.mark.parametrize("make", [lambda rows: rows, pd.DataFrame, pl.DataFrame, pa.Table.from_pylist])
@pytest.mark.parametrize(
    "rows",
    [
        [{"id": row["broker"], "properties": row["properties"]} for row in BROKERS],
        [{**row, "cluster": "main", "capacity": 5.0 if row is BROKERS[0] else None} for row in BROKERS],
        _TOLD,
        [{**row, "ts": "2026-01-31T11:00:00", "event": "registered"} for row in _TOLD],
    ],
)
def test_brokers_without_times_are_registered_all_the_time(make: Callable[[Any], Any], rows: Any) -> None:
    """With the columns of `[[brokers]]` or of BROKERS; with times as these say."""
    assert _value(ROWS, make(rows))[0] == 1.0


@pytest.mark.parametrize(
    ("rows", "sentence"),
    [
        ([{"broker": "a:1", "rack": "a"}], r"brokers\[0\]\.rack: there is no such key; "),
        ([{"broker": "a:1", "properties": {"rack": "a"}}], r'brokers\[0\]\..* did you mean "lookup\.rack"\?$'),
        ([{"ts": "2026-01-31", "broker": "a:1"}], "brokers: column event is missing; "),
        (["a:1"], "brokers: row 0 is 'a:1', which is not a mapping"),
    ],
)
def test_brokers_that_cannot_be_read_are_named(rows: Any, sentence: str) -> None:
    """By row and key, as settings are."""
    with pytest.raises(PulsarLookupError, match=f"^{sentence}"):
        _value(ROWS, rows)
