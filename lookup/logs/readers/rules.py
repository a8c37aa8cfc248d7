"""Rules that derive a label from a column of a record: the properties a client would have sent.

    rack = { column = "host", rule = "domain-label", index = -1, numeric = "ip", default = "unknown" }

Rules: `column` (the value itself), `domain-label` (one label of a host name), `regex` (a group of a match), `map` (a
table of values), `cidr` (a table of networks, the narrowest that holds the address wins). Where a rule finds nothing,
`default` is the label; without one there is no label.
"""

from __future__ import annotations

import ipaddress
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

from lookup.logs.readers.templates import Template, value_template
from lookup.model.quoting import shown, suggestion

__all__ = ["LabelRule", "label_rule"]

_Finder = Callable[[str], str | None]
_NUMERIC = re.compile(r"\d+(?:\.\d+){3}\Z|[0-9a-fA-F]*:[0-9a-fA-F:.]+\Z")


@dataclass(frozen=True, slots=True)
class LabelRule:
    """One rule: where its text comes from, and what it finds there."""

    source: Template
    find: _Finder

    def label(self, record: Mapping[str, str]) -> str | None:
        """Return the record's label, None where the rule finds nothing and has no default."""
        return self.find(self.source.fill(record))


def label_rule(given: Mapping[str, Any] | str, where: str) -> LabelRule:
    """Build a rule from settings; a text is the name of a column.

    Args:
        where: what the rule is for, for messages.

    Raises:
        ValueError: naming the key that is wrong and what would be right.
    """
    table = {"column": given} if isinstance(given, str) else dict(given)
    kind = str(table.pop("rule", "column"))
    if kind not in _KINDS:
        raise ValueError(f"{where}: no rule named {shown(kind)}; {suggestion(kind, _KINDS)}")
    build, options = _KINDS[kind]
    for name in table:
        if name not in ("column", "default", *options):
            raise ValueError(
                f"{where}: rule {kind!r} has no key {shown(name)}; {suggestion(name, ('column', 'default', *options))}"
            )
    for name in _NEEDED.intersection(options).difference(table):
        raise ValueError(f"{where}: rule {kind!r} needs the key {name!r}")
    if not isinstance(table.get("column"), str):
        raise ValueError(f"{where}: `column` must name a column, it is {shown(table.get('column'))}")
    try:
        return LabelRule(value_template(table["column"]), _with_default(build(table), table.get("default")))
    except (ValueError, TypeError, AttributeError) as error:
        raise ValueError(f"{where}: {error}") from None


def _with_default(find: _Finder, default: str | None) -> _Finder:
    if default is not None and not isinstance(default, str):
        raise ValueError(f"`default` must be a text, it is {shown(default)}")
    # A log has far fewer hosts than lines.
    return lru_cache(maxsize=1 << 16)(lambda text: find(text) or default)


def _column(table: Mapping[str, Any]) -> _Finder:
    return lambda text: text.strip() or None


def _domain_label(table: Mapping[str, Any]) -> _Finder:
    index, numeric = int(table.get("index", -1)), table.get("numeric")

    def find(text: str) -> str | None:
        """Return one label of a host's name."""
        host = text.strip().rstrip(".").lower()
        if _NUMERIC.match(host):
            return numeric
        labels = host.split(".")
        # A name without a dot has no domain to take a label from.
        return labels[index] if len(labels) > 1 and -len(labels) <= index < len(labels) else None

    return find


def _regex(table: Mapping[str, Any]) -> _Finder:
    try:
        pattern = re.compile(table["pattern"])
    except re.error as error:
        raise ValueError(f"`pattern` {shown(table['pattern'])} is no regular expression: {error}") from None
    group = "value" if "value" in pattern.groupindex else min(1, pattern.groups)

    def find(text: str) -> str | None:
        """Return what the pattern finds."""
        found = pattern.search(text)
        return found[group] if found else None

    return find


def _map(table: Mapping[str, Any]) -> _Finder:
    values = {str(name): str(label) for name, label in table["values"].items()}
    return lambda text: values.get(text.strip())


def _cidr(table: Mapping[str, Any]) -> _Finder:
    networks = [(ipaddress.ip_network(name), str(label)) for name, label in table["networks"].items()]
    networks.sort(key=lambda entry: -entry[0].prefixlen)

    def find(text: str) -> str | None:
        """Return the label of the narrowest network that an address is in."""
        try:
            address = ipaddress.ip_address(text.strip())
        except ValueError:
            return None
        return next((label for network, label in networks if address in network), None)

    return find


#: Keys without which their rule can do nothing.
_NEEDED = frozenset({"pattern", "values", "networks"})
#: Every rule: what builds it and the keys it takes beside `column` and `default`.
_KINDS: Mapping[str, tuple[Callable[[Mapping[str, Any]], _Finder], tuple[str, ...]]] = {
    "column": (_column, ()),
    "domain-label": (_domain_label, ("index", "numeric")),
    "regex": (_regex, ("pattern",)),
    "map": (_map, ("values",)),
    "cidr": (_cidr, ("networks",)),
}
