"""Real broker.conf files, read by Java's rules as profiles and as policies."""

from __future__ import annotations

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
from lookup.errors import SettingsError
from lookup.model.broker import EXTENSIBLE_MANAGER
from lookup.settings import (
    BrokerProfile,
    PolicySpec,
    load_broker_profile,
    load_policies,
    policy_warnings,
    read_broker_conf,
)
from lookup.settings.problems import problems_of
from lookup.settings.pulsar_keys import LOAD_MANAGER_KEYS
from lookup.settings.releases import MODULAR_MANAGER, RELEASES
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
    # Empty in the file, so Pulsar's default; and those of later releases.
    assert set(LOAD_MANAGER_KEYS) - set(profile.load_balancer) == {
        "loadBalancerOverrideBrokerNicSpeedGbps",
        *(RELEASES["4.0"].unknown - {"atLeastOneBundleSelected"}),
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
    assert _read(tmp_path, f"{key}=1\nwebServicePort=8080").slips == ({} if meant is None else {key: meant})


def test_what_a_file_leaves_out_is_pulsar_s_default(tmp_path: Path) -> None:
    """A broker that is not told otherwise runs the modular manager."""
    profile = _read(tmp_path, "clusterName=a")

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
        ("#lookup.rack=a\n!lookup.zone=b\nclusterName=a", {}),
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
    """As in Java; the profile remembers which keys of its own these are."""
    profile = _read(
        tmp_path, "lookup.rack=a\nwebServicePort=1\nlookup.rack=b\nlookup.zone=c\ntlsEnabled=true\ntlsEnabled=true"
    )

    assert profile.properties == {"lookup.rack": "b", "lookup.zone": "c"}
    assert [warning.partition(": ")[2].partition(" is ")[0] for warning in profile.warnings] == ["lookup.rack"]


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        ("webServicePort=http", "webServicePort: "),
        ("brokerServicePort=70000", "brokerServicePort: "),
        ("lookup.rack=\\uXXXX", "cannot be read"),
        ("\x7fELF\x02\x01\0\0", "is not text"),
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
        ("zookeeperServers = 'x'", "is not a key"),
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
        min_size=1,
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
EXCLUDED = "loadBalancerSheddingExcludedNamespaces"
PLACEMENT, SHEDDER = "loadBalancerLoadPlacementStrategy", "loadBalancerLoadSheddingStrategy"
TRANSFER = f"{SHEDDER}={EXTENSIONS}scheduler.TransferShedder"


def _spec(tmp_path: Path, *lines: str, **beside: Any) -> PolicySpec:
    conf = tmp_path / "broker.conf"
    # An empty value is Pulsar's own, and a file without a key of Pulsar is refused.
    conf.write_text("\n".join(("loadBalancerOverrideBrokerNicSpeedGbps=", *lines)), encoding="latin-1")
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
        ((), "4.2", (MODULAR, "least-long-term-message-rate", "threshold")),
        ((), "5.0", (MODULAR, "avg-placement", "avg")),
        ((EXTENSIBLE, TRANSFER), "4.2", (EXTENDED, "least-resource-usage", "transfer")),
        ((EXTENSIBLE, TRANSFER, "loadBalancerSheddingEnabled=false"), "4.2", (EXTENDED, "least-resource-usage", None)),
        (
            (f"loadBalancerLoadPlacementStrategy={IMPL}LeastResourceUsageWithWeight", "loadBalancerEnabled=false"),
            "4.2",
            (MODULAR, "least-resource-usage-with-weight", None),
        ),
        (
            (
                f"loadBalancerLoadPlacementStrategy={IMPL}RoundRobinBrokerSelector",
                f"loadBalancerLoadSheddingStrategy={IMPL}UniformLoadShedder",
                "loadBalancerDistributeBundlesEvenlyEnabled=FALSE",
            ),
            "4.2",
            (MODULAR, "round-robin", "uniform"),
        ),
    ],
    ids=["4.2", "5.0", "extensible", "no-shedding", "balancer-off", "modular-others"],
)
def test_classes_become_parts(
    tmp_path: Path, lines: tuple[str, ...], pulsar: str, expected: tuple[list[str], str, str | None]
) -> None:
    """Manager, placement and shedder are those the file names, else those of the release."""
    assert _names(_built(_spec(tmp_path, *lines, pulsar=pulsar))) == expected


_OTHER = (EXTENSIBLE, TRANSFER)
_OVERLOADED = "loadBalancerBrokerOverloadedThresholdPercentage=70"
_UNEVEN = "loadBalancerDistributeBundlesEvenlyEnabled=false"
_WEIGHTS = "loadBalancerBandwithInResourceWeight=0.5", "loadBalancerBandwidthInResourceWeight=0.25"
_REPORTS = "loadBalancerReportUpdateMaxIntervalMinutes=5", "loadBalancerReportUpdateThresholdPercentage=20"
_EXTRA = f"{SHEDDER}={IMPL}UniformLoadShedder", f"{PLACEMENT}={IMPL}LeastLongTermMessageRate"


@pytest.mark.parametrize(
    ("lines", "beside", "place", "value"),
    [
        # Every key that a part names reaches it, percentages to the last bit.
        ((*_OTHER, _OVERLOADED), {}, "shedder.overloaded", 0.7),
        ((*_OTHER, "preferLaterVersions=true"), {}, "filters.version.prefer_later", True),
        ((), {"pulsar": "5.0"}, "shedder.max_share", 0.5),
        # UniformLoadShedder of 4.0 takes bundles that are larger by 1000.
        (_EXTRA, {"pulsar": "4.0"}, "shedder.extra", 1000.0),
        (_EXTRA, {"pulsar": "4.2"}, "shedder.extra", 0.0),
        (_EXTRA, {"pulsar": "5.0"}, "shedder.extra", 0.0),
        # What is written beside the file counts before it.
        ((), {"broker_conf": {"loadBalancerBrokerThresholdShedderPercentage": 25}}, "shedder.threshold", 0.25),
        ((), {"selector": "random"}, "selector.use", "random"),
        # The old key of a weight counts where the new one is exactly 1.0, as in Pulsar.
        (_WEIGHTS[:1], {}, "weights.bandwidth_in", 0.5),
        (_WEIGHTS, {}, "weights.bandwidth_in", 0.25),
        # ModularLoadManagerImpl.selectBroker of Pulsar 4.0.4: the limit of topics, groups, Pulsar's own namespace.
        ((), {}, "filters.max-topics.manager", "modular"),
        (_OTHER, {}, "filters.max-topics.manager", "extensible"),
        ((), {}, "filters.anti-affinity.counts", "namespaces"),
        (_OTHER, {}, "filters.anti-affinity.counts", "bundles"),
        ((), {}, "filters.even-distribution.only", ""),
        ((_UNEVEN,), {}, "filters.even-distribution.only", "pulsar/system"),
        ((*_OTHER, _UNEVEN), {}, "filters.even-distribution", None),
        # It chooses twice, the second time by its isolation policies alone, and a destination before it unloads.
        ((_OVERLOADED,), {}, "second_choice", {"filters": 1, "overloaded": 0.7}),
        ((*_OTHER, _OVERLOADED), {}, "second_choice", None),
        ((), {}, "destination_first", True),
        (_OTHER, {}, "destination_first", False),
        (("loadBalancerSheddingEnabled=false",), {}, "destination_first", None),
        # It unloads the children of splits; the extensible manager does not read the key.
        ((), {}, "splitter.use", "modular-split"),
        (_OTHER, {}, "splitter.use", "default-split"),
        ((), {}, "unload_children", True),
        (("loadBalancerAutoUnloadSplitBundlesEnabled=false",), {}, "unload_children", False),
        (_OTHER, {}, "unload_children", False),
        (("loadBalancerAutoBundleSplitEnabled=false",), {}, "unload_children", None),
        # Minutes become milliseconds.
        (_REPORTS, {}, "cadence.max_interval_ms", 300_000),
        (_REPORTS, {}, "cadence.change_percent", 20.0),
        (_REPORTS, {}, "cadence.history", 0.9),
        (_REPORTS, {"cadence": {"history": 0.5}}, "cadence.history", 0.5),
    ],
)
def test_what_a_file_says_is_in_its_policy(
    tmp_path: Path, lines: tuple[str, ...], beside: dict[str, Any], place: str, value: object
) -> None:
    """The policy has the value of the file, of what is beside it, or of the manager and release."""
    [policy] = build_policies(REGISTRY, [_spec(tmp_path, *lines, **beside)], {"loadBalancerBrokerMaxTopics": 7})
    found: Any = policy_table(policy)
    found["filters"] = {part["use"]: part for part in found["filters"]}

    # What brokers' profiles say counts behind the file, and Pulsar's default of the file is one.
    assert found["filters"]["max-topics"]["max_topics"] == 50_000
    for key in place.split("."):
        found = found.get(key)
    assert found == value


@pytest.mark.parametrize(
    ("lines", "shedder", "warning"),
    [
        ((EXTENSIBLE,), "transfer", "ThresholdShedder is not for ExtensibleLoadManagerImpl"),
        (
            (EXTENSIBLE, TRANSFER, f"{PLACEMENT}={IMPL}RoundRobinBrokerSelector"),
            "transfer",
            "has no effect under ExtensibleLoadManagerImpl",
        ),
        ((EXTENSIBLE, TRANSFER), "transfer", ""),
    ],
    ids=["shedder", "placement", "right"],
)
def test_a_class_of_the_other_manager_is_replaced_with_a_warning(
    tmp_path: Path, lines: tuple[str, ...], shedder: str, warning: str
) -> None:
    """The extensible manager only logs that it takes another shedder, and never reads the key of placements."""
    spec = _spec(tmp_path, *lines)

    assert _names(_built(spec))[2] == shedder
    assert warning in "".join(spec.warnings)
    assert bool(warning) == bool(spec.warnings)


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
    starts = [mistake.removeprefix(f"{tmp_path}/broker.conf: ").split(":")[0].split(" has ")[0] for mistake in mistakes]
    assert starts == [
        "webServicePort",
        "loadBalancerLoadSheddingStrategy",
        "broker_conf",
        "loadBalancerSheddingIntervalMinutes = 'often'",
        "loadBalancerBrokerMaxTopic",
    ]


@pytest.mark.parametrize(("pulsar", "right"), [("6.0", ""), ("3.0", 'the nearest is "4.0"'), ("4.x", '"4.0" or "4.2"')])
def test_rules_of_other_releases_are_said_to_differ(tmp_path: Path, pulsar: str, right: str) -> None:
    """They are not built, and the nearest is named; of "4.x" the releases that it was."""
    with pytest.raises(ValidationError, match=f"there is no release {pulsar!r}.*{right}") as caught:
        _spec(tmp_path, pulsar=pulsar)

    assert ("did you mean" in str(caught.value)) == (not right)
    with pytest.raises(ValidationError, match="pulsar: says which defaults"):
        PolicySpec.model_validate({"name": "p", "selector": "best", "pulsar": "5.0"})


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

    assert [warning.partition(" has no effect")[0].rpartition(" ")[2] for warning in spec.warnings] == [
        "loadBalancerBrokerMaxTopic",
        "lowerBoundarySheddingEnable",
    ]


def test_a_release_that_nobody_names_is_said(tmp_path: Path) -> None:
    """Once for all policies that are read so; with a release in the settings there is nothing to say."""
    specs = [_spec(tmp_path), _spec(tmp_path, name="other"), _spec(tmp_path, pulsar="4.2")]

    (sentence,) = policy_warnings(specs)

    assert sentence.startswith("policies 'today' and 'other': read by the rules and defaults of Pulsar 4.2")


@pytest.mark.parametrize(
    ("pulsar", "lines", "placement", "sentence"),
    [
        ("4.0", ("ThresholdShedder", "AvgShedder"), None, "4.0 goes on with SimpleLoadManagerImpl"),
        ("4.2", ("ThresholdShedder", "AvgShedder"), None, "a broker of 4.2 does not start"),
        ("5.0", ("ThresholdShedder", "AvgShedder"), "least-long-term-message-rate", "takes its place"),
        ("5.0", ("ThresholdShedder", None), "least-long-term-message-rate", "takes its place"),
        ("4.2", ("AvgShedder", None), "least-long-term-message-rate", "elsewhere than AvgShedder planned"),
        ("5.0", (None, "RoundRobinBrokerSelector"), "round-robin", "elsewhere than AvgShedder planned"),
        ("5.0", ("AvgShedder", None), "avg-placement", None),
        ("4.2", ("ThresholdShedder", None), "least-long-term-message-rate", None),
        ("4.2", ("AvgShedder", "AvgShedder"), "avg-placement", None),
    ],
)
def test_a_shedder_and_a_placement_go_together_as_in_the_release(
    tmp_path: Path, pulsar: str, lines: tuple[str | None, str | None], placement: str | None, sentence: str | None
) -> None:
    """AvgShedder as placement needs itself as shedder: 4.x cannot make the load manager, 5.0 replaces the placement."""
    written = [f"{key}={IMPL}{name}" for key, name in zip((SHEDDER, PLACEMENT), lines, strict=True) if name]
    spec = _spec(tmp_path, *written, pulsar=pulsar)
    said = [*spec.warnings, *spec.refusals]

    assert (len(said) == 1 and sentence in said[0]) if sentence else said == []
    if placement is None:
        with pytest.raises(SettingsError, match="does not go with"):
            _built(spec)
    else:
        assert _built(spec).selector.name == placement


@pytest.mark.parametrize("line", [TRANSFER, f"{PLACEMENT}={EXTENSIONS}strategy.LeastResourceUsageWithWeight"])
def test_the_modular_manager_does_not_start_with_a_class_of_the_other(tmp_path: Path, line: str) -> None:
    """Neither does it fall back to another strategy."""
    with pytest.raises(SettingsError, match="is not for ModularLoadManagerImpl: a broker of 4"):
        _built(_spec(tmp_path, line))


def test_a_key_that_the_release_does_not_know_is_left_out_with_a_warning(tmp_path: Path) -> None:
    """Namespaces can be kept from shedding since 4.2."""
    old, new = (_spec(tmp_path, f"{EXCLUDED}=a/b", pulsar=pulsar) for pulsar in ("4.0", "4.2"))

    assert [warning.partition(": ")[2] for warning in old.warnings] == [
        f"{EXCLUDED} has no effect: Pulsar 4.0 does not know it"
    ]
    assert (_built(old).excluded_namespaces, _built(new).excluded_namespaces) == (frozenset(), frozenset({"a/b"}))
    assert new.warnings == ()


def test_the_weight_of_heap_has_no_effect(tmp_path: Path) -> None:
    """Heap is no resource since 3.0; 0, which no file has to be blamed for, is passed over."""
    key = "loadBalancerMemoryResourceWeight"
    heavy, light = (_spec(tmp_path, f"{key}={weight}") for weight in ("1.0", "0.0"))

    assert [warning.partition(": ")[2] for warning in heavy.warnings] == [f"{key} has no effect since Pulsar 3.0"]
    assert light.warnings == ()
    assert _built(heavy).shedder == _built(light).shedder


def test_a_policy_sheds_as_often_as_the_file_says(tmp_path: Path) -> None:
    """Minutes become microseconds; the settings count before the file."""
    key = "loadBalancerSheddingIntervalMinutes"
    policies = [_built(_spec(tmp_path, *lines)) for lines in ((), (f"{key}=30",))]
    policies.append(_built(_spec(tmp_path, f"{key}=30", shedding_interval_s=90)))

    assert [policy.shedding_interval_us for policy in policies] == [60_000_000, 1_800_000_000, 90_000_000]
    assert [policy_table(policy).get("shedding_interval_s") for policy in policies] == [None, 1800, 90]
    with pytest.raises(SettingsError, match="should be a whole number from 1 to"):
        _built(_spec(tmp_path, f"{key}=0"))


def test_bundles_of_the_file_are_those_of_a_replay(tmp_path: Path) -> None:
    """Elsewhere, and where the file is silent or names the same number, bundles are the cluster's or the log's."""
    line = "defaultNumberOfNamespaceBundles=48"

    assert _spec(tmp_path, line).bundles is None
    assert _spec(tmp_path, line).with_bundles_of_file(4).bundles == 48
    assert (
        _spec(tmp_path, line).with_bundles_of_file(4).with_changes("x", {SHEDDER: f"{IMPL}OverloadShedder"}).bundles
        == 48
    )
    assert _spec(tmp_path, line, bundles=7).with_bundles_of_file(4).bundles == 7
    assert _spec(tmp_path, line).with_bundles_of_file(48).bundles is None
    assert _spec(tmp_path, pulsar="5.0").with_bundles_of_file(4).bundles is None
    with pytest.raises(ValidationError, match="should be a whole number from 1 to 65536"):
        _spec(tmp_path, "defaultNumberOfNamespaceBundles=0")


def test_a_policy_takes_the_release_of_its_cluster_unless_it_names_one(tmp_path: Path) -> None:
    """It is read again, and says why; a change that reads the file once more keeps the release."""
    own, other = _spec(tmp_path), _spec(tmp_path, pulsar="4.2")
    changed = own.under("5.0", "because").with_changes("x", {"loadBalancerSheddingEnabled": False})

    assert (_names(_built(own.under("5.0", "because")))[2], own.under("5.0", "because").release) == ("avg", "5.0")
    assert "Pulsar 5.0, because" in str(own.under("5.0", "because").release_note)
    assert (_built(changed).selector.name, changed.release) == ("avg-placement", "5.0")
    assert other.under("5.0", "because") is other


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
    changed = _spec(tmp_path, f"{_BUNDLES}=16").with_changes("other", {key: 32, **shedder})

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
