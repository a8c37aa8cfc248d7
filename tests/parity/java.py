"""Put policies whose shedder and placement are Pulsar's classes, as parts `java`, beside ours: scenario by scenario.

Also the pairs of both that a release starts with, beside the policies that their `broker.conf` builds.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from itertools import product
from pathlib import Path

from lookup.engine.build import build_policies
from lookup.engine.policy import Policy
from lookup.errors import SettingsError
from lookup.settings.policy import PolicySpec
from lookup.simulation import Scenario
from lookup.simulation.loop import ClosedLoop
from lookup_java import jvm
from tests.parity.jvm import SCRIPT, Classes, said
from tests.parity.loops import policy_of, registry

__all__ = ["BESIDE", "beside", "class_path", "in_java", "together"]

_IMPL = "org.apache.pulsar.broker.loadbalance.impl."
_EXTENSIONS = "org.apache.pulsar.broker.loadbalance.extensions."
_SHEDDER, _PLACEMENT = "loadBalancerLoadSheddingStrategy", "loadBalancerLoadPlacementStrategy"
_EXTENSIBLE = {
    _SHEDDER: f"{_EXTENSIONS}scheduler.TransferShedder",
    _PLACEMENT: f"{_EXTENSIONS}strategy.LeastResourceUsageWithWeight",
    "loadManagerClassName": f"{_EXTENSIONS}ExtensibleLoadManagerImpl",
}
#: By our part's name the last name of the class that it stands for.
_CLASSES = {
    "threshold": "ThresholdShedder",
    "overload": "OverloadShedder",
    "uniform": "UniformLoadShedder",
    "avg": "AvgShedder",
    "least-long-term-message-rate": "LeastLongTermMessageRate",
    "least-resource-usage-with-weight": "LeastResourceUsageWithWeight",
    "avg-placement": "AvgShedder",
    "round-robin": "RoundRobinBrokerSelector",
}

#: Keys of policies that run with classes of Pulsar's, by their names in the table.
BESIDE: Mapping[str, Mapping[str, str]] = {
    **{
        f"java: {shedder}, {placement}": {_SHEDDER: f"{_IMPL}{shedder}", _PLACEMENT: f"{_IMPL}{placement}"}
        for shedder, placement in (
            ("ThresholdShedder", "LeastLongTermMessageRate"),
            ("UniformLoadShedder", "LeastLongTermMessageRate"),
            ("OverloadShedder", "LeastLongTermMessageRate"),
            ("ThresholdShedder", "LeastResourceUsageWithWeight"),
        )
    },
    "java: TransferShedder, LeastResourceUsageWithWeight": _EXTENSIBLE,
}


def class_path(release: str) -> str:
    """Return the jars of a release, and let this process run them: the parts, and a Java that is new enough.

    Raises:
        NoClassesError: if they cannot be had.
    """
    # One process of a pool compares several releases, each with a Java of its own.
    jvm.end()
    os.environ["JAVA_HOME"] = str(Path(said(SCRIPT, "--java", release)).parents[1])
    os.environ["PULSAR_PARTS_JAR"] = said(SCRIPT, "--jar")
    # The first entry has the classes of the parts themselves.
    return said(SCRIPT, release).partition(os.pathsep)[2]


def in_java(conf: Mapping[str, str], release: str, folder: Path, lib: str) -> Policy:
    """Return the policy that keys of a `broker.conf` describe, but for shedder and placement, which are its classes."""
    file = folder / "broker.conf"
    file.write_text("".join(f"{key}={value}\n" for key, value in conf.items()), encoding="latin-1")
    written = {"name": "p", "from_broker_conf": str(file), "pulsar": release}
    parts = {
        part: {"use": "java", "class": conf[key], "lib": lib}
        for part, key in (("shedder", _SHEDDER), ("selector", _PLACEMENT))
    }
    return build_policies(registry(), [PolicySpec.model_validate(written | parts)])[0]


def beside(scenario: Scenario, policies: tuple[Policy, Policy]) -> tuple[bool, bool]:
    """Run a scenario with two policies; return whether owners changed after the start, and whether alike."""
    ours, theirs = (list(_changes(scenario, policy)) for policy in policies)
    return any(ours) or any(theirs), ours == theirs


def _changes(scenario: Scenario, policy: Policy) -> Iterator[list[tuple[str, str, str]]]:
    loop = ClosedLoop(scenario, policy)
    for minute in range(scenario.minutes):
        load = loop.report(minute)
        loop.change()
        loop.look_up(load, load.loads)
        yield sorted((one.bundle, str(one.source), str(one.broker)) for one in loop.manager.take_changes())


def together(classes: Classes, release: str, folder: Path) -> Iterator[bool]:
    """Yield for each pair of a shedder and a placement whether the release and the policy have both, or neither."""
    shedders = [
        f"{_IMPL}{name}" for name in ("ThresholdShedder", "OverloadShedder", "UniformLoadShedder", "AvgShedder")
    ]
    placements = ("LeastLongTermMessageRate", "LeastResourceUsageWithWeight", "AvgShedder", "RoundRobinBrokerSelector")
    for shedder, placement in product([*shedders, _EXTENSIBLE[_SHEDDER]], placements):
        conf = {_SHEDDER: shedder, _PLACEMENT: f"{_IMPL}{placement}"}
        try:
            started = classes.ask("together", conf=conf)
            theirs = [started[part].rpartition(".")[2] for part in ("shedder", "placement")]
        except RuntimeError:
            theirs = None
        try:
            policy = policy_of(conf, release, folder)
            ours = [_CLASSES[part.name] for part in (policy.shedder, policy.selector) if part is not None]
        except SettingsError:
            ours = None
        yield ours == theirs
