"""The file of a search for settings."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from lookup.errors import SettingsError
from lookup.settings.loader import load_tuning
from lookup.settings.tuning import RangeEntry, split_overrides
from tests.settings.files import write

_CONF_KEY = "defaultNumberOfNamespaceBundles"
_VARY = {"shedder.threshold": {"low": 0.1, "high": 0.5}}


def _search(**changes: Any) -> dict[str, Any]:
    return {"tune": {"evaluation": "e.toml"}, "spaces": [{"name": "a", "vary": _VARY}]} | changes


def _space(x: Any) -> dict[str, Any]:
    return {"name": "a", "vary": {"x": x}}


def test_paths_start_from_the_file(tmp_path: Path) -> None:
    """The evaluation, and spaces in files of their own beside those that ship."""
    write(tmp_path, "mine.toml", 'name = "mine"\n[vary]\n"shedder.history" = {}\n')
    path = write(
        tmp_path, "tune.toml", 'spaces = ["mine.toml", "shipped:threshold"]\n[tune]\nevaluation = "today/e.toml"\n'
    )

    file = load_tuning(path)

    assert file.tune.evaluation == str(tmp_path / "today" / "e.toml")
    assert [space.name for space in file.spaces] == ["mine", "threshold"]


@pytest.mark.parametrize(
    ("changes", "place"),
    [
        ({"spaces": []}, "spaces: "),
        ({"spaces": ["nowhere.toml"]}, "nowhere.toml: "),
        ({"spaces": [{"name": "a", "vary": {}}]}, "spaces[0].vary: "),
        ({"spaces": [{"name": "a", "vary": _VARY}] * 2}, "spaces: 2 are named 'a'"),
        ({"spaces": [{"name": "a", "vary": _VARY, "set": {"shedder.threshold": 1}}]}, "set.shedder.threshold: "),
        ({"spaces": [_space({"low": 2, "high": 1})]}, "high: 1 should be above low, 2"),
        ({"spaces": [_space({"low": 0, "high": 1, "scale": "log"})]}, "low: 0 should be above 0"),
        ({"spaces": [_space([1])]}, "spaces[0].vary.x"),
        ({"spaces": [_space([5, 5])]}, "spaces[0].vary.x: has one value, 5"),
        (
            {"spaces": [{"name": "a", "vary": {_CONF_KEY: [4, 8]}, "set": {"bundles": 2}}]},
            f"spaces[0].set.bundles: is the same setting as {_CONF_KEY}",
        ),
        (
            {"spaces": [{"name": "a", "vary": {_CONF_KEY: [4, 8], "bundles": [2, 4]}}]},
            f"spaces[0].vary.bundles: is the same setting as {_CONF_KEY}",
        ),
        ({"spaces": [_space({"scale": "lgo"})]}, "spaces[0].vary.x.scale: "),
        ({"spaces": [_space({"hgih": 1})]}, "spaces[0].vary.x.hgih: "),
        ({"spaces": [_space({"high": "1"})]}, "spaces[0].vary.x.high: "),
        ({"tune": {"evaluation": "e.toml", "candidate": 3}}, "did you mean 'candidates'?"),
    ],
)
def test_what_is_wrong_is_one_sentence(changes: dict[str, Any], place: str) -> None:
    """With its place."""
    with pytest.raises(SettingsError) as caught:
        load_tuning(_search(**changes))

    assert place in str(caught.value)
    assert len(caught.value.problems) == 1


def test_flags_and_variables_reach_the_search_alone() -> None:
    """What is meant for its evaluation goes there."""
    spaces = '["shipped:uniform"]'
    own, rest = split_overrides({"tune.candidates": "5", "evaluation.seeds": "3", "spaces": spaces})
    variables = {"LOOKUP_TUNE__HOLDOUT": "0.5", "LOOKUP_EVALUATION__SEEDS": "3"}

    file = load_tuning(_search(), own, variables)

    tune = file.tune
    assert [space.name for space in file.spaces] == ["uniform"]
    assert (tune.candidates, tune.holdout, rest) == (5, 0.5, {"evaluation.seeds": "3"})


def test_whole_ends_stay_whole() -> None:
    """So that the values between them are."""
    assert isinstance(RangeEntry(low=1, high=8).high, int)
    assert isinstance(RangeEntry(low=1, high=8.0).high, float)
