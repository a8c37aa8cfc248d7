"""`lookup ingest`: what it prints and leaves behind, and what it refuses."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pyarrow.parquet as pq
import pytest
from pyspark.sql import SparkSession

from tests.commands.projects import Run

MAPPING = """
use = "delimited"
delimiter = "\\t"
timestamp = { column = "time", format = "unix" }
topic = "persistent://web/paths/{path}"
client = "host"
cluster = "web"
"""
LOG = "time\thost\tpath\n1767225600\th1\ta\n1767225601\th2\tb\n1767225602\th1\ta\n"
READER = '''
from dataclasses import dataclass
from typing import ClassVar

from lookup.hooks import hookimpl
from lookup.model import Row


@dataclass(frozen=True)
class Words:
    """One topic per line."""

    name: ClassVar[str] = "words"
    expects: ClassVar[str] = "a word per line"

    def parse(self, lines, source):
        """Yield a lookup for every line."""
        for number, line in lines:
            values = {"ts": number * 1_000_000, "topic": f"persistent://a/b/{line}"}
            yield Row("lookups", number, values)


@hookimpl
def lookup_register_log_readers():
    return (Words,)
'''


def _files(folder: Path, **texts: str) -> dict[str, Path]:
    for name, text in texts.items():
        (folder / name).write_text(text, encoding="utf-8")
    return {name: folder / name for name in texts}


@pytest.mark.parametrize(
    ("flags", "sentence"),
    [
        (("{log}", "--mapping", "/no/mapping"), "/no/mapping: "),
        (("{log}", "--mapping", "{mapping}", "--reader", "csv"), "{mapping} says use = 'delimited'"),
        (("/no/log", "--mapping", "{mapping}"), "source '/no/log' does not exist"),
        (("{log}", "--mapping", "{mapping}", "--max-quarantine-ratio", "5"), "--max-quarantine-ratio: '5' is"),
        (("{log}", "--mapping", "{mapping}", "--cluster", ""), "--cluster: the cluster is empty"),
        (("{log}", "--mapping", "{mapping}", "--cluster", "a "), "--cluster: cluster 'a ' begins"),
        (("/dev/zero", "--mapping", "{mapping}"), "source '/dev/zero' is a device"),
        (("{log}", "--reader", "words", "--plugin-file", "/no/file.py"), "plug-in file /no/file.py"),
    ],
)
def test_what_cannot_be_read_is_one_sentence(
    lookup: Run, tmp_path: Path, flags: tuple[str, ...], sentence: str
) -> None:
    """Reader, mapping, plug-ins and sources are checked before Spark starts, and no output appears."""
    files = _files(tmp_path, log=LOG, mapping=MAPPING)

    ran = lookup("ingest", *(flag.format(**files) for flag in flags), "--output", tmp_path / "o")

    (mistake,) = ran.mistakes
    assert mistake.startswith(sentence.format(**files))
    assert sorted(path.name for path in tmp_path.iterdir()) == ["log", "mapping"]


def _everything(folder: Path) -> dict[str, str]:
    return {str(path.relative_to(folder)): path.read_text() for path in sorted(folder.rglob("*")) if path.is_file()}


@pytest.mark.parametrize(
    ("source", "output", "sentence"),
    [
        ("x/lookups", "x", "'{folder}/x/lookups' is {folder}/x/lookups,"),
        ("x/lookups/a.tsv", "x", "'{folder}/x/lookups/a.tsv' lies in {folder}/x/lookups,"),
        ("x/*/a.tsv", "x", "'{folder}/x/lookups/a.tsv' lies in {folder}/x/lookups,"),
        ("x", "x/", "'{folder}/x' holds {folder}/x/lookups,"),
        ("x", "x/tables", "'{folder}/x' holds {folder}/x/tables/lookups,"),
        ("alias", "x", "'{folder}/alias' is {folder}/x/lookups,"),
    ],
)
def test_a_source_is_never_replaced(lookup: Run, tmp_path: Path, source: str, output: str, sentence: str) -> None:
    """A path where tables will be written, or a folder that holds it, is no source, and nothing is touched."""
    (tmp_path / "x" / "lookups").mkdir(parents=True)
    _files(tmp_path, **{"mapping": MAPPING, "x/lookups/a.tsv": LOG})
    (tmp_path / "alias").symlink_to(tmp_path / "x" / "lookups")
    before = _everything(tmp_path)

    (mistake,) = lookup(
        *("ingest", tmp_path / source, "--mapping", tmp_path / "mapping"), "--output", f"{tmp_path}/{output}", "--force"
    ).mistakes

    assert mistake.startswith(f"source {sentence.format(folder=tmp_path)}")
    assert _everything(tmp_path) == before


@pytest.mark.parametrize(("flag", "name"), [("--mapping", "m.toml"), ("--plugin-file", "words.py")])
def test_what_says_how_to_read_is_never_replaced(lookup: Run, tmp_path: Path, flag: str, name: str) -> None:
    """A mapping or a plug-in where a table will be written."""
    (tmp_path / "x" / "lookups").mkdir(parents=True)
    files = _files(tmp_path, log=LOG, **{"x/lookups/m.toml": MAPPING, "x/lookups/words.py": READER, "m.toml": MAPPING})
    file = files[f"x/lookups/{name}"]
    mapping = ("--mapping", files["m.toml"]) if flag != "--mapping" else ()

    (mistake,) = lookup("ingest", files["log"], *mapping, flag, file, "--output", tmp_path / "x", "--force").mistakes

    assert mistake.startswith(f"{flag} {file} lies in {tmp_path}/x/lookups, which --output {tmp_path}/x replaces; ")
    assert file.exists()


@pytest.mark.spark
@pytest.mark.usefixtures("spark")
def test_tables_and_manifest_are_written(lookup: Run, tmp_path: Path) -> None:
    """The table is there, the rows are printed, and the manifest has reader, mapping and source."""
    files = _files(tmp_path, log=LOG, mapping=MAPPING)
    output = tmp_path / "o"

    ran = lookup("ingest", files["log"], "--mapping", files["mapping"], "--output", output, "--format", "json")

    assert ran.code == 0, ran.err
    printed = json.loads(ran.out)
    assert printed["rows"] == {"lookups": 3}
    assert printed["first"] == "2026-01-01T00:00:00Z"
    assert pq.read_table(output / "lookups", partitioning=None).num_rows == 3
    manifest = json.loads((output / "manifest.json").read_text())
    assert manifest["settings"]["reader"]["use"] == "delimited"
    assert manifest["inputs"][str(files["log"])]["bytes"] == len(LOG)


@pytest.mark.spark
@pytest.mark.usefixtures("spark")
def test_lines_that_were_passed_over_are_counted(lookup: Run, tmp_path: Path) -> None:
    """Below the table stands how many lines there were and how many of them were of other kinds; one is singular."""
    request = '172.17.0.1 - - [07/Nov/2018:12:27:31 +0000] "GET {} HTTP/1.1" 200 93 "-" "curl" 17'
    paths = ("/lookup/v2/topic/persistent/t/n/a", "/lookup/v2/topic/persistent/t/n/b", "/metrics")
    lines = [request.format(path) for path in paths]
    lines.append(lines[0].partition(" HTTP")[0])
    files = _files(tmp_path, log="\n".join(lines))
    flags = ("--reader", "jetty-access", "--cluster", "c", "--max-quarantine-ratio", "0.5")

    ran = lookup("ingest", files["log"], *flags, "--output", tmp_path / "o")

    assert ran.code == 0, ran.err
    assert re.search(r"^\|lookups +\| 2 ", ran.out, re.MULTILINE)
    assert ran.out.splitlines()[-1].startswith("4 lines read, 1 ")
    assert "reading 1 file with jetty-access" in ran.err
    assert "warning: in quarantine: 1 record: " in ran.err


def test_every_file_of_which_nothing_is_read_is_named(lookup: Run, tmp_path: Path) -> None:
    """Whether its lines were passed over or are all in quarantine; a header alone or an empty file has none to lose."""
    lines = "".join(f"{1767225600 + number}\th\ta\n" for number in range(100))
    other = "time\thost\tpath\nyesterday\th1\ta\nyesterday\th2\tb\n"
    files = _files(
        tmp_path, **{"a.log": LOG + lines, "b.log": other, "c.log": "time\thost\tpath\n", "d.log": ""},
        mapping=MAPPING + 'only = { path = "[a-z]" }\n', **{"e.log": "time\thost\tpath\n1767225600\th\t/metrics\n"},
    )  # fmt: skip
    logs = [files[f"{letter}.log"] for letter in "abcde"]

    ran = lookup("ingest", *logs, "--mapping", files["mapping"], "--master", "none", "--output", tmp_path / "o")

    assert ran.code == 0, ran.err
    assert re.findall(r"nothing is read of (.*\))", ran.err) == [
        f"{files['b.log']} (3 lines)",
        f"{files['e.log']} (2 lines)",
    ]
    assert ran.out.splitlines()[-1].endswith("nothing is read of 2 files")


def test_of_very_many_files_without_a_record_the_first_are_named(lookup: Run, tmp_path: Path) -> None:
    """A folder of brokers' logs may have hundreds without a lookup; the rest is counted, and JSON has all."""
    request = '172.17.0.1 - - [07/Nov/2018:12:27:31 +0000] "GET {} HTTP/1.1" 200 93 "-" "curl" 17\n'
    (tmp_path / "logs").mkdir()
    _files(tmp_path / "logs", a=request.format("/lookup/v2/topic/persistent/t/n/a"))
    _files(tmp_path / "logs", **{f"b{number:02}": request.format("/metrics") for number in range(25)})
    words = ("ingest", tmp_path / "logs", "--reader", "jetty-access", "--cluster", "c", "--master", "none", "--format")

    ran = lookup(*words, "json", "--output", tmp_path / "o")

    warned = [line for line in ran.err.splitlines() if line.startswith("warning: nothing is read of")]
    assert len(warned) == 21
    assert warned[-1].startswith("warning: nothing is read of 5 ")
    assert json.loads(ran.out)["unread"] == {f"{tmp_path}/logs/b{number:02}": 1 for number in range(25)}


@pytest.mark.parametrize(("form", "code"), [("unix_ms", 2), ("unix", 0)])
def test_a_wrong_unit_is_refused(lookup: Run, tmp_path: Path, form: str, code: int) -> None:
    """Seconds that are read as ms lie in 1970: nothing is written, and the sentence has the format that is right."""
    files = _files(tmp_path, log=LOG, mapping=MAPPING.replace('"unix"', f'"{form}"'))
    flags = ("--mapping", files["mapping"], "--master", "none", "--output", tmp_path / "o")

    ran = lookup("ingest", files["log"], *flags)

    assert ran.code == code
    assert ("of the year 1970; they look like 'unix'" in ran.err) is (code == 2)
    assert (tmp_path / "o" / "lookups").exists() is (code == 0)


def test_a_header_alone_is_one_sentence(lookup: Run, tmp_path: Path) -> None:
    """The log has its columns, and no record."""
    files = _files(tmp_path, log=LOG.partition("\n")[0], mapping=MAPPING)
    flags = ("--mapping", files["mapping"], "--master", "none", "--output", tmp_path / "o")

    (mistake,) = lookup("ingest", files["log"], *flags).mistakes

    assert mistake == f"{files['log']}: has a header and no record below it"


def test_a_misspelt_column_is_refused_before_spark_starts(
    lookup: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """With the file, the column and the nearest; there is no Java, which would be the first thing to miss."""
    monkeypatch.setenv("JAVA_HOME", str(tmp_path))
    files = _files(tmp_path, log=LOG, mapping=MAPPING.replace('"host"', '"hst"'))

    (mistake,) = lookup("ingest", files["log"], "--mapping", files["mapping"], "--output", tmp_path / "o").mistakes

    assert mistake.startswith(f"{files['log']}: the header has no column 'hst'")


def test_a_mapping_may_be_one_that_ships(lookup: Run, tmp_path: Path) -> None:
    """By its name in place of a file, or below the keys of a file; what ships and is no mapping is refused."""
    line = '10.1.0.7 - - [01/Jan/2026:00:00:00 +0000] "GET /a HTTP/1.1" 200 93 "-" "curl"\n'
    files = _files(
        tmp_path, log=line, mapping='use = "shipped:access-log"\ncluster = "mine"\n', wrong='use = "shipped:random"'
    )
    flags = ("--master", "none", "--cluster", "web")

    named = lookup("ingest", files["log"], "--mapping", "shipped:access-log", *flags, "--output", tmp_path / "a")
    below = lookup("ingest", files["log"], "--mapping", files["mapping"], *flags, "--output", tmp_path / "b")
    (mistake,) = lookup("ingest", files["log"], "--mapping", files["wrong"], "--output", tmp_path / "c").mistakes

    assert (named.code, below.code) == (0, 0), named.err + below.err
    rows = [pq.read_table(tmp_path / name / "lookups", partitioning=None).to_pylist()[0] for name in "ab"]
    assert [row["topic"] for row in rows] == ["persistent://web/paths/%2Fa"] * 2
    assert [row["cluster"] for row in rows] == ["web", "mine"]
    assert mistake.startswith(f"{files['wrong']}: use = 'shipped:random' ")


def test_small_files_need_no_spark(lookup: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A line says what reads them; who asks for Spark is told how to get Java, and how to do without."""
    monkeypatch.delenv("JAVA_HOME", raising=False)
    monkeypatch.setenv("PATH", "")
    monkeypatch.setattr(SparkSession, "getActiveSession", lambda: None)
    files = _files(tmp_path, log=LOG, mapping=MAPPING)
    words = ("ingest", files["log"], "--mapping", files["mapping"], "--output")

    ran = lookup(*words, tmp_path / "small")

    assert (ran.code, pq.read_table(tmp_path / "small" / "lookups", partitioning=None).num_rows) == (0, 3)
    assert "0.0 MB, fewer than 20 MB" in ran.err
    (sentence,) = lookup(*words, tmp_path / "large", "--master", "local[*]").mistakes
    assert sentence.endswith("with --master none")
    assert not (tmp_path / "large").exists()


@pytest.mark.parametrize(
    ("more", "key"),
    [
        ("weight = { column = 't', default = inf }", "weight.default is inf"),
        ("[properties.zone]\ncolumn = 'host'\nrule = 'map'\ndefault = nan", "properties.zone.default is nan"),
    ],
)
def test_numbers_without_end_are_refused_before_anything_is_written(
    lookup: Run, tmp_path: Path, more: str, key: str
) -> None:
    """Neither a manifest nor a table has a word for them."""
    log, mapping, output = tmp_path / "a.log", tmp_path / "m.toml", tmp_path / "out"
    log.write_text("10.0.0.1 1767600000\n")
    mapping.write_text(
        f"use = 'delimited'\npattern = '(?P<host>\\S+) (?P<t>\\d+)'\ntopic = 'persistent://web/paths/x'\n"
        f"timestamp = {{ column = 't', format = 'unix' }}\n{more}\n"
    )

    ran = lookup("ingest", log, "--mapping", mapping, "--cluster", "c", "--output", output, "--master", "none")

    assert ran.mistakes == [f"{mapping}: {key}, not a finite number"]
    assert not output.exists()


def test_rows_out_of_order_are_counted(lookup: Run, tmp_path: Path) -> None:
    """An export that begins with its newest line is said to; one in order is not."""
    lines = [
        f'{{"ts": "2026-01-05T00:{minute:02}:00Z", "topic": "persistent://a/b/c", "cluster": "e"}}'
        for minute in range(9)
    ]
    for name, text in (("old.jsonl", lines), ("new.jsonl", lines[::-1])):
        (tmp_path / name).write_text("\n".join(text) + "\n")
    flags = ("--reader", "jsonl", "--master", "none", "--output")

    backwards = lookup("ingest", tmp_path / "new.jsonl", *flags, tmp_path / "a")
    forwards = lookup("ingest", tmp_path / "old.jsonl", *flags, tmp_path / "b")

    assert ": 8 of its rows" in backwards.err
    assert "order of time" not in forwards.err


def test_rows_that_are_there_twice_are_said(lookup: Run, tmp_path: Path) -> None:
    """A file beside its own copy, or lines that stand twice in one; lookups that resemble each other are none."""
    line = '{"ts": "2026-01-05T00:00:%02dZ", "topic": "persistent://a/b/c", "client": "%s", "cluster": "e"}\n'
    text = "".join(line % (second, client) for second in range(9) for client in "xy")
    (tmp_path / "copies").mkdir()
    for name in ("app.log", "app.log.1"):
        (tmp_path / "copies" / name).write_text(text)
    (tmp_path / "lines").write_text("".join(2 * row for row in text.splitlines(keepends=True)))
    (tmp_path / "once").write_text(text)

    said = [
        lookup(
            "ingest", tmp_path / name, "--reader", "jsonl", "--master", "none", "--output", tmp_path / f"{name}.out"
        ).err
        for name in ("copies", "lines", "once")
    ]

    assert ["18 rows of LOOKUPS (50%)" in text for text in said] == [True, True, False]


@pytest.mark.parametrize(("zone", "says"), [("Z", True), ("+05:30", True), (":01Z", False)])
def test_times_that_are_all_midnights_are_said(lookup: Run, tmp_path: Path, zone: str, says: bool) -> None:
    """In any zone: the day was read, and the time of day was not."""
    line = '{"ts": "2026-01-%02dT00:00%s", "topic": "persistent://a/b/c-%d", "cluster": "e"}\n'
    (tmp_path / "days.jsonl").write_text("".join(line % (day, zone, day) for day in range(1, 21)))

    ran = lookup(
        "ingest", tmp_path / "days.jsonl", "--reader", "jsonl", "--master", "none", "--output", tmp_path / "out"
    )

    assert ("all 20 times are" in ran.err) == says


_ASKED = (
    "2026-01-01T00:00:0{n},000+0000 [io-1] DEBUG org.apache.pulsar.broker.service.ServerCnx - "
    "[persistent://t/n/a] Received Lookup from /10.0.0.1:5 for {n}"
)
_ANSWERED = (
    "2026-01-01T00:00:0{n},003+0000 [io-1] DEBUG org.apache.pulsar.broker.lookup.TopicLookupBase - "
    "[persistent://t/n/a] Lookup result type=BrokerUrl, brokerUrl=pulsar://b1:6650"
)


@pytest.mark.parametrize(
    ("lines", "use", "sentence"),
    [
        # The reader is for other lookups of the same log.
        (
            [*(line.format(n=n) for n in range(3) for line in (_ASKED, _ANSWERED)), "{http}"],
            "jetty-access",
            "3 requests and 3 answers of lookups in them, but log reader 'jetty-access' found only 1 lookup",
        ),
        # Something has cut the topics out of the answers.
        (
            [
                *(_ASKED.format(n=n) for n in range(3)),
                *(f"2026-01-01T00:00:05,000+0000 [io-1] DEBUG o.a.p.X - Lookup result {n}" for n in range(3)),
            ],
            "pulsar-broker",
            "3 requests and 3 answers of lookups in them, but none of the 3 rows of LOOKUPS has an answer",
        ),
        (
            [_ASKED.format(n=1), "2026-01-01T00:00:02.000Z stdout P 2026-01-01T00:00:02,000+0000 [io-1] DEB"],
            "pulsar-broker",
            "1 line that a container runtime cut in parts: the last part is missing",
        ),
    ],
)
def test_lookups_that_are_lost_are_counted(
    lookup: Run, tmp_path: Path, lines: list[str], use: str, sentence: str
) -> None:
    """The bytes of the log have them and no row has: both numbers are said, with `--quiet` too."""
    http = '10.0.0.1 - - [01/Jan/2026:00:00:00 +0000] "GET /lookup/v2/topic/persistent/t/n/b HTTP/1.1" 200 9'
    files = _files(tmp_path, log="\n".join(lines).replace("{http}", http) + "\n")

    flags = ("--reader", use, "--cluster", "c", "--master", "none", "--output", tmp_path / "o", "--quiet")
    ran = lookup("ingest", files["log"], *flags)

    assert (ran.code, sentence in ran.err) == (0, True), ran.err


def test_times_of_a_collector_are_named(lookup: Run, tmp_path: Path) -> None:
    """Lines without a time of their own get that of the envelope, and it is said whose that is."""
    message = _ASKED.partition(" - ")[2].format(n=1)
    files = _files(tmp_path, log=json.dumps({"message": message, "@timestamp": "2026-01-01T05:00:00Z"}) + "\n")
    flags = ("--reader", "pulsar-broker", "--cluster", "c", "--master", "none", "--output", tmp_path / "o")

    ran = lookup("ingest", files["log"], *flags)

    assert "note: 1 time is the collector's, of its key `@timestamp`, not the broker's" in ran.err


def test_a_clock_of_12_hours_without_am_and_pm_is_refused(lookup: Run, tmp_path: Path) -> None:
    """Whether the mapping is proposed or written by hand, nothing is written."""
    hours = (11, 12, 1, 2)
    rows = "".join(f"2026-01-01 {hour:02}:30:0{n}\th1\ta\n" for hour in hours for n in range(3))
    mapping = MAPPING.replace('"unix"', '"iso"')
    files = _files(tmp_path, log=f"time\thost\tpath\n{rows}", mapping=mapping)

    proposed = lookup("init", tmp_path / "trial", "--log", files["log"])
    ran = lookup(
        *("ingest", files["log"], "--mapping", files["mapping"], "--master", "none", "--output", tmp_path / "o")
    )

    assert (proposed.code, ran.code) == (2, 2)
    assert "its clock has 12 hours" in proposed.err
    assert "its clock has 12 hours" in ran.err
    assert not (tmp_path / "o" / "lookups").exists()
