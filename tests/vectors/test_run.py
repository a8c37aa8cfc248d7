"""Running vectors and telling how they ended."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from lookup.errors import ArgumentError
from tests.vectors import AREAS, Difference, NotUnderstood, Outcome, Vector, main, run_vector
from tests.vectors.reading import only

_HASHES = {"id": "bundles.topic_hash/1", "area": "bundles.topic_hash", "input": {"topic": "persistent://t/n/x"}}
_RIGHT: dict[str, Any] = {**_HASHES, "expected": {"hash": "0x064eefed"}}
_WRONG: dict[str, Any] = {**_HASHES, "id": "bundles.topic_hash/2", "expected": {"hash": "0x00000000"}}
_UNKNOWN: dict[str, Any] = {"id": "stars/1", "area": "stars", "input": {}, "expected": {}}


def _double(given: Mapping[str, Any], expected: Mapping[str, Any]) -> Mapping[str, Any]:
    only(given, "x")
    only(expected, "y")
    if given["x"] < 0:
        raise ArgumentError("x is negative")
    return {"y": 2 * given["x"]}


def _run(given: dict[str, Any], expected: dict[str, Any]) -> Outcome:
    return run_vector(Vector("double/1", "double", given, expected), {"double": _double})


def _file(folder: Path, *entries: Mapping[str, Any]) -> str:
    path = folder / "vectors.json"
    path.write_text("\n".join(map(json.dumps, entries)), encoding="utf-8")
    return str(path)


def test_an_answer_that_agrees_passes() -> None:
    """And has nothing to tell."""
    outcome = _run({"x": 2}, {"y": 4})

    assert (outcome.ending, outcome.differences, outcome.why) == ("passed", (), "")


def test_an_answer_that_differs_fails() -> None:
    """With what was expected and what came."""
    outcome = _run({"x": 2}, {"y": 5})

    assert (outcome.ending, outcome.differences) == ("failed", (Difference("y", 5, 4),))


@pytest.mark.parametrize(
    ("given", "expected", "why"),
    [
        ({"x": 2, "z": 1}, {"y": 4}, "'z' is not understood"),
        ({"x": 2}, {"y": 4, "q": 4}, "'q' is not understood"),
        ({"x": -1}, {"error": "Strange"}, "'error' is not understood"),
    ],
)
def test_unknown_keys_are_told(given: dict[str, Any], expected: dict[str, Any], why: str) -> None:
    """They neither pass nor fail."""
    outcome = _run(given, expected)

    assert (outcome.ending, outcome.why) == ("not understood", why)


def test_a_broken_call_fails_and_says_so() -> None:
    """An error that is none of the framework's own is a bug of it."""
    outcome = _run({"x": "a" * 0 or None}, {"y": 4})

    assert outcome.ending == "failed"
    assert outcome.why.startswith("the call broke: TypeError: ")


def test_a_handler_cannot_change_what_is_compared() -> None:
    """It works on copies."""

    def sly(given: Mapping[str, Any], expected: Mapping[str, Any]) -> Mapping[str, Any]:
        expected["y"].append(1)
        return {"y": [1]}

    assert run_vector(Vector("sly/1", "sly", {}, {"y": []}), {"sly": sly}).ending == "failed"


def test_all_passing_exits_with_zero(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """One line per area and one for all."""
    assert main([_file(tmp_path, _RIGHT)]) == 0
    assert capsys.readouterr().out.splitlines() == [
        "area                passed  failed  not understood",
        "bundles.topic_hash       1       0               0",
        "total                    1       0               0",
    ]


def test_failures_are_told_below_the_areas(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Each with expected and actual, or with what is not understood; the exit code is 1."""
    assert main([_file(tmp_path, _RIGHT, _WRONG, _UNKNOWN)]) == 1
    assert capsys.readouterr().out.splitlines() == [
        "area                passed  failed  not understood",
        "bundles.topic_hash       1       1               0",
        "stars                    0       0               1",
        "total                    1       1               1",
        "",
        "bundles.topic_hash/2: failed",
        "  hash",
        '    expected "0x00000000"',
        '    actual   "0x064eefed"',
        "",
        "stars/1: not understood",
        "  there is no area 'stars'",
    ]


def test_an_unknown_area_alone_exits_with_one(tmp_path: Path) -> None:
    """What is not understood is no success."""
    assert main([_file(tmp_path, _UNKNOWN)]) == 1


def test_json_tells_the_same(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """As one object."""
    assert main([_file(tmp_path, _RIGHT, _WRONG), "--format", "json"]) == 1
    assert json.loads(capsys.readouterr().out) == {
        "areas": [{"area": "bundles.topic_hash", "passed": 1, "failed": 1, "not_understood": 0}],
        "failures": [
            {
                "id": "bundles.topic_hash/2",
                "area": "bundles.topic_hash",
                "ending": "failed",
                "why": "",
                "differences": [{"key": "hash", "expected": "0x00000000", "actual": "0x064eefed"}],
            }
        ],
        "total": {"passed": 1, "failed": 1, "not_understood": 0},
    }


def test_areas_can_be_picked(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """The others are not run."""
    assert main([_file(tmp_path, _RIGHT, _UNKNOWN), "--area", "bundles.topic_hash"]) == 0
    assert "stars" not in capsys.readouterr().out


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        (["none.json"], "none.json: No such file or directory"),
        ([], "the following arguments are required: FILE; see `python -m tests.vectors --help`"),
        (["x", "--format", "xml"], "see `python -m tests.vectors --help`"),
    ],
)
def test_what_cannot_run_is_one_sentence(
    arguments: list[str], sentence: str, capsys: pytest.CaptureFixture[str]
) -> None:
    """On standard error, and the exit code is 2."""
    assert main(arguments) == 2
    told = capsys.readouterr()
    assert (told.out, sentence in told.err, told.err.count("\n")) == ("", True, 1)


def test_an_area_without_vectors_is_a_mistake(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Running nothing must not look like passing."""
    assert main([_file(tmp_path, _RIGHT), "--area", "bundles.topichash"]) == 2
    assert "no vector of area 'bundles.topichash'; did you mean 'bundles.topic_hash'?" in capsys.readouterr().err


def test_a_file_without_vectors_is_a_mistake(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Likewise."""
    (tmp_path / "vectors.json").write_text("[]", encoding="utf-8")

    assert main([str(tmp_path / "vectors.json")]) == 2
    assert "vectors.json: there is no vector in it" in capsys.readouterr().err


def test_it_runs_as_a_module(tmp_path: Path) -> None:
    """From a shell, with its exit code."""
    command = [sys.executable, "-m", "tests.vectors", _file(tmp_path, _WRONG)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)

    assert (done.returncode, done.stderr) == (1, "")


def test_help_has_examples(capsys: pytest.CaptureFixture[str]) -> None:
    """And says what the exit codes mean."""
    with pytest.raises(SystemExit, match="0"):
        main(["--help"])

    told = capsys.readouterr().out
    assert "python -m tests.vectors loadmanager.json --format json" in told
    assert "exit codes: 0 all passed" in told


def test_every_area_has_a_handler_of_its_own_name() -> None:
    """No group takes an area from another."""
    assert all(callable(handler) for handler in AREAS.values())
    assert NotUnderstood("x").key == "x"
