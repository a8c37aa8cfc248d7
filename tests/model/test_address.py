"""Network addresses as brokers, clients and logs write them."""

from __future__ import annotations

import ipaddress

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lookup.model.address import host_of


@pytest.mark.parametrize(
    ("address", "host"),
    [
        ("10.0.0.1", "10.0.0.1"),
        ("10.0.0.1:4000", "10.0.0.1"),
        ("/10.0.0.1:4000", "10.0.0.1"),
        ("broker-1.example/10.0.0.1:4000", "10.0.0.1"),
        ("broker-1.example:6650", "broker-1.example"),
        ("broker-1", "broker-1"),
        ("[::1]:6650", "::1"),
        ("/[fd00:10::a0]:6650", "fd00:10::a0"),
        ("[fd00:10::a0]", "fd00:10::a0"),
        ("fd00:10::a0", "fd00:10::a0"),
        ("/0:0:0:0:0:0:0:1:40003", "0:0:0:0:0:0:0:1"),
        ("/0:0:0:0:0:0:0:1%0:40003", "0:0:0:0:0:0:0:1%0"),
        (":6650", ":6650"),
        ("", ""),
    ],
)
def test_an_address_loses_its_port(address: str, host: str) -> None:
    """And its slash, its name and its brackets, but no group of IPv6."""
    assert host_of(address) == host


@given(address=st.ip_addresses(), port=st.integers(10_000, 65_535))
def test_any_address_is_found_in_every_form(address: ipaddress.IPv4Address | ipaddress.IPv6Address, port: int) -> None:
    """As a URL has it, and as Java prints it before and since version 14; a port of five digits is no group."""
    exploded = address.exploded
    forms = [f"[{address}]:{port}" if address.version == 6 else f"{address}:{port}", f"/{exploded}:{port}", exploded]

    assert {ipaddress.ip_address(host_of(form)) for form in forms} == {address}
