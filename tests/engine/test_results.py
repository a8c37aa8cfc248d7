"""Addresses a client is told."""

from __future__ import annotations

import pytest

from lookup.engine.results import lookup_result
from lookup.errors import NotFoundError
from lookup.model.broker import AdvertisedListener, BrokerLookupData
from lookup.model.request import LookupOptions, LookupResult

_DATA = BrokerLookupData(
    web_service_url="http://w",
    web_service_url_tls="https://w",
    pulsar_service_url="pulsar://b",
    pulsar_service_url_tls="pulsar+ssl://b",
    advertised_listeners={"internal": AdvertisedListener(broker_service_url="pulsar://i")},
)


@pytest.mark.parametrize("name", [None, "", " "])
def test_without_listener_the_broker_s_own_addresses(name: str | None) -> None:
    """A blank name is none."""
    told = lookup_result("b1", _DATA, LookupOptions(advertised_listener_name=name))

    assert told == LookupResult("b1", "pulsar://b", "pulsar+ssl://b", "http://w", "https://w")


def test_a_listener_has_its_own_binary_addresses() -> None:
    """One it lacks is absent, not the broker's; web addresses stay."""
    told = lookup_result("b1", _DATA, LookupOptions(advertised_listener_name="internal"))

    assert told == LookupResult("b1", "pulsar://i", None, "http://w", "https://w")


def test_an_unknown_listener_is_an_error() -> None:
    """The sentence names those there are."""
    with pytest.raises(NotFoundError, match="b1 does not have a listener 'outer'; it has internal"):
        lookup_result("b1", _DATA, LookupOptions(advertised_listener_name="outer"))
