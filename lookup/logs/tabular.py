"""Propose mappings for files of columns, delimited or JSON Lines, by what their first rows hold.

Nothing is read with a mapping here; `recognising.py` tries what is proposed.
"""

from __future__ import annotations

import csv
import json
import re
from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC
from itertools import pairwise

from lookup.logs.columns import TABLES
from lookup.model.documents import json_value
from lookup.model.quoting import listed
from lookup.model.time import time_parser

__all__ = ["Table", "delimited_mappings", "json_mapping", "missing_columns", "tables_of", "toml_text"]

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
#: Different values among the first rows of a column that may hold labels, and those that are shown of one.
_FEW, _SHOWN = 20, 5
#: Columns that are labels of a client, and so become lookup properties of the same name.
_LABELS = ("rack", "zone", "region", "tier")
#: Counted times, by what 1990 and 2100 are in them; and written ones.
_COUNTED = {"unix": (6.3e8, 4.1e9), "unix_ms": (6.3e11, 4.1e12), "unix_us": (6.3e14, 4.1e15)}
_DATES = ("%d/%m/%Y", "%m/%d/%Y", "%Y/%m/%d", "%d.%m.%Y", "%d-%m-%Y", "%d-%b-%Y", "%d %b %Y")
_CLOCKS = ("%H:%M:%S", "%H:%M:%S.%f", "%H:%M:%S,%f", "%H:%M", "%I:%M:%S %p")
_TIMES = ("iso", "access", "%Y-%m-%d %H:%M:%S,%f", *(f"{date} {clock}" for date in _DATES for clock in _CLOCKS))
#: The end of a time that says its zone.
_OFFSET = re.compile(r"(?:Z|[+-]\d\d:?\d\d)$")
_PATH = re.compile(r"/|https?://")
_TOPIC = re.compile(r"(?:non-)?persistent://[^/]+/[^/]+/.")


def json_mapping(texts: Sequence[str]) -> tuple[str, str]:
    """Return the mapping of JSON Lines with the columns of LOOKUPS; other keys are left out."""
    keys: dict[str, None] = {}
    for text in texts[:_SAMPLE]:
        try:
            record = json_value(text)
        except ValueError:
            continue
        keys |= dict.fromkeys(record) if isinstance(record, dict) else {}
    return "JSON Lines with the columns of LOOKUPS", f'use = "jsonl"\n{_ignored(keys)}'


def _ignored(names: Iterable[str]) -> str:
    """Return the line of a mapping for columns that LOOKUPS does not have."""
    known = {column.name for column in TABLES["lookups"]}
    others = [name for name in names if name not in known]
    return f"# Columns that LOOKUPS does not have.\nignore = {toml_text(others)}\n" if others else ""


@dataclass(frozen=True)
class Table:
    """The first rows of a delimited file, cut into columns."""

    delimiter: str
    #: empty if values stand in none
    quote: str
    #: the line with the names of the columns, empty if there is none
    header: str
    #: values of the rows, by the names of the columns
    columns: Mapping[str, Sequence[str]]

    @property
    def what(self) -> str:
        """Say what the file is."""
        names = {"\t": "tabs", ",": "commas", ";": "semicolons", "|": "vertical bars", " ": "blanks"}
        return f"a table with {names[self.delimiter]} between its values"


def tables_of(texts: Sequence[str]) -> Iterator[Table]:
    """Yield the first rows as each delimiter cuts them into columns, if it does."""
    sample = [text for text in texts[: _SAMPLE + 1] if not text.startswith("#")]
    for delimiter in ("\t", ",", ";", "|", " "):
        quote = '"' if any(f'{delimiter}"' in text or text.startswith('"') for text in sample) else ""
        rows = [_cut(text, delimiter, quote) for text in sample]
        if len(rows) < 2 or len(rows[0]) < 2 or sum(len(row) != len(rows[0]) for row in rows) > len(rows) // 20:
            continue
        rows = [row for row in rows if len(row) == len(rows[0])]
        has_header = len(set(rows[0])) == len(rows[0]) and not any(map(_is_value, rows[0]))
        names = [name.strip() if has_header else f"column_{n}" for n, name in enumerate(rows[0], start=1)]
        columns = {name: [row[place].strip() for row in rows[has_header:]] for place, name in enumerate(names)}
        yield Table(delimiter, quote, sample[0] if has_header else "", columns)


def delimited_mappings(table: Table) -> Iterator[tuple[str, str]]:
    """Yield the mappings of a delimited file."""
    if table.header and {"ts", "topic"} <= set(table.columns):
        mapping = f'use = "csv"\ndelimiter = {toml_text(table.delimiter)}\n{_ignored(table.columns)}'
        yield "CSV with the columns of LOOKUPS", mapping
    mapping = _mapping(table)
    if mapping:
        yield table.what, mapping


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


def _format_of(values: Sequence[str], forms: Sequence[str] = (*_COUNTED, *_TIMES)) -> str | None:
    """Return the first of the formats of times that all values have, None if there is none."""
    for form in forms:
        low, high = _COUNTED.get(form, (0, 0))
        try:
            if form not in _COUNTED:
                parse = time_parser(form, UTC)
                for value in values:
                    parse(value)
            elif not all(low <= float(value) < high for value in values):
                continue
        except ValueError:
            continue
        return form
    return None


def _time_and_topic(table: Table) -> tuple[list[str], list[str]]:
    """Return the columns or templates that may hold times, and the columns of topics, likeliest first."""
    columns = table.columns
    named = dict.fromkeys([*_named(columns, _NAMES["timestamp"]), *columns])
    times = [name for name in named if _format_of(columns[name]) is not None]
    if not times:
        # A day and a time of day in columns of their own, in this order.
        for first, second in pairwise(columns):
            if _format_of([f"{day} {clock}" for day, clock in zip(columns[first], columns[second], strict=True)]):
                times.append(f"{{{first}}} {{{second}}}")
    shaped = [[name for name in columns if all(map(form.match, columns[name]))] for form in (_TOPIC, _PATH)]
    candidates = dict.fromkeys([*shaped[0], *_named(columns, _NAMES["topic"]), *shaped[1]])
    return times, [name for name in candidates if name not in times[:1]]


def missing_columns(table: Table) -> str:
    """Say which columns a table has, and which of those that a lookup needs are not among them."""
    needed = zip(("times", "topics or paths"), _time_and_topic(table), strict=True)
    missing = " and none ".join(what for what, names in needed if not names)
    return f"none of its columns holds {missing} in a form that is known; it has {listed(table.columns)}"


def _mapping(table: Table) -> str:
    """Return the mapping of a delimited file, empty if no column holds times, or none topics."""
    columns = table.columns
    times, topics = _time_and_topic(table)
    if not times or not topics:
        return ""
    time, topic = times[0], topics[0]
    taken = {time, topic}
    lines = ['use = "delimited"', "", "# How a line is cut into columns.", f"delimiter = {toml_text(table.delimiter)}"]
    lines += [f"quote = {toml_text(table.quote)}"] if table.quote else []
    lines += [] if table.header else ["header = false", f"columns = {toml_text(list(columns))}"]
    lines += ["", "# When a lookup came, and for what; characters that a topic may not have are percent-encoded."]
    lines += _timestamp(columns, time)
    lines.append(_topic(columns, topic))
    for what in ("client", "broker", "cluster"):
        name = next((name for name in _named(columns, _NAMES[what]) if name not in taken), None)
        if name is not None:
            taken.add(name)
            lines.append(f"{what} = {toml_text(f'{{{name}}}' if what == 'cluster' else name)}")
    weights = [name for name in _named(columns, _NAMES["weight"]) if name not in taken]
    weights = [name for name in weights if all(map(_is_number, columns[name]))]
    if weights:
        lines += ["", "# How much a lookup weighs; without it each weighs 1.0."]
        lines.append(f"weight = {{ column = {toml_text(weights[0])}, default = 1.0, min = 1.0 }}")
    lines += [
        "",
        "# Lookup properties that clients would have sent; docs/getting-lookups.md has the rules.",
        "[properties]",
        *_properties({name: each for name, each in columns.items() if name not in taken}, set(weights)),
    ]
    return "\n".join(lines) + "\n"


def _timestamp(columns: Mapping[str, Sequence[str]], time: str) -> list[str]:
    """Return the lines of a mapping that say when a lookup came, with what is not sure about it."""
    lines = []
    values = columns.get(time) or [
        " ".join(parts) for parts in zip(*(columns[name] for name in time[1:-1].split("} {")), strict=True)
    ]
    form = _format_of(values)
    if form not in _COUNTED and form != "access" and not all(map(_OFFSET.search, values)):
        lines.append(
            '# Times without an offset are UTC; if they are not: timezone = "Europe/Berlin" beside the format.'
        )
    if form is not None and form.startswith("%d/%m") and _format_of(values, ("%m/%d" + form[5:],)):
        lines.append(f"# {values[0]} was taken for day/month; if the month comes first: {'%m/%d' + form[5:]}")
    lines.append(f"timestamp = {{ column = {toml_text(time)}, format = {toml_text(form)} }}")
    return lines


def _topic(columns: Mapping[str, Sequence[str]], topic: str) -> str:
    """Return the line of a mapping that says for what a lookup came."""
    if all(map(_TOPIC.match, columns[topic])):
        template = f"{{{topic}}}"
    else:
        template = f"persistent://log/{'paths' if topic in _NAMES['topic'] else 'values'}/{{{topic}}}"
    return f"topic = {toml_text(template)}"


def _properties(columns: Mapping[str, Sequence[str]], weights: Collection[str]) -> list[str]:
    """Return the lines of a mapping with columns that are lookup properties, or comments with those that may be.

    Args:
        columns: those that nothing else is taken from.
        weights: columns that weigh a lookup.
    """
    labels = [name for name in columns if name.lower() in _LABELS]
    if labels:
        return [f"{toml_text(name.lower())} = {{ column = {toml_text(name)} }}" for name in labels]
    # Columns with few values that are no numbers may be places.
    few = {name: Counter(each) for name, each in columns.items() if name not in weights}
    few = {name: each for name, each in few.items() if 1 < len(each) <= _FEW and not any(map(_is_value, each))}
    if not few:
        return ['# rack = { column = "host", rule = "cidr", networks = { "10.1.0.0/16" = "a" }, default = "b" }']
    return [
        f"# rack = {{ column = {toml_text(name)} }}  # {', '.join(label for label, _ in each.most_common(_SHOWN))}"
        for name, each in few.items()
    ]


def _named(columns: Iterable[str], names: Sequence[str]) -> list[str]:
    """Return the columns that have one of the names, in the order of the names; `Client IP` is `client_ip`."""
    return [column for name in names for column in columns if re.sub(r"[ .-]+", "_", column.lower()) == name]


def _is_number(text: str) -> bool:
    return re.fullmatch(r"\d+(?:\.\d+)?|-?", text) is not None


def toml_text(value: object) -> str:
    """Write a text or a list of texts as TOML; JSON's escapes are TOML's."""
    return json.dumps(value, ensure_ascii=False)
