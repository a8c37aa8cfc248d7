"""Carry out `lookup verify`: take recorded decisions again and print which are not the same."""

from __future__ import annotations

import argparse
from dataclasses import asdict
from typing import TYPE_CHECKING

from lookup.commands.options import Command, Parser, add_format, add_master, add_plugin_files, require_extra
from lookup.commands.streams import data_console, plain, print_json
from lookup.model.quoting import quantity

if TYPE_CHECKING:
    from lookup.serve.verifying import Verified

__all__ = ["COMMAND", "add_arguments", "run"]

#: Exit code if a decision was not the same.
_DIFFERENT = 1


def add_arguments(parser: Parser) -> None:
    """Add the flags of `lookup verify`."""
    parser.need("record", nargs="?", metavar="RECORD", help="folder or URI in which `lookup serve` recorded")
    add_master(parser, "verify on Spark, with this master, like local[*]; default: in this process")
    add_plugin_files(parser, "parts of the policies")
    add_format(parser, "table", "json")


def run(arguments: argparse.Namespace) -> int:
    """Verify a record, print the share that agrees and what does not, and return 0, or 1 if anything does not.

    Raises:
        PulsarLookupError: in one sentence, for whatever the user has to change.
    """
    require_extra("verify", "pyarrow", extra="serve")
    from lookup.serve.verifying import verify

    files = tuple(arguments.plugin_file)
    if arguments.master is None:
        verified = verify(arguments.record, plugin_files=files)
    else:
        require_extra("verify", "pyspark", "pandas")
        from lookup.commands.sessions import spark_session
        from lookup.logs.jobs import run_tasks

        with spark_session(arguments.master, wait_s=arguments.wait_s) as spark:
            verified = verify(
                arguments.record,
                plugin_files=files,
                run_tasks=lambda chunks, job, task: run_tasks(spark, chunks, job, task),
            )
    _print(verified, arguments.format)
    return 0 if verified.agree == verified.decisions else _DIFFERENT


def _print(verified: Verified, form: str) -> None:
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
    summary="take recorded decisions of a live cluster again, and name those that are not the same",
    examples=(
        ("lookup verify record", "everything that `lookup serve` recorded there"),
        ("lookup verify record --master 'local[*]' --format json", "a large record on Spark, for a program"),
    ),
    add_arguments=add_arguments,
    run=run,
)
