"""Policies read from a `broker.conf`."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from pydantic import ValidationError

from lookup.engine.build import build_policies, policy_table
from lookup.engine.plugins import load_plugins
from lookup.engine.policy import Policy
from lookup.engine.reporting import Cadence
from lookup.settings import PolicySpec, load_policies

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
        ((), "5.0", ([name for name in MODULAR if name != "even-distribution"], "avg-placement", "avg")),
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
            ([name for name in MODULAR if name != "even-distribution"], "round-robin", "uniform"),
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


def test_a_weight_may_be_spelt_the_old_way(tmp_path: Path) -> None:
    """The old key counts where the new one is exactly 1.0, as in Pulsar."""
    old, new = "loadBalancerBandwithInResourceWeight=0.5", "loadBalancerBandwidthInResourceWeight=0.25"

    assert policy_table(_built(_spec(tmp_path, old)))["shedder"]["bandwidth_in_weight"] == 0.5
    assert policy_table(_built(_spec(tmp_path, old, new)))["shedder"]["bandwidth_in_weight"] == 0.25


@pytest.mark.parametrize(
    ("lines", "shedder", "warning"),
    [
        ((EXTENSIBLE,), "transfer", "ThresholdShedder is not for ExtensibleLoadManagerImpl, which falls back to"),
        ((TRANSFER,), "overload", "TransferShedder is not for ModularLoadManagerImpl, which falls back to 'overload'"),
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
        ("loadManagerClassName=org.example.Ours", "loadManagerClassName: there is no class 'org.example.Ours'"),
        (f"loadBalancerLoadSheddingStrategy={IMPL}TresholdShedder", f"did you mean '{IMPL}ThresholdShedder'?"),
        (f"loadBalancerLoadPlacementStrategy={IMPL}Nearest", "loadBalancerLoadPlacementStrategy: there is no class"),
    ],
)
def test_an_unknown_class_is_a_sentence(tmp_path: Path, line: str, sentence: str) -> None:
    """File, key and class are named."""
    with pytest.raises(ValidationError) as caught:
        _spec(tmp_path, line)

    assert sentence in str(caught.value)
    assert "broker.conf: " in str(caught.value)


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
