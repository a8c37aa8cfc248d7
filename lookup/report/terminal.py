"""Print a report as tables on a terminal or in plain text, as JSON, or as Markdown."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Literal

from rich import box
from rich.console import Console
from rich.table import Table as RichTable
from rich.text import Text

from lookup.model.quoting import printed_line, quantity
from lookup.report import sentences
from lookup.report.blocks import Cell, Table
from lookup.report.document import figure_table, first_figures, idle_shedders
from lookup.report.figures import Results, summary, to_json
from lookup.report.markdown import markdown_report
from lookup.report.sentences import PLACE
from lookup.score.verdict import Word

__all__ = ["Detail", "Format", "show"]

Format = Literal["table", "json", "markdown"]
Detail = Literal["quiet", "usual", "all"]

_STYLES: Mapping[Word | str, str] = {
    "better": "green", "worse": "bold red", "equivalent": "dim", "identical": "dim", "inconclusive": "yellow",
}  # fmt: skip
#: Characters around a column of a table.
_AROUND = 3
#: Width of tables in files and pipes, which have none of their own. Sentences do not wrap there.
_PLAIN_WIDTH = 120
#: Notes of a first look.
_NOTES = 5


def show(
    results: Results,
    form: Format,
    console: Console,
    *,
    folder: str = PLACE,
    rest: str = "report.md has them",
    detail: Detail = "usual",
) -> None:
    """Print a report. JSON and Markdown are written to the console's file without colours or wrapping.

    Args:
        folder: folder of the run, for commands.
        rest: place of the figures and notes that are not printed.
        detail: "quiet" prints answer, figures and the exit code's reason, "usual" a first look, "all" all of it.
    """
    if form != "table":
        console.file.write(to_json(summary(results)) if form == "json" else markdown_report(results))
        console.file.flush()
        return
    if not console.is_terminal:
        # A console of the same kind on the same file, since `lookup` reports a closed pipe through its own kind.
        console = type(console)(file=console.file, width=_PLAIN_WIDTH, color_system=None, force_terminal=False)

    def print_lines(texts: Iterable[str]) -> None:
        for text in texts:
            console.print(_build_text(text), soft_wrap=not console.is_terminal)

    is_whole, is_quiet = detail == "all", detail == "quiet"
    print_lines(sentences.idle_sentences(results))
    print_lines(_iter_answer(results, folder, is_quiet=is_quiet))
    names = None if is_whole else first_figures(results)
    # Of policies that decide alike only the first has a column, unless all is asked for.
    policies = sentences.rank_candidates(results)
    if not is_whole:
        policies = [name for name in policies if name == _find_first_like(results, policies, name)]
    table = figure_table(results, names, policies=policies)
    for part in _draw_parts(table, console):
        console.print(part)
    if not is_quiet:
        left_out = len({row.name for row in results.pooled.values()}) - len(table.rows)
        print_lines([*_describe_left_out(left_out, "more figure", rest), sentences.legend()])
        print_lines(sentences.comparison_counts(results) if is_whole else ())
        print_lines(idle_shedders(results))
    # The conclusion is at the end, the part of a terminal that is read first. Only notes on it follow.
    print_lines([sentences.conclusion(results)])
    if not is_quiet:
        notes = [*sentences.cautions(results), *(sentences.undecided_figures(results) if is_whole else ())]
        few = notes if is_whole else notes[:_NOTES]
        print_lines([*(f"Note: {note}" for note in few), *_describe_left_out(len(notes) - len(few), "more note", rest)])


def _find_first_like(results: Results, policies: Sequence[str], policy: str) -> str:
    group = results.like(policy)
    return next(name for name in policies if name in group)


def _describe_left_out(number: int, noun: str, rest: str) -> list[str]:
    return [f"{quantity(number, noun)}: {rest}"] if number > 0 else []


def _iter_answer(results: Results, folder: str, *, is_quiet: bool) -> Iterator[str]:
    answer = sentences.answer(results)
    yield answer.sentence
    order = sentences.rank_candidates(results)
    for place, policy in enumerate(name for name in order if name == _find_first_like(results, order, name)):
        card = sentences.card(results, policy, folder, is_first=policy == answer.about)
        yield f"  {card.title}: {card.sentence}"
        if place == 0 and not is_quiet:
            yield f"    How sure: {card.certainty}"
            yield f"    Next: {card.step} {card.command}".rstrip()
    if not is_quiet:
        same = sentences.identical_sentence(results) if len(results.identical) < len(results.policies) else None
        more = (same, sentences.luck_sentence(results), sentences.at_best_sentence(results))
        yield from (text for text in more if text is not None)


def _draw_parts(table: Table, console: Console) -> Iterator[RichTable]:
    """Draw a table in several parts if it is too wide, each with the incumbent first."""
    cells, has_best = table.cells, table.columns[-1] == "at best"
    widths = [
        max(len(head), *(len(row[place].text) for row in cells), 0) + _AROUND
        for place, head in enumerate(table.columns)
    ]
    fixed = [0, 1, 2, *([len(table.columns) - 1] if has_best else [])]
    others = [place for place in range(3, len(table.columns)) if place not in fixed]
    room = console.width - sum(widths[place] for place in fixed)
    pages: list[list[int]] = [[]]
    for place in others:
        if pages[-1] and sum(widths[column] for column in pages[-1]) + widths[place] > room:
            pages.append([])
        pages[-1].append(place)
    for page in pages:
        part = RichTable(box=box.SIMPLE_HEAD if console.is_terminal else box.ASCII2, pad_edge=not console.is_terminal)
        columns = [*fixed[:3], *page, *fixed[3:]]
        for place in columns:
            is_text = place in table.texts
            part.add_column(_build_text(table.columns[place]), justify="left" if is_text else "right", no_wrap=is_text)
        for row in cells:
            part.add_row(*(_style_cell(row[place]) for place in columns))
        yield part


def _style_cell(cell: Cell) -> Text:
    text = _build_text(cell.text)
    # A verdict under a condition is neither a success nor a failure.
    style = "yellow" if cell.text.endswith(("△", "▽", "▴", "▾")) else _STYLES.get(cell.style, "")
    text.stylize(style)
    return text


def _build_text(text: str) -> Text:
    """Write a line for a console. Names from settings and logs may neither end it nor reverse it."""
    return Text(printed_line(text))
