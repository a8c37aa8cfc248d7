"""Run the Spark tasks of an ingest, which read one source into staged tables, or write one part of a table.

This module does not use Spark. Jobs are built in `ingest.py`. A staged file holds the sorted rows of one piece of one
source, with `_order`, the row's number among all. It is the source's number in sorted order, then the row's.
"""

from __future__ import annotations

import pickle
import re
from bisect import bisect_left
from collections import Counter, deque
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import reduce
from operator import and_, or_
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from lookup.errors import InputError
from lookup.hooks import LogReader
from lookup.hooks.raised import MOST_ANSWERS, describe_error
from lookup.logs.columns import check_row
from lookup.logs.outputs import create_file
from lookup.logs.schema import CANONICAL, QUARANTINE, ROWS_PER_FILE, write_parquet
from lookup.logs.sources import locate, open_lines
from lookup.logs.unwrapping import Events
from lookup.model.documents import Refuted, Row, Unreadable
from lookup.model.quoting import printable
from lookup.model.time import FIRST_US, LAST_US, QUARTER_US, HalfDayClock

__all__ = [
    "MINUTE_US", "PartJob", "SourceJob", "SourceReport", "StagedFile", "read_source", "stitch_quarantine",
    "write_part",
]  # fmt: skip

#: µs of the cells in which rows are counted, so that parts of equal size can be cut without looking at rows again.
MINUTE_US = 60_000_000
#: Rows a task holds before it stages them.
_STAGED_ROWS = 100_000
#: Row groups of staged files are small, since a part reads only those groups that overlap its minutes.
_STAGED_GROUP = 32_768
#: Bits of `_order` and `seq` below the number of the source: 2^40 rows per source, 2^23 sources.
_ROW_BITS = 40
#: Lines whose beginnings are kept for the quarantine. A reader that pairs lines reports some of them late.
_KEPT_LINES = 5_000
_TEXT_LENGTH = 200
#: Characters of a reason that a sentence repeats.
_REASON_LENGTH = 300
#: Values within reasons, which are quoted texts and numbers.
_QUOTED = re.compile(r"'(?:[^'\\]|\\.)*'|\"(?:[^\"\\]|\\.)*\"")
_DIGITS = re.compile(r"\d+")
#: Hints for a user of `ingest`, by the reason for which a row is refused.
_HINTS = {
    "cluster is missing": "; give ingest the name of one",
    "an `owned` row names no broker": "; tell the reader whose log it is",
}
#: Time by which a line may be earlier than the lines before it, µs, since web servers write a request when it ends.
_LATE_US = 10_000_000
#: Examples of unreadable records that a message may show.
_EXAMPLES = 3


@dataclass(frozen=True, slots=True)
class SourceJob:
    """One source to read."""

    path: str
    #: number of the source among all sources, sorted
    number: int
    #: the reader, pickled, since its class may come from a plug-in file that a worker must load first
    reader: bytes
    cluster: str | None
    #: folder for staged files
    stage: str


@dataclass(frozen=True, slots=True)
class StagedFile:
    """Rows of one table, sorted by cluster, ts and their order in the source."""

    table: str
    path: str
    #: rows by (cluster, minute since the epoch)
    cells: Mapping[tuple[str, int], int]


@dataclass
class SourceReport:
    """The counts of one source, and the staged files that hold its rows."""

    path: str
    lines: int = 0
    #: lines that became rows and quarantined records, without skipped lines
    used_lines: int = 0
    #: lines that name columns, which are neither made of nor passed over
    header_lines: int = 0
    #: rows by table
    rows: Counter[str] = field(default_factory=Counter)
    #: quarantined records by kind of reason, which is the reason without its values
    reasons: Counter[str] = field(default_factory=Counter)
    #: by kind of reason the first reason itself, as sentences repeat it
    wordings: dict[str, str] = field(default_factory=dict)
    examples: list[str] = field(default_factory=list)
    staged: list[StagedFile] = field(default_factory=list)
    #: rows that are wrong, of any source
    refuted: list[Refuted] = field(default_factory=list)
    #: staged quarantine files, in order
    quarantine: list[str] = field(default_factory=list)
    #: rows whose times are full quarters of an hour
    quarters: int = 0
    #: rows that are earlier than one on a line before them by more than `_LATE_US`
    late: int = 0
    #: first and last time of any row, µs
    first_us: int = LAST_US
    last_us: int = FIRST_US
    #: whether times go to and fro as those of a clock of 12 hours do
    clock: HalfDayClock = field(default_factory=HalfDayClock)
    #: rows of LOOKUPS that have an answer
    answered: int = 0
    #: requests and answers of lookups that the bytes of the source have
    requests: int = 0
    answers: int = 0
    #: lookups whose time is that of an envelope around the line, by its key there
    borrowed: Counter[str] = field(default_factory=Counter)
    #: lines that a container runtime cut in parts, the last of which is missing
    unfinished: int = 0
    #: why the source could not be read to its end
    failure: str | None = None
    #: whether the failure is the reader's, not the file's
    is_reader_fault: bool = False

    @property
    def skipped(self) -> int:
        """The number of skipped lines, which is 0 for a reader that makes several records of a line."""
        return max(self.lines - self.used_lines - self.header_lines, 0)


@dataclass(frozen=True, slots=True)
class PartJob:
    """One part of a table to write, with a cluster's rows, or all rows if it is empty, in [from_us, until_us)."""

    table: str
    cluster: str
    from_us: int
    until_us: int
    staged: tuple[str, ...]
    #: rows to leave out
    refuted: tuple[Refuted, ...]
    #: path of the part without suffix. Further files of it get a number
    target: str


class _StageError(InputError):
    """An error in staging rows, which is not a fault of the source or its reader."""


def read_source(job: SourceJob) -> SourceReport:
    """Run the reader over one source and stage its rows."""
    reader: LogReader = pickle.loads(job.reader)
    stage = _Stage(job)
    lines = _Lines(
        Events(
            open_lines(job.path),
            keeps_objects=getattr(reader, "reads_objects", False),
            words=getattr(reader, "words", None),
        )
    )
    try:
        for number, entry in enumerate(reader.parse(lines, job.path)):
            if number > MOST_ANSWERS * (1 + lines.number):
                raise OverflowError(f"has more than {MOST_ANSWERS:,} rows a line")  # noqa: TRY301  the reader's fault
            stage.take(entry, lines)
        stage.flush()
        lines.pass_over_rest()
    except _StageError:
        raise
    except (OSError, EOFError, UnicodeError) as error:
        stage.report.failure = f"cannot be read: {error}"
    except (Exception, SystemExit) as error:  # noqa: BLE001  a plug-in's reader may raise anything; the driver names it
        position = f"line {lines.number}" if lines.number else "before it read a line"
        stage.report.failure = f"{position}: {describe_error(error)}"
        stage.report.is_reader_fault = True
    stage.report.lines = lines.number
    stage.report.requests, stage.report.answers = lines.events.requests, lines.events.answers
    stage.report.borrowed, stage.report.unfinished = lines.events.borrowed, lines.events.unfinished
    stage.report.header_lines = int(getattr(reader, "has_header", False))
    return stage.report


def write_part(job: PartJob) -> tuple[int, int]:
    """Write the rows of a part, ordered by (ts, seq), into one file or, of a minute with very many rows, several.

    Returns:
        The number of rows left out, refuted by a source, and of LOOKUPS equal to another in every column but `seq`.
    """
    moment = CANONICAL[job.table].field("ts").type
    is_inside = (pc.field("ts") >= pa.scalar(job.from_us, moment)) & (pc.field("ts") < pa.scalar(job.until_us, moment))
    if job.cluster:
        is_inside &= pc.field("cluster") == job.cluster
    pieces = []
    for path in job.staged:
        system, inner = locate(path)
        # Without partitioning: Arrow would take a folder `x=y` above the output for a column.
        pieces.append(pq.read_table(inner, filesystem=system, filters=is_inside, partitioning=None))
    # Sources without a `seq` of their own got `_order` for it. It also orders rows with the same `seq`.
    order = ("ts", "seq", "_order") if job.table == "lookups" else ("ts", "_order")
    staged = pa.concat_tables(pieces)
    wrong = [pc.coalesce(_match_refuted(refuted, job), pa.scalar(False)) for refuted in job.refuted]
    good = staged.filter(~reduce(or_, wrong)) if wrong else staged
    rows = good.sort_by([(name, "ascending") for name in order]).select(CANONICAL[job.table].names)
    for number, start in enumerate(range(0, rows.num_rows, ROWS_PER_FILE)):
        write_parquet(rows.slice(start, ROWS_PER_FILE), f"{job.target}-{number:02}.parquet")
    doubled = 0
    if job.table == "lookups":
        columns = [name for name in rows.column_names if name != "seq"]
        doubled = rows.num_rows - rows.group_by(columns, use_threads=False).aggregate([]).num_rows
    return staged.num_rows - rows.num_rows, doubled


def _match_refuted(refuted: Refuted, job: PartJob) -> pc.Expression:
    schema = CANONICAL[job.table]
    # The bounds are within those of the part, which are times, while a reader may give any numbers.
    bounds = max(refuted.from_us, job.from_us), min(refuted.until_us, job.until_us)
    first, last = (pa.scalar(ts, schema.field("ts").type) for ts in bounds)
    values = (pc.field(name) == pa.scalar(value, schema.field(name).type) for name, value in refuted.values.items())
    return reduce(and_, values, (pc.field("ts") >= first) & (pc.field("ts") < last))


def stitch_quarantine(staged: Sequence[str], target: str) -> None:
    """Join staged quarantine files into one. An empty quarantine is a table without rows."""
    with create_file(target) as sink, pq.ParquetWriter(sink, QUARANTINE, compression="zstd") as writer:
        for piece in staged:
            source, inner = locate(piece)
            writer.write_table(pq.read_table(inner, filesystem=source, schema=QUARANTINE))


class _Lines:
    """A counter of the lines that a reader reads, which keeps the beginnings of the latest."""

    def __init__(self, events: Events) -> None:
        self.events = events
        self._source = iter(events)
        self._latest: deque[tuple[int, str]] = deque(maxlen=_KEPT_LINES)
        self.number = 0

    def __iter__(self) -> Iterator[tuple[int, str]]:
        return self

    def __next__(self) -> tuple[int, str]:
        self.number, line = next(self._source)
        self._latest.append((self.number, line[:_TEXT_LENGTH]))
        return self.number, line

    def pass_over_rest(self) -> None:
        """Count the lines that a reader has not read. It may stop early, or open the source itself."""
        for number, _ in self._source:
            self.number = number

    def text(self, line: int) -> str | None:
        index = bisect_left(self._latest, line, key=lambda entry: entry[0])
        is_latest = index < len(self._latest) and self._latest[index][0] == line
        return self._latest[index][1] if is_latest else None


class _Stage:
    """A checker of the rows of one source, which stages them piece by piece."""

    def __init__(self, job: SourceJob) -> None:
        self._job = job
        self._rows: dict[str, list[dict[str, Any]]] = {}
        self._bad: list[dict[str, Any]] = []
        self._unwritten = 0
        self._taken = 0
        self._last_line = 0
        self.report = SourceReport(job.path)

    def take(self, entry: Row | Unreadable | Refuted, lines: _Lines) -> None:
        """Check one record of the reader, and keep it as a row or as a refusal."""
        # A line of which a reader makes several records counts once.
        self.report.used_lines += entry.line != self._last_line
        is_turned = entry.line < self._last_line
        self._last_line = entry.line
        if isinstance(entry, Refuted):
            # A value that no row of the table can have is a mistake of the reader.
            for name, value in entry.values.items():
                pa.scalar(value, CANONICAL[entry.table].field(name).type)
            self.report.refuted.append(entry)
            return
        if isinstance(entry, Unreadable):
            self._refuse(None, entry.line, entry.reason, entry.text[:_TEXT_LENGTH])
            return
        row = check_row(entry.table, entry.values, self._job.cluster)
        if isinstance(row, str):
            reason = row + _HINTS.get(row, "")
            self._refuse(
                entry.table, entry.line, reason, lines.text(entry.line) or str(dict(entry.values))[:_TEXT_LENGTH]
            )
            return
        # A reader that puts lines in the order of time yields earlier lines later.
        ts, report = row["ts"], self.report
        report.late += (ts - report.first_us if is_turned else report.last_us - ts) > _LATE_US
        report.first_us, report.last_us = min(report.first_us, ts), max(report.last_us, ts)
        report.clock.take(ts)
        self.report.quarters += row["ts"] % QUARTER_US == 0
        self._taken += 1
        row["_order"] = self._job.number << _ROW_BITS | self._taken
        if entry.table == "lookups":
            row.setdefault("seq", row["_order"])
            self.report.answered += "broker" in row or row["result"] != "unknown"
        self._rows.setdefault(entry.table, []).append(row)
        self.report.rows[entry.table] += 1
        self._count_row()

    def flush(self) -> None:
        """Stage the rows and refusals since the last flush."""
        for table, rows in self._rows.items():
            # Sorted like the parts, so that the filter of a part skips whole row groups.
            rows.sort(key=lambda row: (row["cluster"], row["ts"], row.get("seq", 0), row["_order"]))
            path = f"{self._job.stage}/{table}/{self._job.number:07}-{len(self.report.staged):05}.parquet"
            _write(pa.Table.from_pylist(rows, schema=CANONICAL[table].append(pa.field("_order", pa.int64()))), path)
            cells = Counter((row["cluster"], row["ts"] // MINUTE_US) for row in rows)
            self.report.staged.append(StagedFile(table, path, dict(cells)))
        if self._bad:
            path = f"{self._job.stage}/quarantine/{self._job.number:07}-{len(self.report.quarantine):05}.parquet"
            _write(pa.Table.from_pylist(self._bad, schema=QUARANTINE), path)
            self.report.quarantine.append(path)
        self._rows, self._bad, self._unwritten = {}, [], 0

    def _refuse(self, table: str | None, line: int, reason: str, text: str) -> None:
        # Half of a surrogate pair, which a reader may have made, cannot be written.
        clean = text.encode(errors="replace").decode()
        reason = reason.encode(errors="replace").decode()
        self._bad.append({"table": table, "source": self._job.path, "line": line, "reason": reason, "text": clean})
        # Reasons that differ in their values alone are counted as one.
        kind = _DIGITS.sub("N", _QUOTED.sub("'...'", reason))
        # A reader of a third party may put a whole record into its reason.
        sentence = printable(" ".join(reason.split()))
        if len(sentence) > _REASON_LENGTH:
            sentence = f"{sentence[:_REASON_LENGTH]}..."
        self.report.reasons[kind] += 1
        self.report.wordings.setdefault(kind, sentence)
        if len(self.report.examples) < _EXAMPLES:
            self.report.examples.append(f"{self._job.path}:{line}: {sentence}")
        self._count_row()

    def _count_row(self) -> None:
        self._unwritten += 1
        if self._unwritten >= _STAGED_ROWS:
            self.flush()


def _write(table: pa.Table, path: str) -> None:
    try:
        with create_file(path) as sink:
            pq.write_table(table, sink, row_group_size=_STAGED_GROUP, compression="zstd")
    except OSError as error:
        raise _StageError(f"{error.filename or path}: {error.strerror or error}") from error
