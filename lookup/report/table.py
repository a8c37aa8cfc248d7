"""The comparison on a terminal: metrics down, policies across; colours where the terminal has them, else plain text."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from rich import box
from rich.console import Console
from rich.table import Table
from rich.text import Text

from lookup.report.comparison import Cell, Line, lines, policies_in_order
from lookup.report.cycles import idle_shedders
from lookup.report.numbers import NOTHING
from lookup.report.wording import caveats, comparisons, conclusion, floors, legend, outcomes
from lookup.score.scoring import Scored
from lookup.score.verdict import Verdict, Word

__all__ = ["comparison_tables", "print_report"]

_STYLES: Mapping[Word, str] = {"better": "green", "worse": "bold red", "equivalent": "dim", "inconclusive": "yellow"}
#: Characters of the columns of names and units, and around a column of figures.
_NAMES, _AROUND = 38, 3
#: Width where nobody can say one: files and pipes do not wrap.
_PLAIN_WIDTH = 240
#: What a figure that never happened looks like.
_IDLE = frozenset({NOTHING, "0", "0.0", "0.0000"})


def print_report(scored: Scored, console: Console) -> None:
    """Print the comparison, the outcome for each candidate and what to be careful about."""
    console = console if console.is_terminal else _plain(console)
    for table in comparison_tables(scored, console):
        console.print(table)
    for text in _texts(scored):
        console.print(Text(text), soft_wrap=not console.is_terminal)


def comparison_tables(scored: Scored, console: Console) -> Iterator[Table]:
    """Build the comparison, in several tables where it is too wide for one; each begins with the incumbent.

    Lines without any figure but zero are left out, unless they decide the exit code.
    """
    figures, policies = [line for line in lines(scored) if not _is_idle(line)], policies_in_order(scored)
    for shown in _pages(figures, policies, console.width):
        yield _table(figures, _heads(policies), shown, console)


def _texts(scored: Scored) -> Iterator[str]:
    yield legend()
    idle = [line.label for line in lines(scored) if _is_idle(line)]
    if idle:
        yield f"left out, no figure or 0 for every policy: {', '.join(idle)}"
    floor = floors(scored)
    if floor:
        yield f"floor of imbalance_max_mean, what a per-lookup round-robin would score: {', '.join(floor)}"
    yield from outcomes(scored)
    yield from idle_shedders(scored.inputs)
    yield from comparisons(scored)
    yield conclusion(scored)
    yield from (f"Note: {text}" for text in caveats(scored))


def _is_idle(line: Line) -> bool:
    return not line.primary and all(cell.value in _IDLE for cell in line.cells)


def _plain(console: Console) -> Console:
    """Return a console of the same kind and on the same file that is wide and writes nothing but text."""
    width = max(console.width, _PLAIN_WIDTH)
    return type(console)(file=console.file, width=width, color_system=None, force_terminal=False)


def _pages(figures: Sequence[Line], policies: Sequence[str], width: int) -> Iterator[list[int]]:
    """Divide the candidates into runs that fit beside the incumbent; at least one candidate each."""
    heads = _heads(policies)
    widths = [
        max([len(heads[place]), *(len(line.cells[place].value) + 2 for line in figures)]) + _AROUND
        for place in range(len(policies))
    ]
    page, used = [0], _NAMES + widths[0]
    for place in range(1, len(policies)):
        if len(page) > 1 and used + widths[place] > width:
            yield page
            page, used = [0], _NAMES + widths[0]
        page.append(place)
        used += widths[place]
    yield page


def _heads(policies: Sequence[str]) -> list[str]:
    return [f"{policies[0]} (incumbent)", *policies[1:]]


def _table(figures: Sequence[Line], heads: Sequence[str], shown: Sequence[int], console: Console) -> Table:
    table = Table(box=box.SIMPLE_HEAD if console.is_terminal else box.ASCII2, pad_edge=not console.is_terminal)
    table.add_column("metric", no_wrap=True)
    table.add_column("unit", no_wrap=True, style="dim")
    for place in shown:
        table.add_column(Text(heads[place]), justify="right", overflow="fold")
    for line in figures:
        metric = Text(f"{line.arrow} {line.label}{' *' if line.primary else ''}")
        table.add_row(metric, line.unit, *(_cell(line.cells[place]) for place in shown))
    return table


def _cell(cell: Cell) -> Text:
    return Text(f"{cell.value} {cell.mark}", style=_style(cell.verdict))


def _style(verdict: Verdict | None) -> str:
    """Return how a verdict is coloured: what holds for one placement only is no alarm, and no success."""
    if verdict is None:
        return ""
    return "yellow" if verdict.holds_for == "placement" else _STYLES[verdict.verdict]
