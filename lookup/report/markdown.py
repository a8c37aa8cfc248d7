"""Write `report.md`: the evaluation for people who did not run it, in Markdown that is readable as plain text too."""

from __future__ import annotations

import re
import textwrap
from collections.abc import Iterable, Iterator

from lookup.model.quoting import printed_line, quantity
from lookup.report import document, wording
from lookup.report.blocks import Block, Bullets, Card, Cards, Fold, Heading, Paragraph, Table
from lookup.report.cards import facet_text, sentences
from lookup.report.caveats import caveats, what_cannot_act
from lookup.report.comparison import NOTHING, Scope, apart, parts
from lookup.score.scoring import Scored

__all__ = ["markdown", "markdown_report"]

#: What an address begins with, before the character without which it is none.
_ADDRESS = re.compile(r"(https?|ftp)(?=://)|www(?=\.)", re.IGNORECASE)
#: Parts of the demand shown in the report; the others are in `summary.json` and `metrics.parquet`.
_SHOWN_PARTS = 12
#: Candidates in the first paragraph, the best first.
_MOST_TOLD = 5
#: Characters of a line of a paragraph that is wrapped.
_WIDTH = 111


def markdown_report(scored: Scored) -> str:
    """Write the whole report."""
    return markdown([*_outcome(scored), *_comparison(scored), *_verdicts(scored), *_details(scored)])


def _outcome(scored: Scored) -> Iterator[Block]:
    yield Heading("Placement policies compared", 1)
    yield from map(Paragraph, what_cannot_act(scored))
    if scored.candidates:
        told = sentences(scored)
        more = [f"{quantity(len(told) - _MOST_TOLD, 'more candidate')} below."] if len(told) > _MOST_TOLD else []
        # Short enough for a comment on a pull request.
        yield Paragraph(" ".join([wording.conclusion(scored), *told[:_MOST_TOLD], *more]))
    yield from document.answer(scored)
    yield from document.decision(scored)
    counted = [*wording.outcomes(scored), *wording.comparisons(scored)]
    if counted:
        yield Fold(document.ABOUT_COUNTS, [Bullets(counted)])
    warnings = caveats(scored)
    if warnings:
        yield from (Heading("Before you trust it"), Bullets(warnings))
    yield from (Heading("What was evaluated"), document.setup(scored))
    read = document.input_table(scored)
    if read.rows:
        yield from (Heading("Inputs"), read)


def _comparison(scored: Scored) -> Iterator[Block]:
    table = document.figure_table(scored)
    yield from (Heading("Comparison"), Paragraph("Pooled over all clusters."), table)
    yield from (Paragraph(f"Marks {wording.legend()}."), Paragraph("95 % intervals:"))
    policies = (scored.incumbent, *scored.candidates)
    intervals = [[row[0].text, *(cell.detail or NOTHING for cell in row[2 : 2 + len(policies)])] for row in table.cells]
    known = [row for row in intervals if set(row[1:]) != {NOTHING}]
    yield Table(("metric", *policies), known)
    best = wording.at_best(scored)
    if best is not None:
        yield Paragraph(best)


def _verdicts(scored: Scored) -> Iterator[Block]:
    if scored.verdicts:
        yield from (Heading("Verdicts"), document.ABOUT_VERDICTS, Bullets(wording.meanings()))
        for policy, head in apart(scored).items():
            yield from (Heading(head, 3), document.verdict_table(scored, policy))


def _details(scored: Scored) -> Iterator[Block]:
    yield from (Heading("Fidelity"), *document.fidelity(scored))
    if scored.inputs.cycles:
        yield from (Heading("Why bundles moved, or did not"), document.ABOUT_CYCLES)
    for policy, cycles in scored.inputs.cycles.items():
        yield from (Heading(policy, 3), Paragraph(document.cycles_in_words(cycles)))
        yield document.cycle_table(policy, cycles)
    if len(scored.clusters) > 1:
        yield Heading("By cluster")
        for cluster in scored.clusters:
            yield from (Heading(cluster, 3), document.figure_table(scored, Scope(cluster)))
    by_part = parts(scored)
    if by_part:
        yield from (Heading("By part of the demand"), Paragraph(document.ABOUT_PARTS))
    for by in by_part[:_SHOWN_PARTS]:
        name = ", ".join(f"{dimension} {value}" for dimension, value in by)
        yield from (Heading(name, 3), document.figure_table(scored, Scope(by=by)))
    if len(by_part) > _SHOWN_PARTS:
        more = f"{len(by_part) - _SHOWN_PARTS} more parts are in `summary.json` and `metrics.parquet`."
        yield Paragraph(more)


def markdown(blocks: Iterable[Block]) -> str:
    """Write blocks as Markdown, all but charts."""
    return "\n\n".join(text for block in blocks for text in _texts(block)) + "\n"


def _texts(block: Block) -> Iterator[str]:
    match block:
        case Heading(text, level):
            yield f"{'#' * level} {_escaped(text)}"
        case Paragraph(text):
            text = _escaped(text)
            yield textwrap.fill(text, _WIDTH) if block.is_wrapped else text
        case Bullets(items):
            yield "\n".join(f"* {_escaped(item)}" for item in items)
        case Cards(items):
            yield "\n".join(line for card in items for line in _card_lines(card))
        case Fold(title, inner):
            yield f"{title}:"
            for each in inner:
                yield from _texts(each)
        case Table():
            yield "\n".join(_table_lines(block))


def _card_lines(card: Card) -> Iterator[str]:
    yield f"* **{_escaped(card.title)}**{f' ({_escaped(card.note)})' if card.note else ''}: {_escaped(card.sentence)}"
    for word, facets in (("gain", card.gains), ("cost", card.costs)):
        if facets:
            yield f"  * {word}: {_escaped('; '.join(map(facet_text, facets)))}"
    yield f"  * how sure: {_escaped(card.certainty)}"
    yield f"  * next: {_escaped(card.step)}{f': `{_escaped(card.command)}`' if card.command else ''}"


def _table_lines(table: Table) -> Iterator[str]:
    texts = [table.columns, *([cell.text for cell in row] for row in table.cells)]
    # A bar would end the cell, a star would begin emphasis.
    rows = [[_escaped(text).replace("|", "\\|").replace("*", "\\*") for text in row] for row in texts]
    widths = [max(3, *map(len, column)) for column in zip(*rows, strict=True)]
    for number, row in enumerate(rows):
        yield "| " + " | ".join(text.ljust(width) for text, width in zip(row, widths, strict=True)) + " |"
        if number == 0:
            yield "|" + "|".join("-" * (width + 2) for width in widths) + "|"


def _escaped(text: str) -> str:
    """Return a text in which names out of settings and logs make no tag, no link and no line of their own."""
    text = printed_line(text).replace("<", "&lt;").replace("](", "]\\(")
    # GitHub makes a link of an address alone.
    return _ADDRESS.sub(r"\g<0>\\", text)
