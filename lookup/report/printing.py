"""Print a comparison: as tables on a terminal or in plain text, as JSON, or as Markdown."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Literal

from rich import box
from rich.console import Console
from rich.table import Table
from rich.text import Text

from lookup.model.quoting import printed_line
from lookup.report.caveats import caveats
from lookup.report.comparison import NOTHING, Line, lines
from lookup.report.document import floors, idle_shedders
from lookup.report.markdown import markdown_report
from lookup.report.wording import comparisons, conclusion, legend, opening, outcomes, undecided, winners_luck
from lookup.score.scoring import Scored
from lookup.score.summary import summary, to_json
from lookup.score.verdict import Verdict, Word

__all__ = ["Format", "comparison_tables", "print_report", "show"]

Format = Literal["table", "json", "markdown"]

_STYLES: Mapping[Word, str] = {
    "better": "green", "worse": "bold red", "equivalent": "dim", "identical": "dim", "inconclusive": "yellow",
}  # fmt: skip
#: Characters of the columns of names and units, and around a column of figures.
_NAMES, _AROUND = 38, 3
#: Width of files and pipes, which have none of their own and do not wrap.
_PLAIN_WIDTH = 240
#: Texts of a figure that is unknown or zero.
_IDLE = frozenset({NOTHING, "0", "0.0", "0.0000"})


def show(scored: Scored, form: Format, console: Console) -> None:
    """Print a comparison; JSON and Markdown go to the console's file as they are, without colours or wrapping."""
    if form == "table":
        print_report(scored, console)
        return
    console.file.write(to_json(summary(scored)) if form == "json" else markdown_report(scored))
    console.file.flush()


def print_report(scored: Scored, console: Console) -> None:
    """Print the comparison, the outcome for each candidate and the caveats."""
    if not console.is_terminal:
        # A console of the same kind on the same file, since `lookup` reports a closed pipe through its own kind.
        width = max(console.width, _PLAIN_WIDTH)
        console = type(console)(file=console.file, width=width, color_system=None, force_terminal=False)
    if undecided(scored) is not None or winners_luck(scored) is not None:
        console.print(_text(" ".join(opening(scored))), soft_wrap=not console.is_terminal)
    for table in comparison_tables(scored, console):
        console.print(table)
    texts = [legend()]
    idle = [line for line in lines(scored) if _is_idle(line)]
    unknown = [line.label for line in idle if all(figure.value == NOTHING for figure in line.figures)]
    zero = [line.label for line in idle if line.label not in unknown]
    if zero:
        texts.append(f"left out, 0 for every policy that has a figure: {', '.join(zero)}")
    if unknown:
        texts.append(f"left out, no figure for any policy: {', '.join(unknown)}")
    floor = floors(scored)
    if floor:
        texts.append(f"floor of imbalance_max_mean, what a per-lookup round-robin would score: {', '.join(floor)}")
    # The conclusion stands at the end, the part of a terminal that is read first; only notes on it follow.
    texts += [*outcomes(scored), *idle_shedders(scored), *comparisons(scored), conclusion(scored)]
    for text in [*texts, *(f"Note: {caveat}" for caveat in caveats(scored))]:
        console.print(_text(text), soft_wrap=not console.is_terminal)


def comparison_tables(scored: Scored, console: Console) -> Iterator[Table]:
    """Build the comparison, in several tables if it is too wide for one; each begins with the incumbent.

    Lines without any figure but zero are left out, unless they decide the exit code.
    """
    shown = [line for line in lines(scored) if not _is_idle(line)]
    heads = [f"{scored.incumbent} (incumbent)", *scored.candidates]
    for columns in _pages(shown, heads, console.width):
        table = Table(box=box.SIMPLE_HEAD if console.is_terminal else box.ASCII2, pad_edge=not console.is_terminal)
        table.add_column("metric", no_wrap=True)
        table.add_column("unit", no_wrap=True, style="dim")
        for column in columns:
            table.add_column(_text(heads[column]), justify="right", overflow="fold")
        for line in shown:
            figures = [line.figures[column] for column in columns]
            cells = [Text(f"{figure.value} {figure.mark}", _style(figure.verdict)) for figure in figures]
            table.add_row(_text(line.name), line.unit, *cells)
        yield table


def _text(text: str) -> Text:
    """Return a line for a console: names out of settings and logs may neither end it nor turn it round."""
    return Text(printed_line(text))


def _style(verdict: Verdict | None) -> str:
    if verdict is None:
        return ""
    # A verdict that holds here and now only is neither a success nor a failure.
    return _STYLES[verdict.verdict] if verdict.holds_for == "policy" else "yellow"


def _is_idle(line: Line) -> bool:
    return not line.primary and all(figure.value in _IDLE for figure in line.figures)


def _pages(shown: Sequence[Line], heads: Sequence[str], width: int) -> Iterator[list[int]]:
    """Divide the candidates into runs that fit beside the incumbent; at least one candidate each."""
    widths = [
        max([len(head), *(len(line.figures[column].value) + 2 for line in shown)]) + _AROUND
        for column, head in enumerate(heads)
    ]
    page, used = [0], _NAMES + widths[0]
    for column in range(1, len(heads)):
        if len(page) > 1 and used + widths[column] > width:
            yield page
            page, used = [0], _NAMES + widths[0]
        page.append(column)
        used += widths[column]
    yield page
