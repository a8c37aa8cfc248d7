"""Carry out `lookup verify`, which repeats recorded decisions."""

from __future__ import annotations

import argparse
from dataclasses import asdict
from typing import TYPE_CHECKING

from lookup.commands.options import Command, Parser, add_format, add_plugin_files, require_extra
from lookup.commands.streams import data_console, plain, print_json
from lookup.model.quoting import quantity

if TYPE_CHECKING:
    from lookup.serve.verifying import Verified

__all__ = ["COMMAND"]


def _add_arguments(parser: Parser) -> None:
    parser.need("record", nargs="?", metavar="RECORD", help="folder or URI of a record of `lookup serve`")
    add_plugin_files(parser, "parts of the policies")
    add_format(parser, "table", "json")


def _run(arguments: argparse.Namespace) -> int:
    require_extra("verify", "pyarrow", extra="serve")
    from lookup.serve.verifying import verify

    verified = verify(arguments.record, plugin_files=arguments.plugin_file)
    _print_verified(verified, arguments.format)
    return 0 if verified.agree == verified.decisions else 1


def _print_verified(verified: Verified, form: str) -> None:
    if form == "json":
        examples = [asdict(entry) for entry in verified.examples]
        figures = {"decisions": verified.decisions, "agree": verified.agree, "share": verified.share}
        print_json({**figures, "causes": dict(verified.causes), "examples": examples})
        return
    console = data_console()
    share = f"{verified.agree:,} of {quantity(verified.decisions, 'decision')} agree, {verified.share:.2%}"
    console.print(plain(share))
    for cause, count in verified.causes.most_common():
        console.print(plain(f"{count:,} do not, by their {cause}"))
    for entry in verified.examples:
        console.print(plain(f"{entry.decision} of {entry.policy}, {entry.cause}: {entry.detail}"), soft_wrap=True)


COMMAND = Command(
    name="verify",
    examples=(("lookup verify record", "recompute all decisions of `lookup serve`. Exit code 1 if one differs"),),
    add_arguments=_add_arguments,
    run=_run,
)
