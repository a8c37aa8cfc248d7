"""Carry out `lookup diff`: print in what two finished runs differ."""

from __future__ import annotations

import argparse
from typing import TYPE_CHECKING

from rich.console import Console

from lookup.commands.options import Command, Parser, add_format, require_extra
from lookup.commands.streams import data_console, plain, plain_table, stdout

if TYPE_CHECKING:
    from lookup.report.difference import Difference

__all__ = ["COMMAND", "add_arguments", "print_difference", "run"]


def add_arguments(parser: Parser) -> None:
    """Add the arguments of `lookup diff`."""
    parser.need("first", nargs="?", metavar="RUN_A", help="folder or URI that `lookup evaluate` has written")
    parser.need("second", nargs="?", metavar="RUN_B", help="another one; changes are from the first to this one")
    add_format(parser, "table", "markdown")


def run(arguments: argparse.Namespace) -> int:
    """Print the settings and the figures that differ, and return 0.

    Raises:
        PulsarLookupError: in one sentence, for whatever the user has to change.
    """
    require_extra("diff", "pyarrow", "scipy", extra="report")
    from lookup.report.difference import compare_runs, difference_markdown
    from lookup.report.folder import read_run

    difference = compare_runs(read_run(arguments.first), read_run(arguments.second))
    if arguments.format == "markdown":
        stdout().write(difference_markdown(difference))
        return 0
    print_difference(data_console(), difference)
    return 0


def print_difference(console: Console, difference: Difference, *, has_figures: bool = True) -> None:
    """Print in what two runs differ.

    Args:
        has_figures: else the table of figures is left out.
    """
    from lookup.report.difference import FIGURE_HEADS, SETTING_HEADS, sentences

    for sentence in sentences(difference):
        console.print(plain(sentence), soft_wrap=True)
    if difference.settings:
        plain_table(console, SETTING_HEADS, difference.settings)
    if difference.changed and has_figures:
        plain_table(console, FIGURE_HEADS, [change.row for change in difference.changed])


COMMAND = Command(
    name="diff",
    summary="compare two finished evaluations: settings that differ, and figures of the policies both have",
    examples=(
        ("lookup diff before after", "what changed from before/ to after/, as tables"),
        ("lookup diff before after --format markdown", "the same for a comment on a change"),
    ),
    add_arguments=add_arguments,
    run=run,
)
