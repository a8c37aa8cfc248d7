"""The mapping of the delimited reader, built: from the columns of a record to the values of a LOOKUPS row."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from lookup.logs.readers.records import number_of
from lookup.logs.readers.rules import LabelRule, label_rule
from lookup.logs.readers.templates import Template, topic_template, value_template
from lookup.model.quoting import shown, suggestion
from lookup.model.time import TimeParser, time_parser, zone_of

__all__ = ["FieldMap", "FieldMapping", "build_fields"]

_Record = Mapping[str, str]


@dataclass(frozen=True)
class FieldMapping:
    """What a lookup's values are made of: names of columns, or templates with `{column}`s."""

    #: template of the topic: `persistent://nasa/http/{url}`; values are percent-encoded where a name may not have them
    topic: str
    #: `{ column, format, timezone }`; format `unix`, `unix_ms`, `unix_us`, `iso`, `access` or a strptime pattern
    timestamp: Mapping[str, Any]
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
    #: rule of the result: `{ column = "status", rule = "map", values = { 200 = "connect" }, default = "failed" }`
    result: Mapping[str, Any] | str = field(default_factory=dict)
    #: column or template of the broker that was answered
    broker: str = ""
    #: column or template of the broker that was asked
    asked_broker: str = ""
    #: column or template of the advertised listener
    listener: str = ""
    #: as `weight`, in milliseconds
    latency_ms: Mapping[str, Any] | str = field(default_factory=dict)


@dataclass(frozen=True)
class FieldMap:
    """One function per value of a row, and what the record needs for them."""

    #: every column the mapping names
    columns: tuple[str, ...]
    makers: tuple[tuple[str, Callable[[_Record], Any]], ...]
    conditions: tuple[tuple[str, re.Pattern[str]], ...]

    def wants(self, record: _Record) -> bool:
        """Tell whether the record meets the mapping's `only`."""
        return all(pattern.fullmatch(record[column]) for column, pattern in self.conditions)

    def values(self, record: _Record) -> dict[str, Any]:
        """Make the values of a row; ValueError says which cannot be made, KeyError which column is not there."""
        return {name: make(record) for name, make in self.makers}


def build_fields(mapping: FieldMapping) -> FieldMap:
    """Build a mapping.

    Raises:
        ValueError: naming the key that is wrong and what would be right.
    """
    topic = topic_template(mapping.topic)
    time, parse = _timestamp(mapping.timestamp)
    rules = {name: label_rule(given, f"properties.{name}") for name, given in mapping.properties.items()}
    makers: dict[str, Callable[[_Record], Any]] = {"ts": lambda record: parse(time.fill(record)), "topic": topic.fill}
    templates = [topic, time, *(rule.source for rule in rules.values())]
    if rules:
        makers["properties"] = lambda record: _labels(rules, record)
    for name in ("client", "broker", "asked_broker", "listener"):
        if text := getattr(mapping, name):
            template = value_template(text)
            templates.append(template)
            makers[name] = _optional(template)
    if mapping.cluster:
        # A cluster without braces is the cluster's name, not a column's.
        cluster = value_template(mapping.cluster) if "{" in mapping.cluster else Template((mapping.cluster,), (), ())
        templates.append(cluster)
        makers["cluster"] = cluster.fill
    for name, given in (("weight", mapping.weight), ("latency_ms", mapping.latency_ms)):
        if given:
            template, makers[name] = _number(given, name)
            templates.append(template)
    if mapping.result:
        result = label_rule(mapping.result, "result")
        templates.append(result.source)
        makers["result"] = result.label
    needed = [*mapping.only, *(column for template in templates for column in template.columns)]
    return FieldMap(tuple(dict.fromkeys(needed)), tuple(makers.items()), _conditions(mapping.only))


def _labels(rules: Mapping[str, LabelRule], record: _Record) -> dict[str, str]:
    found = {name: rule.label(record) for name, rule in rules.items()}
    return {name: label for name, label in found.items() if label is not None}


def _optional(template: Template) -> Callable[[_Record], str | None]:
    return lambda record: template.fill(record) or None


def _known(table: Mapping[str, Any], keys: tuple[str, ...], where: str) -> None:
    for name in table:
        if name not in keys:
            raise ValueError(f"{where} has no key {shown(name)}; {suggestion(name, keys)}")
    if not isinstance(table.get("column"), str):
        raise ValueError(f"{where}.column must name a column, it is {shown(table.get('column'))}")


def _timestamp(table: Mapping[str, Any]) -> tuple[Template, TimeParser]:
    _known(table, ("column", "format", "timezone"), "timestamp")
    zone = zone_of(str(table.get("timezone", "UTC")))
    return value_template(table["column"]), time_parser(str(table.get("format", "iso")), zone)


def _number(given: Mapping[str, Any] | str, where: str) -> tuple[Template, Callable[[_Record], float | None]]:
    """Build a number: `scale` times the column's, at least `min`; `default` where the column is empty or `-`."""
    table = {"column": given} if isinstance(given, str) else given
    _known(table, ("column", "default", "min", "scale"), where)
    template = value_template(table["column"])
    scale = _figure(table, "scale", where) or 1.0
    default, low = _figure(table, "default", where), _figure(table, "min", where)

    def make(record: _Record) -> float | None:
        """Return a record's number, None where it has none."""
        text = template.fill(record).strip()
        value = default if text in ("", "-") else number_of(text, where) * scale
        return value if value is None or low is None else max(value, low)

    return template, make


def _figure(table: Mapping[str, Any], name: str, where: str) -> float | None:
    value = table.get(name)
    if value is not None and (isinstance(value, bool) or not isinstance(value, int | float)):
        raise ValueError(f"{where}.{name} must be a number, it is {shown(value)}")
    return None if value is None else float(value)


def _conditions(only: Mapping[str, str]) -> tuple[tuple[str, re.Pattern[str]], ...]:
    try:
        return tuple((column, re.compile(pattern)) for column, pattern in only.items())
    except re.error as error:
        raise ValueError(f"only: {shown(error.pattern)} is no regular expression: {error}") from None
