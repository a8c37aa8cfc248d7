"""What ships has names, and these stand for paths."""

from __future__ import annotations

from pathlib import Path

import pytest

from lookup.errors import SettingsError
from lookup.settings import load_evaluation
from lookup.settings.shipped import shipped_files, shipped_path
from tests.settings.files import write

_CONFIGS = Path(__file__).parents[2] / "configs"


def test_every_file_has_a_name_of_its_own() -> None:
    """No file hides another, each has a sentence, and no kind is left to chance."""
    files = [path for path in _CONFIGS.rglob("*") if path.suffix in (".toml", ".conf", ".scenario")]

    assert sorted(files) == sorted(entry.path for entry in shipped_files().values())
    assert all(len(entry.summary) > 20 for entry in shipped_files().values())
    evaluations = {"evaluation", "live-evaluation", "nasa-evaluation"}
    assert {entry.name for entry in shipped_files().values() if entry.kind == "evaluation"} == evaluations


def test_a_name_stands_for_a_path() -> None:
    """Any other text is a path as it is; a name that is misspelt is a sentence with the nearest."""
    assert shipped_path("shipped:access-log") == str(_CONFIGS / "mappings" / "access-log.toml")
    assert shipped_path("shipped.toml") == "shipped.toml"
    with pytest.raises(SettingsError, match=r"'acces-log'; did you mean 'access-log'\?"):
        shipped_path("shipped:acces-log")


def test_an_evaluation_may_name_what_ships(tmp_path: Path) -> None:
    """Policies, profiles and the topology, wherever else a path may stand."""
    rest = '\n[topology]\nfile = "shipped:topology"\n[[brokers]]\nid = "b:8080"\nprofile = "shipped:small"\n'
    policies = 'policies = ["shipped:stock-modular-4.2", "shipped:rack-then-load"]\n'
    text = f'{policies}[evaluation]\nincumbent = "stock-modular-4.2"\n{rest}'

    settings = load_evaluation(write(tmp_path, "evaluation.toml", text), environ={})

    assert [policy.name for policy in settings.policies] == ["stock-modular-4.2", "rack-then-load"]
    assert settings.sources["topology.distance_ms.zone"] == str(_CONFIGS / "topology.toml")
    assert settings.sources["brokers[0].profile.capacity"] == str(_CONFIGS / "brokers" / "small.toml")
