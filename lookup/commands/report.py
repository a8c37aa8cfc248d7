"""Carry out `lookup report` and `lookup diff`, which draw the page of a finished run again, and compare two runs."""

from __future__ import annotations

import argparse

from lookup.api.outputs import PAGE, PAGE_PACKAGE
from lookup.commands.gates import Demands, add_gate, diff_command, print_difference
from lookup.commands.options import Command, Parser, add_format, require_extra
from lookup.commands.streams import data_console, note, print_json, stdout

__all__ = ["COMMANDS"]


def _add_arguments(parser: Parser) -> None:
    parser.need("folder", nargs="?", metavar="RUN_DIR", help="folder or URI of a finished evaluation")
    add_gate(parser)


def _run(arguments: argparse.Namespace) -> int:
    """Write the page into the run's folder, in place of an earlier one, and return 0, or by a budget as `evaluate`."""
    require_extra("report", PAGE_PACKAGE, "pyarrow", "scipy", extra="report")
    from lookup.api.tuning import require_no_tuning
    from lookup.logs.outputs import named_refusals, write_beside
    from lookup.report.figures import read_run
    from lookup.report.page import html_report

    demands = Demands(arguments)
    require_no_tuning(arguments.folder)
    finished = read_run(arguments.folder)
    demands.check(finished.results.directions, finished.manifest["settings"], finished.manifest["inputs"])
    # First, since a budget may name figures that the run does not have.
    code = 0 if demands.is_empty else demands.deliver(finished, is_printed=True)
    page = html_report(finished).encode()
    with named_refusals(arguments.folder):
        write_beside(arguments.folder, PAGE, page)
    note(f"the page is {arguments.folder.rstrip('/')}/{PAGE}, {len(page) / 1e6:.2f} MB; any browser opens it")
    return code if demands.budget else 0


def _add_diff(parser: Parser) -> None:
    parser.need("first", nargs="?", metavar="RUN_A", help="folder or URI of a finished evaluation")
    parser.need("second", nargs="?", metavar="RUN_B", help="folder or URI of a later evaluation")
    parser.add_argument(
        "--all", action="store_true", help="print every changed figure and setting, not only the first ten"
    )
    add_format(parser, "table", "markdown", "json")


def _run_diff(arguments: argparse.Namespace) -> int:
    require_extra("diff", "pyarrow", "scipy", extra="report")
    from lookup.api.results import diff
    from lookup.report.compare import difference_markdown

    compared = diff(arguments.first, arguments.second)
    if arguments.format == "json":
        print_json(compared.document())
    elif arguments.format == "markdown":
        stdout().write(difference_markdown(compared, "" if arguments.all else diff_command(compared)))
    else:
        print_difference(data_console(), compared, "" if arguments.all else "--all")
    return 0


COMMANDS = (
    Command(
        name="report",
        examples=(
            ("lookup report report", "write report/report.html from the results in report/"),
            ("lookup report report --against main --budget budget.toml --junit junit.xml", "judge changes since main"),
        ),
        add_arguments=_add_arguments,
        run=_run,
    ),
    Command(
        name="diff",
        examples=(
            ("lookup diff before after", "the changed figures, then the changed settings"),
            ("lookup diff before after --format markdown", "the same, as Markdown for a pull request"),
        ),
        add_arguments=_add_diff,
        run=_run_diff,
    ),
)
