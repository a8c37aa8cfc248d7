"""Real broker.conf files, read by Java's rules."""

from __future__ import annotations

from pathlib import Path

import javaproperties
import pytest
from hypothesis import given
from hypothesis import strategies as st

from lookup.errors import SettingsError
from lookup.model.broker import EXTENSIBLE_MANAGER
from lookup.settings import BrokerProfile, load_broker_profile, read_broker_conf
from lookup.settings.broker_keys import MODULAR_MANAGER

# Pieces of the file that Pulsar ships, with its comments and its way of leaving values empty.
_SHIPPED = """\
### --- General broker settings --- ###

# The metadata store URL
metadataStoreUrl=

# Broker data port
brokerServicePort=6650

# Broker data port for TLS - By default TLS is disabled
brokerServicePortTls=

# Port to use to server HTTP request
webServicePort=8080
webServicePortTls=8443

# Hostname or IP address the service advertises to the outside world.
advertisedAddress=

# Used to specify multiple advertised listeners for the broker.
# advertisedListeners=
# internalListenerName=

### --- Load balancer --- ###
loadManagerClassName=org.apache.pulsar.broker.loadbalance.extensions.ExtensibleLoadManagerImpl
loadBalancerEnabled=true
loadBalancerBrokerMaxTopics=50000
loadBalancerHistoryResourcePercentage=0.9
loadBalancerOverrideBrokerNicSpeedGbps=
loadBalancerServiceUnitTableViewSyncer=None
maxUnloadPercentage=0.2
"""


def _read(folder: Path, text: str | bytes) -> BrokerProfile:
    path = folder / "broker.conf"
    path.write_bytes(text if isinstance(text, bytes) else text.encode("latin-1"))
    return read_broker_conf(path)


def test_what_matters_for_lookups_is_read(tmp_path: Path) -> None:
    """Ports, manager and load manager keys are taken over with their kinds; an empty value is Pulsar's default."""
    profile = _read(tmp_path, _SHIPPED)

    assert profile == BrokerProfile(
        file=f"{tmp_path}/broker.conf",
        load_manager_class_name=EXTENSIBLE_MANAGER,
        web_service_port_tls=8443,
        load_balancer={
            "loadBalancerEnabled": True,
            "loadBalancerBrokerMaxTopics": 50_000,
            "loadBalancerHistoryResourcePercentage": 0.9,
            "loadBalancerServiceUnitTableViewSyncer": "None",
            "maxUnloadPercentage": 0.2,
        },
    )


def test_an_empty_file_is_pulsar_s_default_broker(tmp_path: Path) -> None:
    """A broker that is not told otherwise runs the modular manager."""
    profile = _read(tmp_path, "")

    assert profile.load_manager_class_name == MODULAR_MANAGER
    assert (profile.web_service_port, profile.broker_service_port, profile.properties) == (8080, 6650, {})


@pytest.mark.parametrize(
    ("text", "properties"),
    [
        ("lookup.rack=a", {"lookup.rack": "a"}),
        ("lookup.rack=", {"lookup.rack": ""}),
        ("lookup.rack", {"lookup.rack": ""}),
        ("lookup.rack = a ", {"lookup.rack": "a "}),
        ("lookup.rack:a", {"lookup.rack": "a"}),
        ("lookup.rack=a\\\n   b", {"lookup.rack": "ab"}),
        ("lookup.rack=\\u00fc", {"lookup.rack": "ü"}),
        ("#lookup.rack=a\n!lookup.zone=b", {}),
        ("lookuprack=a\nrack=b", {}),
        ("lookupPropertyPrefix=my.\nmy.rack=a\nlookup.rack=b", {"my.rack": "a"}),
        ("lookupPropertyPrefix=\nlookup.rack=b", {"lookup.rack": "b"}),
    ],
)
def test_lookup_properties_are_those_under_the_prefix(tmp_path: Path, text: str, properties: dict[str, str]) -> None:
    """The prefix stays in the key; a lookup property may be empty, and blanks behind a value belong to it."""
    assert _read(tmp_path, text).properties == properties


def test_bytes_are_latin_1_as_in_java(tmp_path: Path) -> None:
    """What an editor wrote as UTF-8 comes out as it would in Java, unless the reader is told the encoding."""
    assert _read(tmp_path, "lookup.city=Zürich".encode()).properties == {"lookup.city": "ZÃ¼rich"}
    assert read_broker_conf(tmp_path / "broker.conf", encoding="utf-8").properties == {"lookup.city": "Zürich"}


def test_of_a_key_given_twice_the_last_counts(tmp_path: Path) -> None:
    """As in Java; the profile remembers which keys these are."""
    profile = _read(tmp_path, "lookup.rack=a\nwebServicePort=1\nlookup.rack=b\nlookup.zone=c")

    assert profile.properties == {"lookup.rack": "b", "lookup.zone": "c"}
    assert profile.duplicates == ("lookup.rack",)


def test_listeners_are_told_apart_by_name(tmp_path: Path) -> None:
    """A listener may have one address of each kind."""
    text = "advertisedListeners=in:pulsar://a:1, in:pulsar+ssl://a:2,out:https://b:3\ninternalListenerName=in"

    profile = _read(tmp_path, text)

    assert profile.advertised_listeners == {"in": ("pulsar://a:1", "pulsar+ssl://a:2"), "out": ("https://b:3",)}
    assert profile.internal_listener_name == "in"


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        ("webServicePort=http", "webServicePort: should be a whole number, not 'http'"),
        ("brokerServicePort=70000", "brokerServicePort: should be less than or equal to 65535, not 70000"),
        ("enablePersistentTopics=yes", "enablePersistentTopics: should be true or false, not 'yes'"),
        ("advertisedListeners=pulsar", "advertisedListeners: 'pulsar' is not of the form name:pulsar://host:port"),
        ("advertisedListeners=a:kafka://b:1", "advertised_listeners: 'kafka://b:1' should begin with one of pulsar,"),
        ("advertisedListeners=a:http://b:1,a:http://c:1", "advertised_listeners: listener 'a' has two addresses"),
        ("internalListenerName=x", "internal_listener_name: there is no listener 'x'"),
        ("lookup.rack=\\uXXXX", "cannot be read as Java properties: "),
    ],
)
def test_a_wrong_value_is_one_sentence(tmp_path: Path, text: str, sentence: str) -> None:
    """A mistake in a broker.conf is told with the file and Pulsar's own key."""
    with pytest.raises(SettingsError) as caught:
        _read(tmp_path, text)

    (problem,) = caught.value.problems
    assert problem.startswith(f"{tmp_path}/broker.conf: {sentence}")


def test_a_missing_file_is_one_sentence(tmp_path: Path) -> None:
    """A profile that is not there is told, whichever kind it is."""
    for name in ("broker.conf", "broker.toml"):
        with pytest.raises(SettingsError, match=f"{tmp_path}/{name}: there is no such file"):
            load_broker_profile(tmp_path / name)


def test_a_toml_profile_is_the_same_kind_of_thing(tmp_path: Path) -> None:
    """A name that ends in .toml is read as TOML, any other as broker.conf; both say the same."""
    (tmp_path / "a.toml").write_text(
        'web_service_port = 8081\nproperties = { "lookup.rack" = "a" }\n'
        "load_balancer = { loadBalancerBrokerMaxTopics = 5 }"
    )
    (tmp_path / "a.conf").write_text(
        f"webServicePort=8081\nlookup.rack=a\nloadBalancerBrokerMaxTopics=5\nloadManagerClassName={EXTENSIBLE_MANAGER}"
    )

    profiles = [load_broker_profile(tmp_path / name).model_copy(update={"file": None}) for name in ("a.toml", "a.conf")]

    assert profiles[0] == profiles[1]


@pytest.mark.parametrize(
    ("keys", "sentence"),
    [
        ("loadBalancerBrokerMaxTopic = 1", "there is no such key; did you mean 'loadBalancerBrokerMaxTopics'?"),
        ("zookeeperServers = 'x'", "is no key of Pulsar's load manager"),
        ("loadBalancerBrokerMaxTopics = [1]", "should be a text, a number, true or false, not [1]"),
    ],
)
def test_keys_of_the_load_manager_are_checked_in_toml(tmp_path: Path, keys: str, sentence: str) -> None:
    """Nobody ships a TOML profile with Pulsar, so a key in it that resembles a known one is a slip."""
    (tmp_path / "p.toml").write_text(f"load_balancer = {{ {keys} }}")

    with pytest.raises(SettingsError) as caught:
        load_broker_profile(tmp_path / "p.toml")

    key = keys.partition(" ")[0]
    assert caught.value.problems == (f"{tmp_path}/p.toml: load_balancer.{key}: {sentence}",)


@given(
    st.dictionaries(
        st.text(st.characters(codec="latin-1", exclude_categories=["Cc"]), min_size=1).map("lookup.".__add__),
        st.text(st.characters(codec="latin-1")),
    )
)
def test_any_property_comes_through(tmp_path_factory: pytest.TempPathFactory, properties: dict[str, str]) -> None:
    """Whatever keys and values Java can write, the same ones are read."""
    text = javaproperties.dumps(properties, timestamp=None)

    assert _read(tmp_path_factory.mktemp("conf"), text).properties == properties
