"""`lookup init --to RELEASE`: a `broker.conf` before and after an upgrade of Pulsar, and with each old default."""

from __future__ import annotations

from pathlib import Path

import pytest

from lookup.settings import EvaluationFile, load_evaluation
from lookup.simulation.scenario import read_scenario
from tests.commands.projects import Run

_IMPL = "org.apache.pulsar.broker.loadbalance.impl."
_EXTENSIBLE = "loadManagerClassName=org.apache.pulsar.broker.loadbalance.extensions.ExtensibleLoadManagerImpl\n"
_LOG = '{"ts": "2026-03-02T08:00:00Z", "topic": "persistent://a/b/c", "broker": "broker-1:8080"}\n'
_SHEDDING = f"loadBalancerLoadSheddingStrategy={_IMPL}ThresholdShedder\n"


def _upgraded(lookup: Run, folder: Path, conf: str, to: str = "5.0") -> tuple[EvaluationFile, str]:
    """Return the evaluation of an upgrade, and what is printed beside the next commands."""
    (folder / "broker.conf").write_text(f"webServicePort=8080\n{conf}")
    (folder / "log.jsonl").write_text(_LOG)
    files = ("--broker-conf", folder / "broker.conf", "--log", folder / "log.jsonl")
    ran = lookup("init", folder / "upgrade", *files, "--to", to)

    assert ran.code == 0, ran.err
    assert lookup("config", "check", folder / "upgrade" / "evaluation.toml").code == 0
    return load_evaluation(folder / "upgrade" / "evaluation.toml", environ={}), ran.err


@pytest.mark.parametrize(
    ("conf", "kept"),
    [
        ("", ["distribute-bundles-evenly", "load-placement", "load-shedding", "max-unload-percentage"]),
        # 5.0 then places by the old strategy as well.
        (_SHEDDING, ["distribute-bundles-evenly"]),
        (
            "loadBalancerSheddingEnabled=false\n",
            ["distribute-bundles-evenly", "load-placement", "max-unload-percentage"],
        ),
        (_EXTENSIBLE, []),
    ],
    ids=["no strategy", "a shedder", "no shedding", "extensible"],
)
def test_each_old_default_that_acts_is_a_candidate(lookup: Run, tmp_path: Path, conf: str, kept: list[str]) -> None:
    """The file under the release that runs is the incumbent."""
    settings, notes = _upgraded(lookup, tmp_path, conf)

    assert settings.evaluation.incumbent == "today"
    names = ["today", "pulsar-5.0", *(f"keep-{name}" for name in kept)]
    assert [policy.name for policy in settings.policies] == names
    assert ("no default of Pulsar 5.0 changes" in notes) == (not kept)


def test_an_old_shedder_takes_its_placement_with_it(lookup: Run, tmp_path: Path) -> None:
    """As a broker of 5.0 does, so that one key is enough."""
    settings, _ = _upgraded(lookup, tmp_path, "")

    today, new, *others = settings.policies
    (kept,) = (policy for policy in others if policy.name == "keep-load-shedding")
    assert (kept.shedder, kept.selector) == (today.shedder, today.selector)
    assert (new.shedder, new.selector) != (today.shedder, today.selector)


def test_existing_namespaces_keep_their_bundles(lookup: Run, tmp_path: Path) -> None:
    """The new default counts when a namespace is created, which is said and not replayed."""
    settings, notes = _upgraded(lookup, tmp_path, "")

    assert {policy.bundles for policy in settings.policies} == {None}
    assert "defaultNumberOfNamespaceBundles goes from 4 to 32 for namespaces created after the upgrade" in notes


def test_an_upgrade_to_the_same_release_changes_nothing(lookup: Run, tmp_path: Path) -> None:
    """Both policies are the same but for their names."""
    settings, notes = _upgraded(lookup, tmp_path, "", to="4.2")

    today, new = (policy.model_dump(exclude={"name"}) for policy in settings.policies)
    assert today == new
    assert "goes from" not in notes


def test_who_has_no_log_gets_a_scenario(lookup: Run, tmp_path: Path) -> None:
    """It has the policies of the evaluation, and runs as it is written."""
    settings, _ = _upgraded(lookup, tmp_path, "")
    ran = lookup("init", tmp_path / "invented", "--broker-conf", tmp_path / "broker.conf", "--to", "5.0")
    path = tmp_path / "invented" / "upgrade.scenario"

    assert ran.out == f"lookup simulate {path}\n"
    policies = read_scenario(path).scenario.policies
    assert [policy.model_dump() for policy in policies] == [policy.model_dump() for policy in settings.policies]
    assert lookup("simulate", path).code == 0


def test_an_upgrade_needs_a_file(lookup: Run, tmp_path: Path) -> None:
    """Nothing is written."""
    ran = lookup("init", tmp_path / "upgrade", "--to", "5.0")

    assert (ran.code, "give --broker-conf" in ran.err, (tmp_path / "upgrade").exists()) == (2, True, False)


def test_a_mistake_in_the_file_is_found_before_anything_is_written(lookup: Run, tmp_path: Path) -> None:
    """With the key and the value, and no folder is made."""
    (tmp_path / "broker.conf").write_text("loadBalancerSheddingIntervalMinutes=soon\n")
    ran = lookup("init", tmp_path / "upgrade", "--broker-conf", tmp_path / "broker.conf", "--to", "5.0")

    assert ran.code == 2
    assert "loadBalancerSheddingIntervalMinutes = 'soon'" in ran.err
    assert not (tmp_path / "upgrade").exists()
