"""What a broker of a log carries on average, without replaying it."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from lookup.replay.typical import mean_load
from lookup.settings.evaluation import EvaluationFile
from tests.replay.layouts import Layout, write_lookups, write_rows
from tests.replay.plans import NOON, lookup, settings


def _file(folder: Path, rows: list[dict[str, Any]], *, is_hive: bool = True, **inputs: str) -> EvaluationFile:
    write_lookups(rows, folder / "lookups", Layout(is_hive=is_hive, file_rows=2, group_rows=1))
    return settings(inputs={"lookups": str(folder / "lookups"), **inputs})


def test_weight_by_second_and_broker(tmp_path: Path) -> None:
    """60 of weight in 10 s over two brokers; a row without weight weighs 1.0."""
    rows = [lookup(0, weight=19.0), lookup(10, weight=40.0), lookup(4, weight=None)]

    assert mean_load(_file(tmp_path, rows)) == pytest.approx(3.0)


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
