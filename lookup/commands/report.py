"""Carry out `lookup report` and `lookup diff`: the page of a finished run, drawn again, and how two of them differ."""

from __future__ import annotations

import argparse

from lookup.api.files import PAGE, PAGE_PACKAGES
from lookup.commands.gates import Demands, add_gate, diff_command, print_difference
from lookup.commands.options import Command, Parser, add_format, require_extra
from lookup.commands.streams import data_console, note, print_json, stdout
from lookup.errors import SettingsError

__all__ = ["COMMANDS"]


def _add_arguments(parser: Parser) -> None:
    parser.need(
        "folder", nargs="?", metavar="RUN_DIR", help="folder or URI that `lookup evaluate` or `lookup tune` has written"
    )
    add_gate(parser)


def _run(arguments: argparse.Namespace) -> int:
    """Write the page into the run's folder, in place of an earlier one, and return 0, or by a budget as `evaluate`."""
    require_extra("report", *PAGE_PACKAGES, "pyarrow", "scipy", extra="report")
    from lookup.api.tuning import TUNE_PAGE, has_tuning, open_tuning
    from lookup.report.figures import read_run
    from lookup.report.page import html_report

    demands = Demands(arguments)
    if has_tuning(arguments.folder):
        if not demands.is_empty:
            raise SettingsError(
                f"{arguments.folder}: holds a search, which no budget is about; its sealed days are an evaluation, "
                f"{arguments.folder}/sealed"
            )
        _write(arguments.folder, TUNE_PAGE, open_tuning(arguments.folder).page())
        return 0
    finished = read_run(arguments.folder)
    demands.check(finished.results.directions, finished.manifest["settings"], finished.manifest["inputs"])
    # First, since a budget may name what the run does not have.
    code = 0 if demands.is_empty else demands.deliver(finished, is_printed=True)
    _write(arguments.folder, PAGE, html_report(finished))
    return code if demands.budget else 0


def _write(folder: str, name: str, page: str) -> None:
    from lookup.logs.outputs import named_refusals, write_beside

    with named_refusals(folder):
        write_beside(folder, name, page.encode())
    note(f"the page is {folder.rstrip('/')}/{name}, {len(page.encode()) / 1e6:.2f} MB; any browser opens it")


def _add_diff(parser: Parser) -> None:
    parser.need("first", nargs="?", metavar="RUN_A", help="folder or URI that `lookup evaluate` has written")
    parser.need("second", nargs="?", metavar="RUN_B", help="another one; changes are from the first to this one")
    parser.add_argument("--all", action="store_true", help="every figure and setting that differs, not the first ten")
    add_format(parser, "table", "markdown", "json")


def _run_diff(arguments: argparse.Namespace) -> int:
    require_extra("diff", "pyarrow", "scipy", extra="report")
    from lookup.api.comparing import diff
    from lookup.report.compare import difference_markdown

    compared = diff(arguments.first, arguments.second)
    if arguments.format == "json":
        print_json(compared.document())
    elif arguments.format == "markdown":
        stdout().write(
            difference_markdown(compared.difference, "" if arguments.all else diff_command(compared.difference))
        )
    else:
        print_difference(data_console(), compared.difference, "" if arguments.all else "--all")
    return 0


COMMANDS = (
    Command(
        name="report",
        examples=(
            ("lookup report report", "write report/report.html out of what `lookup evaluate` left in report/"),
            (
                "lookup report report --budget budget.toml --against main-report --junit junit.xml",
                "judge the run by a budget of changes since an earlier one; JUnit XML for the build",
            ),
        ),
        add_arguments=_add_arguments,
        run=_run,
    ),
    Command(
        name="diff",
        examples=(
            ("lookup diff before after", "what changed from before/ to after/: the figures, then the settings"),
            ("lookup diff before after --format markdown", "the same for a comment on a change"),
        ),
        add_arguments=_add_diff,
        run=_run_diff,
    ),
)
