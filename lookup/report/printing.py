"""Print a comparison: as tables on a terminal or in plain text, as JSON, or as Markdown."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Literal

from rich import box
from rich.console import Console
from rich.table import Table
from rich.text import Text

from lookup.model.quoting import printed_line, quantity
from lookup.report.cards import HERE, PRICE, cards, nothing_told, ranked
from lookup.report.caveats import caveats, what_cannot_act
from lookup.report.comparison import NOTHING, Line, apart, label, lines
from lookup.report.document import idle_shedders
from lookup.report.markdown import markdown_report
from lookup.report.wording import (
    aims,
    at_best,
    comparisons,
    conclusion,
    legend,
    of_wholes,
    outcomes,
    undecided,
    winners_luck,
)
from lookup.score.scoring import Scored
from lookup.score.summary import summary, to_json
from lookup.score.verdict import Verdict, Word

__all__ = ["Detail", "Format", "show"]

Format = Literal["table", "json", "markdown"]
Detail = Literal["quiet", "usual", "all"]

_STYLES: Mapping[Word, str] = {
    "better": "green", "worse": "bold red", "equivalent": "dim", "identical": "dim", "inconclusive": "yellow",
}  # fmt: skip
#: Characters of the columns of names and units, and around a column of figures.
_NAMES, _AROUND = 38, 3
#: Characters of the column of the best figures.
_BEST = 12
#: Width of tables in files and pipes, which have none of their own; sentences do not wrap there.
_PLAIN_WIDTH = 120
#: Figures and notes of a first look.
_ROWS, _NOTES = 10, 5
#: Rules that operators have set come before what they weigh.
_ISOLATION = "isolation_ratio"
#: Texts of a figure that is unknown or zero.
_IDLE = frozenset({NOTHING, "0", "0.0", "0.0000"})


def show(
    scored: Scored,
    form: Format,
    console: Console,
    *,
    folder: str = HERE,
    rest: str = "report.md has them",
    detail: Detail = "usual",
) -> None:
    """Print a comparison; JSON and Markdown go to the console's file as they are, without colours or wrapping.

    Args:
        folder: of the run, for commands.
        rest: says where figures and notes are that are not printed.
        detail: "quiet" prints answers, figures and what decides alone, "usual" what a first look needs, "all" every
            figure and every note.
    """
    if form != "table":
        console.file.write(to_json(summary(scored)) if form == "json" else markdown_report(scored))
        console.file.flush()
        return
    if not console.is_terminal:
        # A console of the same kind on the same file, since `lookup` reports a closed pipe through its own kind.
        console = type(console)(file=console.file, width=_PLAIN_WIDTH, color_system=None, force_terminal=False)

    def say(texts: Iterable[str]) -> None:
        for text in texts:
            console.print(_text(text), soft_wrap=not console.is_terminal)

    def left_out(number: int, what: str) -> list[str]:
        return [f"{quantity(number, what)}: {rest}"] if number else []

    is_whole, is_quiet = detail == "all", detail == "quiet"
    say(what_cannot_act(scored))
    say(_answer(scored, folder, is_quiet=is_quiet))
    best = at_best(scored)
    if best is not None and not is_quiet:
        say([best])
    drawn = [line for line in lines(scored) if not _is_idle(line)]
    shown = drawn if is_whole else _first_look(scored, drawn)
    for table in _tables(scored, shown, console, is_whole=is_whole):
        console.print(table)
    if not is_quiet:
        say([*left_out(len(drawn) - len(shown), "more figure"), legend(), *(_background(scored) if is_whole else ())])
        say(idle_shedders(scored))
    # The conclusion stands at the end, the part of a terminal that is read first; only notes on it follow.
    say([conclusion(scored)])
    if not is_quiet:
        notes = caveats(scored)
        few = notes if is_whole else notes[:_NOTES]
        say([*(f"Note: {note}" for note in few), *left_out(len(notes) - len(few), "more note")])


def _answer(scored: Scored, folder: str, *, is_quiet: bool) -> Iterator[str]:
    told = nothing_told(scored)
    if told is not None:
        yield told
    for place, card in enumerate(cards(scored, folder).items):
        yield f"{card.title}: {card.sentence}"
        if place == 0 and not is_quiet:
            yield f"    how sure: {card.certainty}"
            yield f"    next: {card.step}{f': {card.command}' if card.command else ''}"
    luck = winners_luck(scored)
    if luck is not None and not is_quiet:
        yield luck


def _background(scored: Scored) -> Iterator[str]:
    """Yield what stands under the whole comparison: figures that are left out, and how verdicts were counted."""
    idle = [line for line in lines(scored) if _is_idle(line)]
    unknown = [line.label for line in idle if all(figure.value == NOTHING for figure in line.figures)]
    zero = [line.label for line in idle if line.label not in unknown]
    if zero:
        yield f"left out, 0 for every policy that has a figure: {', '.join(zero)}"
    if unknown:
        yield f"left out, no figure for any policy: {', '.join(unknown)}"
    yield from outcomes(scored)
    yield from comparisons(scored)
    open_ = undecided(scored)
    if open_ is not None:
        yield open_


def _first_look(scored: Scored, drawn: Sequence[Line]) -> list[Line]:
    """Return at most ten lines: those that decide, those that cards speak of, and those that tell most apart."""
    wholes = {label(*verdict.name) for verdict in of_wholes(scored)}
    spoken = {_ISOLATION, *(label(*name) for name in (*aims(scored), PRICE))}

    def rank(line: Line) -> tuple[bool, bool, bool, int]:
        told = sum(figure.verdict is not None and figure.verdict.is_decided for figure in line.figures)
        return not line.primary, line.label not in spoken, line.label not in wholes, -told

    chosen = sorted(drawn, key=rank)[:_ROWS]
    return sorted((line for line in drawn if line in chosen), key=lambda line: not line.primary)


def _tables(scored: Scored, shown: Sequence[Line], console: Console, *, is_whole: bool) -> Iterator[Table]:
    """Build the comparison, in several tables if it is too wide for one; each begins with the incumbent.

    The best candidate comes first. Of policies that decide alike only the first has a column, unless all is asked for.
    """
    places = {name: place for place, name in enumerate((scored.incumbent, *scored.candidates))}
    names = {name: name for name in scored.candidates} if is_whole else apart(scored)
    heads = {0: f"{scored.incumbent} (incumbent)"}
    heads |= {places[name]: names[name] for name in ranked(scored) if name in names}
    has_best = any(line.at_best for line in shown)
    for columns in _pages(shown, heads, console.width - _BEST * has_best):
        table = Table(box=box.SIMPLE_HEAD if console.is_terminal else box.ASCII2, pad_edge=not console.is_terminal)
        table.add_column("metric", no_wrap=True)
        table.add_column("unit", no_wrap=True, style="dim")
        for column in columns:
            table.add_column(_text(heads[column]), justify="right", overflow="fold")
        if has_best:
            table.add_column("at best", justify="right")
        for line in shown:
            figures = [line.figures[column] for column in columns]
            cells = [Text(f"{figure.value} {figure.mark}", _style(figure.verdict)) for figure in figures]
            table.add_row(_text(line.name), line.unit, *cells, *([line.at_best] if has_best else []))
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
    # That no lookup is within its isolation is the worst there is.
    idle = {NOTHING} if line.label == _ISOLATION else _IDLE
    return not line.primary and all(figure.value in idle for figure in line.figures)


def _pages(shown: Sequence[Line], heads: Mapping[int, str], width: int) -> Iterator[list[int]]:
    """Divide the candidates into runs that fit beside the incumbent; at least one candidate each."""
    widths = {
        column: max([len(head), *(len(line.figures[column].value) + 2 for line in shown)]) + _AROUND
        for column, head in heads.items()
    }
    (incumbent, *others), used = heads, _NAMES + widths[0]
    page = [incumbent]
    for column in others:
        if len(page) > 1 and used + widths[column] > width:
            yield page
            page, used = [incumbent], _NAMES + widths[0]
        page.append(column)
        used += widths[column]
    yield page
