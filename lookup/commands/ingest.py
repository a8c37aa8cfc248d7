"""Carry out `lookup ingest`, which builds the reader, runs the Spark job, and prints the result."""

from __future__ import annotations

import argparse
import time
from collections.abc import Iterator, Mapping
from dataclasses import asdict
from datetime import UTC, datetime
from functools import partial
from itertools import islice
from typing import TYPE_CHECKING

from rich.text import Text

from lookup.commands.options import (
    Command,
    Parser,
    add_format,
    add_master,
    add_output,
    add_plugin_files,
    cluster,
    ratio,
    require_extra,
    settings_path,
)
from lookup.commands.streams import data_console, note, plain_table, print_json, progress, warn
from lookup.engine.build import part_table
from lookup.engine.plugins import load_plugins
from lookup.errors import InputError
from lookup.model.quoting import quantity
from lookup.model.time import time_text

if TYPE_CHECKING:
    from lookup.logs.ingest import IngestReport

__all__ = ["COMMAND"]

#: Reasons for quarantine that are printed.
_SHOWN_REASONS = 5
#: Number of files without rows that are named. A folder of brokers' logs may have hundreds without a lookup.
_SHOWN_FILES = 20
#: Rows from which on it is no chance that all times are full quarters of an hour.
_TELLING = 10
#: Share of duplicate rows from which on they are reported.
_MANY_DOUBLED = 0.2


def _add_arguments(parser: Parser) -> None:
    # "*" and not "+": argparse would complain of a missing source before an unknown flag, which `need` does not.
    parser.need(
        "sources", nargs="*", metavar="SOURCE", help="log files, folders, globs or URIs, also .gz, .bz2 and .zst"
    )
    add_output(parser, "the tables")
    parser.add_argument(
        "--reader",
        metavar="NAME",
        help="log reader, from `lookup plugins list log_readers`. Times without an offset are in its "
        "`timezone`, by default UTC",
    )
    parser.add_argument(
        "--mapping",
        type=settings_path,
        metavar="FILE",
        help="TOML file with the parameters of a reader, or shipped:NAME",
    )
    parser.add_argument("--cluster", type=cluster, metavar="NAME", help="cluster of rows without a cluster")
    # Without default here, since the library has it, and importing that would import Spark.
    parser.add_argument(
        "--max-quarantine-ratio",
        type=ratio,
        metavar="SHARE",
        help="largest share of unreadable records (default: 0.05)",
    )
    add_master(parser)
    add_plugin_files(parser)
    add_format(parser, "table", "json")


def _run(arguments: argparse.Namespace) -> int:
    require_extra("ingest", "pyspark", "pyarrow", "pandas")
    from lookup.commands.workers import workers_of
    from lookup.logs.ingest import MAX_QUARANTINE_RATIO, check_mapping, ingest, load_reader
    from lookup.logs.jobs import watched_by
    from lookup.logs.outputs import require_free
    from lookup.logs.sources import list_files
    from lookup.report.manifest import RunFacts, fingerprint, manifest_json
    from lookup.spark.choosing import bytes_of
    from lookup.spark.cluster import check_reach

    began, started = time.monotonic(), datetime.now(UTC).isoformat(timespec="seconds")
    sources, plugin_files, output = tuple(arguments.sources), tuple(arguments.plugin_file), arguments.output
    registry = load_plugins(plugin_files)
    reader = load_reader(registry, reader=arguments.reader, mapping=arguments.mapping)
    # Before Spark, which takes seconds to start.
    files = list_files(sources)
    check_mapping(reader, files, arguments.cluster)
    read = {path: f"source {path!r}" for path in (*sources, *files)}
    flags = {"--mapping": [arguments.mapping] * (arguments.mapping is not None), "--plugin-file": plugin_files}
    read |= {path: f"{flag} {path}" for flag, paths in flags.items() for path in paths}
    _require_apart(read, output)
    require_free(output, force=arguments.force)
    permitted = arguments.max_quarantine_ratio

    def manifest() -> bytes:
        facts = RunFacts(
            command=arguments.argv,
            exit_code=0,
            settings={"reader": part_table(reader), "cluster": arguments.cluster},
            inputs={source: fingerprint(source) for source in sources},
            wall_clock={"started": started, "total_s": round(time.monotonic() - began, 3)},
        )
        return manifest_json(facts, registry)

    with (
        progress("reading") as report_stage,
        workers_of(arguments.master, lambda: bytes_of(files), starting=report_stage) as workers,
        watched_by(report_stage.done),
    ):
        report_stage(f"reading {quantity(len(files), 'file')} with {reader.name}")
        report = ingest(
            workers,
            sources,
            reader,
            output,
            cluster=arguments.cluster,
            force=arguments.force,
            max_quarantine_ratio=MAX_QUARANTINE_RATIO if permitted is None else permitted,
            plugin_files=plugin_files,
            ready=partial(check_reach, workers),
            manifest=manifest,
        )
    _print(report, arguments.format)
    return 0


def _require_apart(read: Mapping[str, str], output: str) -> None:
    """Refuse inputs that an ingest would replace or that contain its output. They would be lost, or read again."""
    from lookup.logs.ingest import QUARANTINE_TABLE
    from lookup.logs.outputs import relation
    from lookup.logs.schema import CANONICAL

    for path, called in read.items():
        for name in (*CANONICAL, QUARANTINE_TABLE, "manifest.json"):
            replaced = f"{output.rstrip('/')}/{name}"
            overlap = relation(path, replaced)
            if overlap is not None:
                raise InputError(
                    f"{called} {overlap} {replaced}, which --output {output} replaces; "
                    "name an output apart from the inputs"
                )


def _iter_warnings(report: IngestReport) -> Iterator[str]:
    yield from report.lost
    # The most frequent reasons come first. A log of another format has as many as lines, and five show the pattern.
    for reason, count in list(report.quarantined.items())[:_SHOWN_REASONS]:
        yield (f"in quarantine: {quantity(count, 'record')}{', for instance' if count > 1 else ''}: {reason}")
    for path, count in islice(report.unread.items(), _SHOWN_FILES):
        yield (f"nothing is read of {path} ({quantity(count, 'line')}): is it of another kind?")
    if len(report.unread) > _SHOWN_FILES:
        more = quantity(len(report.unread) - _SHOWN_FILES, "other file")
        yield (f"nothing is read of {more} either; --format json has all of them as `unread`")
    if not report.rows.get("lookups") and "ownership" in report.rows:
        yield ("there is no lookup in the log, only owners; brokers log lookups at DEBUG, see docs/getting-lookups.md")
    if report.quarters == sum(report.rows.values()) >= _TELLING:
        yield (
            f"all {report.quarters:,} times are full quarters of an hour: has the time of day been left out? "
            'A mapping joins columns, like timestamp = { column = "{date} {time}", format = "iso" }'
        )
    if report.doubled >= _MANY_DOUBLED * report.rows.get("lookups", 0) > 0:
        share = report.doubled / report.rows["lookups"]
        yield (
            f"{report.doubled:,} rows of LOOKUPS ({share:.0%}) are the same as others in every column: is a file, or "
            "a copy of it, read twice? Each counts as a lookup"
        )


def _print(report: IngestReport, form: str) -> None:
    for sentence in _iter_warnings(report):
        warn(sentence)
    for sentence in report.clocks:
        note(f"note: {sentence}")
    if report.late:
        path, count = next(iter(report.late.items()))
        more = f", and so are {quantity(len(report.late) - 1, 'other file')}" if len(report.late) > 1 else ""
        note(
            f"{path} is not in the order of time{more}: {count:,} of its rows are earlier than a line before them; "
            "rows are sorted, and lookups joined with their answers in that order"
        )
    if form == "json":
        times = {"first": time_text(report.first_us), "last": time_text(report.last_us)}
        print_json(asdict(report) | {"quarantine_ratio": report.quarantine_ratio, **times})
        return
    rows = [(name, f"{count:,}", f"{report.output}/{name}") for name, count in report.rows.items()]
    quarantined = sum(report.quarantined.values())
    if quarantined:
        rows.append(("quarantine", f"{quarantined:,}", f"{report.output}/quarantine"))
    console = data_console()
    plain_table(console, ("table", "rows", "path"), rows)
    # Also here, since warnings may be directed to an unread file.
    unread = f"; nothing is read of {quantity(len(report.unread), 'file')}" if report.unread else ""
    skipped = f"{report.skipped:,} of other kinds passed over"
    console.print(Text(f"{quantity(report.lines, 'line')} read, {skipped}{unread}"))


COMMAND = Command(
    name="ingest",
    examples=(
        ("lookup ingest access.tsv --mapping mapping.toml --output tables", "a delimited file, with its mapping"),
        ("lookup ingest logs/ --reader pulsar-broker --cluster east --output tables", "logs of Pulsar's brokers"),
        ("lookup ingest 'logs/*.gz' --reader mine --plugin-file mine.py --output tables", "a log reader of your own"),
    ),
    add_arguments=_add_arguments,
    run=_run,
)
