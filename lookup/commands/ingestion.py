"""Carry out `lookup ingest`: build the reader, run the Spark job, print what was read."""

from __future__ import annotations

import argparse
import time
from collections.abc import Iterable
from dataclasses import asdict
from datetime import UTC, datetime

from rich.text import Text

from lookup.commands.sessions import java_version, spark_session
from lookup.commands.streams import data_console, plain_table, print_json, progress, warn
from lookup.engine.build import part_table
from lookup.engine.plugins import load_plugins
from lookup.errors import InputError
from lookup.logs.ingest import MAX_QUARANTINE_RATIO, QUARANTINE_TABLE, IngestReport, ingest, load_reader
from lookup.logs.outputs import relation, require_free, write_beside
from lookup.logs.schema import CANONICAL
from lookup.logs.sources import list_files
from lookup.model.quoting import quantity
from lookup.model.time import time_text
from lookup.report.manifest import RunFacts, fingerprint, manifest_json

__all__ = ["ingest_files"]

#: Everything an ingest puts into its output, in place of what had that name.
_REPLACED = (*CANONICAL, QUARANTINE_TABLE, "manifest.json")
#: Reasons for quarantine that are printed.
_SHOWN_REASONS = 5


def ingest_files(arguments: argparse.Namespace) -> int:
    """Read log files into tables, print how many rows they have, and return 0.

    Args:
        arguments: as `lookup.commands.ingest.add_arguments` declares them.

    Raises:
        PulsarLookupError: in one sentence, for whatever the user has to change; the output is then as it was.
    """
    began, started = time.monotonic(), datetime.now(UTC).isoformat(timespec="seconds")
    sources, plugin_files, output = tuple(arguments.sources), tuple(arguments.plugin_file), arguments.output
    registry = load_plugins(plugin_files)
    reader = load_reader(registry, reader=arguments.reader, mapping=arguments.mapping)
    # Before Spark, which takes seconds to start.
    files = list_files(sources)
    _require_apart(dict.fromkeys([*sources, *files]), output)
    require_free(output, force=arguments.force)
    permitted = arguments.max_quarantine_ratio
    with progress("starting Spark") as report_stage, spark_session(arguments.master) as spark:
        report_stage(f"reading {quantity(len(files), 'file')} with {reader.name}")
        report = ingest(
            spark,
            sources,
            reader,
            output,
            cluster=arguments.cluster,
            force=arguments.force,
            max_quarantine_ratio=MAX_QUARANTINE_RATIO if permitted is None else permitted,
            plugin_files=plugin_files,
        )
        facts = RunFacts(
            command=arguments.argv,
            exit_code=0,
            settings={"reader": part_table(reader), "cluster": arguments.cluster},
            inputs={source: fingerprint(source) for source in sources},
            wall_clock={"started": started, "total_s": round(time.monotonic() - began, 3)},
            versions={"java": java_version(spark)},
        )
        write_beside(output, "manifest.json", manifest_json(facts, registry))
    _print(report, arguments.format)
    return 0


def _require_apart(sources: Iterable[str], output: str) -> None:
    """Refuse sources that an ingest would replace or that hold its output: they would be gone, or read again."""
    for source in sources:
        for name in _REPLACED:
            replaced = f"{output.rstrip('/')}/{name}"
            overlap = relation(source, replaced)
            if overlap is not None:
                raise InputError(
                    f"source {source!r} {overlap} {replaced}, which --output {output} replaces; "
                    "name an output that has nothing to do with what is read"
                )


def _print(report: IngestReport, form: str) -> None:
    # The most frequent reasons come first; a log of another format has as many as lines, and five show the pattern.
    for reason, count in list(report.quarantined.items())[:_SHOWN_REASONS]:
        warn(f"in quarantine: {quantity(count, 'record')}{', for instance' if count > 1 else ''}: {reason}")
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
    console.print(Text(f"{quantity(report.lines, 'line')} read, {report.skipped:,} of other kinds passed over"))
