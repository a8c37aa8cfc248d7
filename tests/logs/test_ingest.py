"""From log files to canonical tables."""

from __future__ import annotations

import gzip
import json
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyspark.sql import SparkSession

from lookup.engine.plugins import load_plugins
from lookup.errors import InputError, PluginError
from lookup.hooks import LogReader
from lookup.logs import ingest as module
from lookup.logs.ingest import ingest
from lookup.logs.jobs import InProcess
from lookup.logs.readers import DelimitedReader, JsonLinesReader, PulsarBrokerReader
from lookup.logs.schema import CANONICAL, QUARANTINE
from lookup.model.time import FIRST_US, LAST_US

pytestmark = pytest.mark.spark

_DAY_US = 86_400_000_000


def _line(ts: int, topic: str = "x", **values: Any) -> str:
    return json.dumps({"ts": ts, "topic": f"persistent://t/ns/{topic}", **values}) + "\n"


def _files(folder: Path, **texts: str) -> list[str]:
    paths = {name: folder / f"{name}.jsonl" for name in texts}
    for name, text in texts.items():
        paths[name].write_text(text)
    return [str(path) for path in paths.values()]


def _table(folder: Path) -> list[dict[str, Any]]:
    """Read all rows of a table, file by file in the order of paths."""
    return [row for file in sorted(folder.iterdir()) for row in _rows(file)]


def _rows(file: Path) -> list[dict[str, Any]]:
    return list(pq.ParquetFile(file).read().to_pylist())


def _micros(row: dict[str, Any]) -> int:
    return int(row["ts"].timestamp()) * 1_000_000 + int(row["ts"].microsecond)


@pytest.mark.shared
def test_the_nasa_trace_is_ingested_by_its_mapping(
    spark: SparkSession, shared_data: Path, nasa_reader: DelimitedReader, tmp_path: Path
) -> None:
    """All 30,969 requests are in one file of the canonical schema, in the order of time and of the source."""
    report = ingest(spark, [str(shared_data / "nasa_http_19950801.tsv")], nasa_reader, str(tmp_path / "nasa"))

    assert (report.rows, report.clusters, report.quarantined) == ({"lookups": 30_969}, ("nasa",), {})
    (file,) = (tmp_path / "nasa" / "lookups").rglob("*.parquet")
    assert file.relative_to(tmp_path / "nasa") == Path("lookups/part-00000-1995-08-01-00.parquet")
    table = pq.ParquetFile(file).read()
    assert table.schema.equals(CANONICAL["lookups"])
    order = list(zip(table["ts"].cast(pa.int64()).to_pylist(), table["seq"].to_pylist(), strict=True))
    assert order == sorted(order)
    assert (
        spark.read.parquet(str(tmp_path / "nasa" / "lookups")).where('properties = \'{"rack":"com"}\'').count() == 6348
    )


def test_rows_are_parted_by_cluster_and_day_and_ordered_by_time_then_source(
    spark: SparkSession, tmp_path: Path
) -> None:
    """Equal times keep the order of sorted paths and of lines, whatever the order of arguments."""
    late = _line(_DAY_US, "c") + _line(5, "d", cluster="west") + _line(9, "e") + _line(9, "f")
    (first,) = _files(tmp_path, b=late)
    packed = tmp_path / "c.jsonl.gz"
    packed.write_bytes(gzip.compress((_line(9, "g") + _line(1, "h")).encode()))
    report = ingest(spark, [str(packed), first], JsonLinesReader(), str(tmp_path / "out"), cluster="east")

    assert report.rows == {"lookups": 6}
    assert report.clusters == ("east", "west")
    assert (report.first_us, report.last_us) == (1, _DAY_US)
    files = (tmp_path / "out" / "lookups").iterdir()
    rows = {file.name: [row["cluster"] + row["topic"][-2:] for row in _rows(file)] for file in files}
    assert rows == {
        "part-00000-1970-01-01-00.parquet": ["east/h", "east/e", "east/f", "east/g"],
        "part-00001-1970-01-02-00.parquet": ["east/c"],
        "part-00002-1970-01-01-00.parquet": ["west/d"],
    }


def test_every_table_a_reader_finds_is_written(spark: SparkSession, tmp_path: Path) -> None:
    """A broker's log gives lookups and ownership; lines of other business are counted, unreadable ones kept."""
    stamp = "2026-01-31T12:00:00,000+0000 [t] INFO  a.L - "
    bundle = "public/default/0x40000000_0x80000000"
    lines = [
        f"{stamp}Failed to lookup null for topic persistent://public/default/x with error y",
        f"{stamp}Selected new owner broker: b2:8080 for bundle: {bundle}.",
        f"{stamp}Failed to lookup null for topic public/default/[a-z] with error y",
        f"{stamp}noise",
        "\tat org.apache.X.y(X.java:7)",
    ]
    log = tmp_path / "broker.log"
    log.write_text("\n".join(lines))
    report = ingest(
        spark, [str(log)], PulsarBrokerReader(), str(tmp_path / "out"), cluster="east", max_quarantine_ratio=0.5
    )

    assert (report.lines, report.skipped, report.rows) == (5, 2, {"lookups": 1, "ownership": 1})
    assert report.quarantine_ratio == pytest.approx(1 / 3)
    (reason,) = report.quarantined
    assert "is a regular expression" in reason
    assert "..." not in reason
    (owned,) = _table(tmp_path / "out" / "ownership")
    assert (owned["cluster"], owned["bundle"], owned["event"], owned["broker"]) == ("east", bundle, "owned", "b2:8080")
    assert pq.read_schema(next((tmp_path / "out" / "quarantine").iterdir())).equals(QUARANTINE)
    (bad,) = _table(tmp_path / "out" / "quarantine")
    assert bad == {"table": "lookups", "source": str(log), "line": 3, "reason": bad["reason"], "text": lines[2]}
    assert "'public/default/[a-z]' is a regular expression" in bad["reason"]


def test_rows_that_another_source_refutes_are_left_out(tmp_path: Path) -> None:
    """The leader's log says that a broker which another had chosen was dead: that row goes, others of its time stay."""
    chosen, other = ("public/default/0x00000000_0x80000000", "public/default/0x80000000_0xffffffff")
    selected = "12:00:00,{ms}+0000 [x] INFO  a.B - Selected new owner broker: b2:8080 for bundle: {bundle}.\n"
    (tmp_path / "chooser.log").write_text(
        "".join(f"2026-01-31T{selected.format(ms=ms, bundle=bundle)}" for ms, bundle in ((100, chosen), (101, other)))
        + "2026-01-31T12:00:00,102+0000 [x] INFO  a.B - Successfully acquired ownership of "
        f"OwnedBundle(bundle={chosen}, isActive=1)\n"
    )
    state = "ServiceUnitStateData[state={}, dstBroker={}, sourceBroker=null, force=true, timestamp={}, versionId=1]"
    orphan, after = (
        state.format("Assigning", "b2:8080", 1_769_860_800_103),
        state.format("Free", "null", 1_769_860_812_000),
    )
    (tmp_path / "leader.log").write_text(
        "2026-01-31T12:00:12,000+0000 [x] INFO  a.B - Overriding inactiveBroker:b2:8080, "
        f"ownership serviceUnit:{chosen} from orphanData:{orphan} to overrideData:{after}\n"
    )

    report = ingest(
        InProcess(),
        [str(tmp_path / "chooser.log"), str(tmp_path / "leader.log")],
        PulsarBrokerReader(broker="b2:8080"),
        str(tmp_path / "out"),
        cluster="east",
    )

    rows = [(row["bundle"], row["by"]) for row in _table(tmp_path / "out" / "ownership")]
    assert rows == [(other, "policy"), (chosen, None)]
    assert report.rows == {"ownership": 2}


@pytest.mark.parametrize("timestamp", ["9223372036854775807", "253402300799999"])
def test_a_refuted_choice_at_no_time_refutes_nothing(tmp_path: Path, timestamp: str) -> None:
    """A record may bear any number for its time; rows stay as they are."""
    bundle = "public/default/0x00000000_0x80000000"
    state = "ServiceUnitStateData[state={}, dstBroker={}, sourceBroker=null, force=true, timestamp={}, versionId=1]"
    orphan, after = state.format("Assigning", "b2:8080", timestamp), state.format("Free", "null", "1")
    (tmp_path / "leader.log").write_text(
        f"2026-01-31T12:00:00,100+0000 [x] INFO  a.B - Selected new owner broker: b2:8080 for bundle: {bundle}.\n"
        "2026-01-31T12:00:12,000+0000 [x] INFO  a.B - Overriding inactiveBroker:b2:8080, "
        f"ownership serviceUnit:{bundle} from orphanData:{orphan} to overrideData:{after}\n"
    )

    report = ingest(
        InProcess(), [str(tmp_path / "leader.log")], PulsarBrokerReader(), str(tmp_path / "out"), cluster="east"
    )

    assert report.rows == {"ownership": 1}


def test_rows_that_break_the_schema_go_to_quarantine_with_their_line(spark: SparkSession, tmp_path: Path) -> None:
    """Rows that the reader lets pass are still checked: topic, weight and cluster; the text of the line is kept."""
    good = _line(1) * 20
    (path,) = _files(tmp_path, a=good + _line(2, weight=-1) + '{"ts":3,"topic":"orders"}\n')
    report = ingest(spark, [path], JsonLinesReader(), str(tmp_path / "out"), cluster="east", max_quarantine_ratio=0.1)

    assert report.rows == {"lookups": 20}
    bad = _table(tmp_path / "out" / "quarantine")
    assert [(row["table"], row["line"], row["reason"].partition(":")[0]) for row in bad] == [
        ("lookups", 21, "weight"),
        ("lookups", 22, "topic"),
    ]
    assert bad[1]["text"] == '{"ts":3,"topic":"orders"}'


def test_parts_are_cut_at_minutes_and_the_whole_stays_in_order(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A table is cut into parts of so many rows; read in the order of their names they are one order of time."""
    monkeypatch.setattr(module, "ROWS_PER_FILE", 10)
    texts = {
        f"f{number}": "".join(_line((7 * step + number) % 20 * 30_000_000) for step in range(20)) for number in (1, 2)
    }
    ingest(spark, _files(tmp_path, **texts), JsonLinesReader(), str(tmp_path / "out"), cluster="c")

    parts = sorted((tmp_path / "out" / "lookups").rglob("*.parquet"))
    assert [pq.read_metadata(part).num_rows for part in parts] == [8, 8, 8, 8, 8]
    order = [(_micros(row), row["seq"]) for row in _table(tmp_path / "out" / "lookups")]
    assert order == sorted(order)
    assert len(set(order)) == 40


def test_the_workers_do_not_matter(spark: SparkSession, tmp_path: Path) -> None:
    """Spark's or this process, and whatever the order of the sources: the files are the same, byte for byte."""
    texts = {name: "".join(_line(step % 5, name) for step in range(50)) for name in "abcd"}
    sources = _files(tmp_path, **texts)
    ingest(spark, sources, JsonLinesReader(), str(tmp_path / "many"), cluster="c")
    ingest(InProcess(), sources[::-1], JsonLinesReader(), str(tmp_path / "one"), cluster="c")

    many, one = (sorted((tmp_path / name).rglob("*.parquet")) for name in ("many", "one"))
    assert [path.relative_to(tmp_path / "many") for path in many] == [
        path.relative_to(tmp_path / "one") for path in one
    ]
    assert [path.read_bytes() for path in many] == [path.read_bytes() for path in one]


def test_sources_without_a_row_are_known_whoever_reads_them(spark: SparkSession, tmp_path: Path) -> None:
    """Tasks count them; a line in quarantine is no row, and a source that refutes another's row is read."""
    good, bad = _files(tmp_path, good="".join(map(_line, range(1, 99))), bad='{"topic": "x"}\n')
    workers: list[SparkSession | InProcess] = [spark, InProcess()]

    found = [
        ingest(one, [good, bad], JsonLinesReader(), str(tmp_path / f"out-{number}"), cluster="c").unread
        for number, one in enumerate(workers)
    ]

    assert found == [{bad: 1}, {bad: 1}]


def test_a_log_may_begin_and_end_with_the_calendar(tmp_path: Path) -> None:
    """Rows of the years 1 to 9999 get the file of their day; a later one goes to quarantine."""
    (path,) = _files(tmp_path, a="".join(_line(ts, seq=-1) for ts in (FIRST_US, -1, LAST_US, LAST_US + 1)))

    report = ingest(
        InProcess(), [path], JsonLinesReader(), str(tmp_path / "out"), cluster="c", max_quarantine_ratio=0.5
    )

    assert (report.first_us, report.last_us, report.rows) == (FIRST_US, LAST_US, {"lookups": 3})
    assert sorted(file.name for file in (tmp_path / "out" / "lookups").iterdir()) == [
        "part-00000-0001-01-01-00.parquet",
        "part-00001-1969-12-31-00.parquet",
        "part-00002-9999-12-31-00.parquet",
    ]


def test_a_position_the_log_brings_is_kept(spark: SparkSession, tmp_path: Path) -> None:
    """If a row has `seq`, it decides among equal times."""
    (path,) = _files(tmp_path, a=_line(1, "x", seq=9) + _line(1, "y", seq=3))
    ingest(spark, [path], JsonLinesReader(), str(tmp_path / "out"), cluster="c")
    assert [(row["seq"], row["topic"][-1]) for row in _table(tmp_path / "out" / "lookups")] == [(3, "y"), (9, "x")]


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        ("", r"a\.jsonl: it is empty: "),
        ("\n\n", r"a\.jsonl: none of its 2 lines"),
        ("garbage\n" * 9, r"9 of 9 .*max_quarantine_ratio=0\.05 .*a\.jsonl:1: "),
        (_line(1) * 9 + "x", r"1 of 10 records"),
    ],
)
def test_input_that_cannot_be_used_is_a_sentence_and_leaves_nothing(
    spark: SparkSession, tmp_path: Path, text: str, sentence: str
) -> None:
    """Empty, blank and garbage logs, and too many bad records, end in an input error without any output."""
    (path,) = _files(tmp_path, a=text)
    with pytest.raises(InputError, match=sentence):
        ingest(spark, [path], JsonLinesReader(), str(tmp_path / "out"), cluster="c")
    assert [entry.name for entry in tmp_path.iterdir()] == ["a.jsonl"]


def test_truncated_compression_is_a_sentence(spark: SparkSession, tmp_path: Path) -> None:
    """A file that ends in the middle of its compressed text is named."""
    path = tmp_path / "a.jsonl.gz"
    path.write_bytes(gzip.compress((_line(1) * 5000).encode())[:-20])
    with pytest.raises(InputError, match=r"a\.jsonl\.gz cannot be read: "):
        ingest(spark, [str(path)], JsonLinesReader(), str(tmp_path / "out"), cluster="c")


def test_a_reader_that_raises_is_named_with_the_line(spark: SparkSession, tmp_path: Path) -> None:
    """A plug-in's bug is a plug-in error that says which reader, file and line."""
    plugin = tmp_path / "failing_plugin.py"
    plugin.write_text(_PLUGIN.replace("words", "failing").replace("yield", "assert number < 3; yield"))
    reader = load_plugins([plugin]).find("log_readers", "failing")()
    (path,) = _files(tmp_path, a="a\nb\nc\n")
    with pytest.raises(PluginError, match=r"'failing' .*line 3: AssertionError \(failing_plugin\.py, line 16\)"):
        ingest(spark, [path], reader, str(tmp_path / "out"), cluster="c", plugin_files=[str(plugin)])
    assert not (tmp_path / "out").exists()


@pytest.mark.parametrize(
    ("change", "text", "kind", "sentence"),
    [
        (("in lines:", "in ():"), "a\nb\n", InputError, r"none of its 2 lines .* 'odd' knows\Z"),
        (("for number", "raise OverflowError\n        for number"), "a\n", PluginError, "before it read a line: "),
        (("x", "x"), "", InputError, r"a\.jsonl: it is empty: .* 'odd' knows\Z"),
    ],
)
def test_a_reader_that_yields_nothing_is_told_truly(
    spark: SparkSession, tmp_path: Path, change: tuple[str, str], text: str, kind: type[Exception], sentence: str
) -> None:
    """A file with content is never called empty, and a reader that says not what it expects is not quoted."""
    plugin = tmp_path / "odd_plugin.py"
    plugin.write_text(_PLUGIN.replace("words", "odd").replace(*change))
    reader = load_plugins([plugin]).find("log_readers", "odd")()
    (path,) = _files(tmp_path, a=text)

    with pytest.raises(kind, match=sentence):
        ingest(spark, [path], reader, str(tmp_path / "out"), cluster="c", plugin_files=[str(plugin)])


def test_a_reader_from_a_plain_file_reads_on_the_workers(spark: SparkSession, tmp_path: Path) -> None:
    """A plug-in file is sent to the workers, which load it before the reader is unpickled."""
    plugin = tmp_path / "words_plugin.py"
    plugin.write_text(_PLUGIN)
    reader: LogReader = load_plugins([plugin]).find("log_readers", "words")(tenant="acme")
    (path,) = _files(tmp_path, a="one\ntwo\n")
    report = ingest(spark, [path], reader, str(tmp_path / "out"), cluster="c", plugin_files=[str(plugin)])

    assert report.rows == {"lookups": 2}
    assert [row["topic"] for row in _table(tmp_path / "out" / "lookups")] == [
        "persistent://acme/ns/one",
        "persistent://acme/ns/two",
    ]


_PLUGIN = """
from dataclasses import dataclass
from typing import ClassVar

from lookup.hooks import hookimpl
from lookup.model import Row


@dataclass(frozen=True)
class WordReader:
    name: ClassVar[str] = "words"
    tenant: str = "t"

    def parse(self, lines, source):
        for number, line in lines:
            yield Row("lookups", number, {"ts": number, "topic": f"persistent://{self.tenant}/ns/{line}"})


@hookimpl
def lookup_register_log_readers():
    return [WordReader]
"""
