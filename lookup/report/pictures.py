"""Compose the sections that are drawn from a run's tables: load, owners, flows, topology and rejections."""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from lookup.engine.ledger import MICRO
from lookup.engine.ownership import CAUSE_WORDS
from lookup.model.broker import Location
from lookup.model.quoting import quantity
from lookup.report.blocks import Block, Chart, Matrix, Paragraph, Section, Table
from lookup.report.charts import heat_spec, matrix_spec, moves_spec, rejection_spec, topology_spec
from lookup.report.comparison import NOTHING, number_text, value_text
from lookup.report.folder import Run
from lookup.report.history import Flows, History, read_flows, read_history

__all__ = ["pictures"]

#: Values of all heat maps of one kind together: the page is to stay below 1.5 MB, of which charts' code takes 0.83.
_MOST_VALUES = 40_000
#: Places of clients that a matrix of flows tells apart.
_MOST_PLACES = 12
#: Spans of time whose axis needs no dates, µs.
_DAY_US = 26 * 3600 * MICRO
_NO_TABLES = "The folder of this run has no tables of load and flows: evaluate again with this version to see them."

#: By cluster and policy, one row of whole numbers for each name of the cluster's.
_Values = dict[str, dict[str, list[list[int | None]]]]


def pictures(run: Run, rejections: Mapping[str, Mapping[str, float]]) -> list[Section]:
    """Return the sections that are drawn; in place of a picture that the run cannot have stands the reason."""
    evaluation = run.scored.plan.evaluation
    history = read_history(
        run.path,
        policies=run.scored.plan.policies,
        seed=evaluation.drawn[0],
        cell_us=evaluation.balance_s * MICRO,
        most=_MOST_VALUES,
    )
    flows = read_flows(run.path, seeds=len(evaluation.drawn), most=_MOST_PLACES)
    return [
        Section("load", "Load of brokers over time", list(_load(history))),
        Section("owners", "Owners and moves over time", list(_owners(history))),
        Section("flows", "From clients to brokers", list(_flows(flows))),
        Section("topology", "Topology", list(_topology(run, history))),
        Section("rejections", "Brokers that filters kept out", list(_rejections(run, rejections))),
    ]


def _load(history: History | None) -> Iterator[Block]:
    if history is None:
        yield Paragraph(_NO_TABLES, "note")
        return
    yield Paragraph(
        "The weight that each broker served, divided by the mean of the brokers that were registered: 1 is even; 2 and "
        f"more have one colour. {_of_replicate(history)} A triangle marks a broker that came, a cross one that was "
        "lost; a broker that was back within the same column has only a cross."
    )
    values = {
        name: {policy: _whole(matrix * 100) for policy, matrix in each.load.items()}
        for name, each in history.clusters.items()
    }
    yield _heat_map(
        history,
        "load-chart",
        "Load of each broker over time, relative to the mean",
        spec=heat_spec("load / mean", _time_format(history), is_relative=True),
        values=values,
        value_name="load / mean",
        scale=100,
    )


def _owners(history: History | None) -> Iterator[Block]:
    if history is None:
        yield Paragraph(_NO_TABLES, "note")
        return
    yield Paragraph(
        f"How many bundles lost their owner, and why, and how many each broker owned. {_of_replicate(history)} A "
        "bundle that lost its owner counts as a move once it has another. What a broker owned is counted at the end of "
        "each column."
    )
    causes = tuple(CAUSE_WORDS.values())
    lost: _Values = {
        name: {policy: matrix.tolist() for policy, matrix in each.lost.items()}
        for name, each in history.clusters.items()
    }
    yield _over_time(
        history,
        "moves-chart",
        "Bundles that lost their owner over time, by cause",
        "Stacked bars over time, one colour per cause, for the incumbent and one candidate.",
        spec=moves_spec(causes, _time_format(history)),
        rows=dict.fromkeys(history.clusters, causes),
        values=lost,
        row_name="cause",
        value_name="bundles that lost their owner",
    )
    # A broker that is not registered owns nothing, and its cell is empty.
    owned = {
        name: {
            policy: _whole(np.where(np.isnan(each.load[policy]), np.nan, matrix))
            for policy, matrix in each.owned.items()
        }
        for name, each in history.clusters.items()
    }
    yield _heat_map(
        history,
        "owned-chart",
        "Bundles that each broker owned at the end of each column of time",
        spec=heat_spec("bundles", _time_format(history), is_relative=False),
        values=owned,
        value_name="bundles owned",
    )


def _heat_map(history: History, name: str, title: str, **content: Any) -> Matrix:
    """Return a chart of brokers over time, with marks where brokers came and were lost."""
    clusters = history.clusters.items()
    return _over_time(
        history,
        name,
        title,
        "One row per broker, one column per stretch of time, for the incumbent and one candidate.",
        rows={name: each.brokers for name, each in clusters},
        row_name="broker",
        has_lives=True,
        losses={name: [(number, instant // 1000) for number, instant in each.losses] for name, each in clusters},
        **content,
    )


def _over_time(history: History, name: str, title: str, description: str, **content: Any) -> Matrix:
    clusters = history.clusters.items()
    columns = {name: [int(start) // 1000 for start in each.starts] for name, each in clusters}
    widths = {name: each.width_us // 1000 for name, each in clusters}
    return Matrix(name, title, description, columns=columns, widths=widths, **content)


def _of_replicate(history: History) -> str:
    return f"Shown is the replicate with seed {history.seed}, without the warm-up; times are UTC."


def _time_format(history: History) -> str:
    spans = [int(each.starts[-1] - each.starts[0]) + each.width_us for each in history.clusters.values()]
    return "%H:%M" if max(spans) <= _DAY_US else "%d %b %H:%M"


def _whole(matrix: NDArray[np.float64]) -> list[list[int | None]]:
    return [[None if math.isnan(value) else round(value) for value in row] for row in matrix.tolist()]


def _flows(flows: Mapping[str, Flows]) -> Iterator[Block]:
    if not flows:
        yield Paragraph(_NO_TABLES, "note")
        return
    if not any(place for each in flows.values() for place in (*each.clients, *each.brokers)):
        yield Paragraph("Neither clients nor brokers say in which region, zone or rack they are.", "note")
        return
    rest = " All but the largest are one row." if any(None in each.clients for each in flows.values()) else ""
    yield Paragraph(
        "Of the lookups of clients in one place the share that brokers of each place served, the mean of all "
        f"replicates; places with the most lookups come first.{rest}"
    )
    shares = {
        name: {
            policy: _whole(matrix / np.maximum(matrix.sum(axis=1, keepdims=True), 1e-12) * 1000)
            for policy, matrix in each.lookups.items()
        }
        for name, each in flows.items()
    }
    yield Matrix(
        "flows-chart",
        "Shares of lookups from places of clients to places of brokers",
        "A coloured table, one row per place of clients, one column per place of brokers.",
        matrix_spec("clients in", "served by brokers in", "share"),
        rows={name: [_place(client, "all others") for client in each.clients] for name, each in flows.items()},
        columns={name: [_place(broker, "not answered") for broker in each.brokers] for name, each in flows.items()},
        values=shares,
        row_name="clients in",
        value_name="share of lookups",
        scale=1000,
    )


def _place(place: Location | None, other: str) -> str:
    return other if place is None else " / ".join(_levels(place)) or "unknown place"


def _levels(place: Location) -> list[str]:
    return [level for level in (place.region, place.zone, place.rack) if level is not None]


def _topology(run: Run, history: History | None) -> Iterator[Block]:
    if history is not None and not any(any(each.places.values()) for each in history.clusters.values()):
        yield Paragraph("No broker says in which region, zone or rack it is.", "note")
    elif history is not None:
        nodes, leaves = _tree(history)
        texts = []
        for name, each in history.clusters.items():
            for broker in each.brokers:
                place = each.places.get(broker, Location())
                texts.append([broker, name, *(level or NOTHING for level in (place.region, place.zone, place.rack))])
        heads = ("broker", "cluster", "region", "zone", "rack")
        yield Chart(
            "topology-chart",
            "Where brokers stand",
            f"A tree from {quantity(len(history.clusters), 'cluster')} to the places of brokers.",
            topology_spec(leaves, max(node[0] for node in nodes)),
            ["x", "y", "to_x", "to_y", "label", "brokers"],
            nodes,
            Table(heads, texts, "topology-table", "Brokers by place", texts=range(len(heads))),
        )
    settings = run.manifest["settings"]["topology"]
    distances = [
        (level, number_text(float(ms)), number_text(float(settings["price_per_gb"].get(level, 0.0))))
        for level, ms in settings["distance_ms"].items()
    ]
    figures = ("level", "ms", "price of a GB")
    yield Table(figures, distances, "distance-table", "Distances by the first level that differs")
    links = [
        (edge["a"], edge["b"], number_text(float(edge["ms"])), number_text(float(edge["price_per_gb"])))
        for edge in settings["edges"]
    ]
    if links:
        yield Table(("from", "to", "ms", "price of a GB"), links, "link-table", "Links", texts=(0, 1))


#: Depth, height, depth and height of the node it hangs from, label, brokers.
_Node = tuple[float, float, float, float, str, int]


def _tree(history: History) -> tuple[list[_Node], int]:
    """Return the nodes of a tree from clusters to places of brokers, and the number of its leaves."""
    leaves: dict[tuple[str, ...], int] = defaultdict(int)
    for cluster, each in history.clusters.items():
        for broker in each.brokers:
            leaves[cluster, *(_levels(each.places.get(broker, Location())) or ["unknown place"])] += 1
    counts: dict[tuple[str, ...], int] = defaultdict(int)
    heights: dict[tuple[str, ...], list[float]] = defaultdict(list)
    for number, (path, count) in enumerate(sorted(leaves.items())):
        for depth in range(1, len(path) + 1):
            counts[path[:depth]] += count
            heights[path[:depth]].append(float(number))
    # A node stands in the middle of the leaves that hang from it.
    height = {path: sum(numbers) / len(numbers) for path, numbers in heights.items()}
    nodes: list[_Node] = []
    for path, count in sorted(counts.items()):
        above = path[:-1] or path
        label = f"{path[-1]} · {quantity(count, 'broker')}"
        nodes.append((len(path) - 1.0, height[path], len(above) - 1.0, height[above], label, count))
    return nodes, len(leaves)


def _rejections(run: Run, rejections: Mapping[str, Mapping[str, float]]) -> Iterator[Block]:
    reasons = sorted({reason for counts in rejections.values() for reason in counts})
    if not reasons:
        yield Paragraph("No filter of any policy kept out a broker.", "note")
        return
    counts = {policy: rejections.get(policy, {}) for policy in (run.scored.incumbent, *run.scored.candidates)}
    texts = [
        (policy, *(value_text(of.get(reason, 0.0), "decisions") for reason in reasons)) for policy, of in counts.items()
    ]
    yield Paragraph(
        "A decision asks about every broker; those that a filter kept out are counted by its reason, the mean of all "
        "replicates."
    )
    yield Chart(
        "rejection-chart",
        "Brokers kept out of decisions, by reason",
        "One bar per policy, stacked by reason.",
        rejection_spec(reasons),
        ["policy", "reason", "count"],
        [[policy, reason, of[reason]] for policy, of in counts.items() for reason in reasons if of.get(reason)],
        Table(("policy", *reasons), texts, "rejection-table", "Brokers kept out of decisions"),
    )
