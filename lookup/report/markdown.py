"""Write a report as Markdown."""

from __future__ import annotations

import re
import textwrap
from collections.abc import Iterable, Iterator

from lookup.model.quoting import printed_line
from lookup.report.blocks import (
    Block,
    Bullets,
    Card,
    Cards,
    Choice,
    Definitions,
    Facet,
    Fold,
    Heading,
    Paragraph,
    Table,
)
from lookup.report.document import sections
from lookup.report.figures import Results

__all__ = ["markdown", "markdown_report"]

#: Beginnings of addresses, before the character that makes them addresses.
_ADDRESS = re.compile(r"(https?|ftp)(?=://)|www(?=\.)", re.IGNORECASE)
#: Characters of a line of a paragraph that is wrapped.
_WIDTH = 111


def markdown_report(results: Results) -> str:
    """Write the whole report."""
    blocks: list[Block] = [Heading("Placement policies compared", 1)]
    for section in sections(results):
        blocks += [Heading(section.title), *section.blocks] if section.id != "answer" else section.blocks
    return markdown(blocks)


def markdown(blocks: Iterable[Block]) -> str:
    """Write blocks as Markdown, all but charts."""
    return "\n\n".join(text for block in blocks for text in _iter_texts(block)) + "\n"


def _iter_texts(block: Block) -> Iterator[str]:  # noqa: C901  a case for each kind of block
    match block:
        case Heading(text, level):
            yield f"{'#' * level} {_escape(text)}"
        case Paragraph(text, role):
            head, colon, rest = _escape(text).partition(": ")
            text = f"**{head}{colon.strip()}** {rest}".strip() if role == "lead" else _escape(text)
            yield textwrap.fill(text, _WIDTH) if block.is_wrapped else text
        case Bullets(items):
            yield "\n".join(f"* {_escape(item)}" for item in items)
        case Definitions(items):
            yield from _iter_texts(Bullets([f"{word}: {text}" for word, text in items]))
        case Cards(items):
            yield "\n".join(line for card in items for line in _write_card(card))
        case Fold(title, inner):
            yield f"### {_escape(title)}"
            for each in inner:
                yield from _iter_texts(each)
        case Choice(of, tables):
            for name, table in tables:
                yield f"{_escape(f'{of} {name}')}:"
                yield from _iter_texts(table)
        case Table():
            yield "\n".join(_write_table(block))


def _write_card(card: Card) -> Iterator[str]:
    yield f"* **{_escape(card.title)}**: {_escape(card.sentence)}"
    for head, facets, nothing in card.rows:
        if facets or nothing:
            yield f"  * {head}: {_escape('; '.join(map(_write_facet, facets)) or nothing)}"
    yield f"  * How sure: {_escape(card.certainty)}"
    yield f"  * Next: {_escape(card.step)}{f' `{_escape(card.command)}`' if card.command else ''}"


def _write_facet(facet: Facet) -> str:
    return (
        f"{facet.words} (`{facet.name}`) {facet.before} → {facet.after} ({facet.change}, 95 % interval {facet.span}), "
        f"{facet.word}"
    )


def _write_table(table: Table) -> Iterator[str]:
    cells = [[f"{cell.text} {cell.detail}".strip() for cell in row] for row in table.cells]
    # A bar would end the cell, a star would begin emphasis.
    rows = [
        [_escape(text).replace("|", "\\|").replace("*", "\\*") for text in row] for row in (list(table.columns), *cells)
    ]
    widths = [max(3, *map(len, column)) for column in zip(*rows, strict=True)]
    for number, row in enumerate(rows):
        yield "| " + " | ".join(text.ljust(width) for text, width in zip(row, widths, strict=True)) + " |"
        if number == 0:
            yield "|" + "|".join("-" * (width + 2) for width in widths) + "|"


def _escape(text: str) -> str:
    """Write a text in which names out of settings and logs make no tag, no link and no line of their own."""
    text = printed_line(text).replace("<", "&lt;").replace("](", "]\\(")
    # GitHub makes a link of an address alone.
    return _ADDRESS.sub(r"\g<0>\\", text)
