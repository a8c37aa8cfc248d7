"""Rules that derive labels from columns."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lookup.logs.readers.rules import label_rule

_RULES: tuple[dict[str, Any], ...] = (
    {"column": "host"},
    {"column": "host", "rule": "domain-label", "index": -2, "numeric": "ip"},
    {"column": "host", "rule": "regex", "pattern": r"(\d+)"},
    {"column": "host", "rule": "map", "values": {"a": "b"}},
    {"column": "host", "rule": "cidr", "networks": {"10.0.0.0/8": "a", "fd00::/8": "b"}},
)


@pytest.mark.parametrize(
    ("rule", "host", "label"),
    [
        ({"rule": "domain-label"}, "pppa006.compuserve.com", "com"),
        ({"rule": "domain-label"}, "WWW.Example.ORG.", "org"),
        ({"rule": "domain-label", "index": -2}, "vcc7.langara.bc.ca", "bc"),
        ({"rule": "domain-label", "index": 0}, "vcc7.langara.bc.ca", "vcc7"),
        ({"rule": "domain-label", "default": "unknown"}, "derec", "unknown"),
        ({"rule": "domain-label", "index": -5, "default": "unknown"}, "a.b", "unknown"),
        ({"rule": "domain-label", "numeric": "ip"}, "163.206.89.4", "ip"),
        ({"rule": "domain-label", "numeric": "ip"}, "2001:db8::1", "ip"),
        ({"rule": "domain-label"}, "163.206.89.4", None),
        ({}, "  h1 ", "h1"),
        ({"default": "none"}, "", "none"),
        ({"rule": "regex", "pattern": r"^rack-(\w+)-"}, "rack-a-17", "a"),
        ({"rule": "regex", "pattern": r"(?P<x>.)(?P<value>\d)"}, "h7", "7"),
        ({"rule": "regex", "pattern": r"\d+"}, "host42", "42"),
        ({"rule": "regex", "pattern": r"(\d+)"}, "host", None),
        ({"rule": "map", "values": {"h1": "a"}}, "h1", "a"),
        ({"rule": "map", "values": {"h1": "a"}, "default": "z"}, "h2", "z"),
        ({"rule": "cidr", "networks": {"10.0.0.0/8": "wide", "10.1.0.0/16": "narrow"}}, "10.1.2.3", "narrow"),
        ({"rule": "cidr", "networks": {"10.0.0.0/8": "wide", "10.1.0.0/16": "narrow"}}, "10.2.2.3", "wide"),
        ({"rule": "cidr", "networks": {"10.0.0.0/8": "wide"}, "default": "out"}, "not-an-address", "out"),
    ],
)
def test_a_rule_finds_its_label(rule: dict[str, Any], host: str, label: str | None) -> None:
    """Every rule finds what it says, and its default where it finds nothing."""
    assert label_rule({"column": "host", **rule}, "properties.rack").label({"host": host}) == label


@given(st.sampled_from(_RULES), st.text())
def test_no_rule_raises_on_any_text(rule: dict[str, Any], text: str) -> None:
    """Whatever the column holds, a rule answers a text or None."""
    label = label_rule(rule, "properties.rack").label({"host": text})
    assert label is None or isinstance(label, str)


def test_a_text_is_the_name_of_a_column() -> None:
    """The short form takes the column's value."""
    assert label_rule("rack", "properties.rack").label({"rack": "a"}) == "a"


@pytest.mark.parametrize(
    ("rule", "sentence"),
    [
        ({"rule": "domain-lable"}, "properties.rack: no rule named 'domain-lable'; did you mean 'domain-label'"),
        ({"rule": "map", "value": {}}, "rule 'map' has no key 'value'; did you mean 'values'"),
        ({"rule": "map"}, "rule 'map' needs the key 'values'"),
        ({"column": 3}, "`column` must name a column, it is 3"),
        ({"rule": "regex", "pattern": "("}, "is no regular expression"),
        ({"rule": "cidr", "networks": {"10.0.0.1/8": "a"}}, "10.0.0.1/8 has host bits set"),
        ({"default": 7}, "`default` must be a text, it is 7"),
    ],
)
def test_a_wrong_rule_is_told_by_its_place(rule: dict[str, Any], sentence: str) -> None:
    """A rule that cannot work is a ValueError that names the property and the key."""
    with pytest.raises(ValueError, match=sentence):
        label_rule({"column": "host", **rule}, "properties.rack")
