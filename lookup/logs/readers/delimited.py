"""Read any delimited file, access log or JSON Lines with a mapping from its columns to the fields of a lookup.

The mapping is the reader's parameters, a TOML file like `configs/nasa.toml`. Nothing here depends on a particular log.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from itertools import islice
from typing import Any, ClassVar, Literal

from lookup.logs.readers.jetty_access import LOOKUP_PATH, http_lookup
from lookup.logs.readers.templates import Template, label_rule, topic_template, value_template
from lookup.logs.readers.values import cut_quoted, decode_percent, flatten, number_of, object_of, unreadable, value_at
from lookup.model.documents import Row, Unreadable
from lookup.model.quoting import closest, join_names, shown, suggestion
from lookup.model.time import time_parser, zone_of

__all__ = ["DelimitedReader"]

#: Cuts a line into values, None if it is of another kind. It raises ValueError with the reason why it cannot.
_Cutter = Callable[[str], Sequence[str] | None]
_Record = Mapping[str, str]
#: Turns a line into a record, likewise.
_Recorder = Callable[[str], dict[str, str] | None]
#: Objects of JSON Lines by which a key of the mapping is found to be in none.
_OBJECTS = 1_000


@dataclass(frozen=True)
class DelimitedReader:
    """A reader of one LOOKUPS row per line, by a mapping from columns to the fields of a lookup.

    Values are built from names of columns, or from templates with `{column}`s.
    """

    name: ClassVar[str] = "delimited"
    expects: ClassVar[str] = (
        "one request per line, cut by `delimiter`, matched by `pattern`, or an object of JSON where `format` is 'json'"
    )

    #: `{ column, format, timezone }`, with the format `unix`, `unix_ms`, `unix_us`, `unix_ns`, `iso`, `access` or a
    #: strptime format. The column may be a template, `{date} {time}`
    timestamp: Mapping[str, Any]
    #: template of the topic, `persistent://nasa/http/{url}`. Values are percent-encoded if a name may not contain them
    topic: str = ""
    #: instead of `topic`, the column of URIs of Pulsar's own lookup over HTTP. Other requests are skipped
    http_lookup: str = ""
    #: only records whose columns match these regular expressions as a whole are read
    only: Mapping[str, str] = field(default_factory=dict)
    #: column or template of the client's id
    client: str = ""
    #: literal or template of the cluster
    cluster: str = ""
    #: rules of the client's lookup properties, by key
    properties: Mapping[str, Any] = field(default_factory=dict)
    #: `{ column, default, min, scale }`, or the name of a column
    weight: Mapping[str, Any] | str = field(default_factory=dict)
    #: rule of the result, `{ column = "status", rule = "map", values = { 200 = "connect" }, default = "failed" }`
    result: Mapping[str, Any] | str = field(default_factory=dict)
    #: column or template of the broker that was answered
    broker: str = ""
    #: column or template of the broker that received the request
    asked_broker: str = ""
    #: column or template of the advertised listener
    listener: str = ""
    #: as `weight`, in milliseconds
    latency_ms: Mapping[str, Any] | str = field(default_factory=dict)
    #: `json` for an object per line. Its keys are the columns, nested ones with dots as in `client.ip`
    format: Literal["text", "json"] = "text"
    #: one character or more between values, left out if there is a `pattern`
    delimiter: str = ","
    #: regular expression with named groups that matches a whole line, in place of `delimiter`
    pattern: str = ""
    #: whether the first line that is no comment names the columns
    header: bool = True
    #: names of the columns if there is no header
    columns: tuple[str, ...] = ()
    #: the character around values that contain the delimiter, by default there is none
    quote: str = ""
    #: lines that begin with it are not read
    comment: str = ""
    #: whether lines that do not match `pattern` are skipped, except for HTTP lookups where `http_lookup` reads them
    passes_over: bool = False
    #: columns that are percent-encoded in the log, such as parts of a path
    decode: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        """Refuse a mapping that cannot work. Raise ValueError with the key."""
        # The mapping is built here as a check and again for use, as functions do not survive pickle to Spark's workers.
        fields = _build_field_map(self)
        if self.format == "json":
            # These define how a line of text is cut.
            cuts = {name: getattr(self, name) for name in ("pattern", "columns", "quote")}
            cuts["delimiter"] = self.delimiter != ","
            for name in filter(cuts.get, cuts):
                raise ValueError(f"`{name}` is for lines of text; leave it out where `format` is 'json'")
            return
        _build_cutter(self)
        if not self.pattern and not self.header and not self.columns:
            raise ValueError("`columns` must name the columns where `header` is false")
        if self.pattern or self.columns:
            names = re.compile(self.pattern).groupindex if self.pattern else self.columns
            missing = _find_missing(fields, list(names))
            if missing is not None:
                raise ValueError(f"`{'pattern' if self.pattern else 'columns'}` has no {missing}")

    @property
    def reads_objects(self) -> bool:
        """Whether lines are objects of JSON."""
        return self.format == "json"

    @property
    def has_header(self) -> bool:
        """Whether the first line that is no comment names the columns, and is no record."""
        return self.header and not self.pattern and self.format != "json"

    def problem_of(self, lines: Iterator[tuple[int, str]]) -> str | None:
        """Describe the mistake in the mapping for a file with these lines, None if its header has every column."""
        if self.format == "json":
            return _problem_of_objects(_build_field_map(self), lines)
        if self.has_header and not self.columns:
            for _, line in lines:
                if line.strip() and not (self.comment and line.startswith(self.comment)):
                    try:
                        names = self._read_names(line)
                    except ValueError as error:
                        return f"the header cannot be cut by delimiter {shown(self.delimiter)}: {error}"
                    missing = _find_missing(_build_field_map(self), names)
                    if missing is None:
                        return None
                    is_quoted = not self.quote and names[0][:1] in ('"', "'")
                    hint = "; values stand in quotes, which `quote` takes off" if is_quoted else ""
                    return f"the header has no {missing}{hint}"
        return None

    def parse(self, lines: Iterator[tuple[int, str]], source: str) -> Iterator[Row | Unreadable]:
        """Yield a row per line, by the mapping."""
        fields = _build_field_map(self)
        names = list(re.compile(self.pattern).groupindex) if self.pattern else list(self.columns)
        record_of = _build_recorder(self, fields, names)
        wants_header = self.has_header
        for number, line in lines:
            if not line.strip() or (self.comment and line.startswith(self.comment)):
                continue
            if wants_header:
                wants_header = False
                # Columns in the mapping have precedence over those of the header. A header that cannot be cut has none.
                with suppress(ValueError):
                    names += [] if names else self._read_names(line)
                missing = _find_missing(fields, names)
                if missing is not None:
                    yield unreadable(number, f"the header has no {missing}", line)
                continue
            try:
                record = record_of(line)
                values = None if record is None else self._values(record, fields)
                if values is not None:
                    yield Row("lookups", number, values)
            except KeyError as error:
                # The header lacks columns of the mapping, and so does every record below it.
                columns = join_names(dict.fromkeys(names))
                yield unreadable(number, f"there is no column {shown(error.args[0])}; there are {columns}", line)
            except ValueError as error:
                yield unreadable(number, str(error), line)

    def _read_names(self, header: str) -> list[str]:
        return [name.strip() for name in _build_cutter(self)(header) or ()]

    def _values(self, record: dict[str, str], fields: _FieldMap) -> dict[str, Any] | None:
        if self.decode:
            record |= {name: decode_percent(record[name]) for name in self.decode if name in record}
        if not all(pattern.fullmatch(record[column]) for column, pattern in fields.conditions):
            return None
        if self.format == "json":
            missing = next((name for name in fields.needed if not record[name]), None)
            if missing is not None:
                raise ValueError(f"the object has no value of the key {shown(missing)}")
        request = http_lookup(record[self.http_lookup]) if self.http_lookup else {}
        return None if request is None else {**request, **{name: make(record) for name, make in fields.makers.items()}}


def _find_missing(fields: _FieldMap, names: Sequence[str]) -> str | None:
    missing = next((column for column in fields.columns if column not in names), None)
    return None if missing is None else f"column {_describe_missing(missing, names, 'it has')}"


def _describe_missing(missing: str, names: Iterable[str], there: str) -> str:
    nearest = closest(missing, names)
    hint = "" if nearest is None else f" did you mean {shown(nearest)}?"
    return f"{shown(missing)};{hint} {there} {join_names(names)}"


def _problem_of_objects(fields: _FieldMap, lines: Iterator[tuple[int, str]]) -> str | None:
    keys: dict[str, None] = {}
    for _, line in islice(lines, _OBJECTS):
        try:
            keys |= dict.fromkeys(flatten(object_of(line)))
        except ValueError:
            continue
    for column in fields.columns if keys else ():
        # A key of lists and texts may be rare. It counts as misspelt only if there is a similar key.
        others = [name for name in keys if name not in fields.columns]
        if column not in keys and (column in fields.needed or closest(column, others)):
            return f"no object has the key {_describe_missing(column, keys, 'there are')}"
    return None


def _build_recorder(reader: DelimitedReader, fields: _FieldMap, names: Sequence[str]) -> _Recorder:
    """Build the function that converts a line to a record. The names of columns may be added later."""
    if reader.format == "json":

        def values_of_object(line: str) -> dict[str, str]:
            # A key that is absent has an empty value, like an empty column.
            record = object_of(line)
            return {column: value_at(record, column) for column in fields.columns}

        return values_of_object
    split = _build_cutter(reader)

    def values_of_columns(line: str) -> dict[str, str] | None:
        values = split(line)
        if values is None:
            return None
        if len(values) != len(names):
            raise ValueError(f"{len(values)} values where {len(names)} columns are named")
        return dict(zip(names, values, strict=True))

    return values_of_columns


def _build_cutter(reader: DelimitedReader) -> _Cutter:
    if not reader.pattern and not reader.delimiter:
        raise ValueError("`delimiter` is empty; give one, or a `pattern`")
    if not reader.pattern and not reader.quote:
        # Without quotes a plain split is right, several times faster than the csv module, and takes longer delimiters.
        return lambda line: line.split(reader.delimiter)
    if not reader.pattern:
        if len(reader.delimiter) != 1 or len(reader.quote) != 1:
            raise ValueError("`delimiter` and `quote` must be single characters where values are quoted")
        return lambda line: cut_quoted(line, reader.delimiter, reader.quote)
    try:
        pattern = re.compile(reader.pattern)
    except re.error as error:
        raise ValueError(f"`pattern` is not a regular expression: {error}") from None
    # A group without a name would shift the values against the names.
    if len(pattern.groupindex) != pattern.groups or not pattern.groups:
        raise ValueError("`pattern` must have named groups, (?P<name>...), and no others")

    def split_line(line: str) -> Sequence[str] | None:
        match = pattern.fullmatch(line)
        if match is not None:
            return match.groups(default="")
        # A line with a lookup over HTTP is of this kind, regardless of its other content.
        if reader.passes_over and not (reader.http_lookup and LOOKUP_PATH in line):
            return None
        raise ValueError("the line does not match `pattern`")

    return split_line


@dataclass(frozen=True)
class _FieldMap:
    """The built mapping, with one function per value of a row, and its requirements of the record.

    The functions raise ValueError for a value that cannot be built, KeyError for a missing column.
    """

    #: every column the mapping names
    columns: tuple[str, ...]
    #: those of time and topic, without which there is no row
    needed: tuple[str, ...]
    makers: Mapping[str, Callable[[_Record], Any]]
    #: patterns of `only` by column, as pairs, since every line is compared with all of them
    conditions: tuple[tuple[str, re.Pattern[str]], ...]


def _build_field_map(reader: DelimitedReader) -> _FieldMap:
    """Build the mapping of a reader. Raise ValueError with the wrong key and the right form."""
    if bool(reader.topic) == bool(reader.http_lookup):
        raise ValueError("either `topic` or `http_lookup` must give the topic of a lookup")
    topic = topic_template(reader.topic or "persistent://pulsar/http/{" + reader.http_lookup + "}")
    _check_keys(reader.timestamp, ("column", "format", "timezone"), "timestamp")
    zone = zone_of(str(reader.timestamp.get("timezone", "UTC")))
    time = value_template(reader.timestamp["column"])
    parse = time_parser(str(reader.timestamp.get("format", "iso")), zone)
    makers: dict[str, Callable[[_Record], Any]] = {"ts": lambda record: parse(time.fill(record))}
    if reader.topic:
        makers["topic"] = topic.fill
    rules = {name: label_rule(entry, f"properties.{name}") for name, entry in reader.properties.items()}
    templates = [topic, time, *(rule.source for rule in rules.values())]
    if rules:
        makers["properties"] = lambda record: {
            name: label for name, rule in rules.items() if (label := rule.label(record)) is not None
        }
    for name in ("client", "broker", "asked_broker", "listener"):
        if text := getattr(reader, name):
            templates.append(template := value_template(text))
            makers[name] = template.fill_optional
    if reader.cluster:
        # A cluster without braces is the cluster's name, not a column's.
        literal = Template((reader.cluster,), (), ())
        templates.append(template := value_template(reader.cluster) if "{" in reader.cluster else literal)
        makers["cluster"] = template.fill
    for name, entry in (("weight", reader.weight), ("latency_ms", reader.latency_ms)):
        if entry:
            table = {"column": entry} if isinstance(entry, str) else entry
            makers[name] = _build_number(table, name)
            templates.append(value_template(table["column"]))
    if reader.result:
        result = label_rule(reader.result, "result")
        templates.append(result.source)
        makers["result"] = result.label
    # The order is that of the mapping, so a header that lacks several columns is refused for the first of them.
    columns = dict.fromkeys([*reader.only, *(column for template in templates for column in template.columns)])
    return _FieldMap(tuple(columns), (*time.columns, *topic.columns), makers, _compile_conditions(reader.only))


def _compile_conditions(only: Mapping[str, str]) -> tuple[tuple[str, re.Pattern[str]], ...]:
    try:
        return tuple((column, re.compile(pattern)) for column, pattern in only.items())
    except re.error as error:
        raise ValueError(f"only: {shown(error.pattern)} is not a regular expression: {error}") from None


def _check_keys(table: Mapping[str, Any], keys: tuple[str, ...], where: str) -> None:
    for name in table:
        if name not in keys:
            raise ValueError(f"{where} has no key {shown(name)}; {suggestion(name, keys)}")
    if not isinstance(table.get("column"), str):
        raise ValueError(f"{where}.column must name a column, it is {shown(table.get('column'))}")


def _build_number(table: Mapping[str, Any], where: str) -> Callable[[_Record], float | None]:
    """Build a function for a number, `scale` times the column's, at least `min`, `default` for empty or `-`."""
    _check_keys(table, ("column", "default", "min", "scale"), where)
    template = value_template(table["column"])
    scale = _read_figure(table, "scale", where) or 1.0
    default, low = _read_figure(table, "default", where), _read_figure(table, "min", where)

    def make(record: _Record) -> float | None:
        text = template.fill(record).strip()
        # Access logs write `-` for no number.
        value = default if text in ("", "-") else number_of(text, where) * scale
        return value if value is None or low is None else max(value, low)

    return make


def _read_figure(table: Mapping[str, Any], name: str, where: str) -> float | None:
    value = table.get(name)
    if value is None:
        return None
    # In Python true is a number. Comparing is exact, also of whole numbers that no float reaches.
    if isinstance(value, bool) or not isinstance(value, int | float) or not abs(value) <= sys.float_info.max:
        raise ValueError(f"{where}.{name} must be a finite number, it is {shown(value)}")
    return float(value)
