"""Compose the page of a run: its sections in the order of reading, from the answer to how it was found."""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from lookup.hooks import Metric
from lookup.model.quoting import quantity
from lookup.replay.counted import BY_DIMENSIONS
from lookup.report.answer import answers, headline, locality, question
from lookup.report.blocks import Block, Bullets, Cell, Chart, Definitions, Fold, Paragraph, Section, Table
from lookup.report.charts import CHART_WIDTH, TRADE_HEIGHT, TRADE_SIZES, delta_spec, trade_spec
from lookup.report.comparison import (
    ARROWS,
    FIDELITY_HEADS,
    NOTHING,
    VERDICT_HEADS,
    Scope,
    fidelity_rows,
    interval_text,
    label,
    lines,
    mark_of,
    number_text,
    own_direction,
    parts,
    policies_in_order,
    pooled,
    signed_text,
    value_text,
    verdict_rows,
    word_of,
)
from lookup.report.folder import Run
from lookup.report.glossary import terms
from lookup.report.labels import Point, Spot, extent, place
from lookup.report.pictures import pictures
from lookup.report.wording import (
    ABOUT_COUNTS,
    ABOUT_CYCLES,
    ABOUT_FIDELITY,
    ABOUT_PARTS,
    ABOUT_UNDECIDED,
    ABOUT_VERDICTS,
    caveats,
    comparisons,
    conclusion,
    cycles_of,
    differing,
    idle_shedders,
    input_rows,
    legend,
    meanings,
    outcomes,
    setup,
    undecided_figures,
    winners_luck,
)
from lookup.score.luck import Estimate
from lookup.score.scoring import Scored

__all__ = ["sections"]

#: Parts of the demand shown by figure and dimension.
_WORST = 3
#: Figures of parts that say how clients fare; others are in `summary.json`.
_FELT = ("answered_ratio", "match_ratio", "network_ms_mean", "imbalance_max_mean")


def sections(run: Run) -> list[Section]:
    """Return every section that the run has something for; what it cannot have is said in its place."""
    scored = run.scored
    load, owners, flows, topology, rejections = pictures(run)
    every = (
        Section("answer", "The answer", list(_answer(scored))),
        Section("trade", "Locality against balance", list(_trade(scored))),
        Section("differences", "Differences from the incumbent", list(_differences(scored))),
        Section("comparison", "All figures", list(_comparison(scored))),
        load,
        owners,
        flows,
        topology,
        Section("parts", "Who fares worst", list(_parts(scored))),
        rejections,
        Section("cycles", "Why bundles moved, or did not", list(_cycles(scored))),
        Section("caution", "Before you trust it", list(_caution(scored))),
        Section("method", "How it was found", list(_method(run))),
    )
    return [section for section in every if section.blocks]


def _answer(scored: Scored) -> Iterator[Block]:
    asked = question(scored)
    if asked is not None:
        yield Paragraph(asked)
        yield Bullets(answers(scored), "answers")
    yield Paragraph(conclusion(scored), "lead")
    luck = winners_luck(scored)
    if luck is not None:
        yield Paragraph(luck, "note")
    open_ = undecided_figures(scored)
    if open_:
        yield Fold(ABOUT_UNDECIDED, [Bullets(open_)])
    if outcomes(scored):
        named = [differing(scored, policy) for policy in policies_in_order(scored)[1:]]
        counted = zip(outcomes(scored), named, strict=True)
        lists = [f"{sentence}. {names}" if names else sentence for sentence, names in counted]
        yield Fold(
            ABOUT_COUNTS, [Bullets(lists, "answers"), *(Paragraph(text, "note") for text in comparisons(scored))]
        )
    yield Fold("What these figures and words mean", [Definitions(terms(scored))])
    if caveats(scored):
        yield Paragraph("What to be careful about stands under “Before you trust it”, near the end.", "note")


def _trade(scored: Scored) -> Iterator[Block]:
    near_by = locality(scored)
    chosen = () if near_by is None else headline(scored)
    estimates, metrics = pooled(scored), {metric.name: metric for metric in scored.metrics}
    rows: list[list[Any]] = []
    texts: list[list[str | Cell]] = []
    for policy in policies_in_order(scored) if chosen else ():
        near, even, moved = (estimates.get((policy, metric, key)) for metric, key in chosen)
        if near is None or even is None or not math.isfinite(near.value + even.value):
            continue
        written = [_written(figure, metrics) for figure in (near, even, moved)]
        role = "incumbent" if policy == scored.plan.evaluation.incumbent else "candidate"
        count = None if moved is None or math.isnan(moved.value) else moved.value
        rows.append([policy, role, *_bounds(even), *_bounds(near), count, *(cell.text for cell in written)])
        texts.append([policy, *written])
    if near_by is None or not rows:
        text = "This run has no figures of locality and of imbalance to set against each other."
        if near_by is None:
            text = (
                "This run has no figure of locality to set against imbalance. That needs labels, like rack, of clients "
                "and brokers: lookups have those of clients in their properties, or `[[clients]]` of the evaluation "
                "gives them by address."
            )
        yield Paragraph(text, "note")
        return
    names = [label(metric, key) for metric, key in chosen]
    good, side = ("higher", "above") if metrics[near_by[0]].better == "up" else ("lower", "below")
    most = max((row[8] for row in rows if row[8] is not None), default=None)
    size = "" if most is None else "The size of a point is the number of moves. "
    yield Paragraph(
        f"A policy is better than the incumbent on both if its point lies {side} and to the left of the incumbent's. "
        f"{size}Lines are 95 % intervals. A name for which there is no room is "
        "left out: pointing at the point shows it, and so does the table below."
    )
    domains = [extent([row[low] for row in rows], [row[low + 1] for row in rows]) for low in (3, 6)]
    spots = _spots(rows, domains, most)
    yield Chart(
        "trade-chart",
        f"{names[0]} against {names[1]}, one point per policy",
        f"A scatter plot of {quantity(len(rows), 'policy', 'policies')} with 95 % intervals.",
        trade_spec(f"{names[0]} ({good} is better)", f"{names[1]} (lower is better, 1 is even)", domains, most),
        "policy role x x_low x_high y y_low y_high moves locality imbalance moved label dx dy align".split(),
        [[*row, spot.text, spot.dx, spot.dy, spot.align] for row, spot in zip(rows, spots, strict=True)],
        Table("trade-table", "The numbers of the chart, pooled over all clusters", ("policy", *names), texts),
    )


def _spots(rows: Sequence[Sequence[Any]], domains: Sequence[tuple[float, float]], most: float | None) -> list[Spot]:
    """Return where the names of points stand.

    Args:
        rows: of the chart of locality against imbalance, as its fields have them, up to the moves.
        domains: of its scales.
        most: moves of its largest point, None if they are not known.
    """
    (left, right), (bottom, top) = domains
    least, largest = TRADE_SIZES
    points = [
        Point(
            row[0],
            (row[2] - left) / (right - left) * CHART_WIDTH,
            (top - row[5]) / (top - bottom) * TRADE_HEIGHT,
            math.sqrt((least + (largest - least) * (row[8] or 0.0) / (most or 1.0)) / math.pi),
        )
        for row in rows
    ]
    return place(points, CHART_WIDTH, TRADE_HEIGHT)


def _bounds(figure: Estimate) -> tuple[float, float, float]:
    """Return a value and its interval, of no width if there is none."""
    if math.isnan(figure.low):
        return figure.value, figure.value, figure.value
    return figure.value, figure.low, figure.high


def _written(figure: Estimate | None, metrics: Mapping[str, Metric]) -> Cell:
    if figure is None:
        return Cell(NOTHING)
    unit = metrics[figure.series.metric.name].unit
    interval = interval_text(figure.low, figure.high, unit)
    return Cell(value_text(figure.value, unit), "" if interval == NOTHING else interval)


def _differences(scored: Scored) -> Iterator[Block]:
    if not scored.verdicts:
        yield Paragraph("There is no candidate to compare.", "note")
        return
    metrics = {metric.name: metric for metric in scored.metrics}
    named = defaultdict(list)
    for verdict in scored.verdicts:
        named[verdict.metric, verdict.key].append(verdict)
    rows: list[list[object]] = []
    texts: list[list[str | Cell]] = []
    for order, ((metric, key), verdicts) in enumerate(named.items()):
        if all(number_text(verdict.delta) in ("0", NOTHING) for verdict in verdicts):
            continue
        unit, better = metrics[metric].unit, metrics[metric].better
        name = f"{ARROWS[better]} {label(metric, key)}{' *' if verdicts[0].primary else ''}"
        for verdict in verdicts:
            if math.isnan(verdict.delta):
                continue
            change, *bounds = own_direction(verdict, better)
            *drawn, margin = (None if math.isnan(bound) else bound for bound in (*bounds, verdict.margin))
            rows.append([name, verdict.policy, change, *drawn, verdict.verdict, mark_of(verdict), margin, order])
            interval = interval_text(bounds[0], bounds[1], unit)
            texts.append(
                [
                    name,
                    verdict.policy,
                    Cell(f"{signed_text(change, unit)} {unit}"),
                    Cell(interval),
                    Cell(f"{mark_of(verdict)} {word_of(verdict)}", style=verdict.verdict),
                ]
            )
    yield Paragraph(" ".join(ABOUT_VERDICTS))
    yield Bullets(meanings())
    if not rows:
        yield Paragraph("No figure differs between the policies.", "note")
        return
    yield Paragraph(
        "Bars to the right are more than the incumbent has, bars to the left less; ↑ ↓ say which is better: blue bars "
        "are better, orange ones worse. Lines across bars are 95 % intervals, and the grey band is the margin. Each "
        "chart has a scale of its own; * decides the exit code."
    )
    yield Chart(
        "delta-chart",
        "Differences from the incumbent, one small chart per figure",
        "Bars of the difference of each candidate from the incumbent, with 95 % intervals.",
        delta_spec(3),
        ["metric", "policy", "delta", "low", "high", "verdict", "mark", "margin", "order"],
        rows,
        Table(
            "delta-table",
            "The numbers of the charts",
            ("figure", "candidate", "difference", "95 % interval", "verdict"),
            texts,
            texts=(0, 1, 4),
        ),
    )
    for policy in policies_in_order(scored)[1:]:
        table = Table(
            f"verdicts-{policy}", f"Verdicts on {policy}", VERDICT_HEADS, verdict_rows(scored, policy), texts=(0, 1, 5)
        )
        yield Fold(f"Verdicts on {policy}, with reasons", [table])


def _comparison(scored: Scored) -> Iterator[Block]:
    yield Paragraph(f"Pooled over all clusters, with 95 % intervals. Marks {legend()}; {NOTHING} no figure.")
    yield _figures(scored, Scope(), "comparison-table", "Every figure of every policy")
    if len(scored.clusters) > 1:
        for cluster in scored.clusters:
            table = _figures(scored, Scope(cluster), f"comparison-{cluster}", f"Every figure in cluster {cluster}")
            yield Fold(f"Cluster {cluster}", [table])


def _figures(scored: Scored, scope: Scope, name: str, caption: str) -> Table:
    policies = policies_in_order(scored)
    heads = ("figure", "unit", f"{policies[0]} (incumbent)", *policies[1:])
    rows: list[list[str | Cell]] = []
    for line in lines(scored, scope):
        cells = [
            Cell(
                f"{cell.value} {cell.mark}".strip(),
                "" if cell.interval == NOTHING else cell.interval,
                cell.verdict.verdict if cell.verdict else "",
            )
            for cell in line.cells
        ]
        rows.append([line.name, line.unit, *cells])
    return Table(name, caption, heads, rows, texts=(0, 1))


def _parts(scored: Scored) -> Iterator[Block]:
    by_part = parts(scored)
    if not by_part:
        *first, last = BY_DIMENSIONS
        yield Paragraph(
            "This run measured no parts of the demand. To see who fares worst, evaluate with by = "
            f"{', '.join(first)} or {last}.",
            "note",
        )
        return
    yield Paragraph(
        f"Where a candidate loses most against the incumbent, at most {_WORST} parts for each figure. {ABOUT_PARTS}"
    )
    incumbent, metrics = scored.plan.evaluation.incumbent, {metric.name: metric for metric in scored.metrics}
    figures = {
        (figure.series.by, figure.series.name, figure.series.policy): figure.value
        for figure in scored.estimates
        if figure.series.by and figure.cluster is None and figure.series.metric.name in _FELT
    }
    for dimension in sorted({by[0][0] for by in by_part}, key=BY_DIMENSIONS.index):
        losses: dict[tuple[str, str | None], list[tuple[float, str, str, list[str]]]] = defaultdict(list)
        for (by, name, policy), value in figures.items():
            if by[0][0] != dimension or policy == incumbent:
                continue
            before, metric = figures.get((by, name, incumbent), math.nan), metrics[name[0]]
            loss = before - value if metric.better == "up" else value - before
            change = signed_text(value - before, metric.unit)
            # A loss that rounds to nothing is none worth a row.
            if math.isfinite(loss) and loss > 0 and change[0] in "+-":
                values = [value_text(before, metric.unit), value_text(value, metric.unit), change, metric.unit]
                losses[name].append((-loss, by[0][1], policy, values))
        rows = [
            [part, label(*name), policy, *values]
            for name, entries in losses.items()
            for _, part, policy, values in sorted(entries)[:_WORST]
        ]
        heads = (dimension, "figure", "candidate", f"{incumbent} (incumbent)", "candidate's", "change", "unit")
        if rows:
            yield Table(f"parts-{dimension}", f"By {dimension}", heads, rows, texts=(0, 1, 2, 6))
        else:
            yield Paragraph(f"By {dimension} no candidate loses on any of these figures.", "note")


def _cycles(scored: Scored) -> Iterator[Block]:
    policies = cycles_of(scored.inputs)
    if not policies:
        return
    yield Paragraph(" ".join(ABOUT_CYCLES))
    idle = idle_shedders(scored.inputs)
    if idle:
        yield Bullets(idle)
    for policy, cycles in policies.items():
        table = Table(f"cycles-{policy}", f"Cycles of {policy}", ("reason", "cycles", "largest excess"), cycles.rows)
        yield Fold(f"{policy}: {cycles.summary}", [table])


def _caution(scored: Scored) -> Iterator[Block]:
    warnings = caveats(scored)
    if warnings:
        yield Bullets(warnings)
    yield Paragraph(" ".join(ABOUT_FIDELITY))
    rows, unknown = fidelity_rows(scored)
    if rows:
        yield Table("fidelity-table", "The incumbent as logged and as replayed", FIDELITY_HEADS, rows)
    if unknown:
        yield Bullets([f"no gap for {', '.join(names)}: {reason}" for reason, names in unknown.items()])


def _method(run: Run) -> Iterator[Block]:
    yield Bullets(setup(run.scored))
    rows = input_rows(run.scored)
    if rows:
        yield Table("input-table", "What was read", ("input", "value"), rows, texts=(0, 1))
    manifest = run.manifest
    files = [
        (
            name,
            entry["path"],
            f"{entry['files']:,}",
            NOTHING if entry["rows"] is None else f"{entry['rows']:,}",
            entry["blake2b"],
        )
        for name, entry in manifest["inputs"].items()
    ]
    yield Table(
        "source-table",
        "Inputs with their fingerprints",
        ("table", "path", "files", "rows", "blake2b"),
        files,
        texts=(0, 1, 4),
    )
    yield Table("version-table", "Versions", ("of", "version"), sorted(manifest["versions"].items()), texts=(0, 1))
    yield Paragraph(f"Made by `{' '.join(manifest['command'])}`.")
