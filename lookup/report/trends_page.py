"""Draw figures over time as a page of the same form as `report.html`: a small chart per figure, a line per policy."""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import replace
from importlib.metadata import version
from typing import Any

from lookup.model.quoting import quantity
from lookup.report.blocks import Block, Bullets, Cell, Chart, Paragraph, Section, Table
from lookup.report.charts import trends_spec
from lookup.report.comparison import ARROWS, NOTHING, interval_text, value_text
from lookup.report.difference import with_unit
from lookup.report.html import html_page
from lookup.report.trends import Trends, notes_of, runs_table, summary_of, trends_table

__all__ = ["html_trends"]

#: Charts of a page unless all are asked for.
_MOST_CHARTS = 24
#: Points of all charts together, the newest runs': each takes some 170 bytes, and a page is to stay below 1.5 MB.
_MOST_POINTS = 3_600


def html_trends(trends: Trends, *, is_whole: bool = False) -> str:
    """Write the page.

    Args:
        is_whole: a chart of every figure; else of primary ones and of those that changed, 24 at most.
    """
    newest = trends.runs[-1]
    policies = list(dict.fromkeys([newest.incumbent, *(trend.policy for trend in trends.trends)]))
    opening, *headlines = summary_of(trends)
    figures = trends_table(trends, is_whole=is_whole, has_blocks=True)
    content = [
        Section(
            "answer",
            "What changed",
            [
                *(Paragraph(text, "lead") for text in headlines or [opening]),
                replace(figures, id="trend-table", caption="The figures that matter most", texts=(0, 1, 2)),
                Bullets(notes_of(trends, has_blocks=True)),
            ],
        ),
        Section("trends", "Figures over time", list(_charts(trends, policies, is_whole=is_whole))),
        Section("runs", "Runs", [runs_table(trends, is_whole=True)]),
    ]
    return html_page(
        content,
        title="Placement policies over time",
        period=opening.removesuffix("."),
        version=version("pulsar-lookup"),
        incumbent=newest.incumbent,
        candidates=policies[1:],
        clusters=newest.clusters,
        source="the `summary.json` of a run",
    )


def _charts(trends: Trends, policies: Sequence[str], *, is_whole: bool) -> Iterator[Block]:
    by_name = defaultdict(list)
    for trend in trends.trends:
        by_name[trend.name].append(trend)
    worth = [name for name, some in by_name.items() if is_whole or any(it.primary or it.has_changed for it in some)]
    chosen = worth if is_whole else worth[:_MOST_CHARTS]
    drawn = [trend for name in chosen for trend in sorted(by_name[name], key=lambda it: policies.index(it.policy))]
    runs = len(trends.runs)
    oldest = max(0, runs - max(2, _MOST_POINTS // max(1, len(drawn))))
    left_out = [
        (len(by_name) - len(worth), "figure that was the same in every run", "figures that were the same in every run"),
        (len(worth) - len(chosen), "more figure", "more figures"),
        (oldest, "earlier run", "earlier runs"),
    ]
    rest = [quantity(*counted) for counted in left_out if counted[0]]
    yield Paragraph(
        "One chart for each figure, pooled over all clusters, one line for each policy; ↑ ↓ say which is better, * "
        "decides the exit code. Each chart has a scale of its own. Upright lines are the 95 % intervals of the runs. "
        "Where settings changed what a figure means, a dashed line stands and no line joins the runs."
        + (f" Left out: {', '.join(rest)}." if rest else "")
    )
    rows: list[list[Any]] = []
    texts: list[list[str | Cell]] = []
    for trend in drawn:
        title = f"{ARROWS[trend.better]} {with_unit(trend.name, trend.unit)}{' *' if trend.primary else ''}".strip()
        cells = dict.fromkeys(range(oldest, runs), Cell(NOTHING))
        stretch = trend.points[0].stretch
        for point in trend.points:
            is_first, stretch = point.stretch != stretch, point.stretch
            if point.number < oldest:
                continue
            interval = interval_text(point.low, point.high, trend.unit)
            cell = Cell(value_text(point.value, trend.unit), "" if interval == NOTHING else interval)
            cells[point.number] = cell
            bounds = [None if math.isnan(bound) else float(f"{bound:.6g}") for bound in (point.low, point.high)]
            at = round(trends.runs[point.number].started.timestamp() * 1000)
            said = f"#{point.number + 1}: {cell.text} {cell.detail}".strip()
            place = [title, chosen.index(trend.name), trend.policy, at, float(f"{point.value:.6g}")]
            rows.append([*place, *bounds, stretch, is_first, said])
        texts.append([title, trend.policy, *cells.values()])
    heads = ("figure", "policy", *(f"#{number + 1}" for number in range(oldest, runs)))
    yield Chart(
        "trend-chart",
        "Figures over time, one small chart per figure",
        f"Lines over {quantity(runs - oldest, 'run')} of {quantity(len(policies), 'policy', 'policies')}.",
        trends_spec(policies),
        "figure order policy x value low high stretch is_first said".split(),
        rows,
        Table(heads, texts, "trend-numbers", "The numbers of the charts, with 95 % intervals", texts=(0, 1)),
    )
