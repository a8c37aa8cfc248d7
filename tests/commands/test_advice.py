"""Warnings."""

from __future__ import annotations

from pathlib import Path

import pytest

from lookup.commands.advice import obstacles_of, warnings_of
from lookup.settings import load_manager_keys
from tests.settings.files import evaluation, write

_MODULAR = (
    "brokers b-0:1 to b-1:1: ModularLoadManagerImpl is not an extensible load manager and ignores lookup properties"
)
_TEMPLATE = '[[brokers]]\nid = "b-{n}:1"\ncount = 2\nprofile = "b.conf"\n'


def test_nothing_is_said_of_what_is_right(tmp_path: Path) -> None:
    """Brokers without a profile are taken to run the extensible manager."""
    assert warnings_of(evaluation(tmp_path, '[[brokers]]\nid = "a:1"'), {"p": {"properties.rack"}}) == []


def test_inputs_that_are_not_there_are_told(tmp_path: Path) -> None:
    """A path is looked for beside the settings; what a URI names is not asked for."""
    write(tmp_path, "log.parquet", "")
    inputs = '[inputs]\nlookups = "log.parquet"\nbrokers = "s3://b/brokers"\nloads = "loads"\n'

    (found,) = obstacles_of(evaluation(tmp_path, inputs))

    assert found.startswith(f"inputs.loads: {tmp_path}/loads: ")


def test_an_evaluation_without_a_broker_is_told(tmp_path: Path) -> None:
    """Neither entries nor a table: nothing could be assigned to anybody."""
    (found,) = obstacles_of(evaluation(tmp_path))

    assert "[[brokers]]" in found


@pytest.mark.parametrize(("reads", "told"), [("properties.rack", True), ("properties", True), ("view.load", False)])
def test_a_policy_that_reads_what_is_ignored_is_told(tmp_path: Path, reads: str, told: bool) -> None:
    """Only policies that read lookup properties suffer from a manager that ignores them."""
    write(tmp_path, "b.conf", "lookup.rack=a")

    found = warnings_of(evaluation(tmp_path, _TEMPLATE), {"mine": {reads}})

    assert found[0] == _MODULAR
    assert [sentence.startswith("policy 'mine' reads") for sentence in found[1:]] == [True] * told


@pytest.mark.parametrize(
    ("manager", "told"),
    [
        ("org.apache.pulsar.broker.loadbalance.extensions.ExtensibleLoadManagerImpl", False),
        ("com.example.RackAwareLoadManager", False),
        ("org.apache.pulsar.broker.loadbalance.NoopLoadManager", True),
        ("org.apache.pulsar.broker.loadbalance.impl.SimpleLoadManagerImpl", True),
    ],
)
def test_managers_of_one_s_own_are_taken_for_extensible(tmp_path: Path, manager: str, told: bool) -> None:
    """Of Pulsar's own managers one is extensible; what others have written may be."""
    write(tmp_path, "b.conf", f"loadManagerClassName={manager}")

    assert bool(warnings_of(evaluation(tmp_path, _TEMPLATE))) == told


@pytest.mark.parametrize(
    ("lines", "key"),
    [
        ("lookup.rack=a\nlookup.rack=b", "lookup.rack"),
        ("loadBalancerBrokerMaxTopic=1\nloadBalancerQuuxes=2", "'loadBalancerBrokerMaxTopics'"),
    ],
    ids=["twice", "misspelt"],
)
def test_what_pulsar_passes_over_is_told_once_per_file(tmp_path: Path, lines: str, key: str) -> None:
    """Two entries with one profile make one warning; a key that resembles none is not said."""
    write(tmp_path, "b.conf", f"loadManagerClassName=my.Manager\n{lines}")

    (found,) = warnings_of(evaluation(tmp_path, _TEMPLATE + _TEMPLATE.replace("b-", "c-")))

    assert found.startswith(f"{tmp_path}/b.conf: ")
    assert key in found


def test_profiles_that_disagree_are_told(tmp_path: Path) -> None:
    """A policy is the cluster's, so a key that brokers set differently fills nobody's parameter."""
    head = "loadManagerClassName=my.Manager\nloadBalancerEnabled=true\n"
    write(tmp_path, "b.conf", head + "loadBalancerBrokerMaxTopics=1")
    write(tmp_path, "c.conf", head + "loadBalancerBrokerMaxTopics=2")
    settings = evaluation(tmp_path, _TEMPLATE + _TEMPLATE.replace("b-", "c-").replace("b.conf", "c.conf"))

    assert load_manager_keys(settings) == {"loadBalancerEnabled": True, "loadManagerClassName": "my.Manager"}
    (warning,) = warnings_of(settings)
    assert "loadBalancerBrokerMaxTopics (1, 2)" in warning


@pytest.mark.parametrize("other", ["", 'profile = { load_manager_class_name = "other.Manager" }'])
def test_a_manager_is_that_of_all_brokers_or_nobody_knows(tmp_path: Path, other: str) -> None:
    """A broker without a profile may run anything, so nothing is taken from those of the others."""
    write(tmp_path, "b.conf", "loadManagerClassName=my.Manager")
    settings = evaluation(tmp_path, f'{_TEMPLATE}[[brokers]]\nid = "x:1"\n{other}\n')

    assert load_manager_keys(settings) == {}


def test_a_failure_domain_of_strangers_is_told(tmp_path: Path) -> None:
    """A domain that lists no known broker was probably misspelt; without brokers nobody can tell."""
    domain = '[failure_domains]\nd = ["a:1", "x:1"]\n'

    assert warnings_of(evaluation(tmp_path, domain)) == []
    (warning,) = warnings_of(evaluation(tmp_path, domain + '[[brokers]]\nid = "a:1"'))
    assert warning.startswith("failure domain 'd' lists 'x:1'")


@pytest.mark.parametrize(
    ("broker", "told"), [("b", True), ("pulsar://b:6650", True), ("b 1:8080", True), ("[::1]:80", False)]
)
def test_ids_that_no_broker_has_are_told(tmp_path: Path, broker: str, told: bool) -> None:
    """A broker's id is host and port of its web service; service URLs and bare hosts match nothing in a log."""
    warnings = warnings_of(evaluation(tmp_path, f'[[brokers]]\nid = "{broker}"'))

    assert [warning.startswith(f"broker {broker}: ") for warning in warnings] == [True] * told


def test_labels_of_clients_with_the_brokers_prefix_are_told(tmp_path: Path) -> None:
    """Clients send `rack`; a label `lookup.rack` would match no broker."""
    text = '[[clients]]\nmatch = { client = "*" }\nproperties = { "lookup.rack" = "a", zone = "z" }'

    (warning,) = warnings_of(evaluation(tmp_path, text))
    assert warning.startswith("clients[0].properties: 'lookup.rack' ")
    assert warning.endswith("did you mean 'rack'?")


def test_margins_in_percent_are_told(tmp_path: Path) -> None:
    """A margin is a share: 5 would make everything equivalent."""
    text = "[verdict]\nmargin = 5\nmargins = { moves = 2.5, imbalance_cv = 0.5 }"

    assert [warning.partition("%")[0] for warning in warnings_of(evaluation(tmp_path, text))] == [
        "verdict.margin: 5 is 500",
        "verdict.margins.moves: 2.5 is 250",
    ]
