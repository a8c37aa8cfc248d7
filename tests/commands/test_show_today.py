"""`lookup config show` and `lookup config check` of a policy that is read from a `broker.conf`."""

from __future__ import annotations

import re
from pathlib import Path
from textwrap import dedent

import pytest

from lookup.engine.build import build_policies
from lookup.engine.plugins import load_plugins
from lookup.settings import load_evaluation
from tests.commands.projects import Run

_EVALUATION = """
[evaluation]
incumbent = "today"

[[policies]]
name = "today"
from_broker_conf = "broker.conf"

[[policies]]
name = "random"
selector = "random"
"""
_CONF = """
loadManagerClassName=org.apache.pulsar.broker.loadbalance.extensions.ExtensibleLoadManagerImpl
loadBalancerBrokerOverloadedThresholdPercentage=70
"""


@pytest.fixture
def project(tmp_path: Path) -> Path:
    """Return an evaluation whose incumbent is a broker.conf."""
    (tmp_path / "broker.conf").write_text(_CONF, encoding="latin-1")
    (tmp_path / "evaluation.toml").write_text(_EVALUATION, encoding="utf-8")
    return tmp_path / "evaluation.toml"


@pytest.mark.parametrize("flags", [(), ("--resolved",)])
def test_the_resulting_policy_is_shown_and_reads_back(lookup: Run, project: Path, flags: tuple[str, ...]) -> None:
    """Every part stands there with its parameters, and building what is shown gives the same policies."""
    shown = lookup("config", "show", "--config", project, *flags).out
    copy = project.parent / "copy.toml"
    copy.write_text(shown, encoding="utf-8")
    both = [load_evaluation(path, environ={}).policies for path in (project, copy)]

    assert 'shedder = { use = "transfer", target_std = 0.25,' in shown
    assert "overloaded = 0.7," in shown
    assert build_policies(load_plugins(), both[0]) == build_policies(load_plugins(), both[1])


def test_a_stand_in_is_warned_of(lookup: Run, project: Path) -> None:
    """Pulsar's default shedder is none of the extensible manager's, which takes its own and logs it."""
    run = lookup("config", "show", "--config", project)

    assert "warning: policy 'today': loadBalancerLoadSheddingStrategy: " in run.err
    assert "ThresholdShedder is not for ExtensibleLoadManagerImpl, which falls back to 'transfer'" in run.err


def test_the_grace_period_is_shown(lookup: Run, project: Path) -> None:
    """It is no part's parameter, yet Pulsar decides by it."""
    conf = project.parent / "broker.conf"
    conf.write_text(f"{_CONF}loadBalancerSheddingGracePeriodMinutes=10", encoding="latin-1")

    assert "grace_s = 600\n" in lookup("config", "show", "--config", project).out


def test_parts_are_said_to_come_from_the_broker_conf(lookup: Run, project: Path) -> None:
    """The comment behind a part that was read names the file it was read from."""
    lines = lookup("config", "show", "--config", project, "--resolved").out.splitlines()

    assert [line.endswith(f"# {project.parent / 'broker.conf'}") for line in lines if line.startswith("shedder")] == [
        True
    ]
    assert f'name = "today"  # {project}' in lines


def test_check_warns_of_what_pulsar_would_only_log(lookup: Run, project: Path) -> None:
    """A shedder that the manager cannot use is replaced, and the replacement is told."""
    ran = lookup("config", "check", "--config", project)

    assert "policy 'today': loadBalancerLoadSheddingStrategy: " in ran.err + ran.out
    assert "falls back to 'transfer'" in ran.err + ran.out


@pytest.mark.parametrize("command", ["check", "show"])
def test_a_bad_value_of_the_file_is_told_under_pulsars_key(lookup: Run, project: Path, command: str) -> None:
    """With the file, which is the only thing that the user wrote."""
    conf = project.parent / "broker.conf"
    conf.write_text(f"{_CONF}loadBalancerBrokerMaxTopics=abc\n", encoding="latin-1")

    ran = lookup("config", command, "--config", project)

    assert ran.mistakes == [
        f"{project}: policies[0]: {conf}: loadBalancerBrokerMaxTopics = 'abc': should be a valid number"
    ]


def test_a_bad_value_of_a_profile_is_told_under_pulsars_key(lookup: Run, project: Path) -> None:
    """The parameters of other policies come from the brokers' profiles, which are named; what stands beside counts."""
    conf = project.parent / "b.conf"
    conf.write_text("webServicePort=8080\nloadBalancerBrokerMaxTopics=0\n", encoding="latin-1")
    more = """
    brokers = [{ id = "b:8080", profile = "b.conf" }]
    evaluation = { incumbent = "a" }
    policies = [
        { name = "a", selector = "best", filters = ["max-topics"] },
        { name = "b", selector = "best", filters = ["max-topics"], broker_conf = { loadBalancerBrokerMaxTopics = -7 } },
    ]
    """
    project.write_text(dedent(more), encoding="utf-8")

    assert lookup("config", "check", "--config", project).mistakes == [
        (
            f"{conf}: loadBalancerBrokerMaxTopics = 0: should be greater than or equal to 1"
            " (max_topics of policy 'a' filters[0])"
        ),
        (
            "policy 'b' broker_conf: loadBalancerBrokerMaxTopics = -7: should be greater than or equal to 1"
            " (max_topics of policy 'b' filters[0])"
        ),
    ]


_MODULAR = "loadBalancerBundleUnloadMinThroughputThreshold=20\n"
_IDLE = (
    "warning: policy 'today': its shedder 'threshold' cannot act: it goes by min_offload = 20,971,520 bytes/s "
    "(loadBalancerBundleUnloadMinThroughputThreshold = 20), but what a bundle carries is known as the weight of its "
    "lookups only; give inputs.bundles, or state evaluation.bytes_per_weight"
)


def test_check_names_the_shedder_that_cannot_act(lookup: Run, project: Path, log: Path) -> None:
    """With Pulsar's key, and with a suggestion if there is a log to make one of; with what is suggested it can act."""
    (project.parent / "broker.conf").write_text(_MODULAR, encoding="latin-1")
    without = lookup("config", "check", "--config", project).err
    tables = f'[inputs]\nlookups = "{log}/lookups"\nbrokers = "{log}/brokers"\n'
    project.write_text(_EVALUATION + tables, encoding="utf-8")
    suggested = re.search(r"bytes_per_weight; (\d+) is suggested", lookup("config", "check", "--config", project).err)

    assert f"{_IDLE}; today is the incumbent, so no verdict against it will be given\n" in without
    assert suggested is not None

    stated = _EVALUATION.replace("[[policies]]", f"bytes_per_weight = {suggested[1]}\n[[policies]]", 1)
    project.write_text(stated + tables, encoding="utf-8")

    assert "cannot act" not in lookup("config", "check", "--config", project).err


def test_check_names_weights_that_simulated_load_cannot_use(lookup: Run, project: Path) -> None:
    """A log without reports gives one usage of a broker; Pulsar's own weights, and reported load, are no occasion."""
    conf = project.parent / "broker.conf"
    conf.write_text("loadBalancerCPUResourceWeight=1.0\n", encoding="latin-1")
    usual = lookup("config", "check", "--config", project).err
    conf.write_text("loadBalancerDirectMemoryResourceWeight=1.0\n", encoding="latin-1")
    weighing = lookup("config", "check", "--config", project).err
    project.write_text(
        _EVALUATION.replace("[evaluation]", '[evaluation]\nload = "reported"', 1) + '[inputs]\nloads = "loads"\n',
        encoding="utf-8",
    )
    reported = lookup("config", "check", "--config", project).err

    said = "warning: policy 'today': weights of resources cannot act: simulated load has one usage of a broker"
    assert (said in usual, said in weighing, said in reported) == (False, True, False)


def test_check_waits_for_what_bundles_says(lookup: Run, project: Path, log: Path) -> None:
    """A table behind a URI is read by `evaluate` alone, which then knows of its bytes; nothing is suggested from it."""
    (project.parent / "broker.conf").write_text(_MODULAR, encoding="latin-1")
    project.write_text(_EVALUATION + '[inputs]\nlookups = "absent"\n', encoding="utf-8")
    absent = lookup("config", "check", "--config", project).err
    tables = f'[inputs]\nlookups = "file://{log}/lookups"\nbrokers = "{log}/brokers"\n'
    project.write_text(_EVALUATION + tables, encoding="utf-8")
    remote = lookup("config", "check", "--config", project).err
    project.write_text(_EVALUATION + '[inputs]\nbundles = "bundles"\n', encoding="utf-8")

    assert (_IDLE in absent, _IDLE in remote, "is suggested" in absent + remote) == (True, True, False)
    assert "cannot act" not in lookup("config", "check", "--config", project).err
