"""Templates of topics and values, and rules that derive labels from columns."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lookup.logs.readers.templates import label_rule, topic_template, value_template
from lookup.model.names import TopicName, looks_like_pattern

_TEXTS = st.text(st.characters(codec="utf-8"), min_size=1)


@given(_TEXTS, _TEXTS, _TEXTS)
def test_any_values_make_a_topic(tenant: str, namespace: str, local: str) -> None:
    """Whatever the columns hold, the filled template is a topic and no pattern."""
    topic = topic_template("persistent://{a}/{b}/{c}").fill({"a": tenant, "b": namespace, "c": local})

    assert str(TopicName.parse(topic)) == topic
    assert not looks_like_pattern(topic)


@given(_TEXTS, _TEXTS, _TEXTS, _TEXTS)
def test_different_values_make_different_topics(a: str, b: str, c: str, d: str) -> None:
    """Two records have the same topic only if their columns are equal."""
    template = topic_template("persistent://{x}/ns/{y}")

    same = template.fill({"x": a, "y": b}) == template.fill({"x": c, "y": d})
    assert same == ((a, b) == (c, d))


def test_the_domain_may_be_a_column() -> None:
    """A column in the domain's place is taken as it is."""
    template = topic_template("{domain}://t/ns/{name}")
    assert template.fill({"domain": "non-persistent", "name": "x"}) == "non-persistent://t/ns/x"


def test_a_column_of_complete_names_stays_as_it_is() -> None:
    """A template that is nothing but a column encodes nothing, or a name would not be the cluster's."""
    name = "persistent://t/ns/a%2Fb c"
    assert topic_template("{full name}").fill({"full name": name}) == name
    assert topic_template("non-persistent://{short}").fill({"short": "t/ns/a%2Fb"}) == "non-persistent://t/ns/a%2Fb"


def test_a_value_template_is_a_column_or_a_text_with_columns() -> None:
    """Without braces the text names a column, with braces it is filled."""
    record = {"date": "2026-01-31", "time": "12:00"}
    assert value_template("date").fill(record) == "2026-01-31"
    assert value_template("{date} {time}").fill(record) == "2026-01-31 12:00"


@pytest.mark.parametrize("text", ["{url}/x", "persistent://nasa/{url}", "http://a/b/{url}", "persistent://a/b/"])
def test_a_template_that_makes_no_topic_is_refused(text: str) -> None:
    """A template without domain, tenant, namespace and local name is a ValueError."""
    with pytest.raises(ValueError, match="is not of the form"):
        topic_template(text)


def test_a_stray_brace_is_refused() -> None:
    """A brace that encloses no column is a ValueError."""
    with pytest.raises(ValueError, match="has a brace"):
        value_template("{date} {time")


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
        ({"rule": "cidr", "networks": {"10.0.0.0/8": "wide"}, "default": "out"}, "::ffff:10.1.2.3", "wide"),
        ({"rule": "cidr", "networks": {"10.0.0.0/8": "wide"}, "default": "out"}, "[::ffff:10.1.2.3]:4000", "wide"),
        ({"rule": "cidr", "networks": {"fe80::/10": "link"}, "default": "out"}, "fe80::1%eth0", "link"),
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
        ({"rule": "domain-lable"}, "no rule named 'domain-lable'"),
        ({"rule": "map", "value": {}}, "rule 'map' has no key 'value'"),
        ({"rule": "map"}, "rule 'map' needs .* 'values'"),
        ({"column": 3}, "`column` .* 3"),
        ({"rule": "regex", "pattern": "("}, "is not a regular expression"),
        ({"rule": "cidr", "networks": {"10.0.0.1/8": "a"}}, "10.0.0.1/8 has host"),
        ({"default": 7}, "`default` .* 7"),
    ],
)
def test_a_wrong_rule_is_told_by_its_place(rule: dict[str, Any], sentence: str) -> None:
    """A rule that cannot work is a ValueError that names the property and the key."""
    with pytest.raises(ValueError, match=sentence):
        label_rule({"column": "host", **rule}, "properties.rack")
