"""`lookup config show`, of evaluations and of settings of topics, and the TOML that it writes."""

from __future__ import annotations

import json
import tomllib
from pathlib import Path
from textwrap import dedent
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lookup.commands.show import to_toml
from lookup.engine.build import build_policies
from lookup.engine.plugins import load_plugins
from lookup.logs.generator.generate import GenerateSettings, generate
from lookup.settings import load_evaluation
from tests.commands.projects import Run, evaluation

CONFIGS = Path(__file__).parents[2] / "configs"

# Surrogates have no UTF-8; everything else may stand in a TOML text.
_TEXTS = st.text(st.characters(exclude_categories=["Cs"]), max_size=8)
_PLAIN = st.none() | st.booleans() | st.integers(-(2**63), 2**63 - 1) | st.floats(allow_nan=False) | _TEXTS
_VALUES = st.recursive(
    st.booleans() | st.integers(-(2**63), 2**63 - 1) | st.floats(allow_nan=False) | _TEXTS,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(_TEXTS, inner, max_size=3),
    max_leaves=6,
)


@pytest.mark.parametrize("flags", [(), ("--resolved",)])
@pytest.mark.parametrize("shipped", ["evaluation.toml", "nasa-evaluation.toml", None])
def test_what_is_shown_reads_back(lookup: Run, tmp_path: Path, shipped: str | None, flags: tuple[str, ...]) -> None:
    """The printed TOML is an evaluation with the same settings, comments and defaults or not."""
    path = evaluation(tmp_path) if shipped is None else CONFIGS / shipped
    copy = tmp_path / "copy.toml"

    copy.write_text(lookup("config", "show", path, *flags).out, encoding="utf-8")

    shown, read = load_evaluation(copy, environ={}), load_evaluation(path, environ={})
    assert shown.model_dump(exclude={"policies"}) == read.model_dump(exclude={"policies"})
    # A policy from a broker.conf is shown with the parameters that it has from there.
    registry = load_plugins()
    assert build_policies(registry, shown.policies) == build_policies(registry, read.policies)


def test_resolved_says_what_set_each_value(lookup: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Behind each value stands the file, the variable, the flag or that it is a default; the flag wins."""
    path = evaluation(tmp_path)
    monkeypatch.setenv("LOOKUP_EVALUATION__TICK_S", "30")
    monkeypatch.setenv("LOOKUP_EVALUATION__SEEDS", "[4]")

    ran = lookup("config", "show", path, "--resolved", "--set", "evaluation.seeds=[1, 2]")

    lines = ran.out.splitlines()
    assert f'incumbent = "stock"  # {path}' in lines
    assert any(line.startswith("tick_s = 30  # ") and line.endswith("LOOKUP_EVALUATION__TICK_S") for line in lines)
    assert "seeds = [1, 2]  # command line" in lines
    assert "session_s = 60  # default" in lines


def test_json_has_what_is_set_alone(lookup: Run, tmp_path: Path) -> None:
    """Without `--resolved` defaults are left out."""
    ran = lookup("config", "show", evaluation(tmp_path), "--format", "json")

    assert json.loads(ran.out)["settings"]["evaluation"] == {"incumbent": "stock", "default_bundles": 4}


def _without_none(values: Any) -> Any:
    if isinstance(values, dict):
        return {key: _without_none(value) for key, value in values.items() if value is not None}
    return values


@given(st.dictionaries(_TEXTS, _VALUES | st.dictionaries(_TEXTS, _PLAIN, max_size=3), max_size=4))
def test_any_table_reads_back(values: dict[str, Any]) -> None:
    """Keys and texts of any characters, nested lists and tables survive; None is left out."""
    assert tomllib.loads(to_toml(values)) == _without_none(values)


def test_what_ships_is_listed(lookup: Run) -> None:
    """As a table for people, and with paths for programs."""
    table, listed = lookup("config", "list"), lookup("config", "list", "--format", "json")

    assert "|shipped:access-log" in table.out
    paths = {entry["name"]: Path(entry["path"]).name for entry in json.loads(listed.out)}
    assert paths["shipped:large"] == "large.conf"


def test_settings_that_ship_can_be_named_in_place_of_a_file(lookup: Run) -> None:
    """Settings, and a scenario; a name that is misspelt is one sentence."""
    assert lookup("config", "check", "shipped:evaluation").code == 0
    (mistake,) = lookup("config", "check", "shipped:evaluatin").mistakes
    assert mistake.startswith("FILE: ")
    assert lookup("simulate", "shipped:drain").code == 0


def test_any_file_that_ships_is_printed(lookup: Run) -> None:
    """As it is, without a package that its commands would need; with `--resolved` an evaluation is resolved."""
    for entry in json.loads(lookup("config", "list", "--format", "json").out):
        assert lookup("config", "show", entry["name"]).out == Path(entry["path"]).read_text(encoding="utf-8")
    assert "  # default\n" in lookup("config", "show", "shipped:evaluation", "--resolved").out


def test_the_sample_has_no_finding(lookup: Run, tmp_path: Path) -> None:
    """What `make demo` runs is in proportion to its log, and everything in it has an effect."""
    generate(GenerateSettings(), tmp_path / "sample")
    tables = [f"inputs.{name}={tmp_path}/sample/{name}" for name in ("brokers", "loads", "bundles", "ownership")]
    flags = [word for table in tables for word in ("--set", table)]

    ran = lookup("inspect", tmp_path / "sample" / "lookups", "shipped:evaluation", *flags)

    assert ran.out.endswith("without effect on this log.\n"), ran.out


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
    shown = lookup("config", "show", project, *flags).out
    copy = project.parent / "copy.toml"
    copy.write_text(shown, encoding="utf-8")
    both = [load_evaluation(path, environ={}).policies for path in (project, copy)]

    assert 'shedder = { use = "transfer", target_std = 0.25,' in shown
    assert "overloaded = 0.7," in shown
    assert build_policies(load_plugins(), both[0]) == build_policies(load_plugins(), both[1])


def test_a_stand_in_is_warned_of(lookup: Run, project: Path) -> None:
    """Pulsar's default shedder is none of the extensible manager's, which takes its own and logs it."""
    run = lookup("config", "show", project)

    assert "warning: policy 'today': loadBalancerLoadSheddingStrategy: " in run.err
    assert "falls back to TransferShedder" in run.err


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

    first, second = lookup("config", "check", project).mistakes
    assert first.startswith(f"{conf}: loadBalancerBrokerMaxTopics = 0: ")
    assert first.endswith("of policy 'a' filters[0])")
    assert second.startswith("policy 'b' broker_conf: loadBalancerBrokerMaxTopics = -7: ")
    assert second.endswith("of policy 'b' filters[0])")


_MODULAR = "loadBalancerBundleUnloadMinThroughputThreshold=20\n"
_IDLE = (
    "warning: policy 'today': its shedder 'threshold' cannot act: it uses min_offload = 20,971,520 bytes/s "
    "(loadBalancerBundleUnloadMinThroughputThreshold = 20), but the load of a bundle is known only as the weight of "
    "its lookups; give inputs.bundles, or state evaluation.bytes_per_weight"
)


def test_check_names_the_shedder_that_cannot_act(lookup: Run, project: Path) -> None:
    """With Pulsar's key; with bytes stated it can act."""
    (project.parent / "broker.conf").write_text(_MODULAR, encoding="latin-1")

    assert f"{_IDLE}; today is the incumbent" in lookup("config", "check", project).err

    stated = _EVALUATION.replace("[[policies]]", "bytes_per_weight = 1000\n[[policies]]", 1)
    project.write_text(stated, encoding="utf-8")

    assert "cannot act" not in lookup("config", "check", project).err
