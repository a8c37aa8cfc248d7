"""Templates of topics and values."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lookup.logs.readers.templates import topic_template, value_template
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


def test_what_looks_encoded_is_encoded_again() -> None:
    """A value that reads like an encoded one does not meet it."""
    template = topic_template("persistent://{x}/ns/{y}")
    assert template.fill({"x": "a/", "y": "b/"}) == "persistent://a=2F/ns/b%2F"
    assert template.fill({"x": "a=2F", "y": "b%2F"}) == "persistent://a=3D2F/ns/b%252F"


def test_a_path_becomes_one_local_name() -> None:
    """Slashes and question marks of a path are percent-encoded, so that the local name has no part."""
    assert (
        topic_template("persistent://nasa/http/{url}").fill({"url": "/a/b?c"}) == "persistent://nasa/http/%2Fa%2Fb%3Fc"
    )


def test_the_domain_may_be_a_column() -> None:
    """A column in the domain's place is taken as it is."""
    template = topic_template("{domain}://t/ns/{name}")
    assert template.fill({"domain": "non-persistent", "name": "x"}) == "non-persistent://t/ns/x"


def test_a_value_template_is_a_column_or_a_text_with_columns() -> None:
    """Without braces the text names a column, with braces it is filled."""
    record = {"date": "2026-01-31", "time": "12:00"}
    assert value_template("date").fill(record) == "2026-01-31"
    assert value_template("{date} {time}").fill(record) == "2026-01-31 12:00"


@pytest.mark.parametrize("text", ["{url}", "persistent://nasa/{url}", "http://a/b/{url}", "persistent://a/b/"])
def test_a_template_that_makes_no_topic_is_refused(text: str) -> None:
    """A template without domain, tenant, namespace and local name is a ValueError."""
    with pytest.raises(ValueError, match="is not of the form persistent://tenant/namespace/topic"):
        topic_template(text)


def test_a_stray_brace_is_refused() -> None:
    """A brace that encloses no column is a ValueError."""
    with pytest.raises(ValueError, match="has a brace that belongs to no"):
        value_template("{date} {time")
