"""The third parties' door: a distribution somebody else installs, and a plain file, decide like built-ins."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
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

#: A policy of the plug-in's parts and a built-in at work: two lookups of a tenant, one broker drained.
DECIDING = """
import json
from lookup.engine.build import build_policies
from lookup.engine.manager import LoadManager
from lookup.engine.plugins import load_plugins
from lookup.settings.policy import PolicySpec
from lookup.testing import broker, cluster

registry = load_plugins()
[policy] = build_policies(registry, [PolicySpec.model_validate({
    "name": "home",
    "filters": ["not-drained"],
    "scorers": ["tenant-home", {"use": "fewest-bundles", "weight": 0.1}],
    "selector": {"use": "sticky-tenant"},
})])
view = cluster(broker("b1:1", drain="yes", home="acme"), broker("b2:1"), broker("b3:1", home="acme"))
manager = LoadManager(policy, "east", view.brokers)
manager.set_registry(view.brokers, view.registered)
answers = [manager.assign(None, f"acme/{name}/0x00000000_0xffffffff").broker for name in ("orders", "bills")]
rejected = [dict(entry.decision.rejected) for entry in manager.take_decisions()]
sources = {source.name: source.origin for source in registry.sources}
print(json.dumps({"answers": answers, "rejected": rejected, "sources": sources, "memory": manager.memory}))
"""

CONFORMANCE = """
from lookup.testing import parametrize_with_policies
from lookup_sample_plugin import NotDrained, StickyTenant, TenantHome

PARTS = [NotDrained(), NotDrained(key="rack"), TenantHome(), TenantHome(open_house=0.0), StickyTenant()]

@parametrize_with_policies(PARTS)
def test_conformance(policy, check):
    check(policy)
"""


@pytest.fixture(scope="module")
def installed(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Install the sample plug-in with pip into a folder of its own; return the folder."""
    source, target = tmp_path_factory.mktemp("source") / "sample_plugin", tmp_path_factory.mktemp("installed")
    shutil.copytree(ASSETS / "sample_plugin", source)
    pip = [sys.executable, "-m", "pip", "install", "--quiet", "--no-deps", "--no-build-isolation", "--no-index"]
    done = subprocess.run(
        [*pip, "--disable-pip-version-check", "--target", str(target), str(source)],
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return target


def _run(installed: Path, folder: Path, *arguments: str) -> str:
    done = subprocess.run(
        [sys.executable, *arguments],
        cwd=folder,
        env=os.environ | {"PYTHONPATH": str(installed)},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def test_an_installed_plug_in_decides(installed: Path, tmp_path: Path) -> None:
    """It is found by its entry point, its parts are composed with built-ins, reject, score, select and remember."""
    said = json.loads(_run(installed, tmp_path, "-c", DECIDING))

    assert said["sources"]["sample"] == "lookup-sample-plugin 0.1.0"
    assert said["answers"] == ["b3:1", "b3:1"]
    assert said["rejected"] == [{"filtered": 1}, {"filtered": 1}]
    assert said["memory"] == {"sticky-tenant": {"acme": "b3:1"}}


def test_an_installed_plug_in_conforms(installed: Path, tmp_path: Path) -> None:
    """Its author's own test, one decorator, passes every check."""
    (tmp_path / "test_sample.py").write_text(CONFORMANCE, encoding="utf-8")
    said = _run(installed, tmp_path, "-m", "pytest", "-q", "-p", "no:cacheprovider", "test_sample.py")

    assert f"{5 * len(CHECKS)} passed" in said


def test_an_installed_plug_in_is_not_there_without_being_installed() -> None:
    """What the tests above found came through the door."""
    assert "sample" not in [source.name for source in load_plugins().sources]


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
