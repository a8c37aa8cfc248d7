"""The third parties' door: a distribution somebody else installs, and a plain file, decide like built-ins."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from lookup.engine.build import build_policies
from lookup.engine.manager import LoadManager
from lookup.engine.plugins import load_plugins
from lookup.model import Assigned, LookupOptions
from lookup.settings.policy import PolicySpec
from lookup.testing import CHECKS, policy_of, three_racks

ASSETS = Path(__file__).parent / "assets"


def _same_rack(**parameters: Any) -> Any:
    registry = load_plugins(files=[ASSETS / "plain_policy.py"])
    spec = {"name": "racks", "scorers": [{"use": "same-rack", **parameters}], "selector": "best"}
    [policy] = build_policies(registry, [PolicySpec.model_validate(spec)])
    return policy


@pytest.mark.parametrize("rack", ["a", "b", "c"])
def test_a_plain_file_decides(rack: str) -> None:
    """A file named in the settings is used like a built-in."""
    view = three_racks(per_rack=2)
    manager = LoadManager(_same_rack(elsewhere=0.1), "east", view.brokers)
    manager.set_registry(view.brokers, view.registered)
    bundle = "public/default/0x00000000_0xffffffff"
    answer = manager.assign("persistent://public/default/t", bundle, LookupOptions(properties={"rack": rack}))

    assert isinstance(answer, Assigned)
    assert answer.lookup_data.properties["lookup.rack"] == rack


@pytest.mark.parametrize("check", CHECKS, ids=lambda check: check.__name__)
def test_a_plain_file_conforms(check: Any) -> None:
    """Its part passes every check, alone and in a policy."""
    policy = _same_rack()
    check(policy_of(policy.scorers[0].scorer))
    check(policy)
