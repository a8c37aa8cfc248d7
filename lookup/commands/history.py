"""Carry out `lookup history`: the figures of many finished runs over time."""

from __future__ import annotations

import argparse
import csv
import shlex
from pathlib import Path

from lookup.api.arguments import require_apart
from lookup.api.files import PAGE_PACKAGES
from lookup.commands.options import Command, Parser, add_format, require_extra
from lookup.commands.streams import data_console, note, plain, plain_table, print_json, stdout, warn, write_whole
from lookup.errors import SettingsError

__all__ = ["COMMAND"]


def _add_arguments(parser: Parser) -> None:
    what = "a folder or URI that `lookup evaluate` has written, or one that has such folders below it"
    parser.need("folders", nargs="*", metavar="DIR", help=what)
    parser.add_argument(
        "--all", action="store_true", help="every figure and run, not the first ten figures and last runs"
    )
    parser.add_argument("--page", metavar="FILE", help="also write a page with a chart of each figure, as HTML")
    add_format(parser, "table", "markdown", "json", "csv")


def _run(arguments: argparse.Namespace) -> int:
    page = arguments.page
    require_extra("history", *(PAGE_PACKAGES if page is not None else ()), "pyarrow", "scipy", extra="report")
    # So that neither a folder nor a file of a run is named by mistake.
    if page is not None and (not page.endswith(".html") or Path(page).is_dir()):
        raise SettingsError(f"--page: {page or 'an empty path'} is no page; name a file that ends in .html")
    from lookup.report.trends import (
        CSV_HEADS,
        csv_rows,
        left_out,
        notes_of,
        read_trends,
        runs_table,
        summary_of,
        trends_markdown,
        trends_table,
    )

    trends = read_trends(arguments.folders, warn)
    if page is not None:
        # Beside runs a page is welcome, in one it may be the run's own.
        require_apart({"page": page}, {f"run {n}": run.path for n, run in enumerate(trends.runs, 1)})
        from lookup.report.trends_page import html_trends

        content = html_trends(trends, is_whole=arguments.all).encode()
        Path(page).parent.mkdir(parents=True, exist_ok=True)
        write_whole(Path(page), content)
        note(f"the page is {page}, {len(content) / 1e6:.2f} MB; any browser opens it")
    match arguments.format:
        case "json":
            print_json(trends.document())
        case "csv":
            writer = csv.writer(stdout(), lineterminator="\n")
            writer.writerow(CSV_HEADS)
            writer.writerows(csv_rows(trends))
        case "markdown":
            whole = f"`{shlex.join(['lookup', 'history', *arguments.folders, '--all'])}`"
            stdout().write(trends_markdown(trends, "" if arguments.all else whole))
        case _:
            console = data_console()
            has_blocks = console.is_terminal and console.encoding.startswith("utf")
            figures = trends_table(trends, is_whole=arguments.all, has_blocks=has_blocks)
            texts = [*([] if arguments.all else left_out(trends, "--all")), *notes_of(trends, has_blocks=has_blocks)]
            runs = runs_table(trends, is_whole=arguments.all)
            for text in summary_of(trends):
                console.print(plain(text), soft_wrap=not console.is_terminal)
            plain_table(console, figures.columns, [tuple(map(str, row)) for row in figures.rows], folded=0)
            for text in texts:
                console.print(plain(text), soft_wrap=not console.is_terminal)
            plain_table(console, runs.columns, [tuple(map(str, row)) for row in runs.rows])
    return 0


COMMAND = Command(
    name="history",
    summary="draw the figures of many finished evaluations over time",
    examples=(
        ("lookup history nightly", "all runs below nightly/, by when they started, and what changed in the newest"),
        (
            "lookup history main-1 main-2 report --page history.html",
            "three runs, and a page with a chart of each figure",
        ),
        ("lookup history nightly --format csv", "every figure of every run with its interval, for a spreadsheet"),
    ),
    add_arguments=_add_arguments,
    run=_run,
)
