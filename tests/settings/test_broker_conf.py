"""Real broker.conf files, read by Java's rules as profiles and as policies."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import javaproperties
import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import ValidationError

from lookup.engine.build import build_policies, policy_table
from lookup.engine.plugins import load_plugins
from lookup.engine.policy import Policy
from lookup.engine.reporting import Cadence
from lookup.errors import SettingsError
from lookup.model.broker import EXTENSIBLE_MANAGER
from lookup.settings import BrokerProfile, PolicySpec, load_broker_profile, load_policies, read_broker_conf
from lookup.settings.problems import problems_of
from lookup.settings.pulsar_keys import LOAD_MANAGER_KEYS, MODULAR_MANAGER
from lookup_policies.splits import FlowOrQpsEquallyDivide

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

#: Every key of Pulsar 4 about load managers, lookups and bundles.
_LOAD_MANAGEMENT = (Path(__file__).parents[1] / "assets" / "load-management.conf").read_text(encoding="latin-1")


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


def test_all_of_pulsar_s_own_keys_are_known(tmp_path: Path) -> None:
    """Nothing in the file that Pulsar ships is refused or taken for a slip, and every load manager's key is kept."""
    profile = _read(tmp_path, _LOAD_MANAGEMENT)

    assert profile.slips == {}
    # Empty in the file, so Pulsar's default; and one of a later release.
    assert set(LOAD_MANAGER_KEYS) - set(profile.load_balancer) == {
        "loadBalancerOverrideBrokerNicSpeedGbps",
        "loadBalancerOverrideBrokerNics",
        "loadBalancerSheddingExcludedNamespaces",
    }
    assert profile.load_balancer["loadBalancerResourceQuotaUpdateIntervalMinutes"] == 15


def test_a_key_that_pulsar_does_not_know_is_no_mistake(tmp_path: Path) -> None:
    """Pulsar ignores such keys, so they are kept, and only noted where they resemble one that it knows."""
    profile = _read(tmp_path, "loadBalancerBrokerMaxTopic=5\nloadBalancerQuuxes=TRUE\nzookeeperServer=x")

    assert profile.load_balancer == {"loadBalancerBrokerMaxTopic": 5, "loadBalancerQuuxes": True}
    assert profile.slips == {"loadBalancerBrokerMaxTopic": "loadBalancerBrokerMaxTopics"}
    assert BrokerProfile.model_validate(profile.model_dump()) == profile


@pytest.mark.parametrize(
    ("key", "meant"),
    [
        ("lodBalancerEnabled", "loadBalancerEnabled"),
        ("loadManagerClasName", "loadManagerClassName"),
        ("lowerBoundarySheddingEnable", "lowerBoundarySheddingEnabled"),
        ("maxUnloadPercentge", "maxUnloadPercentage"),
        ("managedLedgerMaxEntriesPerLedgr", None),
    ],
)
def test_a_slip_may_be_in_any_letter_of_a_key(tmp_path: Path, key: str, meant: str | None) -> None:
    """Keys of the load manager are found by what they resemble, not only by how they begin; others are left alone."""
    assert _read(tmp_path, f"{key}=1").slips == ({} if meant is None else {key: meant})


@pytest.mark.parametrize(("text", "wanted"), [("TRUE", True), ("False", False), ("true ", True), ("fALSE", False)])
def test_truth_is_written_in_any_case(tmp_path: Path, text: str, wanted: bool) -> None:
    """Java reads true and false without regard to case."""
    profile = _read(tmp_path, f"enablePersistentTopics={text}\nloadBalancerEnabled={text}")

    assert (profile.enable_persistent_topics, profile.load_balancer) == (wanted, {"loadBalancerEnabled": wanted})


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
    """What an editor wrote as UTF-8 comes out as it would in Java."""
    assert _read(tmp_path, "lookup.city=Zürich".encode()).properties == {"lookup.city": "ZÃ¼rich"}


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
        ("webServicePort=http", "webServicePort: "),
        ("brokerServicePort=70000", "brokerServicePort: "),
        ("enablePersistentTopics=yes", "enablePersistentTopics: "),
        ("advertisedListeners=pulsar", "advertisedListeners: 'pulsar'"),
        ("advertisedListeners=a:kafka://b:1", "advertised_listeners: 'kafka://b:1'"),
        ("advertisedListeners=a:http://b:1,a:http://c:1", "advertised_listeners: listener 'a'"),
        ("internalListenerName=x", "internal_listener_name: "),
        ("lookup.rack=\\uXXXX", "cannot be read"),
        ("\x7fELF\x02\x01\0\0", "is no text"),
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
        ("loadBalancerBrokerMaxTopic = 1", "did you mean 'loadBalancerBrokerMaxTopics'?"),
        ("zookeeperServers = 'x'", "is no key"),
        ("loadBalancerBrokerMaxTopics = [1]", "not [1]"),
    ],
)
def test_keys_of_the_load_manager_are_checked_in_toml(tmp_path: Path, keys: str, sentence: str) -> None:
    """Nobody ships a TOML profile with Pulsar, so a key in it that resembles a known one is a slip."""
    (tmp_path / "p.toml").write_text(f"load_balancer = {{ {keys} }}")

    with pytest.raises(SettingsError) as caught:
        load_broker_profile(tmp_path / "p.toml")

    key = keys.partition(" ")[0]
    (problem,) = caught.value.problems
    assert problem.startswith(f"{tmp_path}/p.toml: load_balancer.{key}: ")
    assert sentence in problem


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


REGISTRY = load_plugins()
IMPL = "org.apache.pulsar.broker.loadbalance.impl."
EXTENSIONS = "org.apache.pulsar.broker.loadbalance.extensions."
EXTENSIBLE = f"loadManagerClassName={EXTENSIONS}ExtensibleLoadManagerImpl"
TRANSFER = f"loadBalancerLoadSheddingStrategy={EXTENSIONS}scheduler.TransferShedder"


def _spec(tmp_path: Path, *lines: str, **beside: Any) -> PolicySpec:
    conf = tmp_path / "broker.conf"
    conf.write_text("\n".join(lines), encoding="latin-1")
    return PolicySpec.model_validate({"name": "today", "from_broker_conf": str(conf), **beside})


def _built(spec: PolicySpec) -> Policy:
    return build_policies(REGISTRY, [spec])[0]


def _names(policy: Policy) -> tuple[list[str], str, str | None]:
    shedder = None if policy.shedder is None else policy.shedder.name
    return [part.name for part in policy.filters], policy.selector.name, shedder


MODULAR = ["isolation", "max-topics", "anti-affinity", "even-distribution", "load-manager-class", "version"]
EXTENDED = ["load-manager-class", "max-topics", "version", "anti-affinity", "isolation"]


@pytest.mark.parametrize(
    ("lines", "pulsar", "expected"),
    [
        ((), "4.x", (MODULAR, "least-long-term-message-rate", "threshold")),
        ((), "5.0", (MODULAR, "avg-placement", "avg")),
        ((EXTENSIBLE, TRANSFER), "4.x", (EXTENDED, "least-resource-usage", "transfer")),
        ((EXTENSIBLE, TRANSFER, "loadBalancerSheddingEnabled=false"), "4.x", (EXTENDED, "least-resource-usage", None)),
        (
            (f"loadBalancerLoadPlacementStrategy={IMPL}LeastResourceUsageWithWeight", "loadBalancerEnabled=false"),
            "4.x",
            (MODULAR, "least-resource-usage-with-weight", None),
        ),
        (
            (
                f"loadBalancerLoadPlacementStrategy={IMPL}RoundRobinBrokerSelector",
                f"loadBalancerLoadSheddingStrategy={IMPL}UniformLoadShedder",
                "loadBalancerDistributeBundlesEvenlyEnabled=FALSE",
            ),
            "4.x",
            (MODULAR, "round-robin", "uniform"),
        ),
    ],
    ids=["4.x", "5.0", "extensible", "no-shedding", "balancer-off", "modular-others"],
)
def test_classes_become_parts(
    tmp_path: Path, lines: tuple[str, ...], pulsar: str, expected: tuple[list[str], str, str | None]
) -> None:
    """Manager, placement and shedder are those the file names, else those of the release."""
    assert _names(_built(_spec(tmp_path, *lines, pulsar=pulsar))) == expected


def test_thresholds_are_those_of_the_file_else_of_the_release(tmp_path: Path) -> None:
    """Every key a part names reaches it, percentages to the last bit, before what brokers' profiles say."""
    lines = (EXTENSIBLE, TRANSFER, "loadBalancerBrokerOverloadedThresholdPercentage=70", "preferLaterVersions=true")
    [policy] = build_policies(REGISTRY, [_spec(tmp_path, *lines)], {"loadBalancerBrokerMaxTopics": 7})
    table = policy_table(policy)

    assert table["shedder"]["overloaded"] == 0.7
    assert table["filters"][1]["max_topics"] == 50_000
    assert table["filters"][2] == {"use": "version", "prefer_later": True, "unreadable": "fail"}
    assert policy_table(_built(_spec(tmp_path, pulsar="5.0")))["shedder"]["max_share"] == 0.5


@pytest.mark.parametrize(
    ("lines", "only"), [((), ""), (("loadBalancerDistributeBundlesEvenlyEnabled=false",), "pulsar/system")]
)
def test_the_modular_manager_has_rules_of_its_own(tmp_path: Path, lines: tuple[str, ...], only: str) -> None:
    """ModularLoadManagerImpl.selectBroker of Pulsar 4.0.4: the limit of topics, groups, Pulsar's own namespace."""
    modular, extensible = _built(_spec(tmp_path, *lines)), _built(_spec(tmp_path, EXTENSIBLE, TRANSFER, *lines))
    tables = {part["use"]: part for part in policy_table(modular)["filters"]}
    others = {part["use"]: part for part in policy_table(extensible)["filters"]}

    assert (tables["max-topics"]["manager"], others["max-topics"]["manager"]) == ("modular", "extensible")
    assert (tables["anti-affinity"]["counts"], others["anti-affinity"]["counts"]) == ("namespaces", "bundles")
    assert tables["even-distribution"]["only"] == only
    assert "even-distribution" not in others


def test_a_weight_may_be_spelt_the_old_way(tmp_path: Path) -> None:
    """The old key counts where the new one is exactly 1.0, as in Pulsar."""
    old, new = "loadBalancerBandwithInResourceWeight=0.5", "loadBalancerBandwidthInResourceWeight=0.25"

    assert policy_table(_built(_spec(tmp_path, old)))["shedder"]["bandwidth_in_weight"] == 0.5
    assert policy_table(_built(_spec(tmp_path, old, new)))["shedder"]["bandwidth_in_weight"] == 0.25


@pytest.mark.parametrize(
    ("lines", "shedder", "warning"),
    [
        ((EXTENSIBLE,), "transfer", "ThresholdShedder is not for ExtensibleLoadManagerImpl"),
        ((TRANSFER,), "overload", "TransferShedder is not for ModularLoadManagerImpl"),
        ((EXTENSIBLE, TRANSFER), "transfer", ""),
    ],
    ids=["extensible", "modular", "right"],
)
def test_a_shedder_of_the_other_manager_is_replaced_with_a_warning(
    tmp_path: Path, lines: tuple[str, ...], shedder: str, warning: str
) -> None:
    """Pulsar only logs that it takes another shedder."""
    spec = _spec(tmp_path, *lines)

    assert _names(_built(spec))[2] == shedder
    assert warning in "".join(spec.warnings)
    assert bool(warning) == bool(spec.warnings)


@pytest.mark.parametrize(
    ("line", "sentence"),
    [
        ("loadManagerClassName=org.example.Ours", "loadManagerClassName: "),
        (f"loadBalancerLoadSheddingStrategy={IMPL}TresholdShedder", f"did you mean '{IMPL}ThresholdShedder'?"),
        (f"loadBalancerLoadPlacementStrategy={IMPL}Nearest", "loadBalancerLoadPlacementStrategy: "),
    ],
)
def test_an_unknown_class_is_a_sentence(tmp_path: Path, line: str, sentence: str) -> None:
    """File, key and class are named."""
    with pytest.raises(ValidationError) as caught:
        _spec(tmp_path, line)

    assert sentence in str(caught.value)
    assert "broker.conf: " in str(caught.value)


def test_all_mistakes_of_a_file_are_said_at_once(tmp_path: Path) -> None:
    """Of a broker, classes, numbers that nothing here reads, misspelt keys: one sentence each, in one go."""
    with pytest.raises(ValidationError) as caught:
        _spec(
            tmp_path,
            "webServicePort=http",
            f"loadBalancerLoadSheddingStrategy={IMPL}NoSuchShedder",
            "loadBalancerSheddingIntervalMinutes=often",
            "loadBalancerBrokerMaxTopic=5",
            broker_conf={"loadBalancerBrokerThresholdShedderPercentage": "abc"},
        )

    mistakes = [sentence for _, sentence in problems_of(caught.value, PolicySpec)]
    assert [mistake.removeprefix(f"{tmp_path}/broker.conf: ").split(":")[0].split(",")[0] for mistake in mistakes] == [
        "webServicePort",
        "loadBalancerLoadSheddingStrategy",
        "broker_conf",
        "loadBalancerSheddingIntervalMinutes = 'often'",
        "Pulsar would ignore loadBalancerBrokerMaxTopic",
    ]


def test_an_unknown_release_and_one_without_a_file_are_sentences(tmp_path: Path) -> None:
    """`pulsar` says which defaults a file is completed by."""
    with pytest.raises(ValidationError, match=r"there is no release '6\.0'"):
        _spec(tmp_path, pulsar="6.0")
    with pytest.raises(ValidationError, match="pulsar: says which defaults"):
        PolicySpec.model_validate({"name": "p", "selector": "best", "pulsar": "5.0"})


def test_keys_written_beside_count_before_the_file(tmp_path: Path) -> None:
    """A part, or a key of Pulsar's, may be replaced."""
    spec = _spec(tmp_path, selector="random", broker_conf={"loadBalancerBrokerThresholdShedderPercentage": 25})

    assert _names(_built(spec))[1:] == ("random", "threshold")
    assert policy_table(_built(spec))["shedder"]["threshold"] == 0.25


@pytest.mark.parametrize(
    ("key", "value"),
    [
        ("loadBalancerDistributeBundlesEvenlyEnabled", False),
        ("loadBalancerLoadSheddingStrategy", "org.apache.pulsar.broker.loadbalance.impl.AvgShedder"),
        ("loadBalancerLoadPlacementStrategy", "org.apache.pulsar.broker.loadbalance.impl.RoundRobinBrokerSelector"),
        ("loadBalancerSheddingEnabled", False),
        ("loadBalancerAutoBundleSplitEnabled", "no"),
        ("loadBalancerEnabled", False),
        ("defaultNamespaceBundleSplitAlgorithm", "topic_count_equally_divide"),
        ("loadManagerClassName", "org.apache.pulsar.broker.loadbalance.extensions.ExtensibleLoadManagerImpl"),
        ("loadBalancerBandwithInResourceWeight", 0.5),
        ("loadBalancerSheddingGracePeriodMinutes", 5),
    ],
)
def test_every_key_beside_the_file_acts_as_in_it(tmp_path: Path, key: str, value: bool | int | float | str) -> None:
    """Those that choose parts as well, and old spellings: the policy is that of a file with the key, and another."""
    plain, beside = _built(_spec(tmp_path)), _built(_spec(tmp_path, broker_conf={key: value}))
    inside = _built(_spec(tmp_path, f"{key}={str(value).lower() if isinstance(value, bool) else value}"))

    assert policy_table(beside) == policy_table(inside)
    assert policy_table(beside) != policy_table(plain)


def test_a_key_that_chooses_parts_needs_a_file(tmp_path: Path) -> None:
    """A policy of one's own has chosen its parts; and a misspelt key beside a file is a warning."""
    with pytest.raises(ValidationError, match=r"broker_conf\.loadBalancerSheddingEnabled: "):
        PolicySpec.model_validate(
            {"name": "p", "selector": "best", "broker_conf": {"loadBalancerSheddingEnabled": False}}
        )

    spec = _spec(tmp_path, "loadBalancerBrokerMaxTopic=1", broker_conf={"lowerBoundarySheddingEnable": True})

    assert [warning.partition(", which")[0].rpartition(" ")[2] for warning in spec.warnings] == [
        "loadBalancerBrokerMaxTopic",
        "lowerBoundarySheddingEnable",
    ]


def test_rules_of_older_releases_are_said_to_differ(tmp_path: Path) -> None:
    """They are not built; what is known of them is named."""
    with pytest.raises(ValidationError) as caught:
        _spec(tmp_path, pulsar="3.0")

    assert re.search(r"no release '3\.0'.*UniformLoadShedder's", str(caught.value))
    assert "did you mean" not in str(caught.value)


def test_a_shedder_whose_rule_has_changed_is_said_to_be_todays(tmp_path: Path) -> None:
    """Only if no release is named, and only if it sheds."""
    line = f"loadBalancerLoadSheddingStrategy={IMPL}UniformLoadShedder"

    assert any("UniformLoadShedder" in warning and "3.0" in warning for warning in _spec(tmp_path, line).warnings)
    assert _spec(tmp_path, line, pulsar="4.x").warnings == ()
    assert _spec(tmp_path, line, "loadBalancerSheddingEnabled=false").warnings == ()


def test_a_policy_travels_without_its_file(tmp_path: Path) -> None:
    """What was read is in the settings, and the table of the policy builds it again."""
    spec = _spec(tmp_path, EXTENSIBLE, TRANSFER, "loadBalancerBrokerMaxTopics=9")
    (tmp_path / "broker.conf").unlink()

    assert _built(PolicySpec.model_validate_json(spec.model_dump_json())) == _built(spec)
    assert _built(PolicySpec.model_validate(policy_table(_built(spec)))) == _built(spec)


def test_a_policy_file_names_its_conf_from_its_own_folder(tmp_path: Path) -> None:
    """Paths are relative to the file they stand in, in both forms of a policy file."""
    (tmp_path / "broker.conf").write_text(EXTENSIBLE, encoding="latin-1")
    for place, text in enumerate(('name = "t"\nfrom_broker_conf = "broker.conf"\n',) * 2):
        file = tmp_path / f"{place}.toml"
        file.write_text(text if place else f"[[policies]]\n{text}", encoding="utf-8")

        assert load_policies(file)[0].conf_file == str(tmp_path / "broker.conf")


def test_the_modular_manager_chooses_twice(tmp_path: Path) -> None:
    """Where nobody is left, or who was chosen is overloaded, its isolation policies alone count."""
    percent = "loadBalancerBrokerOverloadedThresholdPercentage=70"
    modular, extensible = _built(_spec(tmp_path, percent)), _built(_spec(tmp_path, EXTENSIBLE, TRANSFER, percent))

    assert modular.second_choice is not None
    assert (modular.filters[0].name, modular.second_choice.filters) == ("isolation", 1)
    assert modular.second_choice.overloaded == 0.7
    assert extensible.second_choice is None


def test_brokers_report_as_the_file_says(tmp_path: Path) -> None:
    """Minutes become milliseconds; what the file does not say is Pulsar's default."""
    keys = ("loadBalancerReportUpdateMaxIntervalMinutes=5", "loadBalancerReportUpdateThresholdPercentage=20")

    assert _built(_spec(tmp_path, *keys)).cadence == Cadence(5_000, 300_000, 20.0, 0.9)
    assert _built(_spec(tmp_path, *keys, cadence={"history": 0.5})).cadence == Cadence(5_000, 300_000, 20.0, 0.5)


@pytest.mark.parametrize(
    ("lines", "splitter", "is_first"), [((), "modular-split", True), ((EXTENSIBLE, TRANSFER), "default-split", False)]
)
def test_each_manager_has_its_splitter_and_its_way_to_unload(
    tmp_path: Path, lines: tuple[str, ...], splitter: str, *, is_first: bool
) -> None:
    """The modular manager chooses a destination before it unloads."""
    policy = _built(_spec(tmp_path, *lines))

    assert policy.splitter is not None
    assert (policy.splitter.name, policy.destination_first) == (splitter, is_first)


@pytest.mark.parametrize(
    ("lines", "is_unloaded"),
    [
        ((), True),
        (("loadBalancerAutoUnloadSplitBundlesEnabled=false",), False),
        ((EXTENSIBLE, TRANSFER), False),
        (("loadBalancerAutoBundleSplitEnabled=false",), False),
    ],
)
def test_children_of_splits_are_unloaded_under_the_modular_manager(
    tmp_path: Path, lines: tuple[str, ...], *, is_unloaded: bool
) -> None:
    """By default; the extensible manager does not read the key."""
    assert _built(_spec(tmp_path, *lines)).unload_children is is_unloaded


@pytest.mark.parametrize("lines", [(), (EXTENSIBLE, TRANSFER)])
def test_split_algorithms_are_those_of_todays_releases(tmp_path: Path, lines: tuple[str, ...]) -> None:
    """By flow no cut is there twice, so that a hot first topic is cut off; keys still reach the algorithm."""
    spec = _spec(
        tmp_path,
        *lines,
        "defaultNamespaceBundleSplitAlgorithm=flow_or_qps_equally_divide",
        "loadBalancerNamespaceBundleMaxMsgRate=7",
    )
    splitter: Any = build_policies(REGISTRY, [spec], spec.broker_conf)[0].splitter

    assert splitter.algorithm == FlowOrQpsEquallyDivide(max_msg_rate=7.0, rule="from-second")


def test_children_are_of_a_splitter() -> None:
    """Without one nothing is ever divided."""
    with pytest.raises(ValidationError, match="unload_children: "):
        PolicySpec.model_validate({"name": "p", "selector": "best", "unload_children": True})


def test_without_shedding_there_is_no_destination_to_choose(tmp_path: Path) -> None:
    """A policy that the modular manager's keys leave without shedder can be built."""
    assert not _built(_spec(tmp_path, "loadBalancerSheddingEnabled=false")).destination_first


@pytest.mark.parametrize(("lines", "child"), [((), "least-long-term-message-rate"), ((EXTENSIBLE, TRANSFER), None)])
def test_namespaces_may_be_left_out_of_shedding(tmp_path: Path, lines: tuple[str, ...], child: str | None) -> None:
    """By commas, as Pulsar reads a set; both managers place their bundles in turn, and all others as before."""
    key = "loadBalancerSheddingExcludedNamespaces"
    spec = _spec(tmp_path, *lines, f"{key}=team/a, team/b")
    built = build_policies(REGISTRY, [spec], spec.broker_conf)[0]

    assert built.excluded_namespaces == {"team/a", "team/b"}
    assert built.selector.name == "by-namespace"
    table = policy_table(built)["selector"]
    assert (table["namespaces"], table["inside"]["use"]) == (["team/a", "team/b"], "round-robin")
    assert table["child"]["use"] == (child or "least-resource-usage")
    assert spec.warnings == ()
    assert _built(_spec(tmp_path, *lines, f"{key}=")).selector.name == (child or "least-resource-usage")


@pytest.mark.parametrize(
    ("beside", "sentence"),
    [
        ({"broker_conf": {"loadBalancerSheddingExcludedNamespaces": "team"}}, r"namespace 'team'"),
        ({"excluded_namespaces": ["a/b", "c d/e"]}, r"'today' excluded_namespaces: namespace 'c d/e'"),
    ],
)
def test_what_is_left_out_has_to_be_names(tmp_path: Path, beside: dict[str, Any], sentence: str) -> None:
    """The place and the text are named."""
    with pytest.raises(SettingsError, match=sentence):
        _built(_spec(tmp_path, **beside))


@pytest.mark.parametrize("own", [{"destination_first": True}, {"excluded_namespaces": ["a/b"]}])
def test_rules_of_shedding_need_a_shedder(own: dict[str, Any]) -> None:
    """Without one they would do nothing."""
    with pytest.raises(ValidationError, match="a shedder"):
        PolicySpec.model_validate({"name": "p", "selector": "best", **own})


_BUNDLES = "defaultNumberOfNamespaceBundles"


def test_bundles_of_new_namespaces_are_no_policys(tmp_path: Path) -> None:
    """The file says what namespaces get that are made from now on; what is beside it is meant for the policy."""
    assert _spec(tmp_path, f"{_BUNDLES}=16").bundles is None
    assert _spec(tmp_path, f"{_BUNDLES}=16", broker_conf={_BUNDLES: 8}).bundles == 8
    assert _spec(tmp_path, f"{_BUNDLES}=16", broker_conf={_BUNDLES: 8}, bundles=2).bundles == 2


@pytest.mark.parametrize("key", [_BUNDLES, "bundles"])
def test_bundles_are_changed_by_either_key(tmp_path: Path, key: str) -> None:
    """By Pulsar's and by the policy's own, whatever else the file is read again for."""
    shedder = {"loadBalancerLoadSheddingStrategy": "org.apache.pulsar.broker.loadbalance.impl.UniformLoadShedder"}
    changed = _spec(tmp_path, f"{_BUNDLES}=16").changed("other", {key: 32, **shedder})

    assert (changed.bundles, changed.value_at(_BUNDLES), changed.value_at("bundles")) == (32, 32, 32)
    assert changed.shedder is not None
    assert changed.shedder.use == "uniform"


@pytest.mark.parametrize("count", [0, 65_537, 4.5, "8", True])
def test_bundles_are_a_whole_number_above_0(tmp_path: Path, count: object) -> None:
    """As many as an evaluation may have, under either key."""
    with pytest.raises(ValidationError, match="bundles"):
        _spec(tmp_path, bundles=count)
    with pytest.raises(ValidationError, match=r"[bB]undles"):
        _spec(tmp_path, broker_conf={_BUNDLES: count})
