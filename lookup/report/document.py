"""Compose the report of a run as sections of blocks in the order of reading, from the answer to the method.

The page and `report.md` have the same sections. The page adds charts, and shows folds on demand.
"""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import fields
from typing import Any

from lookup.engine.cycle_sums import CycleSums
from lookup.model.quoting import quantity
from lookup.model.time import moment_at
from lookup.replay.counted import BY_DIMENSIONS
from lookup.report import sentences
from lookup.report.blocks import Block, Bullets, Cards, Cell, Choice, Definitions, Fold, Paragraph, Section, Table
from lookup.report.charts import NARROW, WIDE, extent, trade_chart
from lookup.report.figures import Results, Run
from lookup.report.history import read_rejections
from lookup.report.numbers import ARROWS, NOTHING, interval_text, number_text, signed_text, value_text
from lookup.report.pictures import pictures
from lookup.report.sentences import MOVES, OVERLOAD, PLACE, aims, head_of, mark_of
from lookup.score.figures import Figure
from lookup.score.rules import Name

__all__ = ["cycles_sentence", "figure_table", "first_figures", "idle_shedders", "sections"]

#: Cards, figures, cautions and parts of the demand that a first look needs.
_CARDS, _FIGURES, _CAUTIONS, _WORST = 3, 10, 4, 3
#: Rules from operators come before metrics that they weigh.
_ISOLATION: Name = ("isolation_ratio", None)
#: Figures of parts that show the effect on clients. Others are in `summary.json`.
_FELT = ("answered_ratio", "match_ratio", "network_ms_mean", "imbalance_max_mean")
#: Words for facts about the input. Others appear under their own names, except for facts with a place of their own.
_INPUTS: Mapping[str, str | None] = {
    "rows": "rows of the log",
    "lookups": "lookups replayed",
    "redirects": "redirects (hops, no demand)",
    "internal": "lookups of the load manager's own topics (no demand)",
    "quarantined": "records in quarantine",
    "first_us": "first lookup",
    "last_us": "last lookup",
    "induced_ratio": "share of lookups induced by logged losses",
    "ignored_unloads": "logged unloads that no administrator made (ignored)",
    "capacity": "capacity of brokers",
    "without_capacity": "brokers without a capacity, beside others with one",
    "decisions": "decisions taken",
    "failures": "failures that on_error let pass",
    "first_failure": "the first of them",
    "load": None,
    "cycles": None,
    "findings": None,
}

#: The figures of one scope, by name, then by policy.
_Lines = Mapping[Name, Mapping[str, Figure]]


def sections(results: Results, folder: str = PLACE, run: Run | None = None) -> list[Section]:
    """Compose every section for which the run has content.

    Args:
        folder: folder of the run, for commands.
        run: adds contents of the page only, which are charts and facts from the manifest.
    """
    where, moves = ([], []) if run is None else pictures(run)
    every = (
        *_compose_first_screen(results, folder, has_charts=run is not None),
        Section("figures", "Figures", list(_compose_figures(results))),
        Section("where", "Where it differs", [*where, *_compose_parts(results)]),
        Section(
            "moves",
            "What moved, and why",
            [*moves, *([] if run is None else _compose_rejections(run)), *_compose_cycles(results)],
        ),
        Section("certainty", "How sure it is", list(_compose_certainty(results))),
        Section(
            "method", "How it was made", [*_compose_setup(results), *([] if run is None else _compose_manifest(run))]
        ),
    )
    return [section for section in every if section.blocks]


# The answer.


def _compose_first_screen(results: Results, folder: str, *, has_charts: bool) -> Iterator[Section]:
    lead: list[Block] = [Paragraph(text, "lead") for text in sentences.idle_sentences(results)]
    lead.append(Paragraph(sentences.answer(results).sentence, "lead"))
    if results.exit_code:
        lead.append(Paragraph(sentences.conclusion(results)))
    groups = list(
        dict.fromkeys(_choose_representative(results, policy) for policy in sentences.rank_candidates(results))
    )
    winner = sentences.answer(results).about
    cards = [sentences.card(results, policy, folder, is_first=policy == winner) for policy in groups]
    same = [Paragraph(sentences.identical_sentence(results), "note")] if cards else []
    yield Section("answer", "Answer", [*lead, *([Cards(cards[:1])] if cards else []), *same])
    if has_charts:
        yield _compose_trade(results)
    blocks: list[Block] = [Cards(cards[1:_CARDS])] if len(cards) > 1 else []
    if len(cards) > _CARDS:
        more = [f"{card.title}: {card.sentence}" for card in cards[_CARDS:]]
        blocks.append(Fold(quantity(len(more), "more candidate"), [Bullets(more, "named")]))
    yield Section("others", "Other candidates", blocks)


def _choose_representative(results: Results, policy: str) -> str:
    return next(name for name in results.like(policy) if name != results.incumbent)


def _compose_trade(results: Results) -> Section:
    chosen = _choose_axes(results)
    if chosen is None:
        text = "This run has no two figures to compare, as there are locality, balance and moves."
        return Section("trade", "Trade-offs", [Paragraph(text, "note")])
    rows: list[list[Any]] = []
    texts: list[list[str | Cell]] = []
    # Names of the first rows are drawn for certain.
    for policy in (results.incumbent, *sentences.rank_candidates(results)):
        up, across = (results.pooled.get((policy, *name)) for name in chosen)
        moved = results.pooled.get((policy, *MOVES))
        if up is None or across is None or not math.isfinite(up.value + across.value):
            continue
        has_moves = moved is not None and MOVES not in chosen and math.isfinite(moved.value)
        written = [
            _build_value_cell(row) for row in (up, across, *([moved] if moved is not None and has_moves else []))
        ]
        role = "incumbent" if policy == results.incumbent else "candidate"
        count = moved.value if moved is not None and has_moves else None
        rows.append([policy, role, *_compute_ends(across), *_compute_ends(up), count, *(cell.text for cell in written)])
        rows[-1] += [NOTHING] * (3 - len(written))
        texts.append([policy, *written])
    incumbents = [results.pooled[results.incumbent, *name] for name in chosen]
    words = [head_of(name) for name in chosen]
    directions = {"up": "higher is better", "down": "lower is better"}
    better = [row.better for row in incumbents]
    titles = {
        WIDE: (f"{words[0]} ({directions[better[0]]})", f"{words[1]} ({directions[better[1]]})"),
        NARROW: (f"{words[0]} {ARROWS[better[0]]}", f"{words[1]} {ARROWS[better[1]]}"),
    }
    bests = [row.at_best for row in results.pooled.values() if row.name == chosen[0] and not math.isnan(row.at_best)]
    best = (max(bests) if better[0] == "up" else min(bests)) if bests else None
    domains = [
        extent([*(end for row in rows for end in row[low : low + 2]), *ends]) for low, ends in ((3, []), (6, bests))
    ]
    title = f"{words[0][0].upper()}{words[0][1:]} against {words[1]}"
    blocks: list[Block] = [
        trade_chart(name, title, rows, domains, titles=titles[shape], shape=shape, best=best)
        for name, shape in (("trade-chart", WIDE), ("trade-narrow-chart", NARROW))
    ]
    about = (
        "Short-dashed lines cross at the incumbent. The solid lines of a candidate are 95 % intervals of its changes. "
        "A change may be chance if its line reaches a short-dashed one."
    )
    about += " The larger a point, the more bundles it moves." if any(row[8] is not None for row in rows) else ""
    about += (
        f" No policy can pass the long-dashed line. {sentences.at_best_sentence(results)}" if best is not None else ""
    )
    heads = ("policy", *(incumbent.label for incumbent in incumbents), *(["moves"] if len(texts[0]) > 3 else []))
    table = Table(heads, texts, "trade-table", "The numbers of the chart, all clusters together")
    return Section("trade", "Trade-offs", [*blocks, Paragraph(about, "note"), Fold("Numbers of this chart", [table])])


def _choose_axes(results: Results) -> tuple[Name, Name] | None:
    """Choose the vertical and the horizontal figure, None if this run does not have two with values."""
    names = (*aims(results), MOVES)
    axes = [
        name
        for name in names
        if (row := results.pooled.get((results.incumbent, *name))) is not None and math.isfinite(row.value)
    ]
    if len(axes) < 2:
        return None
    up, across = axes[:2]
    # Without locality, moves are vertical, and balance is horizontal as usual.
    return (across, up) if across == MOVES else (up, across)


def _compute_ends(row: Figure) -> tuple[float, float, float]:
    if not row.has_interval:
        return row.value, row.value, row.value
    return row.value, row.value + row.change_low - row.change, row.value + row.change_high - row.change


def _build_value_cell(row: Figure) -> Cell:
    interval = interval_text(row.low, row.high, row.unit)
    return Cell(value_text(row.value, row.unit), "" if interval == NOTHING else interval)


# Figures.


def first_figures(results: Results) -> list[Name]:
    """Choose at most ten figures, which decide, belong to the answer, or differ most often."""
    whole = {row.name for row in sentences.wholes(results)}
    spoken = {_ISOLATION, *aims(results), OVERLOAD, MOVES}
    lines = _collect_lines(results)

    def rank(name: Name) -> tuple[bool, bool, bool, int]:
        rows = lines[name].values()
        is_primary = any(row.primary for row in rows)
        return not is_primary, name not in spoken, name not in whole, -sum(row.is_decided for row in rows)

    names = [name for name in lines if not _is_idle(name, lines[name])]
    chosen = sorted(names, key=rank)[:_FIGURES]
    return sorted((name for name in names if name in chosen), key=lambda name: rank(name)[0])


def _is_idle(name: Name, rows: Mapping[str, Figure]) -> bool:
    """Check whether a figure is unknown or 0 for all policies."""
    # That no lookup is within its isolation is the worst there is.
    least = math.nan if name == _ISOLATION else 0.0
    values = [row.value for row in rows.values()]
    return all(math.isnan(value) or value == least for value in values) and not any(
        row.primary for row in rows.values()
    )


def _collect_lines(results: Results, *, cluster: str | None = None, part: tuple[str, str] | None = None) -> _Lines:
    scope = (
        ("cluster" if part is None else "part of cluster") if cluster else "all clusters" if part is None else "part"
    )
    lines: dict[Name, dict[str, Figure]] = {}
    for row in results.figures:
        if row.scope == scope and row.cluster == cluster and (part is None or (row.dimension, row.part) == part):
            lines.setdefault(row.name, {})[row.policy] = row
    return lines


def figure_table(
    results: Results,
    names: Sequence[Name] | None = None,
    *,
    cluster: str | None = None,
    part: tuple[str, str] | None = None,
    policies: Sequence[str] | None = None,
) -> Table:
    """Put figures into a table with the incumbent first, then the candidates, the best first.

    Args:
        names: names of the figures, None for all.
        policies: names of the candidates, None for all.
    """
    lines = _collect_lines(results, cluster=cluster, part=part)
    columns = [results.incumbent, *(sentences.rank_candidates(results) if policies is None else policies)]
    bests = {name: _format_best(rows.values()) for name, rows in lines.items()}
    rows: list[list[str | Cell]] = []
    for name in lines if names is None else names:
        of = lines[name]
        first = next(iter(of.values()))
        star = " *" if any(row.primary for row in of.values()) else ""
        line: list[str | Cell] = [f"{ARROWS[first.better]} {first.label}{star}".strip(), first.unit]
        for policy in columns:
            row = of.get(policy)
            cell = Cell(NOTHING) if row is None else _build_value_cell(row)
            mark = "" if row is None else mark_of(row)
            line.append(Cell(f"{cell.text} {mark}".strip(), cell.detail, "" if row is None else row.verdict or ""))
        rows.append([*line, bests[name] or NOTHING] if any(bests.values()) else line)
    heads = ("figure", "unit", f"{columns[0]} (incumbent)", *columns[1:], *(["at best"] if any(bests.values()) else []))
    scope = f"cluster {cluster}" if cluster else "all clusters" if part is None else f"{part[0]} {part[1]}"
    place = cluster or ("all" if part is None else "-".join(part))
    kind = "first" if names is not None else "every"
    caption = f"{'All figures' if names is None else 'Figures'} of {scope}, with 95 % intervals"
    return Table(heads, rows, f"figures-{kind}-{place}", caption, texts=(0, 1))


def _format_best(rows: Iterable[Figure]) -> str:
    bests = [(row.at_best, row.unit) for row in rows if not math.isnan(row.at_best)]
    # Policies with other bundles have other bounds.
    return " to ".join(dict.fromkeys(value_text(*end(bests)) for end in (min, max) if bests))


def _compose_figures(results: Results) -> Iterator[Block]:
    first = figure_table(results, first_figures(results))
    if len(results.clusters) > 1:
        tables = [(cluster, figure_table(results, cluster=cluster)) for cluster in results.clusters]
        yield Choice("cluster", [("all clusters", first), *tables])
    else:
        yield first
    yield Paragraph(sentences.legend(), "note")
    yield Fold("All figures", [figure_table(results)])


# Where it differs.


def _compose_parts(results: Results) -> Iterator[Block]:
    rows = [row for row in results.figures if row.scope == "part" and row.metric in _FELT]
    if not rows:
        yield Paragraph(
            f"For figures by part of the demand, evaluate by {', '.join(BY_DIMENSIONS)} or several of them.", "note"
        )
        return
    before = {(row.dimension, row.part, row.name): row.value for row in rows if row.policy == results.incumbent}
    losses: dict[str, dict[Name, list[tuple[float, Figure]]]] = defaultdict(lambda: defaultdict(list))
    for row in rows:
        change = row.value - before.get((row.dimension, row.part, row.name), math.nan)
        loss = -change if row.better == "up" else change
        # A loss that rounds to nothing is not worth a row.
        if row.policy != results.incumbent and loss > 0 and signed_text(change, row.unit)[0] in "+-":
            losses[str(row.dimension)][row.name].append((-loss, row))
    for dimension in sorted({str(row.dimension) for row in rows}, key=BY_DIMENSIONS.index):
        texts = []
        for entries in losses[dimension].values():
            for _, row in sorted(entries, key=lambda entry: (entry[0], entry[1].part, entry[1].policy))[:_WORST]:
                was = before[row.dimension, row.part, row.name]
                values = [
                    value_text(was, row.unit),
                    value_text(row.value, row.unit),
                    signed_text(row.value - was, row.unit),
                ]
                texts.append([str(row.part), row.label, row.policy, *values, row.unit])
        heads = (dimension, "figure", "candidate", f"{results.incumbent} (incumbent)", "candidate's", "change", "unit")
        caption = f"By {dimension}: where a candidate loses most, at most {_WORST} for each figure, without verdicts"
        if texts:
            yield Fold(f"By {dimension}", [Table(heads, texts, f"parts-{dimension}", caption, texts=(0, 1, 2, 6))])
        else:
            yield Paragraph(f"By {dimension} no candidate loses on any of these figures.", "note")


# Moves.


def _compose_rejections(run: Run) -> Iterator[Block]:
    rejections = read_rejections(run.path, seeds=len(run.results.seeds))
    reasons = sorted({reason for counts in rejections.values() for reason in counts})
    if reasons:
        rows = [
            (policy, *(value_text(rejections.get(policy, {}).get(reason, 0.0), "decisions") for reason in reasons))
            for policy in run.results.policies
        ]
        caption = "Brokers that filters rejected, by reason, mean of all replicates"
        yield Fold("Brokers that filters rejected", [Table(("policy", *reasons), rows, "rejections", caption)])


def _compose_cycles(results: Results) -> Iterator[Block]:
    cycles = results.inputs.cycles
    if not cycles:
        return
    yield from [Bullets(idle)] if (idle := idle_shedders(results)) else []
    shedders: list[Block] = []
    for policy, sums in cycles.items():
        rows = [
            (words, f"{count:,}", number_text(sums.excess[reason]) if reason in sums.excess else NOTHING)
            for reason, words, count in sums.rank_reasons()
        ]
        caption = f"Cycles of {policy} after the warm-up, by the reason with which they ended"
        table = Table(("reason", "cycles", "largest excess"), rows, f"cycles-{policy}", caption)
        shedders += [Paragraph(f"{policy}: {cycles_sentence(sums)}"), table]
    yield Fold("What shedders did in each cycle", shedders)


def cycles_sentence(cycles: CycleSums) -> str:
    """Count the cycles, unloads and refusals of a policy's shedder."""
    refused = ", ".join(f"{reason} {count:,}" for reason, count in cycles.refused.items())
    return (
        f"the shedder `{cycles.shedder}` ran {quantity(cycles.cycles, 'cycle')}, with "
        f"{quantity(cycles.accepted, 'unload')} accepted and {sum(cycles.refused.values()):,} proposals refused"
        f"{f' ({refused})' if refused else ''}."
    )


def idle_shedders(results: Results) -> list[str]:
    """Write a line for each policy whose shedder ran and unloaded nothing."""
    idle = {policy: cycles.idleness for policy, cycles in results.inputs.cycles.items()}
    return [f"{policy}: {text}" for policy, text in idle.items() if text is not None]


# How sure it is.


def _compose_certainty(results: Results) -> Iterator[Block]:
    notes = sentences.cautions(results)
    first = [text for text in (sentences.luck_sentence(results), sentences.conclusion(results)) if text is not None]
    yield Bullets([*first, *notes[:_CAUTIONS]])
    if len(notes) > _CAUTIONS:
        yield Fold(quantity(len(notes) - _CAUTIONS, "more note"), [Bullets(notes[_CAUTIONS:])])
    open_ = sentences.undecided_figures(results)
    if open_:
        yield Fold("Undecided primary figures", [Bullets(open_)])
    counts = list(sentences.comparison_counts(results))
    if counts:
        yield Fold("How many comparisons were made", [Bullets(counts)])
    judged = dict.fromkeys(_choose_representative(results, policy) for policy in results.candidates)
    if judged:
        yield Fold("All verdicts with reasons", [_build_verdict_table(results, policy) for policy in judged])
    yield Fold("The replayed incumbent beside the log", list(_compose_fidelity(results)))


def _build_verdict_table(results: Results, policy: str) -> Table:
    rows = []
    for row in (row for row in results.verdicts if row.policy == policy):
        condition = sentences.condition_of(row)
        rows.append(
            [
                f"{row.label}{' *' if row.primary else ''}",
                f"{mark_of(row)} {sentences.word_of(row)}{f', {condition}' if condition else ''}",
                NOTHING if math.isnan(row.change) else f"{signed_text(row.change, row.unit)} {row.unit}",
                interval_text(row.change_low, row.change_high, row.unit),
                f"±{number_text(row.margin)}",
                row.reason or "",
            ]
        )
    heads = ("figure", "verdict", "change", "95 % interval", "margin", "reason")
    return Table(heads, rows, f"verdicts-{policy}", f"Verdicts on {policy}", texts=(0, 1, 5))


def _compose_fidelity(results: Results) -> Iterator[Block]:
    rows: list[list[str]] = []
    # Most figures without a gap share one reason, which is written once.
    unknown: dict[str, list[str]] = {}
    for row in (row for row in results.pooled.values() if row.policy == results.incumbent):
        if row.no_gap is not None:
            unknown.setdefault(row.no_gap, []).append(row.label)
        elif not math.isnan(row.gap):
            logged, replayed, gap = (value_text(value, row.unit) for value in (row.logged, row.value, row.gap))
            rows.append([row.label, logged, replayed, interval_text(row.replay_low, row.replay_high, row.unit), gap])
    yield Paragraph(
        "Another replicate would lie in the range, with 95 % for all figures together. The gap is the distance of the "
        "logged figure from that range. A change that is not larger than the gap stays open."
    )
    if rows:
        heads = ("figure", "logged", "replayed", "range", "gap")
        yield Table(heads, rows, "fidelity-table", "The incumbent as logged and as replayed")
    if unknown:
        yield Bullets([f"no gap for {', '.join(labels)}: {reason}" for reason, labels in unknown.items()])


# How it was made.


def _compose_setup(results: Results) -> Iterator[Block]:
    evaluation = results.evaluation
    load = "as the replay itself placed it" if evaluation.load == "simulated" else "as brokers reported it"
    yield Bullets(
        [
            f"Incumbent: `{evaluation.incumbent}`, replayed like the candidates.",
            f"Load: {load}. Ticks of {evaluation.tick_s} s, balance in cells of {evaluation.balance_s} s.",
            f"Warm-up, replayed but not scored: {evaluation.warmup_s} s."
            + ("" if evaluation.scored_from is None else f" Scored from {evaluation.scored_from.isoformat()} on."),
            f"{quantity(len(results.seeds), 'replicate')}, seeds {', '.join(map(str, results.seeds))}.",
        ]
    )
    rows = []
    for name in (each.name for each in fields(results.inputs)):
        value, words = getattr(results.inputs, name), _INPUTS.get(name, name)
        if words is not None and value not in (None, {}, ()):
            rows.append(
                (words, f"{moment_at(value):%Y-%m-%d %H:%M:%S} UTC" if name.endswith("_us") else _format_fact(value))
            )
    if rows:
        yield Fold("What was read", [Table(("input", "value"), rows, "input-table", "What was read", texts=(0, 1))])
    yield Fold("What figures and words mean", [Definitions(sentences.definitions(results))])


def _compose_manifest(run: Run) -> Iterator[Block]:
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
    versions = Table(("of", "version"), sorted(manifest["versions"].items()), "version-table", "Versions", texts=(0, 1))
    yield Fold("Files and versions", [Table(heads, files, "source-table", caption, texts=(0, 1, 4)), versions])
    settings = manifest["settings"]["topology"]
    rows = [
        (level, number_text(float(ms)), number_text(float(settings["price_per_gb"].get(level, 0.0))))
        for level, ms in settings["distance_ms"].items()
    ]
    rows += [
        (f"{edge['a']} to {edge['b']}", number_text(float(edge["ms"])), number_text(float(edge["price_per_gb"])))
        for edge in settings["edges"]
    ]
    distances = Table(
        ("between", "ms", "price of a GB"), rows, "distance-table", "Distances by the first level that differs"
    )
    yield Fold("Distances", [distances])
    yield Paragraph(f"Made by `{' '.join(manifest['command'])}`.")


def _format_fact(value: object) -> str:
    if isinstance(value, int):
        return f"{value:,}"
    if isinstance(value, float):
        return number_text(value)
    if isinstance(value, Mapping):
        return ", ".join(f"{name} {_format_fact(entry)}" for name, entry in value.items())
    if isinstance(value, Sequence) and not isinstance(value, str):
        return ", ".join(map(_format_fact, value))
    return NOTHING if value is None else str(value)
