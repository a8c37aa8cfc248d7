"""`lookup.simulate`: scenarios for programs, as the command runs them."""

from __future__ import annotations

import json
import tomllib
from pathlib import Path
from typing import Any

import pytest

import lookup
from lookup.errors import SettingsError
from tests.simulation.scenarios import SMALL, written

WRITTEN: dict[str, Any] = tomllib.loads(SMALL)
ASSERTED = {"assertions": [{"figure": "balance", "at_most": 1.5, "because": "it is even"}]}


def test_a_scenario_is_frames(tmp_path: Path) -> None:
    """A row for each policy, each minute, each broker in it, and each assertion."""
    found = lookup.simulate(written(tmp_path))

    (figures,) = found.figures.to_dict("records")
    assert (figures["scenario"], figures["policy"]) == ("small", "stays")
    assert found.trends["minute"].tolist() == list(range(12))
    assert found.trends["balance"].iloc[-2:].mean() == figures["balance"]
    assert sorted(found.usage["broker"].unique()) == ["b1", "b2"]
    assert found.usage.groupby("minute")["usage"].max().tolist() == found.trends["usage_max"].tolist()
    assert (len(found.assertions), found.exit_code, found.failures) == (0, 0, [])
    assert json.loads(json.dumps(found.document(), allow_nan=False))["figures"][0]["matched"] is None
    assert repr(found) == "<Simulation of 1 scenario, 1 run: 0 assertions, 0 of which fail>"
    assert "<td>stays</td>" in found._repr_html_()


def test_a_scenario_may_be_given_as_it_would_stand_in_its_file(tmp_path: Path) -> None:
    """One or several, beside paths; all run alike."""
    one = lookup.simulate(WRITTEN)
    several = lookup.simulate([written(tmp_path), WRITTEN, "shipped:drain"])

    assert several.figures["scenario"].unique().tolist() == ["small", "scenarios[1]", "drain"]
    drop = ["scenario", "matched"]
    assert several.figures[:2].drop(columns=drop).nunique().max() == 1
    assert several.figures[:1].drop(columns=drop).equals(one.figures.drop(columns=drop))


def test_assertions_decide_the_exit_code() -> None:
    """What fails is a row and a sentence."""
    found = lookup.simulate({**WRITTEN, **ASSERTED})

    (row,) = found.assertions.to_dict("records")
    assert (row["wanted"], row["holds"], row["because"]) == ("balance at most 1.5", False, "it is even")
    assert (len(found.failures), found.exit_code) == (1, 1)
    assert found.failures[0].startswith("scenarios: policy 'stays': balance is 1.71429 and ")


def test_what_a_file_expects_decides_as_well(tmp_path: Path) -> None:
    """The lines that differ are in the document."""
    text = lookup.simulate(WRITTEN).runs[0].text
    path = written(tmp_path, f"{SMALL}\n----\n{text}\n")
    assert lookup.simulate(path).exit_code == 0
    path.write_text(path.read_text(encoding="utf-8").replace("policy stays", "policy goes"), encoding="utf-8")

    found = lookup.simulate(path)

    assert found.exit_code == 1
    assert {"-policy goes", "+policy stays"} <= set(found.document()["differences"][str(path)])


def test_progress_and_warnings_are_sentences(tmp_path: Path) -> None:
    """What is run, and what Pulsar would ignore."""
    (tmp_path / "broker.conf").write_text(
        "loadManagerClassName=org.apache.pulsar.broker.loadbalance.extensions.ExtensibleLoadManagerImpl\n"
        "loadBalancerLoadSheddingStrategy=org.apache.pulsar.broker.loadbalance.impl.ThresholdShedder\n"
    )
    said: list[str] = []
    warned: list[str] = []
    path = written(tmp_path, SMALL.replace('selector = "round-robin"', 'from_broker_conf = "broker.conf"'))

    lookup.simulate(path, progress=said.append, warn=warned.append)

    assert said == [f"running {path} with 1 policy"]
    assert warned[0].startswith(f"{path}: policy 'stays': ")


@pytest.mark.parametrize(
    ("scenarios", "sentence"),
    [
        (42, "scenarios is 42"),
        ([], "scenarios: is empty"),
        ([42], "scenarios[0] is 42"),
        ({**WRITTEN, "minuts": 3}, "scenarios: minuts: "),
        ([{**WRITTEN, "minutes": 0}], "scenarios[0]: minutes: "),
        ({**WRITTEN, "policies": [{"name": "p", "selector": "rnd"}]}, "scenarios: policy 'p' selector: "),
    ],
)
def test_mistakes_are_sentences(scenarios: Any, sentence: str) -> None:
    """Before anything runs."""
    with pytest.raises(SettingsError) as raised:
        lookup.simulate(scenarios)

    assert str(raised.value).startswith(sentence)
