"""What readers of text logs are told."""

from __future__ import annotations

import pytest

from lookup.logs.readers.origin import LogOrigin


def test_the_broker_comes_from_the_parameter_or_the_path() -> None:
    """An id is taken as given, a host gets the web port, a table of ids goes before both."""
    assert LogOrigin(broker="b:80").broker_of("x") == "b:80"
    assert LogOrigin(broker_pattern=r"([^/]+)\.log").broker_of("/logs/broker-3.log") == "broker-3:8080"
    assert LogOrigin(broker="b3", broker_ids={"b3": "broker-3:8080"}).broker_of("x") == "broker-3:8080"
    assert LogOrigin(broker="b3", web_port=0).broker_of("x") == "b3"
    assert LogOrigin().broker_of("x") is None


def test_the_cluster_comes_from_the_path() -> None:
    """A pattern's first group, or all of what it finds, is the cluster."""
    assert LogOrigin(cluster_pattern=r"/(\w+)/broker").cluster_of("/logs/east/broker-1.log") == {"cluster": "east"}
    assert LogOrigin(cluster_pattern="east|west").cluster_of("/logs/west/b.log") == {"cluster": "west"}
    assert LogOrigin(cluster_pattern="north").cluster_of("/logs/west/b.log") == {}


def test_service_urls_become_ids() -> None:
    """A binary URL's port gives way to the web port, a web URL keeps its own, an id stays."""
    names = LogOrigin(broker_ids={"pulsar://10.0.0.7:6650": "b7:8080"}).names
    assert names.id_of("pulsar://b1.example:6650") == "b1.example:8080"
    assert names.id_of("pulsar+ssl://b1:6651/") == "b1:8080"
    assert names.id_of("http://b1:8443") == "b1:8443"
    assert names.id_of("pulsar://10.0.0.7:6650") == "b7:8080"
    assert names.id_of("b1:8080") == "b1:8080"
    assert names.id_of("null") is None


def test_wrong_parameters_are_refused() -> None:
    """Zones, days and patterns are checked before any file is read."""
    with pytest.raises(ValueError, match="time zone 'Nowhere' is unknown"):
        LogOrigin(timezone="Nowhere")
    with pytest.raises(ValueError, match="Invalid isoformat string: 'yesterday'"):
        LogOrigin(date="yesterday")
    with pytest.raises(ValueError, match="broker_pattern is no regular expression"):
        LogOrigin(broker_pattern="(")
