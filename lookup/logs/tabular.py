"""Propose mappings for files of columns, delimited or JSON Lines, by the content of their first rows.

No file is read with a mapping here. `recognising.py` tries the proposals.
"""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from datetime import UTC
from itertools import pairwise

from lookup.logs.columns import RESULTS, TABLES
from lookup.logs.readers.jetty_access import RESULT_OF_STATUS
from lookup.logs.readers.values import cut_quoted, decode_percent, flatten, object_of
from lookup.model.address import host_of, is_ip
from lookup.model.documents import json_value
from lookup.model.quoting import join_names, shown, toml_text
from lookup.model.time import counted_unit, time_parser

__all__ = [
    "Proposal", "TextTable", "canonical_mapping", "column_mappings", "missing_columns", "tables_of",
]  # fmt: skip

#: Number of rows that determine the content of the columns of a delimited file.
_SAMPLE = 200
#: Names of columns that hold paths, in which three parts between slashes are not a topic.
_PATHS = ("url", "uri", "path", "request_path", "resource", "page", "cs_uri_stem", "requestpath")
#: Names of columns, likeliest first, by field of a lookup.
_NAMES: Mapping[str, Sequence[str]] = {
    "timestamp": ("ts", "timestamp", "time", "@timestamp", "datetime", "date", "when", "epoch"),
    "topic": ("topic", "topic_name", "local_name", "destination", *_PATHS, "key", "name"),
    "client": (
        "client", "client_id", "client_ip", "c_ip", "client_host", "clienthost", "client_addr", "clientaddr",
        "remote_host", "remote_addr", "remote_ip", "remote", "peer", "ip",
        "host", "address", "user",
    ),
    "broker": ("broker", "owner", "broker_id", "server", "backend", "upstream"),
    "status": ("status", "status_code", "response_code", "sc_status", "downstreamstatus", "code"),
    "weight": ("weight", "bytes", "body_bytes_sent", "size", "length", "response_bytes"),
    "cluster": ("cluster", "dc", "datacenter", "data_center"),
    "tenant": ("tenant", "tenant_name"),
    "namespace": ("namespace", "namespace_name", "ns"),
    "partition": ("partition", "partition_index"),
}  # fmt: skip
#: Of the names of a broker's column those of which one value is an answer, and no load balancer's name.
_OWNERS = ("broker", "owner", "broker_id")
_KNOWN = frozenset(column.name for column in TABLES["lookups"])
#: Maximum number of different values in the first rows of a column of labels, and number of values in a message.
_FEW, _SHOWN = 20, 5
#: Columns that are labels of a client, and so become lookup properties of the same name.
_LABELS = ("rack", "zone", "az", "availability_zone", "region", "tier")
#: Written times.
_DATES = (
    "%d/%m/%Y", "%m/%d/%Y", "%Y/%m/%d", "%d.%m.%Y", "%d-%m-%Y", "%m-%d-%Y", "%Y-%m-%d", "%d-%b-%Y", "%d %b %Y",
    "%b %d, %Y", "%a, %d %b %Y",
)  # fmt: skip
#: Formats that can be distinguished only by a day above 12.
_SWAPPED = {"%d/%m": "%m/%d", "%d-%m": "%m-%d"}
_CLOCKS = ("%H:%M:%S", "%H:%M:%S.%f", "%H:%M:%S,%f", "%H:%M", "%I:%M:%S %p")
_WRITTEN = tuple(f"{date} {clock}" for date in _DATES for clock in _CLOCKS)
_TIMES = ("iso", "access", "%Y-%m-%d %H:%M:%S,%f", *_WRITTEN, *(f"{form} %z" for form in _WRITTEN))
#: The end of a time that has a zone.
_OFFSET = re.compile(r"(?:Z|[+-]\d\d:?\d\d)$")
#: An offset alone, in a column of its own.
_ZONE = re.compile(r"[+-]\d\d:?\d\d", re.ASCII)
#: Names of zones in logs. Several are different zones in different countries.
_ZONE_NAMES = frozenset("BST CET CEST CST CDT EET EEST EST EDT IST JST MSK MST MDT PST PDT WET WEST".split())
_PATH = re.compile(r"/|https?://")
_TOPIC = re.compile(r"(?:non-)?persistent://[^/]+/[^/]+/.")
#: The path of Pulsar's own lookup over HTTP, alone, in a request or in a URL.
_HTTP_LOOKUP = re.compile(r"(?:[A-Z]+ )?(?:https?://[^/\s]+)?(?:/[^/\s?]+)*?/lookup/v2/topic/")
#: A key before its value.
_KEYED = re.compile(r"([A-Za-z_]\w*)=", re.ASCII)
#: A value in a column of numbers that are not below 0. Access logs write `-` for a missing one.
_NUMBER = re.compile(r"\d+(?:\.\d+)?|-?")
#: The hour of a clock.
_HOUR = re.compile(r"(?<![\d:])(\d\d?):\d\d(?::\d\d)?(?![\d:]*\s*[AaPp]\.?[Mm])")
#: A date without a time of day.
_DATE = re.compile(r"\d{4}-?\d\d-?\d\d")
#: Share of the values of a column that determine its content, since a log has odd lines.
_MOST = 0.95
#: Number of rows above which a column with a single value is not a client or topic.
_TELLING = 20
#: A namespace with its tenant.
_NAMESPACE = re.compile(r"[-=:.\w]+/[-=:.\w]+\Z", re.ASCII)
#: A topic without its domain. It begins with a letter, unlike a date.
_SHORT_TOPIC = re.compile(r"[A-Za-z][-=:.\w]*/[-=:.\w]+/[^/]+\Z", re.ASCII)


@dataclass(frozen=True)
class Proposal:
    """A mapping to try, with the assumed kind of the log."""

    #: in a few words, for people
    what: str
    mapping: str
    #: a question that the first rows do not decide, and the decision of the mapping, which has it as a comment as well
    doubt: str = ""
    #: a note that does not depend on the rows
    note: str = ""


@dataclass(frozen=True)
class TextTable:
    """The first rows of a file, cut into columns."""

    #: empty for JSON Lines
    delimiter: str
    #: empty if values are not quoted
    quote: str
    #: the line with the names of the columns, empty if there is none
    header: str
    #: values of the rows, by the names of the columns
    columns: Mapping[str, Sequence[str]]
    #: beginning of lines that are not rows, empty if there are none
    comment: str = ""
    #: regular expression of a line, in place of a delimiter, if values have names in front of them
    pattern: str = ""

    @property
    def what(self) -> str:
        """The kind of the file, in words."""
        if not self.delimiter:
            return "JSON Lines with keys of their own"
        names = {"\t": "tabs", ",": "commas", ";": "semicolons", "|": "vertical bars", " ": "blanks"}
        return f"a table with {names[self.delimiter]} between its values"


def tables_of(texts: Sequence[str]) -> Iterator[TextTable]:
    """Yield the first rows as objects of JSON, if most of them are, or else cut by each delimiter."""
    head = texts[: _SAMPLE + 1]
    sample = [text for text in head if not text.startswith("#")]
    comment = "#" if len(sample) < len(head) else ""
    # W3C's extended form, as IIS and CloudFront write it, names its columns in a comment.
    fields = next((text.split()[1:] for text in head if text.startswith("#Fields:")), [])
    objects = []
    for text in sample:
        with suppress(ValueError):
            objects.append(flatten(object_of(text)))
    if 2 * len(objects) > len(sample):
        keys = dict.fromkeys(key for each in objects for key in each)
        # With an empty value where an object lacks a key.
        yield TextTable("", "", ", ".join(keys), {key: [each.get(key, "") for each in objects] for key in keys})
        return
    for delimiter in ("\t", ",", ";", "|", " "):
        quote = '"' if any(f'{delimiter}"' in text or text.startswith('"') for text in sample) else ""
        rows = [_split_row(text, delimiter, quote) for text in sample]
        if len(rows) < 2 or len(rows[0]) < 2 or sum(len(row) != len(rows[0]) for row in rows) > len(rows) // 20:
            continue
        rows = [row for row in rows if len(row) == len(rows[0])]
        has_header = len(set(rows[0])) == len(rows[0]) and not any(map(_is_value, rows[0]))
        has_header = has_header and not any(map(_KEYED.match, rows[0]))
        names = [name.strip() if has_header else f"column_{n}" for n, name in enumerate(rows[0], start=1)]
        names = fields if len(fields) == len(rows[0]) and not has_header else names
        columns = {name: [row[place].strip() for row in rows[has_header:]] for place, name in enumerate(names)}
        keyed = {} if has_header or quote else _find_common_keys(columns)
        if keyed and delimiter == " ":
            columns = {keyed.get(name, name): each for name, each in columns.items()}
            groups = [f"{name}=(?P<{name}>\\S*)" if name in keyed.values() else f"(?P<{name}>\\S*)" for name in columns]
            bare = {name: [value.removeprefix(f"{name}=") for value in each] for name, each in columns.items()}
            yield TextTable(delimiter, "", "", bare, comment, " ".join(groups))
        yield TextTable(delimiter, quote, sample[0] if has_header else "", columns, comment)


def _find_common_keys(columns: Mapping[str, Sequence[str]]) -> dict[str, str]:
    """Find the key before all values of each column, as in `client=10.0.0.1`, empty if a key occurs twice."""
    keys = {}
    for name, values in columns.items():
        prefixes = {key[1] if (key := _KEYED.match(value)) else "" for value in values}
        if len(prefixes) == 1 and prefixes != {""}:
            keys[name] = prefixes.pop()
    return keys if len({*keys.values(), *columns}) == len(keys) + len(columns) else {}


def canonical_mapping(table: TextTable) -> Proposal | None:
    """Build the mapping of a file with LOOKUPS columns, None if it has other useful ones or times not in µs.

    A column that LOOKUPS does not have is left out, unless a mapping makes a label or a value of it.
    """
    names = list(table.columns)
    if not table.header or not {"ts", "topic"} <= set(names) or _has_use(names):
        return None
    # Days have their time in another column, or none.
    if table.columns["ts"] and all(map(_DATE.fullmatch, table.columns["ts"])):
        return None
    forms = Counter(_find_format([value]) for value in table.columns["ts"])
    if forms.most_common(1)[0][0] not in (None, "iso", "unix_us"):
        return None
    if table.delimiter:
        mapping = f'use = "csv"\ndelimiter = {toml_text(table.delimiter)}\n{_write_ignore_line(names)}'
        return Proposal("CSV with the columns of LOOKUPS", mapping)
    # Objects of LOOKUPS stay whole, for `properties` is one.
    keys = dict.fromkeys(name if name in _KNOWN else name.partition(".")[0] for name in names)
    return Proposal("JSON Lines with the columns of LOOKUPS", f'use = "jsonl"\n{_write_ignore_line(keys)}')


def _has_use(names: Sequence[str]) -> bool:
    """Check whether a table has columns that LOOKUPS does not have, but that a mapping can use."""
    others = [name for name in names if name not in _KNOWN and not name.startswith("properties.")]
    mapped = [role for role in ("client", "broker", "weight", "cluster") if role not in names]
    return any(map(_label, others)) or any(_match_names(others, _NAMES[role]) for role in mapped)


def _write_ignore_line(names: Iterable[str]) -> str:
    others = [name for name in names if name not in _KNOWN]
    return f"# Columns that LOOKUPS does not have.\nignore = {toml_text(others)}\n" if others else ""


def column_mappings(table: TextTable) -> list[Proposal]:
    """Build the mapping from columns or keys, two if dates may be read in two ways, none if a column is missing."""
    times, topics = _find_time_and_topic(table)
    if not times or not topics:
        return []
    columns = table.columns
    values = _values_of(columns, times[0])
    form = str(_find_format(values))
    other = _SWAPPED.get(form[:5], "") + form[5:]
    doubts = {form: ""}
    if other != form[5:] and _find_format(values, (other,)) is not None:
        doubts = {
            form: f"{values[0]} was taken for day/month, {form}; if the month comes first: {other}",
            other: f"{values[0]} was taken for month/day, {other}; if the day comes first: {form}",
        }
    note = _describe_unread(columns, times, topics[0])
    return [
        Proposal(table.what, _write_mapping(table, times[0], topics[0], each, doubt), doubt, note)
        for each, doubt in doubts.items()
    ]


def _describe_unread(columns: Mapping[str, Sequence[str]], times: Sequence[str], topic: str) -> str:
    """Describe columns that are not read although they look relevant, empty if there are none."""
    notes, time = [], times[0]
    others = [name for name in times[1:] if name in columns and columns[name] != columns.get(time)]
    if others:
        are = "are times" if len(others) > 1 else "is a time"
        notes.append(f"lookups get the time of `{time}`, and {join_names(others)} {are} too: is it the right column?")
    clocks = [match for value in _values_of(columns, time) if (match := _HOUR.search(value))]
    if any(len(clock[1]) == 1 for clock in clocks) and all(0 < int(clock[1]) <= 12 for clock in clocks):
        notes.append(f"no hour of `{time}` is above 12: if its clock has 12 hours, AM and PM are missing")
    behind = _find_next_column(columns, time)
    zones = sorted({*columns[behind]}) if behind is not None else []
    if zones and _ZONE_NAMES.issuperset(zones):
        notes.append(f"times are read as UTC, and {behind} says {join_names(zones)}: give `timezone` beside the format")
    line = _write_topic(columns, topic)
    if "://log/" in line and any(_match_names(columns, _NAMES[role]) for role in ("tenant", "namespace")):
        notes.append(f"no columns have whole names of topics, so they are made up: {line}")
    odd = next((value for value in columns.get("weight", ()) if not _NUMBER.fullmatch(value)), None)
    if odd is not None and topic != "weight":
        notes.append(f"the column weight is not read, for {shown(odd)} is not a weight")
    return "; ".join(notes)


def _values_of(columns: Mapping[str, Sequence[str]], time: str) -> Sequence[str]:
    if time in columns:
        return columns[time]
    return [" ".join(parts) for parts in zip(*(columns[name] for name in _columns_of(time)), strict=True)]


def _split_row(text: str, delimiter: str, quote: str) -> list[str]:
    if not quote:
        return text.split(delimiter)
    try:
        return cut_quoted(text, delimiter, quote)
    except ValueError:
        return []


def _is_value(text: str) -> bool:
    text = text.strip()
    return (
        not text
        or _find_format([text]) is not None
        or bool(_PATH.match(text) or re.fullmatch(r"-?[\d.]+", text))
        or bool(_TOPIC.match(text))
    )


def _find_format(values: Sequence[str], forms: Sequence[str] = _TIMES) -> str | None:
    """Find the first of the formats of times that all values have, None if there is none.

    Of counted times one in twenty may be missing or wrong. The form of a date may be decided by a single one.
    """
    unit, count = Counter(map(counted_unit, values)).most_common(1)[0]
    if unit and forms is _TIMES and count >= _MOST * len(values):
        return unit
    for form in forms:
        parse = time_parser(form, UTC)
        with suppress(ValueError):
            for value in values:
                parse(value)
            return form
    return None


def _find_time_and_topic(table: TextTable) -> tuple[list[str], list[str]]:
    columns = table.columns
    named = dict.fromkeys([*_match_names(columns, _NAMES["timestamp"]), *columns])
    # A date alone would put every lookup at midnight.
    times = [name for name in named if _find_format(columns[name]) and not all(map(_DATE.fullmatch, columns[name]))]
    if not times:
        # A day and a time of day in columns of their own, in this order.
        for first, second in pairwise(columns):
            if _find_format([f"{day} {clock}" for day, clock in zip(columns[first], columns[second], strict=True)]):
                times.append(f"{{{first}}} {{{second}}}")
    times = [_with_zone(columns, time) for time in times[:1]] + times[1:]
    encoded = [name for name in columns if _is_encoded_topic(columns[name])]
    # A value with three parts between slashes that is the same in every row is not a topic, but some server.
    short = [name for name in columns if _is_short_topic(name, columns[name]) and _check_variety(columns[name])]
    by_name = _match_names(columns, _NAMES["topic"])
    in_use = {name for time in times[:1] for name in (time, *_columns_of(time))}
    topics = [name for name in columns if _match_most(_TOPIC, columns[name])]
    requests = [name for name in columns if _has_lookups(columns[name])]
    paths = [name for name in columns if _match_most(_PATH, columns[name])]
    candidates = dict.fromkeys([*topics, *requests, *encoded, *by_name, *short, *paths])
    names = [name for name in candidates if name not in in_use]
    return times, sorted(names, key=lambda name: not _check_variety(columns[name]))


def _columns_of(time: str) -> list[str]:
    return time.strip("{}").split("} {")


def _with_zone(columns: Mapping[str, Sequence[str]], time: str) -> str:
    behind = _find_next_column(columns, time)
    if behind is None or not all(map(_ZONE.fullmatch, columns[behind])):
        return time
    joined = " ".join(f"{{{name}}}" for name in (*_columns_of(time), behind))
    return time if _find_format(_values_of(columns, joined)) is None else joined


def _find_next_column(columns: Mapping[str, Sequence[str]], time: str) -> str | None:
    names = list(columns)
    return next(iter(names[names.index(_columns_of(time)[-1]) + 1 :]), None)


def _has_lookups(values: Sequence[str]) -> bool:
    """Check whether some requests in a column are Pulsar's lookups over HTTP, percent-encoded or not."""
    return any(_HTTP_LOOKUP.match(value) or _HTTP_LOOKUP.match(decode_percent(value)) for value in values)


def _match_most(form: re.Pattern[str], values: Sequence[str]) -> bool:
    return bool(values) and sum(form.match(value) is not None for value in values) >= _MOST * len(values)


def _check_variety(values: Sequence[str]) -> bool:
    """Check whether a column may hold topics or clients. A long one with one value holds a server's own name."""
    return len(values) < _TELLING or len(set(values)) > 1


def _is_encoded_topic(values: Sequence[str]) -> bool:
    return any("%" in value for value in values) and _match_most(_TOPIC, [decode_percent(value) for value in values])


def missing_columns(table: TextTable) -> str:
    """Describe the columns of a table, and the columns of a lookup that are missing."""
    needed = zip(("times", "topics or paths"), _find_time_and_topic(table), strict=True)
    missing = " and none ".join(role for role, names in needed if not names)
    return f"none of its columns holds {missing} in a form that is known; it has {join_names(table.columns)}"


def _is_short_topic(name: str, values: Sequence[str]) -> bool:
    return not _match_names([name], _PATHS) and _match_most(_SHORT_TOPIC, values)


def _write_mapping(table: TextTable, time: str, topic: str, form: str, doubt: str) -> str:
    columns = table.columns
    in_use = {time, *_columns_of(time), topic}
    lines = ['use = "delimited"', *_write_cutting(table)]
    lines += ["", "# When a lookup came, and for what; characters that a topic may not have are percent-encoded."]
    if not form.startswith("unix") and form != "access" and not all(map(_OFFSET.search, _values_of(columns, time))):
        lines.append(
            '# Times without an offset are UTC; if they are not: timezone = "Europe/Berlin" beside the format.'
        )
    lines += [f"# {doubt}"] if doubt else []
    lines += [f"timestamp = {{ column = {toml_text(time)}, format = {toml_text(form)} }}", _write_topic(columns, topic)]
    for role in ("client", "broker", "cluster"):
        names = [name for name in _match_names(columns, _NAMES[role]) if name not in in_use]
        if role == "client":
            # An address is a better client than a name, and a server's own name is none.
            names = [name for name in names if _check_variety(columns[name])]
            addresses = {name: sum(is_ip(host_of(value)) for value in columns[name]) for name in names}
            names.sort(key=lambda name: not 0 < _MOST * len(columns[name]) <= addresses[name])
        if role == "broker":
            names = [name for name in names if _check_variety(columns[name]) or name.lower() in _OWNERS]
        name = next(iter(names), None)
        if name is not None:
            in_use.add(name)
            lines.append(f"{role} = {toml_text(f'{{{name}}}' if role == 'cluster' else name)}")
    # Columns that LOOKUPS has, in a table that has others or other times.
    for name in ("asked_broker", "listener", "latency_ms", "result"):
        if name in columns and (name != "result" or {*RESULTS, ""}.issuperset(columns[name])):
            in_use.add(name)
            lines.append(f"{name} = {toml_text(name)}")
    if "result" not in columns and _has_lookups(columns[topic]):
        values = ", ".join(f"{code} = {toml_text(result)}" for code, result in RESULT_OF_STATUS.items())
        rule = f'rule = "map", values = {{ {values} }}, default = "failed"'
        statuses = [name for name in _match_names(columns, _NAMES["status"])[:1] if name not in in_use]
        lines += [f"result = {{ column = {toml_text(name)}, {rule} }}" for name in statuses]
    # An answer to a lookup over HTTP is as long as a name, and no measure of demand.
    weighing = () if _has_lookups(columns[topic]) else _NAMES["weight"]
    weights = [name for name in _match_names(columns, weighing) if name not in in_use]
    weights = [name for name in weights if all(map(_NUMBER.fullmatch, columns[name]))]
    if weights:
        lines += ["", "# How much a lookup weighs; without it each weighs 1.0."]
        lines.append(f"weight = {{ column = {toml_text(weights[0])}, default = 1.0, min = 1.0 }}")
    lines += [
        "",
        "# Lookup properties that clients would have sent; docs/getting-lookups.md has the rules.",
        "[properties]",
        *_write_properties({name: each for name, each in columns.items() if name not in in_use}, set(weights)),
    ]
    return "\n".join(lines) + "\n"


def _write_cutting(table: TextTable) -> list[str]:
    if not table.delimiter:
        return ["", "# A line is an object of JSON; a nested key is named by dots.", 'format = "json"']
    if table.pattern:
        comment = [f"comment = {toml_text(table.comment)}"] if table.comment else []
        return ["", "# How a line is cut into columns.", f"pattern = {toml_text(table.pattern)}", *comment]
    lines = ["", "# How a line is cut into columns.", f"delimiter = {toml_text(table.delimiter)}"]
    lines += [f"quote = {toml_text(table.quote)}"] if table.quote else []
    lines += [f"comment = {toml_text(table.comment)}"] if table.comment else []
    lines += [] if table.header else ["header = false", f"columns = {toml_text(list(table.columns))}"]
    return lines


def _write_topic(columns: Mapping[str, Sequence[str]], topic: str) -> str:
    if _has_lookups(columns[topic]):
        is_encoded = not any(map(_HTTP_LOOKUP.match, columns[topic]))
        return f"http_lookup = {toml_text(topic)}" + (f"\ndecode = {toml_text([topic])}" if is_encoded else "")
    if _is_encoded_topic(columns[topic]):
        return f"topic = {toml_text(f'{{{topic}}}')}\ndecode = {toml_text([topic])}"
    # One odd name among many does not make paths of all of them.
    if _match_most(_TOPIC, columns[topic]) or 2 * sum(map(bool, map(_TOPIC.match, columns[topic]))) > len(
        columns[topic]
    ):
        template = f"{{{topic}}}"
    elif _is_short_topic(topic, columns[topic]):
        template = f"persistent://{{{topic}}}"
    elif _find_name_column(columns, "namespace"):
        # Names of topics alone would make one namespace of all.
        (namespace,), tenant = (
            _find_name_column(columns, "namespace"),
            [f"{{{name}}}" for name in _find_name_column(columns, "tenant")],
        )
        is_whole = _match_most(_NAMESPACE, columns[namespace])
        above = "" if is_whole else f"{(*tenant, 'log')[0]}/"
        partition = [f"-partition-{{{name}}}" for name in _find_name_column(columns, "partition")]
        template = f"persistent://{above}{{{namespace}}}/{{{topic}}}{''.join(partition)}"
    else:
        template = f"persistent://log/{'paths' if _match_names([topic], _NAMES['topic']) else 'values'}/{{{topic}}}"
    return f"topic = {toml_text(template)}"


def _find_name_column(columns: Mapping[str, Sequence[str]], role: str) -> list[str]:
    return [name for name in _match_names(columns, _NAMES[role])[:1] if all(columns[name])]


def _write_properties(columns: Mapping[str, Sequence[str]], weights: Collection[str]) -> list[str]:
    rules: dict[str, str] = {}
    for name in columns:
        key = name.removeprefix("properties.") if name.startswith("properties.") else _label(name)
        if key is not None:
            rules.setdefault(key, f"{{ column = {toml_text(name)} }}")
    rules |= _write_text_rules(columns.get("properties", ()))
    if rules:
        return [f"{toml_text(key)} = {rule}" for key, rule in rules.items()]
    # Columns with few values that are no numbers may be places.
    few = {name: Counter(each) for name, each in columns.items() if name not in weights}
    few = {name: each for name, each in few.items() if 1 < len(each) <= _FEW and not any(map(_is_value, each))}
    if not few:
        return ['# rack = { column = "host", rule = "cidr", networks = { "10.1.0.0/16" = "a" }, default = "b" }']
    return [
        f"# rack = {{ column = {toml_text(name)} }}  # {join_names(label for label, _ in each.most_common(_SHOWN))}"
        for name, each in few.items()
    ]


def _write_text_rules(texts: Sequence[str]) -> dict[str, str]:
    """Build rules that read properties from the JSON text of a column `properties`."""
    keys: dict[str, None] = {}
    for text in texts:
        try:
            entry = json_value(text)
        except ValueError:
            continue
        keys |= {key: None for key, value in entry.items() if isinstance(value, str)} if isinstance(entry, dict) else {}
    return {
        key: '{ column = "properties", rule = "regex", pattern = '
        + toml_text(rf'{re.escape(json.dumps(key))}\s*:\s*"([^"\\]*)"')
        + " }"
        for key in keys
    }


def _label(name: str) -> str | None:
    key = name.lower().rpartition(".")[2]
    return key if key in _LABELS else None


def _match_names(columns: Iterable[str], names: Sequence[str]) -> list[str]:
    """Find columns with one of the names in their order, then nested keys by last parts. `Client IP` is `client_ip`."""
    plain = {column: re.sub(r"[ .-]+", "_", column.lower()) for column in columns}
    last = {column: re.sub(r"[ -]+", "_", column.lower().rpartition(".")[2]) for column in plain}
    return list(dict.fromkeys(c for by in (plain, last) for name in names for c in plain if by[c] == name))
