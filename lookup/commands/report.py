"""Carry out `lookup report`: draw the page of a finished run again, out of its folder."""

from __future__ import annotations

import argparse

from lookup.api.files import PAGE, PAGE_PACKAGES
from lookup.commands.options import Command, Parser, require_extra
from lookup.commands.streams import say

__all__ = ["COMMAND", "add_arguments", "run"]


def add_arguments(parser: Parser) -> None:
    """Add the argument of `lookup report`."""
    parser.need("folder", nargs="?", metavar="RUN_DIR", help="folder or URI that `lookup evaluate` has written")


def run(arguments: argparse.Namespace) -> int:
    """Write the page into the run's folder, in place of an earlier one, and return 0.

    Raises:
        PulsarLookupError: in one sentence, for whatever the user has to change.
    """
    require_extra("report", *PAGE_PACKAGES, "pyarrow", "scipy", extra="report")
    from lookup.logs.outputs import named_refusals, write_beside
    from lookup.report.folder import read_run
    from lookup.report.page import html_report

    page = html_report(read_run(arguments.folder))
    with named_refusals(arguments.folder):
        write_beside(arguments.folder, PAGE, page.encode())
    say(f"the page is {arguments.folder.rstrip('/')}/{PAGE}, {len(page.encode()) / 1e6:.2f} MB; any browser opens it")
    return 0


COMMAND = Command(
    name="report",
    summary="draw the page of a finished evaluation again, without replaying",
    examples=(("lookup report report", "write report/report.html out of what `lookup evaluate` left in report/"),),
    add_arguments=add_arguments,
    run=run,
)
