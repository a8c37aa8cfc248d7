"""Write `report.md`: the evaluation for people who did not run it, in Markdown that is readable as plain text too."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence

from lookup.model.time import moment_at
from lookup.report.comparison import (
    MARKS,
    NOTHING,
    Line,
    Scope,
    interval_text,
    label,
    lines,
    mark_of,
    number_text,
    parts,
    policies_in_order,
    signed_text,
    value_text,
)
from lookup.report.wording import ABOUT_CYCLES, MEANINGS, caveats, comparisons, conclusion, cycles_of, legend, outcomes
from lookup.score.scoring import Scored

__all__ = ["markdown_report"]

#: Parts of the demand shown in the report; the others are in `summary.json` and `metrics.parquet`.
_SHOWN_PARTS = 12
#: Words for well-known inputs; others stand under their own names.
_INPUTS: Mapping[str, str] = {
    "rows": "rows of the log",
    "lookups": "lookups replayed",
    "redirects": "redirects (hops, no demand)",
    "internal": "lookups of the load manager's own topics (no demand)",
    "quarantined": "records in quarantine",
    "first_us": "first lookup",
    "last_us": "last lookup",
    "induced_ratio": "share of lookups induced by logged losses",
    "ignored_unloads": "logged unloads that were not an administrator's (ignored)",
    "late_splits": "logged splits that waited for a bundle in flight",
    "refused_unloads": "administrators' unloads of bundles in flight (left out)",
    "capacity": "capacity of brokers",
    "imbalance_floor": "imbalance_max_mean of a per-lookup round-robin (floor)",
    "decisions": "decisions taken",
    "failures": "failures that on_error let pass",
    "first_failure": "the first of them",
}
#: Inputs that have a section of their own, or are in `summary.json` only.
_SHOWN_ELSEWHERE = frozenset({"cycles", "findings", "load", "ownership"})


def markdown_report(scored: Scored) -> str:
    """Write the whole report."""
    sections = (
        _head(scored),
        _setting(scored),
        _comparison(scored),
        _verdicts(scored),
        _fidelity(scored),
        _cycles(scored),
        _breakdown(scored),
    )
    return "\n\n".join("\n".join(section) for section in map(list, sections) if section) + "\n"


def _head(scored: Scored) -> Iterator[str]:
    yield from ("# Comparison of placement policies", "", conclusion(scored), "")
    yield from _bullets([*outcomes(scored), *comparisons(scored)])
    warnings = caveats(scored)
    if warnings:
        yield from ("", "## Before you trust it", "", *_bullets(warnings))


def _setting(scored: Scored) -> Iterator[str]:
    """Describe how the log was replayed and what was in it."""
    evaluation = scored.plan.evaluation
    load = "what the replay itself placed" if evaluation.load == "simulated" else "what brokers reported"
    candidates = ", ".join(f"`{name}`" for name in policies_in_order(scored)[1:]) or "none"
    yield from ("## What was evaluated", "")
    yield from _bullets(
        [
            f"incumbent: `{evaluation.incumbent}`, replayed like the others",
            f"candidates: {candidates}",
            f"ownership: {evaluation.ownership}; load seen by the policies: {load}",
            f"ticks of {evaluation.tick_s} s; balance in cells of {evaluation.balance_s} s",
            f"warm-up, simulated but not scored: {evaluation.warmup_s} s",
            f"replicates: {len(evaluation.seeds)}, seeds {', '.join(map(str, evaluation.seeds))}",
            *([f"hand-overs: {evaluation.handover_s:g} s in each state"] if evaluation.handover_s else []),
        ]
    )
    if not scored.inputs:
        return
    rows = []
    for name, value in scored.inputs.items():
        if name in _SHOWN_ELSEWHERE or value in (None, {}):
            continue
        text = _text(value)
        if name.endswith("_us") and isinstance(value, int):
            text = f"{moment_at(value):%Y-%m-%d %H:%M:%S} UTC"
        rows.append((_INPUTS.get(name, name), text))
    yield from ("", "## Inputs", "", *_table(("input", "value"), rows))


def _comparison(scored: Scored) -> Iterator[str]:
    yield from ("## Comparison", "", "Pooled over all clusters.", "")
    yield from _figures(scored, Scope())
    yield from ("", f"Marks {legend()}.", "", "95 % intervals:", "")
    rows = [(_name(line), *(cell.interval for cell in line.cells)) for line in lines(scored)]
    policies = policies_in_order(scored)
    yield from _table(("metric", *policies), [row for row in rows if set(row[1:]) != {NOTHING}])


def _verdicts(scored: Scored) -> Iterator[str]:
    if not scored.verdicts:
        return
    yield from ("## Verdicts", "")
    yield "Differences are candidate against incumbent, turned so that up is better, with 95 % intervals over"
    yield "replicates, bundles or blocks of time, and events, the same for both. The margin is what counts as no"
    yield "difference. What is better or worse for this placement only has an open mark, △ or ▽: another draw of luck"
    yield "may turn it."
    yield ""
    yield from _bullets(f"{MARKS[word]} **{word}**: {meaning}" for word, meaning in MEANINGS.items())
    units = {metric.name: metric.unit for metric in scored.metrics}
    for policy in policies_in_order(scored)[1:]:
        yield from ("", f"### {policy}", "")
        rows = []
        for verdict in (verdict for verdict in scored.verdicts if verdict.policy == policy):
            unit = units.get(verdict.metric, "")
            scope = ", for this placement" if verdict.holds_for == "placement" else ""
            rows.append(
                (
                    f"{label(verdict.metric, verdict.key)}{' *' if verdict.primary else ''}",
                    f"{mark_of(verdict)} {verdict.verdict}{scope}",
                    f"{signed_text(verdict.delta, unit)} {unit}",
                    interval_text(verdict.low, verdict.high, unit),
                    f"±{number_text(verdict.margin)}",
                    verdict.reason or "",
                )
            )
        yield from _table(("metric", "verdict", "difference", "95 % interval", "margin", "reason"), rows)


def _fidelity(scored: Scored) -> Iterator[str]:
    yield from ("## Fidelity", "")
    yield "The incumbent as replayed, beside the brokers the log says were answered. The range is that of one more"
    yield "replicate, for all figures together with 95 %; the gap is how far the logged figure lies outside of it. A"
    yield "difference between policies that is not above the gap is inconclusive: it may be the replay's own."
    yield ""
    units = {metric.name: metric.unit for metric in scored.metrics}
    rows = []
    unknown: dict[str, list[str]] = {}
    for figure in scored.fidelity:
        name, unit = label(figure.metric, figure.key), units[figure.metric]
        if figure.reason is not None:
            # Most unknown figures share one reason, that of the log; each reason is written once.
            unknown.setdefault(figure.reason, []).append(name)
            continue
        values = (value_text(value, unit) for value in (figure.logged, figure.resimulated))
        rows.append((name, *values, interval_text(figure.low, figure.high, unit), value_text(figure.gap, unit)))
    if rows:
        yield from (*_table(("metric", "logged", "replayed", "range", "gap"), rows), "")
    yield from _bullets(f"no gap for {', '.join(names)}: {reason}" for reason, names in unknown.items())


def _cycles(scored: Scored) -> Iterator[str]:
    policies = cycles_of(scored.inputs)
    if policies:
        yield from ("## Why bundles moved, or did not", "", *ABOUT_CYCLES)
    for policy, cycles in policies.items():
        yield from ("", f"### {policy}", "", cycles.summary, "")
        yield from _table(("reason", "cycles", "largest excess"), cycles.rows)


def _breakdown(scored: Scored) -> Iterator[str]:
    """Write the figures of each cluster, if there are several, and of each part of the demand."""
    has_clusters, by_part = len(scored.clusters) > 1, parts(scored)
    if has_clusters:
        yield "## By cluster"
        for cluster in scored.clusters:
            yield from ("", f"### {cluster}", "", *_figures(scored, Scope(cluster)))
    if not by_part:
        return
    if has_clusters:
        yield ""
    yield from ("## By part of the demand", "")
    yield "No verdicts are given for parts: many comparisons find chance differences."
    for by in by_part[:_SHOWN_PARTS]:
        name = ", ".join(f"{dimension} {value}" for dimension, value in by)
        yield from ("", f"### {name}", "", *_figures(scored, Scope(by=by)))
    if len(by_part) > _SHOWN_PARTS:
        yield from ("", f"{len(by_part) - _SHOWN_PARTS} more parts are in `summary.json` and `metrics.parquet`.")


def _figures(scored: Scored, scope: Scope) -> Iterator[str]:
    policies = policies_in_order(scored)
    head = ("metric", "unit", f"{policies[0]} (incumbent)", *policies[1:])
    rows = [
        (_name(line), line.unit, *(f"{cell.value} {cell.mark}".strip() for cell in line.cells))
        for line in lines(scored, scope)
    ]
    return _table(head, rows)


def _name(line: Line) -> str:
    return f"{line.arrow} {line.label}{' *' if line.primary else ''}".strip()


def _table(head: Sequence[str], rows: Sequence[Sequence[str]]) -> Iterator[str]:
    """Write a Markdown table whose columns are aligned in plain text as well."""
    # A bar would end the cell, a star would begin emphasis.
    cells = [[cell.replace("|", "\\|").replace("*", "\\*") for cell in row] for row in (head, *rows)]
    widths = [max(3, *map(len, column)) for column in zip(*cells, strict=True)]
    for number, row in enumerate(cells):
        yield "| " + " | ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)) + " |"
        if number == 0:
            yield "|" + "|".join("-" * (width + 2) for width in widths) + "|"


def _bullets(texts: Iterable[str]) -> Iterator[str]:
    return (f"* {text}" for text in texts)


def _text(value: object) -> str:
    # bool comes first: it is an int as well
    if isinstance(value, bool) or value is None:
        return {True: "yes", False: "no", None: NOTHING}[value]
    if isinstance(value, int):
        return f"{value:,}"
    if isinstance(value, float):
        return number_text(value)
    if isinstance(value, Mapping):
        return ", ".join(f"{name} {_text(entry)}" for name, entry in value.items()) or NOTHING
    if isinstance(value, Sequence) and not isinstance(value, str):
        return ", ".join(map(_text, value)) or NOTHING
    return str(value)
