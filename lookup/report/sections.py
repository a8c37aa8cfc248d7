"""Compose the page of a run: its sections in the order of reading, from the answer to how it was found."""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Iterator
from typing import Any

from lookup.replay.counted import BY_DIMENSIONS
from lookup.report import document, wording
from lookup.report.blocks import Block, Bullets, Cards, Cell, Chart, Definitions, Fold, Paragraph, Section, Table
from lookup.report.cards import PRICE, ranked
from lookup.report.caveats import caveats, what_cannot_act
from lookup.report.charts import NARROW, WIDE, delta_spec, extent
from lookup.report.comparison import (
    ARROWS,
    NOTHING,
    Scope,
    apart,
    interval_text,
    label,
    mark_of,
    number_text,
    own_direction,
    parts,
    signed_text,
    value_text,
    word_of,
)
from lookup.report.folder import Run
from lookup.report.history import read_rejections
from lookup.report.pictures import pictures
from lookup.report.trade import trade_chart
from lookup.report.wording import aims, locality, terms
from lookup.report.words import words_of
from lookup.score.luck import Estimate
from lookup.score.rules import Name
from lookup.score.scoring import Scored

__all__ = ["sections"]

#: Parts of the demand shown by figure and dimension.
_WORST = 3
#: Figures of parts that say how clients fare; others are in `summary.json`.
_FELT = ("answered_ratio", "match_ratio", "network_ms_mean", "imbalance_max_mean")


def sections(run: Run, folder: str | None = None) -> list[Section]:
    """Return every section that the run has something for; what it cannot have is said in its place."""
    scored = run.scored
    rejected = read_rejections(run.path, seeds=len(scored.plan.evaluation.drawn))
    load, owners, flows, topology, rejections = pictures(run, rejected)
    every = (
        *_first_screen(scored, folder or run.path),
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


def _first_screen(scored: Scored, folder: str) -> Iterator[Section]:
    blocks: list[Block] = [Paragraph(text, "lead") for text in what_cannot_act(scored)]
    others: list[Block] = []
    for block in document.answer(scored, folder):
        if isinstance(block, Cards):
            best, *rest = block.items
            blocks.append(Cards([best]))
            others += [Cards(rest)] if rest else []
        else:
            blocks.append(block)
    yield Section("answer", "The answer", blocks)
    yield _trade(scored)
    yield Section("others", "What else, and what decides", [*others, *_decision(scored)])


def _decision(scored: Scored) -> Iterator[Block]:
    yield from document.decision(scored)
    if scored.candidates:
        named = [wording.differing(scored, policy) for policy in apart(scored)]
        counted = zip(wording.outcomes(scored), named, strict=True)
        lists = [f"{sentence}. {names}" if names else sentence for sentence, names in counted]
        notes = [Paragraph(text, "note") for text in wording.comparisons(scored)]
        yield Fold(document.ABOUT_COUNTS, [Bullets(lists, "named"), *notes])
    yield Fold("What these figures and words mean", [Definitions(terms(scored))])
    if caveats(scored):
        yield Paragraph("What to be careful about stands under “Before you trust it”, near the end.", "note")


def _trade(scored: Scored) -> Section:
    chosen = _axes(scored)
    if chosen is None:
        text = "This run has no two figures to set against each other, as there are locality, balance and moves."
        return Section("trade", "One aim against another", [Paragraph(text, "note")])
    up, across = (scored.metric[name[0]] for name in chosen)
    rows: list[list[Any]] = []
    texts: list[list[str | Cell]] = []
    # The first ones have their names for certain.
    for policy in (scored.incumbent, *ranked(scored)):
        high, far = (scored.pooled.get((policy, *name)) for name in chosen)
        moved = scored.pooled.get((policy, *PRICE))
        if high is None or far is None or not math.isfinite(high.value + far.value):
            continue
        written = [_written(figure) for figure in (high, far, moved)]
        role = "incumbent" if policy == scored.incumbent else "candidate"
        count = None if moved is None or PRICE in chosen or math.isnan(moved.value) else moved.value
        spans = [_span(scored, policy, name, figure) for name, figure in zip(chosen[::-1], (far, high), strict=True)]
        rows.append([policy, role, *spans[0], *spans[1], count, *(cell.text for cell in written)])
        texts.append([policy, *written[: 2 if PRICE in chosen else 3]])
    words = [words_of(name).name for name in chosen]
    places = ("above" if up.better == "up" else "below", "right" if across.better == "up" else "left")
    size = "" if all(row[8] is None for row in rows) else " The larger a point, the more bundles it moves."
    title = f"{words[0][0].upper()}{words[0][1:]} against {words[1]}"
    directions = {"up": "higher is better", "down": "lower is better"}
    titles = {
        WIDE: (f"{words[0]} ({directions[up.better]})", f"{words[1]} ({directions[across.better]})"),
        NARROW: (f"{words[0]} {ARROWS[up.better]}", f"{words[1]} {ARROWS[across.better]}"),
    }
    names = [label(*name) for name in (*chosen, *([] if PRICE in chosen else [PRICE]))]
    table = Table(("policy", *names), texts, "trade-table", "The numbers of the chart, pooled over all clusters")
    bests = [best.value for best in scored.at_best if (best.metric, best.key) == chosen[0]]
    best = (max(bests) if up.better == "up" else min(bests)) if bests else None
    domains = [
        extent([*(end for row in rows for end in row[low : low + 2]), *ends]) for low, ends in ((3, []), (6, bests))
    ]
    blocks = [
        trade_chart(name, title, rows, domains, titles=titles[shape], shape=shape, best=best)
        for name, shape in (("trade-chart", WIDE), ("trade-narrow-chart", NARROW))
    ]
    about = (
        f"A policy is better than the incumbent on both if its point lies {places[0]} and to the {places[1]} of the "
        f"incumbent's.{size} Lines are 95 % intervals of the difference from the incumbent: one that "
        "reaches a dashed line may be chance; so may, among many candidates, one that does not (“perhaps”). Names "
        "without room are left out: point at the point."
    )
    sentence = wording.at_best(scored)
    if sentence is not None and best is not None:
        about += f" {sentence} The long dashes mark it."
    heading = "Locality against balance" if locality(scored) else "Balance against moves"
    return Section("trade", heading, [*blocks, Fold("Numbers of this chart", [table]), Paragraph(about, "note")])


def _axes(scored: Scored) -> tuple[Name, Name] | None:
    """Return the figures upwards and to the right; None if this run has no two that some policy has values of."""
    known = [
        name
        for name in (*aims(scored), PRICE)
        if any(math.isfinite(figure.value) for key, figure in scored.pooled.items() if key[1:] == name)
    ]
    if len(known) < 2:
        return None
    # Without locality moves stand upwards, balance to the right as ever.
    up, across = known[:2]
    return (across, up) if across == PRICE else (up, across)


def _span(scored: Scored, policy: str, name: Name, figure: Estimate) -> tuple[float, float, float]:
    """Return a figure, and where the incumbent's is if one adds the interval of the difference to it; else no width."""
    found = [verdict for verdict in scored.verdicts if (verdict.policy, verdict.name) == (policy, name)]
    if not found or math.isnan(found[0].low):
        return figure.value, figure.value, figure.value
    change, low, high = own_direction(found[0], figure.series.metric.better)
    return figure.value, figure.value + low - change, figure.value + high - change


def _written(figure: Estimate | None) -> Cell:
    if figure is None:
        return Cell(NOTHING)
    unit = figure.series.metric.unit
    interval = interval_text(figure.low, figure.high, unit)
    return Cell(value_text(figure.value, unit), "" if interval == NOTHING else interval)


def _differences(scored: Scored) -> Iterator[Block]:
    if not scored.verdicts:
        yield Paragraph("There is no candidate to compare.", "note")
        return
    named, heads = defaultdict(list), apart(scored)
    for verdict in scored.verdicts:
        if verdict.policy in heads:
            named[verdict.name].append(verdict)
    rows: list[list[object]] = []
    texts: list[list[str | Cell]] = []
    for order, (name, verdicts) in enumerate(named.items()):
        if all(number_text(verdict.delta) in ("0", NOTHING) for verdict in verdicts):
            continue
        unit, better = scored.metric[name[0]].unit, scored.metric[name[0]].better
        title = f"{ARROWS[better]} {label(*name)}{' *' if verdicts[0].primary else ''}"
        for verdict in verdicts:
            if math.isnan(verdict.delta):
                continue
            change, low, high = own_direction(verdict, better)
            drawn = (None if math.isnan(bound) else bound for bound in (low, high))
            margin = None if math.isnan(verdict.margin) else verdict.margin
            rows.append([title, verdict.policy, change, *drawn, verdict.verdict, mark_of(verdict), margin, order])
            word = Cell(f"{mark_of(verdict)} {word_of(verdict)}", style=verdict.verdict)
            difference = f"{signed_text(change, unit)} {unit}"
            texts.append([title, verdict.policy, difference, interval_text(low, high, unit), word])
    yield document.ABOUT_VERDICTS
    yield Bullets(wording.meanings())
    if not rows:
        yield Paragraph("No figure differs between the policies.", "note")
        return
    yield Paragraph(
        "Bars to the right are more than the incumbent has, bars to the left less; ↑ ↓ say which is better: blue bars "
        "are better, orange ones worse, full grey ones the same, and hollow ones "
        "inconclusive. Lines across bars are 95 % intervals, and the grey band is the margin. Each "
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
            ("figure", "candidate", "difference", "95 % interval", "verdict"),
            texts,
            "delta-table",
            "The numbers of the charts",
            texts=(0, 1, 4),
        ),
    )
    for policy, head in heads.items():
        yield Fold(f"Verdicts on {head}, with reasons", [document.verdict_table(scored, policy)])


def _comparison(scored: Scored) -> Iterator[Block]:
    yield Paragraph(f"Pooled over all clusters, with 95 % intervals. Marks {wording.legend()}; {NOTHING} no figure.")
    yield document.figure_table(scored, head="figure")
    for cluster in scored.clusters if len(scored.clusters) > 1 else ():
        yield Fold(f"Cluster {cluster}", [document.figure_table(scored, Scope(cluster), head="figure")])


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
        f"Where a candidate loses most against the incumbent, at most {_WORST} parts for each figure. "
        f"{document.ABOUT_PARTS}"
    )
    incumbent = scored.incumbent
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
            before, metric = figures.get((by, name, incumbent), math.nan), scored.metric[name[0]]
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
            yield Table(heads, rows, f"parts-{dimension}", f"By {dimension}", texts=(0, 1, 2, 6))
        else:
            yield Paragraph(f"By {dimension} no candidate loses on any of these figures.", "note")


def _cycles(scored: Scored) -> Iterator[Block]:
    if not scored.inputs.cycles:
        return
    yield document.ABOUT_CYCLES
    idle = document.idle_shedders(scored)
    if idle:
        yield Bullets(idle)
    for policy, cycles in scored.inputs.cycles.items():
        yield Fold(f"{policy}: {document.cycles_in_words(cycles)}", [document.cycle_table(policy, cycles)])


def _caution(scored: Scored) -> Iterator[Block]:
    warnings = caveats(scored)
    if warnings:
        yield Bullets(warnings)
    yield from document.fidelity(scored)


def _method(run: Run) -> Iterator[Block]:
    yield document.setup(run.scored)
    read = document.input_table(run.scored)
    if read.rows:
        yield read
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
    heads, caption = ("table", "path", "files", "rows", "blake2b"), "Inputs with their fingerprints"
    yield Table(heads, files, "source-table", caption, texts=(0, 1, 4))
    yield Table(("of", "version"), sorted(manifest["versions"].items()), "version-table", "Versions", texts=(0, 1))
    yield Paragraph(f"Made by `{' '.join(manifest['command'])}`.")
