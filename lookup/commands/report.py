"""Carry out `lookup report`: draw the page of a finished run again, out of its folder."""

from __future__ import annotations

import argparse

from lookup.api.files import PAGE, PAGE_PACKAGES
from lookup.commands.gates import add_gate, demands_of
from lookup.commands.options import Command, Parser, require_extra
from lookup.commands.streams import note

__all__ = ["COMMAND", "add_arguments", "run"]


def add_arguments(parser: Parser) -> None:
    """Add the arguments of `lookup report`."""
    parser.need("folder", nargs="?", metavar="RUN_DIR", help="folder or URI that `lookup evaluate` has written")
    add_gate(parser)


def run(arguments: argparse.Namespace) -> int:
    """Write the page into the run's folder, in place of an earlier one, and return 0, or by a budget as `evaluate`.

    Raises:
        PulsarLookupError: in one sentence, for whatever the user has to change.
    """
    require_extra("report", *PAGE_PACKAGES, "pyarrow", "scipy", extra="report")
    from lookup.logs.outputs import named_refusals, write_beside
    from lookup.report.folder import read_run
    from lookup.report.page import html_report

    demands, finished = demands_of(arguments), read_run(arguments.folder)
    demands.check(finished.scored.metrics, finished.manifest["settings"], finished.manifest["inputs"])
    # First, since a budget may name what the run does not have.
    code = 0 if demands.is_empty else demands.deliver(finished, is_printed=True)
    page = html_report(finished)
    with named_refusals(arguments.folder):
        write_beside(arguments.folder, PAGE, page.encode())
    note(f"the page is {arguments.folder.rstrip('/')}/{PAGE}, {len(page.encode()) / 1e6:.2f} MB; any browser opens it")
    return code if demands.budget else 0


COMMAND = Command(
    name="report",
    summary="draw the page of a finished evaluation again, without replaying",
    examples=(
        ("lookup report report", "write report/report.html out of what `lookup evaluate` left in report/"),
        (
            "lookup report report --budget budget.toml --against main-report --comment comment.md",
            "judge the run by a budget of changes since an earlier one; a comment for the pull request",
        ),
    ),
    add_arguments=add_arguments,
    run=run,
)
