"""Broker entries: single brokers and templates."""

from __future__ import annotations

import re
import tomllib

import pytest
from pydantic import ValidationError

from lookup.settings import BrokerEntry, BrokerProfile


def _entry(text: str) -> BrokerEntry:
    return BrokerEntry.model_validate(tomllib.loads(text))


@pytest.mark.parametrize(
    ("text", "ids"),
    [
        ('id = "b:1"', ("b:1",)),
        ('id = "b-{n}:1"\ncount = 3', ("b-0:1", "b-1:1", "b-2:1")),
        ('id = "b-{n:02}:1"\ncount = 2\nfirst = 9', ("b-09:1", "b-10:1")),
        ('id = "[fe80::1%eth{n}]:8080"\ncount = 1', ("[fe80::1%eth0]:8080",)),
        ('profile = { advertised_address = "h" }', ("h:8080",)),
        ('profile = { advertised_address = "fd00::1" }', ("[fd00::1]:8080",)),
        ('profile = { advertised_address = "h", web_service_port = 81 }', ("h:81",)),
    ],
)
def test_an_entry_stands_for_its_ids(text: str, ids: tuple[str, ...]) -> None:
    """A template stands for `count` brokers from `first` on; an id may come from the profile's address."""
    assert _entry(text).ids == ids


@pytest.mark.parametrize(
    ("text", "place"),
    [
        ("", "id"),
        ('id = "b"\nprofile = { advertised_address = "b-{n}" }', "profile: advertisedAddress"),
        ('id = "fd00::1:8080"', "id: write an IPv6 address"),
        ('id = "[fd00::1:8080"', "id: write an IPv6 address"),
        ('id = "fd00::1]:8080"', "id: write an IPv6 address in brackets"),
        ('id = "fd00::{n}:8080"\ncount = 2', "id: write an IPv6 address"),
        ('id = "b"\nfirst = 1', "first"),
        ('id = "b"\nproperties = { "lookup.r" = ["a", "b"] }', 'properties."lookup.r"'),
        ('id = "b"\nlocation = { zone = ["a", "b"] }', "location.zone"),
        ('id = "b"\nproperties = { rack = "a" }', "properties.rack"),
        (
            'id = "b"\nproperties = { "lookup.rack" = "a" }\nprofile = { lookup_property_prefix = "my." }',
            "properties.lookup.rack",
        ),
        (
            'id = "b"\nfrom = 2026-01-02T00:00:00Z\nuntil = 2026-01-02T01:00:00+01:00',
            "until: 2026-01-02T01:00:00+01:00",
        ),
    ],
)
def test_an_entry_that_makes_no_sense_is_refused(text: str, place: str) -> None:
    """Lists and numbers belong to templates, properties stand under the prefix, intervals do not run backwards."""
    with pytest.raises(ValidationError) as caught:
        _entry(text)

    assert re.match(rf"{re.escape(place)}(\W|$)", caught.value.errors()[0]["msg"].removeprefix("Value error, "))


def test_a_profile_s_properties_stand_under_its_prefix() -> None:
    """A profile that would publish nothing of what it says is a slip, too."""
    with pytest.raises(ValidationError, match=r'^.*\n +Value error, properties\.rack: .*"my\."'):
        BrokerProfile(lookup_property_prefix="my.", properties={"rack": "a"})


@pytest.mark.parametrize(
    ("name", "sentence"),
    [("", "the cluster is empty"), (" ", "cluster ' ' begins or ends"), ("a\\u0007", "has the character '.x07'")],
)
def test_a_broker_is_in_clusters_that_can_be_named(name: str, sentence: str) -> None:
    """An empty name would stand for every cluster."""
    with pytest.raises(ValidationError, match=sentence):
        _entry(f'id = "b:1"\nclusters = ["east", "{name}"]')


@pytest.mark.parametrize(
    "text", ["count = 0", "count = 2_000_000_000", "capacity = 0.0", "clusters = []", 'id = ""', "from = 2026-01-01"]
)
def test_values_out_of_range_are_refused(text: str) -> None:
    """No template of nobody, no capacity of nothing, no broker of no cluster, no date for a time."""
    with pytest.raises(ValidationError):
        _entry(text if text.startswith("id") else f'id = "b-{{n}}"\n{text}')
