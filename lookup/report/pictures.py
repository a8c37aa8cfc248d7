"""Draw charts from the tables of a run, with load and moves over time, and flows between places."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from lookup.engine.ledger import MICRO
from lookup.engine.ownership import CAUSE_WORDS
from lookup.model.broker import Location
from lookup.report.blocks import Block, Matrix, Paragraph
from lookup.report.charts import heat_spec, matrix_spec, moves_spec
from lookup.report.figures import Run
from lookup.report.history import Flows, History, read_flows, read_history

__all__ = ["pictures"]

#: Values of all heat maps of one kind together. The page must stay below 1.5 MB, of which charts' code takes 0.83.
_MOST_VALUES = 40_000
#: Places of clients that a matrix of flows distinguishes.
_MOST_PLACES = 12
#: Spans of time whose axis needs no dates, µs.
_DAY_US = 26 * 3600 * MICRO
_NO_TABLES = "The folder of this run has no tables of load and flows. Evaluate again with this version to see them."


def pictures(run: Run) -> tuple[list[Block], list[Block]]:
    """Draw charts of policies' differences and of moves, or the reason in place of a chart without data."""
    results = run.results
    history = read_history(
        run.path,
        policies=results.policies,
        seed=results.seeds[0],
        cell_us=results.evaluation.balance_s * MICRO,
        most=_MOST_VALUES,
    )
    flows = read_flows(run.path, seeds=len(results.seeds), most=_MOST_PLACES)
    if history is None:
        return [Paragraph(_NO_TABLES, "note")], []
    return [*_draw_load(history), *_draw_flows(flows)], list(_draw_moves(history))


def _draw_load(history: History) -> Iterator[Block]:
    clusters = history.clusters.items()
    yield _build_matrix(
        history,
        "load-chart",
        "Load of each broker over time, relative to the mean",
        "One row per broker, one column per stretch of time, for the incumbent and one candidate.",
        spec=heat_spec("load / mean", _choose_time_format(history)),
        rows={name: each.brokers for name, each in clusters},
        values={
            name: {policy: _round_matrix(matrix * 100) for policy, matrix in each.load.items()}
            for name, each in clusters
        },
        row_name="broker",
        value_name="load / mean",
        scale=100,
        losses={name: [(number, instant // 1000) for number, instant in each.losses] for name, each in clusters},
    )
    yield Paragraph(
        f"1 is even, 2 and more have one colour. {_describe_replicate(history)} A triangle marks a new broker, a cross "
        "a lost one.",
        "note",
    )


def _draw_moves(history: History) -> Iterator[Block]:
    causes = tuple(CAUSE_WORDS.values())
    yield _build_matrix(
        history,
        "moves-chart",
        "Bundles that lost their owner over time, by cause",
        "Stacked bars over time, one colour per cause, for the incumbent and one candidate.",
        spec=moves_spec(causes, _choose_time_format(history)),
        rows=dict.fromkeys(history.clusters, causes),
        values={
            name: {policy: matrix.tolist() for policy, matrix in each.lost.items()}
            for name, each in history.clusters.items()
        },
        row_name="cause",
        value_name="bundles that lost their owner",
    )


def _build_matrix(history: History, name: str, title: str, description: str, **content: Any) -> Matrix:
    clusters = history.clusters.items()
    columns = {name: [int(start) // 1000 for start in each.starts] for name, each in clusters}
    widths = {name: each.width_us // 1000 for name, each in clusters}
    return Matrix(name, title, description, columns=columns, widths=widths, **content)


def _describe_replicate(history: History) -> str:
    return f"This is the replicate with seed {history.seed}, without the warm-up, in UTC."


def _choose_time_format(history: History) -> str:
    spans = [int(each.starts[-1] - each.starts[0]) + each.width_us for each in history.clusters.values()]
    return "%H:%M" if max(spans) <= _DAY_US else "%d %b %H:%M"


def _round_matrix(matrix: NDArray[np.float64]) -> list[list[int | None]]:
    return [[None if math.isnan(value) else round(value) for value in row] for row in matrix.tolist()]


def _draw_flows(flows: Mapping[str, Flows]) -> Iterator[Block]:
    if not any(place for each in flows.values() for place in (*each.clients, *each.brokers)):
        yield Paragraph("Neither clients nor brokers have a region, zone or rack.", "note")
        return
    shares = {
        name: {
            policy: _round_matrix(matrix / np.maximum(matrix.sum(axis=1, keepdims=True), 1e-12) * 1000)
            for policy, matrix in each.lookups.items()
        }
        for name, each in flows.items()
    }
    yield Matrix(
        "flows-chart",
        "Shares of lookups from places of clients to places of brokers",
        "A coloured table, one row per place of clients, one column per place of brokers.",
        matrix_spec("clients in", "served by brokers in", "share"),
        rows={name: [_name_place(client, "all others") for client in each.clients] for name, each in flows.items()},
        columns={
            name: [_name_place(broker, "not answered") for broker in each.brokers] for name, each in flows.items()
        },
        values=shares,
        row_name="clients in",
        value_name="share of lookups",
        scale=1000,
    )
    yield Paragraph(
        "Each row adds up to 100 %, the mean of all replicates. Places with most lookups come first.", "note"
    )


def _name_place(place: Location | None, other: str) -> str:
    return other if place is None else " / ".join(_list_levels(place)) or "unknown place"


def _list_levels(place: Location) -> list[str]:
    return [level for level in (place.region, place.zone, place.rack) if level is not None]
