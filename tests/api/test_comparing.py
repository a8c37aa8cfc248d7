"""`lookup.diff`: two finished evaluations, as the command compares them."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

import lookup
from lookup.errors import InputError, SettingsError
from lookup.logs.jobs import InProcess
from tests.api.test_evaluating import _SETTINGS, log_of_racks


@pytest.fixture(scope="module")
def runs(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Path]:
    """Evaluate a log in two ways: the second has a candidate more, and other brokers."""
    folder, log = tmp_path_factory.mktemp("runs"), log_of_racks()
    lookup.evaluate(log, settings=_SETTINGS, output=folder / "a", workers=InProcess())
    more = [*_SETTINGS["policies"], {"name": "same", "selector": "random"}]
    brokers = [*_SETTINGS["brokers"], {"id": "b2:8080"}]
    given = {"policies": more, "brokers": brokers, "workers": InProcess()}
    lookup.evaluate(log, settings=_SETTINGS, output=folder / "b", **given)
    return folder / "a", folder / "b"


def test_what_differs_is_named(runs: tuple[Path, Path]) -> None:
    """Settings by their keys, and figures of the policies that both have, from the first run to the second."""
    found = lookup.diff(*runs)

    assert "brokers[2].id" in [key for key, _, _ in found.settings]
    assert {change.policy for change in found.changes} == {"stock", "rack"}
    (row,) = (row for row in found.changes if (row.policy, row.name) == ("stock", "imbalance_max_mean"))
    assert row.delta == row.second - row.first
    assert row.half > 0
    assert 0 < len(found.changed) < len(found.changes)
    assert len(json.loads(json.dumps(found.document(), allow_nan=False))["figures"]) == len(found.changed)


def test_a_run_may_be_what_evaluate_returned(runs: tuple[Path, Path]) -> None:
    """And one is the same as itself."""
    run = lookup.open_run(runs[0])

    same = lookup.diff(run, runs[0])

    assert (len(same.settings), len(same.changed)) == (0, 0)
    assert lookup.diff(run, lookup.open_run(runs[1])).document() == lookup.diff(*runs).document()


def test_mistakes_name_the_folder(runs: tuple[Path, Path], tmp_path: Path) -> None:
    """Or the argument."""
    with pytest.raises(InputError, match=f"^{tmp_path}: has no manifest.json"):
        lookup.diff(runs[0], tmp_path)
    with pytest.raises(SettingsError, match=r"^second is None, "):
        lookup.diff(runs[0], None)
