"""Runs that must not pass: the runner tells wrong, unknown and broken examples from right ones."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from lookup.errors import ArgumentError, StateError
from tests.vectors import AREAS, Vector, differences, main, run_vector

_TOPIC = {"topic": "persistent://t/n/x"}


@pytest.mark.parametrize(
    ("area", "given", "expected", "ending"),
    [
        ("bundles.topic_hash", _TOPIC, {"hash": "0x064eefed"}, "passed"),
        ("bundles.topic_hash", _TOPIC, {"hash": "0x064EEFED"}, "failed"),
        ("bundles.topic_hash", {}, {"hash": "0x064eefed"}, "failed"),
        ("bundles.topic_hash", _TOPIC, {"colour": "red"}, "not understood"),
        ("bundles.can_split", {"lower": "0x0", "upper": "0x2"}, {"can_split": False}, "failed"),
        ("bundles.find_by_hash", {"boundaries": ["0x1", "0x2"], "hash": "0x0"}, {"error": "IllegalState"}, "failed"),
        ("bundles.find_by_hash", {"boundaries": ["0x1", "0x2"], "hash": "0x0"}, {"error": "Odd"}, "not understood"),
        ("topics.filter", {"topics": ["t/n/b", "t/n/a"], "pattern": ".*"}, {"topics": ["t/n/a", "t/n/b"]}, "failed"),
        ("stars", {}, {}, "not understood"),
    ],
)
def test_only_right_examples_pass(area: str, given: dict[str, Any], expected: dict[str, Any], ending: str) -> None:
    """A wrong value, order or kind of error fails; an unknown area, key or kind is not understood."""
    assert run_vector(Vector("x/1", area, given, expected)).ending == ending


@pytest.mark.parametrize("area", AREAS)
def test_no_area_reads_past_an_unknown_key(area: str) -> None:
    """An input with more than an area knows does not pass."""
    assert run_vector(Vector("x/1", area, {"unheard of": 1}, {})).ending != "passed"


@pytest.mark.parametrize(
    ("area", "key", "expected", "actual", "agree"),
    [
        ("any", "key", 1, True, False),
        ("any", "key", None, 0, False),
        ("any", "key", 1.0, 1.0 + 1e-10, True),
        ("any", "key", 1.0, 1.0 + 1e-8, False),
        ("any", "key", [1, 2], [2, 1], False),
        ("any", "key", ["a", "b"], ["b", "a"], True),
        ("any", "key", ["a", "a"], ["a", "b"], False),
        ("any", "key", {"a": 1}, {"a": 1, "b": 2}, True),
        ("threshold_shedder", "unload", {}, {"b": ["x"]}, False),
        ("transfer_shedder", "loadAvg~1e-5", 0.5, 0.50002, False),
        ("transfer_shedder", "single_decision", {"dest_one_of": ["a", "b"]}, {"dest_one_of": ["a", "c"]}, False),
        ("topk", "invariant", "in words", False, False),
        ("any", "error", "IllegalArgument", ArgumentError("x"), True),
        ("any", "error", "IllegalArgument", StateError("x"), False),
        ("any", "error", "IllegalArgument", ValueError("x"), False),
        ("any", "result", "ok", ArgumentError("x"), False),
    ],
)
def test_values_are_compared_by_the_conventions(
    area: str, key: str, expected: Any, actual: Any, *, agree: bool
) -> None:
    """Exactly, doubles to 1e-9, lists of names as sets, of objects the keys that are present, errors by kind."""
    assert (not differences(area, {key: expected}, {key: actual})) is agree


def test_files_are_run_and_told(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """The exit code is 1 unless all passed, and 2 where nothing is run."""
    entry = {"id": "bundles.topic_hash/1", "area": "bundles.topic_hash", "input": _TOPIC}
    right, wrong = entry | {"expected": {"hash": "0x064eefed"}}, entry | {"expected": {"hash": "0x0"}}
    file = tmp_path / "vectors.json"
    file.write_text(f"{json.dumps(right)}\n{json.dumps(wrong)}\n", encoding="utf-8")

    assert main([str(file)]) == 1
    assert '"0x0"' in capsys.readouterr().out
    assert main([str(file), "--format", "json"]) == 1
    assert json.loads(capsys.readouterr().out)["total"] == {"passed": 1, "failed": 1, "not_understood": 0}
    with pytest.raises(SystemExit, match="2"):
        main([str(file), "--area", "stars"])
