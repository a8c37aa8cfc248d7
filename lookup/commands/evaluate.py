"""Declare `lookup evaluate`, which replays policies over a log and judges them.

The work is in `evaluation.py`, a module of its own because it imports Spark and Arrow: this one is read for every help.
"""

from __future__ import annotations

import argparse

from lookup.commands.options import Command, Parser, add_config, add_format, add_output, require_extra

__all__ = ["COMMAND", "add_arguments", "run"]


def add_arguments(parser: Parser) -> None:
    """Add the flags of `lookup evaluate`."""
    add_config(parser)
    add_output(parser, "the results")
    parser.add_argument("--lookups", metavar="PATH", help="the LOOKUPS table, in place of inputs.lookups")
    parser.add_argument("--master", metavar="URL", help="Spark's master; default: local[*], all cores of this machine")
    parser.add_argument(
        "--by",
        # Names stay in the order given, which is that of the report's columns; a name that is repeated counts once.
        type=lambda text: tuple(dict.fromkeys(name.strip() for name in text.split(",") if name.strip())),
        default=(),
        metavar="DIMENSIONS",
        help="tell figures apart by tenant, namespace, rack and hour, or some of them: --by tenant,hour",
    )
    # What is printed only; the output has the report as JSON and as Markdown in any case.
    add_format(parser, "table", "json", "markdown")


def run(arguments: argparse.Namespace) -> int:
    """Evaluate, and return 0, or 3 or 4 by the verdict.

    Raises:
        PulsarLookupError: as `lookup.commands.evaluation.evaluate`; also if Spark or Arrow is not installed.
    """
    require_extra("evaluate", "pyspark", "pyarrow", "pandas", "scipy")
    from lookup.commands.evaluation import evaluate  # noqa: PLC0415  Spark and Arrow are an extra

    return evaluate(arguments)


COMMAND = Command(
    name="evaluate",
    summary="replay policies over a lookup log and compare them with the incumbent",
    examples=(
        (
            "lookup evaluate --config evaluation.toml --output report",
            "print the comparison; summary.json, metrics.parquet, report.md and more go to report/",
        ),
        (
            "lookup evaluate --config evaluation.toml --lookups logs/lookups --output report --force --by tenant,hour",
            "another log, earlier results replaced, figures also by tenant and hour",
        ),
        (
            "lookup evaluate --config evaluation.toml --output report --set evaluation.seeds=30 --format json",
            "thirty replicates, for narrower intervals; the summary on stdout for a program",
        ),
    ),
    add_arguments=add_arguments,
    run=run,
)
