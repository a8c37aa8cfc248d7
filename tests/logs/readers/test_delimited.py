"""The delimited reader."""

from __future__ import annotations

import re
from typing import Any

import pytest

from lookup.logs.readers.delimited import DelimitedReader
from lookup.model.documents import Row, Unreadable

_TIME = {"column": "time", "format": "unix"}
_TOPIC = "persistent://t/ns/{page}"


def _read(reader: DelimitedReader, *lines: str) -> list[Row | Unreadable]:
    return list(reader.parse(iter(enumerate(lines, start=1)), "file"))


def _one(reader: DelimitedReader, *lines: str) -> dict[str, Any]:
    (row,) = _read(reader, *lines)
    assert isinstance(row, Row), row
    return dict(row.values)


def test_columns_may_be_named_by_the_mapping() -> None:
    """Without a header the mapping's names hold from the first line on."""
    reader = DelimitedReader(topic=_TOPIC, timestamp=_TIME, header=False, columns=("time", "page"), delimiter="|")
    assert _one(reader, "7|home")["topic"] == "persistent://t/ns/home"


def test_every_field_of_a_lookup_can_be_mapped() -> None:
    """Client, cluster, brokers, listener, result, weight, latency and properties come from their columns."""
    reader = DelimitedReader(
        topic=_TOPIC,
        timestamp=_TIME,
        client="host",
        cluster="c-{dc}",
        broker="{b}:8080",
        asked_broker="asked",
        listener="l",
        result={"column": "status", "rule": "map", "values": {"200": "connect"}, "default": "failed"},
        weight={"column": "bytes", "default": 1.0, "min": 0.5, "scale": 0.001},
        latency_ms={"column": "s", "scale": 1000.0},
        properties={"rack": {"column": "host", "rule": "domain-label"}},
    )
    values = _one(reader, "time,page,host,dc,b,asked,l,status,bytes,s", "7,p,h.de,eu,b1,b2:8080,ext,200,2000,0.25")

    assert values == {
        "ts": 7_000_000,
        "topic": "persistent://t/ns/p",
        "client": "h.de",
        "cluster": "c-eu",
        "broker": "b1:8080",
        "asked_broker": "b2:8080",
        "listener": "ext",
        "result": "connect",
        "weight": 2.0,
        "latency_ms": 250.0,
        "properties": {"rack": "de"},
    }


@pytest.mark.parametrize(("text", "weight"), [("", 9.0), ("-", 9.0), ("0", 0.5), ("3", 3.0)])
def test_weights_have_a_default_and_a_least_value(text: str, weight: float) -> None:
    """An empty or dashed weight is the default, one below the least value is the least value."""
    reader = DelimitedReader(topic=_TOPIC, timestamp=_TIME, weight={"column": "w", "default": 9.0, "min": 0.5})
    assert _one(reader, "time,page,w", f"7,p,{text}")["weight"] == weight


def test_a_pattern_takes_the_place_of_the_delimiter() -> None:
    """Named groups of a pattern are the columns; a line that does not match is unreadable."""
    reader = DelimitedReader(topic=_TOPIC, timestamp=_TIME, pattern=r"(?P<time>\d+) <(?P<page>.*)>")
    good, bad = _read(reader, "7 <home>", "garbage")

    assert isinstance(good, Row)
    assert good.values["topic"] == "persistent://t/ns/home"
    assert isinstance(bad, Unreadable)
    assert (bad.line, "`pattern`" in bad.reason) == (2, True)


_OBJECT = '{"time": 7, "page": "home", "peer": {"ip": "10.0.0.1", "az": "a"}, "size": 12, "ok": true, "rack": null}'


def test_keys_of_objects_are_columns() -> None:
    """Whatever a mapping does with columns it does with keys; nested ones are named by dots, null is an empty value."""
    reader = DelimitedReader(
        topic=_TOPIC,
        timestamp=_TIME,
        client="peer.ip",
        weight={"column": "size", "default": 1.0},
        result={"column": "ok", "rule": "map", "values": {"true": "connect"}},
        properties={"az": "peer.az", "rack": "rack", "tier": {"column": "tier", "default": "none"}},
        format="json",
    )

    assert _one(reader, _OBJECT) == {
        "ts": 7_000_000,
        "topic": "persistent://t/ns/home",
        "client": "10.0.0.1",
        "weight": 12.0,
        "result": "connect",
        "properties": {"az": "a", "tier": "none"},
    }


@pytest.mark.parametrize(
    ("line", "reason"),
    [
        ("[7]", "the line is not a JSON object but list"),
        ("{", "the line is not JSON: "),
        ('{"time": 7}', "the object has no value"),
    ],
)
def test_a_line_that_is_no_object_is_reported(line: str, reason: str) -> None:
    """So is an object without time or topic, unless a condition leaves it out; the next line is read."""
    reader = DelimitedReader(topic=_TOPIC, timestamp=_TIME, format="json", only={"kind": "|lookup"})
    bad, good = _read(reader, line, '{"kind": "other"}', _OBJECT)

    assert isinstance(bad, Unreadable)
    assert (bad.line, bad.text, bad.reason.startswith(reason)) == (1, line, True)
    assert isinstance(good, Row)


@pytest.mark.parametrize(
    ("client", "sentence"), [("peer.id", "no object has the key 'peer.id'; "), ("seldom", None), ("peer.ip", None)]
)
def test_a_key_that_no_object_has_is_named(client: str, sentence: str | None) -> None:
    """Before any record is read, if another one is like it; a key may be rare."""
    reader = DelimitedReader(topic=_TOPIC, timestamp=_TIME, format="json", client=client)

    problem = reader.problem_of(iter([(1, "no object"), (2, _OBJECT)]))

    assert (problem or "").startswith(sentence or "")
    assert (problem is None) is (sentence is None)


def test_objects_need_a_key_of_topics() -> None:
    """Without it no record would be read."""
    problem = DelimitedReader(topic=_TOPIC, timestamp=_TIME, format="json").problem_of(iter([(1, '{"time": 7}')]))
    assert (problem or "").startswith("no object has the key 'page'")


def test_quotes_comments_and_conditions() -> None:
    """Quoted delimiters stay in values, comments and records that fail a condition are passed over."""
    reader = DelimitedReader(
        topic=_TOPIC, timestamp=_TIME, quote='"', comment="#", only={"page": "a.*"}, decode=("page",)
    )
    rows = _read(reader, "# v1", "time,page", '7,"a,b"', "8,b", "", "9,a%2Fc")

    assert [row.values["topic"] for row in rows if isinstance(row, Row)] == [
        "persistent://t/ns/a,b",
        "persistent://t/ns/a%2Fc",
    ]


@pytest.mark.parametrize(
    ("line", "reason"),
    [("7", "1 values where 2"), ("soon,p", "timestamp 'soon' "), ('7,"p', "the quotes do not fit: ")],
)
def test_a_line_that_cannot_be_used_is_reported(line: str, reason: str) -> None:
    """Wrong count, time or quotes make the record unreadable with the reason, and the next one is read."""
    reader = DelimitedReader(topic=_TOPIC, timestamp=_TIME, quote='"')
    bad, good = _read(reader, "time,page", line, "7,home")

    assert isinstance(bad, Unreadable)
    assert (bad.line, bad.text, bad.reason.startswith(reason)) == (2, line, True)
    assert isinstance(good, Row)


@pytest.mark.parametrize(
    ("header", "sentence"),
    [
        ('"a","b"', 'it has "a", "b"; .* `quote`'),
        ("a,b", "it has a, b$"),
        ("a;b,;c", "it has a;b, ;c$"),
        ("page,time", None),
    ],
)
def test_a_header_says_what_the_mapping_lacks(header: str, sentence: str | None) -> None:
    """Before any record is read."""
    problem = DelimitedReader(topic=_TOPIC, timestamp=_TIME).problem_of(iter([(1, ""), (2, header)]))
    assert (problem is None) is (sentence is None)
    assert sentence is None or re.search(f"no column 'page'; .*{sentence}", str(problem))


def test_a_header_that_cannot_be_cut_is_said_so() -> None:
    """By another delimiter the names do not fit their quotes."""
    problem = DelimitedReader(topic=_TOPIC, timestamp=_TIME, quote='"').problem_of(iter([(1, '"a";"b"')]))
    assert problem is not None
    assert problem.startswith("the header cannot be cut")


@pytest.mark.parametrize(
    ("mapping", "sentence"),
    [
        ({"timestamp": {"colum": "time"}}, "timestamp has no key 'colum'"),
        ({"timestamp": {}}, "timestamp.column must name a column"),
        ({"timestamp": {"column": "t", "format": "epoch"}}, "time format 'epoch' is unknown"),
        ({"topic": "{page}/x"}, "topic template '{page}/x' is not of the form"),
        ({"header": False}, "`columns` must name the columns"),
        ({"pattern": "(.*)"}, "`pattern` must have named groups"),
        ({"pattern": "("}, "`pattern` is not a regular expression"),
        ({"pattern": "(?P<time>.*) (?P<pge>.*)"}, "`pattern` has no column 'page'"),
        ({"columns": ("time", "pages")}, "`columns` has no column 'page'"),
        ({"delimiter": ""}, "`delimiter` is empty"),
        ({"format": "json", "delimiter": ";"}, "`delimiter` is for lines"),
        ({"format": "json", "pattern": "(?P<time>.*)"}, "`pattern` is for lines"),
        ({"delimiter": "::", "quote": '"'}, "must be single characters"),
        ({"weight": {"column": "w", "default": "x"}}, "weight.default must be a finite"),
        ({"weight": {"column": "w", "scale": 10**400}}, "weight.scale must be a finite"),
        ({"only": {"page": "("}}, "only: '\\(' is"),
        ({"properties": {"rack": {"rule": "cidr"}}}, "properties.rack: rule 'cidr' .* 'networks'"),
    ],
)
def test_a_wrong_mapping_is_refused(mapping: dict[str, Any], sentence: str) -> None:
    """A mapping that cannot work is a ValueError naming the key, before any file is read."""
    with pytest.raises(ValueError, match=sentence):
        DelimitedReader(**{"topic": _TOPIC, "timestamp": _TIME, **mapping})


def test_no_byte_of_a_log_is_repeated_raw() -> None:
    """A header and a record with control characters are told with escapes, and of many columns only some are named."""
    reader = DelimitedReader(topic=_TOPIC, timestamp=_TIME)
    header, record = "page,w\x1b[31mhen," + ",".join(f"c{n}" for n in range(500)), "\x1b]0;x\x07" * 2_000

    (bad_header,) = _read(reader, header)
    (bad_record,) = _read(reader, "page,time", f"{record},{record}")

    assert isinstance(bad_header, Unreadable)
    assert isinstance(bad_record, Unreadable)
    assert "'w\\x1b[31mhen', c0, c1," in bad_header.reason
    assert bad_header.reason.endswith(" c9 and 490 more")
    assert bad_record.reason.isprintable()
    assert len(bad_record.reason) < 500
