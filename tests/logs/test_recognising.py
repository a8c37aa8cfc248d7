"""Logs are recognised by their first lines, and what is proposed reads them."""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from lookup.engine.plugins import load_plugins
from lookup.errors import InputError
from lookup.logs.ingest import reader_of
from lookup.logs.recognising import Recognised, recognise
from lookup.logs.sources import open_lines
from lookup.model.documents import Row, Unreadable, toml_table

_TOPIC, _BUNDLE = "persistent://t/ns/orders", "t/ns/0x00000000_0x40000000"
_ASKED, _ANSWERED = f"[{_TOPIC}] Received Lookup from /10.1.2.3:51234 for 7", f"[{_TOPIC}] Lookup result Optional.empty"
_CONNECTED = f"[{_TOPIC}] Lookup result Optional[LookupResult(lookupData=LookupData{{brokerUrl=pulsar://b1:6650}})]"
_OWNED = f"2026-01-31T12:00:00,250+0000 [main] INFO  {{}} - Trying to acquire ownership of {_BUNDLE}\n"
_NCSA = '10.1.0.7 - - [31/Jan/2026:12:00:00 +0000] "GET {} HTTP/1.1" 200 93 "-" "curl/8"{}\n'


def _dated(message: str) -> str:
    return f"2026-01-31T12:00:00,250+0000 [io-3] DEBUG org.apache.pulsar.broker.service.ServerCnx - {message}\n"


def _json(message: str) -> str:
    instant = {"epochSecond": 1769860800, "nanoOfSecond": 0}
    return json.dumps({"instant": instant, "loggerName": "o.a.p.X", "message": message, "contextMap": {}}) + "\n"


_LOGS = {
    "broker": (_dated(_ASKED) + _dated(_CONNECTED), "pulsar-broker"),
    "broker, JSON": (_json(_ASKED) + _json(_ANSWERED), "pulsar-broker"),
    "broker, clock only": (f"12:00:00.250 [io-3] DEBUG o.a.p.ServerCnx - {_ASKED}\n", "pulsar-broker"),
    "broker, between other lines": (_dated("Starting") * 3_000 + _dated(_ASKED), "pulsar-broker"),
    "web server of a broker": (_NCSA.format("/lookup/v2/topic/persistent/t/ns/orders", " 17"), "jetty-access"),
    "client": (
        f"2026-01-31 12:00:00.250 INFO  x | Lookup response for {_TOPIC}, lookup-broker-url pulsar://b:6650\n",
        "cpp-client",
    ),
    "combined": (_NCSA.format("/a", "") + _NCSA.format("/b", ""), "shipped:access-log"),
    "common": ('h - - [31/Jan/2026:12:00:00 +0000] "GET /a HTTP/1.0" 200 93\n', "shipped:access-log"),
    "CSV of LOOKUPS": (f"ts,topic,seconds\n2026-01-31T12:00:00Z,{_TOPIC},3\n", "csv"),
    "JSON Lines of LOOKUPS": (
        json.dumps({"ts": "2026-01-31T12:00:00Z", "topic": _TOPIC, "properties": {"zone": "z1"}, "more": 1}) + "\n",
        "jsonl",
    ),
    "tabs": ("host\ttime\turl\tbytes\nh1\t807235202\t/a b\t5\nh2\t807235203\t/c\t-\n", "delimited"),
    "semicolons, quoted": ('"when";"page";"zone"\n"2026-01-31 12:00:00";"/a;b";"z1"\n', "delimited"),
    "German": ('\ufeff"Zeit";"Thema"\r\n"28.03.2026 22:00:00,5";"persistent://t/ns/x"\r\n', "delimited"),
    "American": ("Date,Page\n03/28/2026 10:00:00 PM,/a\n", "delimited"),
    "day and time": ("Day|Clock|Page\n28-Mar-2026|22:00:01|/a\n", "delimited"),
    "no header": ("1769860800123,/a,h1\n1769860801123,/b,h2\n", "delimited"),
    "full topics, quoted": (f'"at","topic","ip"\n"2026-01-31T12:00:00Z","{_TOPIC}","10.0.0.1"\n', "delimited"),
    "keys of one's own": (
        "".join(json.dumps({"epoch_ms": 1769860800123 + n, "to": {"topic": _TOPIC}}) + "\n" for n in range(30))
        + "garbage\n",
        "delimited",
    ),
    "CSV with a column of labels": (f"ts,topic,rack\n2026-01-31T12:00:00Z,{_TOPIC},r1\n", "delimited"),
    "CSV with a column of clients": (f"ts,topic,host\n2026-01-31T12:00:00Z,{_TOPIC},h1\n", "delimited"),
    "a time is missing": ("time;topic\n" + f"1769860800;{_TOPIC}\n" * 29 + f"-;{_TOPIC}\n", "delimited"),
    "full topics": (f"time|topic|client\n1769860800|{_TOPIC}|c1\n1769860801|non-{_TOPIC}-2|c2\n", "delimited"),
}  # fmt: skip


def _recognised(folder: Path, text: str, name: str = "x.log") -> Recognised:
    (folder / name).write_text(text, encoding="utf-8")
    return recognise(str(folder / name), load_plugins())


@pytest.mark.parametrize("name", _LOGS)
def test_a_log_is_recognised(tmp_path: Path, name: str) -> None:
    """Each form that a reader knows, by the reader that knows it."""
    text, use = _LOGS[name]

    assert toml_table(_recognised(tmp_path, text).mapping)["use"] == use


def test_what_the_log_holds_is_known(tmp_path: Path) -> None:
    """Labels and brokers; a column that LOOKUPS does not have is left out."""
    found = _recognised(tmp_path, _LOGS["JSON Lines of LOOKUPS"][0])

    assert (found.labels, found.brokers) == ({"zone": ["z1"]}, [])
    assert toml_table(found.mapping)["ignore"] == ["more"]
    assert _recognised(tmp_path, _LOGS["broker"][0]).brokers == ["b1:8080"]
    assert _recognised(tmp_path, _LOGS["semicolons, quoted"][0]).labels == {"zone": ["z1"]}


@pytest.mark.parametrize(
    ("factor", "use", "form"),
    [(1, "delimited", "unix"), (10**3, "delimited", "unix_ms"), (10**6, "", ""), (10**9, "delimited", "unix_ns")],
)
@pytest.mark.parametrize("is_json", [False, True])
def test_a_column_ts_may_have_another_unit(tmp_path: Path, factor: int, use: str, form: str, is_json: bool) -> None:
    """Only a count of µs is that of LOOKUPS; of other units the mapping says which, and keeps the properties."""
    stamps = [(1769860800 + n) * factor for n in range(3)]
    records = [{"ts": stamp, "topic": _TOPIC, "properties": {"zone": "z1"}} for stamp in stamps]
    quoted = '"{""zone"": ""z1""}"'
    lines = ["ts,topic,properties", *(f"{stamp},{_TOPIC},{quoted}" for stamp in stamps)]

    found = _recognised(tmp_path, "\n".join(map(json.dumps, records) if is_json else lines))
    mapping = toml_table(found.mapping)

    assert mapping["use"] == (use or ("jsonl" if is_json else "csv"))
    assert mapping.get("timestamp", {}).get("format", "") == form
    assert found.labels == {"zone": ["z1"]}


def test_keys_of_ones_own_are_mapped(tmp_path: Path) -> None:
    """Times by their unit, topics, clients, weights and labels; a key of something else is proposed."""
    record = {"epoch_ms": 1791266402107, "destination": _TOPIC, "remote": "10.0.0.1", "size": 12, "status": "ok"}
    lines = [json.dumps({**record, "peer": {"az": az}, "status": f"s{az}"}) for az in "abab"]

    found = _recognised(tmp_path, "\n".join(lines))

    assert toml_table(found.mapping) == {
        "use": "delimited",
        "format": "json",
        "timestamp": {"column": "epoch_ms", "format": "unix_ms"},
        "topic": "{destination}",
        "client": "remote",
        "weight": {"column": "size", "default": 1.0, "min": 1.0},
        "properties": {"az": {"column": "peer.az"}},
    }
    assert (found.what[:10], found.labels) == ("JSON Lines", {"az": ["a", "b"]})


@pytest.mark.parametrize(
    ("header", "template"), [("when,topic", "persistent://{topic}"), ("when,path", "persistent://log/paths/{path}")]
)
def test_a_topic_may_lack_its_domain(tmp_path: Path, header: str, template: str) -> None:
    """Three parts are tenant, namespace and name, but not in a column of paths."""
    mapping = _recognised(tmp_path, f"{header}\n1769860800,acme/ns-05/orders-0\n").mapping
    assert toml_table(mapping)["topic"] == template


def test_a_later_line_or_file_decides_how_a_date_is_read(tmp_path: Path) -> None:
    """A day above 12 says that the month comes first, however late it is; then there is no doubt."""
    head = "when,topic\n" + f"10/06/2026 10:00:00,{_TOPIC}\n" * 300
    decided = f"10/13/2026 10:00:00,{_TOPIC}\n" * 300
    (tmp_path / "days").mkdir()
    (tmp_path / "days" / "1.csv").write_text(head)
    (tmp_path / "days" / "2.csv").write_text(f"when,topic\n{decided}")

    for found in (_recognised(tmp_path, head + decided), recognise(str(tmp_path / "days"), load_plugins())):
        assert toml_table(found.mapping)["timestamp"]["format"] == "%m/%d/%Y %H:%M:%S"
        assert (found.doubt, "was taken for" in found.mapping) == ("", False)


_CSV = f"time,topic\n1769860800,{_TOPIC}\n"


@pytest.mark.parametrize(
    ("second", "lines"), [(_NCSA.format("/a", ""), 1), (f"1769860800,{_TOPIC}\n" * 2, 2), ("words\n" * 30, 30)]
)
def test_files_of_several_kinds_are_refused(tmp_path: Path, second: str, lines: int) -> None:
    """With the first that is of another kind, whichever comes first; a file without lines is of any kind."""
    for name, text in (("a.csv", _CSV), ("b.csv", ""), ("c.csv", _CSV), ("d.csv", second)):
        (tmp_path / name).write_text(text)

    with pytest.raises(InputError) as caught:
        recognise(str(tmp_path), load_plugins())

    assert str(caught.value).startswith(f"{tmp_path}/d.csv: is of another kind than {tmp_path}/a.csv, ")
    assert f"of its first {lines} lines {lines} cannot be read" in str(caught.value)


def test_an_archive_among_the_files_is_refused(tmp_path: Path) -> None:
    """Nothing would read it together with the others."""
    (tmp_path / "a.csv").write_text(_CSV)
    (tmp_path / "b.zip").write_bytes(b"PK\x03\x04 and so on")

    with pytest.raises(InputError, match=r"b\.zip: .* a zip archive"):
        recognise(str(tmp_path), load_plugins())


def test_a_file_of_which_the_reader_finds_nothing_may_be_of_another_kind(tmp_path: Path) -> None:
    """The reader of a broker's log passes over the lines of a table, which would be lost; the last of 50 is seen."""
    for number in range(49):
        (tmp_path / f"broker-{number:02}.log").write_text(_dated(_ASKED) + _dated(_CONNECTED))
    (tmp_path / "x.csv").write_text(_CSV)

    with pytest.raises(InputError, match=r"x\.csv: is of another kind"):
        recognise(str(tmp_path), load_plugins())


def test_of_several_readers_the_one_that_finds_most_is_taken(tmp_path: Path) -> None:
    """The log of a broker has lines of its web server too; its owners, brokers and their ids are known."""
    answer = f"[{_TOPIC}] Lookup result Optional[LookupResult [type=BrokerUrl, lookupData=LookupData{{"
    answer += "brokerUrl=pulsar://b1:6650, brokerUrlTls=null, httpUrl=http://b1:8081, httpUrlTls=null}]]"
    owned = "Selected new owner broker: b1:8081 for bundle: t/ns/0x00000000_0x10000000."
    access = _NCSA.format("/lookup/v2/topic/persistent/t/ns/orders", " 17")

    found = _recognised(tmp_path, access + "".join(map(_dated, (_ASKED, answer, _ASKED, answer, owned))))

    assert toml_table(found.mapping) == {"use": "pulsar-broker", "web_port": 8081}
    assert (found.brokers, found.has_ownership) == (["b1:8081"], True)


def test_ids_of_brokers_of_one_host_are_listed(tmp_path: Path) -> None:
    """A port alone would not tell them apart."""
    answer = "[{}] Lookup result LookupData{{brokerUrl=pulsar://h:{}, brokerUrlTls=null, httpUrl=http://h:{}}}"
    lines = [_dated(_ASKED) + _dated(answer.format(_TOPIC, port, port + 1)) for port in (1, 3)]

    found = _recognised(tmp_path, "".join(lines))

    assert toml_table(found.mapping)["broker_ids"] == {"pulsar://h:1": "h:2", "pulsar://h:3": "h:4"}
    assert found.brokers == ["h:2", "h:4"]


def test_further_files_are_looked_at(tmp_path: Path) -> None:
    """The first file of a folder may be of something else, and no file names every broker."""
    (tmp_path / "a-gc.log").write_text("[0.1s][info][gc] Using G1\n")
    for broker in ("b1", "b2"):
        (tmp_path / f"{broker}.log").write_text(_dated(_ASKED) + _dated(_CONNECTED.replace("b1", broker)))

    found = recognise(str(tmp_path), load_plugins())

    assert found.brokers == ["b1:8080", "b2:8080"]


def test_what_may_be_a_label_is_proposed(tmp_path: Path) -> None:
    """A column with few values, for its reader to uncomment; and a date that may be read in two ways says so."""
    rows = "".join(f"04/03/2026 10:00:0{n},/p{n},{place}\n" for n, place in enumerate(["Berlin", "Bonn", "Berlin"]))

    found = _recognised(tmp_path, f"When,Page,Office\n{rows}")
    mapping = found.mapping

    assert re.match(r"04/03/2026 10:00:00 .* %d/%m/%Y %H:%M:%S; .* %m/%d/%Y %H:%M:%S$", found.doubt)
    assert '# rack = { column = "Office" }  # Berlin, Bonn\n' in mapping
    assert f"# {found.doubt}\n" in mapping


def test_a_value_with_an_end_of_line_stays_in_its_comment(tmp_path: Path) -> None:
    """A value of JSON may hold any character."""
    lines = [json.dumps({"time": 1769860800, "topic": _TOPIC, "office": f"Bonn\nuse = {n}\x07"}) for n in "12"]

    mapping = _recognised(tmp_path, "\n".join(lines)).mapping

    assert toml_table(mapping)["use"] == "delimited"
    assert "# 'Bonn\\nuse = 1\\x07', 'Bonn\\nuse = 2\\x07'" in mapping


def test_a_table_needs_no_mapping(tmp_path: Path) -> None:
    """Parquet with the columns of LOOKUPS is read as it is; other Parquet is refused by the column it lacks."""
    stamps = pa.array([1], pa.timestamp("us", "UTC"))
    labels = {"ts": stamps, "topic": [_TOPIC], "cluster": ["c"], "properties": ['{"zone":"z1"}']}
    pq.write_table(pa.table(labels), tmp_path / "a.parquet")
    pq.write_table(pa.table({"when": stamps}), tmp_path / "b.parquet")

    table = recognise(str(tmp_path / "a.parquet"), load_plugins())
    assert (table.mapping, table.labels) == ("", {"zone": ["z1"]})
    with pytest.raises(InputError, match="has no column"):
        recognise(str(tmp_path / "b.parquet"), load_plugins())


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        ("", "has no line in it"),
        ('{"at": "noon", "topic": "a"}\n' * 9, "JSON Lines .* columns holds times"),
        (
            json.dumps(
                {
                    "topic": "persistent://pulsar/system/loadbalancer-service-unit-state",
                    "key": "t/ns/0x0_0x1",
                    "publish_time_ms": 1769860800000,
                    "value": {
                        "state": "Owned",
                        "dstBroker": "b1:8080",
                        "force": False,
                        "timestamp": 1769860800000,
                        "versionId": 2,
                    },
                }
            )
            + "\n",
            "system topics, but no lookup .* 1 line",
        ),
        ("\x00\x01 words\n" * 20, "is in no form"),
        ("time,host\n1769860800,h1\n", "commas .* columns holds topics"),
        (_dated("Selected new owner broker: b1:8080 for bundle: t/ns/0x00000000_0x10000000."), "no lookup .* DEBUG"),
        (_json("Started").replace("{}", json.dumps({"topic": _TOPIC})) * 30, "no lookup .* 30 lines; .* DEBUG"),
        (f"ts,topic\n2026-01-31T12:00:00Z,{_TOPIC}\nyesterday,{_TOPIC}\n", "CSV .* 1 line of 3 cannot"),
        # All lookups of days without a time would come at midnight.
        ("date,topic\n" + f"2026-01-31,{_TOPIC}\n" * 3, "none of its columns holds times"),
        ("day;what\n" + f"20260131;{_TOPIC}\n" * 3, "none of its columns holds times"),
        # Bundles, and topics in other lines of Pulsar's, would be taken for what was looked up.
        (_OWNED.format("org.apache.pulsar.broker.X") * 9, "no lookup .* 9 lines"),
        (_OWNED.format("o.a.p.b.X") * 9, "no lookup .* 9 lines"),
        (
            "time,uri\n" + "2026-01-31T12:00:00Z,/lookup/v2/topic/persistent/t/ns\n" * 30,
            "30 lines of 31 .* path 'persistent/t/ns'",
        ),
    ],
)
def test_what_is_not_recognised_is_a_sentence(tmp_path: Path, text: str, sentence: str) -> None:
    """It says what came nearest and what is missing."""
    with pytest.raises(InputError, match=sentence):
        _recognised(tmp_path, text)


def _rows(found: Recognised, path: Path) -> list[Any]:
    reader = reader_of(load_plugins(), toml_table(found.mapping), "mapping")
    return list(reader.parse(open_lines(str(path)), str(path)))


@pytest.mark.parametrize(
    ("columns", "expected"),
    [
        (("time", "host", "client_ip", "topic"), "10.0.0.1"),
        (("time", "client", "remote_addr", "topic"), "10.0.0.1"),
        (("time", "server", "user", "topic"), "10.0.0.1"),
    ],
)
def test_a_server_of_its_own_is_no_client(tmp_path: Path, columns: Sequence[str], expected: str) -> None:
    """A column with one value in all rows says where the log was written; an address goes before a name."""
    rows = [f"2026-01-31T12:00:{n:02}Z,lb-1.example,10.0.0.{n % 3 + 1},{_TOPIC}-{n % 4}" for n in range(30)]

    found = _recognised(tmp_path, "\n".join([",".join(columns), *rows]) + "\n")

    assert found.first["client"] == expected


@pytest.mark.parametrize("whole", [_TOPIC, "t/ns/orders"])
def test_one_short_name_makes_no_paths_of_all_names(tmp_path: Path, whole: str) -> None:
    """Whole names stay whole, with a domain or without; the odd one goes to quarantine."""
    lines = [f"1769860800,{whole}-{number}" for number in range(30)]

    found = _recognised(tmp_path, "\n".join(["time,topic", "1769860799,orders", *lines]) + "\n")

    assert found.first["topic"] == f"{_TOPIC}-0"


@pytest.mark.parametrize(
    ("header", "row"),
    [
        ("date,time,zone,topic", "2026-01-31,14:00:00,+02:00,{}"),
        ("day,clock,offset,topic", "01/31/2026,02:00:00 PM,+0200,{}"),
        ("when,offset,topic", "2026-01-31 14:00:00,+0200,{}"),
        ("when,topic", "2026-01-31 14:00:00.0 +0200,{}"),
    ],
)
def test_an_offset_behind_a_time_belongs_to_it(tmp_path: Path, header: str, row: str) -> None:
    """In a column of its own as well; without it all lookups would be hours late."""
    found = _recognised(tmp_path, f"{header}\n" + f"{row.format(_TOPIC)}\n" * 3)

    (first, *_) = _rows(found, tmp_path / "x.log")
    assert first.values["ts"] == 1769860800_000_000


def test_what_looks_as_if_it_counted_and_is_not_read_is_noted(tmp_path: Path) -> None:
    """A zone's name may mean several, and a text is no weight."""
    rows = [f"2026-01-31 12:00:{n:02},CET,{_TOPIC},{'heavy' if n == 7 else n}\n" for n in range(9)]

    found = _recognised(tmp_path, "when,zone,topic,weight\n" + "".join(rows))

    (note,) = found.notes
    assert "zone says CET" in note
    assert "'heavy' is not a weight" in note


def test_a_load_balancer_is_no_broker(tmp_path: Path) -> None:
    """A server that answers every request stands in front of the brokers; a broker may be the only one."""
    rows = [f"2026-01-31T12:00:{n:02}Z,lb-1.example,{_TOPIC}-{n % 4}\n" for n in range(30)]

    server, broker = (_recognised(tmp_path, f"time,{name},topic\n" + "".join(rows)) for name in ("server", "broker"))

    assert (server.brokers, broker.brokers) == ([], ["lb-1.example"])


@pytest.mark.parametrize("name", ["haproxy", "aws-load-balancer"])
def test_a_line_with_a_lookup_is_never_of_another_kind(name: str) -> None:
    """One that a pattern does not match goes to quarantine; others are passed over."""
    reader = reader_of(load_plugins(), {"use": f"shipped:{name}"}, "mapping")
    lines = enumerate(["Proxy started", '"GET /lookup/v2/topic/persistent/t/ns/orders HTTP/1.1"'], start=1)

    (odd,) = reader.parse(iter(lines), "x.log")

    assert (type(odd), odd.line) == (Unreadable, 2)


@pytest.mark.parametrize("client", ["10.0.0.1", "fd00::1", "fe80::1%eth0", "::ffff:10.0.0.1"])
def test_load_balancers_log_clients_of_every_kind(client: str) -> None:
    """With a zone, and IPv4 as IPv6."""
    path = '"GET http://x:80/lookup/v2/topic/persistent/t/ns/orders HTTP/1.1"'
    bracketed = f"[{client}]" if ":" in client else client
    lines = {
        "haproxy": f"Jan 31 12:00:00 lb haproxy[9]: {client}:4000 [31/Jan/2026:12:00:00.003] in p/b 0/0/1/2/3 200 132 "
        f"- - ---- 1/1/0/0/0 0/0 {path}",
        "aws-load-balancer": f"http 2026-01-31T12:00:00.1Z app/lb/50 {bracketed}:4000 10.0.0.9:8080 0.0 0.1 0.0 200 "
        f'200 34 366 {path} "curl" - a',
    }

    rows = [
        next(iter(reader_of(load_plugins(), {"use": f"shipped:{name}"}, "mapping").parse(iter([(1, line)]), "x")))
        for name, line in lines.items()
    ]

    assert [row.values["client"] for row in rows if isinstance(row, Row)] == [client, client]


@pytest.mark.parametrize(
    "path",
    [
        "/lookup/v2/topic/persistent/t/ns/orders",
        "http://x:80/lookup/v2/topic/persistent/t/ns/orders",
        "/pulsar/lookup/v2/topic/persistent/t/ns/orders",
        "GET /lookup/v2/topic/persistent/t/ns/orders?a=b HTTP/1.1",
        "%2Flookup%2Fv2%2Ftopic%2Fpersistent%2Ft%2Fns%2Forders",
        "https%3A%2F%2Fx%2Flookup%2Fv2%2Ftopic%2Fpersistent%2Ft%2Fns%2Forders",
    ],
)
def test_lookups_over_http_are_known_in_any_log(tmp_path: Path, path: str) -> None:
    """Their paths are no topics; other requests are passed over."""
    lines = [
        {"time": f"2026-01-31T12:00:{n:02}Z", "uri": path, "status": 307, "host": "x", "bytes": 93} for n in range(30)
    ]
    # Lookups may be few among the requests.
    lines += [{**lines[0], "uri": f"/admin/v2/clusters/{n}"} for n in range(70)]

    found = _recognised(tmp_path, "".join(json.dumps(line) + "\n" for line in lines))

    rows = _rows(found, tmp_path / "x.log")
    assert len(rows) == 30
    assert {key: rows[0].values.get(key) for key in ("topic", "result", "weight")} == {
        "topic": _TOPIC,
        "result": "redirect",
        "weight": None,
    }


def test_files_without_records_are_named(tmp_path: Path) -> None:
    """They may be what somebody wanted to be read."""
    (tmp_path / "a.txt").write_text("words and words\n" * 30)
    (tmp_path / "b.log").write_text(_dated(_ASKED) + _dated(_CONNECTED))

    found = recognise(str(tmp_path), load_plugins())

    assert found.notes[0].startswith(f"nothing is read of {tmp_path}/a.txt: ")


def test_the_day_of_a_clock_is_noted(tmp_path: Path) -> None:
    """It is that of the file, which a copy of a log does not keep; access logs have one of their own."""
    (clock,) = _recognised(tmp_path, _LOGS["broker, clock only"][0]).notes
    dated = _recognised(tmp_path, f"12:00:00.250 [web-1] INFO  RequestLog - {_LOGS['web server of a broker'][0]}")

    assert "is taken for 20" in clock
    assert (dated.notes, "date = " in dated.mapping) == ([], False)
