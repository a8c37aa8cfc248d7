"""What a policy is asked about."""

from __future__ import annotations

from lookup.model import LookupOptions, LookupRequest
from lookup.model.request import request_of

BUNDLE = "tenant/ns/0x00000000_0x40000000"


def test_a_lookup_becomes_a_request() -> None:
    """Names come out of topic and bundle, listener and properties out of the options."""
    options = LookupOptions(advertised_listener_name="internal", properties={"rack": "a"})

    assert request_of("non-persistent://tenant/ns/t", BUNDLE, options, "10.0.0.1") == LookupRequest(
        tenant="tenant",
        namespace="tenant/ns",
        bundle=BUNDLE,
        domain="non-persistent",
        topic="non-persistent://tenant/ns/t",
        client="10.0.0.1",
        listener="internal",
        properties={"rack": "a"},
    )


def test_an_absent_property_is_none() -> None:
    """And no error."""
    request = LookupRequest("t", "t/n", BUNDLE, properties={"rack": "a"})

    assert (request.property_of("rack"), request.property_of("zone")) == ("a", None)
