"""`lookup evaluate`: replay policies over a log and judge them; the flags, while the work is in `evaluation`."""

from __future__ import annotations

import argparse

from lookup.commands.extras import require_extra
from lookup.commands.options import Command, Parser, add_config, add_format, add_output, settings_flags

__all__ = ["COMMAND"]


def _add_arguments(parser: Parser) -> None:
    add_config(parser)
    add_output(parser, "the results")
    parser.add_argument("--lookups", metavar="PATH", help="the LOOKUPS table, in place of inputs.lookups")
    parser.add_argument("--master", metavar="URL", help="Spark's master; default: local[*], all cores of this machine")
    parser.add_argument(
        "--by",
        default="",
        metavar="DIMENSIONS",
        help="tell figures apart by tenant, namespace, rack and hour, or some of them: --by tenant,hour",
    )
    add_format(parser, "table", "json", "markdown")


def _settings(arguments: argparse.Namespace) -> dict[str, object]:
    """Return what flags set, by key path; `--lookups` wins over `--set`, being the shorter way to say the same."""
    named = {} if arguments.lookups is None else {"inputs.lookups": arguments.lookups}
    return {**settings_flags(arguments), **named}


def _run(arguments: argparse.Namespace) -> int:
    require_extra("evaluate", "pyspark", "pyarrow", "pandas", "scipy")
    from lookup.commands.evaluation import Wanted, evaluate  # noqa: PLC0415  Spark only where it runs

    wanted = Wanted(
        config=arguments.config,
        flags=_settings(arguments),
        output=arguments.output,
        is_forced=arguments.force,
        master=arguments.master,
        by=tuple(dict.fromkeys(name.strip() for name in arguments.by.split(",") if name.strip())),
        form=arguments.format,
        command=arguments.argv,
    )
    return evaluate(wanted)


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
    add_arguments=_add_arguments,
    run=_run,
)
