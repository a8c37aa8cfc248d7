"""LOADS, BUNDLES and OWNERSHIP as tasks read them."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import settings as hypothesis_settings
from hypothesis import strategies as st
from pyspark.sql import SparkSession

from lookup.logs.jobs import InProcess, Workers
from lookup.logs.schema import CANONICAL
from lookup.replay import reports
from lookup.replay.days import day_rows
from lookup.replay.reports import (
    ReportTable,
    Tables,
    known_figures,
    known_rates,
    mean_load,
    parts_by_day,
    read_tables,
    unknown_figures,
)
from lookup.replay.run import replay
from lookup.replay.work import WorkDir
from lookup.settings.evaluation import EvaluationFile
from tests.replay.layouts import Layout, write_lookups, write_rows
from tests.replay.plans import NOON, WHOLE, Planned, lookup, planned, policy, settings
from tests.replay.worlds import MICRO

DAY = 86_400 * MICRO
HALF = "t/n/0x00000000_0x80000000"


def _row(**values: Any) -> dict[str, Any]:
    return {"ts": NOON, "cluster": "east", "broker": "a:1", "bundle": WHOLE, **values}


def _read(folder: Path, table: ReportTable, rows: list[dict[str, Any]], workers: Workers | None = None) -> Tables:
    """Read one table of some rows, in one task."""
    folder.mkdir(exist_ok=True)
    path = folder / f"{table}.parquet"
    write_rows([{name: row.get(name) for name in CANONICAL[table].names} for row in rows], table, path)
    given: dict[str, Any] = {"inputs": {"lookups": "none", table: str(path)}}
    if table == "loads":
        given["evaluation"] = {"load": "reported"}
    work, quarantine = WorkDir(str(folder / "work")), str(folder / "quarantine")
    workers = workers or InProcess()
    return read_tables(workers, settings(**given), tick_us=60 * MICRO, work=work, quarantine=quarantine)


def _rows_of(tables: Tables, folder: Path) -> list[tuple[int, int]]:
    """Return the instants of LOADS and the numbers of the brokers, which are called b0 to b6."""
    days = parts_by_day(tables.shares, lambda _, texts: np.array([int(str(text)[1]) for text in texts]))
    (rows,) = (day_rows(WorkDir(str(folder / "work")), parts) for parts in days.values())
    ts, brokers = (rows.column(name, slice(None)).tolist() for name in ("ts", "broker"))
    return list(zip(ts, brokers, strict=True))


def _refused(folder: Path) -> list[str]:
    """Return the reasons in quarantine, in order of the rows."""
    files = sorted((folder / "quarantine").glob("*.parquet"))
    return [reason for file in files for reason in pq.read_table(file).column("reason").to_pylist()]


def _refused_lines(folder: Path) -> list[int]:
    """Return the numbers of the rows in quarantine."""
    files = sorted((folder / "quarantine").glob("*.parquet"))
    return [line for file in files for line in pq.read_table(file).column("line").to_pylist()]


def _reported(plan: Planned, table: str) -> dict[str, list[Any]]:
    """Return the rows of the first day of LOADS or BUNDLES."""
    rows = getattr(plan.ticks[0].reports, table)
    return {name: rows.column(name, slice(None)).tolist() for name in sorted(rows.names - {"seq"})}


@pytest.mark.parametrize("table", ["ownership", "loads", "bundles"])
@pytest.mark.parametrize(("cluster", "reason"), [("", "empty"), ("a ", "'a '")])
def test_rows_of_a_cluster_that_cannot_be_named_go_to_quarantine(
    tmp_path: Path, table: ReportTable, cluster: str, reason: str
) -> None:
    """Each table has the rule of LOOKUPS."""
    row = _row(cluster=cluster, event="owned", load="{}", stats="{}")
    read = _read(tmp_path, table, [row])

    (refused,) = _refused(tmp_path)
    assert (refused.startswith("cluster: "), reason in refused) == (True, True)
    assert (read.quarantined, read.shares) == (1, [])


def test_spark_reads_what_is_too_long_for_one_process(tmp_path: Path, spark: SparkSession) -> None:
    """Of a long table each task of Spark has a share; together they have what one process reads."""
    rows = [_row(ts=NOON + n, broker=f"b{n % 7}:1", load="{}" if n % 1000 else "broken") for n in range(20_001)]
    here, there = (tmp_path / name for name in ("here", "there"))
    jobs = spark.sparkContext.statusTracker().getJobIdsForGroup
    before = jobs()
    ours, theirs = _read(here, "loads", rows), _read(there, "loads", rows, spark)

    assert len(jobs()) > len(before)
    assert len(theirs.shares) > len(ours.shares) == 1
    assert _rows_of(theirs, there) == _rows_of(ours, here)
    assert (theirs.quarantined, _refused_lines(there)) == (21, _refused_lines(here))


def test_bundles_are_named_in_one_way(tmp_path: Path) -> None:
    """Upper case and missing zeros of a logged bundle make no difference."""
    rows = [_row(bundle=name, stats="{}") for name in ("t/n/0x0_0xFFFFFFFF", WHOLE)]
    (share,) = _read(tmp_path, "bundles", rows).shares

    assert set(share.names["bundle"]) == {WHOLE}


def test_rates_of_bundles_are_known_where_any_row_tells_them(tmp_path: Path) -> None:
    """In and out together, in millionths; a rate that no sum could hold goes to quarantine."""
    stats = ('{"msgRateIn":1.5,"msgRateOut":2.0}', "{}", '{"msgRateIn":1e300}')
    plan = planned(tmp_path, [lookup(0)], tables={"bundles": [_row(stats=text) for text in stats]})

    assert plan.cluster.bundle_loads is not None
    assert plan.cluster.bundle_loads.has_rates
    assert _reported(plan, "bundles")["rate"] == [3_500_000, 0]
    assert [reason.partition(" is above")[0] for reason in _refused(tmp_path)] == ["msgRateIn + msgRateOut"]
    assert plan.tables.quarantined == 1


def test_reports_before_the_first_day_count_as_they_last_were(tmp_path: Path) -> None:
    """Of earlier days the last report of each broker comes first, then the day's own in order of time."""
    early = [(NOON - DAY, "b:1"), (NOON - DAY, "a:1"), (NOON - DAY - 1, "a:1"), (NOON - 2 * DAY, "b:1")]
    times = [(NOON + 5, "a:1"), *early, (NOON, "b:1")]
    rows = [_row(ts=ts, broker=name, load=json.dumps({"topics": n})) for n, (ts, name) in enumerate(times)]
    plan = planned(tmp_path, [lookup(0)], tables={"loads": rows}, evaluation={"load": "reported"})
    found = _reported(plan, "loads")

    assert list(zip(found["broker"], found["topics"], strict=True)) == [
        *[(1, 4.0), (1, 1.0), (0, 2.0)],
        *[(1, 5.0), (0, 0.0)],
    ]
    assert plan.cluster.loads is not None
    assert plan.cluster.loads.figures == ("usage", "load", "topics")


#: JSON as Pulsar writes it, and what else may stand in a column of texts.
_FIGURES = st.floats(-10, 1e9) | st.integers(0, 10**12) | st.none()
_OBJECTS = st.dictionaries(
    st.sampled_from(["msgThroughputIn", "msgThroughputOut", "msgRateIn", "msgRateOut", "other"]), _FIGURES
).map(json.dumps)
_ODD = st.sampled_from(
    [
        "",
        "{",
        "[]",
        "3",
        "{}{}",
        "{}\n{}",
        '{"msgRateIn": true}',
        '{"msgRateIn": "1"}',
        '{"msgRateIn": 1e400}',
        '{"msgRateIn": NaN}',
        '{"topics": 1.5}',
        '{"topics": 99999999999999999999}',
        '{"msgThroughputIn": 1e11}',
        '{\n"msgRateIn": 1}',
        '{"msgRateIn": 1, "msgRateIn": 2}',
        '{"consumerCount": null, "unknown": {"a": [1]}}',
    ]
)
_ROWS = st.fixed_dictionaries(
    {
        "ts": st.sampled_from([NOON, NOON + 1, NOON + 2, NOON + 3, None, -(10**18)]),
        "cluster": st.sampled_from(["east", "east", "west", "west", None, "a "]),
        "bundle": st.sampled_from([WHOLE, WHOLE, "t/n/0x0_0xFFFFFFFF", HALF, "no bundle", None]),
        "stats": _OBJECTS | _OBJECTS | _ODD | st.none(),
    }
)


@given(st.lists(_ROWS, min_size=1, max_size=8))
@hypothesis_settings(max_examples=400)
def test_a_batch_says_what_its_rows_say_one_by_one(
    tmp_path_factory: pytest.TempPathFactory, rows: list[dict[str, Any]]
) -> None:
    """Arrow's reading of whole batches gives the figures and the refusals of the reading of single rows."""
    found = []
    for is_whole in (True, False):
        folder = tmp_path_factory.mktemp("batch")
        with pytest.MonkeyPatch.context() as patch:
            if not is_whole:
                patch.setattr(reports, "plain_bundles", lambda rows, cluster: None)
            read = _read(folder, "bundles", rows)
        columns: dict[str, Any] = {}
        for share in read.shares:
            names = share.names["bundle"]
            for part in share.parts:
                held, constants = WorkDir(str(folder / "work")).read(part.name)
                of_part = {name: values.tolist() for name, values in held.items()} | constants
                codes = np.broadcast_to(of_part.pop("bundle"), len(held["ts"])).tolist()
                columns[share.cluster, part.day] = of_part, [names[code] for code in codes], part.first
        given = {share.cluster: share.given & {"msgRateIn", "msgThroughputIn"} for share in read.shares}
        found.append((columns, read.quarantined, _refused(folder), _refused_lines(folder), given))

    assert found[0] == found[1]


_LOAD = {"ts": NOON, "cluster": "east", "broker": "a:1"}
_BUNDLE = {"ts": NOON, "cluster": "east", "bundle": WHOLE}
_RATE = {"msgRateOut": 3.0}


def _planned(folder: Path, *, load: Any = None, bundle: Any = None, **section: Any) -> Planned:
    tables = {"loads": [{**_LOAD, "load": json.dumps(load)}]} if load is not None else {}
    tables |= {"bundles": [{**_BUNDLE, "stats": json.dumps(bundle)}]} if bundle is not None else {}
    evaluation = {"load": "simulated" if load is None else "reported", **section}
    return planned(folder, [lookup(0)], tables=tables, evaluation=evaluation)


def _known(folder: Path, **given: Any) -> set[str]:
    plan = _planned(folder, **given)
    known = known_figures(plan.run, plan.tables)
    return {name.rpartition(".")[2] for name in known}


@pytest.mark.parametrize(
    ("given", "expected"),
    [
        ({}, {"resources"}),
        ({"bundle": _RATE}, {"rates", "resources"}),
        ({"bundle": {"msgThroughputIn": 1.0, "msgRateIn": None}}, {"resources"}),
        ({"load": {}}, set()),
        ({"load": _RATE}, set()),
        ({"load": _RATE, "bundle": _RATE}, {"rates"}),
        ({"load": {"directMemory": {"usage": 1.0, "limit": 2.0}}}, {"resources"}),
    ],
)
def test_what_the_tables_tell_is_known(tmp_path: Path, given: dict[str, Any], expected: set[str]) -> None:
    """By any row that gives a key, whatever its value; rates have to be known of bundles as well as of brokers."""
    assert _known(tmp_path, **given) == expected


def test_every_part_that_goes_by_what_nobody_knows_is_named() -> None:
    """Shedders and parts inside others too; a part that declares nothing in particular is not accused."""
    tested = policy(
        filters=["max-topics"],
        selector={"use": "fallback", "children": ["least-long-term-message-rate", "best"]},
        shedder="avg",
    )
    found = unknown_figures([policy(), tested], set())

    assert [sentence.partition(" needs ")[0] for sentence in found] == [
        "policy 'p': 'fallback'",
        "policy 'p': 'avg'",
        "policy 'p': 'avg'",
    ]
    assert "need msgRateIn or msgRateOut" in found[0]


def test_it_is_said_before_the_run(tmp_path: Path) -> None:
    """Before anything is read."""
    write_lookups([lookup(0)], tmp_path / "lookups", Layout())
    file = settings(
        inputs={"lookups": str(tmp_path / "lookups")},
        policies=[{"name": "p", "selector": "best", "shedder": "uniform"}],
    )
    said: list[str] = []
    replay(InProcess(), file, str(tmp_path / "out"), progress=said.append, warn=lambda text: said.append(f"! {text}"))

    assert [line.startswith("! policy 'p': 'uniform'") for line in said[:2]] == [True, False]


@pytest.mark.parametrize(
    ("given", "expected"),
    [
        ({}, (False, False, "")),
        ({"bytes_per_weight": 2.0}, (True, False, "")),
        ({"bundle": {"msgThroughputOut": 0.0}}, (True, False, "")),
        ({"bundle": _RATE, "bytes_per_weight": 2.0}, (False, True, "no row of BUNDLES gives")),
        ({"bundle": {"msgThroughputOut": 1.0}, "load": {}}, (False, False, "no row of LOADS gives")),
        ({"bundle": {}, "load": {}}, (False, False, "of BUNDLES and of LOADS")),
        ({"bundle": {"msgThroughputOut": 1.0}, "load": {"msgThroughputIn": 1.0}}, (True, False, "")),
    ],
)
def test_tables_tell_which_rates_are_known(tmp_path: Path, given: dict[str, Any], expected: tuple[Any, ...]) -> None:
    """Bytes of BUNDLES, with reported load of LOADS too; what is stated counts only without BUNDLES."""
    plan = _planned(tmp_path, **given)
    rates = known_rates(plan.run, plan.tables)

    assert (rates.has_bytes, rates.has_messages) == expected[:2]
    assert rates.has_bytes or expected[2] in rates.why


def _file(folder: Path, rows: list[dict[str, Any]], *, is_hive: bool = False, **inputs: str) -> EvaluationFile:
    write_lookups(rows, folder / "lookups", Layout(is_hive=is_hive, file_rows=2, group_rows=1))
    return settings(inputs={"lookups": str(folder / "lookups"), **inputs})


def test_weight_by_second_and_broker(tmp_path: Path) -> None:
    """60 of weight in 10 s over two brokers; a row without weight weighs 1.0."""
    rows = [lookup(0, weight=19.0), lookup(10, weight=40.0), lookup(4, weight=None)]

    assert mean_load(_file(tmp_path, rows)) == pytest.approx(3.0)


def test_weights_that_are_refused_do_not_count(tmp_path: Path) -> None:
    """One that is no number, is negative or infinite would make the sum senseless."""
    rows = [lookup(0, weight=19.0), lookup(10, weight=41.0)]
    wrong = [lookup(5, weight=value) for value in (float("nan"), float("inf"), -7.0)]

    assert mean_load(_file(tmp_path, rows + wrong)) == pytest.approx(3.0)


@pytest.mark.parametrize("is_hive", [True, False])
def test_a_log_without_weights_counts_lookups(tmp_path: Path, is_hive: bool) -> None:
    """Of two clusters, each with the two brokers of the settings, whether folders or a column name them."""
    rows = [lookup(0), lookup(1, cluster="west"), lookup(3), lookup(4)]

    assert mean_load(_file(tmp_path, rows, is_hive=is_hive)) == pytest.approx(4 / 4 / 4)


def test_a_brokers_table_says_how_many_there_are(tmp_path: Path) -> None:
    """However often one registers."""
    row = {"ts": NOON, "cluster": "east", "event": "registered"}
    write_rows(
        [{**row, "broker": broker} for broker in ("a:1", "b:1", "a:1", "c:1")], "brokers", tmp_path / "b.parquet"
    )
    file = _file(tmp_path, [lookup(0), lookup(1), lookup(2)], brokers=str(tmp_path / "b.parquet"))

    assert mean_load(file) == pytest.approx(3 / 2 / 3)


def test_a_log_of_an_instant_says_nothing(tmp_path: Path) -> None:
    """Nor does none at all."""
    assert mean_load(_file(tmp_path, [lookup(0), lookup(0)])) is None
    assert mean_load(settings()) is None
