"""Searches over scenarios in place of a log."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

import lookup
from lookup.errors import SettingsError

_SCENARIO = """
about = "Three brokers, one of which joins."
minutes = 30
history = {history}
[[brokers]]
id = "broker-{{n}}:8080"
count = 2
capacity = 100.0
[[brokers]]
id = "broker-3:8080"
capacity = 100.0
present = false
[[namespaces]]
name = "shop/orders"
bundles = 24
topics = 48
load = 120.0
jitter = 0.2
[[events]]
at = 5
join = ["broker-3:8080"]
[[policies]]
name = "not run"
selector = "random"
"""
_TODAY = {"name": "today", "selector": "least-resource-usage", "shedder": {"use": "threshold", "min_offload": 1e8}}
_MINIMUM = "shedder.min_offload"


@pytest.fixture
def search(tmp_path: Path) -> dict[str, Any]:
    """Return a search over a broker that stays idle, since each bundle is below the least that is unloaded."""
    (tmp_path / "joins.scenario").write_text(_SCENARIO.format(history=0.0))
    vary = {_MINIMUM: {"low": 1e5, "high": 1e8, "scale": "log"}}
    return {
        "tune": {"objectives": ["balance", "idle"], "candidates": 6, "seeds": 6},
        "scenarios": [{"file": str(tmp_path / "joins.scenario")}],
        "policies": [_TODAY],
        "spaces": [{"name": "minimum", "vary": vary}],
    }


def test_the_key_that_keeps_a_broker_idle_is_found_and_confirmed(search: dict[str, Any], tmp_path: Path) -> None:
    """In seeds that the search has not seen; the reason is that of the shedder's cycles."""
    found = lookup.tune(search, output=tmp_path / "out")

    document, best = found.document(), found.recommended[0]
    assert (found.exit_code, set(best["changes"])) == (0, {_MINIMUM})
    assert (best["sealed"]["idle"]["value"], document["incumbent"]["sealed"]["idle"]["value"]) == (0.0, 1.0)
    assert "too little to offload" in document["incumbent"]["cycles"]
    assert (document["first"], document["sealed_from"], document["last"]) == ("seed 1", "seed 15001", "seed 15006")
    assert found.conclusion.endswith("on seeds that the search has not seen")
    assert "On the sealed seeds" in found.page()


def test_a_search_that_was_stopped_goes_on_to_the_same_bytes(search: dict[str, Any], tmp_path: Path) -> None:
    """After its first batch."""
    lookup.tune(search, output=tmp_path / "out")
    content = json.loads((tmp_path / "out" / "search.json").read_text())
    stopped = content | {"batches": content["batches"][:1], "opened": 0, "has_opened": False}
    (tmp_path / "again").mkdir()
    (tmp_path / "again" / "search.json").write_text(json.dumps(stopped))

    lookup.tune(search, output=tmp_path / "again")

    assert (tmp_path / "again" / "tune.json").read_bytes() == (tmp_path / "out" / "tune.json").read_bytes()


def test_when_time_is_up_what_there_is_races(search: dict[str, Any], tmp_path: Path) -> None:
    """No batch around the best is begun then; the answer is confirmed as ever."""
    search["tune"]["candidates"], kinds = 24, {}
    for minutes in (1e-6, 60.0):
        search["tune"]["minutes"] = minutes
        found = lookup.tune(search, output=tmp_path / f"{minutes}")
        assert found.recommended
        batches = json.loads((Path(found.folder) / "search.json").read_text())["batches"]
        kinds[minutes] = [batch["kind"] for batch in batches]

    assert kinds[1e-6] == ["wide", "race"]
    assert kinds[60.0][0] == "wide"
    assert "near" in kinds[60.0]


def test_among_equals_the_incumbent_is_kept(search: dict[str, Any], tmp_path: Path) -> None:
    """A longer grace changes nothing where nothing is unloaded."""
    search["spaces"] = [{"name": "grace", "vary": {"grace_s": {"low": 60, "high": 7200}}}]
    search["tune"]["candidates"] = 10

    found = lookup.tune(search, output=tmp_path / "out")

    assert (found.recommended, found.exit_code) == ([], 4)
    assert [one["matters"] for one in found.document()["settings"]] == [False]


def test_scenarios_count_by_their_weights(search: dict[str, Any], tmp_path: Path) -> None:
    """A figure is the mean over scenarios; three times the weight of one is three of it."""
    (tmp_path / "smooth.scenario").write_text(_SCENARIO.format(history=0.9).replace("load = 120.0", "load = 150.0"))
    first, second = search["scenarios"][0], {"file": str(tmp_path / "smooth.scenario")}

    def moved(name: str, *scenarios: Mapping[str, Any]) -> float:
        document = lookup.tune({**search, "scenarios": scenarios}, output=tmp_path / name).document()
        return float(document["candidates"][1]["search"]["moved_load"]["value"])

    # Of the first batch alone, whose seeds all searches share.
    search["tune"] |= {"candidates": 2, "objectives": ["overloaded"]}
    alone = moved("a", first), moved("b", second)
    assert alone[0] != alone[1]
    assert moved("c", first, {**second, "weight": 3.0}) == pytest.approx((alone[0] + 3 * alone[1]) / 4)


@pytest.mark.parametrize(
    ("changes", "sentence"),
    [
        ({"tune": {"objectives": ["balanse"]}}, "tune: scenarios have no figure 'balanse'; did you mean 'balance'?"),
        ({"tune": {"objectives": ["matched"]}}, "tune: 'matched' has no value, since clients send no properties"),
        ({"tune": {"objectives": ["moves"], "prices": ["moves"]}}, "'moves' is an objective and a price"),
        ({"tune": {"holdout": 0.5}}, "tune.holdout: is a share of a log; with [[scenarios]] seeds are sealed: `seeds`"),
        ({"tune": {"replicates": 1}}, "tune.replicates: of scenarios only seeds differ, and one shows no luck"),
        ({"tune": {"evaluation": "e.toml"}}, "tune.evaluation: name either an evaluation or, with [[scenarios]], none"),
        ({"policies": []}, "policies: with scenarios the first is the incumbent"),
        ({"scenarios": [{"file": "none.scenario"}]}, "none.scenario: there is no such file"),
        ({"spaces": [{"name": "a", "policy": "old", "vary": {"grace_s": [1, 2]}}]}, "no policy is named 'old'"),
    ],
)
def test_mistakes_are_said_before_any_run(
    search: dict[str, Any], tmp_path: Path, changes: dict[str, Any], sentence: str
) -> None:
    """In one sentence, and nothing is written."""
    with pytest.raises(SettingsError) as caught:
        lookup.tune({**search, **changes}, output=tmp_path / "out")

    assert sentence in str(caught.value)
    assert not (tmp_path / "out").exists()


def test_a_limit_that_no_value_meets_is_refused(search: dict[str, Any], tmp_path: Path) -> None:
    """As soon as today's figure is known, and the folder is free for a limit that can be met."""
    search["tune"] |= {"limits": {"balance": 0.1}}
    with pytest.raises(
        SettingsError, match=r"'balance': at most 0\.1 times today's 1\.\d+ is .*, and it is never below 1"
    ):
        lookup.tune(search, output=tmp_path / "out")

    search["tune"] |= {"limits": {"balance": 1.0}, "candidates": 2}
    assert lookup.tune(search, output=tmp_path / "out").exit_code in (0, 4)


def test_what_is_an_objective_is_no_price_by_default(search: dict[str, Any], tmp_path: Path) -> None:
    """To move less is then what is sought."""
    search["tune"] |= {"objectives": ["moved_load"], "candidates": 2}

    document = lookup.tune(search, output=tmp_path / "out").document()

    assert (document["objectives"], document["prices"]) == (["moved_load"], [])


def test_a_log_is_not_taken_with_scenarios(search: dict[str, Any], tmp_path: Path) -> None:
    """Nothing would read it."""
    with pytest.raises(SettingsError, match="lookups: a search over scenarios reads no log; leave it out"):
        lookup.tune(search, tmp_path / "lookups", output=tmp_path / "out")
