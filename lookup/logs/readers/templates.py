"""Build values from the columns of a record, by templates, and by rules that derive labels.

A template is `persistent://nasa/http/{url}`. In the name of a topic every value is encoded for its position, so that
different values never give the same name and no value adds a slash of its own.

A rule derives one of the properties that a client would have sent:

    rack = { column = "host", rule = "domain-label", index = -1, numeric = "ip", default = "unknown" }

Rules: `column` (the value itself), `domain-label` (one label of a host name), `regex` (a group of a match), `map` (a
table of values), `cidr` (a table of networks, of which the narrowest that contains the address wins). If a rule finds
nothing, `default` is the label. Without a default there is no label.
"""

from __future__ import annotations

import ipaddress
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import lru_cache, partial
from typing import Any
from urllib.parse import quote

from lookup.model.address import ips_of
from lookup.model.quoting import shown, suggestion

__all__ = ["LabelRule", "Template", "label_rule", "topic_template", "value_template"]

#: Templates of a column that holds whole names, with their domain or without it.
_WHOLE_NAME = re.compile(r"(?:(?:non-)?persistent://)?\{[^{}]+\}")
#: A template whose first column holds namespaces with their tenants.
_WHOLE_NAMESPACE = re.compile(r"(?:non-)?persistent://\{[^{}]+\}/[^/]+")
_FIELD = re.compile(r"\{([^{}]+)\}")
# Characters of a local name that stay, without metacharacters of regular expressions, see `looks_like_pattern`.
_LOCAL_SAFE = "-_.~=:,@"
# Pulsar allows [-=:.\w] in tenants and namespaces. "=" introduces an encoded byte, so it is encoded itself.
_NAMESPACE_UNSAFE = re.compile(r"[^-:.\w]", re.ASCII)
_NUMERIC = re.compile(r"\d+(?:\.\d+){3}\Z|[0-9a-fA-F]*:[0-9a-fA-F:.]+\Z")

_Encoder = Callable[[str], str]
_Finder = Callable[[str], str | None]


@dataclass(frozen=True, slots=True)
class Template:
    """Literal texts and columns in turn. `encoders` has one function per column."""

    literals: tuple[str, ...]
    columns: tuple[str, ...]
    encoders: tuple[_Encoder, ...]

    def fill(self, record: Mapping[str, str]) -> str:
        """Insert the record's values. Raise KeyError if the record lacks a column."""
        if len(self.columns) == 1:
            # Nearly every template is one column, so every value of every line takes this path.
            return self.literals[0] + self.encoders[0](record[self.columns[0]]) + self.literals[1]
        parts = [self.literals[0]]
        for column, encode, literal in zip(self.columns, self.encoders, self.literals[1:], strict=True):
            parts += (encode(record[column]), literal)
        return "".join(parts)

    def fill_optional(self, record: Mapping[str, str]) -> str | None:
        """Fill the template, None for an empty text."""
        return self.fill(record) or None


def value_template(text: str) -> Template:
    """Read a template of free text. A text without braces is the name of a column."""
    return _parse_template(text if "{" in text else f"{{{text}}}", lambda before: str)


def topic_template(text: str) -> Template:
    """Read the template of a topic's name, or raise ValueError if it cannot give a topic.

    `{column}` alone contains complete names, and `persistent://{column}` names without the domain. Both stay as they
    are. So does the namespace, with its tenant, in `persistent://{namespace}/{topic}`.
    """
    if _WHOLE_NAME.fullmatch(text):
        return _parse_template(text, lambda before: str)
    if _WHOLE_NAMESPACE.fullmatch(text):
        return _parse_template(text, lambda before: str if before.endswith("//") else _encode_local)
    if not re.match(r"(?:(?:non-)?persistent|\{[^{}/]+\})://[^/]+/[^/]+/.", text):
        raise ValueError(
            f"topic template {shown(text)} is not of the form persistent://tenant/namespace/topic, with {{column}}s, "
            "and neither {column} alone, of complete names, nor persistent://{column}"
        )

    def encoder(before: str) -> _Encoder:
        slashes = before.count("/")
        # A domain is one of two words. Any other value does not give a topic, and encoding would hide that.
        return str if slashes == 0 else _encode_namespace if slashes < 4 else _encode_local

    return _parse_template(text, encoder)


def _parse_template(text: str, encoder: Callable[[str], _Encoder]) -> Template:
    """Cut a template at its columns. `encoder` returns the encoder of a column from the text before it."""
    pieces = _FIELD.split(text)
    if any(brace in literal for literal in pieces[0::2] for brace in "{}"):
        raise ValueError(f"template {shown(text)} has a brace that belongs to no {{column}}")
    encoders = tuple(encoder(text[: match.start()]) for match in _FIELD.finditer(text))
    return Template(tuple(pieces[0::2]), tuple(pieces[1::2]), encoders)


# Logs repeat their values, so a topic is encoded once for thousands of lines.
_encode_local = lru_cache(maxsize=1 << 16)(partial(quote, safe=_LOCAL_SAFE))


@lru_cache(maxsize=1 << 12)
def _encode_namespace(value: str) -> str:
    return _NAMESPACE_UNSAFE.sub(lambda match: "".join(f"={byte:02X}" for byte in match[0].encode()), value)


@dataclass(frozen=True, slots=True)
class LabelRule:
    """A rule, with the template of its text, and the function that derives the label from it."""

    source: Template
    find: _Finder

    def label(self, record: Mapping[str, str]) -> str | None:
        """Derive the record's label, None if the rule finds nothing and has no default."""
        return self.find(self.source.fill(record))


def label_rule(given: Mapping[str, Any] | str, where: str) -> LabelRule:
    """Build a rule from settings. A text is the name of a column.

    Args:
        where: key of the rule, for messages.

    Raises:
        ValueError: with the wrong key and the right form.
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
    # Mistakes in the rule itself, wrong types of TOML included, get the rule's key in front.
    try:
        source, find, default = value_template(table["column"]), build(table), table.get("default")
    except (ValueError, TypeError, AttributeError) as error:
        raise ValueError(f"{where}: {error}") from None
    if default is not None and not isinstance(default, str):
        raise ValueError(f"{where}: `default` must be a text, it is {shown(default)}")
    # A log has far fewer hosts than lines.
    return LabelRule(source, lru_cache(maxsize=1 << 16)(lambda text: find(text) or default))


def _column(table: Mapping[str, Any]) -> _Finder:  # noqa: ARG001  of all functions of its kind
    return lambda text: text.strip() or None


def _domain_label(table: Mapping[str, Any]) -> _Finder:
    index, numeric = int(table.get("index", -1)), table.get("numeric")

    def find(text: str) -> str | None:
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
        raise ValueError(f"`pattern` {shown(table['pattern'])} is not a regular expression: {error}") from None
    # The group called `value`, else the first, else the whole match.
    group = "value" if "value" in pattern.groupindex else min(1, pattern.groups)

    def find(text: str) -> str | None:
        match = pattern.search(text)
        return match[group] if match else None

    return find


def _map(table: Mapping[str, Any]) -> _Finder:
    # Keys of TOML are texts, values may be numbers.
    values = {str(name): str(label) for name, label in table["values"].items()}
    return lambda text: values.get(text.strip())


def _cidr(table: Mapping[str, Any]) -> _Finder:
    networks = [(ipaddress.ip_network(name), str(label)) for name, label in table["networks"].items()]
    # Narrowest first, so that the first hit wins.
    networks.sort(key=lambda entry: -entry[0].prefixlen)

    def find(text: str) -> str | None:
        try:
            addresses = ips_of(text.strip())
        except ValueError:
            return None
        return next((label for network, label in networks if any(ip in network for ip in addresses)), None)

    return find


#: Keys without which their rule can do nothing.
_NEEDED = frozenset({"pattern", "values", "networks"})
#: Every rule, with its builder and its keys in addition to `column` and `default`.
_KINDS: Mapping[str, tuple[Callable[[Mapping[str, Any]], _Finder], tuple[str, ...]]] = {
    "column": (_column, ()),
    "domain-label": (_domain_label, ("index", "numeric")),
    "regex": (_regex, ("pattern",)),
    "map": (_map, ("values",)),
    "cidr": (_cidr, ("networks",)),
}
