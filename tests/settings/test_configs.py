"""The settings that ship: they load, every part in them exists, and they say what the documentation says of them."""

from __future__ import annotations

import tomllib
from importlib.resources import files
from pathlib import Path
from typing import get_type_hints

import pytest

from lookup.commands.advice import warnings_of
from lookup.engine.build import build_policies
from lookup.engine.plugins import load_plugins
from lookup.hooks import Conf
from lookup.serve.policies import served_policies
from lookup.settings import (
    broker_intervals,
    load_broker_profile,
    load_evaluation,
    load_manager_keys,
    load_policies,
    load_serving,
    load_topology,
)
from tests.settings.files import evaluation, write

_CONFIGS = Path(__file__).parents[2] / "configs"
#: Shipped evaluations and their incumbents: the policy that wrote the log; the trace had none.
_EVALUATIONS = {
    "evaluation.toml": "stock-modular-4.2",
    "live-evaluation.toml": "exploring",
    "nasa-evaluation.toml": "least-used",
}
_POLICIES = sorted((_CONFIGS / "policies").glob("*.toml"))


@pytest.mark.parametrize("name", _EVALUATIONS)
def test_a_shipped_evaluation_loads_and_its_policies_can_be_built(name: str) -> None:
    """Nothing is wrong with it, nothing is to be warned of, and every part is known with these parameters."""
    settings = load_evaluation(_CONFIGS / name, environ={})

    assert warnings_of(settings) == []
    assert len(build_policies(load_plugins(), settings.policies)) >= 5
    assert settings.evaluation.incumbent == _EVALUATIONS[name]


@pytest.mark.parametrize("path", _POLICIES, ids=lambda path: path.stem)
def test_a_policy_file_is_named_like_its_policy(path: Path) -> None:
    """One file, one policy, one name; and its parts can be built."""
    policies = load_policies(path)

    assert [policy.name for policy in policies] == [path.stem]
    build_policies(load_plugins(), policies)


def test_the_mapping_of_client_logs_invents_no_label() -> None:
    """As shipped it labels nobody; with the comment mark taken away all clients are in one rack."""
    text = (_CONFIGS / "mappings" / "cpp-client.toml").read_text(encoding="utf-8")

    assert "properties" not in tomllib.loads(text)
    assert tomllib.loads(text.replace("# properties = ", "properties = "))["properties"] == {"rack": "a"}


def test_every_key_that_a_parameter_names_comes_out_of_a_broker_conf(tmp_path: Path) -> None:
    """A parameter of a part that ships and names a key of Pulsar's is filled from the file."""
    classes = [found for kind in load_plugins().classes.values() for found in kind.values()]
    hints = [hint for found in classes for hint in get_type_hints(found, include_extras=True).values()]
    marks = [mark for hint in hints for mark in getattr(hint, "__metadata__", ()) if isinstance(mark, Conf)]
    keys = {mark.key for mark in marks if mark.key != "*"}
    write(tmp_path, "b.conf", "".join(f"{key}=1\n" for key in keys))

    settings = evaluation(tmp_path, '[[brokers]]\nid = "b:1"\nprofile = "b.conf"')

    assert len(keys) > 5
    assert set(load_manager_keys(settings)) == keys


def test_the_default_topology_is_the_one_that_ships() -> None:
    """Leaving the topology out means what the shipped file says."""
    assert load_topology(_CONFIGS / "topology.toml") == type(load_topology(_CONFIGS / "topology.toml"))()


def test_shipped_profiles_load() -> None:
    """One profile of each kind ships."""
    large = load_broker_profile(_CONFIGS / "brokers" / "large.conf")
    small = load_broker_profile(_CONFIGS / "brokers" / "small.toml")

    assert large.properties == {"lookup.machine": "large"}
    assert (small.properties, small.capacity) == ({"lookup.machine": "small"}, 0.5)


def test_the_real_trace_has_eight_brokers_in_four_racks() -> None:
    """Two brokers stand in each rack; each of them leaves once, alone, and is back with its rack after ten minutes."""
    intervals = broker_intervals(load_evaluation(_CONFIGS / "nasa-evaluation.toml", environ={}), "nasa")
    left = {one.broker.id: one.until_us for one in intervals if one.until_us is not None}
    back = {one.broker.id: one.from_us for one in intervals if one.until_us is None}
    racks = {one.broker.id: one.broker.location.rack for one in intervals}

    assert racks == {f"broker-{number}:8080": ("com", "edu", "net", "gov")[(number - 1) % 4] for number in range(1, 9)}
    assert {(one.broker.id, one.broker.location.rack) for one in intervals} == set(racks.items())
    assert back == {broker: until + 600_000_000 for broker, until in left.items()}
    assert len({until // 600_000_000 for until in left.values()}) == len(left) == 8


def test_settings_ship_inside_the_package() -> None:
    """An installed distribution finds its configurations as data of `lookup.configs`."""
    names = {path.name for path in files("lookup.configs").iterdir()}

    assert {*_EVALUATIONS, "policies", "brokers", "topology.toml"} <= names


def test_the_shipped_server_can_be_started() -> None:
    """`serving.toml` is right, and its policies can be served without a collector."""
    served = served_policies(load_serving(_CONFIGS / "serving.toml", environ={}))

    assert served.active is not None
    assert served.active.name == "rack-then-load"
    assert served.warnings == ()
