"""Carry out `lookup diff`: print in what two finished runs differ."""

from __future__ import annotations

import argparse

from lookup.commands.options import Command, Parser, add_format, require_extra
from lookup.commands.streams import data_console, plain, plain_table, stdout

__all__ = ["COMMAND", "add_arguments", "run"]


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
    from lookup.report.difference import FIGURE_HEADS, SETTING_HEADS, compare_runs, difference_markdown, sentences
    from lookup.report.folder import read_run

    difference = compare_runs(read_run(arguments.first), read_run(arguments.second))
    if arguments.format == "markdown":
        stdout().write(difference_markdown(difference))
        return 0
    console = data_console()
    for sentence in sentences(difference):
        console.print(plain(sentence), soft_wrap=True)
    if difference.settings:
        plain_table(console, SETTING_HEADS, difference.settings)
    if difference.changed:
        plain_table(console, FIGURE_HEADS, [change.row for change in difference.changed])
    return 0


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
