"""Single decisions, cycles and owners out of the tables of a run that are written here by hand."""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from lookup.logs.schema import CYCLES, DECISIONS, OWNERS
from lookup.replay.outcome import InputFacts
from lookup.replay.records import RunName
from lookup.report.figures import Run
from lookup.report.past import history_of
from tests.score.cases import scored

_NAME = RunName("c", "p", 1)
_WHOLE, _LOW, _HIGH = "t/n/0x00000000_0xffffffff", "t/n/0x00000000_0x80000000", "t/n/0x80000000_0xffffffff"
#: Owned by a, shed to b, back to a by a decision, split, lost with a.
_OWNERS = [
    {"bundle": _WHOLE, "broker": "a", "from": 10, "to": 60, "ended_by": "shed"},
    {"bundle": _WHOLE, "broker": "b", "from": 60, "to": 120, "ended_by": "shed"},
    {"bundle": _WHOLE, "broker": "a", "from": 125, "to": 130, "ended_by": "split"},
    {"bundle": _LOW, "broker": "a", "from": 130, "to": 140, "ended_by": "forced"},
    {"bundle": _HIGH, "broker": "a", "from": 130, "to": None, "ended_by": None},
]
_DECISIONS = [
    {"ts": 10, "bundle": _WHOLE, "broker": "a", "propensity": 0.5},
    {"ts": 125, "bundle": _WHOLE, "broker": "a", "propensity": 1.0},
    {"ts": 150, "bundle": _LOW, "broker": None, "declined": "no-candidates"},
]
_CYCLES = [{"ts": ts, "label": "success", "reason": "overloaded", "excess": 0.2} for ts in (60, 120)]


def _at(value: Any) -> Any:
    return datetime.fromtimestamp(value, UTC) if isinstance(value, int) else value


@pytest.fixture
def run(tmp_path: Path) -> Run:
    """Return a run of one policy."""
    for table, schema, rows in (
        ("owners", OWNERS, _OWNERS),
        ("decisions", DECISIONS, _DECISIONS),
        ("cycles", CYCLES, _CYCLES),
    ):
        (tmp_path / table).mkdir()
        timed = [
            {key: _at(value) if key in ("ts", "from", "to") else value for key, value in row.items()} for row in rows
        ]
        full = [{"cluster": "c", "policy": "p", "seed": 1, "state": "Owned", **row} for row in timed]
        pq.write_table(pa.Table.from_pylist(full, schema=schema), tmp_path / table / "0000-0000-1.parquet")
    settings = {"policies": [{"name": "p", "shedder": None}], "evaluation": {"seeds": [1]}}
    return Run(str(tmp_path), scored([], inputs=InputFacts(clusters=("c",))), {"settings": settings}, {})


def test_every_owner_has_a_beginning_and_an_end(run: Run) -> None:
    """By a decision, by the shedder, by a split; the cycle that took a bundle away has its figures."""
    steps = history_of(run, _NAME, "persistent://t/n/topic").steps

    assert [step.began_by for step in steps][:3] == ["decision", "shedder", "decision"]
    assert [step.decision for step in steps][:3] == ["c/p/1/0", None, "c/p/1/1"]
    assert steps[0].cycle == {
        "label": "success",
        "reason": "overloaded",
        "average": None,
        "deviation": None,
        "over": None,
        "excess": 0.2,
    }
    assert steps[3].began_by == "split"
