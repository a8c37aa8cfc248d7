"""What a real broker.conf makes of a log without byte rates: nothing, with a sentence, or sheds, with a stated unit."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest

from lookup.logs.generator.generate import GenerateSettings, generate
from lookup.logs.jobs import InProcess
from lookup.replay.outcome import ReplayOutcome
from lookup.replay.run import replay
from lookup.settings.evaluation import EvaluationFile

_SHAPE = GenerateSettings(
    lookups=6000, clusters=1, hours=2.0, topics=120, namespaces=6, tenants=3, clients=40, brokers=5, zipf=1.3
)
_SHEDDERS = {
    "ThresholdShedder": ("threshold", "min_offload"),
    "UniformLoadShedder": ("uniform", "min_throughput"),
    "AvgShedder": ("avg", "min_throughput"),
}


@pytest.fixture(scope="module")
def sample(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a log of `lookup generate`, which has no BUNDLES."""
    folder = tmp_path_factory.mktemp("incumbents") / "sample"
    generate(_SHAPE, folder)
    return folder


def _replayed(folder: Path, sample: Path, shedder: str, **section: Any) -> tuple[ReplayOutcome, list[str]]:
    conf = folder / "broker.conf"
    conf.write_text(
        f"loadBalancerLoadSheddingStrategy=org.apache.pulsar.broker.loadbalance.impl.{shedder}\n", "latin-1"
    )
    file = {
        "evaluation": {"incumbent": "today", "seeds": [1], **section},
        "inputs": {name: str(sample / name) for name in ("lookups", "brokers", "ownership")},
        "policies": [{"name": "today", "from_broker_conf": str(conf)}],
    }
    warned: list[str] = []
    output = str(folder / f"output-{len(section)}")
    return replay(InProcess(), EvaluationFile.model_validate(file), output, warn=warned.append), warned


@pytest.mark.parametrize("shedder", _SHEDDERS)
def test_pulsars_shedders_act_only_if_bytes_are_known(tmp_path: Path, sample: Path, shedder: str) -> None:
    """Without them the outcome says which part cannot act and why; with what that suggests the part sheds."""
    part, parameter = _SHEDDERS[shedder]
    idle, warned = _replayed(tmp_path, sample, shedder)
    said = idle.cannot_act["today"]
    suggested = re.search(r"bytes_per_weight; ([0-9.e+]+) is suggested", said)
    cycles = idle.inputs.cycles

    assert said.startswith(f"its shedder {part!r} cannot act: it uses ")
    assert parameter in said
    assert any(said in warning and "no verdict against it" in warning for warning in warned)
    assert cycles["today"].accepted == 0
    assert suggested is not None

    acting, warned = _replayed(tmp_path, sample, shedder, bytes_per_weight=float(suggested[1]))
    cycles = acting.inputs.cycles

    assert acting.cannot_act == {}
    assert not any("cannot act" in warning for warning in warned)
    assert cycles["today"].accepted > 0


def test_weights_that_cannot_act_are_said_before_a_run(tmp_path: Path, sample: Path) -> None:
    """Once for all policies that have some; what simulated load gives is one usage of a broker."""
    conf = tmp_path / "broker.conf"
    conf.write_text("loadBalancerDirectMemoryResourceWeight=1\n", "latin-1")
    own = {"name": "own", "selector": "random", "shedder": "threshold", "weights": {"cpu": 0.5}}
    file = {
        "evaluation": {"incumbent": "today", "seeds": [1]},
        "inputs": {name: str(sample / name) for name in ("lookups", "brokers", "ownership")},
        "policies": [{"name": "today", "from_broker_conf": str(conf)}, own, {"name": "any", "selector": "random"}],
    }
    warned: list[str] = []
    replay(InProcess(), EvaluationFile.model_validate(file), str(tmp_path / "output"), warn=warned.append)

    assert [warning.partition(":")[0] for warning in warned if "weights of resources cannot act" in warning] == [
        "each of the policies today, own"
    ]


def test_a_policy_that_needs_no_bytes_is_untouched_by_them(tmp_path: Path, sample: Path) -> None:
    """All tables of one with the shedder `threshold` and its defaults are the same to the byte."""
    written = []
    for place, section in enumerate(({}, {"bytes_per_weight": 3e7})):
        file = {
            "evaluation": {"incumbent": "own", "seeds": [1], **section},
            "inputs": {name: str(sample / name) for name in ("lookups", "brokers", "ownership")},
            "policies": [{"name": "own", "selector": "least-resource-usage", "shedder": "threshold"}],
        }
        outcome = replay(InProcess(), EvaluationFile.model_validate(file), str(tmp_path / str(place)))
        files = sorted((tmp_path / str(place)).rglob("*.parquet"))
        written.append([path.read_bytes() for path in files])

        assert outcome.cannot_act == {}

    # DECISIONS, OWNERS, CYCLES, CELLS and FLOWS, a file of each.
    assert len(written[0]) == 5
    assert written[0] == written[1]
