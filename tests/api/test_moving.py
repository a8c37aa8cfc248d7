"""Plans for programs: made of a record, written, opened and held against the cluster."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

import lookup
from lookup.api.moving import ClusterSource
from lookup.errors import InputError, PulsarLookupError
from lookup.model.time import time_text
from tests.moving.worlds import START_US, World

_SHEDDER = {"use": "rebalance", "max_imbalance": 1.05, "max_share": 1.0}
_POLICY = {"name": "even", "selector": "least-resource-usage", "shedder": _SHEDDER}


@pytest.fixture(scope="module")
def record(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The record of a crowded cluster."""
    return World.crowded().write(tmp_path_factory.mktemp("moving") / "record")


def test_a_plan_is_made_written_and_opened(record: Path, tmp_path: Path) -> None:
    """What is opened is what was written."""
    made = lookup.plan(record, policy=_POLICY, max_moves=5)
    made.write(tmp_path / "plan")
    opened = lookup.open_plan(tmp_path / "plan")

    assert (made.exit_code, len(made.plan.steps)) == (0, 5)
    assert [broker.bundles for broker in made.plan.brokers] == [18, 3, 3]
    assert opened.document() == made.document()
    assert sorted(path.name for path in (tmp_path / "plan").iterdir()) == ["plan.json"]


def test_an_idle_plan_has_no_steps_and_a_reason(record: Path) -> None:
    """And code 4; it says of which instant of the record it is."""
    source = ClusterSource(str(record), START_US + 180_000_000)
    made = lookup.plan(source, policy={**_POLICY, "shedder": {"use": "rebalance", "max_imbalance": 3}})

    assert made.document()["made"] == time_text(START_US + 180_000_000)
    assert (made.exit_code, len(made.plan.steps)) == (4, 0)
    assert "minimum 3.02" in made.plan.why


@pytest.mark.parametrize(
    ("asked", "sentence"),
    [
        ({"max_moves": 0}, "max_moves: 0 is not a limit"),
        ({"max_weight": -1.0}, "max_weight: -1.0 is not a limit"),
        ({"policy": "shipped:rack-only"}, "policy: rack-only has no shedder"),
        ({"policy": {**_POLICY, "bundles": 8}}, "policy 'even': bundles = 8: "),
        ({"policy": {"name": "x", "selector": "best", "shedder": "reblance"}}, "did you mean 'rebalance'"),
        ({"policy": "absent.toml"}, "absent.toml"),
        ({"only": 7}, "only is 7"),
        ({"drain": "broker-9"}, "drain: .*'broker-9'"),
    ],
)
def test_mistakes_are_refused(record: Path, asked: dict[str, Any], sentence: str) -> None:
    """In one sentence that names the argument."""
    with pytest.raises(PulsarLookupError, match=sentence):
        lookup.plan(record, **asked)


def test_a_plan_or_a_record_that_is_not_there_is_refused(tmp_path: Path) -> None:
    """By its path; without a record a cluster is read as it is now."""
    with pytest.raises(InputError, match=r"plan\.json: "):
        lookup.open_plan(tmp_path)
    with pytest.raises(PulsarLookupError, match=r"at is .*record"):
        lookup.plan(ClusterSource(at_us=START_US))


def test_a_plan_goes_by_the_release_of_the_cluster(record: Path, tmp_path: Path) -> None:
    """Whose brokers name no version here; which release counts is said."""
    said: list[str] = []
    (tmp_path / "broker.conf").write_text("clusterName=a\n")
    policy = {"name": "today", "from_broker_conf": str(tmp_path / "broker.conf")}
    made = lookup.plan(record, policy=policy, progress=said.append)

    assert made.document()["policy"]["shedder"]["use"] == "threshold"
    assert any("Pulsar 4.2, because no broker names its version" in sentence for sentence in said)
    assert lookup.plan(record, policy={**policy, "pulsar": "5.0"}).document()["policy"]["shedder"]["use"] == "avg"
