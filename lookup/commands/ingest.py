"""Declare `lookup ingest`, which turns log files into canonical tables.

The work is in `ingestion.py`, a module of its own because it imports Spark and Arrow: this one is read for every help.
"""

from __future__ import annotations

import argparse

from lookup.commands.options import (
    Command,
    Parser,
    add_format,
    add_output,
    add_plugin_files,
    cluster,
    ratio,
    require_extra,
)

__all__ = ["COMMAND", "add_arguments", "run"]


def add_arguments(parser: Parser) -> None:
    """Add the flags of `lookup ingest`."""
    # "*" and not "+": argparse would complain of a missing source before an unknown flag, which `need` does not.
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
    # No default here: the library has it, and importing that would import Spark.
    parser.add_argument(
        "--max-quarantine-ratio",
        type=ratio,
        metavar="SHARE",
        help="share of unreadable records above which nothing is written (default: 0.05)",
    )
    parser.add_argument("--master", metavar="URL", help="Spark's master; default: local[*], all cores of this machine")
    add_plugin_files(parser)
    add_format(parser, "table", "json")


def run(arguments: argparse.Namespace) -> int:
    """Ingest, print what was read, and return 0.

    Raises:
        PulsarLookupError: as `lookup.commands.ingestion.ingest_files`; also if Spark or Arrow is not installed.
    """
    require_extra("ingest", "pyspark", "pyarrow", "pandas")
    from lookup.commands.ingestion import ingest_files  # noqa: PLC0415  Spark and Arrow are an extra

    return ingest_files(arguments)


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
    add_arguments=add_arguments,
    run=run,
)
