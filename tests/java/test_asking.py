"""What the parts `java` ask, and what they make of answers, with a stand-in for Java."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from lookup.engine.build import build_policies
from lookup.engine.foreign import about_foreign, check_foreign
from lookup.engine.manager import LoadManager
from lookup.engine.plugins import load_plugins
from lookup.engine.policy import Policy
from lookup.errors import ContractError, PolicyError
from lookup.model import CycleLabel, CycleReason
from lookup.settings.policy import PolicySpec
from lookup.simulation import Scenario
from lookup.simulation.loop import ClosedLoop
from lookup.simulation.scenario import checked_scenario
from lookup_java import jvm
from tests.java.fake import asked, install

_BUNDLES = [f"t/n/0x{n:x}0000000_0x{n + 1:x}0000000" for n in range(4)]


@pytest.fixture(autouse=True)
def ended() -> Iterator[None]:
    """End the stand-in: the next test has one of its own."""
    yield
    jvm.end()


def _policy(folder: Path, *, shedder: str = "org.Own", selector: str = "org.Own", **more: Any) -> Policy:
    part = {"use": "java", "lib": str(folder), **more}
    written = {"name": "p", "selector": {**part, "class": selector}, "shedder": {**part, "class": shedder}}
    return build_policies(load_plugins(), [PolicySpec.model_validate(written)])[0]


def _scenario() -> Scenario:
    written = {
        "about": "two brokers",
        "minutes": 3,
        "window": 1,
        "owners": {"b1:8080": 2},
        "brokers": [{"id": "b{n}:8080", "count": 2, "capacity": 100.0}],
        "namespaces": [{"name": "t/n", "bundles": 4, "topics": 4, "load": 40.0}],
        "policies": [{"name": "p", "selector": "random"}],
    }
    return checked_scenario(written, "scenario")


def _run(policy: Policy) -> LoadManager:
    loop = ClosedLoop(_scenario(), policy)
    assert len(list(loop.samples())) == 3
    return loop.manager


def test_a_run_has_one_instance_that_is_told_each_instant_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A shedder and a selector of one class share it; reports go with the first question, names of bundles once."""
    log = install(tmp_path, monkeypatch)

    _run(_policy(tmp_path))

    assert len(asked(log, "open")) == 1
    questions = [*asked(log, "shed"), *asked(log, "place")]
    assert len({row["id"] for row in questions}) == 1
    assert len(asked(log, "shed")) == 3
    assert all("brokers" in row for row in asked(log, "shed"))
    assert sum("names" in row for row in questions) == 1
    # Two bundles had no owner at first; the class hears where the first went before it is asked about the second.
    first, second = asked(log, "place")
    assert (first["given"], [bundle for bundle, _ in second["given"]]) == ([], [first["bundle"]])


def test_the_next_run_has_another_instance_and_the_last_one_is_forgotten(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Memory in Java is that of a run."""
    log, policy = install(tmp_path, monkeypatch), _policy(tmp_path)

    _run(policy)
    _run(policy)

    first, second = (row["id"] for row in asked(log, "open"))
    assert first != second
    assert [row["id"] for row in asked(log, "close")][-1:] == [first]


def test_instances_that_were_made_to_be_checked_are_closed_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each has a number of its own: to close one twice would be a failure of the next question."""
    log = install(tmp_path, monkeypatch)
    policy = _policy(tmp_path, shedder="org.Own", selector="org.Other")

    check_foreign([policy, policy])
    _run(policy)

    closed = [row["id"] for row in asked(log, "close")]
    assert len(closed) == len({*closed}) >= 4
    assert {*closed} <= {row["id"] for row in asked(log, "open")}


def test_equals_share_the_odds(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Each broker that the class draws from has as much as the others."""
    install(tmp_path, monkeypatch)

    manager = _run(_policy(tmp_path))

    assert {tuple(each.decision.odds.items()) for each in manager.take_decisions()} == {
        (("b1:8080", 0.5), ("b2:8080", 0.5))
    }


def test_unloads_take_place_with_the_reasons_of_the_class(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A destination that the class names gets the bundle, and its broker cools down."""
    unload = ["t/n/0x00000000_0x40000000", "b1:8080", "b2:8080", "Underloaded"]
    answer = {"unloads": [unload], "counts": [], "cooling": []}
    log = install(tmp_path, monkeypatch, open={"extensible": True, "dice": False}, shed=answer)

    loop = ClosedLoop(_scenario(), _policy(tmp_path))
    list(loop.samples())

    first, second, _ = loop.cycles
    assert (first.outcome.label, first.outcome.reason) == (CycleLabel.SUCCESS, CycleReason.UNDERLOADED)
    assert [(one.bundle, one.destination) for one in first.accepted] == [(unload[0], "b2:8080")]
    assert second.accepted == ()  # b1 does not own it any more
    assert asked(log, "shed")[1]["cooling"] == {"b1:8080": 60_000}
    assert asked(log, "shed")[1]["unloaded"] == {unload[0]: 60_000}


def test_what_it_counts_is_the_reason_of_a_cycle_without_unloads(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """UnloadCounter's words are ours."""
    answer = {"unloads": [], "counts": ["Skip CoolDown"], "cooling": []}
    install(tmp_path, monkeypatch, open={"extensible": True, "dice": False}, shed=answer)

    loop = ClosedLoop(_scenario(), _policy(tmp_path))
    list(loop.samples())

    assert {cycle.outcome.reason for cycle in loop.cycles} == {CycleReason.COOL_DOWN}


def test_a_class_that_draws_itself_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Its runs are not repeatable, and a sentence says so."""
    install(tmp_path, monkeypatch, open={"extensible": False, "dice": True})
    policy = _policy(tmp_path)

    unrepeatable = check_foreign([policy])

    assert [*unrepeatable] == ["p"]
    assert "not repeatable" in about_foreign([policy], unrepeatable)[0]


#: What a stand-in does, and a word of the sentence.
_FAULTS: list[tuple[dict[str, Any], str]] = [
    ({"open": {"error": "IllegalArgumentException: there is no class org.Own"}}, "there is no class org.Own"),
    (
        {"open": {"fatal": True, "error": "java.lang.ClassNotFoundException: com.fasterxml.X"}},
        "lib has no com.fasterxml.X",
    ),
    ({"open": {"error": "UnsupportedClassVersionError: x (class file version 65.0)"}}, "need Java 21 or newer"),
    ({"place": "sleep"}, "limit_s = 0.5 seconds"),
    ({"place": "crash"}, "exit code 3: the last word"),
    ({"shed": "Terminating due to java.lang.OutOfMemoryError: Java heap space"}, "OutOfMemoryError"),
    ({"dies": 1}, "exit code 1"),
]


@pytest.mark.parametrize(("fault", "word"), _FAULTS, ids=[word for _, word in _FAULTS])
def test_what_is_wrong_ends_the_run_in_one_sentence(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, fault: dict[str, Any], word: str
) -> None:
    """Whatever `on_error` says; the sentence has the class."""
    install(tmp_path, monkeypatch, **fault)
    policy = _policy(tmp_path, limit_s=0.5)
    with pytest.raises(ContractError) as caught:
        _run(Policy("p", policy.selector, shedder=policy.shedder, on_error="skip"))

    assert word in str(caught.value)
    assert "org.Own" in str(caught.value)
    assert "\n" not in str(caught.value)


def test_an_exception_of_the_class_is_a_failure_of_its_part(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """As in Pulsar, whose managers write a log and go on."""
    install(tmp_path, monkeypatch, shed={"error": "IllegalStateException: not today"})
    policy = _policy(tmp_path)

    with pytest.raises(PolicyError, match="not today"):
        _run(policy)
    manager = _run(Policy("p", policy.selector, shedder=policy.shedder, on_error="skip"))

    assert manager.failures.count == 3


def test_without_java_or_its_program_a_sentence_says_what_to_do(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Both are looked for before a run."""
    install(tmp_path, monkeypatch)
    policy = _policy(tmp_path)

    monkeypatch.setenv("PULSAR_PARTS_JAR", str(tmp_path / "none.jar"))
    with pytest.raises(ContractError, match="make parts"):
        check_foreign([policy])
    monkeypatch.setenv("JAVA_HOME", str(tmp_path / "none"))
    with pytest.raises(ContractError, match="JAVA_HOME"):
        check_foreign([policy])


@pytest.mark.filterwarnings("ignore:.*fork:DeprecationWarning")  # pytest-xdist has threads
def test_a_fork_has_a_jvm_of_its_own(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Two processes must not read answers of each other's."""
    log, policy = install(tmp_path, monkeypatch), _policy(tmp_path)
    _run(policy)

    child = os.fork()
    if not child:
        _run(policy)
        os._exit(0)
    assert os.waitpid(child, 0)[1] == 0

    assert {row["process"] for row in asked(log, "open")} == {os.getpid(), child}


def test_capacity_and_usage_reach_the_class(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A broker's usage is that of its CPU if no resource is known."""
    log = install(tmp_path, monkeypatch)

    _run(_policy(tmp_path))

    brokers = asked(log, "shed")[-1]["brokers"]
    assert np.isclose(sum(one["cpu"][0] for one in brokers.values()), 40.0)
