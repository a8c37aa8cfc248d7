"""The page of figures over time, without a browser."""

from __future__ import annotations

import json
import re
import shutil
from pathlib import Path
from typing import Any

import altair as alt
import pytest

from lookup.report.charts import trends_spec
from lookup.report.trends import read_trends
from lookup.report.trends_page import html_trends
from tests.report.results import result, wide
from tests.report.runs import edit, write_run


def _page(tmp_path: Path, *balance_s: int, is_whole: bool = False) -> str:
    """Write a run for each width of a balance cell, and return the page of all."""
    for day, seconds in enumerate(balance_s, start=1):
        run = write_run(tmp_path / f"<{day}>", result(), wall_clock={"started": f"2026-11-{day:02}T02:00:00+00:00"})
        edit(run, "manifest.settings.evaluation.balance_s", seconds)
        edit(run, "summary.metrics.0.value", 0.4 + day / 100)
    return html_trends(read_trends([str(tmp_path)], pytest.fail), is_whole=is_whole)


def _rows(page: str) -> list[dict[str, Any]]:
    found = re.search(r'<script type="application/json" id="charts">(.*)</script>', page)
    assert found is not None
    (chart,) = json.loads(found[1])
    return [dict(zip(chart["fields"], row, strict=True)) for row in chart["rows"]]


def test_the_specification_is_valid() -> None:
    """As Altair knows Vega-Lite; policies beyond the colours differ in their dashes."""
    spec = trends_spec([f"p{place}" for place in range(16)])

    alt.FacetChart.from_dict({**spec, "data": {"values": []}})
    (dashes,) = [
        layer["encoding"]["strokeDash"] for layer in spec["spec"]["layer"] if "strokeDash" in layer["encoding"]
    ]
    colours = dashes["scale"]["range"][0], dashes["scale"]["range"][8]
    assert colours[0] != colours[1]


def test_figures_that_changed_are_drawn_with_their_intervals(tmp_path: Path) -> None:
    """Every point once, in ms; those that were the same in every run are counted unless all are wanted."""
    rows = _rows(_page(tmp_path / "a", 300, 300))
    whole = _rows(_page(tmp_path / "b", 300, 300, is_whole=True))

    changed = [row for row in rows if row["figure"] == "↑ answered_ratio *" and row["policy"] == "stock"]
    assert [(row["value"], row["x"]) for row in changed] == [(0.41, 1793498400000), (0.42, 1793584800000)]
    assert all(row["low"] < row["high"] for row in changed)
    assert {row["figure"] for row in rows} < {row["figure"] for row in whole}


def test_a_run_of_another_meaning_begins_a_line(tmp_path: Path) -> None:
    """Lines join points of one stretch, and the first of a new one is marked."""
    rows = _rows(_page(tmp_path, 300, 600, 600, is_whole=True))

    seen = {row["figure"]: [] for row in rows}
    for row in rows:
        if row["policy"] == "stock":
            seen[row["figure"]].append((row["stretch"], row["is_first"]))
    assert seen["↓ imbalance_cv"] == [(0, False), (1, True), (1, False)]
    assert seen["↑ answered_ratio *"] == [(0, False)] * 3


def test_the_oldest_runs_are_left_out_of_a_page_that_would_be_too_big(tmp_path: Path) -> None:
    """The page stays small and says how many; all are in its table of runs."""
    first = write_run(tmp_path / "0", wide(60), wall_clock={"started": "2026-01-01T00:00:00+00:00"})
    for number in range(1, 70):
        shutil.copytree(first, tmp_path / str(number))
        edit(
            tmp_path / str(number), "manifest.wall_clock.started", f"2026-01-01T{number // 60:02}:{number % 60:02}:00Z"
        )

    page = html_trends(read_trends([str(tmp_path)], pytest.fail), is_whole=True)

    rows = _rows(page)
    drawn = len({row["x"] for row in rows})
    assert drawn < 70
    assert len(rows) == 60 * drawn <= 3_600
    assert f" {70 - drawn} earlier runs." in page
    assert page.count(f"<td>{tmp_path}/") == 70
    assert len(page.encode()) < 1_500_000


def test_nothing_of_a_folders_name_is_markup(tmp_path: Path) -> None:
    """And nothing is loaded from elsewhere."""
    page = _page(tmp_path, 300, 300)

    assert "&lt;1&gt;" in page
    assert "<1>" not in page
    assert "default-src &#39;none&#39;" in page
