"""Conditions on labels, joined to selectors."""

from __future__ import annotations

import pytest

from lookup.errors import ArgumentError
from lookup.model.catalog import Equals, Exists, In, Selector, TopicEvent, selects

_LABELS = {"env": "prod", "tier": "a"}


@pytest.mark.parametrize(
    ("selector", "expected"),
    [
        ((Equals("env", "prod"),), True),
        ((Equals("env", "test"),), False),
        ((Equals("team", "prod"),), False),
        ((In("tier", ("a", "b")),), True),
        ((In("tier", ()),), False),
        ((In("team", ("a",)),), False),
        ((Exists("tier"),), True),
        ((Exists("team"),), False),
        ((Equals("env", "prod"), In("tier", ("a",)), Exists("env")), True),
        ((Equals("env", "prod"), Exists("team")), False),
        ((), False),
    ],
)
def test_every_condition_must_hold(selector: Selector, expected: bool) -> None:
    """A selector without conditions selects nothing, never everything."""
    assert selects(selector, _LABELS) is expected


def test_conditions_are_printed_as_they_are_written() -> None:
    """Their texts, joined by commas, are a selector again."""
    terms = (Equals("env", "prod"), In("tier", ("a", "b")), Exists("team"))

    assert ",".join(map(str, terms)) == "env=prod,tier in (a,b),team"


def test_an_event_has_empty_maps_where_none_are_given() -> None:
    """Of a topic that is loaded nothing else is different."""
    event = TopicEvent(1, "loaded", "persistent://t/ns/x")

    assert (event.old, event.new, event.properties) == ({}, {}, {})


def test_one_text_in_the_place_of_values_is_refused() -> None:
    """It would match every piece of itself."""
    with pytest.raises(ArgumentError, match="'tier' are the text 'gold'; "):
        In("tier", "gold")  # type: ignore[arg-type]  # what is refused
