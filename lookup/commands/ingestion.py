"""The work of `lookup ingest`: build the reader, run the Spark job, say what was read."""

from __future__ import annotations

import time
from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass
from datetime import UTC, datetime

from rich.text import Text

from lookup.commands.overlaps import relation
from lookup.commands.sessions import java_version, spark_session
from lookup.commands.streams import data_console, plain_table, print_json, progress, warn
from lookup.engine.build import part_table
from lookup.engine.plugins import load_plugins
from lookup.errors import InputError
from lookup.logs.ingest import MAX_QUARANTINE_RATIO, QUARANTINE_TABLE, IngestReport, ingest
from lookup.logs.mapping import load_reader
from lookup.logs.outputs import require_free, write_beside
from lookup.logs.schema import CANONICAL
from lookup.logs.sources import list_files
from lookup.model.quoting import quantity
from lookup.model.time import time_text
from lookup.report.manifest import RunFacts, fingerprint, manifest_json

__all__ = ["Wanted", "run_ingest"]

#: Everything an ingest puts into its output, in place of what had that name.
_REPLACED = (*CANONICAL, QUARANTINE_TABLE, "manifest.json")
#: Reasons for quarantine that are printed.
_SHOWN_REASONS = 5


@dataclass(frozen=True)
class Wanted:
    """What the command line asks for."""

    sources: tuple[str, ...]
    output: str
    is_forced: bool
    reader: str | None
    mapping: str | None
    cluster: str | None
    #: None: the default
    max_quarantine_ratio: float | None
    master: str | None
    plugin_files: tuple[str, ...]
    form: str
    #: words of the command line, for the manifest
    command: Sequence[str]


def run_ingest(wanted: Wanted) -> int:
    """Read log files into tables and print how many rows they have.

    Raises:
        PulsarLookupError: in one sentence, for whatever the user has to change; the output is then as it was.
    """
    began, started = time.monotonic(), datetime.now(UTC).isoformat(timespec="seconds")
    registry = load_plugins(wanted.plugin_files)
    reader = load_reader(registry, name=wanted.reader, mapping=wanted.mapping)
    # Looked at before Spark, which takes seconds to start.
    files = list_files(wanted.sources)
    _require_apart(dict.fromkeys([*wanted.sources, *files]), wanted.output)
    require_free(wanted.output, force=wanted.is_forced)
    with progress("starting Spark") as tell, spark_session(wanted.master) as spark:
        tell(f"reading {quantity(len(files), 'file')} with {reader.name}")
        report = ingest(
            spark,
            wanted.sources,
            reader,
            wanted.output,
            cluster=wanted.cluster,
            force=wanted.is_forced,
            max_quarantine_ratio=_allowed(wanted),
            plugin_files=wanted.plugin_files,
        )
        facts = RunFacts(
            command=wanted.command,
            exit_code=0,
            settings={"reader": part_table(reader), "cluster": wanted.cluster},
            inputs={source: fingerprint(source) for source in wanted.sources},
            wall_clock={"started": started, "total_s": round(time.monotonic() - began, 3)},
            versions={"java": java_version(spark)},
        )
        write_beside(wanted.output, "manifest.json", manifest_json(facts, registry))
    _tell(report, wanted.form)
    return 0


def _require_apart(sources: Iterable[str], output: str) -> None:
    """Refuse sources that an ingest would replace or that hold what it writes: they would be gone, or read again."""
    for source in sources:
        for name in _REPLACED:
            replaced = f"{output.rstrip('/')}/{name}"
            found = relation(source, replaced)
            if found is not None:
                raise InputError(
                    f"source {source!r} {found} {replaced}, which --output {output} replaces; "
                    "name an output that has nothing to do with what is read"
                )


def _allowed(wanted: Wanted) -> float:
    return MAX_QUARANTINE_RATIO if wanted.max_quarantine_ratio is None else wanted.max_quarantine_ratio


def _tell(report: IngestReport, form: str) -> None:
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
