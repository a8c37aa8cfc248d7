"""Figures of many runs over time."""

from __future__ import annotations

import json
import math
import shutil
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from lookup.errors import SettingsError
from lookup.report.trends import (
    CSV_HEADS,
    Trend,
    Trends,
    csv_rows,
    left_out,
    notes_of,
    read_trends,
    runs_table,
    summary_of,
    trends_markdown,
    trends_table,
)
from tests.report.results import result
from tests.report.runs import edit, write_run
from tests.score.cases import decided, ratios, spread


def _run(folder: Path, day: int, answered: float = 0.6, **policies: float) -> Path:
    """Write a run that started on a day of November, of `stock` and `new`, or of policies with their answers."""
    means = policies or {"stock": 0.5, "new": answered}
    scored = decided([ratios(policy, spread(mean, 0.1)) for policy, mean in means.items()], *means)
    return write_run(folder, scored, wall_clock={"started": f"2026-11-{day:02}T02:00:00+00:00"})


def _read(*folders: Path) -> Trends:
    """Read runs of which none is left out."""
    return read_trends([str(folder) for folder in folders], pytest.fail)


def _trend(trends: Trends, policy: str = "new", name: str = "answered_ratio") -> Trend:
    (trend,) = (trend for trend in trends.trends if (trend.policy, trend.name) == (policy, name))
    return trend


def test_runs_are_in_the_order_of_their_starts(tmp_path: Path) -> None:
    """Whatever their folders are called, and as the figures of each run are."""
    for name, day, answered in (("a", 3, 0.9), ("b", 1, 0.6), ("c", 2, 0.7)):
        _run(tmp_path / name, day, answered)

    trends = _read(tmp_path)

    assert [run.path for run in trends.runs] == [f"{tmp_path}/{name}" for name in "bca"]
    assert [round(point.value, 6) for point in _trend(trends).points] == [0.6, 0.7, 0.9]
    assert {point.stretch for point in _trend(trends).points} == {0}
    assert [not math.isnan(point.low + point.high) for point in _trend(trends).points] == [True] * 3


def test_what_changed_in_the_newest_run_is_said(tmp_path: Path) -> None:
    """As `diff` says it of the last two runs, besides how many runs there are."""
    folders = [_run(tmp_path / name, day, answered) for name, day, answered in (("a", 1, 0.6), ("b", 2, 0.9))]

    trends = _read(*folders)

    counted, said = summary_of(trends)
    assert counted == "2 runs from 2026-11-01 02:00 to 2026-11-02 02:00 UTC."
    assert said.startswith(f"From {tmp_path}/a to {tmp_path}/b 1 figure got better (answered_ratio of new +0.3000)")
    assert any("overlap is no verdict" in note for note in notes_of(trends))
    assert trends.trends[0] == _trend(trends)


def test_one_run_has_no_change(tmp_path: Path) -> None:
    """Its figures are listed all the same."""
    trends = _read(_run(tmp_path / "a", 1))

    assert (trends.newest, trends.changes) == (None, ("",))
    assert summary_of(trends) == ["1 run of 2026-11-01 02:00 UTC."]
    assert {row[-1] for row in trends_table(trends, is_whole=True, has_blocks=False).rows} == {"–"}


def test_runs_of_another_meaning_are_not_joined(tmp_path: Path) -> None:
    """A new stretch begins for the figures that a setting is part of, for no others, and the run says why."""
    folders = []
    for day, balance_s in enumerate((300, 300, 600, 600), start=1):
        run = write_run(tmp_path / str(day), result(), wall_clock={"started": f"2026-11-{day:02}T02:00:00+00:00"})
        edit(run, "manifest.settings.evaluation.balance_s", balance_s)
        folders.append(run)

    trends = _read(*folders)

    stretches = {trend.name: [point.stretch for point in trend.points] for trend in trends.trends}
    assert stretches["imbalance_cv"] == [0, 0, 1, 1]
    assert stretches["answered_ratio"] == [0, 0, 0, 0]
    what = "other evaluation.balance_s; some figures mean something else: balance_s differs (300, 600)"
    assert trends.changes == ("", "", what, "")
    row = next(row for row in trends_table(trends, is_whole=True, has_blocks=False).rows if row[1] == "imbalance_cv")
    assert [str(text).startswith("/ ") for text in row[2:-1]] == [False, False, True, False]
    assert notes_of(trends)[0].startswith("At / settings changed what the figure means")


def test_other_units_are_not_joined_either(tmp_path: Path) -> None:
    """A metric of a plug-in may have changed its unit."""
    folders = [_run(tmp_path / name, day) for name, day in (("a", 1), ("b", 2))]
    rows = json.loads((folders[1] / "summary.json").read_text())["metrics"]
    for place in [place for place, row in enumerate(rows) if row["metric"] == "answered_ratio"]:
        edit(folders[1], f"summary.metrics.{place}.unit", "percent")

    assert [point.stretch for point in _trend(_read(*folders)).points] == [0, 1]


def test_what_was_asked_differently_is_named(tmp_path: Path) -> None:
    """Settings by table, logs by their fingerprints and not by where they lie, and the version."""
    first, second = (_run(tmp_path / name, day) for name, day in (("a", 1), ("b", 2)))
    for path, value in (
        ("settings.policies", [{"name": "new"}]),
        ("settings.inputs", {"lookups": "elsewhere"}),
        ("settings.verdict.block_s", 77),
        ("inputs.lookups.blake2b", "11ee"),
        ("versions.pulsar-lookup", "0.2.0"),
    ):
        edit(second, f"manifest.{path}", value)

    (_, said) = _read(first, second).changes

    assert said == "other verdict.block_s, policies, lookups; version 0.2.0 in place of 0.1.0"


@pytest.mark.parametrize(
    ("answers", "line"),
    [
        ([0.1, 0.2, 0.8], "▁▂█"),
        ([0.5, 0.5], "▁▁"),
        ([0.1, None, 0.8], "▁·█"),
        ([0.9, 0.9, *([0.1] * 23), 0.8], f"{'▁' * 23}█"),
    ],
)
def test_a_line_of_blocks(tmp_path: Path, answers: Sequence[float | None], line: str) -> None:
    """One block for each of the newest runs; a dot where a run has no such policy."""
    for day, answered in enumerate(answers, start=1):
        _run(tmp_path / f"{day:02}", day, **{"stock": 0.5, **({} if answered is None else {"new": answered})})

    assert _trend(_read(tmp_path)).blocks(len(answers)) == line


def test_each_stretch_has_a_scale_of_its_own(tmp_path: Path) -> None:
    """Values that mean something else are neither joined nor measured by one scale."""
    for day, (answered, warmup_s) in enumerate(((0.1, 0), (0.2, 0), (0.7, 60), (0.9, 60)), start=1):
        edit(_run(tmp_path / str(day), day, answered), "manifest.settings.evaluation.warmup_s", warmup_s)

    assert _trend(_read(tmp_path)).blocks(4) == "▁█/▁█"


def test_tables_have_ten_rows_unless_all_are_wanted(tmp_path: Path) -> None:
    """Primary figures first, of the runs the newest; what is left out is counted."""
    for day in range(1, 13):
        means = {f"p{place:02}": 0.5 + 0.001 * day * place for place in range(11)}
        _run(tmp_path / f"{day:02}", day, **means)

    trends = _read(tmp_path)

    figures, runs = trends_table(trends, is_whole=False, has_blocks=False), runs_table(trends, is_whole=False)
    whole = trends_table(trends, is_whole=True, has_blocks=False)
    assert (len(figures.rows), figures.columns[2], len(runs.rows), runs.rows[0][0]) == (10, "#3", 10, "3")
    assert {row[1] for row in figures.rows} == {"answered_ratio"}
    assert (len(whole.rows), whole.columns[2]) == (len(trends.trends), "#1")
    rest = len(trends.trends) - 10
    assert left_out(trends, "--all") == [f"Left out: {rest} more figures and 2 earlier runs; --all has everything."]
    text = trends_markdown(trends, "`lookup history`")
    assert (text.count("\n| p"), trends_markdown(trends).count("\n| p")) == (11, len(trends.trends) + 1)


def test_programs_get_every_point(tmp_path: Path) -> None:
    """As rows or as JSON, with nothing rounded, and null for an interval that there is not."""
    trends = _read(_run(tmp_path / "a", 1), _run(tmp_path / "b", 2))

    document = json.loads(json.dumps(trends.document(), allow_nan=False))

    assert [run["run"] for run in document["runs"]] == [f"{tmp_path}/a", f"{tmp_path}/b"]
    assert [tuple(point) for point in document["points"]] == [CSV_HEADS] * len(document["points"])
    assert [tuple(point.values()) for point in document["points"]] == list(csv_rows(trends))
    assert len(document["points"]) == sum(len(trend.points) for trend in trends.trends)


def test_runs_are_found_below_a_folder_each_once(tmp_path: Path) -> None:
    """At any depth; links, hidden folders and the same run named twice add nothing."""
    run = _run(tmp_path / "store" / "2026" / "a", 1)
    _run(tmp_path / "store" / "b", 2)
    _run(tmp_path / "store" / ".lookup-draft", 3)
    (tmp_path / "store" / "tables").mkdir()
    # Of two such links each leads to both again.
    for name in ("loop", "again"):
        (tmp_path / "store" / name).symlink_to(tmp_path / "store")

    trends = _read(tmp_path / "store", run, tmp_path / "store" / ".." / "store")

    assert [Path(trended.path).resolve() for trended in trends.runs] == [run, tmp_path / "store" / "b"]


def _cut_off(folder: Path) -> None:
    (folder / "manifest.json").unlink()


def _newer(folder: Path) -> None:
    edit(folder, "manifest.schema", 99)


def _timeless(folder: Path) -> None:
    edit(folder, "manifest.wall_clock", {"started": "yesterday"})


def _without_clock(folder: Path) -> None:
    edit(folder, "manifest.wall_clock", None)


_DAMAGES = {
    _cut_off: "{0}: has no manifest.json; name a folder that `lookup evaluate` has written",
    _newer: "{0}/manifest.json: its schema is '99', and 1 can be read; evaluate again with this version",
    _timeless: "{0}/manifest.json: wall_clock.started is 'yesterday', and should be a time like "
    "2026-01-05T02:00:00+00:00; evaluate again",
    _without_clock: "{0}/manifest.json: wall_clock.started is None, and should be a time like "
    "2026-01-05T02:00:00+00:00; evaluate again",
}


@pytest.mark.parametrize(("damage", "sentence"), _DAMAGES.items(), ids=lambda value: getattr(value, "__name__", ""))
def test_a_run_that_cannot_be_read(tmp_path: Path, damage: Any, sentence: str) -> None:
    """It is refused where it was named; where it was found, it is left out with a warning."""
    _run(tmp_path / "store" / "good", 1)
    bad = _run(tmp_path / "store" / "bad", 2)
    damage(bad)
    warnings: list[str] = []

    trends = read_trends([str(tmp_path / "store")], warnings.append)

    with pytest.raises(SettingsError) as refused:
        read_trends([str(tmp_path / "store" / "good"), str(bad)], pytest.fail)
    assert refused.value.problems == (sentence.format(bad),)
    assert warnings == [f"left out: {sentence.format(bad)}"]
    assert [run.path for run in trends.runs] == [f"{tmp_path}/store/good"]


def test_every_folder_without_a_run_is_named(tmp_path: Path) -> None:
    """A folder of tables, a path that is not there, a file, and a store in which no run can be read."""
    shutil.copytree(_run(tmp_path / "good", 1), tmp_path / "store" / "bad")
    _cut_off(tmp_path / "store" / "bad")
    (tmp_path / "tables").mkdir()
    (tmp_path / "file").write_text("")

    with pytest.raises(SettingsError) as refused:
        read_trends([f"{tmp_path}/{name}" for name in ("good", "tables", "gone", "file", "store")], pytest.fail)

    right = "name a folder that `lookup evaluate` has written"
    bad = f"{tmp_path}/store/bad: has no manifest.json; {right}"
    assert refused.value.problems == (
        f"{tmp_path}/tables: is no run and holds none; {right}, or one above such",
        f"{tmp_path}/gone: cannot be read as a folder: No such file or directory; {right}",
        f"{tmp_path}/file: cannot be read as a folder: Not a directory; {right}",
        f"{tmp_path}/store: holds 1 run, none of which can be read; the first: {bad}",
    )
