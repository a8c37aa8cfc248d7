"""Contents of a report as plain data, with sentences, lists, tables and charts in the order of reading."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal, TypeAlias

__all__ = [
    "Block", "Bullets", "Card", "Cards", "Cell", "Chart", "Choice", "Definitions", "Facet", "Fold", "Heading", "Matrix",
    "Paragraph", "Section", "Table", "charts_of",
]  # fmt: skip


@dataclass(frozen=True, slots=True)
class Heading:
    """The title of the following blocks, for a form without sections."""

    text: str
    #: 1 for that of the whole
    level: int = 2


@dataclass(frozen=True, slots=True)
class Paragraph:
    """A paragraph of sentences. Names between backticks are set as code."""

    text: str
    #: "lead" for the most important sentence, "note" for a qualifying one
    role: Literal["text", "lead", "note"] = "text"
    #: whether a text breaks it into lines. A paragraph with names from logs is not broken
    is_wrapped: bool = False


@dataclass(frozen=True, slots=True)
class Bullets:
    """A list of sentences."""

    items: Sequence[str]
    #: "named" for sentences that begin with the name of a policy and a colon
    role: Literal["list", "named"] = "list"


@dataclass(frozen=True, slots=True)
class Definitions:
    """Terms with their definitions."""

    items: Sequence[tuple[str, str]]


@dataclass(frozen=True, slots=True)
class Facet:
    """One figure of a candidate next to the incumbent's, in few digits."""

    #: in words, and as settings have it: "same-rack share", "match_ratio[rack]"
    words: str
    name: str
    before: str
    after: str
    change: str
    #: interval of the difference
    span: str
    #: of the verdict
    word: str


@dataclass(frozen=True, slots=True)
class Card:
    """The answer for one candidate, or for several that decide alike."""

    title: str
    sentence: str
    #: head, figures, and a text if there are none. A row without both is left out
    rows: Sequence[tuple[str, Sequence[Facet], str]]
    certainty: str
    #: the next step, and its command, empty if there is none
    step: str
    command: str
    #: class of the style sheet: "better", "worse" or "inconclusive"
    style: str


@dataclass(frozen=True, slots=True)
class Cards:
    """Answers, the best first."""

    items: Sequence[Card]


@dataclass(frozen=True, slots=True)
class Cell:
    """One cell of a table."""

    text: str
    #: a second line, an interval
    detail: str = ""
    #: class of the style sheet, a verdict's word
    style: str = ""


@dataclass(frozen=True, slots=True)
class Table:
    """Rows of texts under heads. The first cell of a row names it."""

    columns: Sequence[str]
    rows: Sequence[Sequence[str | Cell]]
    #: for a page
    id: str = ""
    caption: str = ""
    #: numbers of the columns with text. The others are figures
    texts: Sequence[int] = (0,)

    @property
    def cells(self) -> list[list[Cell]]:
        """The cells of all rows."""
        return [[cell if isinstance(cell, Cell) else Cell(cell) for cell in row] for row in self.rows]


@dataclass(frozen=True, slots=True)
class Chart:
    """A Vega-Lite specification, its data in columns, the text in its place, and its numbers as a table."""

    id: str
    title: str
    description: str
    #: without data. "@name" is a colour of the page's theme
    spec: Mapping[str, Any]
    fields: Sequence[str]
    rows: Sequence[Sequence[Any]]
    table: Table | None = None
    #: screens on which it is shown. A "narrow" one replaces the previous chart
    screen: Literal["every", "wide", "narrow"] = "every"

    @property
    def data(self) -> dict[str, Any]:
        """The data from which the page's script draws it."""
        return {"id": self.id, "spec": self.spec, "fields": self.fields, "rows": self.rows}


@dataclass(frozen=True, slots=True)
class Matrix:
    """A chart of one matrix per cluster and policy, of which the incumbent's and one candidate's are shown."""

    id: str
    title: str
    description: str
    #: draws rows with the fields policy, y, x, x2, value and life
    spec: Mapping[str, Any]
    #: by cluster, the names of the rows, and of the columns or their times in ms
    rows: Mapping[str, Sequence[str]]
    columns: Mapping[str, Sequence[str] | Sequence[int]]
    #: by cluster and policy, whole numbers, None for no value
    values: Mapping[str, Mapping[str, Sequence[Sequence[int | None]]]]
    #: meaning of a row, and of a value
    row_name: str
    value_name: str
    #: a value of the matrix / this is the figure
    scale: int = 1
    #: width of a column in ms, by cluster, empty if columns are not times
    widths: Mapping[str, int] = field(default_factory=dict)
    #: by cluster, row numbers and times in ms of lost objects. If any, rows that begin late or end early are marked
    losses: Mapping[str, Sequence[tuple[int, int]]] = field(default_factory=dict)

    @property
    def data(self) -> dict[str, Any]:
        """The data from which the page's script draws it."""
        names = "id spec rows columns values scale widths row_name value_name losses".split()
        return {name: getattr(self, name) for name in names} | {"has_lives": bool(self.losses)}


@dataclass(frozen=True, slots=True)
class Choice:
    """Tables of the same kind, of which a page shows the reader's choice."""

    #: the dimension with one table for each value, "cluster"
    of: str
    tables: Sequence[tuple[str, Table]]


@dataclass(frozen=True, slots=True)
class Fold:
    """Blocks that are shown when asked for."""

    title: str
    blocks: Sequence[Block]


Block: TypeAlias = Heading | Paragraph | Bullets | Cards | Definitions | Table | Choice | Chart | Matrix | Fold


@dataclass(frozen=True, slots=True)
class Section:
    """A headed part of the page."""

    id: str
    title: str
    blocks: Sequence[Block]


def charts_of(sections: Iterable[Section | Fold]) -> Iterator[Chart | Matrix]:
    """Yield charts and matrices in the order of reading."""
    for section in sections:
        for block in section.blocks:
            if isinstance(block, Fold):
                yield from charts_of([block])
            elif isinstance(block, Chart | Matrix):
                yield block
