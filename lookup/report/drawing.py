"""Draw the charts of a page in a notebook: Altair charts with their data and the colours of the light theme."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from importlib.resources import files
from typing import Any, TypeAlias

import altair as alt

from lookup.errors import SettingsError
from lookup.model.quoting import suggestion
from lookup.report.blocks import Chart, Matrix, charts_of
from lookup.report.document import sections
from lookup.report.figures import Run

__all__ = ["Drawing", "draw", "drawable"]

Drawing: TypeAlias = alt.Chart | alt.LayerChart | alt.FacetChart
_COLOUR = re.compile(r"^  --(\w+): (#\w+);$", re.MULTILINE)


def drawable(run: Run) -> dict[str, Chart | Matrix]:
    """Return what a page draws of a run, by name, in the order of the page."""
    charts = [
        chart
        for chart in charts_of(sections(run.results, run.path, run))
        if isinstance(chart, Matrix) or chart.screen != "narrow"
    ]
    return {chart.id.removesuffix("-chart"): chart for chart in charts}


def draw(run: Run, chart: Chart | Matrix, *, policy: str | None = None, cluster: str | None = None) -> Drawing:
    """Draw a chart with its data.

    Args:
        policy: drawn beside the incumbent in a chart over time and in a matrix; default: the first candidate.
        cluster: the same; default: the first.

    Raises:
        SettingsError: if the run has no such policy or cluster.
    """
    if isinstance(chart, Chart):
        rows = [dict(zip(chart.fields, row, strict=True)) for row in chart.rows]
    else:
        rows = _matrix_rows(run, chart, policy, cluster)
    # Colours stand in a specification as "@name", and their values in the page's style sheet, the light ones first.
    style = (files("lookup.report") / "assets" / "page.css").read_text(encoding="utf-8")
    colours = {f"@{name}": value for name, value in reversed(_COLOUR.findall(style))}
    spec = json.loads(json.dumps(chart.spec), object_pairs_hook=lambda pairs: _coloured(dict(pairs), colours))
    drawn: Drawing = alt.Chart.from_dict({**spec, "datasets": {"rows": rows}, "title": chart.title})
    return drawn


def _coloured(table: dict[str, Any], colours: Mapping[str, str]) -> dict[str, Any]:
    for key, value in table.items():
        if isinstance(value, str):
            table[key] = colours.get(value, value)
        elif isinstance(value, list):
            table[key] = [colours.get(entry, entry) if isinstance(entry, str) else entry for entry in value]
    return table


def _matrix_rows(run: Run, chart: Matrix, policy: str | None, cluster: str | None) -> list[dict[str, Any]]:
    incumbent, candidates = run.results.incumbent, run.results.candidates
    cluster = _known("cluster", cluster, list(chart.values))
    values = chart.values[cluster]
    names = [incumbent, _known("policy", policy, candidates)] if candidates else [incumbent]
    columns, width, losses = chart.columns[cluster], chart.widths.get(cluster), chart.losses.get(cluster, ())
    rows: list[dict[str, Any]] = []
    for order, name in enumerate(name for name in names if name in values):
        for number, line in enumerate(values[name]):
            for column, value in enumerate(line):
                if value is None:
                    continue
                x = columns[column]
                row: dict[str, Any] = {"policy": name, "order": order, "y": chart.rows[cluster][number], "x": x}
                row["value"] = value / chart.scale
                stays = column + 1 == len(line) or line[column + 1] is not None
                row["comes"] = chart.has_lives and column > 0 and line[column - 1] is None
                row["leaves"] = chart.has_lives and not stays
                if width:
                    # A loss within this column or the next has a mark of its own below.
                    end = int(x) + 2 * width
                    row["x2"] = int(x) + width
                    row["leaves"] &= not any(lost == number and int(x) <= at <= end for lost, at in losses)
                rows.append(row)
        rows += [
            {"policy": name, "order": order, "y": chart.rows[cluster][number], "x": at, "x2": at, "leaves": True}
            for number, at in losses
        ]
    return rows


def _known(what: str, name: str | None, names: Sequence[str]) -> str:
    if name is None:
        return names[0]
    if name not in names:
        raise SettingsError(f"{what}: the run has no {what} {name!r} to draw; {suggestion(name, names)}")
    return name
