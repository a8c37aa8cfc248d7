"""`lookup ingest`: turn log files into canonical tables; the flags, while the work is in `ingestion`."""

from __future__ import annotations

import argparse

from lookup.commands.extras import require_extra
from lookup.commands.options import Command, Parser, add_format, add_output, add_plugin_files, cluster, ratio

__all__ = ["COMMAND"]


def _add_arguments(parser: Parser) -> None:
    parser.need(
        "sources", nargs="*", metavar="SOURCE", help="log files, folders, globs or URIs; .gz, .bz2 and .zst too"
    )
    add_output(parser, "the tables")
    parser.add_argument(
        "--reader",
        metavar="NAME",
        help="log reader, see `lookup plugins list log_readers`; times without offset are UTC, or in its `timezone`",
    )
    parser.add_argument(
        "--mapping", metavar="FILE", help='TOML file with the parameters of the reader, and its name as use = "NAME"'
    )
    parser.add_argument("--cluster", type=cluster, metavar="NAME", help="cluster of rows whose source does not say it")
    parser.add_argument(
        "--max-quarantine-ratio",
        type=ratio,
        metavar="SHARE",
        help="share of unreadable records above which nothing is written (default: 0.05)",
    )
    parser.add_argument("--master", metavar="URL", help="Spark's master; default: local[*], all cores of this machine")
    add_plugin_files(parser)
    add_format(parser, "table", "json")


def _run(arguments: argparse.Namespace) -> int:
    require_extra("ingest", "pyspark", "pyarrow", "pandas")
    from lookup.commands.ingestion import Wanted, run_ingest  # noqa: PLC0415  Spark only where it runs

    wanted = Wanted(
        sources=tuple(arguments.sources),
        output=arguments.output,
        is_forced=arguments.force,
        reader=arguments.reader,
        mapping=arguments.mapping,
        cluster=arguments.cluster,
        max_quarantine_ratio=arguments.max_quarantine_ratio,
        master=arguments.master,
        plugin_files=tuple(arguments.plugin_file),
        form=arguments.format,
        command=arguments.argv,
    )
    return run_ingest(wanted)


COMMAND = Command(
    name="ingest",
    summary="turn log files into the tables that evaluate reads",
    examples=(
        (
            "lookup ingest access.tsv --mapping mapping.toml --output tables",
            "any delimited file; the mapping says which column is what",
        ),
        (
            "lookup ingest logs/ --reader pulsar-broker --cluster east --output tables",
            "logs of Pulsar's brokers",
        ),
        (
            "lookup ingest 'logs/*.gz' --reader my-format --plugin-file my_format.py --output tables --force",
            "with a log reader of your own; earlier tables are replaced",
        ),
    ),
    add_arguments=_add_arguments,
    run=_run,
)
