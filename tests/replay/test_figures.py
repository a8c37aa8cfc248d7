"""Figures of load that a run knows before it begins, and the mean load of a broker."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from lookup.logs.jobs import InProcess
from lookup.replay.figures import known_figures, known_rates, mean_load, unknown_figures
from lookup.replay.run import replay
from lookup.settings.evaluation import EvaluationFile
from tests.replay.layouts import Layout, write_lookups, write_rows
from tests.replay.plans import NOON, WHOLE, Planned, lookup, planned, policy, settings

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
        ({}, {"resources", "topics"}),
        ({"bundle": _RATE}, {"rates", "resources", "topics"}),
        ({"bundle": {"msgThroughputIn": 1.0, "msgRateIn": None}}, {"resources", "topics"}),
        ({"load": {}}, {"topics"}),
        ({"load": _RATE}, {"topics"}),
        ({"load": _RATE, "bundle": _RATE}, {"rates", "topics"}),
        ({"load": {"directMemory": {"usage": 1.0, "limit": 2.0}}}, {"resources", "topics"}),
        ({"ownership": "shared"}, {"resources"}),
        ({"ownership": "shared", "load": {"topics": 0}}, {"topics"}),
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
    found = unknown_figures([policy(), tested], {"view.load.topics"})

    assert [sentence.partition(" goes by ")[0] for sentence in found] == [
        "policy 'p': 'fallback'",
        "policy 'p': 'avg'",
        "policy 'p': 'avg'",
    ]
    assert found[0].endswith("gives msgRateIn or msgRateOut; load or its own default stands in")


def test_it_is_said_before_the_run(tmp_path: Path) -> None:
    """Before anything is read."""
    write_lookups([lookup(0)], tmp_path / "lookups", Layout())
    file = settings(
        inputs={"lookups": str(tmp_path / "lookups")},
        policies=[{"name": "p", "selector": "best", "shedder": "uniform"}],
    )
    said: list[str] = []
    replay(InProcess(), file, str(tmp_path / "out"), progress=said.append, warn=lambda text: said.append(f"! {text}"))

    assert [line.startswith("! policy 'p': 'uniform' goes by rates") for line in said[:2]] == [True, False]


@pytest.mark.parametrize(
    ("given", "expected"),
    [
        ({}, (False, False, "")),
        ({"bytes_per_weight": 2.0}, (True, False, "")),
        ({"bundle": {"msgThroughputOut": 0.0}}, (True, False, "")),
        ({"bundle": _RATE, "bytes_per_weight": 2.0}, (False, True, "no row of BUNDLES gives")),
        ({"bundle": {"msgThroughputOut": 1.0}, "load": {}}, (False, False, "no row of LOADS gives")),
        ({"bundle": {}, "load": {}}, (False, False, "no row of BUNDLES and of LOADS gives")),
        ({"bundle": {"msgThroughputOut": 1.0}, "load": {"msgThroughputIn": 1.0}}, (True, False, "")),
    ],
)
def test_tables_tell_which_rates_are_known(tmp_path: Path, given: dict[str, Any], expected: tuple[Any, ...]) -> None:
    """Bytes of BUNDLES, with reported load of LOADS too; what is stated counts only without BUNDLES."""
    plan = _planned(tmp_path, **given)
    rates = known_rates(plan.run, plan.tables)

    assert (rates.has_bytes, rates.has_messages) == expected[:2]
    assert rates.has_bytes or expected[2] in rates.why


def _file(folder: Path, rows: list[dict[str, Any]], *, is_hive: bool = True, **inputs: str) -> EvaluationFile:
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
