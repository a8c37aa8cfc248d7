"""Write `report.md`: the evaluation for people who did not run it, in Markdown that is readable as plain text too."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence

from lookup.model.quoting import printed_line
from lookup.report.answer import answers, question
from lookup.report.comparison import (
    FIDELITY_HEADS,
    NOTHING,
    VERDICT_HEADS,
    Scope,
    fidelity_rows,
    lines,
    parts,
    policies_in_order,
    verdict_rows,
)
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
    input_rows,
    legend,
    meanings,
    outcomes,
    setup,
    undecided_figures,
    winners_luck,
)
from lookup.score.scoring import Scored

__all__ = ["escaped", "markdown_report", "markdown_table"]

#: What an address begins with, before the character without which it is none.
_ADDRESS = re.compile(r"(https?|ftp)(?=://)|www(?=\.)", re.IGNORECASE)
#: Parts of the demand shown in the report; the others are in `summary.json` and `metrics.parquet`.
_SHOWN_PARTS = 12


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
    yield from ("# Comparison of placement policies", "")
    asked = question(scored)
    if asked is not None:
        yield from (escaped(asked), "", *_bullets(answers(scored)), "")
    yield escaped(conclusion(scored))
    luck = winners_luck(scored)
    if luck is not None:
        yield from ("", escaped(luck))
    open_ = undecided_figures(scored)
    if open_:
        yield from ("", f"{ABOUT_UNDECIDED}:", "", *_bullets(open_))
    counted = [*outcomes(scored), *comparisons(scored)]
    if counted:
        yield from ("", f"{ABOUT_COUNTS}:", "", *_bullets(counted))
    warnings = caveats(scored)
    if warnings:
        yield from ("", "## Before you trust it", "", *_bullets(warnings))


def _setting(scored: Scored) -> Iterator[str]:
    """Describe how the log was replayed and what was in it."""
    yield from ("## What was evaluated", "", *_bullets(setup(scored)))
    rows = input_rows(scored)
    if rows:
        yield from ("", "## Inputs", "", *markdown_table(("input", "value"), rows))


def _comparison(scored: Scored) -> Iterator[str]:
    yield from ("## Comparison", "", "Pooled over all clusters.", "")
    yield from _figures(scored, Scope())
    yield from ("", f"Marks {legend()}.", "", "95 % intervals:", "")
    rows = [(line.name, *(cell.interval for cell in line.cells)) for line in lines(scored)]
    policies = policies_in_order(scored)
    yield from markdown_table(("metric", *policies), [row for row in rows if set(row[1:]) != {NOTHING}])


def _verdicts(scored: Scored) -> Iterator[str]:
    if not scored.verdicts:
        return
    yield from ("## Verdicts", "")
    yield from ABOUT_VERDICTS
    yield ""
    yield from _bullets(meanings())
    for policy in policies_in_order(scored)[1:]:
        yield from ("", f"### {escaped(policy)}", "")
        yield from markdown_table(VERDICT_HEADS, verdict_rows(scored, policy))


def _fidelity(scored: Scored) -> Iterator[str]:
    yield from ("## Fidelity", "")
    yield from ABOUT_FIDELITY
    yield ""
    rows, unknown = fidelity_rows(scored)
    if rows:
        yield from (*markdown_table(FIDELITY_HEADS, rows), "")
    yield from _bullets(f"no gap for {', '.join(names)}: {reason}" for reason, names in unknown.items())


def _cycles(scored: Scored) -> Iterator[str]:
    policies = cycles_of(scored.inputs)
    if policies:
        yield from ("## Why bundles moved, or did not", "", *ABOUT_CYCLES)
    for policy, cycles in policies.items():
        yield from ("", f"### {escaped(policy)}", "", escaped(cycles.summary), "")
        yield from markdown_table(("reason", "cycles", "largest excess"), cycles.rows)


def _breakdown(scored: Scored) -> Iterator[str]:
    """Write the figures of each cluster, if there are several, and of each part of the demand."""
    has_clusters, by_part = len(scored.clusters) > 1, parts(scored)
    if has_clusters:
        yield "## By cluster"
        for cluster in scored.clusters:
            yield from ("", f"### {escaped(cluster)}", "", *_figures(scored, Scope(cluster)))
    if not by_part:
        return
    if has_clusters:
        yield ""
    yield from ("## By part of the demand", "")
    yield ABOUT_PARTS
    for by in by_part[:_SHOWN_PARTS]:
        name = ", ".join(f"{dimension} {value}" for dimension, value in by)
        yield from ("", f"### {escaped(name)}", "", *_figures(scored, Scope(by=by)))
    if len(by_part) > _SHOWN_PARTS:
        yield from ("", f"{len(by_part) - _SHOWN_PARTS} more parts are in `summary.json` and `metrics.parquet`.")


def _figures(scored: Scored, scope: Scope) -> Iterator[str]:
    policies = policies_in_order(scored)
    head = ("metric", "unit", f"{policies[0]} (incumbent)", *policies[1:])
    rows = [
        (line.name, line.unit, *(f"{cell.value} {cell.mark}".strip() for cell in line.cells))
        for line in lines(scored, scope)
    ]
    return markdown_table(head, rows)


def markdown_table(head: Sequence[str], rows: Sequence[Sequence[str]]) -> Iterator[str]:
    """Write a Markdown table whose columns are aligned in plain text as well."""
    # A bar would end the cell, a star would begin emphasis.
    cells = [[escaped(cell).replace("|", "\\|").replace("*", "\\*") for cell in row] for row in (head, *rows)]
    widths = [max(3, *map(len, column)) for column in zip(*cells, strict=True)]
    for number, row in enumerate(cells):
        yield "| " + " | ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)) + " |"
        if number == 0:
            yield "|" + "|".join("-" * (width + 2) for width in widths) + "|"


def _bullets(texts: Iterable[str]) -> Iterator[str]:
    return (f"* {escaped(text)}" for text in texts)


def escaped(text: str) -> str:
    """Return a text in which names out of settings and logs make no tag, no link and no line of their own."""
    text = printed_line(text).replace("<", "&lt;").replace("](", "]\\(")
    # GitHub makes a link of an address alone.
    return _ADDRESS.sub(r"\g<0>\\", text)
