"""Brokers, what they register, and the roster that numbers them."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from hypothesis import given

from lookup.errors import InputError
from lookup.model import AdvertisedListener, Broker, BrokerLookupData, Candidates, Location, Roster
from lookup.model.broker import EXTENSIBLE_MANAGER
from lookup.testing import broker
from tests.model.records import JSON, either, records

FULL = BrokerLookupData(
    web_service_url="http://b1:8080",
    web_service_url_tls="https://b1:8443",
    pulsar_service_url="pulsar://b1:6650",
    pulsar_service_url_tls="pulsar+ssl://b1:6651",
    advertised_listeners={
        "internal": AdvertisedListener("pulsar://i:1", "pulsar+ssl://i:2", "http://i:3", "https://i:4")
    },
    protocols={"kafka": "9092"},
    persistent_topics_enabled=False,
    non_persistent_topics_enabled=False,
    load_manager_class_name=EXTENSIBLE_MANAGER,
    start_timestamp=17,
    broker_version="4.1.0",
    properties={"lookup.rack": "a"},
)


def test_lookup_data_survives_json() -> None:
    """All twelve fields, listeners among them, and the id that brokers of 5.0 write."""
    assert BrokerLookupData.from_json(FULL.to_json()) == FULL
    assert len(json.loads(FULL.to_json())) == 12
    newer = replace(FULL, broker_id="b1:8080")
    assert BrokerLookupData.from_json(newer.to_json()) == newer
    assert json.loads(newer.to_json())["brokerId"] == "b1:8080"


def test_nulls_and_unknown_keys_are_passed_over() -> None:
    """As Pulsar writes the ones, and as a newer broker may write the others."""
    assert BrokerLookupData.from_json('{"webServiceUrl": null, "properties": null, "newKey": 5}') == BrokerLookupData()


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        ("{", "is not JSON: "),
        ("[]", "not a JSON object but list"),
        ("7", "not a JSON object but int"),
        ('{"webServiceUrl": 5}', "webServiceUrl is 5, not a text"),
        ('{"advertisedListeners": 5}', "advertisedListeners is 5, not an object"),
        ('{"advertisedListeners": {"a": 5}}', r"advertisedListeners\.a is 5, not an object"),
        ('{"advertisedListeners": {"a": {"brokerHttpUrl": 5}}}', r"Listeners\.a\.brokerHttpUrl is 5, not a text"),
        ('{"protocols": ["kafka"]}', r"protocols is \['kafka'\], "),
        ('{"properties": []}', r"properties is \[\], not an object"),
        ('{"properties": {"a": 5}}', r"properties\.a is 5, not a text"),
        ('{"persistentTopicsEnabled": "yes"}', "persistentTopicsEnabled is 'yes', "),
        ('{"startTimestamp": "x"}', "startTimestamp is 'x', "),
    ],
)
def test_what_is_no_record_is_refused(text: str, sentence: str) -> None:
    """The sentence says where, what it is instead and what would be right."""
    with pytest.raises(InputError, match=sentence):
        BrokerLookupData.from_json(text)


@given(JSON | records(BrokerLookupData))
def test_no_json_is_worse_than_refused(value: Any) -> None:
    """Whatever the text holds, a record comes out that is written and read again alike, or an `InputError`."""
    data = either(BrokerLookupData.from_json, json.dumps(value))

    assert data is None or BrokerLookupData.from_json(data.to_json()) == data


def test_a_property_is_found_under_the_prefix() -> None:
    """The client's key with the broker's prefix; without it a property is none of the clients' business."""
    other = Broker("b1:8080", BrokerLookupData(properties={"place.rack": "a", "rack": "z"}), property_prefix="place.")

    assert broker("b1:8080", rack="a").property_of("rack") == "a"
    assert broker("b1:8080", rack="a").property_of("zone") is None
    assert other.property_of("rack") == "a"


@pytest.mark.parametrize(("broker_id", "host"), [("b1:8080", "b1"), ("b1", "b1"), ("[::1]:8080", "[::1]")])
def test_the_host_is_the_id_without_port(broker_id: str, host: str) -> None:
    """Up to the last colon; an id without one is a host."""
    assert Broker(broker_id).host == host


def test_a_location_may_be_nowhere() -> None:
    """Any level makes it a place."""
    assert not Location()
    assert Location(rack="r")


def test_a_roster_is_sorted_and_numbers_brokers() -> None:
    """A broker's place is its number, whatever the order they came in."""
    roster = Roster([Broker("b"), Broker("a"), Broker("c")])

    assert [one.id for one in roster] == ["a", "b", "c"]
    assert (len(roster), roster[1].id, roster.number("c"), roster.number("x")) == (3, "b", 2, None)


def test_labels_and_columns_are_computed_once() -> None:
    """For all brokers, whoever asks first."""
    roster = Roster([broker("a", rack="r1"), broker("b")])
    asked: list[str] = []

    def compute(one: Broker) -> int:
        asked.append(one.id)
        return len(one.id)

    assert roster.labels("rack").tolist() == ["r1", None]
    assert roster.labels("rack") is roster.labels("rack")
    assert roster.column("k", compute).tolist() == roster.column("k", compute).tolist() == [1, 1]
    assert asked == ["a", "b"]


def test_candidates_are_some_brokers_of_a_roster() -> None:
    """Brokers, ids, labels and columns of those alone, in their order; a mask narrows them."""
    roster = Roster([broker("a", rack="r1"), broker("b", rack="r2"), broker("c", rack="r3")])
    some = Candidates(roster, np.array([0, 2]))

    assert ([one.id for one in some], some.ids, len(some), some[1].id) == (["a", "c"], ("a", "c"), 2, "c")
    assert some.labels("rack").tolist() == ["r1", "r3"]
    assert some.column("id", lambda one: one.id).tolist() == ["a", "c"]
    assert some.subset(np.array([False, True])).ids == ("c",)


def test_writing_into_labels_of_candidates_changes_nobody_elses() -> None:
    """Each call answers an array of its own."""
    some = Candidates(Roster([broker("a", rack="r1")]), np.array([0]))
    some.labels("rack")[0] = "other"

    assert some.labels("rack").tolist() == ["r1"]
