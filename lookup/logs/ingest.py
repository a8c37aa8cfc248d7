"""Read log files into canonical tables, with one task per source, then one task per part of a table.

Tasks are in `ingest_tasks.py`, rules for rows in `columns.py`, the layout of files in `schema.py`. The number of
workers does not change the result. Rows are ordered by (ts, seq), where `seq` is the place of source and row.
"""

from __future__ import annotations

import math
import os
import pickle
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache, reduce
from itertools import chain, count
from operator import add
from pathlib import Path

from lookup.engine.build import PartBuilder
from lookup.engine.plugins import PluginContents, Registry, contents_of, load_contents
from lookup.errors import Argument, InputError, PluginError, Sentence, SettingsError
from lookup.hooks import LogReader
from lookup.logs import ingest_tasks as tasks
from lookup.logs.jobs import Workers, run_tasks
from lookup.logs.outputs import draft, remove_folder
from lookup.logs.readers.delimited import DelimitedReader
from lookup.logs.schema import CANONICAL, ROWS_PER_FILE
from lookup.logs.sources import list_files, locate, open_lines
from lookup.logs.unwrapping import Events
from lookup.model.documents import Refuted
from lookup.model.names import cluster_problem
from lookup.model.quoting import quantity, shown
from lookup.model.time import likelier_unit, moment_at
from lookup.settings.files import read_toml
from lookup.settings.policy import PartSpec
from lookup.settings.shipped import shipped_path

__all__ = [
    "MAX_QUARANTINE_RATIO", "NO_HALF_DAYS", "QUARANTINE_TABLE", "IngestReport", "borrowed_clocks", "check_mapping",
    "ingest", "load_reader", "reader_of",
]  # fmt: skip

#: Share of records that may be unreadable by default.
MAX_QUARANTINE_RATIO = 0.05
#: Folder of the records that could not be used.
QUARANTINE_TABLE = "quarantine"

#: Why a clock of 12 hours cannot be read.
NO_HALF_DAYS = (
    "its times jump between 12 and 1 o'clock, and no hour is above 12: its clock has 12 hours, and AM and PM are "
    "missing; write them with AM and PM, or with 24 hours"
)

#: Reasons that a message lists.
_SHOWN_REASONS = 3


@dataclass(frozen=True)
class IngestReport:
    """The counts of an ingest, which are lines read, rows written, and records in quarantine."""

    #: the sources, in the order that breaks ties of time
    files: tuple[str, ...]
    #: lines of all sources, and how many of them the reader passed over
    lines: int
    skipped: int
    #: rows written, by table
    rows: Mapping[str, int]
    clusters: tuple[str, ...]
    #: quarantined records by reason, most frequent first. Reasons that differ in values only count as the first
    quarantined: Mapping[str, int]
    #: sources no line of which was a record that could be used, and their lines
    unread: Mapping[str, int]
    #: rows whose times are full quarters of an hour, which are all rows of a log with dates only
    quarters: int
    #: rows more than ten seconds earlier than a row on a line before, by source, without sources that have none
    late: Mapping[str, int]
    #: rows of LOOKUPS equal to another. Logs with times in seconds have some, and half of a log read twice are
    doubled: int
    #: first and last timestamp of any row, µs since the Unix epoch
    first_us: int
    last_us: int
    output: str
    #: sentences about lookups that the bytes of the sources have and no row has, or that lack their answers
    lost: tuple[str, ...] = ()
    #: sentences about times that are not those of the lines
    clocks: tuple[str, ...] = ()

    @property
    def quarantine_ratio(self) -> float:
        """The share of records that went to quarantine."""
        bad = sum(self.quarantined.values())
        return bad / (bad + sum(self.rows.values()))


def load_reader(
    registry: Registry, *, reader: str | None = None, mapping: str | os.PathLike[str] | None = None
) -> LogReader:
    """Build a reader by its name, by a mapping file, or by both.

    Args:
        registry: of all plug-ins, including files of the user.
        reader: its name. It may be left out if the mapping has `use`, and must agree with it.
        mapping: a TOML file with the reader's parameters, or `shipped:NAME`. Without it they have their defaults. With
            `use = "shipped:NAME"`, parameters that it does not give come from the shipped mapping of that name.

    Raises:
        SettingsError: with all mistakes together, each with the file and the key.
    """
    parameters = {} if mapping is None else read_toml(Path(shipped_path(os.fspath(mapping))))
    where = Argument("reader") if mapping is None else str(mapping)
    return reader_of(registry, parameters, where, reader=reader)


def reader_of(
    registry: Registry, parameters: Mapping[str, object], where: str | Argument, *, reader: str | None = None
) -> LogReader:
    """Build a reader from the content of a mapping file. Arguments and errors are those of `load_reader`.

    Args:
        where: name of the mapping in error messages.
    """
    endless = [f"{where}: {key} is {value}, not a finite number" for key, value in _find_infinite(parameters)]
    if endless:
        raise SettingsError(endless)
    parameters = dict(parameters)
    use = parameters.pop("use", None)
    if use is not None and not isinstance(use, str):
        raise SettingsError(f"{where}: use = {shown(use)} is not the name of a log reader")
    below = None if use is None else shipped_path(use)
    if below is not None and below != use:
        parameters = {**read_toml(Path(below)), **parameters}
        use = parameters.pop("use", None)
        if not isinstance(use, str) or use not in registry.classes["log_readers"]:
            raise SettingsError(f"{where}: use = {shown(f'shipped:{Path(below).stem}')} is not a mapping of a log")
    if reader and use and reader != use:
        says = f" says {shown(reader)}; leave one out"
        raise SettingsError(where, f" says use = {shown(use)}, but ", Argument("reader"), says)
    chosen = reader or use
    if not chosen:
        either, says = Argument("reader", "NAME"), ' file that says use = "NAME"'
        raise SettingsError("which log reader? give ", either, ", or a ", Argument("mapping"), says)
    builder = PartBuilder(registry)
    # `weight` is a parameter of a reader here, not a factor of a scorer.
    built: LogReader = builder.part("log_readers", PartSpec(use=chosen, parameters=parameters), str(where))
    if builder.problems:
        # The builder puts the place before each problem, as text.
        raise SettingsError([Sentence(where, problem.removeprefix(str(where))) for problem in builder.problems])
    return built


def _find_infinite(parameters: Mapping[str, object], above: str = "") -> Iterator[tuple[str, float]]:
    for key, value in parameters.items():
        if isinstance(value, Mapping):
            yield from _find_infinite(value, f"{above}{key}.")
        elif isinstance(value, float) and not math.isfinite(value):
            yield f"{above}{key}", value


def check_mapping(reader: LogReader, files: Sequence[str], cluster: str | None) -> None:
    """Refuse a mapping that matches no row, before all files are read."""
    if not isinstance(reader, DelimitedReader):
        return
    if not reader.cluster and cluster is None:
        raise InputError("the mapping says no `cluster`; give ", Argument("cluster", "NAME"), ", or a column")
    if files:
        try:
            problem = reader.problem_of(iter(Events(open_lines(files[0]), keeps_objects=reader.reads_objects)))
        except (OSError, EOFError):
            return  # the task that reads the source reports that it cannot be read
        if problem is not None:
            raise InputError(f"{files[0]}: {problem}")


def ingest(  # noqa: PLR0913  the options of an ingest, by keyword
    workers: Workers,
    sources: Sequence[str],
    reader: LogReader,
    output: str,
    *,
    cluster: str | None = None,
    force: bool = False,
    max_quarantine_ratio: float = MAX_QUARANTINE_RATIO,
    plugin_files: Sequence[str] = (),
    ready: Callable[[Sequence[str], str], None] = lambda files, folder: None,
    manifest: Callable[[], bytes] | None = None,
) -> IngestReport:
    """Read sources into canonical tables below `output`.

    These are `lookups`, the reader's other tables and `quarantine`.

    Args:
        workers: a Spark session, or this process, for reading.
        sources: files, directories, globs or URIs of any file system that Arrow supports.
        output: directory that must not exist or be empty. With `force` its tables are replaced, other files in it stay.
        cluster: name for rows whose source does not name their cluster.
        max_quarantine_ratio: share of unreadable records, in [0, 1], above which nothing is written.
        plugin_files: the plain Python files among the plug-ins, one of which may define the reader.
        manifest: returns the content of `manifest.json`, which appears with the tables.
        ready: called before any task runs, with the files to read, and the folder into which tasks will write.

    Raises:
        InputError: with the unusable cluster, source, column or share. `output` is then unchanged.
        PluginError: if the reader itself fails.
    """
    problem = None if cluster is None else cluster_problem(cluster)
    if problem is not None:
        raise InputError(Argument("cluster"), f": {problem}")
    # Absolute, so that a path means the same in every worker.
    files = list_files([source if "://" in source else locate(source)[1] for source in map(str, sources)])
    check_mapping(reader, files, cluster)

    def read(job: tasks.SourceJob, shipped: PluginContents) -> tasks.SourceReport:
        _load_shipped(shipped)
        return tasks.read_source(job)

    with draft(str(output), (*CANONICAL, QUARANTINE_TABLE, "manifest.json"), force=force) as target:
        ready(files, target.path)
        stage = f"{target.path}/.stage"
        packed = pickle.dumps(reader)
        jobs = [tasks.SourceJob(path, number, packed, cluster, stage) for number, path in enumerate(files)]
        # Python's collector stays on, since a plug-in's reader may create a cycle for each line of its source.
        reports = run_tasks(workers, jobs, contents_of(plugin_files), read, pauses_collector=False)
        _require_readable(reports, reader, max_quarantine_ratio)
        _require_likely_times(reports, reader)
        staged = [file for report in reports for file in report.staged]
        refuted = [entry for report in reports for entry in report.refuted]
        parts = list(_plan_parts(staged, refuted, target.path))
        rows = sum(report.rows.total() for report in reports)
        written = run_tasks(workers, parts, None, lambda part, _: tasks.write_part(part), rows=rows)
        tasks.stitch_quarantine(
            [path for report in reports for path in report.quarantine],
            f"{target.path}/{QUARANTINE_TABLE}/part-00000.parquet",
        )
        system, inner = locate(stage)
        remove_folder(system, inner)
        wrong: Counter[str] = Counter()
        for part, (refuted_rows, _) in zip(parts, written, strict=True):
            wrong[part.table] += refuted_rows
        report = _build_report(files, reports, wrong, sum(doubled for _, doubled in written), str(output))
        report = replace(report, lost=tuple(_describe_lost(reports, reader)))
        if manifest is not None:
            target.write("manifest.json", manifest())
    return report


@lru_cache(maxsize=1)
def _load_shipped(plugin_files: PluginContents) -> None:
    if plugin_files:
        load_contents(plugin_files)


def _require_readable(reports: Sequence[tasks.SourceReport], reader: LogReader, most: float) -> None:
    for report in reports:
        if report.failure and report.is_reader_fault:
            raise PluginError(f"log reader {reader.name!r} failed in {report.path}, {report.failure}")
        if report.failure:
            raise InputError(f"{report.path} {report.failure}")
    good = sum(report.rows.total() for report in reports)
    bad = sum(report.reasons.total() for report in reports)
    if not good and not bad:
        lines = sum(report.lines for report in reports)
        where = reports[0].path if len(reports) == 1 else f"{reports[0].path} and {len(reports) - 1} more"
        if lines and getattr(reader, "has_header", False) and all(report.lines <= 1 for report in reports):
            raise InputError(f"{where}: has a header and no record below it")
        content = f"none of its {quantity(lines, 'line')} is" if lines else "it is empty: not one line is"
        expected = getattr(reader, "expects", "")
        hint = f"; it expects {expected}" if expected else ""
        raise InputError(f"{where}: {content} a record that log reader {reader.name!r} knows{hint}")
    examples = "; ".join([example for report in reports for example in report.examples][:_SHOWN_REASONS])
    if bad > most * (good + bad):
        allowed = Argument("max_quarantine_ratio", most)
        raise InputError(
            f"{bad:,} of {good + bad:,} records cannot be read, more than ",
            allowed,
            f" allows; for instance {examples}",
        )
    if not good:
        raise InputError(
            f"none of the {bad:,} records can be read, so there is no row to write; for instance {examples}"
        )


def _require_likely_times(reports: Sequence[tasks.SourceReport], reader: LogReader) -> None:
    for report in reports:
        is_delimited = isinstance(reader, DelimitedReader)
        form = str(reader.timestamp.get("format", "iso")) if isinstance(reader, DelimitedReader) else "unix_us"
        unit = likelier_unit(report.first_us, form) if report.rows else None
        if unit not in (None, form) and unit == likelier_unit(report.last_us, form):
            year = moment_at(report.first_us).year
            right = f"`timestamp` of the mapping has the format {form!r}" if is_delimited else "`ts` takes counts of µs"
            raise InputError(f"{report.path}: its times are of the year {year}; they look like {unit!r}, but {right}")
        if is_delimited and report.clock.lacks_half_days:
            raise InputError(f"{report.path}: {NO_HALF_DAYS}")


def _plan_parts(staged: Sequence[tasks.StagedFile], refuted: Sequence[Refuted], folder: str) -> Iterator[tasks.PartJob]:
    """Cut every table into parts of at most `ROWS_PER_FILE` rows: LOOKUPS by cluster and day, others by time alone."""
    for table in dict.fromkeys(file.table for file in staged):
        # Rows by staged file and minute, for each cluster and day. Both are empty if files hold all of them.
        cells: dict[tuple[str, str], dict[int, Counter[str]]] = {}
        for file in (file for file in staged if file.table == table):
            for (owner, minute), rows in file.cells.items():
                cluster, day = "", ""
                if table == "lookups":
                    cluster, day = owner, f"-{moment_at(minute * tasks.MINUTE_US).date().isoformat()}"
                cells.setdefault((cluster, day), {}).setdefault(minute, Counter())[file.path] += rows
        numbers = count()
        for (cluster, day), minutes in sorted(cells.items()):
            for first, last in _cut_runs({minute: minutes[minute].total() for minute in minutes}):
                inside = (minutes[minute] for minute in sorted(minutes) if first <= minute <= last)
                yield tasks.PartJob(
                    table=table,
                    cluster=cluster,
                    from_us=first * tasks.MINUTE_US,
                    until_us=(last + 1) * tasks.MINUTE_US,
                    # A part opens only the staged files that have rows of its cluster in its minutes.
                    staged=tuple(dict.fromkeys(chain.from_iterable(inside))),
                    refuted=tuple(
                        entry
                        for entry in refuted
                        if entry.table == table
                        and entry.from_us < (last + 1) * tasks.MINUTE_US
                        and first * tasks.MINUTE_US < entry.until_us
                    ),
                    target=f"{folder}/{table}/part-{next(numbers):05}{day}",
                )


def _cut_runs(minutes: Mapping[int, int]) -> Iterator[tuple[int, int]]:
    """Group minutes, first and last of each group, so that a group has at most `ROWS_PER_FILE` rows or one minute."""
    ordered = sorted(minutes)
    first, rows = 0, 0
    for index, minute in enumerate(ordered):
        if rows and rows + minutes[minute] > ROWS_PER_FILE:
            yield ordered[first], ordered[index - 1]
            first, rows = index, 0
        rows += minutes[minute]
    if ordered:
        yield ordered[first], ordered[-1]


def _build_report(
    files: Sequence[str], reports: Sequence[tasks.SourceReport], left_out: Counter[str], doubled: int, output: str
) -> IngestReport:
    rows, reasons = Counter[str](), Counter[str]()
    for report in reports:
        rows.update(report.rows)
        reasons.update(report.reasons)
    rows.subtract(left_out)
    # Reversed, so that the first source's wording of a reason overwrites those of later ones.
    wordings = {kind: reason for report in reversed(reports) for kind, reason in report.wordings.items()}
    cells = [cell for report in reports for file in report.staged for cell in file.cells]
    return IngestReport(
        files=tuple(files),
        lines=sum(report.lines for report in reports),
        skipped=sum(report.skipped for report in reports),
        rows={name: rows[name] for name in CANONICAL if rows[name]},
        clusters=tuple(sorted({cluster for cluster, _ in cells})),
        quarantined={wordings[kind]: count for kind, count in reasons.most_common()},
        first_us=min(report.first_us for report in reports),
        # There are lines below a header, but none of them is a row or a refuted row.
        unread={r.path: r.lines for r in reports if r.lines > r.header_lines and not r.rows and not r.refuted},
        quarters=sum(report.quarters for report in reports),
        late={report.path: report.late for report in reports if report.late},
        doubled=doubled,
        last_us=max(report.last_us for report in reports),
        output=output,
        clocks=tuple(borrowed_clocks(reduce(add, (report.borrowed for report in reports)))),
    )


def _describe_lost(reports: Sequence[tasks.SourceReport], reader: LogReader) -> Iterator[str]:
    # A mapping that selects records leaves out others on purpose.
    if getattr(reader, "only", None):
        return
    requests, answers = (sum(getattr(each, name) for each in reports) for name in ("requests", "answers"))
    rows = sum(report.rows["lookups"] for report in reports)
    answered, bad = sum(report.answered for report in reports), sum(report.reasons.total() for report in reports)
    inside = f"the files have {quantity(requests, 'request')} and {quantity(answers, 'answer')} of lookups in them"
    if rows + bad < max(requests, answers):
        yield f"{inside}, but log reader {reader.name!r} found only {quantity(rows, 'lookup')} and {bad:,} to refuse"
    elif requests and answers and answered + bad < answers:
        few = f"only {answered:,} of the" if answered else "none of the"
        yield f"{inside}, but {few} {rows:,} rows of LOOKUPS has an answer"
    lines = sum(report.unfinished for report in reports)
    if lines:
        yield f"{quantity(lines, 'line')} that a container runtime cut in parts: the last part is missing"


def borrowed_clocks(borrowed: Mapping[str, int]) -> Iterator[str]:
    """Yield a sentence for each clock but the broker's that lookups have their times from."""
    for key, times in borrowed.items():
        whose = "the container runtime's" if key == "runtime" else f"the collector's, of its key `{key}`"
        are = "is" if times == 1 else "are"
        yield f"{quantity(times, 'time')} {are} {whose}, not the broker's: its lines have none of their own"
