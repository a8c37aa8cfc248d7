"""Forty lookups as thirty programs would log them, by `init` and the `ingest` that it proposes: truth or a sentence."""

from __future__ import annotations

import csv
import io
import json
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta, timezone
from pathlib import Path
from random import Random
from typing import Any
from urllib.parse import quote

import pyarrow.parquet as pq
import pytest

from lookup.model.time import to_us
from tests.commands.projects import Run, runner


@dataclass(frozen=True)
class Lookup:
    """What happened: who asked when for what, and which broker was the answer."""

    at: datetime
    topic: str
    client: str
    owner: str

    @property
    def path(self) -> str:
        """Return the path of the lookup over HTTP."""
        return "/lookup/v2/topic/" + self.topic.replace("://", "/")

    def time(self, form: str, *, hours: int = 0) -> str:
        """Write the time in a zone that is some hours east of Greenwich."""
        return self.at.astimezone(timezone(timedelta(hours=hours))).strftime(form)

    def iso(self, hours: int = 0, *, mark: str = ",", colon: bool = False) -> str:
        """Write the time to the ms with its offset."""
        offset = f"+{hours:02}:00" if colon else f"+{hours:02}00"
        return self.time("%Y-%m-%dT%H:%M:%S", hours=hours) + f"{mark}{self.at.microsecond // 1000:03}{offset}"


_CLIENTS = ("10.1.0.7", "10.1.0.8", "10.2.0.9", "fd00:1::7", "fd00:1::8")
_OWNERS = ("broker-1.example:8080", "broker-2.example:8080", "[fd00:10::a3]:8080")
#: Over midnight, of the last days of March.
TRUTH: Sequence[Lookup] = tuple(
    Lookup(
        datetime(2024, 3, 25, 23, 58, 30, tzinfo=UTC) + timedelta(milliseconds=4_250 * number),
        f"persistent://acme/{'orders' if number % 3 else 'bills'}/t-{number % 7}",
        _CLIENTS[number * 7 % 5],
        _OWNERS[number * 5 % 3],
    )
    for number in range(40)
)


@dataclass(frozen=True)
class Form:
    """A form of log: how it writes lookups, and what of them it holds."""

    #: lines of a lookup; the zone is some hours east of Greenwich
    lines: Callable[[Lookup, int], Sequence[str]]
    #: lines before all others
    head: Sequence[str] = ()
    has_client: bool = True
    has_owner: bool = False
    #: µs of the clock's steps
    step_us: int = 1_000
    has_offset: bool = True
    name: str = "log"


def _bracketed(address: str) -> str:
    return f"[{address}]" if ":" in address else address


def _url(owner: str) -> str:
    return f"pulsar://{owner.removesuffix(':8080')}:6650"


def _asked(lookup: Lookup) -> str:
    return f"[{lookup.topic}] Received Lookup from /{_bracketed(lookup.client)}:50123 for 17"


def _answered(lookup: Lookup) -> str:
    urls = f"brokerUrl={_url(lookup.owner)}, brokerUrlTls=null, httpUrl=http://{lookup.owner}, httpUrlTls=null"
    data = f"LookupData{{{urls}}}"
    return f"[{lookup.topic}] Lookup result Optional[LookupResult [type=BrokerUrl, lookupData={data}]]"


def _broker(before: str = "", *, layout: str = "{time} [pulsar-io-4-1] DEBUG {logger} - {message}") -> Form:
    """Return a broker's log, two lines a lookup, with something before each."""

    def lines(lookup: Lookup, hours: int) -> Sequence[str]:
        """Return the request and the answer."""
        time = lookup.iso(hours)
        return [
            before + layout.format(time=time, logger=f"org.apache.pulsar.broker.{logger}", message=message)
            for logger, message in (
                ("service.ServerCnx", _asked(lookup)),
                ("lookup.TopicLookupBase", _answered(lookup)),
            )
        ]

    return Form(lines, has_owner=True)


def _broker_json(lookup: Lookup, hours: int) -> Sequence[str]:
    epoch = {"epochSecond": int(lookup.at.timestamp()), "nanoOfSecond": lookup.at.microsecond * 1000}
    return [
        json.dumps(
            {"instant": epoch, "level": "DEBUG", "loggerName": f"org.apache.pulsar.broker.{name}", "message": text}
        )
        for name, text in (("service.ServerCnx", _asked(lookup)), ("lookup.TopicLookupBase", _answered(lookup)))
    ]


def _in_docker(lookup: Lookup, hours: int) -> Sequence[str]:
    """Return a broker's lines as Docker's json-file driver keeps them."""
    stamp = lookup.iso(0, mark=".").replace("+0000", "Z")
    return [
        json.dumps({"log": f"{line}\n", "stream": "stdout", "time": stamp}) for line in _broker().lines(lookup, hours)
    ]


def _combined(lookup: Lookup, hours: int, more: str = "", before: str = "") -> Sequence[str]:
    time = lookup.time("%d/%b/%Y:%H:%M:%S", hours=hours) + f" +{hours:02}00"
    return [f'{before}{lookup.client} - - [{time}] "GET {lookup.path} HTTP/1.1" 200 132 "-" "Pulsar-Java-v3.0.2"{more}']


def _table(
    names: Sequence[str], row: Callable[[Lookup, int], Sequence[object]], delimiter: str = ",", **facts: object
) -> Form:
    """Return a delimited table with a header."""

    def written(values: Sequence[object]) -> str:
        sink = io.StringIO()
        csv.writer(sink, delimiter=delimiter, lineterminator="").writerow(values)
        return sink.getvalue()

    return Form(lambda lookup, hours: [written(row(lookup, hours))], [written(names)], **facts)  # type: ignore[arg-type]  # facts of a form


def _objects(record: Callable[[Lookup, int], Mapping[str, object]], **facts: object) -> Form:
    return Form(lambda lookup, hours: [json.dumps(record(lookup, hours))], **facts)  # type: ignore[arg-type]  # facts of a form


def _line(write: Callable[[Lookup, int], str], **facts: object) -> Form:
    return Form(lambda lookup, hours: [write(lookup, hours)], **facts)  # type: ignore[arg-type]  # facts of a form


def _unix(lookup: Lookup, scale: int) -> int:
    return to_us(lookup.at) * scale // 1_000_000


def _caddy(lookup: Lookup, hours: int) -> Mapping[str, object]:
    request = {"remote_ip": lookup.client, "method": "GET", "host": "pulsar.example", "uri": lookup.path}
    return {
        "level": "info",
        "ts": lookup.at.timestamp(),
        "request": request,
        "duration": 0.01,
        "size": 9,
        "status": 200,
    }


def _wrapped(
    wrap: Callable[[str, Lookup], object], *, together: int = 1, form: Form | None = None, **facts: object
) -> Form:
    """Return a broker's log whose lines something has wrapped; several of a lookup on one line if they go together."""
    inner = form or _broker()

    def lines(lookup: Lookup, hours: int) -> Sequence[str]:
        """Return the lines of a lookup, or one line with all of them."""
        each = [wrap(line, lookup) for line in inner.lines(lookup, hours)]
        if together > 1:
            (each,) = [[_TOGETHER[together](each)]]
        return [text if isinstance(text, str) else json.dumps(text) for text in each]

    return Form(lines, has_owner=True, **facts)  # type: ignore[arg-type]  # facts of a form


#: Answers of stores, and batches of collectors, around records: by a number that stands for each.
_TOGETHER: Mapping[int, Callable[[Sequence[object]], object]] = {
    2: lambda records: {"resourceLogs": [{"resource": {"attributes": []}, "scopeLogs": [{"logRecords": records}]}]},
    3: lambda records: {"messageType": "DATA_MESSAGE", "logGroup": "pulsar", "logEvents": records},
    4: lambda records: {"records": records},
    5: lambda records: {
        "took": 5,
        "hits": {"total": {"value": 2}, "hits": [{"_id": "1", "_source": r} for r in records]},
    },
    6: lambda records: {"status": "success", "data": {"result": [{"stream": {"app": "pulsar"}, "values": records}]}},
    7: lambda records: {"log": "\n".join(map(str, records)) + "\n"},
    8: lambda records: records,
    9: lambda records: "".join(json.dumps(record) for record in records),
}


def _late(lookup: Lookup, hours: int = 1) -> str:
    """Return when a collector has read a line that the broker wrote some time ago."""
    return (lookup.at + timedelta(hours=hours, seconds=7)).strftime("%Y-%m-%dT%H:%M:%S.000Z")


def _halves(line: str, lookup: Lookup) -> Sequence[str]:
    return [line[: len(line) // 2], line[len(line) // 2 :]]


def _cri(line: str, lookup: Lookup) -> list[str]:
    stamp = lookup.iso(0, mark=".").replace("+0000", "000123Z")
    first, last = _halves(line, lookup)
    return [f"{stamp} stdout P {first}", f"{stamp} stdout F {last}"]


def _docker_parts(line: str, lookup: Lookup) -> list[str]:
    """Return a line that Docker has cut behind 16 KiB."""
    parts = f"{line} {'.' * 16_384}"[:16_384], "the rest\n"
    return [json.dumps({"log": text, "stream": "stdout", "time": _late(lookup, 0)}) for text in parts]


def _bare_of(line: str) -> str:
    """Return the message of a line in the layout of `_broker`."""
    return line.split(" - ", 1)[1]


def _asked_and_answered(lookup: Lookup) -> Mapping[str, object]:
    return {"topic": lookup.topic, "client": lookup.client, "broker": lookup.owner}


def _clock_only(lookup: Lookup, hours: int) -> Sequence[str]:
    return [line.split("T", 1)[1].replace(",", ".").replace("+0000", "", 1) for line in _broker().lines(lookup, 0)]


_SECOND = 1_000_000
_W3C = "date time s-ip cs-method cs-uri-stem cs-uri-query s-port cs-username c-ip cs(User-Agent) sc-status sc-bytes"
FORMS: Mapping[str, Form] = {
    "broker": _broker(),
    "broker, thread and line": _broker(layout="{time} [pulsar-web-30-1] DEBUG {logger} - {message}"),
    "broker, JSON": Form(_broker_json, has_owner=True, has_offset=False),
    "broker, kubectl": _broker("[pod/pulsar-broker-0/pulsar-broker] "),
    "broker, stern": _broker("pulsar-broker-0 pulsar-broker "),
    "broker, docker compose": _broker("broker-1  | "),
    "broker, docker json-file": Form(_in_docker, has_owner=True),
    "broker, journal": _broker("Mar 26 00:07:11 host-1 pulsar[812]: "),
    "broker, syslog": _broker("<14>1 2024-03-26T00:07:11.003Z host-1 pulsar 812 - - "),
    "broker, colours": _broker(layout="{time} [pulsar-io-4-1] \x1b[34mDEBUG\x1b[0m {logger} - {message}"),
    "broker, Vector, late": _wrapped(lambda line, at: {"message": line, "source_type": "file", "timestamp": _late(at)}),
    "broker, Filebeat": _wrapped(
        lambda line, at: {
            "@timestamp": _late(at),
            "@metadata": {"beat": "filebeat"},
            "log": {"offset": 7, "file": {"path": "/pulsar/b.log"}},
            "message": line,
        }
    ),
    "broker, Logstash, twice": _wrapped(
        lambda line, at: {"@timestamp": _late(at), "event": {"original": line}, "message": _bare_of(line)}
    ),
    "broker, CRI": Form(
        lambda lookup, hours: [f"{_late(lookup, 0)} stderr F {line}" for line in _broker().lines(lookup, hours)],
        has_owner=True,
    ),
    "broker, CRI, cut": Form(
        lambda lookup, hours: [part for line in _broker().lines(lookup, hours) for part in _cri(line, lookup)],
        has_owner=True,
    ),
    "broker, Docker, cut": Form(
        lambda lookup, hours: [part for line in _broker().lines(lookup, hours) for part in _docker_parts(line, lookup)],
        has_owner=True,
    ),
    "broker, OTLP": _wrapped(
        lambda line, at: {"timeUnixNano": str(_unix(at, 10**9)), "body": {"stringValue": line}, "attributes": []},
        together=2,
    ),
    "broker, OTLP, bare": _wrapped(
        lambda line, at: {"timeUnixNano": str(_unix(at, 10**9)), "body": {"stringValue": _bare_of(line)}}, together=2
    ),
    "broker, CloudWatch": _wrapped(
        lambda line, at: {"id": "3", "timestamp": _unix(at, 1_000) + 3_600_000, "message": line}, together=3
    ),
    "broker, CloudWatch, Firehose": _wrapped(
        lambda line, at: {"logEvents": [{"timestamp": _unix(at, 1_000), "message": line}]}, together=9
    ),
    "broker, Azure": _wrapped(
        lambda line, at: {"time": _late(at), "category": "pulsar", "properties": {"log": line + "\n"}}, together=4
    ),
    "broker, Elasticsearch": _wrapped(lambda line, at: {"@timestamp": _late(at), "message": line}, together=5),
    "broker, Loki": _wrapped(lambda line, at: [str(_unix(at, 10**9)), line], together=6),
    "broker, logcli": _wrapped(lambda line, at: f'{_late(at)} {{app="pulsar", pod="broker-0"}} {line}'),
    "broker, logcli, JSON": _wrapped(lambda line, at: {"labels": {"app": "p"}, "line": line, "timestamp": _late(at)}),
    "broker, two lines in one": _wrapped(lambda line, at: line, together=7),
    "broker, an array a line": _wrapped(lambda line, at: {"message": line, "time": _late(at)}, together=8),
    "broker, escaped twice": _wrapped(
        lambda line, at: {"log": json.dumps({"payload": json.dumps({"message": line, "ts": _late(at)})})}
    ),
    "broker, journal, bytes": _wrapped(
        lambda line, at: {"__REALTIME_TIMESTAMP": str(_unix(at, 10**6)), "MESSAGE": list(line.encode())}
    ),
    "broker, journal, JSON": _wrapped(
        lambda line, at: {"__REALTIME_TIMESTAMP": str(_unix(at, 10**6)), "_PID": "8", "MESSAGE": line}
    ),
    "broker, Google": _wrapped(
        lambda line, at: {"textPayload": line + "\n", "timestamp": _late(at), "resource": {"type": "k8s_container"}}
    ),
    "broker, Splunk": _wrapped(
        lambda line, at: {"preview": False, "result": {"_raw": line, "_time": _late(at), "host": "b"}}
    ),
    "broker, parsed by a collector": _wrapped(
        lambda line, at: {"@timestamp": at.iso(mark=".").replace("+0000", "Z"), "message": _bare_of(line)}
    ),
    "broker, clock, late": _wrapped(
        lambda line, at: {"message": line, "timestamp": _late(at)}, form=Form(_clock_only), has_offset=False
    ),
    "broker, spread JSON": _wrapped(lambda line, at: json.dumps({"timestamp": _late(at), "message": line}, indent=2)),
    "JSON in Docker": _wrapped(
        lambda line, at: {"log": line + "\n", "stream": "stdout", "time": _late(at)},
        form=_objects(lambda lookup, hours: {"when": lookup.iso(hours, mark="."), **_asked_and_answered(lookup)}),
    ),
    "JSON, Elasticsearch": _wrapped(
        lambda line, at: json.loads(line),
        together=5,
        form=_objects(lambda lookup, hours: {"timestamp": lookup.iso(hours, mark="."), **_asked_and_answered(lookup)}),
    ),
    "C++ client": _line(
        lambda lookup, _: (
            lookup.time("%Y-%m-%d %H:%M:%S.")
            + f"{lookup.at.microsecond // 1000:03} INFO  [0x16fbf7000] BinaryProtoLookupService:87 | Lookup response"
            f" for {lookup.topic}, lookup-broker-url {_url(lookup.owner)}, from"
            f" [{_bracketed(lookup.client)}:40000 -> 10.0.0.9:6650]"
        ),
        has_owner=True,
        has_offset=False,
    ),
    "Go client": _line(
        lambda lookup, hours: (
            f'time="{lookup.iso(hours, mark=".", colon=True)}" level=debug msg="Successfully looked up '
            f'topic{{{lookup.topic}}} on broker. {_url(lookup.owner)} /  - Use proxy: false" serviceURL=pulsar://p:6650'
        ),
        has_client=False,
        has_owner=True,
    ),
    "Jetty": _line(lambda lookup, hours: _combined(lookup, hours)[0] + " 12", step_us=_SECOND),
    "nginx": Form(_combined, step_us=_SECOND),
    "nginx, more": Form(
        lambda lookup, hours: _combined(lookup, hours, ' "-" rt=0.001 us="10.0.0.9:80"'), step_us=_SECOND
    ),
    "Apache, hosts": Form(lambda lookup, hours: _combined(lookup, hours, before="pulsar.example:80 "), step_us=_SECOND),
    "HAProxy": _line(
        lambda lookup, _: (
            f"Mar 26 00:07:11 lb haproxy[9]: {lookup.client}:40000 [{lookup.time('%d/%b/%Y:%H:%M:%S')}."
            f"{lookup.at.microsecond // 1000:03}] in pulsar/b1 0/0/1/2/3 200 132 - - ---- 1/1/0/0/0 0/0 "
            f'"GET {lookup.path} HTTP/1.1"'
        ),
        has_offset=False,
    ),
    "Envoy": _line(
        lambda lookup, _: (
            f'[{lookup.iso(mark=".").replace("+0000", "Z")}] "GET {lookup.path} HTTP/1.1" 200 - 0 132 12 11 '
            f'"{lookup.client}" "Pulsar-Java" "a-b" "pulsar.example" "10.0.0.9:8080"'
        ),
        has_offset=False,
    ),
    "AWS load balancer": _line(
        lambda lookup, _: (
            f"http {lookup.iso(mark='.').replace('+0000', 'Z')} app/lb/50dc {_bracketed(lookup.client)}:40000 "
            f'10.0.0.9:8080 0.0 0.1 0.0 200 200 34 366 "GET http://pulsar.example:80{lookup.path} HTTP/1.1" "curl" - a'
        ),
        has_offset=False,
    ),
    "IIS": Form(
        lambda lookup, _: [
            f"{lookup.time('%Y-%m-%d %H:%M:%S')} 10.0.0.9 GET {lookup.path} - 8080 - {lookup.client} Java 200 132"
        ],
        ["#Software: Microsoft Internet Information Services 10.0", "#Version: 1.0", f"#Fields: {_W3C}"],
        step_us=_SECOND,
        has_offset=False,
    ),
    "CloudFront": Form(
        lambda lookup, _: [
            "\t".join(
                (*lookup.time("%Y-%m-%d %H:%M:%S").split(), "FRA2", "132", lookup.client, "GET", lookup.path, "200")
            )
        ],
        ["#Version: 1.0", "#Fields: date time x-edge-location sc-bytes c-ip cs-method cs-uri-stem sc-status"],
        step_us=_SECOND,
        has_offset=False,
    ),
    "Caddy": _objects(_caddy, has_offset=False),
    "Traefik": _objects(
        lambda lookup, _: {
            "ClientHost": lookup.client,
            "DownstreamStatus": 200,
            "RequestHost": "pulsar.example",
            "RequestPath": lookup.path,
            "time": lookup.iso(mark=".").replace("+0000", "Z"),
        },
        has_offset=False,
    ),
    "JSON, nested": _objects(
        lambda lookup, hours: {
            "when": lookup.iso(hours, mark=".", colon=True),
            "req": {"topic": lookup.topic, "client": lookup.client},
            "res": {"broker": lookup.owner},
        },
        has_owner=True,
    ),
    "CSV, date and time": _table(
        ("date", "time", "topic", "client"),
        lambda lookup, _: (*lookup.time("%Y-%m-%d %H:%M:%S.%f").split(), lookup.topic, lookup.client),
        has_offset=False,
    ),
    "CSV, seconds": _table(
        ("time", "topic", "client", "broker"),
        lambda lookup, _: (_unix(lookup, 1), lookup.topic, lookup.client, lookup.owner),
        has_owner=True,
        step_us=_SECOND,
        has_offset=False,
    ),
    "CSV, milliseconds, a server of its own": _table(
        ("ts", "host", "topic", "peer"),
        lambda lookup, _: (_unix(lookup, 1_000), "lb-1.example", lookup.topic, lookup.client),
        has_offset=False,
    ),
    "TSV, encoded": _table(
        ("time", "topic", "client"),
        lambda lookup, hours: (lookup.iso(hours, mark=".", colon=True), quote(lookup.topic, safe=""), lookup.client),
        delimiter="\t",
    ),
    "semicolons, German": _table(
        ("Zeit", "Topic", "Client"),
        lambda lookup, _: (lookup.time("%d.%m.%Y %H:%M:%S"), lookup.topic, lookup.client),
        delimiter=";",
        step_us=_SECOND,
        has_offset=False,
    ),
    "CSV, topics in three columns": _table(
        ("time", "tenant", "namespace", "topic", "client"),
        lambda lookup, _: (lookup.iso(mark="."), *lookup.topic.split("://")[1].split("/"), lookup.client),
        has_offset=False,
    ),
    "JSON, topics in two keys, ms": _objects(
        lambda lookup, _: {
            "ts": _unix(lookup, 1_000),
            "ns": lookup.topic.split("://")[1].rpartition("/")[0],
            "topic": lookup.topic.rpartition("/")[2],
            "client": lookup.client,
        },
        has_offset=False,
    ),
    "CSV of LOOKUPS": _table(
        ("ts", "topic", "client", "broker"),
        lambda lookup, hours: (lookup.iso(hours, mark=".", colon=True), lookup.topic, lookup.client, lookup.owner),
        has_owner=True,
    ),
    "application, logfmt": _line(
        lambda lookup, hours: (
            f"ts={lookup.iso(hours, mark='.', colon=True)} level=info topic={lookup.topic} "
            f"client={lookup.client} took=3ms"
        )
    ),
    "application, blanks": _line(
        lambda lookup, _: (
            f"{lookup.time('%Y-%m-%d %H:%M:%S')},{lookup.at.microsecond // 1000:03} INFO svc.gateway lookup "
            f"{lookup.topic} client={lookup.client} took=3ms"
        ),
        has_offset=False,
    ),
}


def _written(form: Form, hours: Callable[[int], int] = lambda number: 0) -> list[str]:
    """Return the lines of a log; the zone may change with the number of the lookup."""
    return [*form.head, *(line for number, each in enumerate(TRUTH) for line in form.lines(each, hours(number)))]


#: What happens to a log, by its name: the lines that are left of it.
CHANGES: Mapping[str, Callable[[Form], list[str]]] = {
    "as it is": _written,
    "reversed": lambda form: _written(form)[::-1],
    "shuffled": lambda form: [*form.head, *Random(7).sample(rest := _written(form)[len(form.head) :], len(rest))],
    "CRLF": lambda form: [f"{line}\r" for line in _written(form)],
    "CR": lambda form: ["\r".join(_written(form))],
    "prefix": lambda form: [f"[pod/gateway-7/main] {line}" for line in _written(form)],
    "two zones": lambda form: _written(
        form, (lambda number: 2 * (number % 2)) if form.has_offset else lambda number: 0
    ),
    "doubled": lambda form: [*_written(form), *_written(form)[len(form.head) :]],
}


#: What is said of a log whose rows are not those of the truth, by what happened to it.
_SAID = {
    "reversed": (),
    "shuffled": ("is not in the order of time",),
    "prefix": (),
    "doubled": ("are the same as others in every column",),
}


@pytest.fixture
def lookup(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> Run:
    """Return a function that runs a command line in this process."""
    monkeypatch.setenv("NO_COLOR", "1")
    return runner(capsys)


def _expected(form: Form) -> Counter[tuple[Any, ...]]:
    return Counter(
        (
            to_us(each.at) // form.step_us,
            each.topic,
            each.client if form.has_client else None,
            each.owner if form.has_owner else None,
        )
        for each in TRUTH
    )


def _read(output: Path, form: Form) -> Counter[tuple[Any, ...]]:
    rows = [
        row
        for file in sorted((output / "lookups").rglob("*.parquet"))
        for row in pq.ParquetFile(file).read().to_pylist()
    ]
    return Counter((to_us(row["ts"]) // form.step_us, row["topic"], row["client"], row["broker"]) for row in rows)


@pytest.mark.parametrize("change", CHANGES)
@pytest.mark.parametrize("name", FORMS)
def test_a_log_gives_the_truth_or_a_sentence(lookup: Run, tmp_path: Path, name: str, change: str) -> None:
    """Rows with time, topic, client and owner as they were; else what is wrong is said, and never nothing."""
    form = FORMS[name]
    log = tmp_path / "log"
    log.write_bytes(("\n".join(CHANGES[change](form)) + "\n" * (change != "CR")).encode())

    found = lookup("init", tmp_path / "trial", "--log", log)
    if found.code == 2:
        assert change in ("reversed", "prefix", "shuffled"), found.err
        assert found.err.startswith(f"error: {log}: ")
        return
    mapping = ("--mapping", tmp_path / "trial" / "mapping.toml", "--cluster", "main", "--master", "none")
    ran = lookup("ingest", log, *mapping, "--output", tmp_path / "tables")

    rows = _read(tmp_path / "tables", form) if ran.code == 0 else Counter()
    if rows == _expected(form):
        # Whatever is right is not doubted.
        assert "of lookups in them" not in ran.err
    else:
        assert change in _SAID, (ran.err, rows - _expected(form), _expected(form) - rows)
        assert ran.code == 2 or any(words in ran.err for words in (*_SAID[change], "in quarantine")), (ran.err, rows)
