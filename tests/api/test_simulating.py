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


def test_a_scenario_has_figures_and_a_trend(tmp_path: Path) -> None:
    """Figures for each policy, and what was so in each minute."""
    found = lookup.simulate(written(tmp_path))

    (figures,) = json.loads(json.dumps(found.document(), allow_nan=False))["figures"]
    assert (figures["scenario"], figures["policy"], figures["matched"]) == ("small", "stays", None)
    (trend,) = found.runs[0].trends
    assert [sample.minute for sample in trend.samples] == list(range(12))
    assert trend.figures.balance == figures["balance"]
    assert (found.document()["assertions"], found.exit_code, found.failures) == ([], 0, [])


def test_a_scenario_may_be_given_as_it_would_stand_in_its_file(tmp_path: Path) -> None:
    """One or several, beside paths; all run alike."""
    one = lookup.simulate(WRITTEN)
    several = lookup.simulate([written(tmp_path), WRITTEN, "shipped:drain"])

    assert list(dict.fromkeys(row["scenario"] for row in several.document()["figures"])) == [
        "small", "scenarios[1]", "drain",
    ]  # fmt: skip
    assert several.runs[0].text == several.runs[1].text == one.runs[0].text


def test_assertions_decide_the_exit_code() -> None:
    """What fails is a row and a sentence."""
    found = lookup.simulate({**WRITTEN, **ASSERTED})

    (row,) = found.document()["assertions"]
    assert (row["wanted"], row["holds"], row["because"]) == ("balance at most 1.5", False, "it is even")
    assert (len(found.failures), found.exit_code) == (1, 1)
    assert found.failures[0].startswith("scenarios: policy 'stays': balance is 1.71429 and ")


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
