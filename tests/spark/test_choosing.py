"""What runs the tasks of a run that names nothing for it."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from lookup.logs.jobs import InProcess, usable_cores
from lookup.spark.choosing import Size, bytes_of, in_process, local_cores, rows_of


@pytest.fixture(autouse=True)
def no_session(monkeypatch: pytest.MonkeyPatch) -> None:
    """Be a process that has no Spark: the suite's own may run in this one."""
    monkeypatch.setattr(SparkSession, "getActiveSession", lambda: None)


def _chosen(size: Size) -> tuple[InProcess | None, list[str]]:
    said = list[str]()
    return in_process(lambda: size, said.append), said


def test_fewer_than_200_000_rows_are_for_forks_of_this_process() -> None:
    """As many at a time as there are cores, and a line says so."""
    chosen, said = _chosen(rows_of(199_999))

    assert chosen == InProcess(usable_cores())
    assert said[0].startswith("199,999 rows, fewer than 200,000")


def test_from_200_000_rows_on_it_is_spark() -> None:
    """A line says so as well."""
    chosen, said = _chosen(rows_of(200_000))

    assert chosen is None
    assert said[0].startswith("200,000 rows, 200,000 or more")


@pytest.mark.parametrize(("size", "is_small"), [(19_999_999, True), (20_000_000, False)])
def test_files_that_are_no_tables_yet_are_told_apart_by_bytes(tmp_path: Path, size: int, is_small: bool) -> None:
    """All of them together."""
    with (tmp_path / "a.log").open("wb") as sparse:
        sparse.truncate(size - 1)
    (tmp_path / "b.log").write_bytes(b"\n")

    assert bytes_of([str(tmp_path / "a.log"), str(tmp_path / "b.log")]).is_small is is_small


def test_what_spark_has_submitted_runs_on_spark(monkeypatch: pytest.MonkeyPatch) -> None:
    """However little it reads: its user has chosen."""
    monkeypatch.setenv("PYSPARK_GATEWAY_PORT", "1")

    assert _chosen(rows_of(1)) == (None, [])


@pytest.mark.parametrize(("master", "cores"), [("local", 1), ("local[3]", 3), ("local[2,4]", 2)])
def test_a_local_master_says_its_cores(master: str, cores: int) -> None:
    """The number in brackets counts, without one it is one task at a time."""
    assert local_cores(master) == cores


def test_a_star_is_every_core() -> None:
    """`local[*]` uses the machine."""
    assert local_cores("local[*]") == os.cpu_count()
