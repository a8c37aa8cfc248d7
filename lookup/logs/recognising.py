"""Recognise what a log is by its first lines, and write the mapping with which `ingest` reads it.

Whatever is proposed was tried: the reader has read the first lines with that mapping before it is returned.
"""

from __future__ import annotations

import csv
import json
import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from itertools import islice
from pathlib import Path
from typing import Any

from lookup.engine.plugins import Registry
from lookup.errors import InputError, SettingsError
from lookup.logs.columns import TABLES, check_row
from lookup.logs.ingest import MAX_QUARANTINE_RATIO, reader_of
from lookup.logs.sources import LogFile, list_files, list_log, open_lines, open_parquet
from lookup.model.documents import Row, Unreadable, json_value, toml_table
from lookup.model.quoting import quantity
from lookup.model.time import time_parser

__all__ = ["Recognised", "recognise"]

#: Lines that are looked at. Lookups may be rare among the lines of a broker's log.
_HEAD = 20_000
#: Rows that decide what the columns of a delimited file hold.
_SAMPLE = 200
#: Names of columns, likeliest first, by what a lookup has.
_NAMES: Mapping[str, Sequence[str]] = {
    "timestamp": ("ts", "timestamp", "time", "@timestamp", "datetime", "date", "when", "epoch"),
    "topic": ("topic", "topic_name", "url", "uri", "path", "request_path", "resource", "page", "key", "name"),
    "client": ("client", "client_id", "client_ip", "host", "remote_host", "remote_addr", "ip", "address", "user"),
    "broker": ("broker", "owner", "broker_id", "server", "backend", "upstream"),
    "weight": ("weight", "bytes", "body_bytes_sent", "size", "length", "response_bytes"),
    "cluster": ("cluster", "dc", "datacenter", "data_center"),
}  # fmt: skip
#: Columns that are labels of a client, and so become lookup properties of the same name.
_LABELS = ("rack", "zone", "region", "tier")
#: Counted times, by what 1990 and 2100 are in them; and written ones.
_COUNTED = {"unix": (6.3e8, 4.1e9), "unix_ms": (6.3e11, 4.1e12), "unix_us": (6.3e14, 4.1e15)}
_TIMES = ("iso", "access", "%Y-%m-%d %H:%M:%S,%f", "%d/%m/%Y %H:%M:%S", "%Y/%m/%d %H:%M:%S")
#: Readers of Pulsar's own logs, and what these are.
_PULSAR = {
    "jetty-access": "an access log of Pulsar's web server",
    "pulsar-broker": "a log of a Pulsar broker",
    "cpp-client": "a log of a C++, Python or Node client",
    "pulsar-system-topics": "messages of the load manager's system topics",
}
_OWNER = """
# A line does not say whose log it is. If files are named after brokers, like broker-3.log:
# broker_pattern = '''([^/]+?)(?:\\.log.*)?$'''
"""
_ACCESS = """\
use = "shipped:access-log"

# Keys of this file go over those of what ships, which `lookup config list` names. Your own networks:
# [properties]
# zone = { column = "host", rule = "cidr", networks = { "10.1.0.0/16" = "a" }, default = "outside" }
"""
_PATH = re.compile(r"/|https?://")
_TOPIC = re.compile(r"(?:non-)?persistent://[^/]+/[^/]+/.")


@dataclass(frozen=True)
class Recognised:
    """What a log is, how it is read, and what its first lines hold."""

    #: in a few words, for people
    what: str
    #: text of the mapping, empty for a table that needs no ingest
    mapping: str
    #: values of the lookup properties by key, the commonest first
    labels: Mapping[str, Sequence[str]]
    #: ids of the brokers that answered or were asked
    brokers: Sequence[str]


@dataclass
class _Trial:
    """What a reader makes of the first lines."""

    what: str
    mapping: str
    lookups: int = 0
    #: rows of other tables
    others: int = 0
    #: records that cannot be read, by the reason
    reasons: Counter[str] = field(default_factory=Counter)
    brokers: Counter[str] = field(default_factory=Counter)
    #: lookups by value and key of a property
    labels: dict[str, Counter[str]] = field(default_factory=dict)

    def take(self, entry: Row | Unreadable) -> None:
        """Count a record."""
        if isinstance(entry, Unreadable):
            self.reasons[entry.reason] += 1
            return
        row = check_row(entry.table, entry.values, cluster="any" if "cluster" not in entry.values else None)
        if isinstance(row, str):
            self.reasons[row] += 1
        elif entry.table != "lookups":
            self.others += 1
        else:
            self.lookups += 1
            self.count(row)

    def count(self, row: Mapping[str, Any]) -> None:
        """Count brokers and labels of a row of LOOKUPS."""
        self.brokers.update(row[name] for name in ("broker", "asked_broker") if row.get(name))
        for key, label in json.loads(row["properties"] or "{}").items():
            self.labels.setdefault(key, Counter())[label] += 1

    @property
    def is_good(self) -> bool:
        """Return if these are lookups, and nearly all of them can be read."""
        bad = self.reasons.total()
        return self.lookups > 0 and bad <= MAX_QUARANTINE_RATIO * (bad + self.lookups + self.others)

    def recognised(self) -> Recognised:
        """Return what the log is."""
        labels = {key: [label for label, _ in counts.most_common()] for key, counts in self.labels.items()}
        return Recognised(self.what, self.mapping, labels, sorted(self.brokers))


def recognise(source: str, registry: Registry) -> Recognised:
    """Find the reader of a log, and its mapping, by the first lines of its first file.

    Args:
        source: a file, folder, glob or URI.
        registry: of all plug-ins, whose readers are tried last.

    Raises:
        InputError: in one sentence, if the log is in no form that is known or nothing in it is a lookup.
    """
    path = list_files([source])[0]
    if path.endswith(".parquet"):
        return _table(list_log(source)[0])
    try:
        head = list(islice(open_lines(path), _HEAD))
    except (OSError, EOFError) as error:
        raise InputError(f"{path}: cannot be read: {error}") from None
    texts = [line for _, line in head if line.strip()]
    if not texts:
        raise InputError(f"{path}: has no line in it")
    tried = []
    for what, mapping in _candidates(path, texts, registry):
        trial = _tried(what, mapping, head, path, registry)
        if trial is not None:
            tried.append(trial)
            if trial.is_good:
                return trial.recognised()
    raise InputError(f"{path}: {_why_none(tried, len(head))}")


def _table(file: LogFile) -> Recognised:
    """Describe a table LOOKUPS by the first rows of its first file."""
    trial = _Trial("a table LOOKUPS in Parquet", "")
    columns = [name for name in ("properties", "broker", "asked_broker") if name in file.columns]
    with open_parquet(file.path) as parquet:
        for batch in islice(parquet.iter_batches(batch_size=_HEAD, columns=columns), 1):
            for row in batch.to_pylist():
                trial.count({"properties": None, **row})
    return trial.recognised()


def _candidates(path: str, texts: Sequence[str], registry: Registry) -> Iterator[tuple[str, str]]:
    """Yield what a log may be and a mapping to try, the most particular first."""
    is_json = texts[0].lstrip().startswith("{")
    if is_json:
        yield from _json_lines(texts)
    # The day of a layout with a clock only, unless the file's name has one.
    day = "" if "://" in path else datetime.fromtimestamp(Path(path).stat().st_mtime, UTC).date()
    for use, what in _PULSAR.items():
        mapping = f'use = "{use}"\n{_OWNER if use in ("jetty-access", "pulsar-broker") else ""}'
        yield what, mapping
        if day and use != "pulsar-system-topics":
            yield what, f'{mapping}\n# The lines have a clock only: the day of the first one.\ndate = "{day}"\n'
    yield "an access log in the common or combined form", _ACCESS
    if not is_json:
        yield from _delimited(texts)
    for name in registry.classes["log_readers"]:
        yield f"a log that the reader {name!r} reads", f'use = "{name}"\n'


def _tried(what: str, mapping: str, head: Sequence[tuple[int, str]], path: str, registry: Registry) -> _Trial | None:
    """Read the first lines with a mapping; None if there is no such reader, or it needs more parameters."""
    try:
        reader = reader_of(registry, toml_table(mapping), "mapping")
    except SettingsError:
        return None
    trial = _Trial(what, mapping)
    try:
        for entry in reader.parse(iter(head), path):
            trial.take(entry)
    except Exception as error:  # noqa: BLE001  a plug-in's reader may raise anything
        trial.reasons[str(error)] += _HEAD
    return trial


def _why_none(tried: Sequence[_Trial], lines: int) -> str:
    """Say why nothing reads a log: what came nearest to it, and what it lacks."""
    other = next((trial for trial in tried if trial.others and not trial.lookups), None)
    if other is not None:
        return (
            f"is {other.what}, but no lookup is in the first {quantity(lines, 'line')}; brokers log them at DEBUG "
            "only, see docs/getting-lookups.md"
        )
    nearest = max((trial for trial in tried if trial.lookups), key=lambda trial: trial.lookups, default=None)
    if nearest is not None:
        reason, count = nearest.reasons.most_common(1)[0]
        return f"looks like {nearest.what}, but {quantity(count, 'line')} of {lines:,} cannot be read: {reason}"
    return (
        "is in no form that is known: a log of Pulsar's brokers or clients, an access log, JSON Lines or CSV with the "
        "columns of LOOKUPS, any delimited file with a column of times and one of topics or paths, or a table LOOKUPS "
        "in Parquet; other logs take a reader of your own, see docs/getting-lookups.md"
    )


def _json_lines(texts: Sequence[str]) -> Iterator[tuple[str, str]]:
    """Yield the mapping of JSON Lines with the columns of LOOKUPS; other keys are left out."""
    keys: dict[str, None] = {}
    for text in texts[:_SAMPLE]:
        try:
            record = json_value(text)
        except ValueError:
            continue
        keys |= dict.fromkeys(record) if isinstance(record, dict) else {}
    yield "JSON Lines with the columns of LOOKUPS", f'use = "jsonl"\n{_ignored(keys)}'


def _ignored(names: Iterable[str]) -> str:
    """Return the line of a mapping for columns that LOOKUPS does not have."""
    known = {column.name for column in TABLES["lookups"]}
    others = [name for name in names if name not in known]
    return f"# Columns that LOOKUPS does not have.\nignore = {_toml(others)}\n" if others else ""


def _delimited(texts: Sequence[str]) -> Iterator[tuple[str, str]]:
    """Yield the mappings of a delimited file, by its first rows."""
    sample = [text for text in texts[: _SAMPLE + 1] if not text.startswith("#")]
    for delimiter in ("\t", ",", ";", "|", " "):
        quote = '"' if any(f'{delimiter}"' in text or text.startswith('"') for text in sample) else ""
        rows = [_cut(text, delimiter, quote) for text in sample]
        if len(rows) < 2 or len(rows[0]) < 2 or sum(len(row) != len(rows[0]) for row in rows) > len(rows) // 20:
            continue
        rows = [row for row in rows if len(row) == len(rows[0])]
        has_header = len(set(rows[0])) == len(rows[0]) and not any(map(_is_value, rows[0]))
        names = (
            [name.strip() for name in rows[0]] if has_header else [f"column_{n}" for n in range(1, len(rows[0]) + 1)]
        )
        if has_header and {"ts", "topic"} <= set(names):
            yield "CSV with the columns of LOOKUPS", f'use = "csv"\ndelimiter = {_toml(delimiter)}\n{_ignored(names)}'
        columns = {name: [row[place].strip() for row in rows[has_header:]] for place, name in enumerate(names)}
        mapping = _mapping(columns, sample[0] if has_header else "", delimiter, quote)
        if mapping is not None:
            kind = {"\t": "tab-separated values", " ": "values between blanks"}.get(
                delimiter, f"values between {delimiter}"
            )
            yield kind, mapping


def _cut(text: str, delimiter: str, quote: str) -> list[str]:
    if not quote:
        return text.split(delimiter)
    try:
        return next(csv.reader([text], delimiter=delimiter, quotechar=quote, strict=True))
    except csv.Error:
        return []


def _is_value(text: str) -> bool:
    """Return if a text is no name of a column: empty, a number, a time or a topic."""
    text = text.strip()
    return (
        not text
        or _format_of([text]) is not None
        or bool(_PATH.match(text) or re.fullmatch(r"-?[\d.]+", text))
        or bool(_TOPIC.match(text))
    )


def _format_of(values: Sequence[str]) -> str | None:
    """Return the format of times that all values have, None if there is none."""
    for form, (low, high) in _COUNTED.items():
        try:
            if all(low <= float(value) < high for value in values):
                return form
        except ValueError:
            break
    for form in _TIMES:
        try:
            for value in values:
                time_parser(form, UTC)(value)
        except ValueError:
            continue
        return form
    return None


def _mapping(columns: Mapping[str, Sequence[str]], header: str, delimiter: str, quote: str) -> str | None:
    """Return the mapping of a delimited file, None if no column holds times, or none topics.

    Args:
        columns: values of the first rows, by the names of the columns.
        header: the line with the names, empty if there is none.
    """
    chosen = {what: _named(columns, names) for what, names in _NAMES.items()}
    times = [name for name in dict.fromkeys([*chosen["timestamp"], *columns]) if _format_of(columns[name]) is not None]
    shaped = [[name for name in columns if all(map(form.match, columns[name]))] for form in (_TOPIC, _PATH)]
    topics = [name for name in (*shaped[0], *chosen["topic"], *shaped[1]) if name not in times[:1]]
    if not times or not topics:
        return None
    time, topic = times[0], topics[0]
    named, lines = _cutting(columns, topic, header, delimiter, quote)
    template = f"persistent://log/{'paths' if topic in _NAMES['topic'] else 'values'}/{{{topic}}}"
    if topic not in named:
        template = "{domain}://{tenant}/{namespace}/{local}"
    lines += ["", "# When a lookup came, and for what; characters that a topic may not have are percent-encoded."]
    lines.append(f"timestamp = {{ column = {_toml(named[time])}, format = {_toml(_format_of(columns[time]))} }}")
    lines.append(f"topic = {_toml(template)}")
    taken = {time, topic}
    for what in ("client", "broker", "cluster"):
        name = next((name for name in chosen[what] if name not in taken), None)
        if name is not None:
            taken.add(name)
            lines.append(f"{what} = {_toml(f'{{{named[name]}}}' if what == 'cluster' else named[name])}")
    weights = [name for name in chosen["weight"] if name not in taken and all(map(_is_number, columns[name]))]
    if weights:
        lines += ["", "# How much a lookup weighs; without it each weighs 1.0."]
        lines.append(f"weight = {{ column = {_toml(named[weights[0]])}, default = 1.0, min = 1.0 }}")
    labels = [name for name in columns if name.lower() in _LABELS and name not in taken]
    lines += [
        "",
        "# Lookup properties that clients would have sent; docs/getting-lookups.md has the rules.",
        "[properties]",
    ]
    lines += [f"{_toml(name.lower())} = {{ column = {_toml(named[name])} }}" for name in labels]
    if not labels:
        lines.append('# rack = { column = "host", rule = "cidr", networks = { "10.1.0.0/16" = "a" }, default = "b" }')
    return "\n".join(lines) + "\n"


def _cutting(
    columns: Mapping[str, Sequence[str]], topic: str, header: str, delimiter: str, quote: str
) -> tuple[dict[str, str], list[str]]:
    """Return what columns are called in the mapping, and its lines that say how a line is cut.

    The column of complete topics has no name: a template makes a topic of its parts, so they are cut apart as well.
    """
    lines = ['use = "delimited"', "", "# How a line is cut into columns."]
    if not all(map(_TOPIC.match, columns[topic])):
        lines.append(f"delimiter = {_toml(delimiter)}")
        lines += [f"quote = {_toml(quote)}"] if quote else []
        lines += [] if header else ["header = false", f"columns = {_toml(list(columns))}"]
        return {name: name for name in columns}, lines
    named = {name: f"c{place}" for place, name in enumerate(columns, start=1) if name != topic}
    end, around = re.escape(delimiter + quote), f"{quote}?" if quote else ""
    parts = rf"(?P<domain>(?:non-)?persistent)://(?P<tenant>[^/]+)/(?P<namespace>[^/]+)/(?P<local>[^{end}]+)"
    groups = (parts if name == topic else f"(?P<{named[name]}>[^{end}]*)" for name in columns)
    lines.append(f"# {', '.join(f'{group}: {name}' for name, group in named.items())}")
    lines.append(f"pattern = {_toml(re.escape(delimiter).join(f'{around}{group}{around}' for group in groups))}")
    lines += [f"comment = {_toml(header)}  # the header"] if header else []
    return named, lines


def _named(columns: Iterable[str], names: Sequence[str]) -> list[str]:
    """Return the columns that have one of the names, in the order of the names."""
    return [column for name in names for column in columns if column.lower() == name]


def _is_number(text: str) -> bool:
    return re.fullmatch(r"\d+(?:\.\d+)?|-?", text) is not None


def _toml(value: object) -> str:
    """Write a text or a list of texts as TOML; JSON's escapes are TOML's."""
    return json.dumps(value, ensure_ascii=False)
