"""Reading one source, without Spark: what is counted, and what is said of what cannot be used."""

from __future__ import annotations

import pickle
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar

import pytest

from lookup.hooks import LogReader
from lookup.logs.ingest_tasks import MINUTE_US, PartJob, SourceJob, SourceReport, read_source, write_part
from lookup.logs.readers import CsvReader, JsonLinesReader
from lookup.model.documents import Refuted, Row, Unreadable

_TOPIC = "persistent://t/ns/x"


@dataclass(frozen=True)
class Apart:
    """A reader that leaves the lines alone, as one does that opens the source itself."""

    name: ClassVar[str] = "apart"

    #: rows that it yields, all of the first line
    rows: int = 0
    is_failing: bool = False
    reason: str = ""

    def parse(self, lines: Iterator[tuple[int, str]], source: str) -> Iterator[Row | Unreadable]:
        """Yield rows of no line in particular."""
        if self.is_failing:
            raise KeyError("nothing")
        for number in range(self.rows):
            yield Row("lookups", number + 1, {"ts": number, "topic": _TOPIC, "cluster": "c"})
        if self.reason:
            yield Unreadable(1, self.reason, "")


@dataclass(frozen=True)
class Impatient:
    """A reader that stops after the first line."""

    name: ClassVar[str] = "impatient"

    def parse(self, lines: Iterator[tuple[int, str]], source: str) -> Iterator[Row | Unreadable]:
        """Yield one row."""
        number, _ = next(lines)
        yield Row("lookups", number, {"ts": 0, "topic": _TOPIC, "cluster": "c"})


@dataclass(frozen=True)
class Denying:
    """A reader that refutes rows."""

    name: ClassVar[str] = "denying"

    values: Mapping[str, Any]
    until_us: int = 2**80

    def parse(self, lines: Iterator[tuple[int, str]], source: str) -> Iterator[Row | Refuted]:
        """Yield a row and what refutes it."""
        yield Row("lookups", 1, {"ts": 5, "topic": _TOPIC, "cluster": "c"})
        yield Refuted("lookups", 1, -(2**80), self.until_us, self.values)


def _read(folder: Path, reader: LogReader, text: str) -> SourceReport:
    path = folder / "a.log"
    path.write_text(text, encoding="utf-8")
    return read_source(SourceJob(str(path), 0, pickle.dumps(reader), "c", str(folder / "stage")))


@pytest.mark.parametrize(
    ("reader", "counts"), [(Apart(), (3, 3)), (Apart(rows=2), (3, 1)), (Apart(rows=7), (3, 0)), (Impatient(), (3, 2))]
)
def test_lines_are_counted_whoever_reads_them(tmp_path: Path, reader: LogReader, counts: tuple[int, int]) -> None:
    """Lines that a reader leaves count as passed over; more records than lines leave none, and never fewer."""
    report = _read(tmp_path, reader, "a\nb\nc\n")

    assert (report.lines, report.skipped) == counts


@pytest.mark.parametrize("values", [{"colour": "red"}, {"topic": 5}])
def test_a_reader_that_refutes_by_what_no_row_has_is_at_fault(tmp_path: Path, values: Mapping[str, Any]) -> None:
    """The mistake is found while its source is read, and is the reader's."""
    report = _read(tmp_path, Denying(values), "a\n")

    assert report.failure is not None
    assert report.failure.startswith("before it read a line: ")
    assert report.is_reader_fault


@pytest.mark.parametrize(("until_us", "left"), [(2**80, 0), (5, 1)])
def test_rows_may_be_refuted_for_all_time(tmp_path: Path, until_us: int, left: int) -> None:
    """Bounds need not be times; the last is not within."""
    report = _read(tmp_path, Denying({"topic": _TOPIC}, until_us), "a\n")
    (staged,) = report.staged
    part = PartJob("lookups", "c", 0, MINUTE_US, (staged.path,), tuple(report.refuted), str(tmp_path / "part"))

    refuted, _ = write_part(part)

    assert refuted == 1 - left
    assert len(list(tmp_path.glob("part-*.parquet"))) == left


def test_a_reader_that_yields_for_ever_is_at_fault(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """More rows than any line has, while it reads no further line."""
    monkeypatch.setattr("lookup.logs.ingest_tasks.MOST_ANSWERS", 5)

    endless, long = (_read(tmp_path, Apart(rows=rows), "a\nb\n") for rows in (10, 5))

    assert (endless.is_reader_fault, "has more than 5 rows a line" in endless.failure) == (True, True)
    assert not long.is_reader_fault


def test_a_reader_that_fails_before_any_line_has_no_line_to_name(tmp_path: Path) -> None:
    """There is no line 0."""
    report = _read(tmp_path, Apart(is_failing=True), "a\n")

    assert report.is_reader_fault
    assert report.failure is not None
    assert "KeyError: 'nothing' (test_ingest_tasks.py, " in report.failure


def test_reasons_are_grouped_and_the_first_of_each_is_told(tmp_path: Path) -> None:
    """Numbers and quoted values make no other reason, and what stands for a group was said of a real record."""
    lines = ["ts,topic", f"noon,{_TOPIC}", f"12 o'clock,{_TOPIC}", "7", "7,8,9"]

    report = _read(tmp_path, CsvReader(), "\n".join(lines))

    columns, noon = sorted((report.wordings[kind], count) for kind, count in report.reasons.items())
    assert (columns[0][:9], columns[1]) == ("1 values ", 2)
    assert (noon[0][:16], noon[1]) == ("timestamp 'noon'", 2)


def test_a_reason_of_somebodys_own_reader_is_escaped_and_cut(tmp_path: Path) -> None:
    """A third party may put a whole record into its reason; the quarantine keeps it, sentences do not."""
    report = _read(tmp_path, Apart(reason="bad \x1b[31m\n" * 500), "a\n")

    (said,) = report.wordings.values()
    assert said.isprintable()
    assert said.startswith(r"bad \x1b[31m bad \x1b[31m")
    assert len(said) == 303
    assert report.examples == [f"{tmp_path / 'a.log'}:1: {said}"]


def test_rows_that_are_nested_too_deep_go_to_quarantine(tmp_path: Path) -> None:
    """The limit of every text holds for a line and for what a column holds."""
    deep = f"{'[' * 65}{']' * 65}"
    lines = [deep, f'{{"ts": 1, "topic": "{_TOPIC}", "properties": "{deep}"}}', f'{{"ts": 1, "topic": "{_TOPIC}"}}']

    report = _read(tmp_path, JsonLinesReader(), "\n".join(lines))

    assert report.rows == {"lookups": 1}
    starts = [text.partition(" is nested too deep")[0] for text in report.wordings.values()]
    assert sorted(starts) == ["properties", "the line"]
