"""The parts `java` as settings have them, and where they are refused."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from lookup.api.moving import plan
from lookup.engine.build import build_policies, policy_table
from lookup.engine.foreign import check_foreign, foreign_of, refuse_foreign
from lookup.engine.plugins import load_plugins
from lookup.engine.policy import Policy
from lookup.engine.units import goes_by_bytes
from lookup.errors import ContractError, SettingsError
from lookup.serve.policies import served_policies
from lookup.settings.loader import load_serving
from lookup.settings.policy import PolicySpec

_IMPL = "org.apache.pulsar.broker.loadbalance.impl"


def _part(folder: Path, name: str = "org.Own", **more: Any) -> dict[str, Any]:
    return {"use": "java", "class": name, "lib": str(folder), **more}


def _policy(**written: Any) -> Policy:
    return build_policies(load_plugins(), [PolicySpec.model_validate({"name": "p", **written})])[0]


def test_the_class_gets_the_keys_of_the_broker_conf_and_its_own(tmp_path: Path) -> None:
    """Those of the release, those of the file, and keys of the table, which nobody else knows."""
    (tmp_path / "broker.conf").write_text("loadBalancerSheddingGracePeriodMinutes=7\n", encoding="latin-1")

    policy = _policy(
        from_broker_conf=str(tmp_path / "broker.conf"), shedder=_part(tmp_path, conf={"ourFactor": 2, "ours": "x"})
    )

    table = policy_table(policy)["shedder"]
    assert (table["class"], table["conf"]) == ("org.Own", {"ourFactor": 2, "ours": "x"})
    assert table["broker_conf"]["loadBalancerSheddingGracePeriodMinutes"] == 7
    assert "loadBalancerHistoryResourcePercentage" in table["broker_conf"]
    # What is written is what is built again, in a worker for example.
    assert _policy(**{k: v for k, v in policy_table(policy).items() if k in ("selector", "shedder")}).shedder == (
        policy.shedder
    )


def test_a_broker_conf_may_name_the_class_that_a_part_runs(tmp_path: Path) -> None:
    """A broker that runs a class of its own has it in its file; without the part there is nothing to run it."""
    file = tmp_path / "broker.conf"
    file.write_text("loadBalancerLoadSheddingStrategy=org.Own\n", encoding="latin-1")

    assert _policy(from_broker_conf=str(file), shedder=_part(tmp_path)).shedder is not None
    with pytest.raises(ValueError, match="loadBalancerLoadSheddingStrategy"):
        _policy(from_broker_conf=str(file), selector=_part(tmp_path))


@pytest.mark.parametrize(
    ("part", "word"),
    [
        ({"lib": "/nowhere/pulsar/lib"}, "/nowhere/pulsar/lib"),
        ({"limit_s": 0}, "limit_s"),
        ({"klass": "org.Own"}, "did you mean 'class'?"),
    ],
)
def test_wrong_parameters_are_named(tmp_path: Path, part: dict[str, Any], word: str) -> None:
    """Before anything runs."""
    with pytest.raises(SettingsError) as caught:
        _policy(selector={**_part(tmp_path), **part})

    assert word in str(caught.value)


def test_a_part_without_class_or_lib_is_refused_before_a_run(tmp_path: Path) -> None:
    """Nothing is started for it."""
    with pytest.raises(ContractError, match="class"):
        check_foreign([_policy(selector={"use": "java", "lib": str(tmp_path)})])


def test_parts_in_wrappers_are_found_with_the_memory_that_they_are_handed(tmp_path: Path) -> None:
    """A wrapper's memory is that of what is inside; of other parts none is foreign."""
    policy = _policy(selector={"use": "explore", "child": _part(tmp_path)}, shedder="threshold")

    assert [key for key, _ in foreign_of(policy)] == ["explore"]
    assert not foreign_of(_policy(selector="best"))
    with pytest.raises(SettingsError, match="Java"):
        refuse_foreign([policy], "and that is all")


def test_a_shedder_sees_bytes_where_a_run_states_them(tmp_path: Path) -> None:
    """What limits it has is not known: Pulsar's have some."""
    assert goes_by_bytes(_policy(selector="best", shedder=_part(tmp_path, f"{_IMPL}.ThresholdShedder")).shedder)


def test_plans_and_the_decision_server_refuse_them(tmp_path: Path) -> None:
    """A plan asks its policy more than once, and what a server decides has to be verified."""
    with pytest.raises(SettingsError, match="Java"):
        plan(str(tmp_path), policy={"name": "p", "selector": "best", "shedder": _part(tmp_path)})
    serving = {
        "serving": {"active": "p", "cluster": "c", "record": str(tmp_path)},
        "policies": [{"name": "p", "selector": _part(tmp_path)}],
    }
    with pytest.raises(SettingsError, match="Java"):
        served_policies(load_serving(serving, environ={}))
