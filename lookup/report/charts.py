"""Build the charts of the page as Vega-Lite specifications without data, with Altair, which checks them.

Colours are names behind an @, `@better`: the page's script puts the colour of the light or dark theme in their place.
Blue and orange, which colour-blind readers tell apart, stand for better and worse, cold and hot.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Literal

import altair as alt

__all__ = ["delta_spec", "heat_spec", "matrix_spec", "moves_spec", "rejection_spec", "topology_spec", "trade_spec"]

#: Data of every chart, filled by the page's script.
_ROWS = alt.NamedData(name="rows")
_WORDS = ["better", "worse", "equivalent", "inconclusive"]
_CATEGORIES = [f"@series{number}" for number in range(1, 9)]
#: Panels come in the order that rows say; without it they are sorted by name.
_IN_ORDER = alt.EncodingSortField(field="order", op="min")
#: Width of a chart in pixels; beside it stand the names of brokers.
_WIDTH = 720


def trade_spec(locality: str, imbalance: str) -> dict[str, Any]:
    """Locality against imbalance, one point per policy with both intervals, its size the number of moves."""
    base = alt.Chart(_ROWS)
    x, y = alt.X("x:Q", title=imbalance).scale(zero=False), alt.Y("y:Q", title=locality).scale(zero=False)
    role = alt.Color("role:N", title=None).scale(domain=["incumbent", "candidate"], range=["@ink", "@series3"])
    moves = alt.Size("moves:Q", title="moves").scale(range=[30, 900])
    tip = [alt.Tooltip(f"{name}:N") for name in ("policy", "locality", "imbalance", "moved")]
    rims, words = _labels(base, x, y, "policy:N", dx=12, dy=-11)
    layers = (
        base.mark_rule(color="@quiet").encode(x=x, x2="x_high:Q", y=y).transform_calculate(x="datum.x_low"),
        base.mark_rule(color="@quiet").encode(x=x, y=y, y2="y_high:Q").transform_calculate(y="datum.y_low"),
        rims,
        base.mark_circle(opacity=0.75).encode(x=x, y=y, size=moves, color=role, tooltip=tip),
        words,
    )
    return _plain(alt.layer(*layers).properties(width=_WIDTH, height=360))


def delta_spec(columns: int) -> dict[str, Any]:
    """Differences from the incumbent, one small chart per metric, bars with intervals over a band of the margin."""
    y = alt.Y("policy:N", title=None, sort=None)
    word = alt.Color("verdict:N", title=None).scale(domain=_WORDS, range=["@better", "@worse", "@quiet", "@quiet"])
    base = alt.Chart()
    band = base.mark_rect(color="@line", height={"band": 1.0}).transform_calculate(to="-datum.margin")
    layers = (
        band.encode(x="to:Q", x2="margin:Q", y=y),
        base.mark_bar(opacity=0.75, height={"band": 0.6}).encode(x=alt.X("delta:Q", title=None), y=y, color=word),
        base.mark_rule(color="@ink").encode(x="low:Q", x2="high:Q", y=y),
        base.mark_text(align="left", dx=4).encode(
            x=alt.value(_panel_width(columns)), y=y, text="mark:N", color=alt.value("@ink")
        ),
        base.mark_rule(color="@ink", strokeWidth=1).encode(x=alt.datum(0)),
    )
    panel = alt.layer(*layers).properties(width=_panel_width(columns), height=alt.Step(15))
    facet = alt.Facet("metric:N", title=None, sort=_IN_ORDER).header(labelAnchor="start", labelFontWeight="bold")
    return _plain(alt.FacetChart(data=_ROWS, spec=panel, facet=facet, columns=columns).resolve_scale(x="independent"))


def heat_spec(title: str, time_format: str, *, is_relative: bool) -> dict[str, Any]:
    """Brokers over time, one row per broker and one panel per policy, with marks where brokers came and left.

    Args:
        is_relative: whether 1 is even, so that colours part there; else they begin at 0.
    """
    scale = alt.Scale(range=["@empty", "@full"], domainMin=0, interpolate="rgb")
    if is_relative:
        scale = alt.Scale(range=["@cold", "@even", "@hot"], domain=[0, 1, 2], clamp=True, interpolate="rgb")
    x, y = _time(time_format), alt.Y("y:N", title=None, sort=None)
    tip = [alt.Tooltip("y:N", title="broker"), alt.Tooltip("since:N"), alt.Tooltip("value:Q", title=title)]
    base = alt.Chart()
    # Brokers come at the start of a column and leave at the end of one, or at an instant that has no cell of its own.
    marks = base.mark_point(filled=True, size=40, color="@ink", opacity=1)
    layers = (
        base.mark_rect()
        .encode(x=x, x2="x2:T", y=y, color=alt.Color("value:Q", title=title, scale=scale), tooltip=tip)
        .transform_filter("isValid(datum.value)")
        .transform_calculate(since="utcFormat(datum.x, '%Y-%m-%d %H:%M')"),
        marks.encode(x=x, y=y, shape=alt.value("triangle-right")).transform_filter("datum.comes"),
        marks.encode(x=alt.X("x2:T"), y=y, shape=alt.value("cross")).transform_filter("datum.leaves"),
    )
    return _by_policy(alt.layer(*layers).properties(width=_WIDTH, height=alt.Step(14)))


def moves_spec(causes: Sequence[str], time_format: str) -> dict[str, Any]:
    """Bundles that lost their owner over time, stacked by cause, one panel per policy."""
    colour = alt.Color("y:N", title="cause").scale(domain=list(causes), range=_CATEGORIES[: len(causes)])
    # A bar with a start and an end on both axes is not stacked by itself. Rows of 0 stay: a panel without rows is none.
    stacked = alt.Chart().transform_stack(
        stack="value", as_=["low", "high"], groupby=["policy", "x"], sort=[alt.SortField("y")]
    )
    bars = stacked.mark_rect(stroke="@paper", strokeWidth=0.5).encode(
        x=_time(time_format), x2="x2:T", y=alt.Y("low:Q", title="bundles"), y2="high:Q", color=colour
    )
    return _by_policy(bars.properties(width=_WIDTH, height=110))


def matrix_spec(row: str, column: str, value: str) -> dict[str, Any]:
    """Shares of a matrix with its names as both axes, one panel per policy, each share written into its cell."""
    x = alt.X("x:N", title=column, sort=None).axis(orient="top", labelAngle=0)
    y = alt.Y("y:N", title=row, sort=None)
    colour = alt.Color("value:Q", title=value).scale(range=["@empty", "@full"], domain=[0, 1])
    cells = alt.Chart().mark_rect().encode(x=x, y=y, color=colour)
    shares = (
        alt.Chart()
        .mark_text()
        .encode(
            x=x,
            y=y,
            text=alt.Text("value:Q", format=".0%"),
            color=alt.condition("datum.value > 0.5", alt.value("@on_full"), alt.value("@ink")),
        )
    )
    panel = alt.layer(cells, shares).properties(width=alt.Step(90), height=alt.Step(22))
    return _by_policy(panel, axes="independent")


def rejection_spec(reasons: Sequence[str]) -> dict[str, Any]:
    """Brokers that filters kept out, one bar per policy, stacked by reason."""
    colour = alt.Color("reason:N", title="reason").scale(
        domain=list(reasons), range=[_CATEGORIES[number % len(_CATEGORIES)] for number in range(len(reasons))]
    )
    x = alt.X("count:Q", title="brokers kept out of decisions, mean of a replicate")
    bars = (
        alt.Chart(_ROWS)
        .mark_bar()
        .encode(
            x=x, y=alt.Y("policy:N", title=None, sort=None), color=colour, tooltip=["policy:N", "reason:N", "count:Q"]
        )
    )
    return _plain(bars.properties(width=_WIDTH, height=alt.Step(20)))


def topology_spec(leaves: int, depth: float) -> dict[str, Any]:
    """A tree of places from clusters to racks, drawn from left to right.

    Args:
        leaves: number of places without a place below.
        depth: of the deepest of them; clusters have 0.
    """
    base = alt.Chart(_ROWS)
    y = alt.Y("y:Q", axis=None).scale(domain=[-0.5, leaves - 0.5], reverse=True, nice=False)
    x = alt.X("x:Q", axis=None).scale(domain=[-0.05, depth + 0.8], nice=False)
    size = alt.Size("brokers:Q", legend=None).scale(range=[40, 300], domainMin=0)
    layers = (
        base.mark_rule(color="@quiet").encode(x=x, y=y, x2="to_x:Q", y2="to_y:Q"),
        base.mark_circle(color="@better", opacity=1).encode(x=x, y=y, size=size),
        *_labels(base, x, y, "label:N", dx=13, dy=0),
    )
    return _plain(alt.layer(*layers).properties(width=_WIDTH, height=28 * leaves, view=alt.ViewConfig(stroke=None)))


def _labels(base: alt.Chart, x: alt.X, y: alt.Y, text: str, *, dx: int, dy: int) -> tuple[alt.Chart, alt.Chart]:
    """Texts beside points, with a rim in the colour of the paper so that lines do not cross them."""
    rim = base.mark_text(align="left", dx=dx, dy=dy, stroke="@paper", strokeWidth=4, strokeJoin="round")
    words = base.mark_text(align="left", dx=dx, dy=dy)
    return rim.encode(x=x, y=y, text=text), words.encode(x=x, y=y, text=text)


def _time(time_format: str) -> alt.X:
    axis = alt.Axis(grid=False, format=time_format, labelOverlap=True)
    return alt.X("x:T", title=None, scale=alt.Scale(type="utc"), axis=axis)


def _by_policy(
    panel: alt.Chart | alt.LayerChart | alt.FacetChart, axes: Literal["shared", "independent"] = "shared"
) -> dict[str, Any]:
    facet = alt.Facet("policy:N", title=None, sort=_IN_ORDER).header(labelAnchor="start", labelFontWeight="bold")
    return _plain(alt.FacetChart(data=_ROWS, spec=panel, facet=facet, columns=1).resolve_axis(x=axes))


def _panel_width(columns: int) -> int:
    return (_WIDTH - 60) // columns - 70


def _plain(chart: alt.TopLevelMixin) -> dict[str, Any]:
    """Return a specification without what the page's script gives all charts alike."""
    spec: Mapping[str, Any] = chart.to_dict()
    return {key: value for key, value in spec.items() if key != "config"}
