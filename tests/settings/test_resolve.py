"""From settings to the model."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import pytest

from lookup.model import BrokerLookupData, Edge, IsolationPolicy, Location
from lookup.model.broker import EXTENSIBLE_MANAGER
from lookup.settings import (
    BrokerProfile,
    ClientRule,
    broker_intervals,
    client_rules,
    label_client,
    lookup_data,
    namespace_policies,
    topology,
)
from tests.settings.files import evaluation, write

_DAY_US = 1_767_225_600_000_000  # 2026-01-01T00:00:00Z


def test_a_template_becomes_its_brokers(tmp_path: Path) -> None:
    """Lists are taken in turn, `{n}` counts, and the location follows the properties."""
    settings = evaluation(
        tmp_path,
        """
        [[brokers]]
        id = "b-{n}:8080"
        count = 3
        first = 1
        properties = { "lookup.rack" = ["x", "y"], "lookup.zone" = "z", "lookup.name" = "host-{n}" }
        """,
    )

    brokers = [interval.broker for interval in broker_intervals(settings, "any")]

    assert [broker.id for broker in brokers] == ["b-1:8080", "b-2:8080", "b-3:8080"]
    assert [broker.property_of("rack") for broker in brokers] == ["x", "y", "x"]
    assert [broker.property_of("name") for broker in brokers] == ["host-1", "host-2", "host-3"]
    assert brokers[1].location == Location(zone="z", rack="y")


def test_intervals_are_microseconds_sorted_by_id_and_time(tmp_path: Path) -> None:
    """One broker may come and go; offsets are taken into account, and open ends are None."""
    settings = evaluation(
        tmp_path,
        """
        [[brokers]]
        id = "b:1"
        from = 2026-01-01T02:00:00.000001+01:00
        [[brokers]]
        id = "a:1"
        [[brokers]]
        id = "b:1"
        until = 2026-01-01T00:00:00Z
        """,
    )

    found = [(i.broker.id, i.from_us, i.until_us) for i in broker_intervals(settings, "any")]

    hour_us = 3_600_000_000
    assert found == [("a:1", None, None), ("b:1", None, _DAY_US), ("b:1", _DAY_US + hour_us + 1, None)]


def test_a_registered_broker_has_started(tmp_path: Path) -> None:
    """The start timestamp, in ms, is the beginning of the interval; 0 where nobody said."""
    settings = evaluation(
        tmp_path, '[[brokers]]\nid = "b:1"\nfrom = 2026-01-01T00:00:00.0015Z\n[[brokers]]\nid = "c:1"'
    )

    starts = [interval.broker.lookup_data.start_timestamp for interval in broker_intervals(settings, "any")]

    assert starts == [_DAY_US // 1000 + 1, 0]


def test_brokers_belong_to_their_clusters(tmp_path: Path) -> None:
    """A broker without clusters is in all of them."""
    settings = evaluation(tmp_path, '[[brokers]]\nid = "a:1"\nclusters = ["east"]\n[[brokers]]\nid = "b:1"')

    found = {name: [i.broker.id for i in broker_intervals(settings, name)] for name in ("east", "west")}

    assert found == {"east": ["a:1", "b:1"], "west": ["b:1"]}


def test_an_entry_goes_before_its_profile(tmp_path: Path) -> None:
    """Properties, capacity and location of the entry win; what it leaves out is the profile's."""
    write(
        tmp_path,
        "p.toml",
        """
        capacity = 5.0
        lookup_property_prefix = "my."
        properties = { "my.rack" = "p", "my.zone" = "p" }
        """,
    )
    settings = evaluation(
        tmp_path,
        """
        [[brokers]]
        id = "a:1"
        profile = "p.toml"
        properties = { "my.rack" = "e" }
        [[brokers]]
        id = "b-{n}:1"
        count = 2
        profile = "p.toml"
        capacity = 7.0
        location = { region = "eu", rack = ["r{n}", "s{n}"] }
        """,
    )

    a, b, c = (interval.broker for interval in broker_intervals(settings, "any"))

    assert (a.capacity, a.location, a.property_of("rack")) == (5.0, Location(zone="p", rack="e"), "e")
    assert (b.capacity, b.location, b.property_of("rack")) == (7.0, Location(region="eu", rack="r0"), "p")
    assert c.location == Location(region="eu", rack="s1")


def test_an_empty_label_is_no_place(tmp_path: Path) -> None:
    """A broker.conf may have `lookup.zone=`; that is a label, but nowhere to stand."""
    write(tmp_path, "b.conf", "lookup.rack=a\nlookup.zone=")

    (interval,) = broker_intervals(evaluation(tmp_path, '[[brokers]]\nid = "a:1"\nprofile = "b.conf"'), "any")

    assert interval.broker.lookup_data.properties == {"lookup.rack": "a", "lookup.zone": ""}
    assert interval.broker.location == Location(rack="a")


def test_a_broker_registers_what_pulsar_would() -> None:
    """Addresses come from host and ports, the record has Pulsar's twelve fields, the prefix stays in the keys."""
    profile = BrokerProfile(web_service_port_tls=8443, broker_service_port_tls=6651, broker_version="4.1.0")

    assert lookup_data(profile, "b:8081", {"lookup.rack": "a"}) == BrokerLookupData(
        web_service_url="http://b:8081",
        web_service_url_tls="https://b:8443",
        pulsar_service_url="pulsar://b:6650",
        pulsar_service_url_tls="pulsar+ssl://b:6651",
        load_manager_class_name=EXTENSIBLE_MANAGER,
        broker_version="4.1.0",
        properties={"lookup.rack": "a"},
    )


def test_a_broker_may_have_tls_only() -> None:
    """Without a plain web service the id carries the TLS port; without any port there is no address."""
    profile = BrokerProfile(web_service_port=None, web_service_port_tls=8443, broker_service_port=None)

    data = lookup_data(profile, "b:8443", {})

    assert (data.web_service_url, data.web_service_url_tls) == (None, "https://b:8443")
    assert (data.pulsar_service_url, data.pulsar_service_url_tls) == (None, None)


def test_an_id_may_lack_a_port() -> None:
    """An id that is a mere host is taken as such."""
    assert lookup_data(BrokerProfile(), "b", {}).web_service_url == "http://b:8080"


def test_namespaces_become_policies(tmp_path: Path) -> None:
    """Bundles, boundaries, groups, isolation and domains are found by name; the rest has the defaults."""
    policies = namespace_policies(
        evaluation(
            tmp_path,
            """
            [[namespaces]]
            name = "t/two"
            bundles = 2
            anti_affinity_group = "g"
            [[namespaces]]
            name = "t/cut"
            boundaries = ["0x00000000", "0x10", "0xFFFFFFFF"]
            [[namespaces]]
            name = "t/alone"
            isolation = [{ primary = ["a.*"], secondary = ["b"], min_limit = 2 }]
            [failure_domains]
            d1 = ["a:1", "b:1"]
            d2 = ["c:1"]
            """,
        )
    )

    assert policies.boundaries_of("t/two") == (0, 0x80000000, 0xFFFFFFFF)
    assert policies.boundaries_of("t/cut") == (0, 0x10, 0xFFFFFFFF)
    assert len(policies.boundaries_of("t/alone")) == 5
    assert policies.anti_affinity_group == {"t/two": "g"}
    assert policies.isolation == {"t/alone": (IsolationPolicy(("a.*",), ("b",), 2),)}
    assert policies.failure_domains == {"a:1": "d1", "b:1": "d1", "c:1": "d2"}


def test_the_topology_keeps_its_levels(tmp_path: Path) -> None:
    """Figures of levels that are not listed play no part; links are taken over."""
    found = topology(
        evaluation(
            tmp_path,
            """
            [topology]
            levels = ["zone", "rack"]
            edges = [{ a = "z1", b = "z2", ms = 2.0 }]
            """,
        )
    )

    assert found.distance_ms == {"same": 0.05, "rack": 0.3, "zone": 1.0}
    assert found.price_per_gb == {"zone": 0.01}
    assert found.edges == (Edge("z1", "z2", 2.0, 0.0),)


@pytest.mark.parametrize(
    ("cidr", "glob", "client", "matched"),
    [
        ("10.1.0.0/16", None, "10.1.2.3", True),
        ("10.1.0.0/16", None, "/10.1.2.3:51234", True),
        ("10.1.0.0/16", None, "10.2.0.1:80", False),
        ("10.1.0.0/16", None, "host.example.com", False),
        ("2001:db8::/32", None, "2001:db8::1", True),
        ("2001:db8::/32", None, "/[2001:db8::1]:6650", True),
        ("2001:db8::/32", None, "10.1.2.3", False),
        ("10.1.0.0/16", None, "/[::ffff:10.1.2.3]:4000", True),
        ("::ffff:0:0/96", None, "::ffff:10.1.2.3", True),
        ("::1/128", None, "/0:0:0:0:0:0:0:1:40003", True),
        (None, "fd00:*", "/[fd00::1]:40003", True),
        (None, "*.example.com", "a.example.com", True),
        (None, "*.example.com", "a.example.com:80", True),
        (None, "*.example.com", "a.EXAMPLE.com", False),
        (None, "*:80", "a.example.com:80", True),
        (None, "*.example.com", "example.com", False),
        (None, "10.1.?.3", "/10.1.2.3:1", True),
        (None, None, "x", False),
    ],
)
def test_clients_are_matched_as_logs_write_them(cidr: str | None, glob: str | None, client: str, matched: bool) -> None:
    """Networks and globs meet a client with or without slash, brackets and port."""
    assert ClientRule(cidr, glob, {}).matches(client) == matched


@pytest.mark.parametrize(
    ("client", "properties", "wanted"),
    [
        ("10.1.0.1", {}, {"rack": "a", "app": "x"}),
        ("10.1.0.1", {"rack": "z"}, {"rack": "z", "app": "x"}),
        ("10.2.0.1", {}, {"rack": "b"}),
        ("11.0.0.1", {"k": "v"}, {"k": "v"}),
        (None, {"k": "v"}, {"k": "v"}),
    ],
)
def test_the_first_match_labels_and_the_log_wins(
    tmp_path: Path, client: str | None, properties: Mapping[str, str], wanted: Mapping[str, str]
) -> None:
    """A client gets the labels of the first rule that matches it; what it sent itself stays."""
    rules = client_rules(
        evaluation(
            tmp_path,
            """
            [[clients]]
            match = { cidr = "10.1.0.0/16" }
            properties = { rack = "a", app = "x" }
            [[clients]]
            match = { client = "10.*" }
            properties = { rack = "b" }
            """,
        )
    )

    assert label_client(rules, client, properties) == wanted
