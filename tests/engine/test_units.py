"""Limits of shedders in bytes and messages per second, and loads in bytes for those that have them."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from lookup.engine.build import build_policies
from lookup.engine.manager import Conditions, LoadManager
from lookup.engine.plugins import load_plugins
from lookup.engine.policy import Policy
from lookup.engine.units import Rates, act_warnings, cannot_act, in_bytes, limits_of, rates_without
from lookup.model.load import BundleLoad, Load
from lookup.settings.evaluation import EvaluationFile
from lookup.settings.policy import PolicySpec
from lookup.testing import cluster

MIB = 1024 * 1024
UNKNOWN = Rates(has_bytes=False, has_messages=False, why="nobody says", remedy="say it", is_stated=True)


def _policy(**parts: Any) -> Policy:
    spec = PolicySpec.model_validate({"name": "p", "selector": "random", **parts})
    return build_policies(load_plugins(), [spec])[0]


def _limits(**shedder: Any) -> list[str]:
    return [str(limit) for limit in limits_of(_policy(shedder=shedder).shedder)]


@pytest.mark.parametrize(
    ("shedder", "expected"),
    [
        (
            {"use": "threshold", "min_offload": 10.0 * MIB},
            ["min_offload = 10,485,760 bytes/s (loadBalancerBundleUnloadMinThroughputThreshold = 10)"],
        ),
        (
            {"use": "avg"},
            [
                "min_rate = 1,000 messages/s (minUnloadMessage = 1000)",
                "min_throughput = 1,048,576 bytes/s (minUnloadMessageThroughput = 1048576)",
            ],
        ),
        ({"use": "uniform", "rate_difference": 0.0, "throughput_multiple": 0.0}, []),
        ({"use": "transfer"}, []),
        ({"use": "overload"}, []),
    ],
)
def test_limits_have_a_unit_and_a_key_of_pulsars(shedder: dict[str, Any], expected: list[str]) -> None:
    """Those that another parameter switches off are none."""
    assert _limits(**shedder) == expected


@pytest.mark.parametrize(
    ("shedder", "known", "acts"),
    [
        ({"use": "threshold", "min_offload": 1.0}, (False, True), False),
        ({"use": "threshold", "min_offload": 1.0}, (True, False), True),
        ({"use": "uniform"}, (False, False), False),
        ({"use": "uniform"}, (False, True), True),
        ({"use": "uniform", "rate_difference": 0.0}, (False, True), False),
        ({"use": "uniform", "throughput_multiple": 0.0}, (True, False), False),
        ({"use": "avg"}, (False, True), True),
        ({"use": "avg", "min_throughput": 0.0}, (False, False), True),
    ],
)
def test_one_known_rate_is_enough_to_act(shedder: dict[str, Any], known: tuple[bool, bool], acts: bool) -> None:
    """Of those that are not switched off."""
    assert bool(cannot_act([_policy(shedder=shedder)], Rates(*known))) is not acts


def test_the_sentence_names_part_parameter_key_and_what_would_be_right() -> None:
    """5 % of 0.3 weight per second reach 10 MiB per second from 699,050,667 bytes on, in two digits 700 million."""
    found = cannot_act([_policy(shedder={"use": "threshold", "min_offload": 10.0 * MIB})], UNKNOWN, lambda: 0.3)

    assert found["p"].startswith("its shedder 'threshold' ")
    assert "min_offload = 10,485,760 bytes/s (" in found["p"]
    assert "; 700000000 is suggested, " in found["p"]


def test_only_the_incumbents_verdicts_are_refused() -> None:
    """What holds for several policies is said once, with their names."""
    assert act_warnings({"p": "cannot"}, "q") == ["policy 'p': cannot"]
    both, other = act_warnings({"p": "cannot", "q": "cannot", "r": "must not"}, "q")
    assert both.startswith("each of the policies p, q: cannot; ")
    assert other == "policy 'r': must not"


def test_settings_say_what_is_known_without_bundles() -> None:
    """With BUNDLES the table says it."""

    def rates(inputs: dict[str, str], **section: Any) -> Rates | None:
        file = {"evaluation": {"incumbent": "p", **section}, "inputs": inputs}
        policies = [{"name": "p", "selector": "best"}]
        return rates_without(EvaluationFile.model_validate(file | {"policies": policies}))

    stated, unstated = rates({}, bytes_per_weight=2.0), rates({"loads": "l"}, load="reported")

    assert stated is not None
    assert unstated is not None
    assert (stated.has_bytes, unstated.has_bytes) == (True, False)
    assert "although LOADS " in unstated.why
    assert rates({"bundles": "b"}) is None


def test_only_loads_are_in_bytes() -> None:
    """Usage, capacity and demand stay as they are."""
    view = cluster("a", "b", usage={"a": 0.5}, throughput={"a": 3.0}, owned={"t/n/x": "a"}, bundle_loads={"t/n/x": 2.0})
    scaled = in_bytes(view, 10.0, 100.0)
    shown = scaled.load

    assert shown.throughput[0] == 30.0
    assert list(shown.top_bundles[0]) == [BundleLoad("t/n/x", 200.0)]
    assert len(shown.top_bundles) == 2
    assert (shown.usage is view.load.usage, scaled.capacity is view.capacity) == (True, True)
    assert shown.smoothed_throughput is None


def _unloads(shedder: dict[str, Any], **conditions: float) -> int:
    view = cluster("hot", "cold")
    manager = LoadManager(_policy(shedder=shedder), "east", view.brokers, conditions=Conditions(**conditions))
    manager.set_registry(view.brokers, view.registered)
    bundles = [BundleLoad("t/n/0x00000000_0x80000000", 40.0), BundleLoad("t/n/0x80000000_0xffffffff", 50.0)]
    manager.restore({entry.bundle: "hot" for entry in bundles})
    usage = np.array([0.0, 0.9] if view.brokers.number("hot") else [0.9, 0.0])
    top = [bundles if used else [] for used in usage]
    manager.set_load(Load(usage, usage * 100.0, np.zeros(2, np.int64), top))
    report = manager.shed()
    return len(report.accepted) if report else -1


def test_a_shedder_with_a_limit_in_bytes_is_shown_bytes() -> None:
    """90 x (0.9 - 0.45 - 0.1 + 0.05) = 36 of weight reach a limit of 720 if 1.0 stands for 20 bytes."""
    limited = {"use": "threshold", "history": 0.0, "min_offload": 720.0}

    assert _unloads(limited) == 0
    assert _unloads(limited, broker_bytes=19.9, bundle_bytes=19.9) == 0
    assert _unloads(limited, broker_bytes=20.1, bundle_bytes=20.1) == 1


def test_a_shedder_without_a_limit_in_bytes_is_shown_weight() -> None:
    """Of bundles in bytes, half as much each, both would go for a broker's 36."""
    assert _unloads({"use": "threshold", "history": 0.0}, bundle_bytes=0.5) == 1
